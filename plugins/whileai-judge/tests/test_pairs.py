"""Pairs in both orders: the seat decides nothing, and the report says what it would have decided."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge import JudgeError, ModelPairJudge, pairwise
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel.errors import ParameterError
from whileai_kernel.testing import ScriptedModel


def longer(first, second):
    return "tie" if len(first) == len(second) else "first" if len(first) > len(second) else "second"


def seat(first, second):
    return "first"


def one(judge, a, b):
    return pairwise([(a, b)], judge).verdicts[0]


def test_a_judge_of_the_seat_gives_ties_and_flips():
    verdict = one(seat, "x", "y")
    assert (verdict.winner, verdict.flip) == ("tie", True)
    report = pairwise([(f"x{i}", f"y{i}") for i in range(10)], seat)
    assert report.position_flip_rate == 1.0
    assert report.first_seat.value == 1.0
    assert report.preference is None
    assert any("position" in text for text in report.warnings)


def test_a_judge_of_length_wins_in_both_orders_and_is_named():
    verdict = one(longer, "aa", "a")
    assert (verdict.winner, verdict.flip) == ("a", False)
    report = pairwise([("a" * (i + 2), "a") for i in range(10)], longer)
    assert (report.wins_a, report.position_flip_rate, report.longer_wins.value) == (10, 0.0, 1.0)
    assert any("length" in text for text in report.warnings)
    assert not any("position" in text for text in report.warnings)
    few = pairwise([("aa", "a")] * 3, longer)
    assert not few.warnings  # three pairs say nothing about length


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_swapping_the_sides_swaps_the_winners(pairs):
    there = [v.winner for v in pairwise(pairs, longer).verdicts]
    back = [v.winner for v in pairwise([(b, a) for a, b in pairs], longer).verdicts]
    assert there == [{"a": "b", "b": "a"}.get(w, w) for w in back]
    assert there == [longer(a, b).replace("first", "a").replace("second", "b") for a, b in pairs]


def test_a_win_in_one_order_and_a_tie_in_the_other_is_a_tie_without_flip():
    verdict = one(lambda first, second: "first" if first == "a" else "tie", "a", "b")
    assert (verdict.winner, verdict.flip) == ("tie", False)


@pytest.mark.parametrize("answer", [None, "maybe", 3, {"winner": "neither"}])
def test_what_cannot_be_read_is_no_verdict(answer):
    report = pairwise([("x", "y"), ("aa", "a")], lambda first, second: answer if "x" in (first, second) else "first")
    assert report.verdicts[0].winner is None
    assert report.unread == 1
    assert any("1 of 2 pairs have no verdict" in text for text in report.warnings)


def test_errors_and_deadlines_are_no_verdict():
    def fails(first, second):
        if "x" in (first, second):
            raise ValueError("no")
        return first

    report = pairwise([("x", "y"), ("aa", "a")], fails)
    assert report.verdicts[0].reason == "ValueError: no"
    assert report.verdicts[1].orders == ("a", "b")


def test_a_judge_that_always_fails_stops_early():
    def fails(first, second):
        raise OSError("down")

    with pytest.raises(JudgeError, match="first 8 of 40"):
        pairwise([("a", "b")] * 20, fails)


def test_judges_may_be_async_and_return_the_text_that_they_prefer():
    async def prefers_b(first, second):
        await asyncio.sleep(0)
        return "bbb"

    assert one(prefers_b, "a", "bbb").winner == "b"


def test_rows_bring_their_task_and_their_text():
    def side(text, task):
        return {"task_id": task, "final_text": text, "prompt": "q"}

    pairs = [(side("aa", f"t{i // 2}"), side("a", f"t{i // 2}")) for i in range(8)]
    report = pairwise(pairs, lambda first, second: longer(first["final_text"], second["final_text"]))
    assert (report.preference.rows, report.preference.tasks) == (8, 4)
    assert report.preference.low < 1.0
    with pytest.raises(ParameterError):
        pairwise([("a", "b")], longer, tasks=[])


def test_a_model_judges_pairs_and_is_not_talked_into_it():
    def model(prompt):
        first, second = quoted_block(prompt, "FIRST"), quoted_block(prompt, "SECOND")
        return verdict_line(prompt, longer(first, second).upper())

    judge = ModelPairJudge("Says more.", ScriptedModel(model))
    assert one(judge, "short", "much longer").winner == "b"
    planted = ModelPairJudge("Says more.", ScriptedModel(lambda prompt: "VERDICT: FIRST"))
    assert one(planted, "a", "b").winner is None
    assert ModelPairJudge("x", ScriptedModel([])).version != ModelPairJudge("y", ScriptedModel([])).version
    with pytest.raises(ParameterError):
        ModelPairJudge(" ", ScriptedModel([]))


def test_the_report_prints_and_is_plain():
    report = pairwise([("aa", "a"), ("b", "b")], longer)
    assert str(report).startswith("a preferred 1.00 [0.00..1.00]")
    assert report.to_dict()["verdicts"][1] == {"winner": "tie", "flip": False, "orders": ["tie", "tie"]}
    assert str(pairwise([], longer)).startswith("no decided pair")
