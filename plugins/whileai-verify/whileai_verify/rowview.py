"""What a verifier reads from a row, and what it returns.

The reply is what the model *said*: the text after its last closed reasoning block. The reference comes from
`privileged.reference` or from another dotted field. Nothing here changes a row, and nothing puts the reference
into a reason or into evidence.

Example:
    >>> reference_of({"privileged": {"reference": "42"}}, "privileged.reference")
    '42'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import final_text_of, split_reasoning

__all__ = [
    "MISSING",
    "Verdict",
    "check_options",
    "lookup",
    "no_reference",
    "not_scored",
    "raw_reply_of",
    "reference_of",
    "reply_of",
    "verdict",
]

Verdict = dict[str, Any]
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING", "__bool__": lambda self: False})()

_PATH = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")


def lookup(value: Any, path: str) -> Any:
    """Return the value at a dotted path such as `privileged.orders[0].id`, or `MISSING`.

    Args:
        value: A mapping or a list.
        path: Keys separated by dots, list positions in brackets. A key that holds a dot is tried first as it is.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for key, position in _PATH.findall(path):
        if position:
            if not isinstance(value, list) or not -len(value) <= int(position) < len(value):
                return MISSING
            value = value[int(position)]
        else:
            if not isinstance(value, Mapping) or key not in value:
                return MISSING
            value = value[key]
    return value


def reference_of(row: Mapping[str, Any], field: str) -> Any:
    """Return the reference of a row, or `MISSING` when the field is absent or null."""
    found = lookup(row, field)
    return MISSING if found is None else found


def raw_reply_of(row: Mapping[str, Any]) -> str:
    """Return the final text with its reasoning block, or `""` when there is none."""
    text = row.get("final_text")
    if text is None:
        messages = row.get("messages")
        text = final_text_of(messages) if messages else None
    return text if isinstance(text, str) else ""


def reply_of(row: Mapping[str, Any]) -> str:
    """Return what the model said: the text after the last closed reasoning block, `""` when there is none.

    An unfinished reasoning block is not a reply.
    """
    text = raw_reply_of(row)
    if not text:
        return ""
    _, spoken = split_reasoning(text)
    return spoken or ""


def verdict(reward: float | bool, reason: str, **evidence: Any) -> Verdict:
    """Return a scored verdict; keyword arguments become its evidence."""
    return {"reward": float(reward), "reason": reason, **evidence}


def not_scored(status: str, reason: str, **evidence: Any) -> Verdict:
    """Return a verdict without a reward; `status` is one of the kernel's statuses except `ok`."""
    return {"reward": None, "status": status, "reason": reason, **evidence}


def no_reference(field: str) -> Verdict:
    """Return the verdict of a row that has nothing to compare with."""
    return not_scored("missing", f"the row has no {field}")


def check_options(**options: tuple[Any, tuple[Any, ...]]) -> None:
    """Raise `ParameterError` for an option whose value is not one of the known ones.

    Args:
        options: Name to (given value, known values).
    """
    for name, (value, known) in options.items():
        if value not in known:
            from whileai_kernel.errors import nearest

            near = nearest(str(value), [str(k) for k in known])
            raise ParameterError(
                f"unknown {name}={value!r}",
                why=f"known: {', '.join(repr(k) for k in known)}",
                fix=f"did you mean {near[0]!r}?" if near else f"use one of {known}",
            )
