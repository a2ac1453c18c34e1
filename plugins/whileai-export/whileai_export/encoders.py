"""The one message model, encoded once per target: OpenAI, Hugging Face templates, Anthropic, ShareGPT.

Each encoder takes messages of the kernel's model whose call ids are unique in the conversation, keeps only the
keys that its target reads, and keeps the private mark `TRAINED` of a message until `finish` removes it. Nothing
is validated here, and nothing that was said is dropped.

Example:
    >>> chat = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    >>> encode(chat, "hf")
    [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'hi'}]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.errors import unknown_name
from whileai_kernel.messages import normalise_messages, parse_arguments, text_of, with_unique_ids
from whileai_kernel.rows import strip_privileged

__all__ = [
    "ENCODERS",
    "TRAINED",
    "encode",
    "encode_tools",
    "finish",
    "to_anthropic",
    "to_hf",
    "to_openai",
    "to_sharegpt",
]

TRAINED = "_trained"
"""Private mark of a message that the loss covers; never written."""

Messages = list[dict[str, Any]]


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(message.get("tool_calls") or ())


def _base(message: Mapping[str, Any]) -> dict[str, Any]:
    parts = strip_privileged(message["content_parts"]) if message.get("content_parts") else None
    out: dict[str, Any] = {"role": message["role"], "content": parts if parts else text_of(message.get("content"))}
    if message.get("name") and message["role"] in ("user", "tool", "assistant"):
        out["name"] = message["name"]
    if message.get("reasoning_content"):
        out["reasoning_content"] = message["reasoning_content"]
    return out


def _mark(out: dict[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    if TRAINED in message:
        out[TRAINED] = message[TRAINED]
    return out


def to_openai(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """Encode for OpenAI chat: arguments are JSON text, written once; developer messages stay."""
    out: Messages = []
    for message in messages:
        item = _base(message)
        if _calls(message):
            item["tool_calls"] = [
                {
                    "id": call.get("id") or "",
                    "type": "function",
                    "function": {
                        "name": call["function"].get("name") or "",
                        "arguments": _argument_text(call["function"].get("arguments")),
                    },
                }
                for call in _calls(message)
            ]
        if message["role"] == "tool":
            item["tool_call_id"] = message.get("tool_call_id") or ""
        out.append(_mark(item, message))
    return out


def _argument_text(value: Any) -> str:
    """Return arguments as JSON text of an object; text that is not one is kept as it is."""
    decoded = parse_arguments(value)
    if decoded is None:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return value
    return json.dumps(decoded, ensure_ascii=False)


def to_hf(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """Encode for Hugging Face chat templates: arguments are objects, instructions are one leading system message.

    A tool message carries the name of its tool, which several templates print. Arguments that are no JSON object
    stay text.
    """
    names = {c.get("id"): c["function"].get("name") for m in messages for c in _calls(m)}
    told = [text_of(m.get("content")) for m in messages if m["role"] in ("system", "developer")]
    out: Messages = [{"role": "system", "content": "\n\n".join(t for t in told if t)}] if any(told) else []
    for message in messages:
        if message["role"] in ("system", "developer"):
            continue
        item = _base(message)
        if _calls(message):
            item["tool_calls"] = [_hf_call(call) for call in _calls(message)]
        if message["role"] == "tool":
            item["tool_call_id"] = message.get("tool_call_id") or ""
            name = message.get("name") or names.get(item["tool_call_id"])
            if name:
                item["name"] = name
        out.append(_mark(item, message))
    return out


def _hf_call(call: Mapping[str, Any]) -> dict[str, Any]:
    raw = call["function"].get("arguments")
    decoded = parse_arguments(raw)
    function = {"name": call["function"].get("name") or "", "arguments": raw if decoded is None else decoded}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def to_anthropic(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """Encode for Anthropic: blocks, results of a turn in one user message before any text, roles alternate.

    Instructions come back as messages of the role `system`; the writer lifts them to the record's `system`.
    """
    out: Messages = []
    for message in messages:
        role = message["role"]
        text = text_of(message.get("content"))
        if role in ("system", "developer"):
            out.append({"role": "system", "content": text})
            continue
        blocks: list[dict[str, Any]] = []
        if role == "tool":
            block = {"type": "tool_result", "tool_use_id": message.get("tool_call_id") or "", "content": text}
            blocks.append({**block, "is_error": True} if message.get("is_error") else block)
        else:
            if message.get("reasoning_content"):
                blocks.append({"type": "thinking", "thinking": message["reasoning_content"]})
            blocks += _anthropic_parts(message, text)
            blocks += [_tool_use(call) for call in _calls(message)]
        speaker = "user" if role == "tool" else role
        last = out[-1] if out else {}
        if last.get("role") == speaker:
            last["content"] += blocks
            if message.get(TRAINED) or TRAINED in last:
                last[TRAINED] = bool(last.get(TRAINED)) or bool(message.get(TRAINED))
        else:
            out.append(_mark({"role": speaker, "content": blocks}, message))
    return out


def _anthropic_parts(message: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    parts = message.get("content_parts")
    if parts:
        return list(strip_privileged(parts))
    return [{"type": "text", "text": text}] if text else []


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    raw = call["function"].get("arguments")
    decoded = parse_arguments(raw)
    return {
        "type": "tool_use",
        "id": call.get("id") or "",
        "name": call["function"].get("name") or "",
        "input": raw if decoded is None else decoded,
    }


def to_sharegpt(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """Encode for ShareGPT: turns with `from` and `value`; calls are turns of their own, ids are further keys."""
    speakers = {"system": "system", "developer": "system", "user": "human", "assistant": "gpt"}
    out: Messages = []
    for message in messages:
        role, text = message["role"], text_of(message.get("content"))
        if role == "tool":
            out.append({"from": "observation", "value": text, "tool_call_id": message.get("tool_call_id") or ""})
            continue
        if message.get("reasoning_content"):
            text = f"<think>\n{message['reasoning_content']}\n</think>\n\n{text}"
        calls = _calls(message)
        if text or not calls:
            out.append(_mark({"from": speakers[role], "value": text}, message))
        if calls:
            shaped = [_sharegpt_call(call) for call in calls]
            value = json.dumps(shaped[0] if len(shaped) == 1 else shaped, ensure_ascii=False)
            turn = {"from": "function_call", "value": value, "ids": [c.get("id") or "" for c in calls]}
            out.append(_mark(turn, message))
    return out


def _sharegpt_call(call: Mapping[str, Any]) -> dict[str, Any]:
    raw = call["function"].get("arguments")
    decoded = parse_arguments(raw)
    return {"name": call["function"].get("name") or "", "arguments": raw if decoded is None else decoded}


ENCODERS: dict[str, Callable[[Sequence[Mapping[str, Any]]], Messages]] = {
    "openai": to_openai,
    "hf": to_hf,
    "anthropic": to_anthropic,
    "sharegpt": to_sharegpt,
}
"""Name of an encoding to its function."""


def finish(messages: Iterable[Mapping[str, Any]]) -> Messages:
    """Return messages without the private marks."""
    return [{k: v for k, v in m.items() if k != TRAINED} for m in messages]


def encode(messages: Sequence[Mapping[str, Any]], encoding: str = "openai") -> Messages:
    """Encode one conversation, of any shape that the kernel normalises, for a target.

    Args:
        messages: A conversation.
        encoding: `openai`, `hf`, `anthropic` or `sharegpt`.

    Returns:
        Messages of the target, with call ids that are unique in the conversation.

    Raises:
        ParameterError: The encoding is unknown.
        RowError: The messages cannot be read.
    """
    if encoding not in ENCODERS:
        unknown_name("encoding", encoding, ENCODERS)
    return finish(ENCODERS[encoding](with_unique_ids(normalise_messages(messages))))


def _public(schema: Any, names: bool = False) -> Any:
    """Return a schema without private and `x-` keys; below `properties` the keys are names of arguments and stay."""
    if isinstance(schema, Mapping):
        kept = schema.items() if names else ((k, v) for k, v in schema.items() if k != "privileged" and k[:2] != "x-")
        return {k: _public(v, k == "properties" and not names) for k, v in kept}
    if isinstance(schema, list | tuple):
        return [_public(v) for v in schema]
    return schema


def encode_tools(tools: Sequence[Mapping[str, Any]], encoding: str = "openai") -> list[dict[str, Any]]:
    """Encode tool schemas for a target; keys that begin with `x-` and private ones are left out."""
    out = []
    for tool in tools:
        function = _public(tool.get("function", tool))
        if encoding == "anthropic":
            schema = function.get("parameters") or {"type": "object", "properties": {}}
            item = {"name": function.get("name", ""), "input_schema": schema}
            if function.get("description"):
                item["description"] = function["description"]
            out.append(item)
        else:
            out.append({"type": "function", "function": function})
    return out
