"""Spans of OpenTelemetry: their containers, and the GenAI conventions (three generations).

Containers: OTLP JSON (spans and log records), the JSON of the Python SDK's console exporter, and exports with plain
or nested attributes (Phoenix). Where a span holds its content in more than one way, the first of these is read:
the JSON attributes of the current conventions, then message events, then indexed attributes, then the plain
`gen_ai.prompt` and `gen_ai.completion`. A span without content is reported as such; it is not an empty conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score
from whileai_traces.defaults import CERTAIN
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping
from whileai_traces.formats.turns import ModelCall, decoded, emit, unflatten

__all__ = ["FINISH", "NO_CONTENT", "OtelGenAI", "Span", "is_span_like", "joined", "span_shape", "spans_of"]

NO_CONTENT = "content not captured: the span names a model call but holds no messages (content capture is opt-in)"
FINISH = {"tool_call": "tool_calls", "max_tokens": "length", "end_turn": "stop", "tool_use": "tool_calls"}


@dataclass(slots=True)
class Span:
    """One span, whatever container it came in; attribute names are flat."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: str
    where: str
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


def _any_value(value: Any) -> Any:
    """Return a value of OTLP's `AnyValue`."""
    value = as_mapping(value)
    if "intValue" in value:
        return int(value["intValue"])
    for key in ("stringValue", "doubleValue", "boolValue", "bytesValue"):
        if key in value:
            return value[key]
    if "arrayValue" in value:
        return [_any_value(v) for v in as_list(as_mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return _pairs(as_mapping(value["kvlistValue"]).get("values"))
    return None


def _pairs(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return _flat(value)
    return {str(as_mapping(p).get("key")): _any_value(as_mapping(p).get("value")) for p in as_list(value)}


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested objects as flat names; lists of objects get their index, other lists stay."""
    out: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            out.update(_flat(inner, f"{name}."))
        elif (
            isinstance(inner, list)
            and inner
            and all(isinstance(i, Mapping) for i in inner)
            and not name.startswith("gen_ai.")
        ):
            for n, item in enumerate(inner):
                out.update(_flat(item, f"{name}.{n}."))
        else:
            out[name] = inner
    return out


def spans_of(records: Records) -> Iterator[Span]:
    """Yield the spans of records in any known container; log records become events of their span."""
    for where, record in records:
        record = as_mapping(record)
        if "resourceSpans" in record or "resourceLogs" in record:
            yield from _otlp(where, record)
        elif "spans" in record:
            for number, span in enumerate(as_list(record["spans"]), start=1):
                yield _plain(f"{where}, span {number}", as_mapping(span))
        elif record:
            yield _plain(where, record)


def _otlp(where: str, record: Mapping[str, Any]) -> Iterator[Span]:
    number = 0
    for resource in as_list(record.get("resourceSpans")):
        resource = as_mapping(resource)
        for scope in as_list(resource.get("scopeSpans")) + as_list(resource.get("instrumentationLibrarySpans")):
            for span in as_list(as_mapping(scope).get("spans")):
                number += 1
                yield _plain(f"{where}, span {number}", as_mapping(span))
    for resource in as_list(record.get("resourceLogs")):
        for scope in as_list(as_mapping(resource).get("scopeLogs")):
            for log in as_list(as_mapping(scope).get("logRecords")):
                number += 1
                log = as_mapping(log)
                attributes = _pairs(log.get("attributes"))
                body = _any_value(log.get("body"))
                name = log.get("eventName") or attributes.get("event.name")
                event = {"name": name, "attributes": {**attributes, **(body if isinstance(body, dict) else {})}}
                yield Span(
                    str(log.get("traceId")),
                    str(log.get("spanId")),
                    None,
                    "",
                    str(log.get("timeUnixNano", "")),
                    f"{where}, log {number}",
                    {},
                    [event],
                )


def _plain(where: str, span: Mapping[str, Any]) -> Span:
    context = as_mapping(span.get("context")) or span
    flat = {
        k.removeprefix("attributes."): v for k, v in span.items() if isinstance(k, str) and k.startswith("attributes.")
    }
    attributes = _pairs(span.get("attributes")) if span.get("attributes") is not None else _flat(flat)
    events = [
        {"name": e.get("name"), "attributes": _pairs(e.get("attributes"))}
        for e in map(as_mapping, as_list(span.get("events")))
    ]
    status = as_mapping(span.get("status"))
    code = status.get("code", status.get("status_code", span.get("status_code")))
    failed = str(code) in ("2", "ERROR", "STATUS_CODE_ERROR")
    return Span(
        trace=str(context.get("trace_id") or context.get("traceId") or span.get("context.trace_id") or where),
        id=str(context.get("span_id") or context.get("spanId") or span.get("context.span_id") or where),
        parent=span.get("parent_id") or span.get("parentSpanId"),
        name=str(span.get("name") or ""),
        start=str(span.get("start_time") or span.get("startTimeUnixNano") or span.get("startTime") or ""),
        where=where,
        attributes=attributes,
        events=events,
        error=str(status.get("message") or status.get("description") or "error") if failed else None,
    )


def joined(records: Records) -> list[Span]:
    """Return the spans with the events that log records hold for them."""
    spans: dict[tuple[str, str], Span] = {}
    for span in spans_of(records):
        known = spans.get((span.trace, span.id))
        if known is None:
            spans[(span.trace, span.id)] = span
        elif span.attributes or span.name:
            span.events = [*known.events, *span.events]
            spans[(span.trace, span.id)] = span
        else:
            known.events += span.events
    return list(spans.values())


def span_shape(record: Any) -> Mapping[str, Any]:
    """Return the attribute names (as keys) of the first spans of a record, for detection."""
    names: dict[str, Any] = {}
    for n, span in enumerate(spans_of([("", record)])):
        names.update(span.attributes)
        names.update({f"event:{e['name']}": None for e in span.events})
        if n >= 20:
            break
    return names


def is_span_like(record: Any) -> bool:
    """Say whether a record holds spans, or is one."""
    keys = as_mapping(record).keys()
    return bool(keys & {"resourceSpans", "resourceLogs", "attributes", "spans"}) or any(
        str(k).startswith("attributes.") for k in keys
    )


class OtelGenAI(JsonSource):
    """OpenTelemetry GenAI spans: one row per conversation of a trace."""

    name = "otel"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when spans have `gen_ai.` attributes or events; less so for other OTLP files."""
        best = 0.0
        for record in filter(is_span_like, records):
            names = span_shape(record)
            if any(n.startswith(("gen_ai.", "event:gen_ai.")) for n in names):
                best = max(best, CERTAIN.value - 0.05)
            elif as_mapping(record).keys() & {"resourceSpans", "resourceLogs"}:
                best = max(best, 0.3)
        return best

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; the file is read whole, since spans of a trace may be anywhere in it."""
        calls = []
        others = 0
        for span in joined(records):
            if not _is_model_call(span):
                others += 1
                continue
            call = _genai_call(span)
            if call is None:
                build.problem(span.where, NO_CONTENT)
            else:
                calls.append(call)
        if others and not calls:
            build.problem("file", f"{others} spans are no model calls")
        yield from emit(calls, build)


MODEL_OPERATIONS = ("chat", "generate_content", "text_completion", "completion")


def _is_model_call(span: Span) -> bool:
    operation = span.attributes.get("gen_ai.operation.name")
    if operation is not None:
        return operation in MODEL_OPERATIONS
    content = ("gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages")
    return any(n.startswith(content) for n in span.attributes) or any(
        str(e["name"]).startswith("gen_ai.") for e in span.events
    )


def _genai_call(span: Span) -> ModelCall | None:
    attributes = dict(span.attributes)
    for event in span.events:
        if str(event["name"]).startswith("gen_ai.client.inference"):
            attributes = {**event["attributes"], **attributes}
    found = _from_json(attributes) or _from_events(span.events) or _from_indexed(attributes)
    if found is None:
        return None
    history, replies, finishes = found
    told = decoded(attributes.get("gen_ai.system_instructions"))
    if told and not any(m.get("role") in ("system", "developer") for m in history):
        history.insert(0, {"role": "system", "content": _parts_text(told)})
    finishes = finishes or [
        FINISH.get(str(f), f) for f in as_list(decoded(attributes.get("gen_ai.response.finish_reasons")))
    ]
    tools = decoded(attributes.get("gen_ai.tool.definitions")) or unflatten(attributes, "llm.request.functions")
    usage = {k.removeprefix("gen_ai.usage."): v for k, v in attributes.items() if k.startswith("gen_ai.usage.")}
    model = attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model")
    sampling = {
        k.removeprefix("gen_ai.request."): v
        for k, v in attributes.items()
        if k.startswith("gen_ai.request.") and k != "gen_ai.request.model"
    }
    used = ("gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages",
            "gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.usage.", "gen_ai.request.",
            "gen_ai.response.model", "llm.request.functions")  # fmt: skip
    return ModelCall(
        where=span.where,
        group=span.trace,
        order=span.start,
        history=history,
        replies=replies,
        columns={
            "tools": as_list(tools),
            "usage": usage,
            "policy": {"model": model, **({"sampling": sampling} if sampling else {})} if model else None,
            "finish_reasons": finishes,
            "error": {"type": "recorded", "message": span.error} if span.error else None,
            "outcome": "failed" if span.error else None,
        },
        scores=_evaluations(span),
        rest={
            "span": span.id,
            "name": span.name,
            "attributes": {k: v for k, v in attributes.items() if not k.startswith(used)},
        },
    )


def _evaluations(span: Span) -> list[Score]:
    out = []
    for attributes in (span.attributes, *(e["attributes"] for e in span.events)):
        name = attributes.get("gen_ai.evaluation.name")
        if name:
            evidence = (
                {"label": attributes["gen_ai.evaluation.score.label"]}
                if "gen_ai.evaluation.score.label" in attributes
                else {}
            )
            out.append(Score(f"otel/{name}", attributes.get("gen_ai.evaluation.score.value"), kind="judge",
                             reason=attributes.get("gen_ai.evaluation.explanation"), evidence=evidence))  # fmt: skip
    return out


Found = tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], list[str]]


def _from_json(attributes: Mapping[str, Any]) -> Found | None:
    sent = as_list(decoded(attributes.get("gen_ai.input.messages")))
    answered = as_list(decoded(attributes.get("gen_ai.output.messages")))
    if not sent and not answered:
        return None
    history = [m for message in sent for m in _from_parts(as_mapping(message))]
    replies = [m for message in answered for m in _from_parts({"role": "assistant", **as_mapping(message)})]
    finishes = [FINISH.get(str(f), str(f)) for m in answered if (f := as_mapping(m).get("finish_reason"))]
    return history, replies, finishes


def _from_parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the chat messages of one message with parts: results become tool messages, whoever is said to speak."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return [{k: decoded(v) if k == "tool_calls" else v for k, v in message.items()}]
    out: list[Mapping[str, Any]] = []
    rest: list[dict[str, Any]] = []
    calls, thoughts = [], []
    for part in map(as_mapping, parts):
        kind = part.get("type")
        if kind == "tool_call_response":
            answer = part.get("response", part.get("result", part.get("content")))
            out.append(
                {
                    "role": "tool",
                    "tool_call_id": part.get("id") or "",
                    "content": answer if isinstance(answer, str) else _json(answer),
                }
            )
        elif kind == "tool_call":
            calls.append({"id": part.get("id") or "", "name": part.get("name"), "arguments": part.get("arguments")})
        elif kind in ("reasoning", "thinking"):
            thoughts.append(str(part.get("content") or ""))
        elif kind == "text":
            rest.append({"type": "text", "text": part.get("content", part.get("text", ""))})
        else:
            rest.append(dict(part))
    if rest or calls or thoughts or not out:
        spoken: dict[str, Any] = {"role": message.get("role"), "content": rest}
        if calls:
            spoken["tool_calls"] = calls
        if thoughts:
            spoken["reasoning_content"] = "\n".join(thoughts)
        out.append(spoken)
    return out


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _parts_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = [
        p if isinstance(p, str) else str(as_mapping(p).get("content") or as_mapping(p).get("text") or "")
        for p in as_list(value)
    ]
    return "\n".join(t for t in texts if t)


EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _from_events(events: list[dict[str, Any]]) -> Found | None:
    history: list[Mapping[str, Any]] = []
    replies: list[Mapping[str, Any]] = []
    finishes = []
    for event in events:
        attributes = {k: decoded(v) for k, v in event["attributes"].items()}
        name = str(event["name"])
        if name in EVENT_ROLES:
            message: dict[str, Any] = {"role": EVENT_ROLES[name], "content": attributes.get("content", "")}
            if name == "gen_ai.tool.message":
                message["tool_call_id"] = attributes.get("id") or ""
                message["content"] = (
                    message["content"] if isinstance(message["content"], str) else _json(message["content"])
                )
            if attributes.get("tool_calls"):
                message["tool_calls"] = attributes["tool_calls"]
            history.append(message)
        elif name == "gen_ai.choice":
            nested = unflatten(attributes, "message")
            said = as_mapping(nested) or ({"content": nested} if isinstance(nested, str) else attributes)
            reply: dict[str, Any] = {"role": "assistant", "content": said.get("content", "")}
            if said.get("tool_calls") or attributes.get("tool_calls"):
                reply["tool_calls"] = said.get("tool_calls") or attributes["tool_calls"]
            replies.append(reply)
            if attributes.get("finish_reason"):
                finishes.append(FINISH.get(str(attributes["finish_reason"]), str(attributes["finish_reason"])))
    return (history, replies, finishes) if history or replies else None


def _from_indexed(attributes: Mapping[str, Any]) -> Found | None:
    sent, answered = unflatten(attributes, "gen_ai.prompt"), unflatten(attributes, "gen_ai.completion")
    if isinstance(sent, str):
        sent = [{"role": "user", "content": sent}] if sent else []
    if isinstance(answered, str):
        answered = [{"role": "assistant", "content": answered}] if answered else []
    history = [{"role": "user", **_indexed(as_mapping(m))} for m in as_list(sent)]
    replies = [{"role": "assistant", **_indexed(as_mapping(m))} for m in as_list(answered)]
    finishes = [FINISH.get(str(f), str(f)) for m in as_list(answered) if (f := as_mapping(m).get("finish_reason"))]
    return (list(history), list(replies), finishes) if history or replies else None


def _indexed(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in message.items() if k in ("role", "content", "tool_call_id") and v is not None}
    calls = as_list(message.get("tool_calls"))
    if calls:
        out["tool_calls"] = calls
    content = decoded(out.get("content"))
    if isinstance(content, list) and all(isinstance(p, Mapping) and "type" in p for p in content):
        out["content"] = content
    return out
