"""How many tasks an eval needs, and what a given eval can see.

All three questions use one model of how much a task's difference varies (see `spread`). The test is the paired test of
`compare`; its power is that of a t test with the same spread (with the fewest tasks it accepts, that of equal signs
throughout), which `self_check` holds against simulation.

Example:
    >>> print(holdout_size(0.10, baseline=0.5, k=4))
    69 tasks detect +0.10 with power 0.80 (k=4, spread of a task's difference 0.29)
      note: assumed: 40% of the variance of a rollout lies between tasks
    >>> print(holdout_size(0.10, baseline=0.95))
    no number of tasks: the baseline is 0.95, which leaves room for 0.05 and not for +0.10
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.columns import RowsLike
from whileai_measure.defaults import CONFIDENCE, ICC, POWER
from whileai_measure.intervals import check_confidence, t_quantile
from whileai_measure.signflip import least_tasks
from whileai_measure.spread import spread_of

__all__ = ["EvalPower", "HoldoutSize", "detectable_effect", "eval_power", "holdout_size"]

MOST_TASKS = 100_000_000  # beyond this the search stops: no eval has as many


class _Report:
    """What both reports print and return in the same way."""

    __slots__ = ()
    notes: tuple[str, ...]

    def _with_notes(self, text: str) -> str:
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return out | {"notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class HoldoutSize(_Report):
    """How many tasks an eval needs.

    Attributes:
        tasks: The number, or `None` where no number of tasks can show the effect.
        effect: Difference of pass@1 to detect.
        power: Chance of detecting it.
        k: Rollouts per task and side.
        spread: Standard deviation of the difference of one task; `None` where there is no answer.
        baseline: pass@1 before, where known.
        reason: Why there is no number.
        notes: Assumptions that went in.
    """

    tasks: int | None
    effect: float
    power: float
    k: int
    spread: float | None
    baseline: float | None
    reason: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.tasks is None:
            return f"no number of tasks: {self.reason}"
        text = (
            f"{self.tasks} tasks detect {self.effect:+.2f} with power {self.power:.2f} "
            f"(k={self.k}, spread of a task's difference {self.spread:.2f})"
        )
        return self._with_notes(text)


@dataclass(frozen=True, slots=True)
class EvalPower(_Report):
    """What an eval of a given size can see.

    Attributes:
        power: Chance that `compare` detects the effect.
        tasks: Paired tasks.
        effect: Difference of pass@1.
        k: Rollouts per task and side.
        spread: Standard deviation of the difference of one task.
        confidence: 1 minus the size of the test.
        notes: Assumptions that went in.
    """

    power: float
    tasks: int
    effect: float
    k: int
    spread: float
    confidence: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        basis = f"k={self.k}, spread {self.spread:.2f}"
        text = f"power {self.power:.2f} for {self.effect:+.3f} at {self.tasks} tasks ({basis})"
        return self._with_notes(text)


def _power(tasks: int, effect: float, spread: float, confidence: float) -> float:
    """Return the power of the sign-flip test for normal differences: that of a t test (noncentral t).

    Where only one pattern in either tail rejects (6 tasks at 0.95), all differences must have one sign, and the t test
    would promise up to 16 points too much; from 8 tasks on the two are within 2 points.
    """
    from scipy.special import nctdtr, ndtr

    if tasks < least_tasks(confidence):
        return 0.0
    if spread <= 0:
        return 1.0
    if int((1.0 - confidence) / 2.0 * 2.0 ** min(tasks, 60) + 1e-9) == 1:
        return float(ndtr(effect / spread) ** tasks + ndtr(-effect / spread) ** tasks)
    shift, quantile = abs(effect) / spread * tasks**0.5, float(t_quantile(tasks, confidence))
    if tasks > 5_000 or shift > 30:  # normal there to more digits than the noncentral t is computed with
        return float(ndtr(shift - quantile) + ndtr(-shift - quantile))
    df = tasks - 1.0
    return float(1.0 - nctdtr(df, shift, quantile) + nctdtr(df, shift, -quantile))


def _check_effect(effect: float) -> float:
    if isinstance(effect, bool) or not isinstance(effect, int | float) or not 0.0 < abs(effect) <= 1.0:
        raise ParameterError(
            f"effect must be a difference of rates, not 0 and within [-1, 1]: {effect!r}", fix="pass 0.05"
        )
    return float(effect)


def _check_power(power: float) -> None:
    if not 0.0 < power < 1.0:
        raise ParameterError(f"power must lie between 0 and 1, not {power!r}", fix="pass power=0.8")


def _check_tasks(tasks: int) -> None:
    if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
        raise ParameterError(f"tasks must be a whole number from 1, not {tasks!r}", fix="pass tasks=100")


def _first(holds: Callable[[int], bool], low: int, most: int) -> int | None:
    """Return the smallest number from `low` on for which a monotone condition holds, `None` beyond `most`."""
    high = low
    while not holds(high):
        low, high = high + 1, high * 2
        if high > most:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def holdout_size(
    effect: float,
    *,
    rows: RowsLike | None = None,
    after: RowsLike | None = None,
    spread: float | None = None,
    baseline: float | None = None,
    k: int | None = None,
    icc: float = ICC.value,
    effect_sd: float | None = None,
    power: float = POWER.value,
    confidence: float = CONFIDENCE.value,
    threshold: float | None = None,
) -> HoldoutSize:
    """Return how many tasks a paired comparison needs to detect a difference of pass@1.

    Args:
        effect: Difference to detect, for example 0.05.
        rows: Baseline rows to estimate the variance within tasks from.
        after: Rows of a pilot of the second policy on the same tasks; the spread is then that of the differences.
        spread: Standard deviation of the difference of one task, if you know it.
        baseline: pass@1 before, for a stated model instead of rows.
        k: Rollouts per task and side. Default: as in the rows, else 1.
        icc: Share of the variance of a rollout that lies between tasks; only with `baseline`.
        effect_sd: How unevenly the effect falls on tasks. Default: the effect itself (half of the tasks gain twice it).
        power: Chance of detecting the effect.
        confidence: 1 minus the size of the test.
        threshold: Reward from which a rollout passes, instead of the row's own.

    Returns:
        The size; no number, with the reason, where the baseline leaves no room for the effect.

    Raises:
        ParameterError: None or several of rows, spread and baseline; a value out of range.

    Source: power of the one-sample t test, Cohen 1988, section 2.2.
    """
    effect = _check_effect(effect)
    check_confidence(confidence)
    _check_power(power)
    model = spread_of(rows, after, spread, baseline, icc, k, effect_sd, threshold)
    reason = model.no_room(effect)
    if reason:
        return HoldoutSize(None, effect, power, model.k, None, model.baseline, reason, model.notes)
    sd = model.at(effect)
    size = _first(lambda n: _power(n, effect, sd, confidence) >= power, least_tasks(confidence), MOST_TASKS)
    reason = "the effect is too small for any eval" if size is None else ""
    return HoldoutSize(size, effect, power, model.k, sd, model.baseline, reason, model.notes)


def eval_power(
    tasks: int,
    effect: float,
    *,
    rows: RowsLike | None = None,
    after: RowsLike | None = None,
    spread: float | None = None,
    baseline: float | None = None,
    k: int | None = None,
    icc: float = ICC.value,
    effect_sd: float | None = None,
    confidence: float = CONFIDENCE.value,
    threshold: float | None = None,
) -> EvalPower:
    """Return the chance that `compare` detects a difference of pass@1 with a number of paired tasks.

    Args:
        tasks: Paired tasks.
        effect: Difference of pass@1.
        rows: As in `holdout_size`.
        after: As in `holdout_size`.
        spread: As in `holdout_size`.
        baseline: As in `holdout_size`.
        k: As in `holdout_size`.
        icc: As in `holdout_size`.
        effect_sd: As in `holdout_size`.
        confidence: As in `holdout_size`.
        threshold: As in `holdout_size`.

    Returns:
        The power: 0 below the fewest tasks at which the test can reject, and where the baseline has no room.

    Raises:
        ParameterError: As in `holdout_size`.
    """
    effect = _check_effect(effect)
    check_confidence(confidence)
    _check_tasks(tasks)
    model = spread_of(rows, after, spread, baseline, icc, k, effect_sd, threshold)
    reason = model.no_room(effect)
    sd = model.at(effect)
    power = 0.0 if reason else _power(tasks, effect, sd, confidence)
    notes = (*model.notes, *((reason,) if reason else ()))
    if tasks < least_tasks(confidence):
        notes = (*notes, f"below {least_tasks(confidence)} tasks the test never rejects")
    return EvalPower(power, tasks, effect, model.k, sd, confidence, notes)


def detectable_effect(
    tasks: int,
    *,
    rows: RowsLike | None = None,
    after: RowsLike | None = None,
    spread: float | None = None,
    baseline: float | None = None,
    k: int | None = None,
    icc: float = ICC.value,
    effect_sd: float | None = None,
    power: float = POWER.value,
    confidence: float = CONFIDENCE.value,
    threshold: float | None = None,
) -> EvalPower:
    """Return the smallest gain of pass@1 that `compare` detects with the given power.

    Args:
        tasks: Paired tasks.
        rows: As in `holdout_size`.
        after: As in `holdout_size`.
        spread: As in `holdout_size`.
        baseline: As in `holdout_size`.
        k: As in `holdout_size`.
        icc: As in `holdout_size`.
        effect_sd: As in `holdout_size`.
        power: Chance of detecting it.
        confidence: As in `holdout_size`.
        threshold: As in `holdout_size`.

    Returns:
        The power report at that effect.

    Raises:
        ParameterError: As in `holdout_size`, and where no gain up to 1 is detected.
    """
    check_confidence(confidence)
    _check_tasks(tasks)
    _check_power(power)
    model = spread_of(rows, after, spread, baseline, icc, k, effect_sd, threshold)
    most = 1.0 if model.baseline is None else 1.0 - model.baseline
    if most <= 0 or _power(tasks, most, model.at(most), confidence) < power:
        raise ParameterError(
            f"{tasks} tasks detect no gain up to {most:.2f} with power {power:.2f}",
            why="the baseline has no room" if most < 1 else "the test has too few tasks",
            fix="use more tasks or more rollouts per task",
        )
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        if _power(tasks, middle, model.at(middle), confidence) >= power:
            high = middle
        else:
            low = middle
    sd = model.at(high)
    return EvalPower(_power(tasks, high, sd, confidence), tasks, high, model.k, sd, confidence, model.notes)
