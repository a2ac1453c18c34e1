"""What begins and ends does so in this order: a span of dates, a meeting, the bounds of a number.

Example:
    >>> values = {"start_date": "2024-06-09", "end_date": "2024-06-01", "below": 20, "above": 4}
    >>> in_order(values)
    >>> values
    {'start_date': '2024-06-01', 'end_date': '2024-06-09', 'below': 4, 'above': 20}
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

__all__ = ["in_order"]

_DATED = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):)?|\d\d:\d\d")
_SPANS = (("start", "end"), ("check_in", "check_out"), ("checkin", "checkout"), ("from", "to"), ("departure", "return"),
          ("pickup", "return"),
          ("pickup", "dropoff"), ("pick_up", "drop_off"))  # fmt: skip
_BOUNDS = (("min", "max"), ("below", "above"), ("low", "high"), ("lower", "upper"), ("from", "to"), ("start", "end"))


@lru_cache(maxsize=4096)
def _pairs(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names that go together, the first of each pair being what comes first."""
    return tuple(
        (name, other)
        for name in names
        for first, last in dict.fromkeys((*_BOUNDS, *_SPANS))
        if name.startswith(first) and (other := name.replace(first, last, 1)) in names
    )


def in_order(values: dict[str, Any]) -> None:
    """Swap, in place, what is the wrong way round; a meeting ends an hour after its start."""
    for inner in values.values():
        if isinstance(inner, dict):
            in_order(inner)
    for name, other in _pairs(tuple(values)):
        first, last = values[name], values[other]
        if isinstance(first, dict) and isinstance(last, dict):
            for key in first.keys() & last.keys():
                both = {"start": first[key], "end": last[key]}
                if isinstance(first[key], str) and _DATED.match(first[key]) and first[key] > str(last[key]):
                    first[key], last[key] = both["end"], both["start"]
        elif isinstance(first, str) and isinstance(last, str):
            _order_times(values, name, other)
        elif _is_number(first) and _is_number(last) and first >= last:
            values[name], values[other] = (last, first) if first > last else (first, first + 5)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _order_times(values: dict[str, Any], name: str, other: str) -> None:
    first, last = values[name], values[other]
    clock = _DATED.match(first)
    if clock is None:
        return
    if clock[2] and clock[1]:
        values[other] = f"{first[: clock.start(2)]}{int(clock[2]) + 1:02}{first[clock.end(2) :]}"
    elif last < first:
        values[name], values[other] = last, first
    elif last == first and not clock[1]:
        values[other] = f"{int(first[:2]) + 1:02}{first[2:]}"
