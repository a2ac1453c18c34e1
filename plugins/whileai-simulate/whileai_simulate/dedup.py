"""Near-duplicates among asks: word n-gram Jaccard similarity, exact, at a cost that grows with the number of asks.

Two asks are near-duplicates when the Jaccard similarity of their word n-grams reaches the threshold. Candidates
come from prefix filtering (Chaudhuri, Ganti, Kaushik 2006): two sets that similar share one of their first
`(1 - t) * n + 1` shingles in a fixed order. Shingles with digits come first in that order, since ids are rare.

Example:
    >>> seen = NearDuplicates(0.5)
    >>> seen.add("please cancel my order now"), seen.add("please cancel my order today")
    (True, False)
"""

from __future__ import annotations

import math
import re
from array import array

from whileai_simulate.defaults import NEAR_DUPLICATE, NGRAM

__all__ = ["NearDuplicates", "shingles"]

_MASK = (1 << 60) - 1
_PLAIN = 1 << 60
_WORD = re.compile(r"[^\W_]+")


def shingles(text: str, n: int = NGRAM.value) -> set[str]:
    """Return the word n-grams of a text, lower-case and without punctuation; one shorter text is one shingle."""
    words = _WORD.findall(text.casefold())
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
        # Most shingles of a prefix are those of one text: its number stands alone, which takes a third of a list.
        self._index: dict[int, int | list[int]] = {}
        self._sets: list[array[int]] = []

    def add(self, text: str) -> bool:
        """Add a text unless it is a near-duplicate of an earlier one; return whether it was added."""
        grams = self._grams(text)
        ordered = sorted(grams)
        size, threshold, sets, index = len(ordered), self.threshold, self._sets, self._index
        prefix = ordered[: size - math.ceil(threshold * size - 1e-9) + 1]
        # The similarity is at most the ratio of the sizes.
        low, high = threshold * size - 1e-9, size / threshold + 1e-9
        candidates: set[int] = set()
        for gram in prefix:
            found = index.get(gram)
            if found is not None:
                candidates.update((found,) if type(found) is int else found)  # type: ignore[arg-type]
        for other in candidates:
            mine = sets[other]
            if low <= len(mine) <= high:
                shared = len(grams.intersection(mine))
                if shared >= threshold * (len(mine) + size - shared) - 1e-9:
                    return False
        number = len(sets)
        sets.append(array("q", ordered))  # a set of 20 numbers takes ten times the room
        for gram in prefix:
            found = index.get(gram)
            if found is None:
                index[gram] = number
            elif type(found) is list:
                found.append(number)
            else:
                index[gram] = [found, number]  # type: ignore[list-item]
        return True

    def _grams(self, text: str) -> set[int]:
        """Return the shingles as numbers; those with a digit are the smallest."""
        # `hash` differs between processes, and the answer does not: prefix filtering is exact in any fixed order.
        words = _WORD.findall(text.casefold())
        n = min(self.n, len(words))
        if n == 0:
            return {0}
        runs = zip(*(words[i:] for i in range(n)), strict=False)
        # Joined, n words are letters alone exactly when each of them is.
        return {hash(run) & _MASK | (_PLAIN if "".join(run).isalpha() else 0) for run in runs}
