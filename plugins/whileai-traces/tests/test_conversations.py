# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""OpenAI chat, Responses, Anthropic and ShareGPT records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.messages import tool_calls
from whileai_traces import read

CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"k": 1}'}}
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}},
    },
}
SAME = [("user", "hi"), ("assistant", "Looking."), ("tool", "ok"), ("assistant", "Done.")]


def one(record: Any, tmp_path: Path, format_: str) -> dict[str, Any]:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    data = read(path)
    assert data.provenance["formats"] == {f"traces/{format_}": 1}
    assert len(data) == 2
    return data[0]


def said(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in row["messages"]]


def test_openai_chat_with_tools_and_extra_keys(tmp_path: Path) -> None:
    record = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [TOOL], "reward": 0.5, "task_id": "a", "mine": 1,
    }  # fmt: skip
    row = one(record, tmp_path, "chat")
    assert said(row) == SAME
    assert (row["reward"], row["task_id"], row["chat"]) == (0.5, "a", {"mine": 1})
    assert row["tools"] == [TOOL]
    assert [(c.id, c.name, c.arguments, c.result) for c in tool_calls(row["messages"])] == [("t1", "f", {"k": 1}, "ok")]


def test_openai_chat_of_the_previous_shape_with_function_calls(tmp_path: Path) -> None:
    record = {"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"k": 1}'}},
        {"role": "function", "name": "f", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]}  # fmt: skip
    row = one(record, tmp_path, "chat")
    assert [(c.name, c.result) for c in tool_calls(row["messages"])] == [("f", "ok")]


def test_a_logged_request_gives_one_row_per_choice(tmp_path: Path) -> None:
    record = {
        "request": {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "model": "m"},
        "response": {"choices": [
            {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"},
            {"message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
        ], "usage": {"total_tokens": 3}},
    }  # fmt: skip
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(record), encoding="utf-8")
    rows = read(path)
    assert [(r["final_text"], r["finish_reason"], r["outcome"], r["index"]) for r in rows] == [
        ("a", "stop", "completed", 0),
        ("b", "length", "truncated", 1),
    ]
    assert rows[0]["task_id"] == rows[1]["task_id"]
    assert rows[0]["usage"] == {"total_tokens": 3}


def test_images_become_text_with_the_parts_kept(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "Red"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        {"type": "text", "text": " car"},
    ]
    row = one(
        {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "yes"}]}, tmp_path, "chat"
    )
    assert row["prompt"] == "Red car"
    assert row["messages"][0]["content_parts"] == parts


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        ([{"role": "assistant", "content": "", "tool_calls": [CALL]}], "ends on a call without a result"),
        ([{"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "t1", "content": "x"}], "ends on a tool result"),
        ([{"role": "assistant", "content": "a"}, {"role": "user", "content": "?"}], "ends on a user message"),
        ([], "ends on a user message"),
    ],
)  # fmt: skip
def test_incomplete_conversations_are_marked(tmp_path: Path, tail: list[dict[str, Any]], reason: str) -> None:
    row = one({"messages": [{"role": "user", "content": "q"}, *tail]}, tmp_path, "chat")
    assert row["lineage"]["incomplete"] == reason
    assert row["outcome"] == "truncated"


def test_anthropic_blocks(tmp_path: Path) -> None:
    record = {
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"k": {"type": "integer"}}}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Looking."}, {"type": "tool_use", "id": "t1", "name": "f", "input": {"k": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}], "is_error": False}]},
        ],
        "response": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "model": "m"},
    }  # fmt: skip
    row = one(record, tmp_path, "anthropic")
    assert said(row) == [("system", "Be brief."), *SAME]
    assert row["messages"][2]["reasoning_content"] == "hm"
    assert (row["finish_reason"], row["policy"]["model"], row["system_prompt"]) == ("stop", "m", "Be brief.")
    assert row["tools"][0]["function"]["parameters"]["properties"] == {"k": {"type": "integer"}}
    assert tool_calls(row["messages"])[0].result == "ok"


def test_responses_objects_with_reasoning_and_parallel_calls(tmp_path: Path) -> None:
    record = {
        "object": "response", "model": "m", "instructions": "Be brief.", "status": "completed",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"k": 1}'},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": '{"k": 2}'},
            {"type": "function_call_output", "call_id": "b", "output": "two"},
            {"type": "function_call_output", "call_id": "a", "output": "one"},
            {"type": "web_search_call", "id": "w"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}],
    }  # fmt: skip
    row = one(record, tmp_path, "responses")
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert {c.id: c.result for c in tool_calls(row["messages"])} == {"a": "one", "b": "two"}
    assert row["messages"][2]["reasoning_content"] == "hm"
    assert row["responses"]["items"] == [{"type": "web_search_call", "id": "w"}]
    assert row["tools"][0]["function"]["name"] == "f"


def test_a_bare_list_of_items_is_one_row(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": {"x": 1}},
    ]
    row = one(items, tmp_path, "responses")
    assert row["messages"][2]["content"] == '{"x": 1}'


def test_sharegpt_with_calls_as_turns_and_as_tags(tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": "Looking."},
        {"from": "function_call", "value": '{"name": "f", "arguments": {"k": 1}}'},
        {"from": "observation", "value": "ok"},
        {"from": "gpt", "value": "Done."},
    ]
    row = one({"conversations": turns, "tools": json.dumps([TOOL])}, tmp_path, "sharegpt")
    assert said(row) == SAME
    assert row["tools"] == [TOOL]
    tagged = [
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": 'Looking.\n<tool_call>\n{"name": "f", "arguments": {"k": 1}}\n</tool_call>\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'},
        {"from": "tool", "value": '<tool_response>\n{"name": "g", "content": "two"}\n</tool_response>\n<tool_response>\n{"name": "f", "content": "one"}\n</tool_response>'},
    ]  # fmt: skip
    row = one({"conversations": tagged}, tmp_path, "sharegpt")
    assert [(c.name, json.loads(c.result or "{}")["content"]) for c in tool_calls(row["messages"])] == [
        ("f", "one"),
        ("g", "two"),
    ]


def test_sharegpt_parallel_results_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "hi"},
        {
            "from": "function_call",
            "value": '[{"name": "f", "arguments": {"k": 1}}, {"name": "f", "arguments": {"k": 2}}]',
        },
        {"from": "observation", "value": "one"},
        {"from": "observation", "value": "two"},
    ]
    good = {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in (good, {"conversations": turns}, good)), encoding="utf-8")
    data = read(path)
    assert len(data) == 2
    assert (data.provenance["skipped"][0]["where"], "guess" in data.provenance["skipped"][0]["message"]) == (
        "line 2",
        True,
    )
