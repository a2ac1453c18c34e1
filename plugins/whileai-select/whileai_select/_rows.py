"""What selection reads off a row: rows from any input, completeness, junk, leaks, signature, stable draws.

Completeness comes from the finish reason and the outcome that the run recorded, never from the text: a reply that
ends with a code fence or a signature is complete when the model stopped by itself.

Example:
    >>> completeness({"finish_reason": "length", "final_text": "The result is 12."})
    'truncated'
    >>> completeness({"finish_reason": "stop", "final_text": "Regards,"})
    'complete'
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.messages import text_of
from whileai_kernel.rows import task_key

Row = Mapping[str, Any]

CUT_REASONS = frozenset({"length", "max_tokens", "content_filter"})
"""Finish reasons after which the reply is not the whole reply (`max_tokens` is the Anthropic spelling)."""


def read_all(rows: Iterable[Row] | str | Path) -> list[Row]:
    """Return the rows of a list, iterator, dataset or JSONL path as a list.

    Raises:
        ParameterError: The input is a single row, or holds something that is not a mapping.
    """
    if isinstance(rows, str | Path):
        from whileai_kernel.rowio import read_rows

        return list(read_rows(rows))
    if isinstance(rows, Mapping):
        raise ParameterError("rows must be many rows, not one", fix="pass a list: [row]")
    found = list(getattr(rows, "rows", rows))
    for position, row in enumerate(found):
        if not isinstance(row, Mapping):
            raise RowError(
                f"a row must be a mapping, not {type(row).__name__}", fix="pass rows as made by wai.rows", row=position
            )
    return found


def task_keys(rows: Sequence[Row]) -> list[str]:
    """Return the task of each row; an unusable row is an error that names its position."""
    keys = []
    for position, row in enumerate(rows):
        try:
            keys.append(task_key(row))
        except RowError as err:
            raise RowError(err.what, err.why, err.fix, row=position) from None
    return keys


def reward_of(row: Row, position: int | None = None) -> float | None:
    """Return the reward as a float, or `None` when the row is not scored.

    A row whose status says that it has no verdict is not scored, whatever its reward field holds.

    Raises:
        RowError: The reward is not a number in [0, 1] (NaN included).
    """
    reward = row.get("reward")
    if reward is None or row.get("status", "ok") != "ok":
        return None
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not 0.0 <= reward <= 1.0:
        raise RowError(
            f"reward must be a number in [0, 1] or None, not {reward!r:.60}",
            why="selection averages rewards, and None is the only way to say 'not scored'",
            fix="grade the rows, or set reward to None and status to 'invalid'",
            row=position,
            field="reward",
        )
    return float(reward)


def completeness(row: Row) -> str:
    """Return `complete`, `truncated`, `failed` or `unknown` (nothing recorded why the reply ended)."""
    outcome = row.get("outcome")
    if outcome == "failed" or (outcome is None and row.get("error")):
        return "failed"
    finish = row.get("finish_reason")
    if outcome == "truncated" or finish in CUT_REASONS:
        return "truncated"
    return "complete" if finish is not None else "unknown"


def is_junk(row: Row) -> bool:
    """Return whether the row has nothing to train on: no visible reply text and no tool call."""
    if _visible(row.get("final_text")):
        return False
    for message in row.get("messages") or ():
        if message.get("role") == "assistant" and (message.get("tool_calls") or _visible(message.get("content"))):
            return False
    return True


def _visible(content: Any) -> bool:
    if not content:
        return False
    text = content if isinstance(content, str) else text_of(content)
    return any(not ch.isspace() and unicodedata.category(ch) not in ("Cf", "Cc", "Zs") for ch in text)


def reply_text(row: Row) -> str:
    """Return the final text of a row as a string ('' when there is none)."""
    text = row.get("final_text")
    return text if isinstance(text, str) else ""


def reply_length(row: Row) -> int:
    """Return the length of what the policy wrote, in characters: assistant text and call arguments.

    Rows without messages count their final text.
    """
    total = 0
    for message in row.get("messages") or ():
        if message.get("role") == "assistant":
            content = message.get("content")
            total += len(content if isinstance(content, str) else text_of(content))
            for call in message.get("tool_calls") or ():
                total += len(str((call.get("function") or {}).get("arguments") or ""))
    return total or len(reply_text(row))


def call_names(row: Row) -> list[str]:
    """Return the names of the tools that the row calls, in order."""
    return [
        str((call.get("function") or {}).get("name"))
        for message in row.get("messages") or ()
        if message.get("role") == "assistant"
        for call in message.get("tool_calls") or ()
    ]


def signature(row: Row) -> str:
    """Return the behaviour of a row: its tool calls with their arguments, else its final text in words.

    Two rows with one signature did the same thing, whatever they said around it.
    """
    calls = [
        [(call.get("function") or {}).get("name"), _canonical((call.get("function") or {}).get("arguments"))]
        for message in row.get("messages") or ()
        if message.get("role") == "assistant"
        for call in message.get("tool_calls") or ()
    ]
    if calls:
        return json.dumps(calls, sort_keys=True, default=str)
    return " ".join(unicodedata.normalize("NFKC", reply_text(row)).casefold().split())


def _canonical(arguments: Any) -> Any:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return arguments
    return arguments if not isinstance(arguments, Mapping) else dict(sorted(arguments.items()))


def draw(seed: int, *parts: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the parts only, not on order or machine."""
    digest = hashlib.blake2b("\x1f".join((str(seed), *parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def copy_key(row: Row) -> str:
    """Return a key that two copies of one rollout share: task, prompt and everything the policy wrote."""
    said = [
        [m.get("role"), m.get("content"), m.get("tool_calls")]
        for m in row.get("messages") or ()
        if m.get("role") in ("assistant", "tool")
    ]
    return json.dumps([row.get("prompt"), row.get("final_text"), said], sort_keys=True, default=str)
