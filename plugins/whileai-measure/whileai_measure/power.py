"""How many tasks an eval needs, and what a given eval can see.

All three questions use one model of a paired comparison: the difference of a task is its share after minus its share
before, with variance `2 w / k + effect_sd^2`, where w is the variance of one rollout within a task, k the rollouts per
task and side, and effect_sd how unevenly the effect falls on tasks. The test is the paired test of `compare`; its power
is that of a t test with the same spread, which `self_check` confirms by simulation.

Example:
    >>> print(holdout_size(0.10, baseline=0.5, k=4))
    69 tasks detect +0.10 with power 0.80 (k=4, spread of a task's difference 0.29)
      note: assumed: 40% of the variance of a rollout lies between tasks
    >>> print(holdout_size(0.10, baseline=0.95))
    no number of tasks: the baseline is 0.95, which leaves room for 0.05 and not for +0.10
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.columns import RowsLike, extract
from whileai_measure.defaults import CONFIDENCE, ICC, POWER
from whileai_measure.intervals import check_confidence, t_quantile
from whileai_measure.signflip import least_tasks

__all__ = ["EvalPower", "HoldoutSize", "detectable_effect", "eval_power", "holdout_size"]

MOST_TASKS = 100_000_000  # beyond this the search stops: no eval has as many


@dataclass(frozen=True, slots=True)
class HoldoutSize:
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
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class EvalPower:
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
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class _Spread:
    """Where the spread of a task's difference comes from."""

    within: float | None
    fixed: float | None
    baseline: float | None
    k: int
    effect_sd: float | None
    notes: tuple[str, ...]

    def at(self, effect: float) -> float:
        if self.fixed is not None:
            return self.fixed
        assert self.within is not None
        sd = abs(effect) if self.effect_sd is None else self.effect_sd
        return float((2.0 * self.within / self.k + sd * sd) ** 0.5)

    def no_room(self, effect: float) -> str:
        """Return why the baseline cannot show the effect, or the empty string."""
        if self.baseline is None:
            return ""
        room = 1.0 - self.baseline if effect > 0 else self.baseline
        if room < abs(effect) - 1e-12 or room <= 0:
            return f"the baseline is {self.baseline:.2f}, which leaves room for {room:.2f} and not for {effect:+.2f}"
        return ""


def _spread(
    rows: RowsLike | None,
    after: RowsLike | None,
    spread: float | None,
    baseline: float | None,
    icc: float,
    k: int | None,
    effect_sd: float | None,
    threshold: float | None,
) -> _Spread:
    import numpy as np

    if sum(x is not None for x in (rows, spread, baseline)) != 1:
        raise ParameterError(
            "give one of rows=, spread= or baseline=",
            why="the size of an eval depends on how much a task's difference varies",
            fix="pass rows=baseline_rows, or spread=0.4, or baseline=0.5",
        )
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ParameterError(f"k must be a whole number from 1, not {k!r}", fix="pass k=4")
    if spread is not None:
        if not 0.0 < spread <= 1.0:
            raise ParameterError(f"spread must lie in (0, 1], not {spread!r}", fix="pass the standard deviation")
        return _Spread(None, float(spread), None, k or 1, None, ())
    if baseline is not None:
        if not 0.0 <= baseline <= 1.0:
            raise ParameterError(f"baseline must lie in [0, 1], not {baseline!r}")
        within = baseline * (1 - baseline) * (1 - icc)
        note = f"assumed: {icc:.0%} of the variance of a rollout lies between tasks"
        return _Spread(within, None, float(baseline), k or 1, effect_sd, (note,))
    table = extract(rows, threshold=threshold)
    n, c, _ = table.counts()
    left = tuple(table.left_out())
    keep = n > 0
    if not keep.any():
        raise ParameterError("no row is scored", why="the spread of a task cannot be estimated", fix="grade the rows")
    n, c = n[keep], c[keep]
    share = c / n
    rate, size = float(share.mean()), k or int(np.median(n))
    if after is not None:
        other = extract(after, threshold=threshold)
        n2, c2, _ = other.counts()
        place = {t: i for i, t in enumerate(other.tasks)}
        names = [t for t, kept in zip(table.tasks, keep.tolist(), strict=True) if kept]
        pairs = [(i, place[t]) for i, t in enumerate(names) if t in place and n2[place[t]] > 0]
        if len(pairs) < 2:
            raise ParameterError("fewer than two tasks are scored on both sides", fix="pass rows of the same tasks")
        d = np.array([c2[j] / n2[j] - share[i] for i, j in pairs])
        if d.std() == 0:
            raise ParameterError("no task differs between the two sides", why="a spread of zero plans nothing")
        notes = ("spread of the pilot's paired differences", *left, *(f"pilot: {note}" for note in other.left_out()))
        return _Spread(None, float(d.std(ddof=1)), rate, size, None, notes)
    many = n > 1
    if many.any():
        within = float(np.mean(n[many] / (n[many] - 1) * share[many] * (1 - share[many])))
        return _Spread(within, None, rate, size, effect_sd, left)
    note = "one rollout per task: all variance is taken to lie within tasks, which asks for the most tasks"
    return _Spread(rate * (1 - rate), None, rate, size, effect_sd, (note, *left))


def _power(tasks: int, effect: float, spread: float, confidence: float) -> float:
    """Return the power of a two-sided one-sample t test (noncentral t)."""
    from scipy.special import nctdtr, ndtr

    if tasks < least_tasks(confidence):
        return 0.0
    if spread <= 0:
        return 1.0
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
    if not 0.0 < power < 1.0:
        raise ParameterError(f"power must lie between 0 and 1, not {power!r}", fix="pass power=0.8")
    model = _spread(rows, after, spread, baseline, icc, k, effect_sd, threshold)
    reason = model.no_room(effect)
    if reason:
        return HoldoutSize(None, effect, power, model.k, None, model.baseline, reason, model.notes)
    sd = model.at(effect)
    low, high = least_tasks(confidence), least_tasks(confidence)
    while _power(high, effect, sd, confidence) < power:
        low, high = high, high * 2
        if high > MOST_TASKS:
            return HoldoutSize(None, effect, power, model.k, sd, model.baseline, "the effect is too small for any eval")
    while low < high:
        middle = (low + high) // 2
        if _power(middle, effect, sd, confidence) >= power:
            high = middle
        else:
            low = middle + 1
    return HoldoutSize(high, effect, power, model.k, sd, model.baseline, "", model.notes)


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
    model = _spread(rows, after, spread, baseline, icc, k, effect_sd, threshold)
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
    if not 0.0 < power < 1.0:
        raise ParameterError(f"power must lie between 0 and 1, not {power!r}", fix="pass power=0.8")
    model = _spread(rows, after, spread, baseline, icc, k, effect_sd, threshold)
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


def _check_tasks(tasks: int) -> None:
    if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
        raise ParameterError(f"tasks must be a whole number from 1, not {tasks!r}", fix="pass tasks=100")
