"""Features of a rollout that a reward may be gamed by: length, counts, tools, formatting, position, markers.

A feature is a number per row. The named ones are here; phrases come from `_phrases`; a plugin adds its own with
`wai_register_features`. Features look at what the policy wrote and did, never at the reward.

Example:
    >>> row_features({"final_text": "**Yes**\\n- one", "index": 2})["position.index"]
    2.0
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from whileai_guard._text import assistant_turns
from whileai_guard._trajectory import actions

__all__ = ["GROUPS", "PRESENCE", "answer_text", "row_features"]

Row = Mapping[str, Any]

GROUPS = ("length", "counts", "tools", "format", "position", "markers", "plugin")
"""Groups of named features; each has an equal share of the error budget, split over its features."""

PRESENCE = ("format.", "tools.uses.")
"""Features that can only be gamed by having more of them; all others are tested in both directions."""

EITHER_WAY = ("position.", "markers.", "plugin.")
"""Features for which more is no likelier to be gamed than less."""

_SENTENCE = re.compile(r"[.!?。！？]+(?:\s|$)")
_NUMBER = re.compile(r"\d+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)
_HEADING = re.compile(r"^\s*#{1,6}\s+\S", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")
_ANSWER = re.compile(r"<answer>|^\s*(?:final )?answer\s*:", re.IGNORECASE | re.MULTILINE)
_CHOICE = re.compile(
    r"\b(?i:answer|option|choice)(?i:\s+is)?\b\W{0,12}\(?([A-J])\)?(?![A-Za-z'’])|^\W{0,3}([A-J])\W{0,3}$", re.MULTILINE
)
_NAMES_CHOICE = re.compile(r"nswer|ption|hoice|NSWER|PTION|HOICE")


def answer_text(row: Row) -> str:
    """Return everything that the assistant said, turns joined by newlines (reasoning blocks left out)."""
    plain = row.get("final_text")
    if not row.get("messages") and isinstance(plain, str) and "<" not in plain:
        return plain if plain.strip() else ""
    return "\n".join(turn.raw for turn in assistant_turns(row))


def row_features(row: Row, text: str | None = None) -> dict[str, float]:
    """Return the named features of one row.

    Args:
        row: A row; markers that it carries become features.
        text: Its `answer_text`, when it is known.
    """
    text = answer_text(row) if text is None else text
    acts = actions(row) if row.get("messages") else []
    log = math.log1p  # a tenth bullet says less than a first
    found: dict[str, float] = {
        "length.log_chars": log(len(text)),
        "counts.sentences": log(len(_SENTENCE.findall(text))),
        "counts.numbers": log(len(_NUMBER.findall(text))),
        "counts.questions": log(text.count("?") + text.count("？")),
        "counts.exclamations": log(text.count("!") + text.count("！")),
        "tools.calls": log(len(acts)),
        "tools.failures": log(sum(a.failed for a in acts)),
        "format.bullets": log(len(_BULLET.findall(text))) if "\n" in text or not text[:1].isalpha() else 0.0,
        "format.headings": log(len(_HEADING.findall(text))) if "#" in text else 0.0,
        "format.bold": log(len(_BOLD.findall(text))) if "**" in text or "__" in text else 0.0,
        "format.code": float("`" in text),
        "format.table": float("|---" in text or "| ---" in text),
        "format.answer_mark": float(_has_answer_mark(text)),
        "position.index": float(row.get("index") or 0),
        "position.choice": _choice(text),
        "position.turns": log(sum(m.get("role") == "assistant" for m in row.get("messages") or ()) or bool(text)),
    }
    for act in acts:
        found[f"tools.uses.{act.name}"] = 1.0
    for name, value in (row.get("markers") or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            found[f"markers.{name}"] = float(value)
    return found


def _has_answer_mark(text: str) -> bool:
    if "####" in text or "\\boxed" in text:
        return True
    return "nswer" in text.replace("NSWER", "nswer") and _ANSWER.search(text) is not None


def _choice(text: str) -> float:
    """Return the place of the last chosen option letter (A is 1), 0 without one."""
    if "\n" not in text and len(text) > 7 and not _NAMES_CHOICE.search(text):
        return 0.0
    letters = [a or b for a, b in _CHOICE.findall(text)]
    return float(ord(letters[-1]) - 64) if letters else 0.0


def plugin_features(only: Iterable[str] | None = None) -> dict[str, Callable[[Row], Any]]:
    """Return the registered features of all plugins, by full id."""
    from whileai_kernel import entries, make

    wanted = None if only is None else set(only)
    return {
        entry.id: make("features", entry.id)
        for entry in entries("features")
        if wanted is None or entry.id in wanted or entry.name in wanted
    }
