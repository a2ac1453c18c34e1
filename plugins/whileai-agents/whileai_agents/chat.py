"""The chat-completions API, server side: a body to an `Ask`, a `Completion` to a body or to server-sent events.

Events are cut from the whole reply: a model of the kernel's protocol answers whole or not at all, and a failure then
still has its own HTTP status.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from whileai_agents.ask import Ask, bad_request, read_messages, read_tools
from whileai_kernel.protocols import Completion

__all__ = ["events", "read_chat", "to_chat"]

_SAMPLING = (
    "temperature", "top_p", "max_tokens", "seed", "stop", "logprobs", "top_logprobs", "presence_penalty",
    "frequency_penalty", "logit_bias", "tool_choice", "parallel_tool_calls", "reasoning_effort", "top_k", "min_p",
)  # fmt: skip


def read_chat(body: Mapping[str, Any]) -> Ask:
    """Read a request to `/chat/completions`.

    Raises:
        HttpError: 400, it asks for what cannot be served.
    """
    if body.get("n") not in (None, 1):
        raise bad_request("n must be 1: ask again for another reply")
    sampling = {key: body[key] for key in _SAMPLING if body.get(key) is not None}
    if sampling.get("tool_choice") == "auto":  # the default, which some clients write out
        del sampling["tool_choice"]
    if body.get("max_completion_tokens") is not None:
        sampling["max_tokens"] = body["max_completion_tokens"]
    tools = body.get("tools") or [{"type": "function", "function": f} for f in body.get("functions") or ()]
    schema = None
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        schema = (wanted.get("json_schema") or {}).get("schema")
    elif isinstance(wanted, Mapping) and wanted.get("type") != "text":
        sampling["response_format"] = dict(wanted)
    options = body.get("stream_options")
    return Ask(
        read_messages(body.get("messages")),
        read_tools(tools),
        sampling,
        dict(schema) if isinstance(schema, Mapping) else None,
        body.get("stream") is True,
        isinstance(options, Mapping) and options.get("include_usage") is True,
    )


def usage_of(reply: Completion) -> dict[str, Any]:
    """Return the usage of a reply as the API writes it."""
    usage: dict[str, Any] = dict(reply.usage)
    asked, answered = usage.setdefault("prompt_tokens", 0), usage.setdefault("completion_tokens", 0)
    usage["total_tokens"] = usage.get("total_tokens", asked + answered)
    return usage


def to_chat(reply: Completion, number: int, model: str) -> dict[str, Any]:
    """Return the body of a reply.

    Args:
        reply: What the model answered.
        number: Number of the request, for its id.
        model: Name of the model, when the reply names none.
    """
    message = {"role": "assistant", "content": reply.message.get("content"), "refusal": None}
    calls = reply.message.get("tool_calls")
    if calls:
        message["tool_calls"] = calls
        message["content"] = message["content"] or None
    if reply.message.get("reasoning_content"):
        message["reasoning_content"] = reply.message["reasoning_content"]
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": reply.finish_reason or ("tool_calls" if calls else "stop"),
        "logprobs": {"content": reply.logprobs, "refusal": None} if isinstance(reply.logprobs, list) else None,
    }
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model or model,
        "choices": [choice],
        "usage": usage_of(reply),
    }


def events(body: Mapping[str, Any], usage: bool) -> bytes:
    """Return the body of a reply as server-sent events."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(body, usage)]
    return "".join([*lines, "data: [DONE]\n\n"]).encode("ascii")


def _chunks(body: Mapping[str, Any], usage: bool) -> Iterator[dict[str, Any]]:
    choice = body["choices"][0]
    message = choice["message"]
    head = {key: body[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None, logprobs: Any = None) -> dict[str, Any]:
        part = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
        return {**head, "choices": [part], **({"usage": None} if usage else {})}

    yield chunk({"role": "assistant", "content": ""})
    if message.get("reasoning_content"):
        yield chunk({"reasoning_content": message["reasoning_content"]})
    if message.get("content"):
        yield chunk({"content": message["content"]}, logprobs=choice["logprobs"])
    for n, call in enumerate(message.get("tool_calls") or ()):
        yield chunk({"tool_calls": [{"index": n, **call}]})
    yield chunk({}, choice["finish_reason"])
    if usage:
        yield {**head, "choices": [], "usage": body["usage"]}
