"""Noise between runs, size and power of an eval: against statsmodels, closed forms and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whileai_kernel.errors import ParameterError
from whileai_measure import (
    compare,
    detectable_effect,
    eval_power,
    eval_variance,
    holdout_size,
    noise_band,
    self_check,
)


def rows(p: "np.ndarray", k: int, rng: "np.random.Generator") -> list[dict[str, object]]:
    return [{"task_id": f"t{i}", "reward": float(r)} for i, q in enumerate(p) for r in rng.binomial(1, q, k)]


@settings(max_examples=40, deadline=None)
@given(st.integers(9, 3000), st.floats(0.01, 0.5), st.floats(0.05, 0.6), st.sampled_from([0.9, 0.95, 0.99]))
def test_power_equals_the_noncentral_t(tasks: int, effect: float, spread: float, confidence: float) -> None:
    """From 9 tasks on; where one pattern alone rejects, the test below holds it to the sign-flip test itself."""
    got = eval_power(tasks, effect, spread=spread, confidence=confidence).power
    df, shift, q = tasks - 1, effect / spread * np.sqrt(tasks), stats.t.ppf(0.5 + confidence / 2, tasks - 1)
    want = stats.nct.sf(q, df, shift) + stats.nct.cdf(-q, df, shift)
    if np.isfinite(want):
        assert got == pytest.approx(want, abs=2e-3)


def test_size_equals_statsmodels() -> None:
    power = pytest.importorskip("statsmodels.stats.power")
    for effect, spread in ((0.05, 0.3), (0.1, 0.4), (0.02, 0.2)):
        want = power.TTestPower().solve_power(effect / spread, power=0.8, alpha=0.05)
        assert holdout_size(effect, spread=spread).tasks == int(np.ceil(want))


def test_size_and_power_and_detectable_effect_invert_each_other() -> None:
    size = holdout_size(0.08, baseline=0.5, k=4)
    assert eval_power(size.tasks, 0.08, baseline=0.5, k=4).power >= 0.8
    assert eval_power(size.tasks - 1, 0.08, baseline=0.5, k=4).power < 0.8
    assert detectable_effect(size.tasks, baseline=0.5, k=4).effect == pytest.approx(0.08, abs=0.001)


def test_more_rollouts_need_fewer_tasks() -> None:
    sizes = [holdout_size(0.1, baseline=0.5, k=k).tasks for k in (1, 2, 4, 16)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("baseline", [0.95, 1.0, 0.91])
def test_a_saturated_baseline_has_no_size(baseline: float) -> None:
    report = holdout_size(0.1, baseline=baseline)
    assert report.tasks is None and "room" in str(report)
    full = [{"task_id": f"t{i}", "reward": 1.0} for i in range(30) for _ in range(4)]
    assert holdout_size(0.01, rows=full).tasks is None
    assert eval_power(100, 0.1, baseline=baseline).power == 0.0
    with pytest.raises(ParameterError):
        detectable_effect(100, baseline=1.0)


def test_a_falling_rate_may_start_at_the_ceiling() -> None:
    assert holdout_size(-0.1, baseline=0.95).tasks is not None
    assert holdout_size(-0.1, baseline=0.05).tasks is None


def test_promised_power_is_what_compare_delivers() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 60) * 0.8
    baseline = rows(p, 8, rng)
    promised = eval_power(60, 0.12, rows=baseline, k=4, effect_sd=0.0).power
    found = 0
    for _ in range(120):
        report = compare(rows(p, 4, rng), rows(p + 0.12, 4, rng), draws=499)
        found += report.verdict == "improved"
    assert found / 120 == pytest.approx(promised, abs=3 * np.sqrt(0.25 / 120))


def test_size_from_rows_and_from_a_pilot() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(2, 2, 200) * 0.8
    before, after = rows(p, 4, rng), rows(p + 0.1, 4, rng)
    plan, pilot = holdout_size(0.1, rows=before, effect_sd=0.0), holdout_size(0.1, rows=before, after=after)
    assert plan.k == 4
    assert pilot.spread == pytest.approx(np.std(compare(before, after).change.deltas, ddof=1))
    assert plan.tasks == pytest.approx(pilot.tasks, rel=0.25)
    one = [r for i, r in enumerate(before) if i % 4 == 0]
    assert "one rollout per task" in str(holdout_size(0.1, rows=one))


def test_planning_wants_exactly_one_basis() -> None:
    with pytest.raises(ParameterError, match="one of"):
        holdout_size(0.1)
    with pytest.raises(ParameterError, match="one of"):
        holdout_size(0.1, spread=0.3, baseline=0.5)
    for effect in (0.0, 2.0, float("nan"), True):
        with pytest.raises(ParameterError, match="effect"):
            holdout_size(effect, spread=0.3)


def test_noise_band_is_the_t_interval_of_a_difference() -> None:
    runs = [0.50, 0.53, 0.47, 0.52]
    want = stats.t.ppf(0.975, 3) * np.std(runs, ddof=1) * np.sqrt(2)
    assert noise_band(runs).band == pytest.approx(want)
    assert noise_band(float(np.std(runs, ddof=1)), 4).band == pytest.approx(want)
    assert noise_band(0.02).band == pytest.approx(1.959964 * 0.02 * np.sqrt(2), rel=1e-6)
    for bad in ([0.5], -1.0, float("nan"), "0.1"):
        with pytest.raises(ParameterError):
            noise_band(bad)
    with pytest.raises(ParameterError):
        noise_band(0.1, 1)


def test_noise_band_covers_the_difference_of_two_new_runs() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        *seen, x, y = rng.normal(0.5, 0.02, 6).tolist()
        inside += abs(x - y) <= noise_band(seen).band
    assert inside / 2000 == pytest.approx(0.95, abs=0.02)


def test_eval_variance_finds_sampling_and_excess() -> None:
    rng = np.random.default_rng(2)
    p = rng.beta(2, 2, 300)
    quiet = eval_variance(*(rows(p, 4, rng) for _ in range(8)))
    true = float(np.sqrt(np.sum(p * (1 - p) / 4)) / 300)
    assert quiet.rollout_std == pytest.approx(true, rel=0.05)
    assert quiet.low < true < quiet.high
    shifted = eval_variance(*(rows(np.clip(p + d, 0, 1), 4, rng) for d in (-0.1, 0.0, 0.1, 0.05, -0.05)))
    assert shifted.excess_std > 3 * shifted.rollout_std
    assert shifted.run_std == pytest.approx(np.std(shifted.means, ddof=1))
    assert noise_band(shifted).runs == 5
    assert "8 runs" in str(quiet)


def test_eval_variance_bounds_are_the_chi_square_interval() -> None:
    runs = [[{"task_id": "a", "reward": r}, {"task_id": "b", "reward": 0.0}] for r in (1.0, 0.0, 1.0)]
    report = eval_variance(*runs)
    s = np.std([0.5, 0.0, 0.5], ddof=1)
    assert report.low == pytest.approx(s * np.sqrt(2 / stats.chi2.ppf(0.975, 2)))
    assert report.high == pytest.approx(s * np.sqrt(2 / stats.chi2.ppf(0.025, 2)))
    assert report.rollout_std is None
    with pytest.raises(ParameterError):
        eval_variance(runs[0])
    with pytest.raises(ParameterError):
        eval_variance(runs[0], [{"task_id": "z", "reward": 1.0}])


def test_self_check_prints_what_it_found() -> None:
    report = self_check(tasks=(3, 6, 12), trials=300, draws=399)
    assert report.ok
    text = str(report)
    assert "too few" in text and "as claimed" in text and len(text.splitlines()) == 5
    assert report.lines[0].false_alarms is None
    assert abs(report.lines[2].power - report.lines[2].planned) < 0.12
    assert self_check(tasks=(6,), trials=100, draws=199) == self_check(tasks=(6,), trials=100, draws=199)
    with pytest.raises(ParameterError):
        self_check(tasks=(0,))


@pytest.mark.parametrize(("tasks", "slack"), [(6, 0.02), (7, 0.045), (8, 0.03), (10, 0.03), (12, 0.02)])
@pytest.mark.parametrize("shift", [0.8, 1.2, 1.6])
def test_power_is_that_of_the_sign_flip_test_down_to_the_fewest_tasks(tasks: int, slack: float, shift: float) -> None:
    patterns = 1.0 - 2.0 * ((np.arange(2**tasks)[:, None] >> np.arange(tasks)) & 1)
    d = np.random.default_rng([tasks, int(shift * 10)]).standard_normal((2500, tasks)) + shift
    sums, seen = d @ patterns.T, d.sum(axis=1)[:, None]
    p = 2 * np.minimum((sums >= seen - 1e-12).mean(axis=1), (sums <= seen + 1e-12).mean(axis=1))
    promised = eval_power(tasks, 0.5, spread=0.5 / shift).power
    assert promised == pytest.approx(np.mean(p <= 0.05 + 1e-12), abs=slack + 0.02)


def test_arguments_of_the_spread_are_checked() -> None:
    for bad in (
        {"spread": 0.4, "baseline": 0.5},
        {"baseline": 0.5, "icc": 1.5},
        {"baseline": 0.5, "effect_sd": -0.1},
        {"spread": 0.4, "after": []},
        {"baseline": 0.5, "k": True},
    ):
        with pytest.raises(ParameterError):
            holdout_size(0.1, **bad)
