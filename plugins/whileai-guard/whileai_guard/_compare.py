"""The close look at one training text and one evaluation text: how much is shared, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from whileai_guard._hits import SpanPair
from whileai_guard._overlap import Candidate, Index, Store, coverage
from whileai_guard._tokens import BOOL, I64, gram_hashes, original_offsets, tokenize
from whileai_guard.defaults import TEMPLATE_SHARE

_CODE = re.compile(
    r"^\s*(?:def |class |import |from \w[\w.]* import |return\b|#include|public |private |func |function |const |"
    r"let |var |"
    r"SELECT\b|for ?\(|while ?\(|if ?\()|[;{}]\s*$|^\s*(?:>>>|@\w+)",
    re.MULTILINE,
)


def is_code(text: str) -> bool:
    """Return whether at least a third of the lines look like source code (and at least two do)."""
    lines = sum(1 for line in text.splitlines() if line.strip())
    found = len({text.count("\n", 0, m.start()) for m in _CODE.finditer(text)})
    return found >= 2 and found * 3 >= lines


class Comparer:
    """Compares candidate pairs.

    Args:
        index: The evaluation texts as tokens.
        against: The evaluation texts themselves.
        texts: The training texts that are part of a candidate pair, by number.
        boiler: Which evaluation words are boilerplate.
        share: Share of words for a near hit.
        run: Words per shared run.
        spans: Spans kept per hit.
        template_share: Share of words that must be shared once numbers and names are left out, for a template hit.
    """

    def __init__(
        self,
        index: Index,
        against: Sequence[str],
        texts: Mapping[int, str],
        boiler: BOOL,
        *,
        share: float,
        run: int,
        spans: int,
        template_share: float = TEMPLATE_SHARE.value,
    ) -> None:
        self.index, self.against, self.texts, self.boiler = index, against, texts, boiler
        self.share, self.run, self.spans, self.template_share = share, run, spans, template_share
        self._store = Store(texts.values())
        self._line = {number: line for line, number in enumerate(texts)}
        self._code: dict[int, bool] = {}

    def _is_code(self, own: int) -> bool:
        if own not in self._code:
            self._code[own] = is_code(self.against[own])
        return self._code[own]

    def _range(self, number: int) -> tuple[int, int]:
        line = self._line[number]
        return int(self._store.offsets[line]), int(self._store.offsets[line + 1])

    def compare(self, pair: Candidate) -> tuple[str, float, tuple[SpanPair, ...]] | None:
        """Return `(rule, coverage, spans)` of a near or template hit, or `None`."""
        index, own = self.index, pair.against
        begin, end = int(index.offsets[own]), int(index.offsets[own + 1])
        count = ~self.boiler[begin:end]
        factor = int(index.factor[own])
        if int(count.sum()) < index.n * factor:
            return None  # what is left beside the boilerplate is too short to be evidence
        first, stop = self._range(pair.text)
        slack = (end - begin) // 4 + index.n * factor
        low = max(first, first + pair.low - slack)
        high = min(stop, first + pair.high + (end - begin) + slack)
        run = self.run * factor
        share, covered, partner = coverage(index.tokens[begin:end], self._store.tokens[low:high], run, count)
        bare = share
        if share < 1.0:
            bare, *_ = coverage(index.skeleton[begin:end], self._store.skeleton[low:high], run, count)
        if share < 1.0 and bare >= max(self.share, share) and self._only_names_differ(covered, bare):
            rule = "template"
        elif share >= self.share:
            rule = "near"
        else:
            return None
        if rule == "near" and self._is_code(own) and not self._code_near(pair.text, own):
            return None
        return rule, bare if rule == "template" else share, self._spans(pair.text, own, partner, run, low - first)

    def _only_names_differ(self, covered: BOOL, bare: float) -> bool:
        """Return whether the skeletons agree where the texts do not."""
        return bare >= 1.0 or (bare > float(covered.mean()) and bare >= self.template_share)

    def _code_near(self, number: int, own: int) -> bool:
        mine, theirs = tokenize([self.against[own]], code=True), tokenize([self.texts[number]], code=True)
        run = self.run * 2  # a line of code has about two symbols per word
        share, _, _ = coverage(mine.tokens, theirs.tokens, run, np.ones(len(mine.tokens), np.bool_))
        return share >= self.share

    def same_code(self, number: int, own: int) -> bool:
        """Return whether two texts with equal words are equal as code too; prose always is."""
        return not self._is_code(own) or self._code_near(number, own)

    def whole(self, number: int, own: int) -> tuple[SpanPair, ...]:
        """Return the one span pair of two texts that match as a whole."""
        text, other = self.texts[number], self.against[own]
        return (SpanPair(0, len(text), text, 0, len(other), other),)

    def short(self, number: int, own: int) -> tuple[SpanPair, ...]:
        """Return where a short evaluation text stands inside a training text."""
        begin, end = int(self.index.offsets[own]), int(self.index.offsets[own + 1])
        first, stop = self._range(number)
        size = end - begin
        wanted = gram_hashes(self.index.tokens[begin:end], size)[0]
        at = np.flatnonzero(gram_hashes(self._store.tokens[first:stop], size) == wanted)
        if not len(at):
            return ()
        text, other = self.texts[number], self.against[own]
        a, b = _characters(text, self._store, first, int(at[0]), int(at[0]) + size)
        return (SpanPair(a, b, text[a:b], 0, len(other), other),)

    def _spans(self, number: int, own: int, partner: I64, run: int, low: int) -> tuple[SpanPair, ...]:
        text, other = self.texts[number], self.against[own]
        pairs = []
        longest = sorted(_stretches(partner), key=lambda s: (s[0] - s[1], s[0]))[: self.spans]
        for first, last, at in longest:
            begin = self._range(number)[0]
            a, b = _characters(text, self._store, begin, at + low, at + low + last - first + run)
            c, d = _characters(other, self.index, int(self.index.offsets[own]), first, last + run)
            pairs.append(SpanPair(a, b, text[a:b], c, d, other[c:d]))
        return tuple(pairs)


def _stretches(partner: I64) -> Iterator[tuple[int, int, int]]:
    """Yield `(first, last, place in the other)` of stretches of runs that follow each other in both texts."""
    first = None
    for i, at in enumerate(partner.tolist()):
        follows = first is not None and at >= 0 and at == partner[i - 1] + 1
        if not follows:
            if first is not None:
                yield first, i - 1, int(partner[first])
            first = i if at >= 0 else None
    if first is not None:
        yield first, len(partner) - 1, int(partner[first])


def _characters(text: str, store: Store, begin: int, first: int, stop: int) -> tuple[int, int]:
    """Return the characters of a text that its tokens `first` to `stop` stand for; its tokens begin at `begin`."""
    start, end = int(store.places[begin + first]), int(store.ends[begin + stop - 1])
    if text.isascii():
        return start, end
    places = original_offsets(text)
    return places[start], min(len(text), places[end - 1] + 1)
