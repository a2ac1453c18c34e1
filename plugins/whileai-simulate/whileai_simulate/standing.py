"""How a record stands: unknown or half changed, what a change sets on it, and whether a search means it.

Example:
    >>> set_fields({"start": "09:00"}, {"new_start": "10:00"}), is_partial({"pending_steps": ["confirmation"]})
    ({'start': '10:00'}, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_simulate.encoding import encode
from whileai_simulate.lexicon import words_of

__all__ = ["UNKNOWN_NOTE", "has_values", "is_partial", "is_unknown", "meant_by", "partly", "searches", "set_fields"]

_COMING = frozenset({"new", "to", "updated"})
UNKNOWN_NOTE = "not confirmed by the back office yet"
"""Stands on a record whose state nobody can confirm."""


def is_unknown(record: Mapping[str, Any]) -> bool:
    """Whether nobody can confirm the state of a record."""
    return record.get("status") == "unknown" or record.get("note") == UNKNOWN_NOTE


def is_partial(record: Mapping[str, Any]) -> bool:
    """Whether a change of a record was begun and not finished."""
    return "pending_steps" in record


def set_fields(record: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what arguments of a change set on a record: `new_start` sets `start`, where the record has one.

    Args:
        record: The record before the change.
        arguments: Arguments of the call without the one that names the record.
    """
    return {_field_of(record, name, arguments): value for name, value in arguments.items()}


def _field_of(record: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
    """Return the field that an argument sets; where the old value is an argument too, the new one stays by its name."""
    words = words_of(name)
    if name in record or len(words) < 2 or words[0] not in _COMING:
        return name
    rest = words[1:]
    return next((f for f in record if words_of(f) == rest and f not in arguments), name)


def partly(done: str | None) -> str:
    """Return the status of a half-finished change."""
    return f"partly {done or 'updated'}"


def has_values(record: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a record has the values of a change already, under the names of the arguments or of its fields."""
    return all(record.get(k) == v for k, v in new.items()) or all(
        record.get(k) == v for k, v in set_fields(record, new).items()
    )


def meant_by(record: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a search argument fits a record; arguments that no field carries match as text anywhere."""
    if name in record:
        own = record[name]
        if isinstance(own, str) and isinstance(value, str):
            return own.casefold() == value.casefold()
        return bool(own == value)
    if isinstance(value, str) and searches(name):
        return value.casefold() in encode(record).casefold()
    return True


def searches(name: str) -> bool:
    """Whether an argument of this name looks for a text anywhere in a record."""
    return any(w in ("query", "keyword", "keywords", "search", "text") for w in words_of(name))
