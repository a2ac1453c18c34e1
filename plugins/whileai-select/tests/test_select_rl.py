"""RL selection: order, reasons, sums, bands, penalties, size."""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError, RowError
from whileai_select import select, select_rl


def row(task="t", index=0, reward=1.0, **more):
    return {
        "schema_version": 1,
        "task_id": task,
        "rollout_id": f"{task}-{index}",
        "index": index,
        "prompt": f"ask {task}",
        "final_text": f"answer {index}",
        "reward": reward,
        "status": "ok" if reward is not None else "missing",
        "markers": {},
        **more,
    }


def group(task, rewards, **more):
    return [row(task, i, r, **more) for i, r in enumerate(rewards)]


def shared_data(name):
    roots = [Path(os.environ["WHILEAI_SHARED"])] if os.environ.get("WHILEAI_SHARED") else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data" / name).exists():
            return root / "data" / name
    pytest.skip(f"shared/data/{name} is not here")


def tau_rows():
    raw = json.loads(shared_data("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8"))
    counts = Counter()
    rows = []
    for record in raw:
        task = str(record["task_id"])
        messages = [
            {k: v for k, v in m.items() if k in ("role", "content", "tool_calls", "tool_call_id")}
            for m in record["traj"]
        ]
        said = [m["content"] for m in messages if m["role"] == "assistant" and m.get("content")]
        first = next(m["content"] for m in messages if m["role"] == "user")
        rows.append(
            row(
                task,
                counts[task],
                float(record["reward"]),
                messages=messages,
                prompt=first,
                final_text=said[-1] if said else None,
            )
        )
        counts[task] += 1
    return rows


def reasons(selected):
    return [e.reason for e in selected.ledger]


def test_one_reason_each_and_the_cause_before_the_effect():
    rows = [
        row(index=0, reward=1.0),
        row(index=1, reward=0.0),
        row(index=2, reward=None, outcome="failed", error={"type": "X", "message": "m"}),
        row(index=3, reward=None, finish_reason="length"),
        row(index=4, reward=None),
        row(index=5, reward=1.0, markers={"no_leak": 0.0}),
        row(index=6, reward=0.0, final_text="  \u200b "),
        row(index=7, reward=0.0, finish_reason="stop"),
    ]
    chosen = select(rows, mode="rl")
    assert reasons(chosen) == ["kept", "kept", "failed", "truncated", "not_scored", "leak", "junk", "kept"]
    assert chosen.rows == [rows[0], rows[1], rows[7]]
    assert all(a is b for a, b in zip(chosen.rows, [rows[0], rows[1], rows[7]], strict=True))
    assert [e.kept for e in chosen.ledger] == [r == "kept" for r in reasons(chosen)]


def test_all_truncated_is_named_and_stopped_rows_are_not():
    cut = select(group("t", [0.0] * 12, finish_reason="length"), mode="rl")
    assert cut.rows == [] and cut.report["dropped"] == {"truncated": 12}
    assert any("length limit" in note for note in cut.report["notes"])
    done = select(group("t", [0.0] * 12, finish_reason="stop"), mode="rl")
    assert done.report["dropped"] == {"unanimous_fail": 12}


@pytest.mark.parametrize(
    ("finish", "text", "want"),
    [
        ("stop", "def f():\n    return 1\n```", "kept"),
        ("stop", "Regards,\nKim", "kept"),
        ("length", "The result is 12.", "truncated"),
        ("max_tokens", "The result is 12.", "truncated"),
        ("content_filter", "The result", "truncated"),
        (None, "anything", "kept"),
    ],
)
def test_completeness_is_the_finish_reason_never_the_text(finish, text, want):
    rows = [*group("t", [0.0, 1.0]), row(index=2, reward=1.0, finish_reason=finish, final_text=text)]
    assert reasons(select(rows))[2] == want


def test_the_rate_counts_rows_that_are_dropped_later():
    # 2 passes complete, 8 cut fails: the policy passes 20 % of the time, and what remains is unanimous.
    rows = [*group("a", [1.0, 1.0]), *[row("a", 2 + i, 0.0, finish_reason="length") for i in range(8)]]
    chosen = select(rows)
    assert chosen.report["rates"]["a"] == [2.0, 10]
    assert reasons(chosen) == ["unanimous_pass"] * 2 + ["truncated"] * 8
    # 1 of 3 complete ones passes but 1 of 10 overall: too hard, although 1/3 looks fine.
    rows = [*group("a", [1.0, 0.0, 0.0]), *[row("a", 3 + i, 0.0, finish_reason="length") for i in range(7)]]
    assert reasons(select(rows))[:3] == ["too_hard"] * 3


def test_failed_runs_are_not_the_policys_sample():
    rows = [*group("a", [1.0, 0.0]), *[row("a", 2 + i, 0.0, outcome="failed") for i in range(8)]]
    chosen = select(rows)
    assert chosen.report["rates"]["a"] == [1.0, 2]
    assert len(chosen.rows) == 2


def test_penalise_keeps_the_row_and_the_old_verdict():
    rows = [
        *group("t", [1.0, 1.0]),
        row(index=2, reward=0.75, finish_reason="length", scorer={"id": "x", "kind": "rule"}),
    ]
    chosen = select(rows, truncated="penalise", penalty=0.0)
    last = chosen.rows[-1]
    assert last["reward"] == 0.0 and last["status"] == "ok" and last["judgments"][-1]["reward"] == 0.75
    assert last["scorer"]["id"] == "select/truncated_penalty"
    assert rows[2]["reward"] == 0.75 and "judgments" not in rows[2]
    assert reasons(select(rows, truncated="keep", band=(0.0, 1.0))) == ["kept"] * 3


def test_unanimous_groups_and_band():
    rows = [
        *group("pass", [1.0] * 10),
        *group("fail", [0.0] * 10),
        *group("hard", [1.0] + [0.0] * 9),
        *group("easy", [0.0] + [1.0] * 9),
        *group("low", [1.0] * 2 + [0.0] * 8),
        *group("high", [1.0] * 8 + [0.0] * 2),
        *group("one", [1.0]),
    ]
    chosen = select(rows)
    by_task = {e.task_id: e.reason for e in chosen.ledger}
    assert by_task == {
        "pass": "unanimous_pass",
        "fail": "unanimous_fail",
        "hard": "too_hard",
        "easy": "too_easy",
        "low": "kept",
        "high": "kept",
        "one": "group_too_small",
    }
    assert chosen.report["dropped_tasks"] == {
        "unanimous_pass": 1, "unanimous_fail": 1, "too_hard": 1, "too_easy": 1, "group_too_small": 1,
    }  # fmt: skip


def test_fractional_rewards_use_variance_and_the_mean():
    rows = [*group("a", [0.3, 0.6, 0.6, 0.3]), *group("b", [0.5] * 4), *group("c", [0.9, 0.95, 0.9, 0.9])]
    chosen = select(rows)
    assert {e.task_id: e.reason for e in chosen.ledger} == {"a": "kept", "b": "no_variance", "c": "too_easy"}
    assert chosen.report["rate_of"] == "mean reward"
    assert {e.task_id: e.reason for e in select(rows, measure="pass").ledger}["a"] == "too_hard"


def test_threshold_of_the_row_counts():
    rows = group("a", [0.6, 0.4, 0.6, 0.4], threshold=0.5)
    assert select(rows, measure="pass").report["rates"]["a"] == [2.0, 4]


def test_duplicates_keep_their_multiplicity_unless_asked():
    rows = [row(index=i, reward=float(i > 0), final_text="same" if i else "other") for i in range(4)]
    rows = [{**r, "reward": 1.0 if i else 0.0} for i, r in enumerate(rows)]
    assert len(select(rows).rows) == 4
    chosen = select(rows, duplicates="drop")
    assert reasons(chosen) == ["kept", "kept", "duplicate", "duplicate"]
    assert chosen.report["rates"]["t"] == [3.0, 4]


def test_partial_groups():
    rows = [*group("a", [1.0, 0.0, None, 1.0]), *group("b", [1.0, 0.0])]
    assert select(rows).report["partial_groups"] == 1
    chosen = select(rows, partial="drop")
    assert reasons(chosen) == ["partial_group"] * 2 + ["not_scored", "partial_group", "kept", "kept"]


def test_unscored_rows_may_travel_with_their_group():
    rows = group("a", [1.0, 0.0, None, 1.0])
    chosen = select(rows, unscored="keep")
    assert len(chosen.rows) == 4 and chosen.report["rates"]["a"] == [2.0, 3]


def test_status_without_verdict_is_not_scored_whatever_the_number():
    rows = [*group("a", [1.0, 0.0]), row("a", 2, 0.0, status="timeout")]
    rows[2]["status"] = "timeout"
    assert reasons(select(rows))[2] == "not_scored"


@pytest.mark.parametrize("bad", [float("nan"), 1.5, -0.1, True, "1", float("inf")])
def test_a_reward_that_is_no_reward_is_an_error_that_names_the_row(bad):
    rows = [*group("a", [1.0, 0.0]), row("a", 2, 0.5)]
    rows[2]["reward"] = bad
    with pytest.raises(RowError, match="row 2"):
        select(rows)


def test_unknown_words_name_the_nearest():
    for call in (
        lambda: select([], mode="rll"),
        lambda: select([], bnd=(0, 1)),
        lambda: select([], truncated="droop"),
        lambda: select([], rate="shrunk"),
        lambda: select([], stratify=("fault",)),
    ):
        with pytest.raises(ParameterError, match=r"did you mean|use one of"):
            call()
    for bad in ({"band": (0.8, 0.2)}, {"min_group": 0}, {"size": -1}, {"penalty": 2.0}):
        with pytest.raises(ParameterError):
            select([], **bad)


def test_empty_input():
    chosen = select([])
    assert chosen.rows == [] and chosen.ledger == [] and chosen.report["summary"].startswith("select rl: kept 0 of 0")


def test_the_report_says_what_four_rollouts_cannot_show():
    chosen = select(group("a", [1.0, 0.0, 0.0, 0.0]))
    assert "no rate can be shown to lie inside" in chosen.report["resolution"]
    assert chosen.report["surely_in_band"] == 0
    assert 0 < chosen.report["expected_outside_band"] < 1


def test_shrunken_rates_move_towards_the_other_tasks():
    # Twenty tasks at 90 %: a single 1 of 4 among them is more likely luck than truth.
    rows = [r for t in range(20) for r in group(f"e{t}", [1.0] * 9 + [0.0])]
    rows += group("odd", [1.0, 1.0, 1.0, 0.0])
    measured, shrunk = select(rows), select(rows, rate="shrunken")
    assert "odd" in {r["task_id"] for r in measured.rows}
    assert {e.task_id: e.reason for e in shrunk.ledger}["odd"] == "too_easy"
    unsure = select(rows, rate="probability", in_band_probability=0.5)
    assert {e.task_id: e.reason for e in unsure.ledger}["odd"] == "too_easy"


def test_stamp_is_a_copy():
    rows = group("a", [1.0, 0.0], lineage={"writer": "w"}, policy={"name": "p", "version": "3"})
    stamped = select(rows, stamp=True).rows[0]
    assert stamped["lineage"]["writer"] == "w"
    assert stamped["lineage"]["selection"]["rate"] == 0.5 and stamped["lineage"]["selection"]["policy"] == "3"
    assert "selection" not in rows[0]["lineage"]


def test_calibration_names_policies_and_scorers():
    rows = group("a", [1.0, 0.0], policy={"name": "p"}, scorer={"id": "verify/x", "version": "1"})
    rows += group("b", [1.0, 0.0], policy={"name": "q"}, scorer={"id": "verify/x", "version": "1"})
    stamp = select(rows).report["calibration"]
    assert stamp["policies"] == {"p": 2, "q": 2} and stamp["scorers"] == {"verify/x@1": 4} and stamp["mixed"]


def test_size_takes_whole_groups_nested_and_stratified():
    rows = []
    for t in range(200):
        passes = 1 if t % 4 == 0 else 2
        rows += group(f"t{t}", [1.0] * passes + [0.0] * (4 - passes), faults_fired=["timeout"] if t % 10 == 0 else [])
    kept = {size: select(rows, size=size) for size in (80, 200, 400)}
    for size, chosen in kept.items():
        sizes = Counter(r["task_id"] for r in chosen.rows)
        assert set(sizes.values()) == {4} and size - 4 < len(chosen.rows) <= size
        with_fault = sum(bool(r["faults_fired"]) for r in chosen.rows) / len(chosen.rows)
        hard = sum(int(r["task_id"][1:]) % 4 == 0 for r in chosen.rows) / len(chosen.rows)
        assert abs(with_fault - 0.1) <= 0.06 and abs(hard - 0.25) <= 0.06
    ids = {size: {r["rollout_id"] for r in chosen.rows} for size, chosen in kept.items()}
    assert ids[80] <= ids[200] <= ids[400]
    shuffled = rows[:]
    random.Random(5).shuffle(shuffled)
    assert {r["rollout_id"] for r in select(shuffled, size=200).rows} == ids[200]


def test_tau_bench_rows_add_up_row_by_row():
    rows = tau_rows()
    chosen = select(rows, mode="rl")
    assert len(chosen.ledger) == 200 == len(chosen.rows) + sum(chosen.report["dropped"].values())
    assert [e.position for e in chosen.ledger] == list(range(200))
    # Independent count, straight from the file: tasks whose 4 trials differ.
    rewards = defaultdict(list)
    for r in rows:
        rewards[r["task_id"]].append(r["reward"])
    mixed = {t for t, rs in rewards.items() if 0 < sum(rs) < len(rs)}
    assert {r["task_id"] for r in chosen.rows} == mixed
    assert len(chosen.rows) == sum(len(rewards[t]) for t in mixed)


rewards = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))
any_rows = st.lists(
    st.builds(
        lambda task, reward, finish, outcome, text: row(
            task, 0, reward, finish_reason=finish, outcome=outcome, final_text=text
        ),
        st.sampled_from("abc"),
        rewards,
        st.sampled_from([None, "stop", "length", "tool_calls"]),
        st.sampled_from(["completed", "failed", "truncated"]),
        st.sampled_from(["x", "", "y"]),
    ),
    max_size=30,
)


@settings(max_examples=80, deadline=None)
@given(
    any_rows, st.sampled_from(["rl", "sft"]), st.sampled_from(["keep", "drop"]), st.one_of(st.none(), st.integers(0, 9))
)
def test_the_ledger_always_adds_up(rows, mode, truncated, size):
    chosen = select(rows, mode=mode, truncated=truncated, size=size)
    assert len(chosen.ledger) == len(rows)
    assert len(chosen.rows) + sum(chosen.report["dropped"].values()) == len(rows)
    assert [e.kept for e in chosen.ledger] == [e.reason == "kept" for e in chosen.ledger]
    assert [id(rows[e.position]) for e in chosen.ledger if e.kept] == [id(r) for r in chosen.rows]
    if size is not None:
        assert len(chosen.rows) <= size


def test_direct_call_equals_the_front_door():
    rows = group("a", [1.0, 0.0])
    assert reasons(select_rl(rows)) == reasons(select(rows, mode="rl"))
