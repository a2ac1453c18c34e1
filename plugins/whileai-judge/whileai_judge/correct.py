"""The pass rate behind a judge that errs, from its verdicts on all rows and labels on some.

Two estimators. ``difference`` takes the judge's rate and subtracts its net error on the labelled rows (the
difference estimator of survey sampling; prediction-powered inference, Angelopoulos et al. 2023); it needs labelled rows
that are a random part of the rows. ``rogan-gladen`` (Rogan and Gladen 1978) turns the judge's two error rates around;
it also serves rows whose pass rate differs from that of the labelled ones, and needs error rates that carry over.
Intervals come from leaving out one task at a time, so they hold both the rows' and the labels' uncertainty.

Example:
    >>> rows = [{"task_id": f"t{i}", "reward": 1.0, "gold": float(i % 4 > 0)} for i in range(40)]
    >>> corrected = corrected_pass_rate(rows, gold=lambda row: row["gold"])
    >>> corrected.observed, round(corrected.corrected.value, 2)
    (1.0, 0.75)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_judge.defaults import CONFIDENCE, YOUDEN_FLOOR
from whileai_judge.intervals import Interval, Sums, jackknife, t_quantile, total, wilson
from whileai_judge.labels import Gold, gold_of
from whileai_judge.trust import verdict_by
from whileai_kernel.errors import unknown_name
from whileai_kernel.rows import task_key


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A judge's pass rate and the one behind it.

    Attributes:
        observed: Share of judged rows that the judge passes; None without any.
        corrected: The rate behind it with an interval over tasks; None when it cannot be estimated.
        method: ``difference`` or ``rogan-gladen``.
        judged: Rows with a verdict.
        labelled: Rows with a verdict and a label.
        unscored: Rows without a verdict; the rate is that of the others.
        note: Why there is no corrected rate.
    """

    observed: float | None
    corrected: Interval | None
    method: str
    judged: int
    labelled: int
    unscored: int
    note: str = ""

    def __str__(self) -> str:
        observed = "-" if self.observed is None else f"{self.observed:.2f}"
        shown = self.note if self.corrected is None else f"corrected {self.corrected}"
        left = f", {self.unscored} not scored" if self.unscored else ""
        return f"judge {observed} | {shown} | {self.judged} judged, {self.labelled} labelled{left} ({self.method})"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = ("observed", "method", "judged", "labelled", "unscored", "note")
        corrected = None if self.corrected is None else self.corrected.to_dict()
        return {**{name: getattr(self, name) for name in plain}, "corrected": corrected}

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def difference(sums: Sums) -> float | None:
    """Judge's rate minus its net error on the labelled rows; sums are ``(passed, judged, tp, fp, fn, tn)``."""
    labelled = sum(sums[2:])
    return sums[0] / sums[1] - (sums[3] - sums[4]) / labelled if sums[1] > 0 and labelled > 0 else None


def rogan_gladen(sums: Sums) -> float | None:
    """The judge's rate turned around by its error rates; None when the judge is close to a coin."""
    passing, failing = sums[2] + sums[4], sums[3] + sums[5]
    if sums[1] <= 0 or passing <= 0 or failing <= 0:
        return None
    sensitivity, specificity = sums[2] / passing, sums[5] / failing
    youden = sensitivity + specificity - 1
    return (sums[0] / sums[1] + specificity - 1) / youden if youden > YOUDEN_FLOOR.value else None


_CELLS = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
METHODS: dict[str, Callable[[Sums], float | None]] = {"difference": difference, "rogan-gladen": rogan_gladen}


def corrected_pass_rate(
    rows: Iterable[Mapping[str, Any]],
    *,
    judge: str | None = None,
    gold: Gold = None,
    threshold: float | None = None,
    method: str = "difference",
    confidence: float = CONFIDENCE.value,
) -> CorrectedRate:
    """Correct a judge's pass rate by labels on a part of the rows.

    Args:
        rows: Judged rows, some of them with labels.
        judge: Scorer id of the judge; the verdict that is on the row by default.
        gold: Whose labels are right, as for :func:`~whileai_judge.trust.judge_trust`.
        threshold: Reward from which a verdict passes; each verdict's own by default.
        method: ``difference`` or ``rogan-gladen``.
        confidence: Confidence of the interval.

    Raises:
        ParameterError: The method is unknown.
    """
    if method not in METHODS:
        unknown_name("method", method, METHODS)
    by_task: dict[str, list[float]] = {}
    unscored = 0
    for row in rows:
        verdict = verdict_by(row, judge)
        reward = None if verdict is None else verdict.get("reward")
        if verdict is None or reward is None:
            unscored += 1
            continue
        limit = threshold if threshold is not None else verdict.get("threshold", 1.0)
        sums = by_task.setdefault(task_key(row), [0.0] * 6)
        passed, right = reward >= limit - 1e-9, gold_of(row, gold)
        sums[0] += passed
        sums[1] += 1
        if right is not None:
            sums[
                2 + (0 if passed and right >= limit - 1e-9 else 1 if passed else 2 if right >= limit - 1e-9 else 3)
            ] += 1
    clusters = [tuple(sums) for sums in by_task.values()]
    if not clusters:
        return CorrectedRate(None, None, method, 0, 0, unscored, "no row has a verdict")
    sums_all = total(clusters)
    judged, labelled = int(sums_all[1]), int(sum(sums_all[2:]))
    interval = _interval(clusters, METHODS[method], judged, confidence)
    why = "no row has a label" if not labelled else "the labels do not tell the judge from a coin, or name one class"
    note = "" if interval is not None else why
    return CorrectedRate(sums_all[0] / judged, interval, method, judged, labelled, unscored, note)


def _interval(
    clusters: list[Sums], figure: Callable[[Sums], float | None], rows: int, confidence: float
) -> Interval | None:
    """A Wilson interval at the sample size that has the figure's jackknife error, for the number of labelled tasks."""
    estimate = jackknife(clusters, figure)
    labelled = sum(1 for sums in clusters if sum(sums[2:]) > 0)
    if estimate is None or labelled < 2:
        return None
    value, error = estimate
    rate = min(1.0, max(0.0, value))
    quantile = t_quantile(confidence, labelled - 1)
    variance = rate * (1 - rate)
    size = max(1.0, min(float(rows), variance / error**2)) if variance > 0 and error > 0 else float(labelled)
    if error > 0:
        spread = (max(0.0, value - quantile * error), min(1.0, value + quantile * error))
    else:
        spread = (rate, rate)
    low, high = wilson(rate, size, quantile)
    if math.isclose(rate, 0.0) or math.isclose(rate, 1.0):
        low, high = min(low, spread[0]), max(high, spread[1])
    return Interval(rate, low, high, rows, len(clusters))
