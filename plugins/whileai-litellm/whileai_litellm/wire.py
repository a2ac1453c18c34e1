"""Requests and replies in the shape that litellm takes and gives, as pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import normalise_messages

__all__ = ["Malformed", "parse", "request"]

_KEPT = ("role", "content", "name", "tool_call_id")
_KNOWN = ("role", "content", "tool_calls", "function_call", "refusal")


class Malformed(Exception):
    """A reply that is no completion; the text says what is missing."""


def request(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    sampling: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    enforced: bool,
) -> dict[str, Any]:
    """Return the arguments of `litellm.acompletion` that say what is asked.

    Args:
        messages: Messages in the one message model.
        tools: OpenAI tool dicts.
        sampling: Sampling parameters; those that are `None` are left out.
        schema: JSON schema of the reply.
        enforced: Whether the provider holds the reply to the schema; where not, it is asked for in words.
    """
    sent = [_message(m) for m in messages]
    asked: dict[str, Any] = {k: v for k, v in sampling.items() if v is not None}
    if tools:
        asked["tools"] = [{k: v for k, v in t.items() if not str(k).startswith("x-")} for t in tools]
    if schema is not None and enforced:
        shape = {"name": "reply", "schema": dict(schema), "strict": False}
        asked["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif schema is not None:
        wish = f"Answer with one JSON object and nothing else. It satisfies this JSON schema: {json.dumps(schema)}"
        if sent and sent[0].get("role") == "system" and isinstance(sent[0].get("content"), str):
            sent[0] = {**sent[0], "content": f"{sent[0]['content']}\n\n{wish}".strip()}
        else:
            sent.insert(0, {"role": "system", "content": wish})
    return {**asked, "messages": sent}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {k: message[k] for k in _KEPT if message.get(k) is not None}
    if message.get("content_parts"):
        out["content"] = message["content_parts"]
    calls = message.get("tool_calls") or ()
    if calls:
        out["tool_calls"] = [_call(call, n) for n, call in enumerate(calls)]
    out.setdefault("content", "")
    return out


def _call(call: Mapping[str, Any], n: int) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "id": call.get("id") or f"call_{n}",
        "type": "function",
        "function": {"name": function.get("name", ""), "arguments": function.get("arguments") or "{}"},
    }


def parse(reply: Any) -> dict[str, Any]:
    """Return the parts of a `Completion`, from a `ModelResponse` or its dump.

    Raises:
        Malformed: It is no completion.
    """
    payload = reply if isinstance(reply, Mapping) else reply.model_dump()
    choices = payload.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise Malformed("it has no choices")
    choice = choices[0]
    raw = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(raw, Mapping):
        raise Malformed("its first choice has no message")
    source = {k: raw[k] for k in _KNOWN if raw.get(k) is not None} | {"role": "assistant"}
    if source.get("refusal") and not source.get("content"):
        source["content"] = source["refusal"]
    try:
        message = normalise_messages([source])[0]
    except (RowError, AttributeError, TypeError) as err:
        raise Malformed(f"its message cannot be read: {err}") from err
    if isinstance(raw.get("reasoning_content"), str) and raw["reasoning_content"]:
        message["reasoning_content"] = raw["reasoning_content"]
    for n, call in enumerate(message.get("tool_calls") or ()):
        call["id"] = call.get("id") or f"call_{n}"
    usage, logprobs = payload.get("usage"), choice.get("logprobs")
    return {
        "message": message,
        "finish_reason": choice.get("finish_reason"),
        "model": str(payload.get("model") or ""),
        "usage": _usage(usage) if isinstance(usage, Mapping) else {},
        "logprobs": logprobs.get("content") if isinstance(logprobs, Mapping) else logprobs,
    }


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    out = {k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool)}
    for outer in ("prompt_tokens_details", "completion_tokens_details"):
        details = usage.get(outer)
        if isinstance(details, Mapping):
            out |= {k: details[k] for k in ("cached_tokens", "reasoning_tokens") if isinstance(details.get(k), int)}
    return out
