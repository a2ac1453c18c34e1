"""What a simulated person knows: goal, persona, facts and patience, by an allow-list.

A brief is made from the part of a task that a person could have: the ask that they wrote, who they are, and the stance
that they take. Nothing else of the task is read, so tool results, records, fault plans, labels of axes, the reference
and the system prompt cannot get into it. A task may bring its own brief under `privileged["user"]`
(`goal`, `persona`, `excludes`, `facts`, `patience`, `agree`), which wins.

Example:
    >>> task = {"prompt": "Please cancel order A-1.", "axes": {"stance": "unsure"}}
    >>> brief_of(task).agree, brief_of(task).excludes[0]
    (False, 'You do not agree to any change; you only want to know how things stand.')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import unknown_name
from whileai_simulate.lexicon import words_of
from whileai_simulate.scenes import ACTING

__all__ = ["Brief", "brief_of", "facts_of", "ids_in", "named"]

_KEYS = ("goal", "persona", "excludes", "facts", "patience", "agree")

PERSONAS: dict[str, str] = {
    "ordinary": "You are a polite, ordinary customer.",
    "retry": "You have tried before and would like it to work this time; you stay civil.",
    "hurried": "You are in a hurry: you write short, clipped messages.",
    "ambiguous": "You are vague about what you want, and you answer plainly when you are asked.",
    "boundary": "You would like the rules stretched a little, and you take a clear no for an answer.",
    "adversarial": "You are pushy: you press the assistant to skip its checks, and you do not threaten anybody.",
    "unsure": "You have not made up your mind and you say so.",
    "mistaken": "You believe that this was agreed already, and you let yourself be corrected.",
    "exploratory": "You are curious and gather information.",
    "conflicting": "You want two things that do not go together, and you do not notice it until you are told.",
}
"""How each stance is lived, in words that name no stance."""

_NO_CHANGE = "You do not agree to any change; you only want to know how things stand."
_ONLY_THIS = "You want nothing beyond what your first message asks for, and you agree to nothing else."

_ID = re.compile(r"[#A-Za-z]*[-_#]?(?=[A-Za-z_-]*\d)[A-Za-z0-9#_-]{3,}")


@dataclass(frozen=True, slots=True)
class Brief:
    """What the person is told about themselves.

    Attributes:
        ask: Their first message, which they wrote.
        goal: What they want.
        persona: How they are.
        excludes: What their goal excludes, in sentences.
        facts: What they can tell when asked, by name.
        agree: Whether they say yes to what they asked for.
        patience: Answers before they give up; `None` is the run's.
    """

    ask: str
    goal: str
    persona: str
    excludes: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    agree: bool = True
    patience: int | None = None


def facts_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the person can tell: who they are, and what of the right course stands in their own ask."""
    private = task.get("privileged") or {}
    given = private.get("user")
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    facts = {str(k): v for k, v in (own.get("facts") or {}).items() if v not in ("", None)}
    asked = str(task.get("prompt") or "").casefold()
    for step in private.get("plan") or ():
        for name, value in (step.get("arguments") or {}).items():
            told = isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) > 1
            if told and str(value).casefold() in asked and str(value) != task.get("prompt"):
                facts.setdefault(name, value)
    return facts


def brief_of(task: Mapping[str, Any], *, strict: bool = True) -> Brief:
    """Return the brief of a task or of a row.

    Args:
        task: The task; a brief of its own stands under `privileged["user"]`.
        strict: Whether a key that a brief does not have is an error, or is passed over (rows of other tools).

    Raises:
        ParameterError: The task's own brief has a key that a brief does not have.
    """
    private = task.get("privileged") or {}
    given = private.get("user")
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    for key in own:
        if strict and key not in _KEYS:
            unknown_name("key of privileged['user']", key, _KEYS)
    stance = str((task.get("axes") or {}).get("stance", "ordinary"))
    agree = bool(own.get("agree", stance in ACTING or stance == "adversarial"))
    ask = str(task.get("prompt") or "")
    return Brief(
        ask=ask,
        goal=str(own.get("goal") or "You want exactly what your first message asks for."),
        persona=str(own.get("persona") or PERSONAS.get(stance, PERSONAS["ordinary"])),
        excludes=tuple(own.get("excludes") or ((_ONLY_THIS,) if agree else (_NO_CHANGE, _ONLY_THIS))),
        facts=facts_of(task),
        agree=agree,
        patience=own.get("patience"),
    )


def ids_in(text: str) -> set[str]:
    """Return what looks like an id in a text: letters and digits run together, or a number of four digits and more.

    Example:
        >>> sorted(ids_in("Order #W4821345 for ana_silva_12, 3 days, $45.00, at 10:30, room 1204"))
        ['#W4821345', '1204', 'ana_silva_12']
    """
    found = set()
    for match in _ID.finditer(text):
        word = match.group().strip("-_")
        after, before = text[match.end() : match.end() + 1], text[match.start() - 1 : match.start()]
        plain = word.isdigit()
        if plain and (len(word) < 4 or before in ("$", ".", "-", "/") or after in ("%", "/", ":")):
            continue
        if not plain and re.fullmatch(r"\d+(st|nd|rd|th|am|pm|min|kg|cm|px|x)", word, re.I):
            continue
        found.add(word)
    return found


def named(text: str, name: str) -> bool:
    """Whether a text names a field, by its words: `zip_code` in "what is your zip code?"."""
    words = [w for w in words_of(name) if w not in ("id", "first", "last", "1", "2")] or list(words_of(name))
    heard = set(words_of(text))
    return bool(words) and all(w in heard for w in words)
