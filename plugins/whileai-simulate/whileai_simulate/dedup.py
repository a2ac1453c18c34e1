"""Near-duplicates among asks: word n-gram Jaccard similarity, exact, at a cost that grows with the number of asks.

Two asks are near-duplicates when the Jaccard similarity of their word n-grams reaches the threshold. Two sets of at
most n shingles that similar differ in at most `d = 2 n (1 - t) / (1 + t)` shingles. With the shingles dealt to more
than d buckets by their hash, one bucket at least is the same in both (PartEnum: Arasu, Ganti, Kaushik 2006), so asks
that share no bucket need no look. A bucket of several shingles is rarely shared by chance, as a single one would be.
The number of buckets is the next power of two, so that most sets are dealt once, whatever the size of the other.

The near ones are looked for among the last asks that were kept (`NEAR_WINDOW`), so that the index stays as large as
it is however long the run. Asks with the same words are refused over the whole run: eight bytes remain of each.

Example:
    >>> seen = NearDuplicates(0.5)
    >>> seen.add("please cancel my order now"), seen.add("please cancel my order today")
    (True, False)
"""

from __future__ import annotations

import re
from array import array

from whileai_simulate.defaults import NEAR_DUPLICATE, NEAR_WINDOW, NGRAM

__all__ = ["HashSet", "NearDuplicates", "shingles", "words_in"]

_MASK = (1 << 64) - 1
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORDS = str.maketrans({chr(c): " " for c in range(128) if not chr(c).isalnum()})


def words_in(text: str) -> list[str]:
    """Return the words of a text, lower-case and without punctuation."""
    if text.isascii():  # the same words, at a fifth of the cost
        return text.lower().translate(_ASCII_WORDS).split()
    return _WORD.findall(text.casefold())


def shingles(text: str, n: int = NGRAM.value) -> set[str]:
    """Return the word n-grams of a text, lower-case and without punctuation; one shorter text is one shingle."""
    words = words_in(text)
    if len(words) < n:
        return {" ".join(words)}
    return {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)}


class HashSet:
    """A set of 64-bit hashes in one block of memory: 12 to 24 bytes each, where a `set` takes about 100.

    Open addressing with linear probing; the table doubles when two thirds are taken. 0 marks a free place, so the
    hash 0 counts as 1.

    Example:
        >>> seen = HashSet()
        >>> seen.add(7), seen.add(7), len(seen)
        (True, False, 1)
    """

    __slots__ = ("_count", "_mask", "_table")

    def __init__(self) -> None:
        self._mask, self._count = 1023, 0
        self._table = array("Q", bytes(8 * 1024))

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> bool:
        """Add a hash in [0, 2**64); return whether it was new."""
        value = value or 1
        table, mask = self._table, self._mask
        at = value & mask
        while found := table[at]:
            if found == value:
                return False
            at = (at + 1) & mask
        table[at] = value
        self._count += 1
        if 3 * self._count > 2 * mask:
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._table
        mask = self._mask = 2 * self._mask + 1
        table = self._table = array("Q", bytes(8 * (mask + 1)))
        for value in old:
            if value:
                at = value & mask
                while table[at]:
                    at = (at + 1) & mask
                table[at] = value


class NearDuplicates:
    """A growing set of texts that refuses near-duplicates.

    Args:
        threshold: Jaccard similarity from which two texts are near-duplicates, in (0, 1].
        n: Words per shingle.
        window: Texts that a new one is compared with: the last so many that were added. The same words are refused
            however long ago they were added.

    Attributes:
        compared: Texts in the window.
        indexed: Buckets in the index; at most a few per text of the window.
    """

    def __init__(
        self, threshold: float = NEAR_DUPLICATE.value, n: int = NGRAM.value, window: int = NEAR_WINDOW.value
    ) -> None:
        self.threshold, self.n, self.window = threshold, n, window
        self._spread = 2 * (1 - threshold) / (1 + threshold)
        self._same = HashSet()
        # Most buckets are those of one text: its number stands alone, which takes a third of a list.
        self._index: dict[int, int | list[int]] = {}
        # Shingles and buckets of a text, at its number modulo the window.
        self._sets: list[tuple[array[int], tuple[int, ...]]] = []
        self._levels: dict[int, list[int]] = {}
        self._count = 0

    @property
    def compared(self) -> int:
        """Texts in the window."""
        return len(self._sets)

    @property
    def indexed(self) -> int:
        """Buckets in the index."""
        return len(self._index)

    def add(self, text: str) -> bool:
        """Add a text unless it is a near-duplicate of an earlier one; return whether it was added."""
        words = words_in(text)
        grams = self._grams(words)
        size, threshold, sets, index = len(grams), self.threshold, self._sets, self._index
        keys = self._keys(grams)
        candidates: set[int] = set()
        for key in keys:
            found = index.get(key)
            if found is not None:
                candidates.update((found,) if type(found) is int else found)  # type: ignore[arg-type]
        for other in candidates:
            mine = sets[other][0]
            shared = len(grams.intersection(mine))
            if shared >= threshold * (len(mine) + size - shared) - 1e-9:
                return False
        if not self._same.add(hash(tuple(words)) & _MASK):
            return False
        self._keep(grams, keys)
        return True

    def note(self, text: str) -> None:
        """Refuse a text from now on, word for word; it takes no place in the window."""
        self._same.add(hash(tuple(words_in(text))) & _MASK)

    def _keep(self, grams: set[int], keys: tuple[int, ...]) -> None:
        """Take a text into the window; the oldest one leaves a full window."""
        place, index = self._count % self.window, self._index
        self._count += 1
        kept = array("q", grams), keys  # a set of 20 numbers takes ten times the room
        if place == len(self._sets):
            self._sets.append(kept)
        else:
            self._drop(place)
            self._sets[place] = kept
        for key in keys:
            found = index.get(key)
            if found is None:
                index[key] = place
            elif type(found) is list:
                found.append(place)
            else:
                index[key] = [found, place]  # type: ignore[list-item]

    def _drop(self, place: int) -> None:
        index = self._index
        for key in self._sets[place][1]:
            found = index.get(key)
            if type(found) is list:
                found.remove(place)
                if len(found) == 1:
                    index[key] = found[0]
            elif found is not None:
                del index[key]

    def _keys(self, grams: set[int]) -> tuple[int, ...]:
        """Return the hashes of the buckets of a set, for every number of buckets that it may share with another."""
        levels = self._levels.get(len(grams))
        if levels is None:
            levels = self._levels[len(grams)] = self._levels_of(len(grams))
        keys: tuple[int, ...] = ()
        for buckets in levels:
            sums = [(buckets + number) << 64 for number in range(buckets)]  # what tells the buckets apart
            last = buckets - 1
            for gram in grams:
                sums[gram & last] += gram
            keys += tuple(map(hash, sums))
        return keys

    def _levels_of(self, size: int) -> list[int]:
        """Return the powers of two above the differences that sets of this size, or similar to it, may have."""
        largest = int(size / self.threshold + 1e-9)  # no set that similar has more
        fewest, most = (int(self._spread * n + 1e-9).bit_length() for n in (size, largest))
        return [1 << level for level in range(fewest, most + 1)]

    def _grams(self, words: list[str]) -> set[int]:
        """Return the shingles as numbers."""
        # `hash` differs between processes, and the answer does not: it is exact however the shingles are dealt.
        if self.n == 3 and len(words) >= 3:
            return set(map(hash, zip(words, words[1:], words[2:], strict=False)))
        n = min(self.n, len(words))
        return set(map(hash, zip(*(words[i:] for i in range(n)), strict=False))) or {0}
