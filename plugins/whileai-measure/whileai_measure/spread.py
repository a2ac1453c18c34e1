"""How much the difference of one task varies: from a number, a stated model, baseline rows, or a pilot of both sides.

The difference of a task is its share of passes after minus its share before, with variance `2 w / k + effect_sd^2`,
where w is the variance of one rollout within a task, k the rollouts per task and side, and effect_sd how unevenly the
effect falls on tasks.

Example:
    >>> model = spread_of(None, None, None, 0.5, 0.4, 4, None, None)
    >>> round(model.at(0.1), 3), model.no_room(0.6)
    (0.292, 'the baseline is 0.50, which leaves room for 0.50 and not for +0.60')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whileai_kernel.errors import ParameterError
from whileai_measure.columns import Columns, RowsLike, extract

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["Spread", "spread_of"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the spread of a task's difference comes from.

    Attributes:
        within: Variance of one rollout within a task; `None` where the spread is given.
        fixed: Standard deviation of a task's difference, where it is given or measured.
        baseline: pass@1 before, where known.
        k: Rollouts per task and side.
        effect_sd: How unevenly the effect falls on tasks; `None`: by the effect itself.
        notes: Assumptions that went in.
    """

    within: float | None
    fixed: float | None
    baseline: float | None
    k: int
    effect_sd: float | None
    notes: tuple[str, ...]

    def at(self, effect: float) -> float:
        """Return the standard deviation of a task's difference for an effect."""
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


def spread_of(
    rows: RowsLike | None,
    after: RowsLike | None,
    spread: float | None,
    baseline: float | None,
    icc: float,
    k: int | None,
    effect_sd: float | None,
    threshold: float | None,
) -> Spread:
    """Return the spread from whichever of rows, spread and baseline is given; the arguments are those of `power`.

    Raises:
        ParameterError: None or several are given, a value is out of range, or the rows say nothing about it.
    """
    if sum(x is not None for x in (rows, spread, baseline)) != 1:
        raise ParameterError(
            "give one of rows=, spread= or baseline=",
            why="the size of an eval depends on how much a task's difference varies",
            fix="pass rows=baseline_rows, or spread=0.4, or baseline=0.5",
        )
    if after is not None and rows is None:
        raise ParameterError("after= is a pilot beside rows=", fix="pass the baseline rows as rows=")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ParameterError(f"k must be a whole number from 1, not {k!r}", fix="pass k=4")
    if effect_sd is not None and not 0.0 <= effect_sd <= 1.0:
        raise ParameterError(f"effect_sd must lie in [0, 1], not {effect_sd!r}", fix="pass a standard deviation")
    if not 0.0 <= icc <= 1.0:
        raise ParameterError(f"icc must lie in [0, 1], not {icc!r}", fix="pass a share of the variance")
    if spread is not None:
        if not 0.0 < spread <= 1.0:
            raise ParameterError(f"spread must lie in (0, 1], not {spread!r}", fix="pass the standard deviation")
        return Spread(None, float(spread), None, k or 1, None, ())
    if baseline is not None:
        if not 0.0 <= baseline <= 1.0:
            raise ParameterError(f"baseline must lie in [0, 1], not {baseline!r}", fix="pass a pass rate")
        within = baseline * (1 - baseline) * (1 - icc)
        note = f"assumed: {icc:.0%} of the variance of a rollout lies between tasks"
        return Spread(within, None, float(baseline), k or 1, effect_sd, (note,))
    table = extract(rows, threshold=threshold)
    if after is None:
        return _of_baseline(table, k, effect_sd)
    return _of_pilot(table, extract(after, threshold=threshold), k)


def _shares(table: Columns) -> tuple[dict[str, float], Floats]:
    """Return the share of passes by task, and the scored rollouts of these tasks."""
    n, c, _ = table.counts()
    keep = n > 0
    if not keep.any():
        raise ParameterError("no row is scored", why="the spread of a task cannot be estimated", fix="grade the rows")
    names = [task for task, kept in zip(table.tasks, keep.tolist(), strict=True) if kept]
    return dict(zip(names, (c[keep] / n[keep]).tolist(), strict=True)), n[keep].astype(float)


def _of_baseline(table: Columns, k: int | None, effect_sd: float | None) -> Spread:
    import numpy as np

    by_task, n = _shares(table)
    share, left = np.array(list(by_task.values())), tuple(table.left_out())
    rate, size = float(share.mean()), k or int(np.median(n))
    many = n > 1
    if many.any():
        within = float(np.mean(n[many] / (n[many] - 1) * share[many] * (1 - share[many])))
        return Spread(within, None, rate, size, effect_sd, left)
    note = "one rollout per task: all variance is taken to lie within tasks, which asks for the most tasks"
    return Spread(rate * (1 - rate), None, rate, size, effect_sd, (note, *left))


def _of_pilot(table: Columns, other: Columns, k: int | None) -> Spread:
    import numpy as np

    (before, n), (later, _) = _shares(table), _shares(other)
    d = np.array([later[task] - share for task, share in before.items() if task in later])
    if len(d) < 2:
        raise ParameterError("fewer than two tasks are scored on both sides", fix="pass rows of the same tasks")
    if d.std() == 0:
        raise ParameterError(
            "no task differs between the two sides",
            why="a spread of zero plans nothing",
            fix="pass a larger pilot, or baseline=",
        )
    pilot = [f"pilot: {note}" for note in other.left_out()]
    notes = ("spread of the pilot's paired differences", *table.left_out(), *pilot)
    rate = float(np.mean(list(before.values())))
    return Spread(None, float(d.std(ddof=1)), rate, k or int(np.median(n)), None, notes)
