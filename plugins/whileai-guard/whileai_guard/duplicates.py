"""All-pairs near-duplicates within one set: MinHash and banding to find candidates, exact overlap to decide.

Signatures come from rensa (extra `minhash`). A candidate pair is confirmed by the exact Jaccard similarity of its
word shingles, so there are no false pairs; what banding may miss is told as the expected recall at the threshold
(Broder 1997; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4).

Example:
    >>> texts = ["one two three four five six seven", "One two three, four five six seven!", "something else entirely"]
    >>> near_duplicates(texts).clusters
    ((0, 1),)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_guard._overlap import Store
from whileai_guard._sources import open_items
from whileai_guard._tokens import gram_hashes, mix
from whileai_guard.defaults import DUPLICATE_JACCARD, DUPLICATE_RECALL, MINHASH_PERMUTATIONS, SHINGLE_WORDS
from whileai_kernel.errors import MissingDependencyError, ParameterError

__all__ = ["Duplicates", "near_duplicates"]

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Duplicates:
    """Near-duplicates.

    Attributes:
        pairs: `(first position, second position, Jaccard similarity)` of confirmed pairs; texts that are equal after
            normalisation are paired with the first of them only.
        clusters: Positions that hang together, each cluster and their list ascending.
        n: Items looked at.
        recall: Expected share of pairs at the threshold that banding finds.
        bands: Bands and rows per band.
    """

    pairs: tuple[tuple[int, int, float], ...]
    clusters: tuple[tuple[int, ...], ...]
    n: int
    recall: float
    bands: tuple[int, int]

    @property
    def extra(self) -> tuple[int, ...]:
        """Positions of all but the first of each cluster: what to leave out for one of each."""
        return tuple(sorted(p for cluster in self.clusters for p in cluster[1:]))

    def __str__(self) -> str:
        return (
            f"duplicates: {len(self.extra)} of {self.n} items repeat another, in {len(self.clusters)} clusters | "
            f"expected recall {self.recall:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "n": self.n,
            "pairs": [list(p) for p in self.pairs],
            "clusters": [list(c) for c in self.clusters],
            "recall": self.recall,
            "bands": list(self.bands),
        }

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


def near_duplicates(
    rows: Iterable[Any] | str | Path,
    *,
    fields: Sequence[str] = ("prompt",),
    threshold: float = DUPLICATE_JACCARD.value,
    shingle: int = SHINGLE_WORDS.value,
    permutations: int = MINHASH_PERMUTATIONS.value,
    recall: float = DUPLICATE_RECALL.value,
    seed: int = 0,
) -> Duplicates:
    """Find near-duplicates within one set.

    Args:
        rows: Rows or texts, a dataset, or the path of a JSONL file.
        fields: Fields whose texts are joined and compared.
        threshold: Jaccard similarity of word shingles from which two items are near-duplicates.
        shingle: Words per shingle. Texts that are shorter count as one shingle.
        permutations: Length of the signature.
        recall: Expected recall at the threshold that the bands are chosen for.
        seed: Seed of the signatures.

    Raises:
        MissingDependencyError: rensa is not installed.
        ParameterError: A number is out of range.
    """
    if not 0.0 < threshold <= 1.0 or shingle < 1 or permutations < 16 or not 0.0 < recall < 1.0:
        raise ParameterError("threshold in (0, 1], shingle at least 1, permutations at least 16, recall in (0, 1)")
    texts = ["\n".join(t.text for t in item.texts) for item in open_items(rows, fields)]
    store = Store(texts)
    shingles = _shingles(store, shingle)
    _, first = np.unique(store.doc_hash, return_index=True)
    of_hash = dict(zip(store.doc_hash[first].tolist(), first.tolist(), strict=True))
    pairs: list[tuple[int, int, float]] = []
    for position, value in enumerate(store.doc_hash.tolist()):
        if value and of_hash[value] != position:
            pairs.append((of_hash[value], position, 1.0))
    distinct = np.array(sorted(p for h, p in of_hash.items() if h), np.int64)
    per_band, n_bands, expected = choose_bands(threshold, permutations, recall)
    for a, b in _candidates(shingles, distinct, permutations, per_band, n_bands, seed):
        shared = len(np.intersect1d(shingles[a], shingles[b], assume_unique=True))
        share = shared / (len(shingles[a]) + len(shingles[b]) - shared)
        if share >= threshold:
            pairs.append((a, b, share))
    pairs.sort()
    return Duplicates(tuple(pairs), _clusters(pairs), len(texts), expected, (n_bands, per_band))


def choose_bands(threshold: float, permutations: int, recall: float) -> tuple[int, int, float]:
    """Return rows per band, bands, and the expected recall `1 - (1 - t^r)^b`: the widest bands that reach `recall`.

    Args:
        threshold: Jaccard similarity at which the recall is wanted.
        permutations: Length of the signature.
        recall: Least expected recall.
    """
    best = (1, permutations, 1 - (1 - threshold) ** permutations)
    for rows in range(2, permutations + 1):
        bands = permutations // rows
        found = 1 - (1 - threshold**rows) ** bands
        if found >= recall:
            best = (rows, bands, found)
    return best


def _shingles(store: Store, n: int) -> list[U64]:
    grams = gram_hashes(store.tokens, n)
    found = []
    for begin, end, whole in zip(store.offsets[:-1].tolist(), store.offsets[1:].tolist(), store.doc_hash, strict=True):
        size = end - begin - n + 1
        found.append(np.unique(grams[begin : begin + size]) if size > 0 else np.array([whole], np.uint64))
    return found


def _candidates(
    shingles: Sequence[U64], distinct: I64, permutations: int, per_band: int, n_bands: int, seed: int
) -> set[tuple[int, int]]:
    try:
        import rensa
    except ImportError as err:
        raise MissingDependencyError(
            "near-duplicates need rensa", why=str(err), fix="pip install 'whileai-guard[minhash]'"
        ) from err
    if len(distinct) < 2:
        return set()
    chosen = [shingles[i] for i in distinct.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in chosen])]).astype(np.uint64)
    matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(np.concatenate(chosen), offsets, permutations, seed)
    digests = np.asarray(matrix.to_rows(), np.uint64)
    pairs: set[tuple[int, int]] = set()
    for band in range(n_bands):
        part = digests[:, band * per_band : (band + 1) * per_band]
        key = np.full(len(part), band, np.uint64)
        for column in range(part.shape[1]):
            key = mix(key ^ part[:, column])
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.append(True, key[order][1:] != key[order][:-1]))
        for begin, end in zip(cuts.tolist(), [*cuts[1:].tolist(), len(order)], strict=True):
            if end - begin > 1:
                members = distinct[order[begin:end]].tolist()
                # Members of a bucket are compared with its first and with their neighbour: a chain is one cluster.
                pairs.update((min(a, b), max(a, b)) for a, b in pairwise(members))
                pairs.update((min(members[0], b), max(members[0], b)) for b in members[1:])
    return pairs


def _clusters(pairs: Sequence[tuple[int, int, float]]) -> tuple[tuple[int, ...], ...]:
    parent: dict[int, int] = {}

    def find(item: int) -> int:
        while parent.setdefault(item, item) != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for a, b, _ in pairs:
        low, high = sorted((find(a), find(b)))
        parent[high] = low
    groups: dict[int, list[int]] = {}
    for item in sorted(parent):
        groups.setdefault(find(item), []).append(item)
    return tuple(tuple(g) for g in groups.values())
