# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""Tool schemas from traces, `wai convert`, and foreign -> rows -> foreign."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whileai_kernel import make
from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import normalise_messages, parse_arguments
from whileai_kernel.tools import as_tools
from whileai_traces import read, tools_from_traces
from whileai_traces.command import ConvertCommand


def row_with(*calls: tuple[str, dict[str, Any], str]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
    for n, (name, arguments, result) in enumerate(calls):
        call = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": result},
        ]
    return {"messages": messages}


def test_schemas_are_inferred_from_observed_arguments_and_results() -> None:
    cabins = ["economy", "business"]
    rows = [
        row_with(
            ("book", {"user": f"u{n}", "cabin": cabins[n % 2], "bags": n if n else 0.5, "who": [{"name": "A", "age": 3}]}, '{"ok": true}'),
            ("find", {"city": "Oslo"} if n else {"city": "Oslo", "near": None}, "plain text"),
        )
        for n in range(12)
    ]  # fmt: skip
    book, find = (t for t in tools_from_traces(rows))
    parameters = book["function"]["parameters"]
    assert parameters["required"] == ["user", "cabin", "bags", "who"]
    assert parameters["properties"]["cabin"] == {"type": "string", "enum": ["business", "economy"]}
    assert parameters["properties"]["user"] == {"type": "string"}
    assert parameters["properties"]["bags"] == {"type": "number"}
    assert parameters["properties"]["who"]["items"]["properties"]["age"] == {"type": "integer"}
    assert book["x-returns"]["properties"] == {"ok": {"type": "boolean"}}
    assert find["function"]["parameters"]["required"] == ["city"]
    assert find["function"]["parameters"]["properties"]["near"] == {"type": "null"}
    assert "x-returns" not in find
    assert [t.name for t in as_tools([book, find])] == ["book", "find"]


def test_a_declared_schema_wins_over_what_was_observed() -> None:
    declared = {
        "type": "function",
        "function": {"name": "find", "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
    assert tools_from_traces([{**row_with(("find", {"city": "x"}, "y")), "tools": [declared]}]) == [declared]


def run(*arguments: str) -> int:
    command, parser = ConvertCommand(), argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(arguments)))


def test_convert_writes_rows_and_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "chat.jsonl"
    record = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
    source.write_text(json.dumps(record) + "\n{broken\n" + json.dumps(record) + "\n", encoding="utf-8")
    assert run(str(source), str(tmp_path / "rows.jsonl")) == 0
    shown = capsys.readouterr()
    assert "read 2 rows as traces/chat" in shown.out
    assert "line 2" in shown.err
    assert len(read(tmp_path / "rows.jsonl")) == 2
    with pytest.raises(ParameterError, match="exists"):
        run(str(source), str(tmp_path / "rows.jsonl"))
    assert run(str(source), str(tmp_path / "rows.jsonl"), "--overwrite", "--from", "chat") == 0


def test_convert_writes_what_an_exporter_writes(tmp_path: Path) -> None:
    pytest.importorskip("whileai_export")
    source = tmp_path / "chat.jsonl"
    source.write_text(
        json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}),
        encoding="utf-8",
    )
    assert run(str(source), str(tmp_path / "out.jsonl"), "--to", "trl") == 0
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))["messages"][1]["content"] == "yo"


def test_convert_takes_the_options_of_an_export_and_of_the_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("whileai_export")
    source = tmp_path / "chat.jsonl"
    chat = [
        {"role": r, "content": c} for r, c in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
    ]
    source.write_text(json.dumps({"messages": chat, "reward": 1.0, "note": "n"}), encoding="utf-8")
    options = ["--to", "trl", "--train", "last", "--columns", "chat", "--format", "chat"]
    assert run(str(source), f"{tmp_path}/out/", *options) == 0
    (record,) = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").open(encoding="utf-8")]
    assert record["completion"] == [chat[-1]]
    assert json.loads(record["chat"]) == {"note": "n"}
    assert "assistant_only_loss" in capsys.readouterr().out
    assert run(str(source), f"{tmp_path}/many/", "--to", "openai", "--unroll", "--shard-bytes", "1") == 0
    assert len(list((tmp_path / "many").glob("train-*.jsonl"))) == 2
    with pytest.raises(ParameterError, match="train is for exporters"):
        run(str(source), str(tmp_path / "rows.jsonl"), "--train", "last")
    with pytest.raises(ParameterError, match="no option 'nope'"):
        run(str(source), str(tmp_path / "x.jsonl"), "--to", "trl", "--option", "nope=1")
    (tmp_path / "t.csv").write_text("mine,yours\nq,a\n", encoding="utf-8")
    words = ["--from", "prompt_completion", "--param", "prompt=mine", "--param", "completion=yours"]
    assert run(str(tmp_path / "t.csv"), str(tmp_path / "t.jsonl"), *words) == 0
    assert read(tmp_path / "t.jsonl")[0]["final_text"] == "a"
    with pytest.raises(ParameterError, match="is no parameter"):
        run(str(tmp_path / "t.csv"), str(tmp_path / "u.jsonl"), "--param", "prompt")


texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1, max_size=10).map(
    lambda s: s.strip() or "x"
)
arguments_ = st.dictionaries(
    st.text(alphabet="abcdef", min_size=1, max_size=3),
    st.integers(-(2**40), 2**40) | st.booleans() | texts | st.none(),
    max_size=2,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(texts)}] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts)})
        for _ in range(draw(st.integers(0, 2))):
            n = draw(st.integers(1, 3))
            ids = [f"id{count + i}" for i in range(n)]
            count += n
            calls = [
                {"id": i, "type": "function", "function": {"name": "f", "arguments": json.dumps(draw(arguments_))}}
                for i in ids
            ]
            messages.append({"role": "assistant", "content": draw(st.just("") | texts), "tool_calls": calls})
            messages += [
                {"role": "tool", "tool_call_id": i, "content": draw(texts)} for i in draw(st.permutations(ids))
            ]
        messages.append({"role": "assistant", "content": draw(texts)})
    return messages


def signature(messages: list[dict[str, Any]]) -> list[Any]:
    out = []
    for m in normalise_messages(messages):
        calls = [
            (c["id"], c["function"]["name"], parse_arguments(c["function"]["arguments"]))
            for c in m.get("tool_calls") or ()
        ]
        out.append((m["role"], m["content"], calls, m.get("tool_call_id")))
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations())
@pytest.mark.parametrize("target", ["chat", "openai", "trl", "anthropic", "sharegpt"])
def test_rows_to_a_foreign_file_and_back_keep_roles_contents_calls_ids_and_order(
    target: str, messages: list[dict[str, Any]]
) -> None:
    pytest.importorskip("whileai_export")
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.jsonl"
        make("exporters", target).export([{"task_id": "t", "messages": messages}], path)
        back = read(path, format={"openai": "chat", "trl": "chat"}.get(target, target))
    assert signature(back[0]["messages"]) == signature(messages)
