"""Near-duplicates among asks: word n-gram Jaccard similarity, exact, at a cost that grows with the number of asks.

Two asks are near-duplicates when the Jaccard similarity of their word n-grams reaches the threshold. Two sets of at
most n shingles that similar differ in at most `d = 2 n (1 - t) / (1 + t)` shingles. With the shingles dealt to d + 1
buckets by their hash, one bucket at least is the same in both (PartEnum: Arasu, Ganti, Kaushik 2006), so asks that
share no bucket need no look. A bucket of several shingles is rarely shared by chance, as a single one would be.

Example:
    >>> seen = NearDuplicates(0.5)
    >>> seen.add("please cancel my order now"), seen.add("please cancel my order today")
    (True, False)
"""

from __future__ import annotations

import re
from array import array

from whileai_simulate.defaults import NEAR_DUPLICATE, NGRAM

__all__ = ["NearDuplicates", "shingles", "words_in"]

_MASK = (1 << 62) - 1
_WORD = re.compile(r"[^\W_]+")


def words_in(text: str) -> list[str]:
    """Return the words of a text, lower-case and without punctuation."""
    return _WORD.findall(text.casefold())


def shingles(text: str, n: int = NGRAM.value) -> set[str]:
    """Return the word n-grams of a text, lower-case and without punctuation; one shorter text is one shingle."""
    words = words_in(text)
    if len(words) < n:
        return {" ".join(words)}
    return {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)}


class NearDuplicates:
    """A growing set of texts that refuses near-duplicates.

    Args:
        threshold: Jaccard similarity from which two texts are near-duplicates, in (0, 1].
        n: Words per shingle.
    """

    def __init__(self, threshold: float = NEAR_DUPLICATE.value, n: int = NGRAM.value) -> None:
        self.threshold, self.n = threshold, n
        self._spread = 2 * (1 - threshold) / (1 + threshold)
        # Most buckets are those of one text: its number stands alone, which takes a third of a list.
        self._index: dict[int, int | list[int]] = {}
        self._sets: list[array[int]] = []

    def add(self, text: str) -> bool:
        """Add a text unless it is a near-duplicate of an earlier one; return whether it was added."""
        grams = self._grams(text)
        size, threshold, sets, index = len(grams), self.threshold, self._sets, self._index
        keys = self._keys(grams)
        candidates: set[int] = set()
        for key in keys:
            found = index.get(key)
            if found is not None:
                candidates.update((found,) if type(found) is int else found)  # type: ignore[arg-type]
        for other in candidates:
            mine = sets[other]
            shared = len(grams.intersection(mine))
            if shared >= threshold * (len(mine) + size - shared) - 1e-9:
                return False
        number = len(sets)
        sets.append(array("q", grams))  # a set of 20 numbers takes ten times the room
        for key in keys:
            found = index.get(key)
            if found is None:
                index[key] = number
            elif type(found) is list:
                found.append(number)
            else:
                index[key] = [found, number]  # type: ignore[list-item]
        return True

    def _keys(self, grams: set[int]) -> list[int]:
        """Return the hashes of the buckets of a set, for every number of buckets that it may share with another."""
        largest = int(len(grams) / self.threshold + 1e-9)  # no set that similar has more
        fewest, most = (int(self._spread * size + 1e-9) + 1 for size in (len(grams), largest))
        keys = []
        for buckets in range(fewest, most + 1):
            sums = [0] * buckets
            for gram in grams:
                sums[gram % buckets] += gram
            keys += [hash((buckets, number, total)) for number, total in enumerate(sums)]
        return keys

    def _grams(self, text: str) -> set[int]:
        """Return the shingles as numbers."""
        # `hash` differs between processes, and the answer does not: it is exact however the shingles are dealt.
        words = _WORD.findall(text.casefold())
        n = min(self.n, len(words))
        return {hash(run) & _MASK for run in zip(*(words[i:] for i in range(n)), strict=False)} or {0}
