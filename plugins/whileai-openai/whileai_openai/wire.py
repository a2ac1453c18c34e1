"""Requests and replies of the chat-completions API, as pure functions.

The one message model is this API's own shape, so little happens here: what the API does not know is left out on the
way there, and brought to the one model on the way back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import normalise_messages
from whileai_openai.failures import ModelError

__all__ = ["STRUCTURED", "Parsed", "holds_strictly", "parse", "parse_all", "request_body"]

_KEPT = ("role", "content", "name", "tool_call_id")
Parsed = dict[str, Any]
STRUCTURED = ("json_schema", "json_object", "none")
"""What a server holds a reply to: a JSON schema, any JSON object, nothing."""


def request_body(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    sampling: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    *,
    structured: str = "json_schema",
    max_tokens_key: str = "max_tokens",
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        model: Name of the model.
        messages: Messages in the one model.
        tools: OpenAI tool dicts.
        sampling: Sampling parameters; `max_tokens` is renamed as the server wants it.
        schema: JSON schema of the reply. What the server does not hold it to is asked for in words.
        structured: What the server holds a reply to, one of `STRUCTURED`.
        max_tokens_key: `max_tokens` or `max_completion_tokens`.
        extra: Further keys of the body.
    """
    sent = [_message(m) for m in messages]
    if schema is not None and structured != "json_schema":
        sent = _in_words(sent, schema)
    body: dict[str, Any] = {"model": model, "messages": sent}
    if tools:
        body["tools"] = [{k: v for k, v in t.items() if not str(k).startswith("x-")} for t in tools]
    for key, value in (sampling or {}).items():
        if value is not None:
            body[max_tokens_key if key == "max_tokens" else key] = value
    if schema is not None and structured == "json_object":
        body["response_format"] = {"type": "json_object"}
    elif schema is not None and structured == "json_schema":
        name = str(schema.get("title") or "reply")
        name = "".join(c if (c.isascii() and c.isalnum()) or c in "_-" else "_" for c in name)[:64]
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": dict(schema), "strict": holds_strictly(schema)},
        }
    return {**body, **(extra or {})}


def holds_strictly(schema: Any) -> bool:
    """Return whether a schema is of the kind that strict mode takes: every object closed, every property required.

    Example:
        >>> closed = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
        >>> holds_strictly(closed)
        True
        >>> holds_strictly({"type": "object", "properties": {"a": {}}})
        False
    """
    if isinstance(schema, Mapping):
        if "properties" in schema or schema.get("type") == "object":
            named = schema.get("properties") or {}
            if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != set(named):
                return False
        return all(holds_strictly(value) for value in schema.values())
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return all(holds_strictly(value) for value in schema)
    return True


def _in_words(messages: list[dict[str, Any]], schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages with the schema in the system prompt, where every server takes it."""
    text = json.dumps(schema, ensure_ascii=False)
    wish = f"Answer with one JSON object and nothing else. It satisfies this JSON schema: {text}"
    if messages and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        first = {**messages[0], "content": f"{messages[0]['content']}\n\n{wish}".strip()}
        return [first, *messages[1:]]
    return [{"role": "system", "content": wish}, *messages]


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {k: message[k] for k in _KEPT if message.get(k) is not None}
    if message.get("content_parts"):
        out["content"] = message["content_parts"]
    calls = message.get("tool_calls") or ()
    if calls:
        out["tool_calls"] = [
            {
                "id": call.get("id") or f"call_{n}",
                "type": "function",
                "function": {
                    "name": (call.get("function") or {}).get("name", ""),
                    "arguments": (call.get("function") or {}).get("arguments") or "{}",
                },
            }
            for n, call in enumerate(calls)
        ]
        out["content"] = out.get("content") or None
    else:
        out.setdefault("content", "")
    return out


def _malformed(who: str, why: str) -> ModelError:
    fix = "check that the base URL is an OpenAI-compatible one"
    return ModelError(f"{who} sent no completion", why=why, fix=fix, kind="malformed")


def parse(payload: Any, who: str) -> Parsed:
    """Return the parts of a `Completion` from a reply's body: of its first choice.

    Raises:
        ModelError: The body is not a completion (kind `malformed`).
    """
    return parse_all(payload, who)[0]


def parse_all(payload: Any, who: str) -> list[Parsed]:
    """Return the parts of a `Completion` for each choice of a reply's body; the usage is that of the whole reply.

    Raises:
        ModelError: The body is not a completion (kind `malformed`).
    """
    if not isinstance(payload, Mapping):
        raise _malformed(who, f"the body is {type(payload).__name__}, not an object")
    choices = payload.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise _malformed(who, "it has no choices")
    return [_choice(payload, choice, who) for choice in choices]


def _choice(payload: Mapping[str, Any], choice: Any, who: str) -> Parsed:
    raw = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(raw, Mapping):
        raise _malformed(who, "a choice has no message")
    reasoning = raw.get("reasoning_content") or raw.get("reasoning")
    known = ("role", "content", "tool_calls", "function_call", "refusal")
    source = {k: raw[k] for k in known if raw.get(k) is not None} | {"role": "assistant"}
    if source.get("refusal") and not source.get("content"):
        source["content"] = source["refusal"]
    try:
        message = normalise_messages([source])[0]
    except (RowError, AttributeError, TypeError) as err:
        raise _malformed(who, f"its message cannot be read: {err}") from err
    if isinstance(reasoning, str) and reasoning:
        message["reasoning_content"] = reasoning
    for n, call in enumerate(message.get("tool_calls") or ()):
        call["id"] = call.get("id") or f"call_{n}"
    usage = payload.get("usage")
    logprobs = choice.get("logprobs")
    return {
        "message": message,
        "finish_reason": choice.get("finish_reason"),
        "model": str(payload.get("model") or ""),
        "usage": _usage(usage) if isinstance(usage, Mapping) else {},
        "logprobs": logprobs.get("content") if isinstance(logprobs, Mapping) else logprobs,
        "prompt_ids": payload.get("prompt_token_ids") or choice.get("prompt_token_ids"),
        "completion_ids": choice.get("token_ids"),
    }


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    out = {k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool)}
    for outer in ("prompt_tokens_details", "completion_tokens_details"):
        details = usage.get(outer)
        if isinstance(details, Mapping):
            out.update(
                {k: v for k, v in details.items() if isinstance(v, int) and k in ("cached_tokens", "reasoning_tokens")}
            )
    return out
