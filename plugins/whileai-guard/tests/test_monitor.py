"""The monitor: quiet on flat runs, loud on change, and it never changes a reward."""

from __future__ import annotations

import random

import pytest

from whileai_guard import HackMonitor
from whileai_kernel.errors import ParameterError

WORDS = [a + b + c for a in "bcdfglmnprst" for b in "aeiou" for c in "lnrst"]


def run(seed, steps=120, grow=0.0, hack=0.0, same=0.0, gold=True, scan_every=0):
    """Simulate training: 2 prompts x 4 rollouts per batch; `grow`, `hack`, `same` change with progress."""
    rng = random.Random(seed)
    truth = {}

    def proxy(prompts, completions, **_):
        return [min(1.0, truth[c] + (0.4 if "trust me" in c else 0.0) + 0.002 * len(c.split())) for c in completions]

    monitor = HackMonitor(
        proxy, gold=(lambda p, c, **_: [truth[x] for x in c]) if gold else None, window=10, scan_every=scan_every
    )
    for step in range(steps):
        progress = step / steps
        prompts, completions = [], []
        for q in range(2):
            base = [rng.choice(WORDS) for _ in range(30)]
            for _ in range(4):
                n = int(30 * (1 + grow * progress))
                words = base[:n] if rng.random() < same * progress else [rng.choice(WORDS) for _ in range(n)]
                text = " ".join(words) + (" trust me" if rng.random() < hack * progress else "")
                truth[text] = float(rng.random() < 0.4) * 0.5
                prompts.append(f"q{step}-{q}")
                completions.append(text)
        monitor(prompts, completions)
    return monitor


def test_flat_runs_are_quiet():
    assert [a for seed in range(20) for a in run(seed, steps=100).alarms] == []


def test_a_hack_that_the_second_opinion_does_not_pay_is_named():
    kinds = [{a.kind for a in run(seed, hack=1.0).alarms} for seed in range(5)]
    assert all("divergence" in k for k in kinds)


def test_longer_and_better_paid_replies_are_named():
    alarms = run(3, grow=4.0, gold=False).alarms
    assert "length" in {a.kind for a in alarms} and "times as long" in str(alarms[0])


def test_groups_that_become_alike_are_named():
    assert "collapse" in {a.kind for a in run(4, same=1.0, gold=False).alarms}


def test_a_new_feature_is_named():
    monitor = run(5, hack=1.0, gold=False, scan_every=20)
    named = [a for a in monitor.alarms if a.kind == "feature"]
    assert named and "trust me" in named[0].message
    assert monitor.report()["steps"] == 120


def test_rewards_pass_unchanged_and_not_scored_stays_so():
    monitor = HackMonitor(lambda p, c, **k: [None, 0.25, k["x"][2]])
    assert monitor(["a", "a", "a"], ["1", [{"role": "assistant", "content": "2"}], "3"], x=[1, 1, 1]) == [
        None,
        0.25,
        1.0,
    ]
    for bad in ({"window": 1}, {"alpha": 0.0}, {"length_ratio": 0.5}):
        with pytest.raises(ParameterError):
            HackMonitor(lambda p, c: [], **bad)
