"""The number that a reply states in prose, where nothing marks it: the last one, unless it is only mentioned.

Numbers that count steps, name a section or a time, stand inside a sum, bound something ("at least 5"), or are asked,
denied or guessed are no answer.

Example:
    >>> last_number("3 + 4 = 7 apples"), last_number("3 or 4"), last_number("at least 5")
    ('7', None, None)
"""

from __future__ import annotations

import re

from whileai_verify.doubt import doubtful
from whileai_verify.numbertext import CURRENCY, DECIMAL, DIGITS, SCALE_WORD

__all__ = ["last_number"]

# A number inside prose: not glued to letters, digits or an operator of a larger token.
_TOKEN = re.compile(
    rf"(?<![\w.,^])(?<!\d[:'’])(?:(?<![\d)\]\w]\s)(?<![\d)\]])[-−–])?(?:[{CURRENCY}]\s?)?(?:(?<=[{CURRENCY}])[-−–])?"
    rf"(?:\d+\s+\d+/\d+|{DIGITS}\s?/\s?{DIGITS}|(?:{DECIMAL})(?:[eE][+-]?\d{{1,6}})?)(?:\s?(?:\\?%|percent\b))?"
)
_HEDGE = re.compile(
    r"^[\s*_$`\"')]*(?:,\s*)?(?:or|or maybe|or perhaps|maybe|and|and/or|to|,|&|/|-|–)[\s*_$`\"'(]*"
    r"(?:[A-Za-z]\s{0,3}=[\s$]{0,4})?$",
    re.I,
)
_MENTIONED = re.compile(
    r"\b(?:steps?|equations?|eqs?\.?|parts?|lines?|pages?|sections?|figures?|tables?|problems?|questions?|chapters?"
    r"|cases?|numbered|version)\s{0,3}[(#]?$",
    re.I,
)
_LIST_MARK = re.compile(r"[.)]\s+\S")
_IN_SUM = re.compile(r"(?:[\d)\]}]\s{0,3}\*|[\w)\]}]\s{0,3}(?:[+×·÷^]|\\times|\\cdot|\\div|\\pm|±))\s{0,3}[(]?$")
_BOUND_BEFORE = re.compile(
    r"(?:(?<![\w/\"'])[<>]=?|[≤≥]|\\(?:le|ge|lt|gt)q?|\b(?:(?:more|less|fewer|greater|larger|smaller|bigger|higher|lower)"
    r" than|at least|at most|up to|no more than|no fewer than|a minimum of|a maximum of|between))\s{0,3}[*_$`(]{0,3}$",
    re.I,
)
_BOUND_AFTER = re.compile(
    r"[*_$`)]{0,3}\s{0,3}(?:\+|or (?:more|less|fewer|greater|so|higher|lower)\b|and (?:above|below)\b)", re.I
)
_MINUS_WORD = re.compile(r"(?<!\d)(?<!\d\s)(?<!\w\s)\b(?:minus|negative)\s{1,3}$|\bnegative\s{1,3}$", re.I)
_TAIL = 20_000


def _counts(text: str, token: re.Match[str]) -> bool:
    """Return whether a number only counts or names something: `2.` before a step, "step 3", "section 4"."""
    before = text[max(0, token.start() - 20) : token.start()]
    line = before.rsplit("\n", 1)[-1] if "\n" in before or token.start() <= 20 else "x"
    rest = text[token.start() + len(token.group().rstrip(".")) :]
    return bool(_MENTIONED.search(before) or (not line.strip(" \t>*-_#(") and _LIST_MARK.match(rest.lstrip("*_"))))


def last_number(text: str) -> str | None:
    """Return the last number that a text states, or `None` when it states none, or offers two, or is in doubt."""
    text = text[-_TAIL:]
    tokens = list(_TOKEN.finditer(text))
    while tokens and _counts(text, tokens[-1]):
        tokens.pop()
    if not tokens:
        return None
    last = tokens[-1]
    before, follow = text[max(0, last.start() - 40) : last.start()], text[last.end() :]
    if last.group().startswith("$") and follow.startswith("$"):
        follow = follow[1:]
    if re.search(r"(?:^|\n)[ \t]*>[ \t]+[*_$`(]{0,3}$", before):
        before = ""  # a quoted line, not a bound
    if doubtful(text, last.start(), last.end()) or _BOUND_BEFORE.search(before) or _BOUND_AFTER.match(follow):
        return None
    factorial = follow.startswith("!") and not re.search(r"[^\W\d]", before)  # "It is 7!" is none
    if factorial or _IN_SUM.search(before) or re.match(r":\d|\s{0,3}±", follow):
        return None
    gap = text[tokens[-2].end() : last.start()] if len(tokens) > 1 else "x"
    if _HEDGE.match(gap) or (not gap.strip(" \t") and "\n" not in gap):
        return None
    number = last.group().rstrip(".,") if not follow.startswith("..") else last.group()
    if number.startswith("$") and text[last.end() : last.end() + 1] == "$":
        return number[1:]  # a LaTeX formula, not a sum of money
    if _MINUS_WORD.search(before) and number[0] not in "-−–":
        number = "-" + number
    dots = re.match(r"\.{2,3}|…", follow)
    glued = re.match(r"[A-Za-z_°\\^α-ωΑ-Ω]\w*", follow)
    scale = SCALE_WORD.match(follow)
    return number + (scale.group() if scale else dots.group() if dots else glued.group() if glued else "")
