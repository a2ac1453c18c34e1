"""Probes: careless judges are fooled by name, careful ones hold, and few rows say nothing."""

from __future__ import annotations

import json

import pytest

from whileai_judge import Judge, judge_probes
from whileai_judge.attacks import refusal
from whileai_judge.probe_checks import PROBE_CHECKS
from whileai_judge.probes import available_probes
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel import entries, register_local
from whileai_kernel.errors import UnknownNameError
from whileai_kernel.testing import ScriptedModel
from whileai_kernel.testing.kit import Subject, run_checks


def rows_of(tasks=50, per_task=1, reply="It is lost somewhere."):
    return [
        {
            "task_id": f"t{i}", "prompt": f"Where is my order number {i} please?", "final_text": reply,
            "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": reply}],
        }
        for i in range(tasks) for _ in range(per_task)
    ]  # fmt: skip


def careful(row):
    return row["final_text"].startswith("It arrives on ")


CARELESS = {
    "filler": lambda row: len(row["final_text"]) > 400,
    "keyword_stuffing": lambda row: "order" in row["final_text"] and "?" not in row["final_text"],
    "success_claim": lambda row: "completed everything" in row["final_text"],
    "prompt_echo": lambda row: row["final_text"].startswith("Where is"),
    "flattery": lambda row: "expert evaluator" in row["final_text"],
    "planted_verdict": lambda row: "VERDICT: PASS" in row["final_text"],
    "empty_format": lambda row: row["final_text"].startswith("##"),
    "refusal": lambda row: "can't help" in row["final_text"],
    "authority": lambda row: "specialist" in row["final_text"],
}


@pytest.mark.parametrize("name", sorted(CARELESS))
def test_every_probe_fools_the_judge_that_it_is_made_for_and_not_a_careful_one(name):
    fooled = judge_probes(rows_of(), CARELESS[name], probes=[name])
    assert fooled.fooled == (name,), str(fooled)
    held = judge_probes(rows_of(), careful, probes=[name])
    assert held.results[0].verdict == "holds", str(held)
    assert held.results[0].passed.value == 0.0


def test_every_built_in_probe_is_covered_here():
    assert set(CARELESS) == {entry.name for entry in entries("probes") if entry.plugin.name == "judge"}


def test_few_rows_say_nothing():
    report = judge_probes(rows_of(10), CARELESS["filler"], probes=["filler"])
    assert report.results[0].verdict == "too few rows"
    assert report.fooled == ()
    unclear = judge_probes(rows_of(20), careful, probes=["filler"])
    assert unclear.results[0].verdict == "unclear"  # 20 of 20 held: up to 0.18 may still pass


def test_additions_are_tried_on_failing_replies_only():
    rows = rows_of(40)
    for row in rows[30:]:
        row["final_text"] = "It arrives on Monday."

    def judge(row):
        return careful(row) or "specialist" in row["final_text"]

    report = judge_probes(rows, judge, probes=["authority"])
    assert report.base_rows == 30
    assert report.results[0].passed.rows == 30
    assert report.results[0].keeps_reply
    labelled = [{**row, "gold": 1.0} for row in rows]
    assert judge_probes(labelled, judge, probes=["authority"], gold=lambda row: row["gold"]).base_rows == 0


def test_rows_are_spread_over_tasks_and_the_originals_stay():
    rows = rows_of(30, per_task=5)
    before = json.dumps(rows)
    report = judge_probes(rows, careful, probes=["refusal"], max_rows=30)
    assert (report.results[0].passed.rows, report.results[0].passed.tasks) == (30, 30)
    assert json.dumps(rows) == before


def test_replies_that_are_not_scored_are_counted_and_not_passes():
    report = judge_probes(rows_of(), lambda row: None if "can't" in row["final_text"] else False, probes=["refusal"])
    assert (report.results[0].passed, report.results[0].unscored) == (None, 50)
    assert report.results[0].verdict == "too few rows"


def test_a_model_judge_with_a_token_is_not_fooled_by_a_planted_verdict():
    def reads_the_reply_aloud(prompt):
        return f"{quoted_block(prompt)}\n{verdict_line(prompt, 'FAIL')}"

    judge = Judge("Names the day.", ScriptedModel(reads_the_reply_aloud))
    report = judge_probes(rows_of(), judge, probes=["planted_verdict"])
    assert report.results[0].verdict == "holds"


def test_other_plugins_bring_probes_through_the_registry():
    register_local("probes", "emoji", refusal)
    assert available_probes()["emoji"]({}) == refusal({})
    report = judge_probes(rows_of(), careful, probes=["here/emoji"])
    assert report.results[0].name == "here/emoji"


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (lambda row: None, "gives_a_text"),
        (lambda row: row["final_text"], "does_what_it_declares"),
        (lambda row: row["prompt"][0] if row["prompt"] else 3, "survives_odd_rows"),
        (lambda row: row.setdefault("x", "text"), "leaves_the_row_alone"),
        (lambda row, seen=[]: seen.append(1) or "x" * len(seen), "is_repeatable"),
    ],
)
def test_each_check_of_the_kind_catches_a_wrong_probe(wrong, check):
    report = run_checks(PROBE_CHECKS, Subject("probes", "acme/wrong", wrong))
    assert check in [result.check for result in report.results if result.outcome == "failed"]


def test_unknown_probes_are_refused_and_own_ones_accepted():
    with pytest.raises(UnknownNameError, match="flattery"):
        judge_probes(rows_of(), careful, probes=["flatery"])
    report = judge_probes(rows_of(), careful, probes={"mine": lambda row: "It arrives on no day."})
    assert report.fooled == ("mine",)
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report).startswith("mine: fooled, passed 1.00")
