"""The part of the Responses API that agent SDKs use: items to messages and back, replies whole or as events.

Function tools, text, calls and their results, instructions, structured output and `previous_response_id`. Hosted
tools (web search, files, computer use), images and stored prompts are refused with 400: there is nothing here that
could run them. Reasoning items are read over: they hold nothing that another model could use.

Example:
    >>> to_messages([{"role": "user", "content": "hi"},
    ...     {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ...     {"type": "function_call_output", "call_id": "c1", "output": "ok"}])[1]["tool_calls"][0]["id"]
    'c1'
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from whileai_agents.ask import Ask, bad_request, read_messages, read_tools
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion
from whileai_kernel.rows import LENGTH_REASONS

__all__ = ["events", "read_responses", "to_items", "to_messages", "to_response"]

_TEXT = ("input_text", "output_text", "text", "refusal")


def read_responses(body: Mapping[str, Any], earlier: Mapping[str, Sequence[Mapping[str, Any]]]) -> Ask:
    """Read a request to `/responses`.

    Args:
        body: The request.
        earlier: Messages up to and including earlier replies, by response id; their instructions do not carry over.

    Raises:
        HttpError: 400, it asks for what cannot be served.
    """
    for name in ("background", "conversation", "prompt"):
        if body.get(name):
            raise bad_request(f"{name!r} cannot be served here: send the whole input")
    before: list[Mapping[str, Any]] = []
    previous = body.get("previous_response_id")
    if previous is not None:
        if previous not in earlier:
            raise bad_request(f"previous_response_id {previous!r:.80} is unknown here: send the whole input")
        before = list(earlier[previous])
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise bad_request("input must be text or a list of items")
    instructions = body.get("instructions")
    if instructions is not None:
        before.insert(0, {"role": "system", "content": text_of(instructions)})
    sampling = {k: body[k] for k in ("temperature", "top_p", "parallel_tool_calls") if body.get(k) is not None}
    if body.get("max_output_tokens") is not None:
        sampling["max_tokens"] = body["max_output_tokens"]
    effort = (body.get("reasoning") or {}).get("effort")
    if effort is not None:
        sampling["reasoning_effort"] = effort
    if body.get("tool_choice") not in (None, "auto"):
        sampling["tool_choice"] = _tool_choice(body["tool_choice"])
    if "message.output_text.logprobs" in (body.get("include") or ()):
        sampling["logprobs"] = True
    if body.get("top_logprobs") is not None:
        sampling.update(logprobs=True, top_logprobs=body["top_logprobs"])
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_object":
        sampling["response_format"] = {"type": "json_object"}
    return Ask(
        read_messages([*before, *to_messages(items)]),
        read_tools(body.get("tools") or ()),
        sampling,
        dict(wanted["schema"]) if wanted.get("type") == "json_schema" else None,
        body.get("stream") is True,
        True,
    )


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if isinstance(choice, Mapping):
        raise bad_request(f"tool_choice {choice.get('type')!r} cannot be served here")
    return choice


def to_messages(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return items as chat messages; what one turn of the model said and called becomes one message.

    Raises:
        HttpError: 400, an item is of a kind that cannot be served.
    """
    out: list[dict[str, Any]] = []
    for n, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise bad_request(f"input[{n}] is {type(item).__name__}, not an object")
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind == "message":
            content = _text(item.get("content"), n)
            last = out[-1] if out else {}
            if item.get("role") == "assistant" and last.get("role") == "assistant" and not last.get("tool_calls"):
                last["content"] += content
            else:
                out.append({"role": item.get("role"), "content": content})
        elif kind == "function_call":
            if not out or out[-1]["role"] != "assistant":
                out.append({"role": "assistant", "content": ""})
            function = {"name": item.get("name"), "arguments": item.get("arguments") or ""}
            call = {"id": item.get("call_id") or "", "type": "function", "function": function}
            out[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = item.get("output")
            text = output if isinstance(output, str) else _text(output, n)
            out.append({"role": "tool", "tool_call_id": item.get("call_id") or "", "content": text})
        elif kind != "reasoning":
            raise bad_request(f"input[{n}] is {kind!r}, which cannot be served here")
    return out


def _text(content: Any, n: int) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad_request(f"input[{n}] has no text")
    for part in content:
        if not isinstance(part, Mapping) or part.get("type") not in _TEXT:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise bad_request(f"input[{n}] holds {kind!r}, which cannot be served here")
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in content)


def to_items(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return chat messages as input items: the inverse of `to_messages`."""
    out: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id") or ""
            out.append({"type": "function_call_output", "call_id": call_id, "output": text_of(message.get("content"))})
            continue
        calls = message.get("tool_calls") or ()
        content = text_of(message.get("content"))
        if content or not calls:
            out.append({"role": message.get("role"), "content": content})
        for call in calls:
            function = call.get("function") or {}
            name, arguments = function.get("name") or "", function.get("arguments") or "{}"
            item = {"type": "function_call", "call_id": call.get("id") or "", "name": name, "arguments": arguments}
            out.append(item)
    return out


def to_response(reply: Completion, number: int, model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a reply.

    Args:
        reply: What the model answered.
        number: Number of the request, for its ids.
        model: Name of the model, when the reply names none.
        body: The request, of which the reply repeats some parameters.
    """
    output: list[dict[str, Any]] = []
    cut = reply.finish_reason in LENGTH_REASONS
    text = text_of(reply.message.get("content"))
    calls = reply.message.get("tool_calls") or ()
    status = "incomplete" if cut else "completed"
    if text or not calls:
        logprobs = reply.logprobs if isinstance(reply.logprobs, list) else []
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
        output.append(
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": status, "content": [part]}
        )
    for n, call in enumerate(calls):
        function = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        item = {"id": f"fc_{number}_{n}", "type": "function_call", "call_id": call["id"], "status": "completed"}
        output.append({**item, **function})
    usage = reply.usage
    asked, answered = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": reply.model or model,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "previous_response_id": body.get("previous_response_id"),
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": int(usage.get("cached_tokens", 0)), "cache_write_tokens": 0},
            "output_tokens": answered,
            "output_tokens_details": {"reasoning_tokens": int(usage.get("reasoning_tokens", 0))},
            "total_tokens": int(usage.get("total_tokens", asked + answered)),
        },
    }


def events(response: Mapping[str, Any]) -> bytes:
    """Return the body of a reply as server-sent events."""
    lines = []
    for n, (kind, data) in enumerate(_events(response)):
        lines.append(f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': n, **data})}\n\n")
    return "".join(lines).encode("ascii")


def _events(response: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        where = {"output_index": index, "item_id": item["id"]}
        opened: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": {**item, "status": "in_progress", **opened}}
        if item["type"] == "message":
            part = item["content"][0]
            where["content_index"] = 0
            logprobs = part["logprobs"]
            yield "response.content_part.added", {**where, "part": {**part, "text": "", "logprobs": []}}
            yield "response.output_text.delta", {**where, "delta": part["text"], "logprobs": logprobs}
            yield "response.output_text.done", {**where, "text": part["text"], "logprobs": logprobs}
            yield "response.content_part.done", {**where, "part": part}
        else:
            arguments = item["arguments"]
            yield "response.function_call_arguments.delta", {**where, "delta": arguments}
            yield "response.function_call_arguments.done", {**where, "arguments": arguments, "name": item["name"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    end = "response.incomplete" if response["status"] == "incomplete" else "response.completed"
    yield end, {"response": response}
