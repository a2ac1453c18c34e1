# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""OpenTelemetry (three generations), OpenInference, Langfuse, LangSmith and the Agents SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import RowError
from whileai_kernel.messages import tool_calls
from whileai_traces import read


def write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
    return path


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": otlp_value(v)} for k, v in value.items()]}}
    return {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": otlp_value(v)} for k, v in attributes.items()]


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    shaped = [
        {"traceId": s.get("trace", "t1"), "spanId": s.get("id", f"s{n}"), "name": s.get("name", "chat m"), "startTimeUnixNano": str(n),
         "attributes": pairs(s.get("attributes", {})),
         "events": [{"name": name, "attributes": pairs(a)} for name, a in s.get("events", [])], "status": s.get("status", {})}
        for n, s in enumerate(spans)
    ]  # fmt: skip
    return {
        "resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": shaped}]}]
    }


CURRENT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"hi"}]}]',
    "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"f","arguments":{"k":1}}],"finish_reason":"tool_call"}]',
}
INDEXED = {
    "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hi", "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.finish_reason": "tool_calls",
    "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "f", "gen_ai.completion.0.tool_calls.0.arguments": '{"k": 1}',
}  # fmt: skip
TOOL_CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"k": 1}'}}]
EVENTS = [
    ("gen_ai.user.message", {"content": "hi"}),
    (
        "gen_ai.choice",
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": json.dumps({"role": "assistant", "tool_calls": TOOL_CALLS}),
        },
    ),
]
NESTED_EVENTS = [
    ("gen_ai.user.message", {"content": "hi"}),
    (
        "gen_ai.choice",
        {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": TOOL_CALLS}},
    ),
]
SHAPES = {
    "current": {"attributes": CURRENT},
    "indexed": {"attributes": INDEXED},
    "events": {"attributes": {"gen_ai.system": "openai"}, "events": EVENTS},
    "operation-event": {
        "attributes": {"gen_ai.operation.name": "chat"},
        "events": [
            ("gen_ai.client.inference.operation.details", {k: v for k, v in CURRENT.items() if "messages" in k})
        ],
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_three_generations_of_conventions_give_the_same_row(tmp_path: Path, shape: str) -> None:
    row = read(write(tmp_path / "otlp.json", otlp(SHAPES[shape])))[0]
    assert [(m["role"], m["content"]) for m in row["messages"]] == [("user", "hi"), ("assistant", "")]
    assert [(c.id, c.name, c.arguments) for c in tool_calls(row["messages"])] == [("c1", "f", {"k": 1})]
    assert row["finish_reason"] == "tool_calls"
    reference = read(write(tmp_path / "current.json", otlp(SHAPES["current"])))[0]
    assert row["messages"] == reference["messages"]
    assert row["task_id"] == reference["task_id"]


def test_events_as_log_records_belong_to_their_span(tmp_path: Path) -> None:
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"traceId": "t1", "spanId": "s0", "eventName": name, "body": otlp_value(body)} for name, body in NESTED_EVENTS]}]}]}  # fmt: skip
    span = otlp({"attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}})
    for order in ([span, logs], [logs, span]):
        data = read(write(tmp_path / "x.jsonl", *order))
        assert len(data) == 1
        assert data[0]["policy"]["model"] == "m"
        assert tool_calls(data[0]["messages"])[0].arguments == {"k": 1}


def test_when_several_are_present_the_current_convention_wins(tmp_path: Path) -> None:
    both = {**CURRENT, **{k: "old" for k in INDEXED if k.endswith("content")}, "gen_ai.prompt.0.role": "user"}
    assert read(write(tmp_path / "x.json", otlp({"attributes": both})))[0]["prompt"] == "hi"


def test_a_span_without_content_is_reported_and_is_no_empty_conversation(tmp_path: Path) -> None:
    silent = {"attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}}
    for empty in (silent, {"attributes": {"gen_ai.prompt": "[]"}}):
        with pytest.raises(RowError) as err:
            read(write(tmp_path / "x.json", otlp(empty)))
        assert "content not captured" in str(err.value)
    data = read(write(tmp_path / "y.json", otlp({"attributes": CURRENT}, {**silent, "trace": "t2"})))
    assert len(data) == 1
    assert "content not captured" in data.warnings[0]


def test_the_last_call_of_an_agent_holds_the_conversation_and_a_second_agent_its_own(tmp_path: Path) -> None:
    second = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 9, "gen_ai.request.temperature": 0.5,
        "gen_ai.system_instructions": '[{"type":"text","content":"Be brief."}]',
        "gen_ai.tool.definitions": '[{"type":"function","name":"f","parameters":{"type":"object","properties":{"k":{"type":"integer"}}}}]',
        "gen_ai.input.messages": json.dumps([
            {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "tool_call", "id": "c1", "name": "f", "arguments": '{"k": 1}'}]},
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "one"}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"}]),
        "gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.75, "gen_ai.evaluation.explanation": "fine",
    }  # fmt: skip
    other = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"sub"}]}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"ok"}]}]',
    }
    tool_span = {
        "attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"},
        "name": "execute_tool f",
    }
    data = read(
        write(
            tmp_path / "x.json", otlp({"attributes": CURRENT}, tool_span, {"attributes": other}, {"attributes": second})
        )
    )
    assert sorted(r["final_text"] for r in data) == ["Done.", "ok"]
    row = next(r for r in data if r["final_text"] == "Done.")
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert row["messages"][2]["reasoning_content"] == "hm"
    assert tool_calls(row["messages"])[0].result == "one"
    assert (row["reward"], row["scorer"]) == (0.75, {"id": "otel/relevance", "kind": "judge"})
    assert row["usage"] == {"input_tokens": 9}
    assert row["policy"] == {"model": "m", "sampling": {"temperature": 0.5}}
    assert row["tools"][0]["function"]["name"] == "f"


def test_a_damaged_line_of_otlp_costs_that_line(tmp_path: Path) -> None:
    data = read(
        write(
            tmp_path / "x.jsonl",
            otlp({"attributes": CURRENT}),
            '{"resourceSpans": [',
            otlp({"attributes": CURRENT, "trace": "t2"}),
        )
    )
    assert len(data) == 2
    assert data.provenance["skipped"][0]["where"] == "line 2"


@pytest.mark.integration
def test_spans_of_the_real_sdk(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    for name, shape in SHAPES.items():
        path = tmp_path / f"{name}.json"
        with path.open("w", encoding="utf-8") as out:
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
            with provider.get_tracer("t").start_as_current_span("run"):
                for _ in range(2):
                    with provider.get_tracer("t").start_as_current_span("chat") as span:
                        for key, value in shape["attributes"].items():
                            span.set_attribute(key, value)
                        for event, attributes in shape.get("events", []):
                            span.add_event(event, attributes)
        data = read(path)
        assert data.provenance["formats"] == {"traces/otel": 1}
        assert len(data) == 2
        assert [(c.id, c.name, c.arguments) for c in tool_calls(data[0]["messages"])] == [("c1", "f", {"k": 1})]


OPENINFERENCE = {
    "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 5, "session.id": "z",
    "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text", "llm.input_messages.1.message.contents.0.message_content.text": "hi",
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1", "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "f",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": '{"k": 1}',
    "llm.input_messages.3.message.role": "tool", "llm.input_messages.3.message.content": "one", "llm.input_messages.3.message.tool_call_id": "c1",
    "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Done.",
    "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}',
}  # fmt: skip


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in flat.items():
        node = out
        *path, last = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return out


@pytest.mark.parametrize("container", ["otlp", "phoenix", "dataframe"])
def test_openinference_in_every_container(tmp_path: Path, container: str) -> None:
    if container == "otlp":
        records = [otlp({"attributes": OPENINFERENCE})]
    elif container == "phoenix":
        records = [
            {
                "name": "llm",
                "context": {"trace_id": "t", "span_id": "s"},
                "parent_id": None,
                "span_kind": "LLM",
                "attributes": nested(OPENINFERENCE),
            }
        ]
    else:
        records = [
            {
                "name": "llm",
                "context.trace_id": "t",
                "context.span_id": "s",
                **{f"attributes.{k}": v for k, v in OPENINFERENCE.items()},
            }
        ]
    data = read(
        write(
            tmp_path / "x.jsonl",
            *records,
            {
                "name": "chain",
                "context": {"trace_id": "t", "span_id": "r"},
                "attributes": {"openinference.span.kind": "CHAIN"},
            },
        )
    )
    assert data.provenance["formats"] == {"traces/openinference": 1}
    row = data[0]
    assert [(m["role"], m["content"]) for m in row["messages"]] == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", ""),
        ("tool", "one"),
        ("assistant", "Done."),
    ]
    assert tool_calls(row["messages"])[0].result == "one"
    assert (row["policy"]["model"], row["usage"], row["tools"][0]["function"]["name"]) == ("m", {"prompt": 5}, "f")
    assert row["openinference"]["attributes"]["session.id"] == "z"


def test_openinference_with_input_and_output_values_only(tmp_path: Path) -> None:
    request = json.dumps({"messages": [{"role": "user", "content": "hi"}], "model": "m"})
    response = json.dumps({"choices": [{"message": {"role": "assistant", "content": "yo"}}]})
    attributes = {"openinference.span.kind": "LLM", "input.value": request, "output.value": response}
    assert read(write(tmp_path / "x.json", otlp({"attributes": attributes})))[0]["final_text"] == "yo"


# --- platforms -------------------------------------------------------------------------------------------------------

CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": TOOL_CALLS},
    {"role": "tool", "tool_call_id": "c1", "content": "one"},
]
EXPECTED = [("user", "hi"), ("assistant", ""), ("tool", "one"), ("assistant", "Done.")]


RECORDED = Path(__file__).parent / "recorded"


def test_openinference_really_run() -> None:
    """What openinference-instrumentation-openai 0.1.66 wrote of two chat and two Responses calls."""
    data = read(RECORDED / "openinference_openai_0_1_66.jsonl")
    assert data.provenance["formats"] == {"traces/openinference": 1}
    assert not data.warnings
    assert [r["final_text"] for r in data] == ["It is 4", "It is 4."]
    for row in data:
        assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "tool", "assistant"]
        calls = tool_calls(row["messages"])
        assert [(c.name, c.arguments, c.result) for c in calls] == [
            ("add", {"a": 2, "b": 2}, "4"), ("add", {"a": 2, "b": 0}, "2")]  # fmt: skip
        assert row["tools"][0]["function"]["name"] == "add"
        assert row["usage"]["total"] == 5
    assert data[0]["finish_reason"] == "stop"


def test_items_of_a_response_are_one_turn_and_choices_are_rows_of_their_own(tmp_path: Path) -> None:
    lines = (RECORDED / "openinference_openai_0_1_66.jsonl").read_text(encoding="utf-8").splitlines()
    first = next(r for r in map(json.loads, lines) if r["name"] == "Response")
    (row,) = read(write(tmp_path / "one.jsonl", first))
    assert row["messages"][-1]["reasoning_content"] == "I add."
    assert [c["id"] for c in row["messages"][-1]["tool_calls"]] == ["call_2_0", "call_2_1"]
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "q",
        "llm.model_name": "m",
        "llm.invocation_parameters": '{"model": "m", "temperature": 0.5}',
        "output.value": json.dumps({"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}),
        **{f"llm.output_messages.{n}.message.role": "assistant" for n in range(2)},
        **{f"llm.output_messages.{n}.message.content": c for n, c in enumerate("ab")},
    }
    both = read(write(tmp_path / "two.jsonl", {"name": "x", "attributes": attributes}))
    assert [r["final_text"] for r in both] == ["a", "b"]
    assert both[0]["policy"] == {"model": "m", "sampling": {"temperature": 0.5}}


def test_agents_sdk_really_run() -> None:
    """What openai-agents 0.24 wrote: whole messages for chat models, an id alone for the Responses API."""
    data = read(RECORDED / "agents_sdk_0_24_chat.jsonl")
    (row,) = data
    assert not data.warnings
    assert [m["role"] for m in row["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool", "tool", "assistant"]  # fmt: skip
    assert [c.result for c in tool_calls(row["messages"])] == ["4", "2", "6", "3"]
    assert row["policy"] == {"model": "scripted"}
    assert row["agents_sdk"]["workflow_name"] == "sums"
    assert row["lineage"].get("incomplete") is None
    with pytest.raises(RowError, match="not one row") as err:
        read(RECORDED / "agents_sdk_0_24_responses.jsonl")
    assert "exports a call of the Responses API as its id alone (resp_1)" in str(err.value)


def said(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in row["messages"]]


def test_langfuse_traces_and_single_observations(tmp_path: Path) -> None:
    first = {
        "id": "o1",
        "traceId": "t",
        "type": "GENERATION",
        "startTime": "1",
        "model": "m",
        "input": CHAT[:1],
        "output": CHAT[1],
        "parentObservationId": None,
    }
    last = {
        **first,
        "id": "o2",
        "startTime": "2",
        "input": {"messages": CHAT, "tools": [{"type": "function", "function": {"name": "f"}}]},
        "output": {"role": "assistant", "content": "Done."},
        "usageDetails": {"input": 3},
    }
    trace = {
        "id": "t", "name": "run", "timestamp": "0", "input": "hi", "output": "Done.", "observations": [last, {"type": "SPAN", "id": "x"}, first],
        "scores": [{"name": "helpful", "value": 1, "dataType": "BOOLEAN", "source": "ANNOTATION", "comment": "good"}, {"name": "stars", "value": 4, "dataType": "NUMERIC", "source": "EVAL"}],
    }  # fmt: skip
    data = read(
        write(
            tmp_path / "t.jsonl",
            trace,
            "{cut",
            {**trace, "id": "u", "observations": [{**last, "traceId": "u"}], "scores": []},
        )
    )
    row = data[0]
    assert len(data) == 2
    assert said(row) == EXPECTED
    assert (row["reward"], row["scorer"], row["reason"]) == (1.0, {"id": "langfuse/helpful", "kind": "human"}, "good")
    assert (row["judgments"][0]["status"], row["judgments"][0]["scorer"]["kind"]) == ("invalid", "judge")
    assert (row["usage"], row["tools"][0]["function"]["name"]) == ({"input": 3}, "f")
    assert data.provenance["skipped"][0]["where"] == "line 2"
    assert [said(r) for r in read(write(tmp_path / "o.jsonl", first, last))] == [EXPECTED]
    bare = {"id": "t", "name": "run", "observations": [], "scores": [], "input": "hi", "output": "yo"}
    assert said(read(write(tmp_path / "b.json", bare))[0]) == [("user", "hi"), ("assistant", "yo")]


def test_langfuse_observations_of_the_v2_api_and_of_blob_storage(tmp_path: Path) -> None:
    """The v2 API lists observations under data with text for input and output; blob storage writes them in snake case."""
    said_ = [json.dumps(CHAT[:1]), json.dumps(CHAT[1])]
    first = {
        "id": "o1", "traceId": "t", "type": "GENERATION", "startTime": "1", "parentObservationId": None, "providedModelName": "m",
        "modelParameters": '{"temperature": 0.5}', "usageDetails": {"input": 2}, "input": said_[0], "output": said_[1],
    }  # fmt: skip
    last = {
        **first,
        "id": "o2",
        "startTime": "2",
        "input": json.dumps(CHAT),
        "output": '{"role": "assistant", "content": "Done."}',
    }
    page = {"data": [last, {**first, "id": "s", "type": "SPAN"}, first], "meta": {"cursor": None}}
    (row,) = data = read(write(tmp_path / "page.json", page))
    assert data.provenance["formats"] == {"traces/langfuse": 1}
    assert said(row) == EXPECTED
    assert row["policy"] == {"model": "m", "sampling": {"temperature": 0.5}}
    names = {
        "traceId": "trace_id", "parentObservationId": "parent_observation_id", "startTime": "start_time",
        "providedModelName": "provided_model_name", "modelParameters": "model_parameters", "usageDetails": "usage_details",
    }  # fmt: skip
    blob = [{names.get(k, k): v for k, v in o.items()} for o in (last, first)]
    (same,) = data = read(write(tmp_path / "blob.jsonl", *blob))
    assert data.provenance["formats"] == {"traces/langfuse": 1}
    assert (same["messages"], same["policy"], same["usage"]) == (row["messages"], row["policy"], row["usage"])
    download = {"trace": {"id": "t", "name": "run", "scores": []}, "observations": [last, first]}
    (whole,) = read(write(tmp_path / "trace-t.json", download))
    assert whole["messages"] == row["messages"]
    assert whole["langfuse"]["name"] == "run"


def test_langsmith_runs_in_openai_and_in_langchain_shape(tmp_path: Path) -> None:
    def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}

    chain = {
        "id": "r",
        "trace_id": "r",
        "run_type": "chain",
        "inputs": {},
        "outputs": {},
        "dotted_order": "0",
        "feedback_stats": {"correct": {"n": 1, "avg": 1.0}},
    }
    serialised = {
        "id": "a", "trace_id": "r", "run_type": "llm", "dotted_order": "1", "extra": {"invocation_params": {"model": "m"}},
        "inputs": {"messages": [[lc("HumanMessage", content="hi"), lc("AIMessage", content="", tool_calls=[{"id": "c1", "name": "f", "args": {"k": 1}}]), lc("ToolMessage", content="one", tool_call_id="c1")]]},
        "outputs": {"generations": [[{"text": "Done.", "message": lc("AIMessage", content="Done.")}]]},
    }  # fmt: skip
    openai = {
        **serialised,
        "id": "b",
        "trace_id": "s",
        "inputs": {"messages": CHAT},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": "Done."}}]},
    }
    data = read(write(tmp_path / "runs.jsonl", chain, serialised, "[broken", openai))
    assert [said(r) for r in data] == [EXPECTED, EXPECTED]
    assert (data[0]["reward"], data[0]["scorer"]["id"], data[1]["reward"]) == (1.0, "langsmith/correct", None)
    assert tool_calls(data[0]["messages"])[0].arguments == {"k": 1}
    tree = {**chain, "child_runs": [{k: v for k, v in serialised.items() if k != "trace_id"}]}
    assert said(read(write(tmp_path / "tree.json", [tree]))[0]) == EXPECTED


def test_agents_sdk_traces_one_by_one_and_in_batches(tmp_path: Path) -> None:
    def span(n: int, **data: Any) -> dict[str, Any]:
        return {
            "object": "trace.span",
            "id": f"s{n}",
            "trace_id": "t",
            "started_at": str(n),
            "span_data": data,
            "error": None,
        }

    trace = {"object": "trace", "id": "t", "workflow_name": "flow", "group_id": None, "metadata": {}}
    first = span(1, type="generation", input=CHAT[:1], output=[CHAT[1]], model="m", usage={"input_tokens": 1})
    function = span(2, type="function", name="f", input='{"k": 1}', output="one")
    last = span(
        3,
        type="generation",
        input=CHAT,
        output=[{"role": "assistant", "content": "Done."}],
        model="m",
        model_config={"temperature": 0},
    )
    data = read(write(tmp_path / "t.jsonl", trace, first, function, last))
    assert [said(r) for r in data] == [EXPECTED]
    assert (data[0]["policy"], data[0]["agents_sdk"]["workflow_name"]) == (
        {"model": "m", "sampling": {"temperature": 0}},
        "flow",
    )
    assert [said(r) for r in read(write(tmp_path / "b.json", {"data": [trace, first, function, last]}))] == [EXPECTED]
    items = span(1, type="response", input=[{"role": "user", "content": "hi"}], response={
        "instructions": "Be brief.", "model": "m", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]}]})  # fmt: skip
    assert said(read(write(tmp_path / "r.jsonl", trace, items))[0]) == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", "yo"),
    ]
    silent = span(1, type="response", response_id="resp_1")
    assert "content not captured" in read(write(tmp_path / "s.jsonl", trace, items, silent)).warnings[0]
