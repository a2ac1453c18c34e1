# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""tau-bench and tau2-bench results, on the public file and on small ones of ours."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.messages import tool_calls, validate_messages
from whileai_traces import read


def shared(name: str) -> Path:
    places = [Path(os.environ["WHILEAI_SHARED"])] if os.environ.get("WHILEAI_SHARED") else []
    places += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for place in places:
        if (place / "data" / name).is_file():
            return place / "data" / name
    pytest.skip(f"the public file {name} is not here (set WHILEAI_SHARED)")


@pytest.fixture(scope="module")
def airline() -> Any:
    return read(shared("tau_bench_airline_gpt4o.json"))


def test_the_public_file_gives_every_run_with_its_calls_paired(airline: Any) -> None:
    assert len(airline) == 200
    by_task = defaultdict(list)
    for row in airline:
        by_task[row["task_id"]].append(row)
    assert len(by_task) == 50
    assert all([r["index"] for r in rows] == [0, 1, 2, 3] for rows in by_task.values())
    calls = [c for row in airline for c in tool_calls(row["messages"])]
    assert len(calls) == 1164
    assert all(c.result is not None and c.arguments is not None for c in calls)
    assert not airline.warnings


def test_the_public_file_keeps_rewards_messages_and_private_parts(airline: Any) -> None:
    raw = json.loads(shared("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8"))
    for row, record in zip(airline, raw, strict=True):
        assert row["reward"] == record["reward"]
        assert row["status"] == "ok"
        assert row["scorer"]["id"] == "tau_bench/reward"
        assert [m["role"] for m in row["messages"]] == [m["role"] for m in record["traj"]]
        assert [m["content"] for m in row["messages"]] == [m["content"] or "" for m in record["traj"]]
        assert row["privileged"]["goal"] == record["info"]["task"]["instruction"]
        assert row["tau_bench"]["info"]["user_cost"] == record["info"]["user_cost"]
        assert row["privileged"]["goal"] not in json.dumps({k: v for k, v in row.items() if k != "privileged"})
    assert sum(row["outcome"] == "truncated" for row in airline) == 5  # the runs that hit the step limit
    assert airline[0]["system_prompt"].startswith("# Airline Agent Policy")


def test_the_published_table_is_reproduced(airline: Any) -> None:
    groups = defaultdict(list)
    for row in airline:
        groups[row["task_id"]].append(row["reward"])
    table = [
        sum(math.comb(int(sum(g)), k) / math.comb(len(g), k) for g in groups.values()) / len(groups)
        for k in (1, 2, 3, 4)
    ]
    assert table == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)


def test_the_measuring_plugin_reproduces_the_published_table(airline: Any) -> None:
    measure = pytest.importorskip("whileai_measure")
    text = json.dumps(measure.pass_at(airline).to_dict())
    assert "0.42" in text
    assert "0.2" in text


def tau_run(**changes: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}}
    run = {
        "task_id": 7,
        "trial": 1,
        "reward": 1.0,
        "info": {"task": {"instruction": "secret goal", "actions": [{"name": "get", "kwargs": {"k": 1}}], "outputs": ["1"]},
                 "reward_info": {"reward": 1.0, "info": {"r_actions": 1.0, "gt_data_hash": "abc"}}, "extra": 5},
        "traj": [
            {"role": "system", "content": "policy"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "get", "content": "1"},
            {"role": "assistant", "content": "It is 1."},
            {"role": "user", "content": "###STOP###"},
        ],
        "new_key": "kept",
    }  # fmt: skip
    return {**run, **changes}


def test_a_small_run_and_a_broken_one_between_two_good_ones(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(
        json.dumps([tau_run(), {"task_id": 8, "reward": 1.0, "traj": "lost"}, tau_run(trial=2)]), encoding="utf-8"
    )
    data = read(path)
    assert [(r["task_id"], r["index"]) for r in data] == [("7", 1), ("7", 2)]
    assert data.provenance["skipped"][0]["where"] == "item 2"
    row = data[0]
    assert row["tau_bench"] == {"new_key": "kept", "info": {"extra": 5}}
    assert row["evidence"] == {"r_actions": 1.0}
    assert row["privileged"]["gt_data_hash"] == "abc"
    assert row["final_text"] == "It is 1."


def test_results_out_of_order_are_paired_by_id_and_results_without_ids_are_refused(tmp_path: Path) -> None:
    calls = [
        {"id": i, "type": "function", "function": {"name": "get", "arguments": json.dumps({"k": n})}}
        for n, i in enumerate("ab")
    ]
    results = [
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
    ]
    anonymous = [{"role": "tool", "content": r["content"]} for r in results]
    runs = [
        tau_run(
            traj=[{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": calls}, *tail]
        )
        for tail in (results, anonymous)
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs), encoding="utf-8")
    data = read(path)
    assert len(data) == 1
    assert {c.id: c.result for c in tool_calls(data[0]["messages"])} == {"a": "one", "b": "two"}
    assert "guess" in data.provenance["skipped"][0]["message"]


def test_ids_that_repeat_across_turns_stay_with_their_turn(tmp_path: Path) -> None:
    def turn(k: int, text: str) -> list[dict[str, Any]]:
        call = {"id": "call_0", "type": "function", "function": {"name": "get", "arguments": json.dumps({"k": k})}}
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": text},
        ]

    path = tmp_path / "runs.json"
    path.write_text(
        json.dumps([tau_run(traj=[{"role": "user", "content": "q"}, *turn(1, "one"), *turn(2, "two")])]),
        encoding="utf-8",
    )
    row = read(path)[0]
    assert [(c.arguments, c.result) for c in tool_calls(row["messages"])] == [({"k": 1}, "one"), ({"k": 2}, "two")]
    assert not validate_messages(row["messages"], ends_on_call=True) or row["lineage"].get("incomplete")


def test_tau2_simulations_of_the_current_and_the_one_by_one_shape(tmp_path: Path) -> None:
    simulation = {
        "id": "s1", "task_id": "3", "trial": 0, "seed": 11, "termination_reason": "user_stop", "agent_cost": 0.1,
        "reward_info": {"reward": 0.0, "reward_breakdown": {"DB": 0.0, "COMMUNICATE": 1.0}},
        "messages": [
            {"role": "assistant", "content": "Hi, how can I help?"},
            {"role": "user", "content": "Reset my line."},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "name": "reset", "arguments": {"line": 2}, "requestor": "assistant"}]},
            {"role": "tool", "id": "t1", "content": "done", "requestor": "assistant", "error": False},
            {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}]},
            {"role": "tool", "id": "u1", "content": "toggled", "requestor": "user", "error": False},
            {"role": "assistant", "content": "Reset."},
            {"role": "user", "content": "###STOP###"},
        ],
    }  # fmt: skip
    document = {
        "timestamp": "t",
        "info": {"agent_info": {"llm": "m"}, "environment_info": {"policy": "The policy.", "tool_defs": None}},
        "tasks": [{"id": "3", "user_scenario": {"instructions": "hidden"}, "evaluation_criteria": {"actions": []}}],
        "simulations": [simulation, {"broken": True}],
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    data = read(path)
    row = data[0]
    assert len(data) == 1
    assert data.provenance["formats"] == {"traces/tau2_bench": 1}
    assert [m["role"] for m in row["messages"]] == [
        "system",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert tool_calls(row["messages"])[0].result == "done"
    assert (row["reward"], row["policy"]["model"], row["world"]["seed"]) == (0.0, "m", 11)
    assert [j["scorer"]["id"] for j in row["judgments"]] == ["tau2_bench/DB", "tau2_bench/COMMUNICATE"]
    assert row["privileged"]["user_scenario"] == {"instructions": "hidden"}
    single = tmp_path / "one.jsonl"
    single.write_text(json.dumps(simulation) + "\n" + json.dumps(simulation) + "\n", encoding="utf-8")
    assert len(read(single)) == 2


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("user_stop", "completed"), ("max_steps", "truncated"), ("timeout", "truncated"), ("context_window_exceeded", "truncated"),
     ("agent_error", "failed"), ("infrastructure_error", "failed"), ("unexpected_error", "failed")],
)  # fmt: skip
def test_tau2_says_how_a_simulation_ended(tmp_path: Path, reason: str, outcome: str) -> None:
    messages = [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    run = {"id": "s", "task_id": "0", "trial": 0, "messages": messages, "termination_reason": reason}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"tasks": [], "info": {}, "simulations": [run]}), encoding="utf-8")
    assert read(path)[0]["outcome"] == outcome
