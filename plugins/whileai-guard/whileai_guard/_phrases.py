"""Phrases as features: runs of one to four words, as a sparse matrix, without a vocabulary in memory.

Words are hashed by the tokenizer of this package. Only phrases that vary within tasks are kept, phrases that stand
in exactly the same rows are one feature (its longest wording names it), and everything is chosen without looking at
the rewards. A fixed wording is a phrase that holds together: its parts hardly stand without it, as "carefully verified"
in "as carefully verified above". Hacks are fixed wordings; chance runs of frequent words are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whileai_guard._overlap import Store
from whileai_guard._tokens import gram_hashes, mix, original_offsets
from whileai_guard.defaults import UNSPACED_FACTOR

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

CLASSES = ("words", "loose", "fixed")
"""Classes of phrases: single words, runs that come about by chance, fixed wordings."""


@dataclass(frozen=True)
class Phrases:
    """Phrases of many texts.

    Attributes:
        matrix: Rows x phrases, zeros and ones.
        names: The wording of each.
        spread: Within-task sum of squares of each.
        kind: Place of each in `CLASSES`.
    """

    matrix: sparse.csr_matrix
    names: list[str]
    spread: F64
    kind: I64


@dataclass(frozen=True)
class _Level:
    """Runs of one length: one entry per row and run, ordered by run, then row."""

    width: int
    row: I64
    heads: I64
    keys: U64
    first: I64
    occurrences: I64

    @property
    def rows(self) -> I64:
        return np.diff(np.append(self.heads, len(self.row)))


def phrase_matrix(
    texts: Sequence[str], group: I64, *, longest: int, support: float, at_most: int, cohesion: float
) -> Phrases:
    """Return the phrases of some texts as features.

    Args:
        texts: One text per row.
        group: Task of each row, as 0..n-1.
        longest: Words of the longest phrase; twice as many characters of a script without spaces.
        support: Least within-task sum of squares of a phrase.
        at_most: Phrases kept at most.
        cohesion: Share of a part's occurrences inside the phrase from which it is a fixed wording.
    """
    store = Store(texts)
    doc = np.repeat(np.arange(len(texts)), store.lengths)
    sizes = np.bincount(group, minlength=int(group.max()) + 1 if len(group) else 0).astype(np.float64)
    if store.unspaced.sum() * 2 > len(store.unspaced):
        longest *= UNSPACED_FACTOR.value  # a token is one character there
    levels: list[_Level] = []
    kinds: list[I64] = []
    grams: list[U64] = []
    for n in range(1, longest + 1):
        grams.append(gram_hashes(store.tokens, n))
        levels.append(_level(grams[-1], doc, n, support))
        whole = _cohesion(levels[-1], levels[-2], grams[-2]) if n > 1 else np.zeros(0)
        kinds.append(1 + (whole >= cohesion) if n > 1 else np.zeros(len(levels[-1].keys), np.int64))
    n_columns = np.cumsum([0, *(len(level.keys) for level in levels)])
    row = np.concatenate([level.row for level in levels])
    column = np.concatenate(
        [np.repeat(np.arange(len(lv.keys)), lv.rows) + base for lv, base in zip(levels, n_columns, strict=False)]
    )
    spread = _spread(row, column, group, sizes, int(n_columns[-1]))
    width = np.repeat([level.width for level in levels], np.diff(n_columns))
    first = np.concatenate([level.first for level in levels])
    same = _column_hash(row, column, len(spread))
    chosen = _choose(spread, same, width, support, at_most)
    kind = _best_of_same(same, np.concatenate(kinds))
    new = np.full(len(spread), -1, np.int64)
    new[chosen] = np.arange(len(chosen))
    keep = new[column] >= 0
    matrix = sparse.csr_matrix(
        (np.ones(int(keep.sum())), (row[keep], new[column[keep]])), shape=(len(texts), len(chosen))
    )
    names = [_wording(texts, store, doc, int(first[c]), int(width[c])) for c in chosen.tolist()]
    return Phrases(matrix, names, spread[chosen], kind[chosen])


def _level(grams: U64, doc: I64, n: int, support: float) -> _Level:
    """Return the runs of `n` words that stand in at least `support` rows."""
    at = np.flatnonzero(doc[: len(grams)] == doc[n - 1 :]) if len(grams) else np.zeros(0, np.int64)
    at = at[_frequent(grams[at], support)]
    at = at[np.argsort(grams[at], kind="stable")]  # stable: rows ascend within a run
    key, row = grams[at], doc[at]
    fresh = np.ones(len(at), np.bool_)
    fresh[1:] = (key[1:] != key[:-1]) | (row[1:] != row[:-1])
    heads = _heads(key)
    occurrences = np.diff(np.append(heads, len(key)))
    at, key, row = at[fresh], key[fresh], row[fresh]
    heads = _heads(key)
    counts = np.diff(np.append(heads, len(key)))
    often = counts >= support
    keep = np.repeat(often, counts)
    at, key, row = at[keep], key[keep], row[keep]
    heads = _heads(key)
    return _Level(n, row, heads, key[heads], at[heads], occurrences[often])


def _heads(key: U64) -> I64:
    return np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, np.int64)


def _frequent(key: U64, support: float) -> NDArray[np.bool_]:
    """Return which keys may occur `support` times; buckets are shared, so this keeps too many, never too few."""
    bits = min(22, max(10, len(key).bit_length() + 1))
    bucket = (key >> np.uint64(64 - bits)).astype(np.int64)
    return np.asarray((np.bincount(bucket, minlength=1 << bits) >= support)[bucket])


def _cohesion(level: _Level, parts: _Level, part_grams: U64) -> F64:
    """Return for each run: how often it occurs, over how often its two parts that are one word shorter do.

    The more frequent part decides, so that a chance word before a fixed wording makes no new one; of two words, which
    may be frequent by themselves, the rarer ("in conclusion").
    """
    # A run's part is at least as frequent, so it is among the parts.
    left, right = (parts.occurrences[np.searchsorted(parts.keys, part_grams[level.first + i])] for i in (0, 1))
    return np.asarray(level.occurrences / (np.minimum(left, right) if level.width == 2 else np.maximum(left, right)))


def _spread(row: I64, column: I64, group: I64, sizes: F64, n_columns: int) -> F64:
    """Return the within-task sum of squares of each zero-one column: sum over tasks of c - c^2 / n."""
    if not len(row):
        return np.zeros(n_columns)
    code = np.sort(column * len(sizes) + group[row])
    heads = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    count = np.diff(np.append(heads, len(code))).astype(np.float64)
    task, col = code[heads] % len(sizes), code[heads] // len(sizes)
    spread = np.bincount(col, weights=count - count * count / sizes[task], minlength=n_columns)
    return np.asarray(spread, np.float64)


def _column_hash(row: I64, column: I64, n_columns: int) -> U64:
    out = np.zeros(n_columns, np.uint64)
    if len(row):
        with np.errstate(over="ignore"):
            heads = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
            out[:] = np.add.reduceat(mix(row.astype(np.uint64)), heads)
    return out


def _best_of_same(same: U64, kind: I64) -> I64:
    """Return for each column the highest class among those that stand in the same rows."""
    _, group = np.unique(same, return_inverse=True)
    best = np.zeros(len(kind), np.int64)
    np.maximum.at(best, group, kind)
    return best[group]


def _choose(spread: F64, same: U64, width: I64, support: float, at_most: int) -> I64:
    """Return the columns to keep: enough spread, the longest of equal ones, the widest spread first."""
    enough = np.flatnonzero(spread >= support)
    order = enough[np.lexsort((-width[enough], same[enough]))]
    order = order[np.append(True, same[order][1:] != same[order][:-1])] if len(order) else order
    ranked = order[np.lexsort((order, -spread[order]))][:at_most]
    return np.sort(ranked)


def _wording(texts: Sequence[str], store: Store, doc: I64, first: int, width: int) -> str:
    text = texts[int(doc[first])]
    start, end = int(store.places[first]), int(store.ends[first + width - 1])
    if not text.isascii():
        places = original_offsets(text)
        start, end = places[start], places[end - 1] + 1
    return " ".join(text[start:end].split())
