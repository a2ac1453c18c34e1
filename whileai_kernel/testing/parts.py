"""Offline reference parts: rows of every kind, hostile texts, and helpers that the checks share.

Nothing here is random and nothing needs a plugin, so a plugin's own tests may use the parts too.

Example:
    >>> [row["status"] for row in reference_rows()][:4]
    ['ok', 'ok', 'ok', 'ok']
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from whileai_kernel.errors import DeadlineError
from whileai_kernel.rows import Row, make_rows

__all__ = ["GOLD", "call", "hostile_texts", "in_thread", "odd_rows", "reference_rows", "unchanged", "within"]

T = TypeVar("T")
GOLD = "quartz-4217-heron"
"""A private reference that no text contains by accident."""


def reference_rows(tasks: int = 6, repeats: int = 4) -> list[Row]:
    """Return graded rows: mixed, all-pass and all-fail tasks with tool calls, and one not-scored, one truncated and
    one failed row in a task of its own.

    Args:
        tasks: Tasks with verdicts: a third each mixed, all passing, all failing.
        repeats: Rollouts per task.
    """
    prompts, completions, rewards, references, ids = [], [], [], [], []
    for t in range(tasks):
        for r in range(repeats):
            prompts.append(f"Where is order A-{t}?")
            completions.append(_conversation(t, r))
            rewards.append([r % 2, 1, 0][t % 3])
            references.append(f"{GOLD}-{t}")
            ids.append(f"task-{t}")
    rows = make_rows(
        prompts, completions, rewards, references=references, task_ids=ids, finish_reasons=["stop"] * len(ids)
    )
    extra = make_rows(
        ["Where is order Z-9?"] * 3, ["Let me look.", "The order is", ""], [None, 0, None], task_ids=["task-z"] * 3
    )
    extra[0].update(status="timeout", reason="no verdict within 1 s")
    extra[1].update(finish_reason="length", outcome="truncated")
    extra[2].update(outcome="failed", error={"type": "RuntimeError", "message": "boom"}, status="missing")
    tool = {
        "type": "function",
        "function": {
            "name": "get_order",
            "description": "Look up an order by id.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
            },
        },
        "x-kind": "read",
    }
    for row in rows + extra:
        row["tools"] = [copy.deepcopy(tool)]
        row["system_prompt"] = "Help customers with orders."
        row["markers"] = {"polite": 1.0 if row["index"] % 2 else 0.0}
    return rows + extra


def _conversation(task: int, repeat: int) -> list[Row]:
    call = {
        "id": f"call_{task}_{repeat}",
        "type": "function",
        "function": {"name": "get_order", "arguments": f'{{"order_id": "A-{task}"}}'},
    }
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": f'{{"order_id": "A-{task}", "status": "shipped"}}'},
        {"role": "assistant", "content": f"Order A-{task} has shipped\u2028(try {repeat})."},
    ]


def odd_rows() -> list[Row]:
    """Return rows that a component meets in practice and must survive: missing keys, wrong types, odd texts."""
    base: Row = {"task_id": "t", "prompt": "p", "final_text": "x", "reward": None, "status": "missing", "markers": {}}
    return [
        {},
        {**base, "final_text": None},
        {**base, "final_text": ""},
        {**base, "final_text": "\ud83d lone surrogate"},
        {**base, "final_text": "\x00\u202e\u2028"},
        {**base, "messages": []},
        {**base, "messages": [{"role": "assistant", "content": None, "tool_calls": []}]},
        {**base, "privileged": {}},
        {**base, "privileged": {"reference": None}},
        {**base, "privileged": {"reference": ["a", {"b": 1}]}},
        {**base, "markers": None, "tools": None, "axes": None, "world": None},
    ]


def hostile_texts(size: int = 1_000_000) -> list[str]:
    """Return texts of about `size` characters that make careless parsers slow."""
    return [
        "a" * size,
        "9" * size,
        "(" * size,
        "\\boxed{" * (size // 7),
        "<think>" * (size // 7),
        '{"a":' * (size // 5),
        "1,000 " * (size // 6),
        " " * size,
    ]


def in_thread(work: Callable[[], T], seconds: float) -> T:
    """Run work in a thread of its own and return its result.

    Raises:
        DeadlineError: The work did not end in time; the thread is left behind.
    """
    box: dict[str, Any] = {}

    def target() -> None:
        try:
            box["value"] = work()
        except BaseException as err:  # noqa: BLE001 - carried to the caller's thread
            box["error"] = err

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise DeadlineError(f"not done within {seconds:g} s")
    if "error" in box:
        raise box["error"]
    result: T = box["value"]
    return result


within = in_thread


def call(component: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a component, sync or async, from any place (an awaitable runs in a loop of its own thread)."""
    value = component(*args, **kwargs)
    if inspect.isawaitable(value):

        async def wait() -> Any:
            return await value

        return in_thread(lambda: asyncio.run(wait()), 60.0)
    return value


def unchanged(value: Any, work: Callable[[Any], object]) -> bool:
    """Run work on a value and return whether it left the value equal to what it was."""
    before = copy.deepcopy(value)
    work(value)
    return bool(before == value) and repr(before) == repr(value)


def text_in(value: Any, needle: str) -> bool:
    """Return whether a text occurs in any string of a nested value."""
    if isinstance(value, str):
        return needle in value
    if isinstance(value, Mapping):
        return any(text_in(k, needle) or text_in(v, needle) for k, v in value.items())
    if isinstance(value, list | tuple):
        return any(text_in(v, needle) for v in value)
    return False
