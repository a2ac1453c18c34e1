"""Rejection sampling: best, best-k, the random control arm, ties, behaviours."""

from __future__ import annotations

from collections import Counter

import pytest

from whileai_kernel.errors import ParameterError
from whileai_select import select


def row(task, index, reward, text="x", **more):
    return {
        "task_id": task, "rollout_id": f"{task}-{index}", "prompt": f"ask {task}", "final_text": text, "reward": reward,
        "status": "ok" if reward is not None else "missing", "markers": {}, **more,
    }  # fmt: skip


def reasons(selected):
    return [e.reason for e in selected.ledger]


def test_best_of_n_takes_the_highest_passing_reward():
    rows = [row("a", i, r, text=f"t{i}", threshold=0.5) for i, r in enumerate([0.2, 0.9, 0.6, None])]
    assert reasons(select(rows, mode="sft")) == ["below_threshold", "kept", "not_best", "not_scored"]


def test_nothing_that_fails_is_trained_on():
    rows = [row("a", i, 0.0, text=f"t{i}") for i in range(4)]
    chosen = select(rows, mode="sft")
    assert chosen.rows == [] and chosen.report["no_choice"] == 1
    assert len(select(rows, mode="sft", min_reward=0.0).rows) == 1


@pytest.mark.parametrize(("tie", "want"), [("shortest", 1), ("longest", 9), ("median", 5)])
def test_length_aware_tie_break(tie, want):
    rows = [row("a", i, 1.0, text="w" * n) for i, n in enumerate([9, 1, 5, 7, 3])]
    assert len(select(rows, mode="sft", tie=tie).rows[0]["final_text"]) == want


def test_best_k_takes_one_per_behaviour():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
    same = {"id": "d", "type": "function", "function": {"name": "f", "arguments": '{"b": 2, "a": 1}'}}
    other = {"id": "e", "type": "function", "function": {"name": "f", "arguments": '{"a": 2}'}}
    rows = [
        row("a", i, 1.0, text=f"said {i}", messages=[{"role": "assistant", "content": "", "tool_calls": [c]}])
        for i, c in enumerate([call, same, other])
    ]
    chosen = select(rows, mode="sft", k=3)
    assert Counter(reasons(chosen)) == {"kept": 2, "same_behaviour": 1}
    assert reasons(chosen)[2] == "kept"
    assert len(select(rows, mode="sft", k=3, distinct=False).rows) == 3


def test_random_arm_ignores_the_reward_and_the_order():
    rows = [row(f"t{t}", i, float(i == 0), text=f"{t} {i}") for t in range(300) for i in range(4)]
    arm = select(rows, mode="sft", take="random")
    assert len(arm.rows) == 300
    share = sum(r["reward"] for r in arm.rows) / 300
    assert 0.17 < share < 0.33  # 1 of 4 passes; 3.3 standard errors
    again = select(list(reversed(rows)), mode="sft", take="random")
    assert {r["rollout_id"] for r in again.rows} == {r["rollout_id"] for r in arm.rows}
    assert {r["rollout_id"] for r in select(rows, mode="sft", take="random", seed=1).rows} != {
        r["rollout_id"] for r in arm.rows
    }


def test_says_whether_there_was_anything_to_choose():
    rows = [row("a", 0, 1.0, "x"), row("a", 1, 1.0, "y"), row("b", 0, 1.0, "x"), row("b", 1, 0.0, "y")]
    report = select(rows, mode="sft").report
    assert report["no_choice"] == 1 and "nothing to choose in 1 tasks" in report["summary"]


def test_size_keeps_whole_tasks():
    rows = [row(f"t{t}", i, 1.0, text=f"{t} {i}") for t in range(20) for i in range(2)]
    chosen = select(rows, mode="sft", k=2, size=11)
    assert set(Counter(r["task_id"] for r in chosen.rows).values()) == {2} and len(chosen.rows) == 10


def test_arguments_are_checked():
    for bad in ({"take": "bets"}, {"tie": "short"}, {"k": 0}, {"size": -1}, {"failed": "penalise"}):
        with pytest.raises(ParameterError):
            select([], mode="sft", **bad)
