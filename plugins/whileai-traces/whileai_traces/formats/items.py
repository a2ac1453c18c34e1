"""Items of the OpenAI Responses API as chat messages; also what the Agents SDK keeps of a run.

Consecutive items of the assistant (reasoning, text, calls) are one turn, so parallel calls stay together; a turn
ends where a result, a user or a system message stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.messages import text_of

__all__ = ["is_items", "items_to_messages"]

CALLS = ("function_call", "custom_tool_call", "mcp_call")
RESULTS = ("function_call_output", "custom_tool_call_output")
OWN_TYPES = (*CALLS, *RESULTS, "reasoning")


def is_items(items: Sequence[Any]) -> bool:
    """Say whether a list holds items of the Responses API (and not chat messages)."""
    kinds = [item.get("type") for item in items if isinstance(item, Mapping)]
    parts = [
        part.get("type")
        for item in items
        if isinstance(item, Mapping) and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, Mapping)
    ]
    return any(k in OWN_TYPES for k in kinds) or (any(k == "message" for k in kinds) and "output_text" in parts)


def items_to_messages(items: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the chat messages of a list of items, and the items that have no place in a chat.

    Args:
        items: Items in order; plain `{"role", "content"}` messages may stand among them.
    """
    messages: list[dict[str, Any]] = []
    unknown: list[Any] = []
    thoughts: list[str] = []
    for item in items:
        if not isinstance(item, Mapping):
            unknown.append(item)
            continue
        kind = item.get("type") or ("message" if item.get("role") else None)
        if kind == "reasoning":
            thoughts += _texts(item.get("summary")) + _texts(item.get("content"))
        elif kind in CALLS:
            turn = _open_turn(messages, thoughts)
            arguments = item.get("arguments", item.get("input", ""))
            turn.setdefault("tool_calls", []).append(
                {"id": item.get("call_id") or item.get("id") or "", "name": item.get("name"), "arguments": arguments}
            )
            if kind == "mcp_call" and "output" in item:
                messages.append(_result(item.get("call_id") or item.get("id"), item["output"]))
        elif kind in RESULTS:
            messages.append(_result(item.get("call_id"), item.get("output")))
        elif kind == "message" and item.get("role") == "assistant":
            if item.get("tool_calls"):
                messages.append(dict(item))
                continue
            turn = _open_turn(messages, thoughts, new=True)
            turn["content"] = item.get("content")
        elif kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content"), **_ids(item)})
        else:
            unknown.append(dict(item))
    if thoughts:
        unknown.append({"type": "reasoning", "text": "\n".join(thoughts)})
    return messages, unknown


def _ids(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_call_id": item["tool_call_id"]} if item.get("tool_call_id") else {}


def _result(call_id: Any, output: Any) -> dict[str, Any]:
    content = (
        output if isinstance(output, str) else (text_of(output) if isinstance(output, list) else json.dumps(output))
    )
    return {"role": "tool", "tool_call_id": str(call_id or ""), "content": content}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    parts = value if isinstance(value, list) else []
    return [str(p.get("text")) for p in parts if isinstance(p, Mapping) and p.get("text")]


def _open_turn(messages: list[dict[str, Any]], thoughts: list[str], new: bool = False) -> dict[str, Any]:
    """Return the assistant turn that an item belongs to, with the reasoning that came before it."""
    if new or not messages or messages[-1].get("role") != "assistant":
        messages.append({"role": "assistant", "content": ""})
    turn = messages[-1]
    if thoughts:
        before = [turn["reasoning_content"]] if turn.get("reasoning_content") else []
        turn["reasoning_content"] = "\n".join([*before, *thoughts])
        thoughts.clear()
    return turn
