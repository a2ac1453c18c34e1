"""What happened in a rollout: tool calls with their declared kind, and which of them failed.

The kind of a tool is the one that was declared with it (`x-kind`); a tool without a declared kind has none, and
nothing is guessed from its name. A call failed when its result says so: an error flag, an error field, a status
word, an exit code, or an error message at its start.

Example:
    >>> call = {"id": "a", "type": "function", "function": {"name": "put_order", "arguments": "{}"}}
    >>> row = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]},
    ...                     {"role": "tool", "tool_call_id": "a", "content": '{"error": "timeout"}'}]}
    >>> [(f.name, f.failed) for f in actions(row)]
    [('put_order', True)]
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whileai_kernel.messages import tool_calls

Row = Mapping[str, Any]

_ERROR_START = re.compile(
    r"^\s*(?:\[?(?:tool[ _])?(?:error|exception|failure|failed|fatal)\]?\s*[:\-–(]|error\b|"
    r"traceback \(most recent|exception\b|"
    r"(?:http[/ ]?\S* ?)?(?:4\d\d|5\d\d)\s+(?:error|bad|not found|internal|service|gateway|"
    r"unauthori[sz]ed|forbidden|too many|conflict|"
    r"timeout|request)|(?:request |connection |operation |gateway )?tim(?:ed|e)[ -]?out\b|"
    r"service (?:is )?(?:temporarily )?unavailable|"
    r"internal server error|rate limit(?:ed| exceeded)|permission denied|access denied|"
    r"connection (?:refused|reset|error)|"
    r"unauthori[sz]ed|command not found|no such file)",
    re.IGNORECASE,
)
_EXIT_CODE = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: code| status)?|returncode|return code)\s*[:=]?\s*([1-9]\d{0,2})\b", re.IGNORECASE
)
_TESTS_FAILED = re.compile(r"\b[1-9]\d* (?:failed|errors?|failures?)\b|\bFAILED\b|\bFAIL:|\btests? failed\b")
_BAD_STATUS = frozenset(
    {"error", "failed", "failure", "fail", "timeout", "unavailable", "denied", "rejected", "exception"}
)


@dataclass(frozen=True)
class Action:
    """One tool call as the markers see it.

    Attributes:
        turn: Position of the assistant message.
        name: Tool name.
        arguments: Decoded arguments, or `None`.
        arguments_text: Arguments as written.
        result: Text of the result, or `None` when there is none.
        result_turn: Position of the result, or `None`.
        kind: Declared kind (`read`, `write`, `generic`) or `None`.
        failed: Whether the result says that the call failed.
        degraded: Whether the result warns that it may not be right (a warning, a stale copy, partial data).
    """

    turn: int
    name: str
    arguments: dict[str, Any] | None
    arguments_text: str
    result: str | None
    result_turn: int | None
    kind: str | None
    failed: bool
    degraded: bool = False


def declared_kinds(row: Row) -> dict[str, str]:
    """Return the declared kind of each tool of the row, by name."""
    kinds: dict[str, str] = {}
    for tool in row.get("tools") or ():
        function = tool.get("function") or tool
        kind = tool.get("x-kind") or function.get("x-kind")
        if isinstance(function.get("name"), str) and isinstance(kind, str):
            kinds[function["name"]] = kind
    return kinds


def says_failure(result: str | None, is_error: bool = False) -> bool:
    """Return whether a tool result reports a failure."""
    if is_error:
        return True
    if result is None:
        return False
    text = result.strip()
    if text[:1] in "{[":
        try:
            return _object_fails(json.loads(text))
        except (ValueError, RecursionError):
            # What begins as JSON and is none is a broken answer; a log line in brackets is not.
            return bool(_ERROR_START.search(text) or re.match(r'^(?:\{\s*"|\[\s*[{"])', text))
    return bool(_ERROR_START.search(text) or _EXIT_CODE.search(text) or _TESTS_FAILED.search(text))


def says_degraded(result: str | None) -> bool:
    """Return whether a tool result warns about itself: a warning, a stale copy, partial data."""
    text = (result or "").strip()
    if text[:1] != "{":
        return bool(re.match(r"^\s*\[?warning\]?\s*:", text, re.IGNORECASE))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return any(
        (str(k).casefold() in ("warning", "warnings") and v not in (None, "", [], False))
        or (str(k).casefold() in ("stale", "partial", "truncated", "incomplete") and v is True)
        for k, v in value.items()
    )


def _object_fails(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    for key, inner in value.items():
        name = str(key).casefold()
        if name in ("error", "errors", "exception", "error_message", "fault") and inner not in (
            None,
            "",
            False,
            [],
            {},
            0,
        ):
            return True
        if name in ("ok", "success", "succeeded") and inner is False:
            return True
        if name in ("status", "state", "result") and isinstance(inner, str) and inner.casefold() in _BAD_STATUS:
            return True
        if name in ("exit_code", "exitcode", "returncode", "return_code") and isinstance(inner, int) and inner != 0:
            return True
        if name in ("status_code", "code", "http_status") and isinstance(inner, int) and 400 <= inner < 600:
            return True
    return False


def actions(row: Row) -> list[Action]:
    """Return the tool calls of a row in order."""
    messages = row.get("messages") or []
    kinds = declared_kinds(row)
    found = []
    for call in tool_calls(messages):
        flagged = call.result_turn is not None and bool(messages[call.result_turn].get("is_error"))
        found.append(
            Action(
                call.turn,
                call.name,
                call.arguments,
                call.arguments_text,
                call.result,
                call.result_turn,
                kinds.get(call.name),
                says_failure(call.result, flagged),
                says_degraded(call.result),
            )
        )
    return found


def failures(row: Row) -> list[Action]:
    """Return the calls that failed."""
    return [action for action in actions(row) if action.failed]


def recovered(failure: Action, later: list[Action]) -> bool:
    """Return whether a later call of the same tool succeeded; after a mere warning, whether it was made at all."""
    again = [a for a in later if a.turn > failure.turn and a.name == failure.name and a.result is not None]
    if failure.degraded and not failure.failed:
        return bool(again)
    return any(not (a.failed or a.degraded) for a in again)
