"""Intervals against closed forms, scipy and simulations with a known truth."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whileai_kernel.errors import ParameterError
from whileai_measure import pass_at_k, pass_hat_k
from whileai_measure.design import limits
from whileai_measure.intervals import (
    KINDS,
    effective_wilson,
    freedom_gain,
    mean_interval,
    moments,
    shown_digits,
    wilson,
)


@given(st.integers(1, 500), st.data(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_equals_scipy(n: int, data: st.DataObject, confidence: float) -> None:
    c = data.draw(st.integers(0, n))
    low, high = wilson(c / n, n, stats.norm.ppf(0.5 + confidence / 2))
    want = stats.binomtest(c, n).proportion_ci(confidence, method="wilson")
    assert (float(low), float(high)) == pytest.approx((want.low, want.high), abs=1e-9)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_without_known_variance_it_is_wilson_at_the_effective_size_with_a_t_quantile(confidence: float) -> None:
    values = np.array([1.0, 0.5, 0.0, 1.0, 0.75, 0.25, 0.5, 1.0])
    got = mean_interval(values, confidence=confidence)
    p, q = values.mean(), stats.t.ppf(0.5 + confidence / 2, 7)
    n = max(p * (1 - p) / (values.var(ddof=1) / 8), 8)
    centre = (p + q * q / (2 * n)) / (1 + q * q / n)
    half = q / (1 + q * q / n) * np.sqrt(p * (1 - p) / n + q * q / (4 * n * n))
    assert got.effective == pytest.approx(n)
    assert (got.low, got.high) == pytest.approx((centre - half, centre + half), abs=1e-12)


def test_degrees_of_freedom_grow_with_the_known_share_between_t_and_the_limit() -> None:
    # One rollout per task: the variance is that of a binomial and nothing is estimated but the mean.
    assert freedom_gain(1.0, 20) == 4.0
    assert freedom_gain(1.0, 8) == 2.0
    assert freedom_gain(0.0, 20) == freedom_gain(1.0, 4) == 1.0
    gains = freedom_gain(np.linspace(0, 1, 50), 30)
    assert (np.diff(gains) >= 0).all() and gains[-1] == 6.0
    values = [1.0] * 13 + [0.0] * 7
    got = mean_interval(values, ceiling=20)
    low, high = wilson(13 / 20, 20, stats.t.ppf(0.975, 76))
    assert (got.effective, got.low, got.high) == pytest.approx((20, float(low), float(high)), abs=1e-12)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=25))
def test_passes_and_fails_are_mirror_images(counts: list[int]) -> None:
    x = np.array(counts) / 5
    up, down = mean_interval(x, ceiling=len(x) * 5), mean_interval(1 - x, ceiling=len(x) * 5)
    assert (up.low, up.high) == pytest.approx((1 - down.high, 1 - down.low), abs=1e-9)


def test_the_exact_end_does_not_depend_on_rounding() -> None:
    passes, fails = mean_interval([1.0] * 17 + [0.0] * 3), mean_interval([0.0] * 17 + [1.0] * 3)
    assert passes.high == pytest.approx(1 - fails.low, abs=1e-12)  # (1 - 0.85) * 20 is 3.0000000000000004


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=40).filter(lambda v: np.std(v) > 1e-3))
def test_t_kind_equals_scipy_inside_the_unit_interval(values: list[float]) -> None:
    got = mean_interval(values, kind="t")
    want = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert got.low == pytest.approx(max(0.0, want.low), abs=1e-9)
    assert got.high == pytest.approx(min(1.0, want.high), abs=1e-9)


@pytest.mark.parametrize(("kind", "method"), [("percentile", "percentile"), ("bca", "BCa")])
def test_bootstrap_kinds_agree_with_scipy(kind: str, method: str) -> None:
    values = np.random.default_rng(3).beta(2, 4, size=40)
    got = mean_interval(values, kind=kind, draws=20_000)
    want = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(4)
    ).confidence_interval
    assert (got.low, got.high) == pytest.approx((want.low, want.high), abs=0.004)


def test_studentised_is_t_like_for_normal_data_and_longer_on_the_skewed_side() -> None:
    rng = np.random.default_rng(5)
    plain = np.clip(rng.normal(0.5, 0.1, 60), 0, 1)
    t, s = mean_interval(plain, kind="t"), mean_interval(plain, kind="studentised", draws=8000)
    assert s.width == pytest.approx(t.width, rel=0.06)
    skewed = rng.beta(0.6, 6, 60)
    s = mean_interval(skewed, kind="studentised", draws=8000)
    assert s.high - s.value > s.value - s.low


def test_clusters_sum_residuals_like_the_ratio_estimator() -> None:
    x = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.5])
    groups = ["a", "a", "b", "b", "c", "c"]
    m = moments(x, None, groups)
    sums = np.array([2.0, 0.0, 1.5]) - 2 * x.mean()
    assert m.units == 3
    assert m.variance == pytest.approx(3 / 2 * (sums @ sums) / 36)


def test_cluster_variance_equals_statsmodels_cluster_robust() -> None:
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 3)
    x = np.clip(rng.normal(0.5, 0.2, 36) + rng.normal(0, 0.2, 12)[groups], 0, 1)
    fit = sm.OLS(x, np.ones(36)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    assert moments(x, None, groups.tolist()).variance == pytest.approx(fit.bse[0] ** 2 * 12 / 11, rel=1e-9)


@pytest.mark.parametrize("ab", [(2, 2), (8, 2), (0.5, 0.5)])
def test_default_covers_with_uneven_clusters_and_weights(ab: tuple[float, float]) -> None:
    rng = np.random.default_rng(7)
    truth, trials, hits = ab[0] / sum(ab), 600, np.zeros(2)
    sizes = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3, 5])
    weights = np.linspace(0.2, 3, 20)
    uneven = 20 * float(weights @ weights) / float(weights.sum()) ** 2
    for _ in range(trials):
        p, cluster = rng.beta(*ab, 12), np.repeat(np.arange(12), sizes)
        passed = (rng.random(len(cluster)) < p[cluster]).astype(float)
        a = mean_interval(passed, clusters=cluster.tolist(), ceiling=len(cluster))
        b = mean_interval(rng.binomial(4, rng.beta(*ab, 20)) / 4, weights=weights, ceiling=80 / uneven)
        hits += [a.low <= truth <= a.high, b.low <= truth <= b.high]
    assert (hits / trials > 0.93 - 3 * np.sqrt(0.93 * 0.07 / trials)).all()


def test_repeating_every_rollout_changes_nothing() -> None:
    values = [1.0] * 5 + [0.0] * 5
    m = moments(values)
    assert np.sqrt(m.variance) == pytest.approx(0.1666667, abs=1e-6)


def test_weights_equal_to_repeated_units_keep_the_mean() -> None:
    m = moments([1.0, 0.0], [3.0, 1.0])
    assert m.mean == 0.75
    assert m.kish == pytest.approx(1 / (0.75**2 + 0.25**2))


@pytest.mark.parametrize("weighted", [False, True])
def test_all_passes_are_the_mirror_image_of_all_fails_at_every_size(weighted: bool) -> None:
    # Rounding must not make "all pass" look like "nearly all": then the rollouts, not the tasks, would be the size.
    for tasks in range(1, 130):
        weights = np.linspace(1, 3, tasks) if weighted else None
        up = mean_interval([1.0] * tasks, ceiling=8 * tasks, weights=weights)
        down = mean_interval([0.0] * tasks, ceiling=8 * tasks, weights=weights)
        assert (up.value, down.value, up.high, down.low) == (1.0, 0.0, 1.0, 0.0)
        assert up.low == pytest.approx(1 - down.high, abs=1e-9)
        assert up.effective == pytest.approx(down.effective)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("tasks", [1, 2, 5, 50])
def test_agreeing_tasks_never_give_zero_width(kind: str, value: float, tasks: int) -> None:
    got = mean_interval([value] * tasks, kind=kind, rollouts=tasks * 4)
    assert got.width > 0.02
    assert got.low <= value <= got.high


@pytest.mark.parametrize("kind", KINDS)
def test_one_task_gives_the_whole_range(kind: str) -> None:
    got = mean_interval([0.75], kind=kind)
    assert (got.low, got.high) == (0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=12),
    st.sampled_from(KINDS),
    st.sampled_from([0.5, 0.95, 0.999]),
)
def test_every_interval_lies_in_the_unit_interval_and_holds_its_estimate(
    values: list[float], kind: str, confidence: float
) -> None:
    got = mean_interval(values, kind=kind, confidence=confidence, draws=200)
    assert 0.0 <= got.low <= got.value <= got.high <= 1.0
    assert got.width > 0


def test_same_seed_same_interval() -> None:
    x = np.random.default_rng(1).random(30)
    assert mean_interval(x, kind="bca", seed=4) == mean_interval(x, kind="bca", seed=4)
    assert mean_interval(x, kind="bca", seed=4) != mean_interval(x, kind="bca", seed=5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("confidence", [1e-12, 1e-6, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("values", [[0.0] * 5, [0.0] * 9 + [1.0], [0.5] * 3, [1.0], [0.25, 0.75]])
def test_every_level_gives_bounds_without_a_warning(confidence: float, values: list[float]) -> None:
    got = mean_interval(values, confidence=confidence, ceiling=4 * len(values))
    assert 0 <= got.low <= got.value <= got.high <= 1


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match="wilsn") as err:
        mean_interval([0.1], kind="wilsn")
    assert "wilson" in str(err.value)


def test_bad_weights_and_values_are_refused() -> None:
    for weights in ([1.0], [-1.0, 1.0], [0.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(ParameterError):
            moments([0.5, 0.5], weights)
    with pytest.raises(ParameterError):
        moments([])


@pytest.mark.parametrize("tasks", [3, 5, 8, 10, 20, 50])
@pytest.mark.parametrize("k", [1, 4, 8])
@pytest.mark.parametrize("difficulty", ["beta22", "beta55", "beta82", "beta19", "two", "0.95", "0.5"])
def test_default_covers_pass_at_1(tasks: int, k: int, difficulty: str) -> None:
    rng = np.random.default_rng(tasks * 100 + k)
    trials = 3000
    draw = {
        "beta22": (lambda: rng.beta(2, 2, (trials, tasks)), 0.5),
        "beta55": (lambda: rng.beta(0.5, 0.5, (trials, tasks)), 0.5),
        "beta82": (lambda: rng.beta(8, 2, (trials, tasks)), 0.8),
        "beta19": (lambda: rng.beta(1, 9, (trials, tasks)), 0.1),
        "two": (lambda: np.where(rng.random((trials, tasks)) < 0.5, 0.1, 0.9), 0.5),
        "0.95": (lambda: np.full((trials, tasks), 0.95), 0.95),
        "0.5": (lambda: np.full((trials, tasks), 0.5), 0.5),
    }
    make, truth = draw[difficulty]
    x = rng.binomial(k, make()) / k
    low, high, _ = effective_wilson(x.mean(1), x.var(1, ddof=1) / tasks, tasks, ceiling=tasks * k)
    covered = np.mean((low <= truth) & (truth <= high))
    assert covered > 0.93 - 3 * np.sqrt(0.93 * 0.07 / trials)


def test_percentile_bootstrap_is_wrong_at_five_tasks_near_the_ceiling() -> None:
    # The reason for the default: the resampling of five tasks at the ceiling cannot see that they may fail.
    rng = np.random.default_rng(0)
    x = rng.binomial(4, np.full((300, 5), 0.99)) / 4
    hits = [mean_interval(row, kind="percentile", draws=200) for row in x if row.min() < 1]
    raw = [np.quantile(rng.choice(row, (200, 5)).mean(1), [0.025, 0.975]) for row in x]
    assert np.mean([lo <= 0.99 <= hi for lo, hi in raw]) < 0.5
    assert all(e.method == "percentile" for e in hits)


@pytest.mark.parametrize("metric", ["hat", "at"])
@pytest.mark.parametrize(
    ("tasks", "ab"), [(5, (2, 2)), (10, (2, 2)), (20, (8, 2)), (50, (1, 9)), (200, (1, 9)), (200, (8, 2))]
)
def test_default_covers_pass_hat_4_and_pass_at_4(metric: str, tasks: int, ab: tuple[float, float]) -> None:
    rng = np.random.default_rng([tasks, *ab])
    trials, n, (a, b) = 3000, 8, ab
    if metric == "at":
        a, b = b, a
    up = np.prod([(a + i) / (a + b + i) for i in range(4)])
    truth = up if metric == "hat" else 1 - up
    c = rng.binomial(n, rng.beta(*ab, (trials, tasks)))
    values = (pass_hat_k if metric == "hat" else pass_at_k)(np.full(c.size, n), c.ravel(), 4).reshape(c.shape)
    share = c / n
    ceiling, expected = limits(
        [n], [tasks], 4, metric, mean=values.mean(1), rate=share.mean(1), spread=share.var(1, ddof=1)
    )
    seen = values.var(1, ddof=1) / tasks
    variance = seen + 0.25 * np.maximum(0, expected - seen)
    low, high, _ = effective_wilson(values.mean(1), variance, tasks, ceiling=ceiling)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93 - 3 * np.sqrt(0.93 * 0.07 / trials)


def test_expected_variance_is_that_of_simulated_beta_binomial_counts() -> None:
    rng = np.random.default_rng(0)
    c = rng.binomial(8, rng.beta(2, 3, 200_000))
    values = pass_hat_k(np.full(c.size, 8), c, 4)
    _, expected = limits([8], [100], 4, "hat", mean=values.mean(), rate=c.mean() / 8, spread=(c / 8).var())
    assert expected[0] * 100 == pytest.approx(values.var(), rel=0.02)


def test_ceiling_is_the_size_of_tasks_of_one_difficulty() -> None:
    rng = np.random.default_rng(0)
    c = rng.binomial(8, 0.7, 200_000)
    values = pass_hat_k(np.full(c.size, 8), c, 4)
    m = 0.7**4
    ceiling, _ = limits([8], [100], 4, "hat", mean=m, rate=0.7, spread=0.7 * 0.3 / 8)
    assert ceiling[0] == pytest.approx(100 * m * (1 - m) / values.var(), rel=0.02)


@pytest.fixture(scope="module")
def study() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "tests" / "bench" / "measure_calibration.py"
    if not path.is_file():
        pytest.skip("the study is not part of this distribution")
    spec = importlib.util.spec_from_file_location("measure_calibration", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["measure_calibration"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("metric", "k", "tasks"), [("fraction", 1, 8), ("fraction", 8, 5), ("pass@4", 8, 10)])
def test_a_smaller_study_holds(study: ModuleType, metric: str, k: int, tasks: int) -> None:
    trials = 1500
    for name in study.DIFFICULTY:
        kinds = study.cell(metric, k, tasks, name, trials, 49, study.Constants())
        assert kinds["wilson"][0] > 0.93 - 3 * np.sqrt(0.93 * 0.07 / trials), name


def test_the_study_measures_the_kinds_that_are_offered(study: ModuleType) -> None:
    x = np.random.default_rng(2).beta(2, 3, (3, 30))
    base = study.default(x, np.inf, 0.0)
    rest = study.others(x, base, 20_000, np.random.default_rng(0))
    for kind in KINDS:
        low, high = base if kind == "wilson" else rest[kind]
        for i in range(3):
            got = mean_interval(x[i], kind=kind, draws=20_000)
            assert (got.low, got.high) == pytest.approx((low[i], high[i]), abs=1e-9 if kind in KINDS[:3] else 0.006)


def test_a_printed_interval_shows_its_width_and_which_side_of_zero_it_is_on() -> None:
    narrow = mean_interval([0.0, 1.0] * 40_000, ceiling=80_000)
    assert str(narrow) == "0.5000 [0.4965..0.5035]"
    assert str(mean_interval([0.0, 1.0] * 10, ceiling=20)).startswith("0.50 [")
    assert (shown_digits(0.3), shown_digits(0.004), shown_digits(1e-9), shown_digits(0.3, 0.0004, 0.3)) == (2, 4, 6, 4)
    assert shown_digits(0.3, 0.0, 0.3) == 2
