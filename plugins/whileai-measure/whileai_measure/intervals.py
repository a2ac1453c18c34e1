"""Intervals for a mean over tasks: Wilson at the effective sample size, t, and three bootstraps.

The unit is the task (or a cluster of tasks that share a passage or a template), never the rollout. The default is a
Wilson interval at the effective sample size of the clustered design with a t quantile for the number of units (and for
how much of the variance had to be estimated from them). Its
coverage and its width against the other kinds are measured by `tests/bench/measure_calibration.py`.

The functions on moments (`wilson`, `effective_wilson`) work elementwise, so that a study runs them on thousands of
samples at once; `mean_interval` is the one for data.

Example:
    >>> print(mean_interval([1.0, 0.5, 0.0, 1.0, 1.0, 0.5], ceiling=12))
    0.67 [0.27..0.97]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_measure.defaults import (
    BOOTSTRAP_DRAWS,
    CONFIDENCE,
    EXACT_END,
    FREEDOM_GAIN,
    FREEDOM_POWER,
    MODEL_SHARE,
    SEED,
    SMALL_TASKS,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["KINDS", "Estimate", "Moments", "effective_wilson", "mean_interval", "moments", "wilson"]

KINDS = ("wilson", "t", "logit", "percentile", "bca", "studentised")
"""Kinds of interval; the first is the default."""


def shown_digits(width: float, *bounds: float, least: int = 2, most: int = 6) -> int:
    """Return the decimals of a printed interval: `least`, and more where that would hide its width.

    Args:
        width: Width of the interval.
        bounds: Bounds that must not be printed as zero where they are not (a difference that excludes zero).
        least: Fewest decimals.
        most: Most decimals.
    """
    import math

    digits = least if width >= 0.02 or width <= 0 else max(least, min(most, 1 - math.floor(math.log10(width))))
    while digits < most and any(bound != 0 and round(bound, digits) == 0 for bound in bounds):
        digits += 1
    return digits


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its interval.

    Attributes:
        value: The estimate, or `None` where it does not exist.
        low: Lower bound, or `None`.
        high: Upper bound, or `None`.
        tasks: Tasks that it rests on.
        units: Independent units: tasks, or clusters of them.
        effective: Effective sample size of the Wilson interval; `None` for other kinds.
        method: Kind of the interval.
        confidence: Level of the interval.
    """

    value: float | None
    low: float | None
    high: float | None
    tasks: int
    units: int
    effective: float | None = None
    method: str = "wilson"
    confidence: float = CONFIDENCE.value

    @property
    def width(self) -> float | None:
        """Width of the interval."""
        return None if self.low is None or self.high is None else self.high - self.low

    @property
    def arms(self) -> tuple[float, float]:
        """Distance of the bounds from the value, downwards and upwards; 1 where there is none."""
        if self.value is None or self.low is None or self.high is None:
            return 1.0, 1.0
        return self.value - self.low, self.high - self.value

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "n/a"
        digits = shown_digits(self.high - self.low)
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}..{self.high:.{digits}f}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Moments:
    """Weighted mean over tasks and what its interval needs.

    Attributes:
        mean: The estimate.
        variance: Sampling variance of the mean, between units.
        units: Independent units.
        kish: Units at equal weight that carry the same information: 1 / sum of squared unit weights.
        weight: Normalised weight of each unit, shape (units,).
        total: Weighted sum of each unit, shape (units,).
    """

    mean: float
    variance: float
    units: int
    kish: float
    weight: Floats
    total: Floats


def check_confidence(confidence: float) -> float:
    """Return `confidence` if it lies inside (0, 1), else raise `ParameterError`."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        raise ParameterError(f"confidence must lie between 0 and 1, not {confidence!r}", fix="pass confidence=0.95")
    return float(confidence)


def check_kind(kind: str) -> str:
    """Return `kind` if it is one of `KINDS`, else raise `ParameterError` with the nearest."""
    if kind not in KINDS:
        unknown_name("interval", kind, KINDS)
    return kind


def t_quantile(units: Any, confidence: float, gain: Any = 1.0) -> Any:
    """Return the two-sided t quantile at `gain * (units - 1)` degrees of freedom; infinite for one unit."""
    import numpy as np
    from scipy.special import stdtrit

    df = (np.asarray(units, dtype=np.float64) - 1.0) * gain
    out = np.where(df > 0, stdtrit(np.maximum(df, 1e-9), 0.5 + confidence / 2.0), np.inf)
    return out if out.ndim else float(out)


def freedom_gain(
    known: Any,
    units: Any,
    *,
    small: int = SMALL_TASKS.value,
    power: float = FREEDOM_POWER.value,
    most: float = FREEDOM_GAIN.value,
) -> Any:
    """Return by how much the t quantile has more degrees of freedom than `units - 1`, elementwise.

    Passes and fails of exchangeable rollouts have a known variance given their mean; only what tasks add to it is
    estimated from the spread between them. The more is known, the less a t quantile at `units - 1` is called for. As
    what is known is an estimate too, the gain is tempered by `power` and held below `most` (or a fifth of the units).

    Args:
        known: Where the effective size stands between that of whole units that pass or fail (0: all of the variance
            lies between units and is estimated) and that of exchangeable rollouts (1: all of it follows from the mean).
        units: Independent units.
        small: Below this many units the factor is 1: their spread says little about what else there is.
        power: Exponent that tempers it.
        most: Largest factor; from `5 * most` units on, a fifth of the units.

    Source: Satterthwaite 1946 for the principle; the form is a measurement, tests/bench/measure_calibration.py.
    """
    import numpy as np

    count = np.asarray(units, dtype=np.float64)
    with np.errstate(divide="ignore"):
        gain = np.minimum(1.0 / (1.0 - np.clip(known, 0.0, 1.0) ** power), np.maximum(most, count / 5.0))
    return np.where(count < small, 1.0, gain)


def wilson(mean: Any, n: Any, quantile: Any) -> tuple[Any, Any]:
    """Return the Wilson score interval of a proportion, elementwise.

    Args:
        mean: Observed proportion in [0, 1].
        n: (Effective) sample size.
        quantile: Normal or t quantile, for example 1.96; infinite gives [0, 1].

    Source: Wilson 1927, equation for the roots of (p - mean)^2 = q^2 p (1 - p) / n.
    """
    import numpy as np

    mean, n, q2 = np.asarray(mean, dtype=np.float64), np.asarray(n, dtype=np.float64), np.square(quantile)
    with np.errstate(invalid="ignore"):
        centre = (mean + q2 / (2 * n)) / (1 + q2 / n)
        half = np.sqrt(q2) / (1 + q2 / n) * np.sqrt(mean * (1 - mean) / n + q2 / (4 * n * n))
    centre, half = np.where(np.isinf(q2), 0.5, centre), np.where(np.isinf(q2), 0.5, half)
    low = np.where(mean <= 0, 0.0, np.clip(centre - half, 0.0, 1.0))
    high = np.where(mean >= 1, 1.0, np.clip(centre + half, 0.0, 1.0))
    return low, high


def _exact_bounds(mean: Any, n: Any, confidence: float) -> tuple[Any, Any]:
    """Return Clopper-Pearson bounds at a real-valued sample size, elementwise."""
    import numpy as np
    from scipy.special import betaincinv

    x, tail = mean * n, (1.0 - confidence) / 2.0
    tiny = 1e-300
    low = np.where(x > 0, betaincinv(np.maximum(x, tiny), n - x + 1.0, tail), 0.0)
    high = np.where(x < n, betaincinv(x + 1.0, np.maximum(n - x, tiny), 1.0 - tail), 1.0)
    return low, high


def effective_wilson(
    mean: Any,
    variance: Any,
    units: Any,
    *,
    kish: Any = None,
    ceiling: Any = None,
    confidence: float = CONFIDENCE.value,
    exact_end: float = EXACT_END.value,
    small: int = SMALL_TASKS.value,
    freedom_power: float = FREEDOM_POWER.value,
    freedom_most: float = FREEDOM_GAIN.value,
) -> tuple[Any, Any, Any]:
    """Return the default interval from moments, elementwise: low, high, effective sample size.

    The effective size is `mean (1 - mean) / variance`, held between `kish` (the variance of a bounded mean is at most
    that of whole units that pass or fail) and `ceiling` (it is at least that of exchangeable rollouts). Where every
    unit is at the same end, the variance says nothing and the lower of these is used.

    Args:
        mean: Estimated mean.
        variance: Estimated sampling variance of the mean, between units.
        units: Independent units.
        kish: Equal-weight units, fewer where weights or cluster sizes differ; default `units`. The t quantile is that
            of these: a few large clusters carry the spread.
        ceiling: Largest effective size; default without limit where something varies.
        confidence: Level.
        exact_end: Effective passes (fails) up to which the bound at that end is exact.
        small: Below this many units the t quantile has `units - 1` degrees of freedom; from it on see `freedom_gain`.
        freedom_power: `power` of `freedom_gain`.
        freedom_most: `most` of `freedom_gain`.

    Source: Wilson 1927; Korn and Graubard 1998 (effective size and t quantile of a clustered design); Brown, Cai and
    DasGupta 2001 (the bound near an end).
    """
    import numpy as np
    from scipy.special import ndtri

    mean, variance = _snapped(np.asarray(mean, dtype=np.float64)), np.asarray(variance, dtype=np.float64)
    floor = np.asarray(units if kish is None else kish, dtype=np.float64)
    top = np.asarray(np.inf if ceiling is None else ceiling, dtype=np.float64)
    bernoulli = mean * (1.0 - mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.where(variance > 0, bernoulli / variance, np.inf)
    n = np.clip(raw, floor, np.maximum(floor, top))
    n = np.where((bernoulli <= 0) | ~np.isfinite(n), floor, n)
    room = np.maximum(top, floor) - floor  # between whole units that pass or fail, and exchangeable rollouts
    with np.errstate(divide="ignore", invalid="ignore"):
        known = np.where(room > 1e-9 * floor, (n - floor) / room, 1.0)
    gain = freedom_gain(known, floor, small=small, power=freedom_power, most=freedom_most)
    q = t_quantile(floor, confidence, gain)
    low, high = wilson(mean, n, q)
    last = exact_end + 1e-9  # 3 fails of 20 are 3.0000000000000004 as (1 - mean) * n
    near_low, near_high = (mean < 0.5) & (mean * n <= last), (mean > 0.5) & ((1 - mean) * n <= last)
    if np.any((near_low | near_high) & (bernoulli > 0)):
        with np.errstate(invalid="ignore"):
            shrink = np.where(q > 1e-9, np.square(ndtri(0.5 + confidence / 2.0) / np.maximum(q, 1e-9)), 1.0)
            design = np.where(np.isinf(q), floor, n * shrink)
        exact_low, exact_high = _exact_bounds(mean, design, confidence)
        low = np.where(near_low, np.minimum(low, exact_low), low)
        high = np.where(near_high, np.maximum(high, exact_high), high)
    return low, high, n


def moments(values: Any, weights: Any = None, clusters: Sequence[Any] | None = None) -> Moments:
    """Return mean, its variance between units, and the weights of the units.

    Args:
        values: One value per task, shape (tasks,), no NaN.
        weights: One weight per task, at least 0, not all 0; default equal.
        clusters: One label per task; tasks with one label are one unit. Default: each task is a unit.

    Raises:
        ParameterError: No values, lengths differ, or a weight is negative.

    Source: variance of a ratio mean under cluster sampling, Cochran 1977, section 3.12 (residuals summed by cluster).
    """
    import numpy as np

    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x) or np.isnan(x).any():
        raise ParameterError("an interval needs at least one value, without NaN", fix="leave out what is not scored")
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != x.shape or np.any(~(w >= 0)) or not np.isfinite(w).all() or w.sum() <= 0:
        raise ParameterError("weights must be one number per task, at least 0 and not all 0", fix="check weight=")
    w = w / w.sum()
    total, weight = w * x, w
    if clusters is not None:
        codes: dict[Any, int] = {}
        code = np.array([codes.setdefault(c, len(codes)) for c in clusters])
        if len(code) != len(x):
            raise ParameterError("clusters must hold one label per task", fix="check cluster=")
        total, weight = np.bincount(code, weights=total), np.bincount(code, weights=w)
    total, weight = total[weight > 0], weight[weight > 0]
    units, mean = len(weight), float(total.sum())
    residual = total - weight * mean
    residual[np.abs(residual) < 1e-15] = 0.0  # rounding of equal values must not pass for spread
    variance = float(units / (units - 1) * (residual @ residual)) if units > 1 else 0.0
    return Moments(float(_snapped(mean)), variance, units, 1.0 / float(weight @ weight), weight, total)


def _snapped(mean: Any) -> Any:
    """Return means within rounding of an end as that end: six weights of 1/6 sum to 0.9999999999999999."""
    import numpy as np

    return np.where(mean < 1e-12, 0.0, np.where(mean > 1.0 - 1e-12, 1.0, mean))


def mean_interval(
    values: Any,
    *,
    kind: str = "wilson",
    weights: Any = None,
    clusters: Sequence[Any] | None = None,
    ceiling: float | None = None,
    model_variance: float = 0.0,
    model_share: float = MODEL_SHARE.value,
    confidence: float = CONFIDENCE.value,
    draws: int = BOOTSTRAP_DRAWS.value,
    seed: int = SEED.value,
    small: int = SMALL_TASKS.value,
    exact_end: float = EXACT_END.value,
    freedom_power: float = FREEDOM_POWER.value,
    freedom_most: float = FREEDOM_GAIN.value,
    rollouts: float | None = None,
) -> Estimate:
    """Return the mean of bounded task values with an interval over tasks.

    Args:
        values: One value in [0, 1] per task, shape (tasks,).
        kind: One of `KINDS`. Where no task differs from another, every kind falls back to `wilson`, because resampling
            equal values gives zero width.
        weights: One weight per task; default equal.
        clusters: One label per task; tasks with one label are one unit.
        ceiling: Largest effective sample size of the Wilson kind (see `effective_wilson`).
        model_variance: Variance of the mean that a model of the counts expects; where it is larger than the one seen,
            it counts with `model_share`.
        model_share: Weight of `model_variance`.
        confidence: Level.
        draws: Resamples of the bootstrap kinds.
        seed: Seed of the resampling.
        small: Below this many units the ceiling is `rollouts`, and the t quantile has `units - 1` degrees of freedom.
        exact_end: Effective passes (fails) up to which the bound at that end is exact.
        freedom_power: `power` of `freedom_gain`.
        freedom_most: `most` of `freedom_gain`.
        rollouts: Rollouts that the values rest on; ceiling where nothing varies.

    Returns:
        The estimate. One unit gives [0, 1]: nothing is known about the spread between tasks.

    Raises:
        ParameterError: An unknown kind, or values that are not usable.
    """
    import numpy as np

    check_kind(kind)
    check_confidence(confidence)
    m = moments(values, weights, clusters)
    n = len(np.asarray(values))
    variance = m.variance + model_share * max(0.0, model_variance - m.variance)
    if rollouts is not None and (m.units < small or variance == 0):
        ceiling = rollouts if ceiling is None else min(ceiling, rollouts)
    spread = bool(np.any(np.abs(m.total - m.weight * m.mean) > 0)) and m.variance > 0
    if kind == "wilson" or not spread or m.units < 2:
        low, high, size = effective_wilson(
            m.mean,
            variance,
            m.units,
            kish=m.kish,
            ceiling=ceiling,
            confidence=confidence,
            exact_end=exact_end,
            small=small,
            freedom_power=freedom_power,
            freedom_most=freedom_most,
        )
        return Estimate(m.mean, float(low), float(high), n, m.units, float(size), "wilson", confidence)
    if kind in ("t", "logit"):
        low, high = _t_interval(m, confidence, logit=kind == "logit")
    else:
        low, high = _bootstrap(m, kind, confidence, draws, seed)
    low, high = min(max(low, 0.0), m.mean), max(min(high, 1.0), m.mean)
    return Estimate(m.mean, low, high, n, m.units, None, kind, confidence)


def _t_interval(m: Moments, confidence: float, *, logit: bool) -> tuple[float, float]:
    """Return mean -+ t * standard error, on the logit scale if asked for (delta method)."""
    import math

    q, se = t_quantile(m.units, confidence), math.sqrt(m.variance)
    if not logit:
        return m.mean - q * se, m.mean + q * se
    centre, half = math.log(m.mean / (1 - m.mean)), q * se / (m.mean * (1 - m.mean))
    return 1 / (1 + math.exp(min(half - centre, 700.0))), 1 / (1 + math.exp(max(-half - centre, -700.0)))


def _bootstrap(m: Moments, kind: str, confidence: float, draws: int, seed: int) -> tuple[float, float]:
    """Return a bootstrap interval of the weighted mean, resampling units.

    Source: Efron and Tibshirani 1993, chapters 13 (percentile), 12 (studentised), 14 (BCa).
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    order = np.lexsort((m.weight, m.total))  # the answer must not depend on the order of the file
    weights, totals = m.weight[order], m.total[order]
    rng = np.random.default_rng(seed)
    means, errors = np.empty(draws), np.empty(draws)
    step = max(1, 4_000_000 // m.units)  # keeps one block of resamples near 32 MB
    for start in range(0, draws, step):
        pick = rng.integers(0, m.units, size=(min(step, draws - start), m.units))
        weight, total = weights[pick], totals[pick]
        size = weight.sum(axis=1)
        mean = total.sum(axis=1) / size
        means[start : start + step] = mean
        if kind == "studentised":
            residual = (total - weight * mean[:, None]) / size[:, None]
            errors[start : start + step] = np.sqrt(m.units / (m.units - 1) * np.square(residual).sum(axis=1))
    tail = (1.0 - confidence) / 2.0
    if kind == "percentile":
        low, high = np.quantile(means, [tail, 1.0 - tail])
        return float(low), float(high)
    if kind == "studentised":
        shift = means - m.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(errors > 1e-12, shift / errors, np.where(np.abs(shift) < 1e-12, 0.0, np.sign(shift) * np.inf))
        t_low, t_high = np.quantile(t, [tail, 1.0 - tail], method="inverted_cdf")
        se = np.sqrt(m.variance)
        return float(m.mean - t_high * se), float(m.mean - t_low * se)
    below = (np.mean(means < m.mean - 1e-12) + np.mean(means <= m.mean + 1e-12)) / 2.0  # ties count half
    z0 = ndtri(np.clip(below, 1.0 / draws, 1.0 - 1.0 / draws))
    influence = m.total - m.weight * m.mean
    accel = np.sum(influence**3) / (6.0 * np.sum(influence**2) ** 1.5)
    z = z0 + ndtri(np.array([tail, 1.0 - tail]))
    low, high = np.quantile(means, ndtr(z0 + z / (1.0 - accel * z)))
    return float(low), float(high)
