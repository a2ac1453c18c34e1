"""The verifier and the marker against replies whose truth is known by construction."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_grounded.figures import FiguresSeen, form_of
from whileai_grounded.quotes import QuotesExist
from whileai_kernel import make
from whileai_kernel.errors import ParameterError
from whileai_kernel.testing import conformance_test

WORDS = st.lists(st.sampled_from(["refund", "after", "ten", "days", "only", "with", "receipt"]), min_size=3, max_size=9)


def row(final, *shown, role="tool"):
    messages = [{"role": role, "content": text} for text in shown]
    return {"prompt": "", "messages": [*messages, {"role": "assistant", "content": final}], "final_text": final}


test_conformance = conformance_test("grounded")


def test_found_by_name_once_installed():
    assert isinstance(make("verifiers", "grounded/quotes_exist", min_words=2), QuotesExist)
    assert isinstance(make("markers", "grounded/figures_seen"), FiguresSeen)


@given(WORDS, st.sampled_from(['"{}"', "\u201c{}\u201d", "\u00ab{}\u00bb", '"{}."', '"{}",']))
@settings(max_examples=60, deadline=None)
def test_a_copied_quotation_passes_and_one_changed_word_fails(words, marks):
    sentence = " ".join(words)
    shown = f"Our policy. {sentence.upper()}. Thank you."
    assert QuotesExist()(row(f"It says {marks.format(sentence)}", shown))["reward"] == 1.0
    changed = sentence.replace(words[0], "never", 1)
    assert QuotesExist()(row(f"It says {marks.format(changed)}", shown))["reward"] == 0.0


@pytest.mark.parametrize(
    ("quotation", "reward"),
    [
        ("refunds \u2026 ten days", 1.0),
        ("refunds [...] ten days", 1.0),
        ("ten days ... refunds take", 0.0),  # the parts in the other order
        ("refunds   take\u00a0up to", 1.0),
        ("refunds take 10 days", 0.0),
    ],
)
def test_ellipses_and_spaces(quotation, reward):
    assert QuotesExist()(row(f'"{quotation}"', "Note: refunds take up to ten days."))["reward"] == reward


def test_own_words_do_not_count_as_shown():
    text = "you can have a full refund"
    assert QuotesExist()(row(f'I said "{text}"', text, role="assistant"))["status"] == "missing"
    assert QuotesExist()({**row(f'I said "{text}"', "nothing of the kind"), "prompt": ""})["reward"] == 0.0


def test_what_is_not_scored():
    assert QuotesExist()(row("No quotation.", "text"))["reward"] is None
    assert QuotesExist()(row('The "Gold" card.', "text"))["reward"] is None
    assert QuotesExist()(row('"one two three"' * 201, "text"))["status"] == "abstained"
    assert QuotesExist()(row('<think>"one two three"', "text"))["reward"] is None
    with pytest.raises(ParameterError):
        QuotesExist(min_words=0)


@pytest.mark.parametrize(
    ("shown", "said", "value"),
    [
        ("price 1250.0", "1,250 USD", 1.0),
        ("price 1250.5", "1250.50", 1.0),
        ("price 1250", "1251", 0.0),
        ("2024-05-20T07:00:00", "On the 20th: no, May 20, 2024 at 07:00", 0.75),  # 20th is a code of its own
        ("departs 07:00:00", "at 7:00", 1.0),
        ("order #W5918442", "order w5918442", 1.0),
        ("order #W5918442", "order W5918443", 0.0),
        ("a, b", "3 options", None),
        ("total 30 and 12", "total 42", 0.0),  # a sum is unseen: the marker cannot know that it is right
    ],
)
def test_figures(shown, said, value):
    assert FiguresSeen()(row(said, shown))["value"] == value


@given(st.integers(11, 10**9))
@settings(max_examples=60, deadline=None)
def test_spellings_of_one_number_are_one(n):
    assert form_of(f"{n:,}") == form_of(str(n)) == form_of(f"{n}.00") == str(n)


def test_counts_of_the_recorded_runs_that_the_readme_gives():
    traces = pytest.importorskip("whileai_traces")
    found = [Path(os.environ["WHILEAI_SHARED"])] if "WHILEAI_SHARED" in os.environ else []
    found += [parent / "shared" for parent in Path(__file__).resolve().parents]
    path = next((p / "data" / "tau_bench_airline_gpt4o.json" for p in found if (p / "data").is_dir()), None)
    if path is None:
        pytest.skip("the shared data folder is not there: set WHILEAI_SHARED")
    rows = list(traces.read(path))
    marks = [(FiguresSeen()(r)["value"], r["reward"]) for r in rows]
    marks = [(value, reward) for value, reward in marks if value is not None]
    assert len(marks) == 79
    assert sum(value < 1 for value, _ in marks) == 13
    assert sum(value < 1 for value, reward in marks if reward == 0) == 12
    assert sum(1 for _, reward in marks if reward == 0) == 63
    assert all(QuotesExist()(r)["reward"] is None for r in rows)
