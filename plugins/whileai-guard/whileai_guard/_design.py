"""The design matrix of a scan: named features, phrases and conjunctions as sparse columns with their error budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whileai_guard._permute import group_spread
from whileai_guard._phrases import phrase_matrix
from whileai_guard.features import GROUPS, PRESENCE, answer_text, row_features

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Row = Mapping[str, Any]
CONJOINED = 24


@dataclass(frozen=True)
class Design:
    """Columns of a scan.

    Attributes:
        matrix: Rows x features.
        names: Name of each column.
        weights: Share of the error budget of each column.
        both: Whether a column is tested in both directions.
        presence: Whether a column is zero or one.
    """

    matrix: sparse.csr_matrix
    names: list[str]
    weights: F64
    both: NDArray[np.bool_]
    presence: NDArray[np.bool_]


def build(
    rows: Sequence[Row],
    group: I64,
    *,
    extra: Mapping[str, Callable[[Row], Any]],
    phrases: bool,
    conjunctions: bool,
    longest: int,
    support: float,
    at_most: int,
    phrase_weight: float,
    conjunction_weight: float,
) -> Design:
    """Return the design matrix; nothing in it depends on the rewards.

    Args:
        rows: Rows of tasks with at least two rows.
        group: Task of each row.
        extra: Further features by name; a feature may return a number or a mapping of names to numbers.
        phrases: Whether phrases are features.
        conjunctions: Whether pairs of features are features.
        longest: Words of the longest phrase.
        support: Least within-task sum of squares of a phrase or conjunction.
        at_most: Phrases kept at most.
        phrase_weight: Share of the budget for phrases.
        conjunction_weight: Share of the budget for conjunctions.
    """
    named, names = _named(rows, extra)
    spread = np.asarray(group_spread(named, group).sum(axis=0)).ravel() if names else np.zeros(0)
    alive = np.flatnonzero(spread > 1e-9)
    named, names = named[:, alive], [names[i] for i in alive.tolist()]
    parts, labels = [named], list(names)
    budget = 1.0
    weights: list[F64] = []
    if phrases:
        words, wording, width = phrase_matrix(
            [answer_text(r) for r in rows], group, longest=longest, support=support, at_most=at_most
        )
        if wording:
            parts.append(words)
            labels += [f"phrase: {w}" for w in wording]
            weights.append(_phrase_weights(width, phrase_weight))
            budget -= phrase_weight
    if conjunctions:
        pairs, pair_names = _conjunctions(sparse.csr_matrix(sparse.hstack(parts)), labels, group, support)
        if pair_names:
            parts.append(pairs)
            labels += pair_names
            weights.append(np.full(len(pair_names), conjunction_weight / len(pair_names)))
            budget -= conjunction_weight
    weights.insert(0, _named_weights(names, budget))
    matrix = sparse.csr_matrix(sparse.hstack(parts)) if labels else sparse.csr_matrix((len(rows), 0))
    n_named = len(names)
    presence = np.array([i >= n_named or label.startswith(PRESENCE) for i, label in enumerate(labels)], np.bool_)
    return Design(matrix, labels, np.concatenate(weights), ~presence, presence)


def _named(rows: Sequence[Row], extra: Mapping[str, Callable[[Row], Any]]) -> tuple[sparse.csr_matrix, list[str]]:
    column: dict[str, int] = {}
    at_row: list[int] = []
    at_column: list[int] = []
    values: list[float] = []
    partial: dict[str, int] = {}
    for position, row in enumerate(rows):
        found = row_features(row)
        for name, feature in extra.items():
            result = feature(row)
            if isinstance(result, Mapping) and "value" not in result:
                found |= {f"plugin.{name}.{key}": float(v) for key, v in result.items() if v is not None}
            else:
                value = result["value"] if isinstance(result, Mapping) else result
                if value is not None:
                    found[f"plugin.{name}"] = float(value)
        for name, value in found.items():
            if name.startswith(("markers.", "plugin.")):
                partial[name] = partial.get(name, 0) + 1
            at_row.append(position)
            at_column.append(column.setdefault(name, len(column)))
            values.append(value)
    matrix = sparse.csr_matrix((values, (at_row, at_column)), shape=(len(rows), len(column)))
    names = list(column)
    # A marker that does not apply says nothing: such rows get the column's mean, not 0.
    gaps = [n for n, count in partial.items() if count < len(rows)]
    if gaps:
        dense = matrix.tolil()
        seen = {(r, c) for r, c in zip(at_row, at_column, strict=True)}
        for name in gaps:
            c = column[name]
            mean = float(matrix[:, [c]].sum()) / partial[name]
            for position in range(len(rows)):
                if (position, c) not in seen:
                    dense[position, c] = mean
        matrix = sparse.csr_matrix(dense)
    return matrix, names


def _named_weights(names: Sequence[str], budget: float) -> F64:
    groups = [next((g for g in GROUPS if name.startswith(f"{g}.")), "plugin") for name in names]
    present = sorted(set(groups))
    return np.array([budget / len(present) / groups.count(g) for g in groups], np.float64)


def _phrase_weights(width: I64, budget: float) -> F64:
    """Return weights such that single words, pairs and longer phrases have an equal share of the budget.

    Single words are many and say little; without this they would use up the budget of the phrases that matter.
    """
    kind = np.minimum(width, 3)
    counts = np.bincount(kind, minlength=4)
    return np.asarray(budget / np.count_nonzero(counts) / counts[kind], np.float64)


def _conjunctions(
    matrix: sparse.csr_matrix, labels: Sequence[str], group: I64, support: float
) -> tuple[sparse.csr_matrix, list[str]]:
    """Return products of the pairs of the zero-one features that vary most within tasks."""
    flags = [i for i, name in enumerate(labels) if name.startswith((*PRESENCE, "phrase: "))]
    if len(flags) < 2:
        return sparse.csr_matrix((matrix.shape[0], 0)), []
    binary = sparse.csr_matrix((matrix[:, flags] > 0).astype(np.float64))
    spread = np.asarray(group_spread(binary, group).sum(axis=0)).ravel()
    chosen = np.argsort(-spread, kind="stable")[:CONJOINED].tolist()
    columns, names = [], []
    for a, b in combinations(sorted(chosen), 2):
        both = binary[:, [a]].multiply(binary[:, [b]])
        columns.append(both)
        names.append(f"{labels[flags[a]]} AND {labels[flags[b]]}")
    joined = sparse.csr_matrix(sparse.hstack(columns))
    own = np.asarray(group_spread(joined, group).sum(axis=0)).ravel()
    keep = np.flatnonzero(own >= support)
    return sparse.csr_matrix(joined[:, keep]), [names[i] for i in keep.tolist()]
