"""Which texts share long runs of words with which evaluation texts: the vectorised core of decontamination.

An `Index` holds the evaluation texts: hashes of whole texts, of their skeletons (numbers and names replaced), and of
every run of words long enough to be evidence. Training texts stream through `Index.scan` in blocks; only hits are
kept. Runs that are frequent on both sides are boilerplate and count for nothing. `Index.candidates` then names the
few pairs that deserve a close look. All of it is exact up to 64-bit hashes; nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whileai_guard._tokens import BOOL, I64, U64, TokenBlock, gram_hashes, mix, sequence_hash, tokenize
from whileai_guard.defaults import (
    BLOCK_CHARS,
    BOILERPLATE_AGAINST_SHARE,
    BOILERPLATE_TEXTS,
    BOILERPLATE_TRAIN_SHARE,
    CANDIDATE_SHARE,
    NEAR_WORDS,
    SHORT_WORDS,
    SHORTER_RUNS,
    UNSPACED_FACTOR,
)

NUMBER = np.uint64(0x6E756D626572)
NAME = np.uint64(0x6E616D65)
_FILTER_BITS = 24


@dataclass(frozen=True)
class Candidate:
    """A pair that deserves a close look.

    Attributes:
        text: Number of the training text.
        against: Number of the evaluation text.
        low: Lowest difference between a shared run's place in the training text and in the evaluation text.
        high: Highest such difference.
    """

    text: int
    against: int
    low: int
    high: int


@dataclass
class _Grams:
    """Runs of one length over a subset of the evaluation texts."""

    n: int
    whole: bool
    keys: U64
    filter: BOOL
    starts: I64
    owner: I64
    place: I64
    hit_key: list[I64] = field(default_factory=list)
    hit_text: list[I64] = field(default_factory=list)
    hit_place: list[I64] = field(default_factory=list)


def blocks(texts: Iterable[str], chars: int = BLOCK_CHARS.value) -> Iterator[list[str]]:
    """Yield the texts in lists of about `chars` characters."""
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text) + 1
        if size >= chars:
            yield block
            block, size = [], 0
    if block:
        yield block


def skeletons(block: TokenBlock) -> U64:
    """Return the tokens with every number and every name replaced by a placeholder.

    A name is a capitalised word inside a sentence, and the same word of the same text at a sentence start. Renaming
    keeps both properties, so two instances of one template have one skeleton.
    """
    tokens = np.where(block.number, NUMBER, block.tokens)
    inner = block.capital & ~block.initial
    if not inner.any():
        return np.asarray(tokens, np.uint64)
    # Where most words begin with a capital (a headline, all caps), capitals name nobody.
    capitals = np.concatenate([[0], np.cumsum(block.capital)])
    shouting = 2 * (capitals[block.offsets[1:]] - capitals[block.offsets[:-1]]) > block.lengths
    inner &= ~np.repeat(shouting, block.lengths)
    doc = np.repeat(np.arange(len(block.offsets) - 1, dtype=np.uint64), block.lengths)
    with np.errstate(over="ignore"):
        key = mix(doc) ^ block.tokens
    name = inner.copy()
    first = np.flatnonzero(block.capital & block.initial & ~np.repeat(shouting, block.lengths))
    if len(first):
        name[first] = np.isin(key[first], key[inner])
    return np.asarray(np.where(name, NAME, tokens), np.uint64)


class Store:
    """Tokens of many texts, tokenised in blocks.

    Args:
        texts: The texts.

    Attributes:
        tokens: Token hashes, all texts joined.
        skeleton: The same with numbers and names replaced.
        places: First character of each token in its own (decomposed) text.
        ends: One past its last character.
        unspaced: Whether the token is a character of a script without spaces.
        offsets: Tokens of text `i` are `offsets[i]` to `offsets[i + 1]`.
        doc_hash: Hash of each whole text.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        parts = [tokenize(block) for block in blocks(texts)] or [tokenize([])]
        starts = [np.repeat(p.doc_starts, p.lengths) for p in parts]
        self.tokens: U64 = np.concatenate([p.tokens for p in parts])
        self.skeleton: U64 = np.concatenate([skeletons(p) for p in parts])
        self.places = np.concatenate([(p.places - s).astype(np.int32) for p, s in zip(parts, starts, strict=True)])
        self.ends = np.concatenate([(p.ends - s).astype(np.int32) for p, s in zip(parts, starts, strict=True)])
        self.unspaced: BOOL = np.concatenate([p.unspaced for p in parts])
        self.lengths: I64 = np.concatenate([p.lengths for p in parts])
        self.offsets: I64 = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.doc_hash: U64 = np.concatenate([p.doc_hash for p in parts])


class Index(Store):
    """Evaluation texts, ready to be compared with.

    Args:
        texts: Evaluation texts.
        n: Consecutive words that make a pair worth a close look.
        short: Least words of a short text that is found inside longer ones.
        unspaced_factor: Characters that weigh as a word in scripts without spaces.
        shorter_runs: Texts of few words are found by runs of their words over this.
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        n: int = NEAR_WORDS.value,
        short: int = SHORT_WORDS.value,
        unspaced_factor: int = UNSPACED_FACTOR.value,
        shorter_runs: int = SHORTER_RUNS.value,
    ) -> None:
        super().__init__(texts)
        self.skeleton_hash = sequence_hash(self.skeleton, self.offsets)
        lengths = self.lengths
        counts = np.concatenate([[0], np.cumsum(self.unspaced)])
        share = (counts[self.offsets[1:]] - counts[self.offsets[:-1]]) / np.maximum(lengths, 1)
        self.factor: I64 = np.where(share > 0.5, unspaced_factor, 1).astype(np.int64)
        self.n, self.short, self.shorter_runs = n, short, shorter_runs
        self.texts_seen = 0
        # Equal evaluation texts are one text: a benchmark that repeats a prompt must not look like boilerplate.
        _, first = np.unique(self.doc_hash, return_index=True)
        self.distinct: BOOL = np.zeros(len(lengths), np.bool_)
        self.distinct[first] = True
        self.distinct &= lengths > 0
        self._exact = _Lookup(self.doc_hash, self.distinct)
        self._template = _Lookup(self.skeleton_hash, self.distinct & self._templated())
        self._grams = list(self._make_grams())
        self.exact_hits: list[tuple[int, int]] = []
        self.template_hits: list[tuple[int, int]] = []

    def _templated(self) -> BOOL:
        """Return which texts have at least one word that is neither a number nor a name."""
        plain = np.concatenate([[0], np.cumsum((self.skeleton != NUMBER) & (self.skeleton != NAME))])
        return np.asarray(plain[self.offsets[1:]] - plain[self.offsets[:-1]] > 0)

    def _make_grams(self) -> Iterator[_Grams]:
        for factor in sorted(set(self.factor[self.distinct].tolist())):
            same = self.distinct & (self.factor == factor)
            long_enough = same & (self.lengths >= self.n * factor)
            # Few words leave few long runs once some are changed, so a text of few words is found by shorter runs.
            words = np.clip(self.lengths // (factor * self.shorter_runs), min(self.short, self.n), self.n)
            for n in sorted(set(words[long_enough].tolist())):
                yield self._gram_group(np.flatnonzero(long_enough & (words == n)), n * factor, False)
            for length in range(self.short * factor, self.n * factor):
                members = np.flatnonzero(same & (self.lengths == length))
                if len(members):
                    yield self._gram_group(members, length, True)

    def _gram_group(self, members: I64, n: int, whole: bool) -> _Grams:
        owner = np.repeat(members, np.maximum(self.lengths[members] - n + 1, 0))
        place = _ranges(np.maximum(self.lengths[members] - n + 1, 0))
        grams = gram_hashes(self.tokens, n)[self.offsets[owner] + place] if len(owner) else np.zeros(0, np.uint64)
        order = np.argsort(grams, kind="stable")
        ordered = grams[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(order) else order
        keys = ordered[starts]
        sieve = np.zeros(1 << _FILTER_BITS, np.bool_)
        sieve[keys >> np.uint64(64 - _FILTER_BITS)] = True
        ends = np.append(starts, len(order)).astype(np.int64)
        return _Grams(n, whole, keys, sieve, ends, owner[order], place[order])

    def scan(self, texts: Sequence[str]) -> None:
        """Compare a block of training texts; they are numbered in the order in which they come."""
        block = tokenize(texts)
        base = self.texts_seen
        self.texts_seen += len(texts)
        self.exact_hits += self._exact.find(block.doc_hash, base)
        self.template_hits += self._template.find(sequence_hash(skeletons(block), block.offsets), base)
        for group in self._grams:
            _scan_grams(group, block, base)

    def candidates(
        self,
        *,
        candidate_share: float = CANDIDATE_SHARE.value,
        boilerplate_texts: int = BOILERPLATE_TEXTS.value,
        against_share: float = BOILERPLATE_AGAINST_SHARE.value,
        train_share: float = BOILERPLATE_TRAIN_SHARE.value,
    ) -> tuple[list[Candidate], list[tuple[int, int]], BOOL]:
        """Return pairs to compare closely, short texts found whole, and which evaluation words are boilerplate.

        Args:
            candidate_share: Least share of an evaluation text's words in shared runs.
            boilerplate_texts: Least distinct texts on each side for boilerplate.
            against_share: Least share of the evaluation texts for boilerplate.
            train_share: Least share of the training texts for boilerplate.
        """
        least_against = max(boilerplate_texts, int(np.ceil(against_share * self.distinct.sum())))
        least_train = max(boilerplate_texts, int(np.ceil(train_share * self.texts_seen)))
        boiler = np.zeros(len(self.tokens), np.bool_)
        pairs: list[Candidate] = []
        short: list[tuple[int, int]] = []
        for group in self._grams:
            if not group.hit_key:
                continue
            key = np.concatenate(group.hit_key)
            text = np.concatenate(group.hit_text)
            place = np.concatenate(group.hit_place)
            frequent = self._boilerplate(group, key, text, least_against, least_train)
            for k in np.flatnonzero(frequent).tolist():
                for at in range(group.starts[k], group.starts[k + 1]):
                    begin = self.offsets[group.owner[at]] + group.place[at]
                    boiler[begin : begin + group.n] = True
            keep = ~frequent[key]
            found = self._join(group, key[keep], text[keep], place[keep])
            if group.whole:
                short += sorted(set(zip(found[0].tolist(), found[1].tolist(), strict=True)))
            else:
                pairs += self._pairs(group.n, *found, boiler, candidate_share)
        return pairs, short, boiler

    @staticmethod
    def _boilerplate(group: _Grams, key: I64, text: I64, least_against: int, least_train: int) -> BOOL:
        n_keys = len(group.keys)
        in_train = _distinct_per_key(key, text, n_keys)
        in_against = _distinct_per_key(np.repeat(np.arange(n_keys), np.diff(group.starts)), group.owner, n_keys)
        return np.asarray((in_against >= least_against) & (in_train >= least_train))

    @staticmethod
    def _join(group: _Grams, key: I64, text: I64, place: I64) -> tuple[I64, I64, I64, I64]:
        """Return text, evaluation text, place in each, for every shared run."""
        many = group.starts[key + 1] - group.starts[key]
        at = np.repeat(group.starts[key], many) + _ranges(many)
        return np.repeat(text, many), group.owner[at], np.repeat(place, many), group.place[at]

    def _pairs(
        self, n: int, text: I64, owner: I64, place: I64, own_place: I64, boiler: BOOL, candidate_share: float
    ) -> list[Candidate]:
        if not len(text):
            return []
        width = len(self.lengths)
        code = text * width + owner
        order = np.lexsort((own_place, code))
        code, place, own_place = code[order], place[order], own_place[order]
        first = np.concatenate([[True], code[1:] != code[:-1]])
        # Words of the evaluation text in shared runs: each run adds what the one before it did not cover.
        step = np.diff(own_place, prepend=0)
        added = np.where(first, n, np.minimum(step, n))
        heads = np.flatnonzero(first)
        covered = np.add.reduceat(added, heads)
        shift = place - own_place
        low, high = np.minimum.reduceat(shift, heads), np.maximum.reduceat(shift, heads)
        against = (code[heads] % width).astype(np.int64)
        common = np.concatenate([[0], np.cumsum(boiler)])
        rest = self.lengths[against] - (common[self.offsets[against + 1]] - common[self.offsets[against]])
        good = np.flatnonzero(covered >= candidate_share * np.maximum(rest, 1))
        return [
            Candidate(int(code[heads[i]] // width), int(against[i]), int(low[i]), int(high[i])) for i in good.tolist()
        ]


def _distinct_per_key(key: I64, value: I64, n_keys: int) -> I64:
    """Return how many distinct values each key comes with."""
    width = int(value.max()) + 1 if len(value) else 1
    code = np.sort(key * width + value)  # a sort is several times faster here than np.unique, which hashes
    code = code[np.append(True, code[1:] != code[:-1])] if len(code) else code
    return np.bincount(code // width, minlength=n_keys).astype(np.int64)


class _Lookup:
    """Sorted hashes of whole texts, with the first text of each."""

    def __init__(self, hashes: U64, use: BOOL) -> None:
        members = np.flatnonzero(use)
        self.keys, first = np.unique(hashes[members], return_index=True)
        self.owner: I64 = members[first]

    def find(self, hashes: U64, base: int) -> list[tuple[int, int]]:
        """Return `(text number, evaluation text)` for each hash that is known."""
        if not len(self.keys):
            return []
        at = np.minimum(np.searchsorted(self.keys, hashes), len(self.keys) - 1)
        hit = np.flatnonzero((self.keys[at] == hashes) & (hashes != 0))
        return [(base + i, int(self.owner[at[i]])) for i in hit.tolist()]


def _scan_grams(group: _Grams, block: TokenBlock, base: int) -> None:
    if not len(group.keys):
        return
    grams = gram_hashes(block.tokens, group.n)
    maybe = np.flatnonzero(group.filter[grams >> np.uint64(64 - _FILTER_BITS)])
    if not len(maybe):
        return
    value = grams[maybe]
    at = np.minimum(np.searchsorted(group.keys, value), len(group.keys) - 1)
    real = group.keys[at] == value
    maybe, at = maybe[real], at[real]
    text = np.searchsorted(block.offsets, maybe, side="right") - 1
    inside = maybe + group.n <= block.offsets[text + 1]
    maybe, at, text = maybe[inside], at[inside], text[inside]
    if len(maybe):
        group.hit_key.append(at.astype(np.int64))
        group.hit_text.append((text + base).astype(np.int64))
        group.hit_place.append((maybe - block.offsets[text]).astype(np.int64))


def _ranges(counts: I64) -> I64:
    """Return `0..c-1` for each count, joined."""
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


def coverage(own: U64, other: U64, run: int, count: BOOL) -> tuple[float, BOOL, NDArray[np.int64]]:
    """Return how much of `own` stands in runs of `run` tokens that `other` has too.

    Args:
        own: Tokens of the evaluation text.
        other: Tokens of the training text, or of the window of it that matters.
        run: Tokens per run, at most the length of `own`.
        count: Which tokens of `own` count (boilerplate does not).

    Returns:
        The share of counted tokens that are covered (in a shared run, or equal at the place that a shared run beside
        them points to), which tokens are covered, and for each run of `own` the place of
        the same run in `other` (-1 where there is none).
    """
    run = max(1, min(run, len(own)))
    mine, theirs = gram_hashes(own, run), gram_hashes(other, run)
    covered = np.zeros(len(own), np.bool_)
    partner = np.full(len(mine), -1, np.int64)
    if len(theirs) and len(mine):
        order = np.argsort(theirs, kind="stable")
        at = np.minimum(np.searchsorted(theirs[order], mine), len(theirs) - 1)
        same = theirs[order][at] == mine
        partner[same] = order[at[same]]
        for shift in range(run):
            covered[shift : shift + len(mine)] |= same
    _fill(own, other, covered, partner)
    total = int(count.sum())
    return (float((covered & count).sum() / total) if total else 0.0), covered, partner


def _fill(own: U64, other: U64, covered: BOOL, partner: I64) -> None:
    """Cover in place tokens between shared runs that line up with one of them: one changed word hides no neighbours."""
    starts = np.flatnonzero(partner >= 0)
    if not len(starts) or not len(other):
        return
    at = np.flatnonzero(~covered)
    before = np.searchsorted(starts, at, side="right") - 1
    for beside in (np.maximum(before, 0), np.minimum(before + 1, len(starts) - 1)):
        place = at + partner[starts[beside]] - starts[beside]
        inside = (place >= 0) & (place < len(other))
        equal = inside & (other[np.clip(place, 0, len(other) - 1)] == own[at])
        covered[at[equal]] = True
