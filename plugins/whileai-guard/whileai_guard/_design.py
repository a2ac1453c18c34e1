"""The design matrix of a scan: named features, phrases and conjunctions as sparse columns with their error budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whileai_guard._permute import shared_variance, total_spread
from whileai_guard._phrases import CLASSES, Phrases, phrase_matrix
from whileai_guard.defaults import BUDGET, COHESION, CONJUNCTION_PARTS, MORE_SHARE
from whileai_guard.features import EITHER_WAY, GROUPS, PRESENCE, row_features

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Design:
    """Columns of a scan.

    Attributes:
        matrix: Rows x features.
        names: Name of each column.
        up: Share of the error budget of each column for more of it being paid.
        down: The same for less of it being paid.
        presence: Whether a column is zero or one.
    """

    matrix: sparse.csr_matrix
    names: list[str]
    up: F64
    down: F64
    presence: NDArray[np.bool_]


def build(
    rows: Sequence[Row],
    texts: Sequence[str],
    group: I64,
    *,
    extra: Mapping[str, Callable[[Row], Any]],
    phrases: bool,
    conjunctions: bool,
    longest: int,
    support: float,
    at_most: int,
    budget: Mapping[str, float] = BUDGET.value,
    cohesion: float = COHESION.value,
    more_share: float = MORE_SHARE.value,
    conjunction_parts: int = CONJUNCTION_PARTS.value,
) -> Design:
    """Return the design matrix; nothing in it depends on the rewards.

    Args:
        rows: Rows of tasks with at least two rows.
        texts: The `answer_text` of each.
        group: Task of each row.
        extra: Further features by name; a feature may return a number or a mapping of names to numbers.
        phrases: Whether phrases are features.
        conjunctions: Whether pairs of features are features.
        longest: Words of the longest phrase.
        support: Least within-task sum of squares of a phrase or conjunction.
        at_most: Phrases kept at most.
        budget: Share of the error budget of each group of features, relative.
        cohesion: Share of its parts' occurrences from which a phrase is a fixed wording.
        more_share: Share of a feature's budget for more of it being paid.
        conjunction_parts: Presence features that are paired.
    """
    named, names = _named(rows, texts, extra)
    alive = np.flatnonzero(total_spread(named, group) > 1e-9)
    named, names = sparse.csr_matrix(named[:, alive]), [names[i] for i in alive.tolist()]
    parts, labels = [named], list(names)
    shares = [_named_shares(names, named, group, budget)]
    if phrases and texts:
        found = phrase_matrix(texts, group, longest=longest, support=support, at_most=at_most, cohesion=cohesion)
        parts.append(found.matrix)
        labels += [f"phrase: {w}" for w in found.names]
        shares.append(_phrase_shares(found, budget))
    if conjunctions:
        pairs, pair_names = _conjunctions(
            sparse.csr_matrix(sparse.hstack(parts)), labels, group, support, conjunction_parts
        )
        parts.append(pairs)
        labels += pair_names
        shares.append(np.full(len(pair_names), budget["conjunctions"] / max(1, len(pair_names))))
    matrix = sparse.csr_matrix(sparse.hstack(parts)) if labels else sparse.csr_matrix((len(rows), 0))
    presence = np.array([i >= len(names) or label.startswith(PRESENCE) for i, label in enumerate(labels)], np.bool_)
    more = np.where([label.startswith(EITHER_WAY) for label in labels], 0.5, more_share)
    share = np.concatenate(shares)
    return Design(
        matrix, labels, share * np.where(presence, 1.0, more), share * np.where(presence, 0.0, 1 - more), presence
    )


def _named(
    rows: Sequence[Row], texts: Sequence[str], extra: Mapping[str, Callable[[Row], Any]]
) -> tuple[sparse.csr_matrix, list[str]]:
    at: dict[str, list[int]] = {}
    values: dict[str, list[float]] = {}
    for position, (row, text) in enumerate(zip(rows, texts, strict=True)):
        found = row_features(row, text)
        for name, feature in extra.items():
            result = feature(row)
            if isinstance(result, Mapping) and "value" not in result:
                found |= {f"plugin.{name}.{key}": float(v) for key, v in result.items() if v is not None}
            else:
                value = result["value"] if isinstance(result, Mapping) else result
                if value is not None:
                    found[f"plugin.{name}"] = float(value)
        for name, value in found.items():
            if value or name.startswith(("markers.", "plugin.")):
                at.setdefault(name, []).append(position)
                values.setdefault(name, []).append(value)
    columns = []
    for name, places in at.items():
        if name.startswith(("markers.", "plugin.")) and len(places) < len(rows):
            # A marker that does not apply says nothing: such rows get the column's mean, not 0.
            dense = np.full(len(rows), np.mean(values[name]))
            dense[places] = values[name]
            columns.append(sparse.csc_matrix(dense[:, None]))
        else:
            zeros = np.zeros(len(places), np.int64)
            columns.append(sparse.csc_matrix((values[name], (places, zeros)), shape=(len(rows), 1)))
    if not columns:
        return sparse.csr_matrix((len(rows), 0)), []
    return sparse.csr_matrix(sparse.hstack(columns)), list(at)


def _named_shares(names: Sequence[str], named: sparse.csr_matrix, group: I64, budget: Mapping[str, float]) -> F64:
    """Return the share of each named feature: its part of its group's, and of what its near-copies have.

    Near-copies are found or missed together, so sharing costs nothing, while splitting would.
    """
    groups = [next((g for g in GROUPS if name.startswith(f"{g}.")), "plugin") for name in names]
    own = np.array([budget[g] / groups.count(g) for g in groups], np.float64)
    return np.asarray(shared_variance(named, group) @ own, np.float64) if names else own


def _phrase_shares(found: Phrases, budget: Mapping[str, float]) -> F64:
    """Return the share of each phrase: that of its class, in proportion to how much it varies within tasks."""
    out = np.zeros(len(found.names))
    for kind, name in enumerate(CLASSES):
        members = found.kind == kind
        weight = np.sqrt(found.spread) if name == "fixed" else found.spread
        out[members] = budget[name] * weight[members] / max(weight[members].sum(), 1e-300)
    return out


def _conjunctions(
    matrix: sparse.csr_matrix, labels: Sequence[str], group: I64, support: float, parts: int
) -> tuple[sparse.csr_matrix, list[str]]:
    """Return products of the pairs of the zero-one features that vary most within tasks."""
    flags = [i for i, name in enumerate(labels) if name.startswith((*PRESENCE, "phrase: "))]
    if len(flags) < 2:
        return sparse.csr_matrix((matrix.shape[0], 0)), []
    binary = sparse.csr_matrix((matrix[:, flags] > 0).astype(np.float64))
    chosen = sorted(np.argsort(-total_spread(binary, group), kind="stable")[:parts].tolist())
    first, second = (list(side) for side in zip(*combinations(chosen, 2), strict=True))
    joined = sparse.csr_matrix(binary[:, first].multiply(binary[:, second]))
    keep = np.flatnonzero(total_spread(joined, group) >= support)
    names = [f"{labels[flags[first[i]]]} AND {labels[flags[second[i]]]}" for i in keep.tolist()]
    return sparse.csr_matrix(joined[:, keep]), names
