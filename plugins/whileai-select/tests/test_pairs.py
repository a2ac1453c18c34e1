"""Preference pairs: prefix, margin, exact matching, ledger, confounds."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_select import build_preference_pairs


def row(task, index, reward, text="x", **more):
    return {
        "task_id": task, "rollout_id": f"{task}-{index}", "index": index, "prompt": f"ask {task}", "final_text": text,
        "reward": reward, "status": "ok" if reward is not None else "missing", "markers": {}, **more,
    }  # fmt: skip


def test_ties_are_dropped_and_every_row_has_one_reason():
    rows = [row("a", 0, 1.0, "aaaa"), row("a", 1, 1.0, "bbbb"), row("b", 0, 1.0), row("c", 0, None),
            row("d", 0, 1.0, "yes!"), row("d", 1, 0.0, "nope")]  # fmt: skip
    made = build_preference_pairs(rows)
    assert [e.reason for e in made.ledger] == ["tie", "tie", "alone", "not_scored", "chosen", "rejected"]
    assert made.pairs[0]["chosen"] == [{"role": "assistant", "content": "yes!"}]
    assert made.pairs[0]["prompt"] == [{"role": "user", "content": "ask d"}]
    assert json.dumps(made.pairs) and "pairs: 1 from 6 rows" in str(made) and made.to_dict() and made._repr_html_()


def test_margin_counts():
    rows = [row("a", 0, 0.9, "aaaa"), row("a", 1, 0.5, "bbbb")]
    assert len(build_preference_pairs(rows, margin=0.3).pairs) == 1
    assert [e.reason for e in build_preference_pairs(rows, margin=0.5).ledger] == ["tie", "tie"]


def test_lengths_are_matched_within_the_ratio():
    rows = [row("a", 0, 1.0, "x" * 100), row("a", 1, 0.0, "y" * 10), row("a", 2, 0.0, "y" * 90)]
    made = build_preference_pairs(rows)
    assert made.pairs[0]["rejected_id"] == "a-2"
    assert [e.reason for e in made.ledger] == ["chosen", "length_differs", "rejected"]
    assert build_preference_pairs(rows[:2]).pairs == []
    assert len(build_preference_pairs(rows[:2], max_length_ratio=None).pairs) == 1


def best_by_enumeration(high, low, ratio):
    """Oracle: try every injective matching of the smaller side."""
    best = (0, 0.0)
    a, b = (high, low) if len(high) <= len(low) else (low, high)
    for targets in itertools.permutations(range(len(b)), len(a)):
        for mask in itertools.product((0, 1), repeat=len(a)):
            pairs = [(a[i], b[t]) for i, t in enumerate(targets) if mask[i]]
            costs = [abs(math.log1p(x) - math.log1p(y)) for x, y in pairs]
            if all(c <= math.log(ratio) + 1e-12 for c in costs):
                best = max(best, (len(pairs), -sum(costs)))
    return best


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_the_matching_is_the_best_one(high, low):
    rows = [row("a", i, 1.0, "x" * n) for i, n in enumerate(high)]
    rows += [row("a", 10 + i, 0.0, "y" * n) for i, n in enumerate(low)]
    made = build_preference_pairs(rows, per_task=None)
    cost = sum(abs(math.log1p(p["chosen_length"]) - math.log1p(p["rejected_length"])) for p in made.pairs)
    want = best_by_enumeration(high, low, 1.5)
    assert len(made.pairs) == want[0] and -cost == pytest.approx(want[1], abs=1e-6)
    used = [p[s] for p in made.pairs for s in ("chosen_id", "rejected_id")]
    assert len(used) == len(set(used))
    assert len(made.ledger) == len(rows) and Counter(e.reason for e in made.ledger)["chosen"] == len(made.pairs)


def test_shared_prefix_of_trajectories():
    def chat(*tail):
        return [{"role": "user", "content": "q"}, {"role": "assistant", "content": "Which order?"},
                {"role": "user", "content": "A-1"}, *tail]  # fmt: skip

    def call(arguments):
        return {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "get", "arguments": arguments}}]}  # fmt: skip

    tool = {"role": "tool", "tool_call_id": "c", "content": "open"}
    end = {"role": "assistant", "content": "It is open."}
    good = chat(call('{"id": "A-1"}'), tool, end)
    bad = chat(call('{"id": "B-9"}'), {**tool, "content": "none"}, {"role": "assistant", "content": "Not there"})
    made = build_preference_pairs([row("t", 0, 1.0, messages=good), row("t", 1, 0.0, messages=bad)])
    pair = made.pairs[0]
    assert pair["prompt"] == good[:3] and pair["chosen"] == good[3:] and pair["rejected"] == bad[3:]
    # Same call, another result: the world differs, so the pair begins at the call, not inside the results.
    other = chat(call('{"id": "A-1"}'), {**tool, "content": "shut"}, {"role": "assistant", "content": "It is shut."})
    pair = build_preference_pairs([row("t", 0, 1.0, messages=good), row("t", 1, 0.0, messages=other)]).pairs[0]
    assert pair["chosen"][0]["role"] == pair["rejected"][0]["role"] == "assistant" and len(pair["prompt"]) == 3


def test_on_policy_flag():
    rows = [
        row("a", 0, 1.0, "aa", policy={"name": "p", "version": "2"}),
        row("a", 1, 0.0, "bb", policy={"name": "p", "version": "1"}),
    ]
    assert build_preference_pairs(rows).pairs[0]["on_policy"] is False
    same = [{**r, "policy": {"name": "p", "version": "2"}} for r in rows]
    assert build_preference_pairs(same, policy="2").pairs[0]["on_policy"] is True
    made = build_preference_pairs(same, policy="3")
    assert made.pairs[0]["on_policy"] is False and any("policy" in w for w in made.warnings)
    assert build_preference_pairs([{**r, "policy": {}} for r in rows]).pairs[0]["on_policy"] is None


def test_length_confound_is_named_when_chosen_is_longer_in_every_pair():
    rows = [r for t in range(10) for r in (row(f"t{t}", 0, 1.0, "a" * 12), row(f"t{t}", 1, 0.0, "b" * 10))]
    made = build_preference_pairs(rows)
    length = next(c for c in made.confounds if c.name == "length")
    assert length.found and length.share == 1.0 and length.p == pytest.approx(2 / 2**10)
    assert any(w.startswith("length") for w in made.warnings)


def test_no_confound_in_balanced_pairs():
    rng = random.Random(0)
    found = 0
    for _ in range(60):
        rows = [
            row(f"t{t}", i, r, "w" * rng.randint(20, 25))
            for t in range(20)
            for i, r in enumerate(rng.sample([0.0, 1.0], 2))
        ]
        found += any(c.found for c in build_preference_pairs(rows).confounds)
    assert found <= 8  # binomial(60, 0.05): 9 or more has probability below 0.003


def test_arguments_are_checked():
    for bad in ({"margin": 0}, {"max_length_ratio": 0.5}, {"per_task": 0}, {"truncated": "drp"}):
        with pytest.raises(ParameterError):
            build_preference_pairs([], **bad)
    assert build_preference_pairs([]).pairs == []


def best_of_all(scores, lengths, margin, ratio):
    """Oracle: every matching of a general graph, by recursion on the first open row."""

    def best(open_rows):
        if not open_rows:
            return 0, 0.0
        first, rest = open_rows[0], open_rows[1:]
        found = [best(rest)]
        for i, other in enumerate(rest):
            cost = abs(math.log1p(lengths[first]) - math.log1p(lengths[other]))
            if abs(scores[first] - scores[other]) >= margin - 1e-12 and cost <= math.log(ratio) + 1e-12:
                pairs, total = best(rest[:i] + rest[i + 1 :])
                found.append((pairs + 1, total - cost))
        return max(found, key=lambda t: (t[0], round(t[1], 9)))

    return best(list(range(len(scores))))


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.7, 1.0]), st.integers(1, 40)), min_size=1, max_size=7),
    st.sampled_from([0.1, 0.3, 0.5]),
)
def test_the_matching_of_fractional_rewards_is_the_best_of_all(drawn, margin):
    rows = [row("a", i, r, chr(97 + i) * n) for i, (r, n) in enumerate(drawn)]
    made = build_preference_pairs(rows, per_task=None, margin=margin, max_length_ratio=2.0)
    cost = sum(abs(math.log1p(p["chosen_length"]) - math.log1p(p["rejected_length"])) for p in made.pairs)
    pairs, least = best_of_all([r for r, _ in drawn], [n for _, n in drawn], margin, 2.0)
    assert len(made.pairs) == pairs and cost == pytest.approx(-least, abs=1e-6)
    ids = [p[side] for p in made.pairs for side in ("chosen_id", "rejected_id")]
    assert len(ids) == len(set(ids)) and all(p["chosen_reward"] > p["rejected_reward"] for p in made.pairs)


def test_a_middle_reward_is_chosen_or_rejected_as_the_whole_asks():
    """No single cut of the rewards gives both pairs: 1.0 over 0.6, and 0.5 over 0.0."""
    said = [(1.0, "x" * 100), (0.6, "y" * 100), (0.5, "z" * 10), (0.0, "w" * 10)]
    rows = [row("a", i, reward, text) for i, (reward, text) in enumerate(said)]
    made = build_preference_pairs(rows, per_task=None, margin=0.3)
    assert {(p["chosen_id"], p["rejected_id"]) for p in made.pairs} == {("a-0", "a-1"), ("a-2", "a-3")}


def test_equal_replies_with_unequal_rewards_are_no_pair_and_take_no_place():
    rows = [row("a", 0, 1.0, "same"), row("a", 1, 0.0, "same"), row("a", 2, 0.0, "othr")]
    rows += [row("b", 0, 1.0), row("b", 1, 0.0)]
    made = build_preference_pairs(rows, per_task=None)
    assert [e.reason for e in made.ledger] == ["chosen", "same_reply", "rejected", "same_reply", "same_reply"]


def long_way(row_of):
    return [r for t in range(10) for r in (row_of(t, 0, 1.0, True), row_of(t, 1, 0.0, False))]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("position", lambda t, i, reward, good: row(f"t{t}", 5 if good else 2, reward, "a" if good else "b")),
        ("style: formatting", lambda t, i, reward, good: row(f"t{t}", 0, reward, "- one\n" if good else "one..\n")),
        ("style: exclamation", lambda t, i, reward, good: row(f"t{t}", 0, reward, "done!" if good else "done.")),
    ],
)
def test_each_confound_is_named_alone(name, make):
    """Oracle: ten of ten pairs differ one way, so the sign test gives 2 / 2**10, below 0.05 / 6."""
    made = build_preference_pairs(long_way(make))
    assert len(made.pairs) == 10
    assert [c.name for c in made.confounds if c.found] == [name]
    assert made.confounds[0].p == pytest.approx(2 / 2**10) and made.confounds[0].share == 1.0
