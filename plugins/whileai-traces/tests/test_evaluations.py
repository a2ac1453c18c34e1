# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""inspect-ai, lm-evaluation-harness, promptfoo, verifiers and tables: shapes of the current and the previous version."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import RowError
from whileai_kernel.messages import tool_calls
from whileai_traces import read


def write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
    return path


# --- inspect-ai ------------------------------------------------------------------------------------------------------


def inspect_sample(**changes: Any) -> dict[str, Any]:
    sample = {
        "id": "s1", "epoch": 2, "input": "2+2?", "target": "4",
        "messages": [
            {"id": "m1", "role": "system", "content": "attachment://abc"},
            {"id": "m2", "role": "user", "content": "2+2?", "source": "input"},
            {"id": "m3", "role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": ""}],
             "tool_calls": [{"id": "c1", "function": "add", "arguments": {"a": 2, "b": 2}, "type": "function"}]},
            {"id": "m4", "role": "tool", "content": "4", "tool_call_id": "c1", "function": "add"},
            {"id": "m5", "role": "assistant", "content": "4"},
        ],
        "output": {"choices": [{"message": {}, "stop_reason": "max_tokens"}]},
        "scores": {"match": {"value": "C", "answer": "4", "explanation": "same"}, "style": {"value": 0.25}, "length": {"value": 17}},
        "metadata": {"level": 3}, "attachments": {"abc": "Be brief."}, "uuid": "u",
        "events": [{"event": "model", "tools": [{"name": "add", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]}],
    }  # fmt: skip
    return {**sample, **changes}


def inspect_log(*samples: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "model": "m"},
        "plan": {"pad": "x" * 100},
        "samples": list(samples),
    }


def test_inspect_json_log(tmp_path: Path) -> None:
    data = read(
        write(
            tmp_path / "log.json",
            inspect_log(inspect_sample(), {"id": "broken"}, inspect_sample(epoch=1, error={"message": "boom"})),
        )
    )
    row = data[0]
    assert [(r["task_id"], r["index"], r["outcome"]) for r in data] == [("s1", 1, "truncated"), ("s1", 0, "failed")]
    assert (row["reward"], row["scorer"]["id"], row["reason"]) == (1.0, "inspect/match", "same")
    assert [(j["scorer"]["id"], j["reward"], j["status"]) for j in row["judgments"]] == [
        ("inspect/style", 0.25, "ok"),
        ("inspect/length", None, "invalid"),
    ]
    assert row["judgments"][1]["evidence"]["recorded"] == 17
    assert row["system_prompt"] == "Be brief."
    assert row["finish_reason"] == "length"
    assert row["privileged"] == {"reference": "4"}
    assert row["axes"] == {"level": 3}
    assert [(c.name, c.arguments, c.result) for c in tool_calls(row["messages"])] == [("add", {"a": 2, "b": 2}, "4")]
    assert row["tools"][0]["function"]["name"] == "add"
    assert row["inspect"]["uuid"] == "u"
    assert "sample 2" in data.provenance["skipped"][0]["where"]
    assert read(tmp_path / "log.json", format="inspect", score="style")[0]["reward"] == 0.25


def test_inspect_json_log_larger_than_what_detection_sees(tmp_path: Path) -> None:
    log = inspect_log(inspect_sample())
    log["plan"] = {"pad": "x" * 200_000}
    assert read(write(tmp_path / "log.json", log)).provenance["formats"] == {"traces/inspect": 1}


def test_inspect_eval_archive_with_deflate_and_with_zstd_members(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}})
        )
        archive.writestr("samples/s1_epoch_2.json", json.dumps(inspect_sample()))
        archive.writestr("samples/s2_epoch_1.json", "{cut")
        archive.writestr("samples/s3_epoch_1.json", json.dumps(inspect_sample(id="s3", epoch=1)))
    data = read(path)
    assert [r["task_id"] for r in data] == ["s1", "s3"]
    assert data[0]["policy"]["model"] == "m"
    assert data.provenance["skipped"][0]["where"] == "samples/s2_epoch_1.json"


@pytest.mark.integration
def test_inspect_really_run(tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    import types

    import tiktoken
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import includes, match
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    tiktoken.get_encoding = lambda name: types.SimpleNamespace(
        encode=lambda s, **k: list(s)
    )  # its vocabulary is a download

    @tool
    def add() -> Any:
        async def execute(a: int, b: int) -> int:
            """Add.

            Args:
                a: First.
                b: Second.
            """
            return a + b

        return execute

    def outputs() -> list[Any]:
        return [
            o
            for n in range(2)
            for o in (
                ModelOutput.for_tool_call("mockllm/model", "add", {"a": 2, "b": n}),
                ModelOutput.from_content("mockllm/model", f"{2 + n}"),
            )
        ]

    samples = [Sample(id="s", input="2+?", target="2")]
    task = inspect_ai.Task(
        dataset=samples, solver=[use_tools(add()), generate()], scorer=[match(), includes()], epochs=2
    )
    for form in ("eval", "json"):
        inspect_ai.eval(
            task,
            model=get_model("mockllm/model", custom_outputs=outputs()),
            log_dir=str(tmp_path / form),
            log_format=form,
            display="none",
            max_samples=1,
        )
        data = read(tmp_path / form)
        assert data.provenance["formats"] == {"traces/inspect": 1}
        assert sorted((r["index"], r["final_text"], r["reward"]) for r in data) == [(0, "2", 1.0), (1, "3", 0.0)]
        assert all(c.result == str(2 + c.arguments["b"]) for r in data for c in tool_calls(r["messages"]))
        assert not data.warnings


# --- lm-evaluation-harness -------------------------------------------------------------------------------------------


def test_lm_eval_samples_of_both_shapes(tmp_path: Path) -> None:
    current = {
        "doc_id": 0, "doc": {"q": "2+2?"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "Q: 2+2?", "arg_1": {"until": []}}},
        "resps": [["4", "5"]], "filtered_resps": ["4"], "filter": "strict", "metrics": ["exact_match"], "exact_match": 1.0, "doc_hash": "h",
    }  # fmt: skip
    previous = {
        "doc_id": 1, "doc": {"q": "3+3?"}, "target": "6", "arguments": [["Q: 3+3?", {"until": []}]],
        "resps": [["7"]], "filtered_resps": ["7"], "exact_match": 0.0,
    }  # fmt: skip
    chat = {**previous, "doc_id": 2, "arguments": [['[{"role": "user", "content": "hi"}]', {}]]}
    other = {**current, "filter": "flexible", "exact_match": 0.0}
    data = read(write(tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl", current, "{broken", previous, other, chat))
    assert [(r["task_id"], r["index"], r["final_text"], r["reward"]) for r in data] == [
        ("sums/0", 0, "4", 1.0), ("sums/0", 1, "5", None), ("sums/1", 0, "7", 0.0), ("sums/2", 0, "7", 0.0),
    ]  # fmt: skip
    assert data[0]["scorer"]["id"] == "lm_eval/exact_match"
    assert data[0]["privileged"] == {"reference": "4", "doc": {"q": "2+2?"}}
    assert data[3]["prompt"] == "hi"
    assert data.provenance["skipped"][0]["where"] == "line 2"
    flexible = read(tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl", format="lm_eval", filter="flexible")
    assert flexible[0]["reward"] == 0.0


@pytest.mark.integration
def test_lm_eval_really_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lm_eval")
    import subprocess
    import sys

    write(tmp_path / "data.jsonl", {"q": "2+2?", "a": "4"}, {"q": "3+3?", "a": "lol"})
    (tmp_path / "sums.yaml").write_text(
        f"task: sums\ndataset_path: json\ndataset_kwargs:\n  data_files: {tmp_path / 'data.jsonl'}\ntest_split: train\n"
        'output_type: generate_until\ndoc_to_text: "Q: {{q}}"\ndoc_to_target: "{{a}}"\n'
        'generation_kwargs:\n  until: ["x"]\nmetric_list:\n  - metric: exact_match\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    command = [
        "-m",
        "lm_eval",
        "--model",
        "dummy",
        "--tasks",
        "sums",
        "--include_path",
        str(tmp_path),
        "--output_path",
        str(tmp_path / "out"),
        "--log_samples",
    ]
    subprocess.run([sys.executable, *command], check=True, capture_output=True, timeout=300, cwd=tmp_path)
    (samples,) = (tmp_path / "out").rglob("samples_*.jsonl")
    data = read(samples)
    assert [(r["task_id"], r["prompt"], r["final_text"], r["reward"]) for r in data] == [
        ("sums/0", "Q: 2+2?", "lol", 0.0),
        ("sums/1", "Q: 3+3?", "lol", 1.0),
    ]
    assert data[1]["privileged"]["reference"] == "lol"


def test_lm_eval_log_likelihoods_have_no_text_and_say_so(tmp_path: Path) -> None:
    record = {
        "doc_id": 0,
        "arguments": [["a", "b"]],
        "resps": [[[-1.0, False]]],
        "filtered_resps": [[-1.0, False]],
        "acc": 1.0,
    }
    with pytest.raises(RowError, match="not one row") as err:
        read(write(tmp_path / "samples_x_t.jsonl", record, record))
    assert "log-likelihood" in str(err.value)


# --- promptfoo -------------------------------------------------------------------------------------------------------


def test_promptfoo_results_of_both_shapes(tmp_path: Path) -> None:
    result = {
        "promptIdx": 0, "testIdx": 3, "success": False, "score": 0.5, "vars": {"name": "Ann"}, "provider": {"id": "openai:m"},
        "prompt": {"raw": '[{"role": "system", "content": "s"}, {"role": "user", "content": "hi Ann"}]'},
        "response": {"output": "hello", "tokenUsage": {"total": 5}},
        "gradingResult": {"pass": False, "score": 0.5, "reason": "half", "componentResults": [
            {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "contains", "value": "hello"}},
            {"pass": False, "score": 0, "reason": "rude", "assertion": {"type": "llm-rubric", "value": "polite"}}]},
        "testCase": {"assert": [{"type": "contains", "value": "hello"}]},
    }  # fmt: skip
    failed = {**result, "testIdx": 4, "response": {}, "error": "timeout"}
    document = {"evalId": "e", "results": {"version": 3, "results": [result, {"nothing": 1}, failed], "stats": {}}}
    data = read(write(tmp_path / "out.json", document))
    row = data[0]
    assert (row["reward"], row["reason"], row["policy"]["model"], row["axes"]) == (
        0.5,
        "half",
        "openai:m",
        {"name": "Ann"},
    )
    assert [(j["scorer"]["id"], j["scorer"]["kind"], j["reward"]) for j in row["judgments"]] == [
        ("promptfoo/contains", "rule", 1.0), ("promptfoo/llm-rubric", "judge", 0.0)]  # fmt: skip
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant"]
    assert (data[1]["outcome"], data[1]["reward"], data[1]["error"]["message"]) == ("failed", None, "timeout")
    assert "hello" not in json.dumps([m for m in row["messages"] if m["role"] == "user"])
    previous = {
        "results": {
            "version": 2,
            "results": [
                {
                    "prompt": {"raw": "hi", "label": "p"},
                    "vars": {},
                    "response": {"output": "yo"},
                    "success": True,
                    "score": 1,
                    "provider": {"id": "x"},
                }
            ],
            "stats": {},
            "table": {},
        }
    }
    assert read(write(tmp_path / "old.json", previous))[0]["reward"] == 1.0
    assert len(read(write(tmp_path / "lines.jsonl", result, result))) == 2


# --- verifiers -------------------------------------------------------------------------------------------------------


def node(parent: int | None, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"parent": parent, "message": message, "sampled": message["role"] == "assistant", **more}


def test_verifiers_traces_are_trees_and_each_path_is_a_row(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "name": "lab_add", "arguments": '{"a": 1}'}
    trace = {
        "version": 1, "id": "t", "task": {"type": "T", "data": {"id": "t0", "answer": "4"}, "key": "k"},
        "agent": {"config": {"model": "m"}},
        "tools": [{"type": "function", "name": "lab_add", "description": "d", "parameters": {"type": "object", "properties": {}}}],
        "nodes": [
            node(None, {"role": "user", "content": "q"}),
            node(0, {"role": "assistant", "content": "", "tool_calls": [call]}),
            node(1, {"role": "tool", "tool_call_id": "c", "content": "3"}),
            node(2, {"role": "assistant", "content": "3"}, token_ids=[7, 8], logprobs=[-0.1, -0.2]),
            node(0, {"role": "assistant", "content": "no idea"}),
        ],
        "calls": [{"node": 3, "finish_reason": "stop"}],
        "rewards": {"exact": {"score": 0.0, "weight": 1.0}, "format": {"score": 1.0, "weight": 0.5}},
        "stop_condition": "agent_completed", "errors": [],
    }  # fmt: skip
    episode = {"id": "e", "env": {"id": "x"}, "task": {}, "traces": [trace], "ok": True}
    data = read(write(tmp_path / "traces.jsonl", episode, "{cut", episode))
    assert [(r["task_id"], r["final_text"], r["index"]) for r in data] == [
        ("t0", "3", 0),
        ("t0", "no idea", 1),
        ("t0", "3", 2),
        ("t0", "no idea", 3),
    ]
    row = data[0]
    assert (row["reward"], row["finish_reason"], row["policy"]["model"]) == (0.5, "stop", "m")
    assert [j["scorer"]["id"] for j in row["judgments"]] == ["verifiers/exact", "verifiers/format"]
    assert row["logprobs"]["completion_token_ids"] == [7, 8]
    assert tool_calls(row["messages"])[0].result == "3"
    assert row["tools"][0]["function"]["name"] == "lab_add"
    assert row["privileged"]["reference"] == "4"


def test_verifiers_really_run() -> None:
    """Two episodes and a failed one that verifiers 0.4.0 wrote: a tool server, a scripted model, two rewards."""
    data = read(Path(__file__).parent / "recorded" / "verifiers_0_4.jsonl")
    assert data.provenance["formats"] == {"traces/verifiers": 1}
    assert not data.warnings
    assert [(r["prompt"], r["final_text"], r["outcome"]) for r in data] == [
        ("2+2?", "It is 4", "completed"), ("3+3?", "It is 6", "completed"), ("2+2?", None, "failed")]  # fmt: skip
    assert data[0]["task_id"] == data[2]["task_id"] != data[1]["task_id"]
    row = data[0]
    calls = tool_calls(row["messages"])
    assert [(c.id, c.name, c.arguments, c.result) for c in calls] == [
        ("call_0", "sums_add", {"a": 2, "b": 2}, "4"), ("call_1", "sums_add", {"a": 2, "b": 0}, "2")]  # fmt: skip
    assert row["system_prompt"] == "Be brief."
    assert row["privileged"] == {"reference": "4", "answer": "4"}
    assert row["usage"] == {"prompt_tokens": 6, "completion_tokens": 4}
    assert (row["reward"], row["status"]) == (None, "invalid")  # weights 1 and 0.5 make 1.5, which is no reward
    assert [(j["scorer"]["id"], j["reward"]) for j in row["judgments"]] == [
        ("verifiers/exact", 1.0), ("verifiers/short", 1.0)]  # fmt: skip
    assert row["tools"][0]["function"]["parameters"]["required"] == ["a", "b"]
    assert (row["policy"]["model"], row["finish_reason"]) == ("scripted", "stop")
    assert data[2]["lineage"]["incomplete"]
    assert "ProviderError" in data[2]["error"]["message"]
    assert data[2]["status"] == "missing"


def test_verifiers_results_of_earlier_versions_hold_calls_as_text(tmp_path: Path) -> None:
    record = {
        "example_id": 3, "prompt": [{"role": "user", "content": "q"}], "answer": "4", "reward": 1.0, "metrics": {"n_calls": 1.0}, "is_truncated": False,
        "completion": [
            {"role": "assistant", "content": "", "tool_calls": ['{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}']},
            {"role": "tool", "tool_call_id": "c", "content": "4"}, {"role": "assistant", "content": "4"}],
    }  # fmt: skip
    data = read(write(tmp_path / "results.jsonl", record, record))
    assert (data[0]["task_id"], data[0]["reward"], data[1]["index"]) == ("3", 1.0, 1)
    assert tool_calls(data[0]["messages"])[0].result == "4"


# --- tables ----------------------------------------------------------------------------------------------------------


def test_csv_with_quotes_line_breaks_other_separators_and_a_short_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        'id,question,response,answer,correct\n007,"a, ""b""\nc",x,4,true\n8,short\n9,q,y,5,0.5\n10,q,z,,\n',
        encoding="utf-8-sig",
    )
    data = read(path)
    assert [(r["task_id"], r["prompt"], r["final_text"], r["reward"]) for r in data] == [
        ("007", 'a, "b"\nc', "x", 1.0), ("9", "q", "y", 0.5), ("10", "q", "z", None)]  # fmt: skip
    assert data[0]["privileged"] == {"reference": "4"}
    assert data[2]["status"] == "missing"
    assert "2 cells for 5 columns" in data.provenance["skipped"][0]["message"]
    assert data.provenance["skipped"][0]["where"] == "line 4"
    (tmp_path / "s.csv").write_text("prompt;completion;score\na;b;1\n", encoding="utf-8")
    assert read(tmp_path / "s.csv")[0]["reward"] == 1.0
    (tmp_path / "t.tsv").write_text("mine\tyours\nq\ta\n", encoding="utf-8")
    assert (
        read(tmp_path / "t.tsv", format="prompt_completion", prompt="mine", completion="yours")[0]["final_text"] == "a"
    )


def test_prompt_and_completion_in_json_lines_and_parquet(tmp_path: Path) -> None:
    records = [
        {"prompt": "a", "completion": "x", "reward": 1, "extra": {"k": [1]}},
        {"prompt": "a", "completion": "y", "reward": 0, "extra": {"k": []}},
    ]
    data = read(write(tmp_path / "p.jsonl", *records))
    assert [(r["final_text"], r["reward"], r["index"]) for r in data] == [("x", 1.0, 0), ("y", 0.0, 1)]
    assert data[0]["prompt_completion"] == {"extra": {"k": [1]}}
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "p.parquet")
    again = read(tmp_path / "p.parquet")
    assert [(r["final_text"], r["reward"]) for r in again] == [("x", 1.0), ("y", 0.0)]
