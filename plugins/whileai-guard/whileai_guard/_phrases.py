"""Phrases as features: runs of one to four words, as a sparse matrix, without a vocabulary in memory.

Words are hashed by the tokenizer of this package. Only phrases that vary within tasks are kept, phrases that stand
in exactly the same rows are one feature (its longest wording names it), and everything is chosen without looking at
the rewards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whileai_guard._overlap import Store
from whileai_guard._tokens import gram_hashes, mix, original_offsets

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def phrase_matrix(
    texts: Sequence[str], group: I64, *, longest: int, support: float, at_most: int
) -> tuple[sparse.csr_matrix, list[str], I64]:
    """Return a rows x phrases matrix of zeros and ones, the wording of each phrase, and its number of words.

    Args:
        texts: One text per row.
        group: Task of each row, as 0..n-1.
        longest: Words of the longest phrase.
        support: Least within-task sum of squares of a phrase.
        at_most: Phrases kept at most.
    """
    store = Store(texts)
    doc = np.repeat(np.arange(len(texts)), store.lengths)
    sizes = np.bincount(group, minlength=int(group.max()) + 1 if len(group) else 0).astype(np.float64)
    rows_of: list[I64] = []
    keys: list[NDArray[np.uint64]] = []
    firsts: list[I64] = []
    widths: list[I64] = []
    for n in range(1, longest + 1):
        grams = gram_hashes(store.tokens, n)
        if not len(grams):
            continue
        at = np.flatnonzero(doc[: len(grams)] == doc[n - 1 :])
        row, key, first = _distinct(doc[at], grams[at] ^ np.uint64(n), at)
        row, key, first = _frequent(row, key, first, support)
        rows_of.append(row)
        keys.append(key)
        firsts.append(first)
        widths.append(np.full(len(row), n, np.int64))
    if not rows_of:
        return sparse.csr_matrix((len(texts), 0)), [], np.zeros(0, np.int64)
    row, key = np.concatenate(rows_of), np.concatenate(keys)
    first, width = np.concatenate(firsts), np.concatenate(widths)
    order = np.lexsort((row, key))
    row, key, first, width = row[order], key[order], first[order], width[order]
    heads = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, np.int64)
    column = np.cumsum(np.append(True, key[1:] != key[:-1])) - 1 if len(key) else np.zeros(0, np.int64)
    spread = _spread(row, column, group, sizes, len(heads))
    same = _column_hash(row, column, len(heads))
    chosen = _choose(spread, same, width[heads], support, at_most)
    new = np.full(len(heads), -1, np.int64)
    new[chosen] = np.arange(len(chosen))
    keep = new[column] >= 0
    matrix = sparse.csr_matrix(
        (np.ones(int(keep.sum())), (row[keep], new[column[keep]])), shape=(len(texts), len(chosen))
    )
    names = [_wording(texts, store, doc, int(first[heads[c]]), int(width[heads[c]])) for c in chosen.tolist()]
    return matrix, names, width[heads][chosen]


def _distinct(row: I64, key: NDArray[np.uint64], at: I64) -> tuple[I64, NDArray[np.uint64], I64]:
    """Return one entry per row and key, with the first place."""
    with np.errstate(over="ignore"):
        code = mix(row.astype(np.uint64)) ^ key
    order = np.argsort(code, kind="stable")
    code = code[order]
    first = order[np.append(True, code[1:] != code[:-1])] if len(code) else order
    return row[first], key[first], at[first]


def _frequent(row: I64, key: NDArray[np.uint64], first: I64, support: float) -> tuple[I64, NDArray[np.uint64], I64]:
    """Leave out keys in fewer than `support` rows: they cannot vary enough."""
    bits = 22
    bucket = key >> np.uint64(64 - bits)
    counts = np.bincount(bucket.astype(np.int64), minlength=1 << bits)
    keep = counts[bucket.astype(np.int64)] >= support  # buckets are shared, so this keeps too many, never too few
    return row[keep], key[keep], first[keep]


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


def _column_hash(row: I64, column: I64, n_columns: int) -> NDArray[np.uint64]:
    out = np.zeros(n_columns, np.uint64)
    if len(row):
        with np.errstate(over="ignore"):
            heads = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
            out[:] = np.add.reduceat(mix(row.astype(np.uint64)), heads)
    return out


def _choose(spread: F64, same: NDArray[np.uint64], width: I64, support: float, at_most: int) -> I64:
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
