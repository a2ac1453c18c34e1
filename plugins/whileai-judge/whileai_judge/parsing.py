r"""Read the verdict that a model judge gave, or say that it cannot be read.

A judge's reply is text with three kinds of traps: reasoning that names a verdict it then drops, quotations of the
graded text, which may hold a verdict of its own, and verdicts that are none (``n/a``, ``7`` on a scale to 5,
``PASS or FAIL``). The rules, in order:

1. Reasoning is dropped; a reply whose reasoning never ends said nothing.
2. Quoted text is not the judge's own: what stands between quotation marks or backticks on one line, and lines that
   start with ``>``.
3. The last declaration decides: a JSON object with one of the keys, or ``VERDICT: ...`` (``marker``). If that last
   one cannot be read, the verdict cannot be read; an earlier one is a draft.
4. Without a declaration, a reply (or its last line) that is nothing but a label or a number counts.

Unreadable is ``None``, and never a fail.

Example:
    >>> parse_verdict("I wanted to say VERDICT: PASS.\nVERDICT: FAIL", ["PASS", "FAIL"])
    'FAIL'
    >>> parse_score('{"score": 7}', (1, 5)) is None
    True
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from whileai_judge.defaults import JSON_ATTEMPTS, REPLY_CHARACTERS
from whileai_kernel.messages import spoken_text

VERDICT_KEYS = ("verdict", "label", "decision", "judgement", "judgment", "answer")
SCORE_KEYS = ("score", "rating", "grade", "reward", "verdict")

_WORDS = "verdict|rating|score|grade|decision|judge?ment|label"
_DECORATION = " \t*_`#\"'()[]{}.,;:!~-"
_QUOTED = re.compile(r"\"[^\"\n]*(?:\"|$)|\u201c[^\u201d\n]*(?:\u201d|$)|`[^`\n]*`", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*(\d+(?:\.\d+)?)|\s*(%))?")


def own_words(text: str) -> str:
    """What the judge said itself: no reasoning, no quotations. Quoted characters become blanks, lines stay."""
    spoken = spoken_text(text)[-REPLY_CHARACTERS.value :]
    without = _QUOTED_LINE.sub(_blank, spoken)
    return _QUOTED.sub(_blank, without)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def parse_verdict(text: str | None, labels: Sequence[str], *, marker: str | None = None) -> str | None:
    """The label that the judge decided for.

    Args:
        text: The judge's reply.
        labels: The labels that were asked for.
        marker: The word before the verdict, for example ``VERDICT 5f3a``; by default any of verdict, rating,
            score, grade, decision, judgment, label.

    Returns:
        One of ``labels``, or None when the reply cannot be read.
    """
    said = _last_said(text or "", VERDICT_KEYS, marker)
    if said is not None:
        return _label_of(said, labels)
    alone = _alone(text or "")
    return next((found for part in alone if (found := _label_of(part, labels, whole=True)) is not None), None)


def parse_score(
    text: str | None, scale: tuple[float, float] = (0.0, 1.0), *, marker: str | None = None
) -> float | None:
    """The number that the judge decided for, on its own scale.

    Args:
        text: The judge's reply.
        scale: Least and largest score.
        marker: As for :func:`parse_verdict`.

    Returns:
        A number within ``scale`` (map it with :func:`scaled`), or None when the reply cannot be read.
    """
    said = _last_said(text or "", SCORE_KEYS, marker)
    if said is not None:
        return _number_of(said, scale)
    alone = _alone(text or "")
    return next((found for part in alone if (found := _number_of(part, scale)) is not None), None)


def scaled(value: float, scale: tuple[float, float]) -> float:
    """A score on ``scale`` as a reward in [0, 1]."""
    low, high = scale
    return (value - low) / (high - low)


def parse_object(text: str | None) -> dict[str, Any] | None:
    """The last JSON object that a reply holds outside its reasoning, or None."""
    found = list(_objects(spoken_text(text or "")[-REPLY_CHARACTERS.value :]))
    return found[-1][1] if found else None


def _last_said(text: str, keys: Sequence[str], marker: str | None) -> Any:
    """The value of the last declaration: a JSON value, or the rest of a line; None when nothing is declared."""
    spoken = spoken_text(text)[-REPLY_CHARACTERS.value :]
    said: list[tuple[int, Any]] = []
    taken: list[tuple[int, int]] = []
    if marker is None:
        for (start, end), value in _objects(spoken):
            key = next((key for key in keys if key in value), None)
            if key is not None:
                said.append((start, value[key]))
                taken.append((start, end))
    word = re.escape(marker) if marker is not None else rf"\b(?:{_WORDS})"
    pattern = re.compile(rf"{word}\b[*_ \t]*(?::|=|\bis\b)[*_ \t]*([^\n]*)", re.IGNORECASE)
    for match in pattern.finditer(own_words(text)):
        if not any(start <= match.start() < end for start, end in taken):
            said.append((match.start(), match.group(1)))
    return max(said, key=lambda item: item[0])[1] if said else None


def _objects(text: str) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """JSON objects at the top level of a text, with where they stand; one with a repeated key is left out."""
    decoder = json.JSONDecoder(object_pairs_hook=_unrepeated)
    position, attempts = text.find("{"), 0
    while position >= 0 and attempts < JSON_ATTEMPTS.value:
        attempts += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        yield (position, end), value
        position = text.find("{", end)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object, with a key that was given two values held by None: neither of the two can be meant."""
    value: dict[str, Any] = {}
    for key, item in pairs:
        folded = key.strip().casefold()
        value[folded] = item if value.get(folded, item) == item else None
    return value


def _label_of(said: Any, labels: Sequence[str], *, whole: bool = False) -> str | None:
    """The label that a value is, or starts with; None when it names another one too."""
    if not isinstance(said, str):
        return None
    value = said.strip().strip(_DECORATION).casefold()
    for label in sorted(labels, key=len, reverse=True):
        folded = label.casefold()
        if value == folded:
            return label
        if whole or not value.startswith(folded):
            continue
        rest = value[len(folded) :]
        if rest[0].isalnum() or (len(folded) == 1 and rest[0] == " "):
            continue
        others = (other.casefold() for other in labels if other != label)
        if rest[0] in "/|" or any(re.search(rf"\b{re.escape(other)}\b", rest) for other in others):
            return None
        return label
    return None


def _number_of(said: Any, scale: tuple[float, float]) -> float | None:
    """The number that a value is, within the scale; ``4/5`` needs the scale's own end, ``80%`` one of 1 or 100."""
    low, high = scale
    if isinstance(said, bool):
        return None
    if isinstance(said, int | float):
        number = float(said)
    elif isinstance(said, str):
        match = _NUMBER.fullmatch(said.strip().strip(" \t*_`\"'()[].,;!"))
        if match is None:
            return None
        number = float(match.group(1))
        if match.group(2) is not None and float(match.group(2)) != high:
            return None
        if match.group(3) is not None:
            number = number / 100 if high == 1 else number if high == 100 else math.nan
    else:
        return None
    return number if math.isfinite(number) and low <= number <= high else None


def _alone(text: str) -> list[str]:
    """The reply and its last line, for replies that are nothing but the verdict."""
    own = own_words(text).strip()
    lines = [line for line in own.splitlines() if line.strip()]
    return [own, lines[-1]] if lines else []
