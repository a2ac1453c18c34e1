"""Weighted criteria: closed forms, and no reward for what was not checked."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge import Criterion, Rubric
from whileai_kernel.errors import ParameterError


def rubric(*parts):
    return Rubric([Criterion(f"c{i}", "text", kind, weight) for i, (kind, weight) in enumerate(parts)])


@pytest.mark.parametrize(
    ("parts", "verdicts", "reward"),
    [
        ([("principle", 3), ("principle", 1)], [True, False], 0.75),
        ([("principle", 3), ("principle", 1)], [True, True], 1.0),
        ([("hard", 1), ("principle", 1)], [False, True], 0.0),
        ([("hard", 1), ("principle", 1)], [True, False], 0.0),
        ([("principle", 4), ("pitfall", 1)], [True, True], 0.75),
        ([("principle", 1), ("pitfall", 5)], [True, True], 0.0),
        ([("hard", 1), ("hard", 1)], [True, True], 1.0),
        ([("pitfall", 1), ("pitfall", 3)], [False, True], 0.25),
        ([("hard", 1), ("principle", 1)], [False, None], 0.0),  # decided whatever the other is
        ([("principle", 1), ("principle", 1)], [True, None], None),
        ([("hard", 1)], [None], None),
        ([("principle", 1), ("principle", 1)], ["n/a", True], 1.0),
        ([("principle", 1)], ["n/a"], None),
    ],
)
def test_rewards(parts, verdicts, reward):
    score = rubric(*parts).score({f"c{i}": v for i, v in enumerate(verdicts)})
    assert score.reward == reward


KINDS = st.sampled_from(["hard", "principle", "pitfall"])
PARTS = st.lists(st.tuples(KINDS, st.floats(0.1, 5)), min_size=1, max_size=5)


@given(PARTS, st.data())
@settings(max_examples=150, deadline=None)
def test_a_reward_with_open_criteria_is_the_one_of_every_way_to_close_them(parts, data):
    one = rubric(*parts)
    verdicts = {f"c{i}": data.draw(st.sampled_from([True, False, None])) for i in range(len(parts))}
    closed = []
    for guess in itertools.product([True, False], repeat=sum(v is None for v in verdicts.values())):
        values = iter(guess)
        closed.append(one.score({k: next(values) if v is None else v for k, v in verdicts.items()}).reward)
    score = one.score(verdicts)
    assert score.bounds == pytest.approx((min(closed), max(closed)))
    assert all(0 <= reward <= 1 for reward in closed)
    if score.reward is None:
        assert max(closed) - min(closed) > 0
    else:
        assert closed == pytest.approx([score.reward] * len(closed))


def test_nothing_to_check_is_no_rubric():
    with pytest.raises(ParameterError):
        Rubric([])
    with pytest.raises(ParameterError, match="share"):
        Rubric([Criterion("a", "x"), Criterion("a", "y")])
    for wrong in ({"kind": "soft"}, {"weight": 0}, {"weight": float("nan")}, {"text": " "}):
        with pytest.raises(ParameterError):
            Criterion(**{"id": "a", "text": "x", **wrong})
    with pytest.raises(ParameterError, match="no criterion 'b'"):
        Rubric([Criterion("a", "x")]).score({"b": True})


def test_read_from_markdown():
    text = "# What counts\n\n- [hard] asks: Asks for the number.\n- [pitfall 2] Guesses a date.\n* Is warm: always.\n"
    one = Rubric.from_markdown(text)
    assert [(c.id, c.kind, c.weight, c.text) for c in one.criteria] == [
        ("asks", "hard", 1, "Asks for the number."),
        ("c2", "pitfall", 2, "Guesses a date."),
        ("c3", "principle", 1, "Is warm: always."),
    ]
    with pytest.raises(ParameterError, match="principle"):
        Rubric.from_markdown("- [principal] x: y")
    with pytest.raises(ParameterError):
        Rubric.from_markdown("prose without a list")


def test_the_version_follows_everything_that_shapes_a_verdict():
    versions = {
        rubric(("hard", 1)).version,
        rubric(("principle", 1)).version,
        rubric(("hard", 2)).version,
        Rubric([Criterion("c0", "other", "hard")]).version,
    }
    assert len(versions) == 4
    assert rubric(("hard", 1)).version == rubric(("hard", 1)).version
