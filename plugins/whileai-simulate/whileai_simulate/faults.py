"""Tool faults: the plan of a task, and what a faulty call returns.

A fault is planned for one tool of a task: it fires on the first calls of that tool and then clears (timeout,
rate limit, malformed, stale), or it stays (permission denied). The plan stands on the row under `world.faults`,
what fired under `faults_fired`.

Example:
    >>> fault_result({"kind": "timeout", "tool": "get_order"}, '{"order_id": "A-1"}')
    '{"error": "timeout: get_order did not answer within 30 s", "retryable": true}'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.encoding import encode

__all__ = ["BLOCKING", "FAULTS", "SAME_FOR_ALL", "SUCCESS", "Fault", "fault_result", "plan_fault"]

SUCCESS = "success"
FAULTS = ("timeout", "malformed", "stale", "permission_denied", "rate_limited")
_ERRORS: dict[str, tuple[str, dict[str, Any]]] = {
    "timeout": ("timeout: {tool} did not answer within 30 s", {"retryable": True}),
    "rate_limited": ("rate limit: too many calls to {tool}", {"retry_after_s": 2, "retryable": True}),
    "permission_denied": ("permission denied: this session may not call {tool}", {"retryable": False}),
}
SAME_FOR_ALL = frozenset(_ERRORS)
"""Faults whose answer does not depend on what the tool would have said."""
BLOCKING = frozenset({"permission_denied"})
"""Faults that do not clear: no number of retries reaches the tool."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one's own: give it a name in `options={"faults": {name: Fault(...)}}`.

    Attributes:
        result: Called with the tool's name and the honest result (JSON text); returns what the agent sees.
        calls: How many calls it strikes before it clears; -1 for all.
    """

    result: Callable[[str, str], str]
    calls: int = 1


def plan_fault(kind: str, tool: str, draw: Draw, own: Mapping[str, Fault] | None = None) -> list[dict[str, Any]]:
    """Return the fault plan of a task: empty, or one fault.

    Args:
        kind: A value of the axis `tool_condition`.
        tool: Tool that it strikes.
        draw: Decides how many calls it strikes (1, or 2 for a rate limit).
        own: Own faults by name.
    """
    if own and kind in own:
        return [{"kind": kind, "tool": tool, "calls": own[kind].calls}]
    if kind not in FAULTS:
        return []
    times = -1 if kind in BLOCKING else (1 + draw.below(2) if kind == "rate_limited" else 1)
    return [{"kind": kind, "tool": tool, "calls": times}]


def fault_result(fault: Mapping[str, Any], honest: str, old: Any = None, own: Mapping[str, Fault] | None = None) -> str:
    """Return what the agent sees instead of the honest result.

    Args:
        fault: One entry of the plan.
        honest: What the tool would have returned, as JSON text.
        old: What a stale answer shows.
        own: Own faults by name.
    """
    kind, tool = fault["kind"], fault["tool"]
    if own and kind in own:
        return own[kind].result(tool, honest)
    if kind in SAME_FOR_ALL:
        return _error(kind, tool)
    if kind == "malformed":
        return '{"result": ' + honest[: max(1, len(honest) * 3 // 5)]  # never closed, so never JSON
    stale = {"warning": "served from cache, may be out of date", "as_of": "2024-04-02T06:00:00Z"}
    return encode({**stale, "data": old, "retryable": True})


@lru_cache(maxsize=1024)
def _error(kind: str, tool: str) -> str:
    text, rest = _ERRORS[kind]
    return encode({"error": text.format(tool=tool), **rest})
