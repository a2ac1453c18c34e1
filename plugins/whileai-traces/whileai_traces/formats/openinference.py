"""Spans with OpenInference attributes (Phoenix and others): one row per conversation of a trace.

Instrumentations of the Responses API record each item of a turn (reasoning, text, every call) as a message of its
own; here they are one turn again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from whileai_kernel.messages import text_of
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder
from whileai_traces.defaults import CERTAIN
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping
from whileai_traces.formats.spans import FINISH, NO_CONTENT, Span, is_span_like, joined, span_shape
from whileai_traces.formats.turns import ModelCall, decoded, emit, unflatten

__all__ = ["OpenInference"]


class OpenInference(JsonSource):
    """OpenInference spans (Phoenix and others): one row per conversation of a trace."""

    name = "openinference"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when spans name their OpenInference kind or hold `llm.` messages."""
        for record in filter(is_span_like, records):
            names = span_shape(record)
            if "openinference.span.kind" in names or any(
                n.startswith(("llm.input_messages", "llm.output_messages")) for n in names
            ):
                return CERTAIN.value
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; the file is read whole."""
        calls = []
        for span in joined(records):
            if (
                not any(n.startswith("llm.") for n in span.attributes)
                and span.attributes.get("openinference.span.kind") != "LLM"
            ):
                continue
            call = _openinference_call(span)
            if call is None:
                build.problem(span.where, NO_CONTENT)
            else:
                calls.append(call)
        yield from emit(calls, build)


def _openinference_call(span: Span) -> ModelCall | None:
    attributes = span.attributes
    sent = _turns([_message(m) for m in as_list(unflatten(attributes, "llm.input_messages"))])
    answered = [_message(m) for m in as_list(unflatten(attributes, "llm.output_messages"))]
    if len(answered) > 1 and _is_one_turn(answered, as_mapping(decoded(attributes.get("output.value")))):
        answered = [_joined_turn(answered)]
    if not sent:
        value = decoded(attributes.get("input.value"))
        messages = as_mapping(value).get("messages")
        sent = [dict(as_mapping(m)) for m in as_list(messages)] or (
            [{"role": "user", "content": value}] if isinstance(value, str) and value else []
        )
    if not answered and isinstance(attributes.get("output.value"), str) and attributes["output.value"]:
        value = as_mapping(decoded(attributes["output.value"]))
        choice = as_mapping(next(iter(as_list(value.get("choices"))), None))
        answered = (
            [dict(as_mapping(choice["message"]))]
            if choice.get("message")
            else [{"role": "assistant", "content": attributes["output.value"]}]
        )
    if not sent and not answered:
        return None
    tools = [
        decoded(as_mapping(as_mapping(t).get("tool")).get("json_schema"))
        for t in as_list(unflatten(attributes, "llm.tools"))
    ]
    usage = {k.removeprefix("llm.token_count."): v for k, v in attributes.items() if k.startswith("llm.token_count.")}
    used = (
        "llm.input_messages",
        "llm.output_messages",
        "llm.tools",
        "llm.token_count.",
        "llm.model_name",
        "llm.invocation_parameters",
        "llm.finish_reason",
        "input.value",
        "output.value",
    )
    return ModelCall(
        where=span.where,
        group=span.trace,
        order=span.start,
        history=list(sent),
        replies=list(answered),
        columns={
            "tools": [t for t in tools if isinstance(t, Mapping)],
            "usage": usage,
            "finish_reasons": [FINISH.get(str(f), str(f)) for f in [attributes.get("llm.finish_reason")] if f],
            "policy": _policy(attributes),
            "error": {"type": "recorded", "message": span.error} if span.error else None,
            "outcome": "failed" if span.error else None,
        },
        rest={
            "span": span.id,
            "name": span.name,
            "attributes": {k: v for k, v in attributes.items() if not k.startswith(used)},
        },
    )


def _policy(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    model = attributes.get("llm.model_name")
    if not model:
        return None
    said = as_mapping(decoded(attributes.get("llm.invocation_parameters")))
    sampling = {k: v for k, v in said.items() if k not in ("model", "messages", "tools", "input") and v is not None}
    return {"model": model, **({"sampling": sampling} if sampling else {})}


def _message(value: Any) -> dict[str, Any]:
    message = as_mapping(as_mapping(value).get("message")) or as_mapping(value)
    out: dict[str, Any] = {"role": message.get("role"), "content": message.get("content") or ""}
    parts = [as_mapping(as_mapping(p).get("message_content")) for p in as_list(message.get("contents"))]
    thoughts = [str(p["text"]) for p in parts if p.get("type") == "reasoning" and p.get("text")]
    if thoughts:
        out["reasoning_content"] = "\n".join(thoughts)
    texts = [p for p in parts if p.get("text") and p.get("type") != "reasoning"]
    if texts and not out["content"]:
        out["content"] = text_of([{"type": "text", "text": p.get("text")} for p in texts])
    calls = [as_mapping(as_mapping(c).get("tool_call")) for c in as_list(message.get("tool_calls"))]
    if calls:
        out["tool_calls"] = [
            {
                "id": c.get("id") or "",
                "name": as_mapping(c.get("function")).get("name"),
                "arguments": as_mapping(c.get("function")).get("arguments", ""),
            }
            for c in calls
        ]
    if message.get("tool_call_id"):
        out["tool_call_id"] = message["tool_call_id"]
    return out


def _is_one_turn(answered: list[dict[str, Any]], output: Mapping[str, Any]) -> bool:
    """Say whether several recorded answers are the items of one turn (Responses API) and not choices of a chat."""
    if len(as_list(output.get("choices"))) > 1:
        return False
    known = output.get("object") == "response" or bool(as_list(output.get("output")))
    return known or any(m.get("reasoning_content") or m.get("tool_calls") for m in answered)


def _turns(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages in which the items of one turn of the assistant (reasoning, each call) are one message."""
    out: list[dict[str, Any]] = []
    for message in messages:
        last = out[-1] if out else {}
        both = last.get("role") == message.get("role") == "assistant"
        if both and (last.get("tool_calls") or (last.get("reasoning_content") and not last.get("content"))):
            out[-1] = _joined_turn([last, message])
        else:
            out.append(message)
    return out


def _joined_turn(messages: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"role": "assistant"}
    for key in ("content", "reasoning_content"):
        texts = [m[key] for m in messages if isinstance(m.get(key), str) and m[key]]
        if texts or key == "content":
            out[key] = "\n".join(texts)
    calls = [c for m in messages for c in m.get("tool_calls") or ()]
    return {**out, "tool_calls": calls} if calls else out
