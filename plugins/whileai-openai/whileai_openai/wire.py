"""Requests and replies of the chat-completions API, as pure functions.

The one message model is this API's own shape, so little happens here: what the API does not know is left out on the
way there, and brought to the one model on the way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import normalise_messages
from whileai_openai.failures import ModelError

__all__ = ["Parsed", "parse", "request_body"]

_KEPT = ("role", "content", "name", "tool_call_id")
Parsed = dict[str, Any]


def request_body(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    sampling: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    *,
    max_tokens_key: str = "max_tokens",
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        model: Name of the model.
        messages: Messages in the one model.
        tools: OpenAI tool dicts.
        sampling: Sampling parameters; `max_tokens` is renamed as the server wants it.
        schema: JSON schema for structured output.
        max_tokens_key: `max_tokens` or `max_completion_tokens`.
        extra: Further keys of the body.
    """
    body: dict[str, Any] = {"model": model, "messages": [_message(m) for m in messages]}
    if tools:
        body["tools"] = [{k: v for k, v in t.items() if not str(k).startswith("x-")} for t in tools]
    for key, value in (sampling or {}).items():
        if value is not None:
            body[max_tokens_key if key == "max_tokens" else key] = value
    if schema is not None:
        name = str(schema.get("title") or "reply")
        name = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)[:64]
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": dict(schema), "strict": True},
        }
    return {**body, **(extra or {})}


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


def parse(payload: Any, who: str) -> Parsed:
    """Return the parts of a `Completion` from a reply's body.

    Raises:
        ModelError: The body is not a completion (kind `malformed`).
    """

    def malformed(why: str) -> ModelError:
        fix = "check that the base URL is an OpenAI-compatible one"
        return ModelError(f"{who} sent no completion", why=why, fix=fix, kind="malformed")

    if not isinstance(payload, Mapping):
        raise malformed(f"the body is {type(payload).__name__}, not an object")
    choices = payload.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise malformed("it has no choices")
    choice = choices[0]
    raw = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(raw, Mapping):
        raise malformed("its first choice has no message")
    reasoning = raw.get("reasoning_content") or raw.get("reasoning")
    known = ("role", "content", "tool_calls", "function_call", "refusal")
    source = {k: raw[k] for k in known if raw.get(k) is not None} | {"role": "assistant"}
    if source.get("refusal") and not source.get("content"):
        source["content"] = source["refusal"]
    try:
        message = normalise_messages([source])[0]
    except (RowError, AttributeError, TypeError) as err:
        raise malformed(f"its message cannot be read: {err}") from err
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
