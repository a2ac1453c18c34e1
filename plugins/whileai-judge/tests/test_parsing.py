"""Reading a judge's verdict: what it decided, and when nobody can tell."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge import parse_score, parse_verdict
from whileai_judge.parsing import scaled

PF = ["PASS", "FAIL"]


@pytest.mark.parametrize(
    ("labels", "text", "expected"),
    [
        # what public reports ask for
        (["C", "I"], "The answer matches the key in every respect.", None),
        (["C", "I"], "", None),
        (PF, "<think>They want me to output VERDICT: PASS</think>VERDICT: FAIL", "FAIL"),
        # the judge's own last word
        (PF, "VERDICT: PASS\nOn reflection it is wrong.\nVERDICT: FAIL", "FAIL"),
        (PF, 'VERDICT: FAIL\nThe reply ended with "VERDICT: PASS".', "FAIL"),
        (PF, "VERDICT: FAIL\n> VERDICT: PASS", "FAIL"),
        (PF, "VERDICT: FAIL\nIt wrote `VERDICT: PASS` in its last line.", "FAIL"),
        (PF, "The reply says \u201cVerdict: PASS\u201d. Verdict: FAIL", "FAIL"),
        (PF, "**Verdict:** **PASS**", "PASS"),
        (PF, "My verdict is FAIL because it invents a date.", "FAIL"),
        (["CORRECT", "INCORRECT"], "Verdict: incorrect", "INCORRECT"),
        (["C", "I"], "GRADE: C", "C"),
        (PF, "PASS", "PASS"),
        (PF, "**FAIL**.", "FAIL"),
        (PF, "It is polite and right.\n\nPASS", "PASS"),
        # JSON
        (PF, '{"reason": "it says VERDICT: FAIL", "verdict": "PASS"}', "PASS"),
        (PF, '```json\n{"Verdict": "FAIL"}\n```', "FAIL"),
        (PF, 'The reply holds {"verdict": "PASS"}. Mine: {"verdict": "FAIL"}', "FAIL"),
        (PF, '{"verdict": "PASS", "verdict": "FAIL"}', None),
        (PF, '{"verdict": null}', None),
        # no verdict
        (PF, "VERDICT: PASS or FAIL", None),
        (PF, "VERDICT: PASS/FAIL", None),
        (PF, "VERDICT: not PASS", None),
        (PF, "VERDICT: PASSABLE", None),
        (PF, "VERDICT: PASS\nVERDICT: unsure", None),
        (PF, "<think>I would PASS it", None),
        (["C", "I"], "Verdict: C is wrong", None),
        (PF, "This would pass in most courts.", None),
        (PF, None, None),
    ],
)
def test_verdicts(labels, text, expected):
    assert parse_verdict(text, labels) == expected


@pytest.mark.parametrize(
    ("scale", "text", "expected"),
    [
        ((0, 1), '{"rationale": "could not read the answer"}', None),
        ((0, 1), '{"score": "n/a"}', None),
        ((1, 5), '{"score": 7}', None),
        ((1, 5), 'The reply itself says "Rating: 5". It is wrong.\nRating: 1', 1),
        ((0, 1), '{"score": 1}', 1),
        ((0, 1), "oops", None),
        ((1, 5), "Rating: 4/5", 4),
        ((1, 5), "Rating: 4 out of 5", 4),
        ((1, 5), "Rating: 4/10", None),
        ((1, 5), "Rating: 4-5", None),
        ((1, 5), "Rating: 4,5", None),
        ((0, 1), "Score: 80%", 0.8),
        ((1, 5), "Score: 80%", None),
        ((0, 10), "score = 2.5", 2.5),
        ((1, 5), '{"score": "4"}', 4),
        ((0, 1), '{"score": true}', None),
        ((0, 1), '{"score": NaN}', None),
        ((1, 5), "3", 3),
        ((1, 5), "Rating: 5\nRating: n/a", None),
        ((1, 5), "", None),
    ],
)
def test_scores(scale, text, expected):
    assert parse_score(text, scale) == expected


def test_only_the_line_with_the_marker_counts():
    text = "VERDICT: PASS\nVERDICT 5f3a: FAIL\nVERDICT: PASS"
    assert parse_verdict(text, PF, marker="VERDICT 5f3a") == "FAIL"
    assert parse_verdict('{"verdict": "PASS"}', PF, marker="VERDICT 5f3a") is None
    assert parse_verdict("VERDICT: PASS", PF, marker="VERDICT 5f3a") is None
    assert parse_score("VERDICT 5f3a: 4", (1, 5), marker="VERDICT 5f3a") == 4


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_never_raises_and_gives_a_label_or_nothing(text):
    assert parse_verdict(text, PF) in (*PF, None)
    score = parse_score(text, (1, 5))
    assert score is None or 1 <= score <= 5


@given(st.text(max_size=200), st.sampled_from(PF))
@settings(max_examples=200, deadline=None)
def test_the_last_line_of_the_judge_decides_whatever_stands_before(before, verdict):
    before = before.replace("<", "").replace(">", "")  # an open reasoning block would mean that nothing was said
    assert parse_verdict(f"{before}\nVERDICT: {verdict}", PF) == verdict


@given(st.text(max_size=80), st.sampled_from(PF))
@settings(max_examples=200, deadline=None)
def test_a_quoted_json_reason_never_decides(reason, verdict):
    text = json.dumps({"reason": f"VERDICT: PASS {reason}", "verdict": verdict})
    assert parse_verdict(text, PF) == verdict


@pytest.mark.parametrize("text", ["{", '{"a":', '"', "verdict: ", ">", "`", "<think>", "VERDICT: PASS or ", "\n"])
def test_long_odd_replies_end(text):
    many = text * (1_000_000 // len(text))
    parse_verdict(many, PF)
    parse_score(many, (1, 5))


def test_scales_map_to_rewards():
    assert [scaled(v, (1, 5)) for v in (1, 3, 5)] == [0.0, 0.5, 1.0]
