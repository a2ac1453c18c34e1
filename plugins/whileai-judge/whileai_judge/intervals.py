"""Intervals over tasks, for the figures of a judge.

Rows of one task are alike, so the unit is the task. A figure is a function of sums over tasks; its standard error
comes from leaving one task out at a time (the jackknife: Efron and Tibshirani 1993, chapter 11), which serves
rates, kappa and corrected rates alike. A rate gets a Wilson interval (Wilson 1927) at the sample size that has this
standard error, with a t quantile for the number of tasks; so all-right and all-wrong never give a width of zero.

Example:
    >>> print(clustered_rate([("t1", True), ("t1", True), ("t2", True), ("t3", False)]))
    0.75 [0.06..0.99] (4 rows, 3 tasks)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from whileai_judge.defaults import CONFIDENCE

Sums = tuple[float, ...]
Figure = Callable[[Sums], float | None]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its interval and what it rests on.

    Attributes:
        value: The estimate.
        low: Lower end.
        high: Upper end.
        rows: Rows that it rests on.
        tasks: Tasks that it rests on.
    """

    value: float
    low: float
    high: float
    rows: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}..{self.high:.2f}] ({self.rows} rows, {self.tasks} tasks)"

    def to_dict(self) -> dict[str, Any]:
        """The interval as plain values."""
        return {field: getattr(self, field) for field in ("value", "low", "high", "rows", "tasks")}


def _t_cdf(x: float, df: float) -> float:
    """Distribution function of Student's t (Abramowitz and Stegun 26.7.1 through the incomplete beta function)."""
    tail = 0.5 * _beta_ratio(df / (df + x * x), df / 2, 0.5)
    return 1 - tail if x > 0 else tail


def _beta_ratio(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function by its continued fraction (Lentz's method)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_ratio(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    f, c, d = 1.0, 1.0, 0.0
    for i in range(400):
        m = i // 2
        if i == 0:
            step = 1.0
        elif i % 2 == 0:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + step * d
        d = 1 / (d if abs(d) > 1e-300 else 1e-300)
        c = 1 + step / (c if abs(c) > 1e-300 else 1e-300)
        f *= c * d
        if abs(1 - c * d) < 1e-14:
            break
    return front * (f - 1)


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, df: int) -> float:
    """The two-sided quantile of Student's t: the value that |T| exceeds with probability 1 - confidence."""
    target = (1 + confidence) / 2
    low, high = 0.0, 2.0
    while _t_cdf(high, df) < target:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_cdf(middle, df) < target else (low, middle)
        if high - low < 1e-12 * high:
            break
    return (low + high) / 2


def wilson(rate: float, size: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a rate at a sample size that need not be whole."""
    square = quantile * quantile
    centre = (rate + square / (2 * size)) / (1 + square / size)
    half = quantile / (1 + square / size) * math.sqrt(rate * (1 - rate) / size + square / (4 * size * size))
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))


def total(clusters: Sequence[Sums]) -> Sums:
    """Sums over all tasks."""
    return tuple(math.fsum(column) for column in zip(*clusters, strict=True))


def jackknife(clusters: Sequence[Sums], figure: Figure) -> tuple[float, float] | None:
    """A figure of the sums over tasks and its standard error.

    Args:
        clusters: Sums of each task.
        figure: The figure of sums; None where it does not exist.

    Returns:
        ``(value, standard error)``; None when the figure does not exist for all tasks, or there are fewer than two.
        Tasks without which it does not exist are left out of the error.
    """
    sums = total(clusters)
    value = figure(sums)
    if value is None or len(clusters) < 2:
        return None
    without = [figure(tuple(s - c for s, c in zip(sums, cluster, strict=True))) for cluster in clusters]
    left = [one for one in without if one is not None]
    if len(left) < 2:
        return None
    mean = math.fsum(left) / len(left)
    return value, math.sqrt((len(left) - 1) / len(left) * math.fsum((one - mean) ** 2 for one in left))


def ratio(sums: Sums) -> float | None:
    """The first sum over the second."""
    return sums[0] / sums[1] if sums[1] > 0 else None


def clustered_rate(pairs: Iterable[tuple[str, Any]], confidence: float = CONFIDENCE.value) -> Interval | None:
    """The share of true values with an interval over tasks.

    Args:
        pairs: ``(task, value)`` per row; values are truth values.
        confidence: Confidence of the interval.

    Returns:
        The interval; None without rows.
    """
    counts: dict[str, list[float]] = {}
    for task, value in pairs:
        held = counts.setdefault(task, [0.0, 0.0])
        held[0] += bool(value)
        held[1] += 1
    return rate_of([(held[0], held[1]) for held in counts.values()], confidence)


def rate_of(clusters: Sequence[tuple[float, float]], confidence: float = CONFIDENCE.value) -> Interval | None:
    """The rate of ``(hits, rows)`` per task with an interval; tasks without rows do not count.

    One task alone says nothing about others: its interval is [0, 1].
    """
    used = [cluster for cluster in clusters if cluster[1] > 0]
    if not used:
        return None
    hits, rows = total(used)
    rate = hits / rows
    if len(used) < 2:
        return Interval(rate, 0.0, 1.0, int(rows), len(used))
    estimate = jackknife(used, ratio)
    error = estimate[1] if estimate else 0.0
    variance = rate * (1 - rate)
    if variance > 0 and error > 0:
        size = max(1.0, min(rows, variance / error**2))
    else:
        size = float(len(used))  # nothing varies: every task counts once
    low, high = wilson(rate, size, t_quantile(confidence, len(used) - 1))
    return Interval(rate, low, high, int(rows), len(used))


def figure_of(
    clusters: Sequence[Sums],
    figure: Figure,
    confidence: float = CONFIDENCE.value,
    *,
    rows: int,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval | None:
    """Any figure of sums over tasks, with a t interval from the jackknife, held within ``bounds``."""
    estimate = jackknife(clusters, figure)
    if estimate is None:
        return None
    value, error = estimate
    half = t_quantile(confidence, len(clusters) - 1) * error
    low, high = max(bounds[0], value - half), min(bounds[1], value + half)
    return Interval(value, min(value, low), max(value, high), rows, len(clusters))
