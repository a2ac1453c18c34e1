"""The confidence sequence under continuous peeking, and the stopping rule on rows."""

import numpy as np
import pytest

from whileai_kernel.errors import ParameterError
from whileai_measure import ConfidenceSequence, mean_interval, stop_when


@pytest.mark.parametrize("truth", [0.05, 0.5, 0.9])
def test_error_under_continuous_peeking_stays_below_alpha(truth: float) -> None:
    rng = np.random.default_rng(int(truth * 100))
    trials, length, missed = 120, 150, 0
    for _ in range(trials):
        cs = ConfidenceSequence(0.9, grid=200)
        for x in rng.binomial(4, truth, length) / 4:
            low, high = cs.update(float(x))
            if not low <= truth <= high:
                missed += 1
                break
    assert missed / trials <= 0.1 + 3 * np.sqrt(0.09 / trials)


def test_an_ordinary_interval_fails_the_same_peeking() -> None:
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(50):
        x = rng.binomial(1, 0.5, 150).astype(float)
        bounds = [mean_interval(x[:n], confidence=0.9) for n in range(5, 150, 3)]
        missed += any(not b.low <= 0.5 <= b.high for b in bounds)
    assert missed > 10


def test_capital_is_the_product_of_the_paper() -> None:
    x = [0.2, 0.9, 0.4, 1.0]
    alpha, m = 0.05, 0.35
    cs = ConfidenceSequence(0.95, grid=20)
    up = down = 1.0
    total = squares = 0.0
    for t, value in enumerate(x, start=1):
        variance = (0.25 + squares) / t
        bet = np.sqrt(2 * np.log(2 / alpha) / (variance * t * np.log(1 + t)))
        up *= 1 + min(bet, 0.5 / m) * (value - m)
        down *= 1 - min(bet, 0.5 / (1 - m)) * (value - m)
        total += value
        squares += (value - (0.5 + total) / (t + 1)) ** 2
        cs.update(value)
    assert np.exp(cs._up[7]) == pytest.approx(up)
    assert np.exp(cs._down[7]) == pytest.approx(down)


def test_bounds_only_tighten_and_shrink_with_data() -> None:
    rng = np.random.default_rng(3)
    cs = ConfidenceSequence()
    last = (0.0, 1.0)
    for x in rng.beta(4, 4, 400):
        now = cs.update(float(x))
        assert now[0] >= last[0] and now[1] <= last[1]
        last = now
    assert last[1] - last[0] < 0.15
    assert last[0] < 0.5 < last[1]


def test_conditions() -> None:
    rule = stop_when(below=0.3)
    reasons = [rule.update(0.0) for _ in range(60)]
    assert any(r and r.startswith("below 0.3") for r in reasons)
    narrow = stop_when(width=0.4)
    rng = np.random.default_rng(0)
    assert any(narrow.update(float(rng.random())) for _ in range(200))
    for bad in ({}, {"above": 2.0}, {"above": 0.5, "repeats": 0}, {"abov": 0.5}):
        with pytest.raises(ParameterError):
            stop_when(**bad)
    with pytest.raises(ParameterError):
        rule.update(1.5)


def test_rows_are_taken_in_order_and_only_when_complete() -> None:
    rule = stop_when(above=0.5, repeats=2)
    rows = [{"task_id": "a", "reward": 1.0}, {"task_id": "b", "reward": 1.0}, {"task_id": "b", "reward": None}]
    assert rule(rows) is None and rule.tasks == 0
    rows.append({"task_id": "a", "reward": 0.0})
    rule(rows)
    assert rule.tasks == 2 and rule.sequence.mean == pytest.approx(0.75)
    rule(rows)
    assert rule.tasks == 2
    rows += [{"task_id": f"t{i}", "reward": 1.0} for i in range(60) for _ in range(2)]
    assert "above 0.5" in str(rule(rows))
    unscored = stop_when(width=0.5)
    assert unscored([{"task_id": "a", "reward": None}]) is None and unscored.unscored == 1
