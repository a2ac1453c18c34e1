"""A marker: how many of the numbers and codes that the reply states did the agent see anywhere?

Order numbers, prices, dates and flight codes in a reply should come from the user or from a tool. One that occurs
nowhere was computed or invented, and the marker cannot tell which: a sum is right and yet unseen. Read it as a
share to watch and as a list to look at, not as a reward.

Example:
    >>> row = {"prompt": "Price of A-17?", "messages": [{"role": "tool", "content": "{'price': 1250.0}"}]}
    >>> FiguresSeen()({**row, "final_text": "A-17 costs 1,250 USD, with tax 1,500."})["value"]
    0.6666666666666666
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from whileai_grounded.defaults import COUNTING_LIMIT, SHOWN_FIGURES
from whileai_grounded.shown import said, shown
from whileai_kernel.protocols import Example

_TOKEN = re.compile(r"[^\W_]+(?:[-.,:/_][^\W_]+)*")
_JOINT = re.compile(r"[-:/_T]")
_TIME = re.compile(r"\d{1,2}(?::\d{2}){1,2}")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def number_form(token: str) -> str | None:
    """One spelling per number: ``1,250.00`` and ``1250`` are both ``1250``; None when it is not a number."""
    if _NUMBER.fullmatch(token) is None:
        return None
    whole, _, fraction = token.replace(",", "").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + fraction if fraction else "")


def form_of(token: str) -> str:
    """One spelling per figure: numbers as above, times without leading zeros, codes in lower case."""
    if _TIME.fullmatch(token):
        return ":".join(part.lstrip("0") or "0" for part in token.split(":"))
    return number_form(token) or token.casefold()


def figures(text: str) -> Iterator[tuple[str, str]]:
    """Numbers and codes with a digit in a text: ``(as written, one spelling)``."""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if any(char.isdigit() for char in token):
            yield token, form_of(token)


def seen_forms(text: str) -> Iterator[str]:
    """The figures of a text and what they hold: of ``2024-05-20`` the year, of ``07:00:00`` the time ``7:0``."""
    for token, form in figures(text):
        yield form
        parts = _JOINT.split(token)
        if len(parts) > 1:
            yield from (form_of(part) for part in parts)
            for time in _TIME.findall(token):
                yield form_of(time)
                yield form_of(":".join(time.split(":")[:2]))


class FiguresSeen:
    """The share of a reply's figures that occur in what the agent was shown; None when the reply has none.

    Args:
        counting_limit: Whole numbers up to this one are left out.
        listed: How many unseen figures the evidence lists.
    """

    examples = (
        Example({"prompt": "Is order A-17 here?", "final_text": "Order A-17 has shipped."}, 1.0),
        Example({"prompt": "Is order A-17 here?", "final_text": "Order A-18 has shipped."}, 0.0),
        Example({"prompt": "Is it here?", "final_text": "Yes, in 2 parts."}, None),
    )

    def __init__(self, counting_limit: int = COUNTING_LIMIT.value, listed: int = SHOWN_FIGURES.value) -> None:
        self.counting_limit, self.listed = counting_limit, listed

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Compare the figures of the reply with those of the row's other texts."""
        stated: dict[str, str] = {}
        for written, form in figures(said(row)):
            if not self._counts(form):
                stated.setdefault(form, written)
        if not stated:
            return {"value": None, "evidence": {"figures": 0}}
        seen = {form for text in shown(row) for form in seen_forms(text)}
        unseen = [written for form, written in stated.items() if form not in seen]
        return {
            "value": (len(stated) - len(unseen)) / len(stated),
            "evidence": {"figures": len(stated), "unseen": unseen[: self.listed]},
        }

    def _counts(self, form: str) -> bool:
        return len(form) < 5 and form.isdecimal() and int(form) <= self.counting_limit
