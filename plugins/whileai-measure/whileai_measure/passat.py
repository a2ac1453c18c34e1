"""pass@1, pass^k and pass@k of a set of rows, with intervals over tasks.

Every number says what it rests on: tasks, rollouts, rows that were not scored, cut or failed. Grading, comparing and
selecting are other modules' work.

Example:
    >>> rows = [{"task_id": t, "reward": r} for t, rs in {"a": [1, 1], "b": [0, 1], "c": [0, 0]}.items() for r in rs]
    >>> print(pass_at(rows))
    pass@1 0.50 [0.04..0.96] | pass^2 0.33 [0.00..0.94] | pass@2 0.67 [0.06..1.00] | headroom 0.17 (3 tasks, k=2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from whileai_kernel.errors import ParameterError
from whileai_measure.blocks import few
from whileai_measure.columns import Columns, Label, RowsLike, extract, safe
from whileai_measure.defaults import BOOTSTRAP_DRAWS, CONFIDENCE, MODEL_SHARE, SEED
from whileai_measure.design import limits
from whileai_measure.estimators import pass_at_k, pass_hat_k
from whileai_measure.intervals import Estimate, check_confidence, check_kind, mean_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["PassAt", "TaskCount", "pass_at"]


class TaskCount(NamedTuple):
    """One task: scored rollouts, passes and mean reward."""

    task_id: str
    scored: int
    passed: int
    mean_reward: float | None


@dataclass(frozen=True)
class PassAt:
    """Pass rates of a set of rows.

    Attributes:
        pass_1: Mean over tasks of the share of rollouts that pass.
        hat: pass^k by k: the chance that all of k rollouts pass.
        at: pass@k by k: the chance that at least one of k passes.
        mean_reward: Mean over tasks of the mean reward.
        fractional: Scored rows whose reward is neither 0 nor 1.
        k: Largest k; the one that the printed line shows.
        tasks: Tasks with at least one scored rollout.
        unscored_tasks: Tasks without any.
        rollouts: Scored rollouts.
        rows: Rows read.
        not_scored: Rows without a reward, by status.
        truncated: Rows cut by a length limit.
        failed: Rows whose run failed.
        bounds: pass@1 if every not-scored row had failed, and if every one had passed.
        notes: What a reader must know about the numbers.
        slices: The same report per slice (`by=`).
        per_task: Counts per task, in order of first appearance.
    """

    pass_1: Estimate
    hat: dict[int, Estimate]
    at: dict[int, Estimate]
    mean_reward: Estimate
    fractional: int
    k: int
    tasks: int
    unscored_tasks: int
    rollouts: int
    rows: int
    not_scored: dict[str, int]
    truncated: int
    failed: int
    bounds: tuple[float, float] | None
    notes: tuple[str, ...] = ()
    slices: dict[str, PassAt] = field(default_factory=dict)
    per_task: tuple[TaskCount, ...] = field(default=(), repr=False)

    @property
    def headroom(self) -> float | None:
        """pass@k - pass@1: what the policy can already do but does not do every time."""
        best = self.at.get(self.k)
        if best is None or best.value is None or self.pass_1.value is None:
            return None
        base = self.pass_1.value
        if best.tasks != self.pass_1.tasks:  # the difference is taken over the tasks that have both
            kept = [t.passed / t.scored for t in self.per_task if t.scored >= self.k]
            base = sum(kept) / len(kept)
        return best.value - base

    @property
    def truncated_share(self) -> float | None:
        """Share of the rows that were cut by a length limit."""
        used = self.rollouts + sum(self.not_scored.values())
        return self.truncated / used if used else None

    @property
    def line(self) -> str:
        """The rates on one line, without notes."""
        parts = [f"pass@1 {self.pass_1}"]
        if self.fractional:
            parts.append(f"mean reward {self.mean_reward}")
        for k in sorted(self.hat):
            if k > 1:
                parts.append(f"pass^{k} {self.hat[k]}")
        for k in sorted(self.at):
            if k > 1:
                parts.append(f"pass@{k} {self.at[k]}")
        if self.k > 1 and self.headroom is not None:
            parts.append(f"headroom {self.headroom:.2f}")
        return f"{' | '.join(parts)} ({self.tasks} task{'s' if self.tasks != 1 else ''}, k={self.k})"

    def __str__(self) -> str:
        lines = [self.line, *(f"  note: {note}" for note in self.notes)]
        width = max((len(name) for name in self.slices), default=0)
        lines += [f"  {name:<{width}}  {part.line}" for name, part in self.slices.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        return {
            "pass@1": self.pass_1.to_dict(),
            "pass^k": {str(k): e.to_dict() for k, e in self.hat.items()},
            "pass@k": {str(k): e.to_dict() for k, e in self.at.items()},
            "mean_reward": self.mean_reward.to_dict(),
            "headroom": self.headroom,
            "k": self.k,
            "tasks": self.tasks,
            "unscored_tasks": self.unscored_tasks,
            "rollouts": self.rollouts,
            "rows": self.rows,
            "not_scored": dict(self.not_scored),
            "fractional": self.fractional,
            "truncated": self.truncated,
            "failed": self.failed,
            "bounds": list(self.bounds) if self.bounds else None,
            "notes": list(self.notes),
            "slices": {name: part.to_dict() for name, part in self.slices.items()},
            "per_task": [
                {"task_id": t.task_id, "scored": t.scored, "passed": t.passed, "mean_reward": t.mean_reward}
                for t in self.per_task
            ],
        }

    def plot(self) -> str:
        """Return an SVG of the intervals per slice (or of the whole) and of pass^k and pass@k against k."""
        from whileai_measure.plots import pass_at_plot

        return pass_at_plot(self)

    def _repr_html_(self) -> str:
        from whileai_measure.plots import pass_at_html

        return pass_at_html(self)


def pass_at(
    rows: RowsLike,
    k: int | Iterable[int] | None = None,
    *,
    threshold: float | None = None,
    interval: str = "wilson",
    confidence: float = CONFIDENCE.value,
    cluster: Label | None = None,
    by: Label | None = None,
    weight: Mapping[str, float] | Callable[[Mapping[str, Any]], Any] | str | None = None,
    draws: int = BOOTSTRAP_DRAWS.value,
    seed: int = SEED.value,
    model_share: float = MODEL_SHARE.value,
) -> PassAt:
    """Return pass@1, pass^k and pass@k with intervals over tasks.

    Per task the combinatorial estimators are used, then the mean over tasks. A task with fewer than k scored rollouts
    has no pass^k and no pass@k: it counts for pass@1 and is left out of these, with a note.

    Args:
        rows: Rows, an iterator of rows, a path, or a pandas, polars or Arrow table.
        k: One k or several. Default: the most common number of scored rollouts per task (the larger on a tie).
        threshold: Reward from which a rollout passes, instead of the row's own (default 1.0).
        interval: `wilson` (default), `t`, `logit`, `percentile`, `bca` or `studentised`.
        confidence: Level of the intervals.
        cluster: Label of tasks that share a passage or template and are one independent unit.
        by: Label of slices to report as well.
        weight: Weight of each task: a mapping from task id, a field, or a function of the row.
        draws: Resamples of the bootstrap kinds.
        seed: Seed of the resampling.
        model_share: Weight of a fitted beta-binomial's variance of pass^k and pass@k where it is larger than seen.

    Returns:
        The report. A value that no data supports is `None`, printed as n/a.

    Raises:
        RowError: A row cannot be read; the error names the row and the field.
        ParameterError: An argument has no meaning here.

    Source: Chen et al. 2021, section 2.1 (pass@k); Yao et al. 2024, section 3 (pass^k); `intervals` for the rest.
    """
    import numpy as np

    ks = _check_k(k)
    check_kind(interval)
    check_confidence(confidence)
    labels: dict[str, Label] = {}
    for name, label in (("cluster", cluster), ("by", by), ("weight", weight)):
        if label is not None:
            labels[name] = label
    columns = extract(rows, threshold=threshold, labels=labels)
    options = _Options(ks, interval, confidence, draws, seed, model_share)
    task_clusters = columns.task_labels("cluster", "cluster") if cluster is not None else None
    weights = _weights(columns) if weight is not None else None
    whole = _report(columns, None, options, task_clusters, weights)
    if by is None:
        return whole
    slices = {}
    row_labels = columns.labels["by"]
    for label in sorted(set(row_labels), key=lambda v: (v is None, str(v))):
        mask = np.array([value == label for value in row_labels], dtype=bool)
        name = "(none)" if label is None else safe(label)
        slices[name] = _report(columns, mask, options, task_clusters, weights)
    return PassAt(**{**whole.__dict__, "slices": slices})


@dataclass(frozen=True, slots=True)
class _Options:
    ks: tuple[int, ...] | None
    kind: str
    confidence: float
    draws: int
    seed: int
    model_share: float


def _check_k(k: int | Iterable[int] | None) -> tuple[int, ...] | None:
    if k is None:
        return None
    values: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"k must be a whole number from 1, not {value!r}", fix="pass k=4 or k=[1, 2, 4]")
    if not values:
        raise ParameterError("k is an empty list", fix="pass k=4 or k=[1, 2, 4], or leave it out")
    return tuple(sorted(set(values)))


def _weights(columns: Columns) -> Floats:
    import numpy as np

    given = columns.task_labels("weight", "weight")
    for task, value in zip(columns.tasks, given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ParameterError(
                f"task {safe(task)} has no usable weight: {safe(value)}",
                why="a weight is a finite number, at least 0, for every task",
                fix="complete the mapping or the field given as weight=",
            )
    return np.array(given, dtype=np.float64)


def _report(
    columns: Columns,
    mask: Any,
    options: _Options,
    clusters: list[Any] | None,
    weights: Floats | None,
) -> PassAt:
    import numpy as np

    every = np.ones(len(columns.code), dtype=bool) if mask is None else mask
    n, c, mean = columns.counts(None if mask is None else mask)
    have = n > 0
    seen = np.bincount(columns.code[every], minlength=len(columns.tasks)) > 0
    ks = options.ks or ((_usual(n[have]),) if have.any() else (1,))
    n_, c_ = n[have], c[have]

    def estimate(values: Floats, keep: Any, **extra: Any) -> Estimate:
        at = np.flatnonzero(have)[keep]
        w = None if weights is None else weights[at]
        if w is not None and w.sum() > 0 and "model_variance" in extra:
            uneven = len(w) * float(w @ w) / float(w.sum()) ** 2  # what uneven weights cost, as a factor of variance
            extra = {"ceiling": extra["ceiling"] / uneven, "model_variance": extra["model_variance"] * uneven}
        if not len(at) or (w is not None and w.sum() == 0):
            return Estimate(None, None, None, 0, 0, None, options.kind, options.confidence)
        return mean_interval(
            values[keep],
            kind=options.kind,
            weights=w,
            clusters=None if clusters is None else [clusters[i] for i in at],
            confidence=options.confidence,
            draws=options.draws,
            seed=options.seed,
            model_share=options.model_share,
            **extra,
        )

    all_tasks = np.ones(len(n_), dtype=bool)
    share = c_ / np.maximum(n_, 1)
    rollouts = _rollouts(n_, None if weights is None else weights[have])
    pass_1 = estimate(share, all_tasks, ceiling=rollouts)
    scored = every & columns.scored
    reward = columns.reward[scored]
    fractional = int(np.count_nonzero((reward != 0.0) & (reward != 1.0)))
    total_var = float(reward.var()) if len(reward) else 0.0
    value = float(np.mean(mean[have])) if have.any() else 0.0
    top = value * (1 - value) * rollouts / total_var if total_var > 0 else rollouts
    mean_reward = estimate(mean[have], all_tasks, ceiling=top, rollouts=rollouts)
    hat: dict[int, Estimate] = {}
    at: dict[int, Estimate] = {}
    for size in ks:
        keep = n_ >= size
        for out, values, which in ((hat, pass_hat_k(n_, c_, size), "hat"), (at, pass_at_k(n_, c_, size), "at")):
            extra = _model(n_[keep], c_[keep], size, which) if keep.any() else {}
            out[size] = estimate(values, keep, **extra)
    return PassAt(
        pass_1=pass_1,
        hat=hat,
        at=at,
        mean_reward=mean_reward,
        fractional=fractional,
        k=max((size for size in ks if at[size].value is not None), default=max(ks)),
        tasks=int(have.sum()),
        unscored_tasks=int((seen & ~have).sum()),
        rollouts=int(scored.sum()),
        rows=columns.read if mask is None else int(every.sum()),
        not_scored=columns.not_scored if mask is None else _not_scored(columns, every),
        truncated=int(columns.truncated[every].sum()),
        failed=int(columns.failed[every].sum()),
        bounds=_bounds(columns, every, weights),
        notes=tuple(_notes(columns, every, n, have, seen, ks, at, options, pass_1) if mask is None else ()),
        per_task=_per_task(columns, seen, n, c, mean),
    )


def _per_task(columns: Columns, seen: Any, n: Ints, c: Ints, mean: Floats) -> tuple[TaskCount, ...]:
    import numpy as np

    means: list[float | None] = np.where(n > 0, mean, 0.0).tolist()
    for i in np.flatnonzero(n == 0).tolist():
        means[i] = None
    every = map(TaskCount._make, zip(columns.tasks, n.tolist(), c.tolist(), means, strict=True))
    return tuple(every if seen.all() else compress(every, seen.tolist()))


def _usual(n: Ints) -> int:
    """Return the most common group size, the larger on a tie."""
    import numpy as np

    sizes, times = np.unique(n, return_counts=True)
    return int(sizes[times == times.max()].max())


def _rollouts(n: Ints, weights: Floats | None) -> float:
    """Return the number of rollouts at equal weight that carry the information of these."""
    import numpy as np

    if not len(n):
        return 1.0
    w = np.full(len(n), 1 / len(n)) if weights is None or weights.sum() == 0 else weights / weights.sum()
    return float(1.0 / np.sum(w * w / n))


def _model(n: Ints, c: Ints, k: int, which: str) -> dict[str, float]:
    """Return the largest effective size of pass^k or pass@k, and the variance that a model of the counts expects."""
    import numpy as np

    sizes, times = np.unique(n, return_counts=True)
    values = pass_hat_k(n, c, k) if which == "hat" else pass_at_k(n, c, k)
    ceiling, expected = limits(
        sizes.tolist(),
        times.tolist(),
        k,
        which,
        mean=values.mean(),
        rate=c.sum() / n.sum(),
        spread=(c / n).var(ddof=1) if len(n) > 1 else 0.0,
    )
    return {"ceiling": float(ceiling[0]), "model_variance": float(expected[0])}


def _not_scored(columns: Columns, every: Any) -> dict[str, int]:
    missing = int((every & ~columns.scored).sum())
    return {"not scored": missing} if missing else {}


def _bounds(columns: Columns, every: Any, weights: Floats | None) -> tuple[float, float] | None:
    """Return pass@1 with all not-scored rows failed, and with all of them passed."""
    import numpy as np

    if not every.any():
        return None
    low = columns.task_means(np.where(columns.scored, columns.passed, 0.0), every)
    high = columns.task_means(np.where(columns.scored, columns.passed, 1.0), every)
    have = ~np.isnan(low)
    w = np.ones(int(have.sum())) if weights is None else weights[have]
    if w.sum() == 0:
        return None
    return float(np.average(low[have], weights=w)), float(np.average(high[have], weights=w))


def _notes(
    columns: Columns,
    every: Any,
    n: Ints,
    have: Any,
    seen: Any,
    ks: tuple[int, ...],
    at: Mapping[int, Estimate],
    options: _Options,
    pass_1: Estimate,
) -> list[str]:
    import numpy as np

    notes = []
    if not columns.read:
        return ["there are no rows: nothing is estimated"]
    notes += columns.left_out()
    missing = sum(columns.not_scored.values())
    if missing:
        low, high = _bounds(columns, every, None) or (0.0, 1.0)
        notes.append(f"pass@1 would lie in {low:.2f}..{high:.2f} if all rows that are not scored failed or all passed")
    unscored = int((seen & ~have).sum())
    if unscored:
        names = few([columns.tasks[i] for i in np.flatnonzero(seen & ~have)])
        what = "task has" if unscored == 1 else "tasks have"
        notes.append(f"{unscored} {what} no scored rollout and {'is' if unscored == 1 else 'are'} left out: {names}")
    cut = int(columns.truncated[every].sum())
    if cut:
        share = cut / len(columns.code)
        failing = int((columns.truncated & (columns.passed == 0)).sum())
        notes.append(
            f"{cut} of {len(columns.code)} rows ({share:.0%}) were cut before they ended (length or step limit), "
            f"{failing} of them fail: a cut reply is no evidence of a wrong answer"
        )
    failed = int(columns.failed[every].sum())
    if failed:
        notes.append(f"{failed} of {len(columns.code)} runs failed before they ended")
    for size in ks:
        short = int((n[have] < size).sum())
        if short and at[size].value is None:
            notes.append(f"pass^{size} and pass@{size} do not exist: no task has {size} scored rollouts")
        elif short:
            names = few([columns.tasks[i] for i in np.flatnonzero(have & (n < size))])
            notes.append(
                f"pass^{size} and pass@{size} rest on {at[size].tasks} of {int(have.sum())} tasks: "
                f"{short} {'has' if short == 1 else 'have'} fewer than {size} scored rollouts ({names})"
            )
    if pass_1.value is not None and pass_1.units == 1:
        unit = "task" if pass_1.tasks == 1 else "cluster"
        notes.append(f"one {unit}: nothing is known about other {unit}s, so the interval is all of [0, 1]")
    if options.kind != pass_1.method and pass_1.value is not None:
        notes.append(f"no task differs from another: the {options.kind} interval has no width, wilson is shown")
    return notes
