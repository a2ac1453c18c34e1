"""Text to token hashes, vectorised: one pass of numpy over code points for thousands of texts.

Normalisation first: compatibility forms (full-width letters, ligatures), case, accents, zero-width characters and
LaTeX spacing do not make a difference. A token is a run of letters and digits, one character of a script that
writes no spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese), or a mathematical operator. Other punctuation
separates tokens and is not one, so that re-punctuated copies match; in `code` mode every symbol is a token.
A decimal point belongs to its number, a thousands comma vanishes.

It does not split words by grammar and knows no language. Offsets refer to the text that was given.

Example:
    >>> block = tokenize(["Find  $ x $ with \\\\,x^2=9", "find $x$ with x^2 = 9"])
    >>> bool(block.doc_hash[0] == block.doc_hash[1])
    True
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

SEPARATOR, WORD, IGNORED, UNSPACED, OPERATOR, WEAK = range(6)
"""Classes of characters. WEAK symbols (`- * / !` and the like) are operators only beside digits or operands."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
_OPERATORS = "+=<>^%×÷±√≤≥≠≈∞"
_WEAK = "-*/!&|~−–"
_UNSPACED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # CJK ideographs
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_DROPPED_MARKS = (
    (0x0300, 0x036F),  # Latin, Greek and Cyrillic accents
    (0x0591, 0x05C7),  # Hebrew points
    (0x0610, 0x061A),
    (0x0640, 0x0640),  # Arabic tatweel
    (0x064B, 0x065F),  # Arabic vowel signs
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
)
_APOSTROPHES = (0x27, 0x2019, 0x2BC)
_LATEX_SPACE = re.compile(r"\\(?:[,;:! ]|quad\b|qquad\b|left\b|right\b|displaystyle\b|thinspace\b)|~(?=[$\\])")
_SENTENCE_ENDS = ".!?:\n\"'“”‘’«»()[]*#>"


def _class_of(point: int) -> int:
    if any(low <= point <= high for low, high in _DROPPED_MARKS):
        return IGNORED
    if any(low <= point <= high for low, high in _UNSPACED_RANGES):
        char = chr(point)
        return UNSPACED if unicodedata.category(char)[0] in "LMN" else SEPARATOR
    char = chr(point)
    if char in _OPERATORS:
        return OPERATOR
    if char in _WEAK:
        return WEAK
    category = unicodedata.category(char)
    if category[0] in "LNM" or char == "_":
        return WORD
    if category == "Cf" or 0xFE00 <= point <= 0xFE0F:
        return IGNORED
    return OPERATOR if category == "Sm" else SEPARATOR


def _fold_of(point: int) -> int:
    folded = chr(point).casefold()
    return ord(folded) if len(folded) == 1 else point


# One table answers all questions about a character: class in the low three bits, then flags.
_DIGIT, _UPPER, _APOSTROPHE, _ENDS_SENTENCE = 8, 16, 32, 64


@dataclass(frozen=True)
class _Tables:
    info: NDArray[np.uint8]
    hashed: U64
    hashed_code: U64


def _info_of(point: int) -> int:
    char = chr(point)
    flags = _DIGIT * char.isdigit() | _UPPER * char.isupper()
    flags |= _APOSTROPHE * (point in _APOSTROPHES) | _ENDS_SENTENCE * (char in _SENTENCE_ENDS or point == 0)
    return _class_of(point) | flags


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    points = range(0x10000)
    folded = np.fromiter((_fold_of(p) for p in points), np.uint64, 0x10000)
    return _Tables(
        np.fromiter((_info_of(p) for p in points), np.uint8, 0x10000),
        mix(folded),
        mix(np.arange(0x10000, dtype=np.uint64)),
    )


def _look_up(points: NDArray[Any], code: bool) -> tuple[NDArray[np.uint8], U64]:
    tables = _tables()
    hashed = tables.hashed_code if code else tables.hashed
    if points.dtype == np.uint8:
        return tables.info[points], hashed[points]
    low = np.minimum(points, 0xFFFF)
    info, value = tables.info[low], hashed[low]
    for place in np.flatnonzero(points > 0xFFFF).tolist():
        point = int(points[place])
        info[place] = _info_of(point)
        value[place] = mix(np.array([point if code else _fold_of(point)], np.uint64))[0]
    return info, value


@lru_cache(maxsize=4)
def _powers(length: int) -> tuple[U64, U64]:
    with np.errstate(over="ignore"):
        up = np.full(length, _BASE, np.uint64)
        down = np.full(length, _INVERSE, np.uint64)
        up[0] = down[0] = 1
        return np.cumprod(up, dtype=np.uint64), np.cumprod(down, dtype=np.uint64)


def powers(length: int) -> tuple[U64, U64]:
    """Return the powers of the hash base and of its inverse modulo 2**64, at least `length` of each."""
    size = 1 << max(16, (length - 1).bit_length())
    return _powers(size)


def mix(values: U64) -> U64:
    """Return a bijective scramble of 64-bit values (the finaliser of splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = values + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class TokenBlock:
    """Tokens of many texts, in order.

    Attributes:
        tokens: Hash of each token.
        places: First character of each token, counted over all texts of the block.
        ends: One past its last character, likewise.
        number: Whether the token is a number.
        capital: Whether it begins with a capital and is longer than one letter.
        initial: Whether it stands at the start of a sentence.
        unspaced: Whether it is a character of a script without spaces.
        offsets: Tokens of text `i` are `offsets[i]` to `offsets[i + 1]`.
        doc_starts: First character of each text, counted over all texts of the block.
        doc_hash: Hash of the whole token sequence of each text; 0 for a text without tokens.
    """

    tokens: U64
    places: I64
    ends: I64
    number: BOOL
    capital: BOOL
    initial: BOOL
    unspaced: BOOL
    offsets: I64
    doc_starts: I64
    doc_hash: U64

    @property
    def lengths(self) -> I64:
        """Number of tokens of each text."""
        return np.diff(self.offsets)


def decompose(text: str) -> str:
    """Return the text in compatibility decomposition, LaTeX spacing blanked; case is kept."""
    if "\\" in text or "~" in text:
        text = _LATEX_SPACE.sub(lambda m: " " * len(m.group(0)), text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text.replace("ß", "ss"))


def original_offsets(text: str) -> list[int]:
    """Return, for each character of `decompose(text)`, the position in `text` that it came from; plus the end."""
    places: list[int] = []
    for position, char in enumerate(text):
        size = 1 if char.isascii() else len(unicodedata.normalize("NFKD", "ss" if char == "ß" else char))
        places += [position] * size
    return [*places, len(text)]


def tokenize(texts: Sequence[str], *, code: bool = False) -> TokenBlock:
    """Tokenise and hash texts.

    Args:
        texts: Any number of texts; split very large sets into blocks to bound memory (about 60 bytes per character).
        code: Keep every symbol as a token, and case as it is.
    """
    plain = [decompose(t) for t in texts]
    sizes = np.array([len(p) + 1 for p in plain], dtype=np.int64)
    joined = "\x00".join(plain) + "\x00" if plain else ""
    points: NDArray[Any]
    if joined.isascii():
        points = np.frombuffer(joined.encode("ascii"), np.uint8)
    else:
        points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    return _tokens_of(points, np.cumsum(sizes) - sizes, code)


def _shifted(values: BOOL, shift: int) -> BOOL:
    out = np.zeros(len(values), np.bool_)
    if shift > 0:
        out[:-shift] = values[shift:]
    else:
        out[-shift:] = values[:shift]
    return out


def _weak_symbols(kind: NDArray[np.uint8], points: NDArray[Any], digit: BOOL, weak: I64) -> None:
    """Decide in place which weak symbols are operators."""
    last = len(points) - 1
    left, right = np.maximum(weak - 1, 0), np.minimum(weak + 1, last)
    left2 = np.where(points[left] == 32, np.maximum(weak - 2, 0), left)
    right2 = np.where(points[right] == 32, np.minimum(weak + 2, last), right)

    def closes(at: I64) -> BOOL:
        return np.asarray(digit[at] | (points[at] == 41) | (points[at] == 93))

    def opens(at: I64) -> BOOL:
        return np.asarray(digit[at] | (points[at] == 40) | (points[at] == 91))

    def operand(at: I64) -> BOOL:
        return np.asarray((kind[at] == WORD) | (kind[at] == OPERATOR))

    numbers = closes(left2) & opens(right2)
    sign = digit[right] & (kind[left] != WORD)
    glued = operand(left) & operand(right)
    hyphen = (points[weak] == 45) | (points[weak] == 0x2013)
    bang = points[weak] == 33
    real = np.where(bang, closes(left), np.where(hyphen, numbers | sign, numbers | glued))
    kind[weak] = np.where(real, OPERATOR, SEPARATOR)


def _marks(kind: NDArray[np.uint8], points: NDArray[Any], info: NDArray[np.uint8]) -> None:
    """Decide in place which marks join: decimal points, thousands commas, apostrophes, weak symbols."""
    digit = (info & _DIGIT) != 0
    weak = np.flatnonzero(kind == WEAK)
    if len(weak):
        _weak_symbols(kind, points, digit, weak)
    inner = np.flatnonzero((points == 44) | (points == 46))
    inner = inner[(inner > 0) & (inner < len(points) - 1)]
    inner = inner[digit[inner - 1] & digit[inner + 1]]
    if len(inner):
        dots = points[inner] == 46
        kind[inner[dots]] = WORD
        comma = inner[~dots]
        wide = np.concatenate([digit, np.zeros(5, np.bool_)])
        kind[comma[wide[comma + 2] & wide[comma + 3] & ~wide[comma + 4]]] = IGNORED
    mark = np.flatnonzero(info & _APOSTROPHE)
    mark = mark[(mark > 0) & (mark < len(points) - 1)]
    kind[mark[(kind[mark - 1] == WORD) & (kind[mark + 1] == WORD)]] = IGNORED


def _tokens_of(points: NDArray[Any], doc_starts: I64, code: bool) -> TokenBlock:
    info, value = _look_up(points, code)
    kind = np.asarray(info & 7, np.uint8)
    if code:
        kind[((kind == SEPARATOR) & (points > 32) & (points < 127)) | (kind == WEAK)] = OPERATOR
    else:
        _marks(kind, points, info)
    place = None
    if (kind == IGNORED).any():
        place = np.flatnonzero(kind != IGNORED)
        kind, value, info = kind[place], value[place], info[place]
        points = points[place]
    word = kind == WORD
    single = kind >= UNSPACED
    begins = np.flatnonzero((word & ~_shifted(word, -1)) | single)
    ends = np.flatnonzero((word & ~_shifted(word, 1)) | single) + 1
    up, down = powers(len(value) + 1)
    with np.errstate(over="ignore"):
        total = np.zeros(len(value) + 1, np.uint64)
        np.cumsum(value * up[: len(value)], out=total[1:])
        tokens = mix((total[ends] - total[begins]) * down[begins])
    size = ends - begins
    number = _numbers(info, begins, ends)
    capital = ((info[begins] & _UPPER) != 0) & (size > 1)
    initial = np.zeros(len(begins), np.bool_)
    if capital.any():
        at = np.flatnonzero(capital)
        initial[at] = _sentence_initial(points, info, begins[at])
    where = begins if place is None else place[begins]
    stop = ends if place is None else place[ends - 1] + 1
    offsets = np.append(np.searchsorted(where, doc_starts), len(where)).astype(np.int64)
    return TokenBlock(
        tokens=tokens,
        places=where,
        ends=stop,
        number=number,
        capital=capital,
        initial=initial,
        unspaced=kind[begins] == UNSPACED,
        offsets=offsets,
        doc_starts=doc_starts,
        doc_hash=sequence_hash(tokens, offsets),
    )


def _numbers(info: NDArray[np.uint8], begins: I64, ends: I64) -> BOOL:
    """Return which tokens are numbers: they begin with a digit and at least two thirds of them are digits."""
    number = np.asarray((info[begins] & _DIGIT) != 0)
    at = np.flatnonzero(number)
    if len(at):
        digits = np.concatenate([[0], np.cumsum((info & _DIGIT) != 0, dtype=np.int64)])
        number[at] = (digits[ends[at]] - digits[begins[at]]) * 3 >= 2 * (ends[at] - begins[at])
    return number


def _sentence_initial(points: NDArray[Any], info: NDArray[np.uint8], begins: I64) -> BOOL:
    """Return which tokens follow a sentence end, looking over at most two spaces."""
    before = np.maximum(begins - 1, 0)
    for _ in range(2):
        before = np.where(points[before] == 32, np.maximum(before - 1, 0), before)
    return np.asarray(((info[before] & _ENDS_SENTENCE) != 0) | (begins == 0))


def sequence_hash(tokens: U64, offsets: I64) -> U64:
    """Return the hash of each run of tokens `offsets[i]:offsets[i + 1]`; an empty run hashes to 0."""
    up, down = powers(len(tokens) + 1)
    with np.errstate(over="ignore"):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(tokens * up[: len(tokens)], dtype=np.uint64)])
        raw = (total[offsets[1:]] - total[offsets[:-1]]) * down[np.minimum(offsets[:-1], len(down) - 1)]
        hashed = mix(raw ^ mix(np.diff(offsets).astype(np.uint64)))
    hashed[np.diff(offsets) == 0] = 0
    return hashed


def gram_hashes(tokens: U64, n: int) -> U64:
    """Return the hash of every run of `n` tokens, regardless of text borders (`len(tokens) - n + 1` values)."""
    count = len(tokens) - n + 1
    if count <= 0:
        return np.zeros(0, np.uint64)
    with np.errstate(over="ignore"):
        out = tokens[:count].copy()
        for shift in range(1, n):
            out *= _BASE
            out += tokens[shift : shift + count]
        return mix(out)
