"""The tests of a comparison: pairing, the sign-flip test and interval per metric, Holm's levels, the unpaired case.

Works on columns and knows no verdict; `verdict` says what the numbers mean.

Example:
    >>> from whileai_measure.columns import extract
    >>> sides = Sides(extract([{"task_id": "a", "reward": 1}]), extract([{"task_id": "b", "reward": 1}]))
    >>> sides.only_a, sides.only_b
    (('a',), ('b',))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whileai_measure.changes import Change
from whileai_measure.columns import Columns
from whileai_measure.intervals import mean_interval, t_quantile
from whileai_measure.signflip import SignFlip, sign_flips

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["MetricTest", "Sides", "levels_and_p", "metric_names", "paired_tests", "unpaired_tests"]


class Sides:
    """Both sides and which of their tasks pair."""

    def __init__(self, a: Columns, b: Columns) -> None:
        import numpy as np

        self.a, self.b = a, b
        place = {task: i for i, task in enumerate(b.tasks)}
        pairs = [(i, place[task]) for i, task in enumerate(a.tasks) if task in place]
        self.in_a = np.array([i for i, _ in pairs], dtype=np.int64)
        self.in_b = np.array([j for _, j in pairs], dtype=np.int64)
        both = {a.tasks[i] for i in self.in_a.tolist()}
        self.only_a = tuple(t for t in a.tasks if t not in both)
        self.only_b = tuple(t for t in b.tasks if t not in both)


def metric_names(a: Columns, b: Columns, asked: Sequence[str | None]) -> list[str]:
    """Return the metrics of a comparison: pass@1, mean reward where it says more, and every shared marker.

    Args:
        a: Columns before.
        b: Columns after.
        asked: Metrics that the caller named; mean reward is there if it is among them.
    """
    import numpy as np

    names = ["pass@1"]
    rewards = [side.reward[side.scored] for side in (a, b)]
    if "mean reward" in asked or any(np.any((r != 0) & (r != 1)) for r in rewards):
        names.append("mean reward")
    return names + [name for name in a.markers if name in b.markers and name not in names]


def _column(side: Columns, name: str) -> Floats:
    return side.passed if name == "pass@1" else side.reward if name == "mean reward" else side.markers[name]


@dataclass(frozen=True)
class MetricTest:
    """One metric before its level is known."""

    metric: str
    before: Floats
    after: Floats
    flip: SignFlip | None
    units: Floats
    single: bool = False
    rollouts: float = 1.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value."""
        if self.flip is not None:
            return self.flip.p_value
        return _mover_p(self.before, self.after) if len(self.before) and len(self.after) else 1.0

    def finish(self, confidence: float, adjusted: float, pseudo: float, alpha: float) -> Change:
        """Return the change at the level of its interval, without a verdict yet.

        Args:
            confidence: Level of the interval.
            adjusted: Adjusted p-value.
            pseudo: Pseudo differences in the least width of the interval.
            alpha: Error rate of the statement about equivalence.
        """
        if not len(self.before) or not len(self.after):
            text = f"{self.metric} is not there on both sides of any task"
            return Change(self.metric, 0, *(None,) * 7, confidence, "inconclusive", text)
        before, after = float(self.before.mean()), float(self.after.mean())
        if self.flip is None:
            low, high = _mover(self.before, self.after, confidence)
            low90, high90 = _mover(self.before, self.after, 1 - 2 * alpha)
            tasks, method = len(self.before) + len(self.after), "unpaired (difference of two intervals)"
        else:
            low, high = _widened(self.flip, self.units, confidence, pseudo, self.rollouts)
            low90, high90 = _widened(self.flip, self.units, 1 - 2 * alpha, pseudo, self.rollouts)
            tasks = len(self.before)
            method = "sign-flip, exact" if self.flip.exact else f"sign-flip, {self.flip.patterns - 1} drawn"
        bound = max(abs(low90), abs(high90))
        return Change(
            metric=self.metric,
            tasks=tasks,
            before=before,
            after=after,
            delta=after - before,
            low=low,
            high=high,
            p_value=self.p_value,
            p_adjusted=adjusted,
            confidence=confidence,
            verdict="",
            sentence="",
            no_larger_than=bound if bound < 1.0 else None,
            method=method,
            mcnemar=_mcnemar(self.before, self.after) if self.single else None,
            deltas=tuple((self.after - self.before).tolist()) if self.flip is not None else (),
        )


def paired_tests(
    sides: Sides, names: Sequence[str], clustered: bool, draws: int, exact_tasks: int, seed: int
) -> dict[str, MetricTest]:
    """Return the sign-flip test of each metric over the tasks that have it on both sides.

    Args:
        sides: Both sides.
        names: Metrics.
        clustered: The columns carry a label `cluster`; its tasks flip together.
        draws: Sign patterns drawn where they are not enumerated.
        exact_tasks: Up to this many units all patterns are enumerated.
        seed: Seed of the draws.
    """
    import numpy as np

    out: dict[str, MetricTest] = {}
    groups: dict[bytes, list[str]] = {}
    columns: dict[str, tuple[Floats, Floats, Any]] = {}
    cluster = _cluster_codes(sides) if clustered else None
    for name in names:
        x = sides.a.task_means(_column(sides.a, name))[sides.in_a]
        y = sides.b.task_means(_column(sides.b, name))[sides.in_b]
        both = ~np.isnan(x) & ~np.isnan(y)
        columns[name] = (x[both], y[both], both)
        groups.setdefault(np.packbits(both).tobytes(), []).append(name)
    for members in groups.values():  # metrics that rest on the same tasks share their sign patterns
        both = columns[members[0]][2]
        deltas = np.column_stack([columns[m][1] - columns[m][0] for m in members])
        if cluster is not None:
            _, code = np.unique(cluster[both], return_inverse=True)
            size = np.bincount(code)
            # The mean over tasks is a weighted mean over clusters: scaled sums keep it, and flip as one unit.
            deltas = np.column_stack([np.bincount(code, weights=d) for d in deltas.T]) * (
                len(size) / max(size.sum(), 1)
            )
        flips = sign_flips(deltas, draws=draws, exact_tasks=exact_tasks, seed=seed)
        rollouts = _usual_rollouts(sides, both)
        for name, flip, units in zip(members, flips, deltas.T, strict=True):
            single = name == "pass@1" and cluster is None and _one_each(sides, both)
            out[name] = MetricTest(name, columns[name][0], columns[name][1], flip, units, single, rollouts)
    return {name: out[name] for name in names}


def _cluster_codes(sides: Sides) -> Any:
    import numpy as np

    labels = sides.a.task_labels("cluster", "cluster")
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(labels[i], len(codes)) for i in sides.in_a.tolist()], dtype=np.int64)


def _usual_rollouts(sides: Sides, both: Any) -> float:
    """Return the harmonic mean of scored rollouts per task and side, at least 1."""
    import numpy as np

    n = np.concatenate([sides.a.counts()[0][sides.in_a][both], sides.b.counts()[0][sides.in_b][both]])
    return float(len(n) / np.sum(1.0 / np.maximum(n, 1))) if len(n) else 1.0


def _one_each(sides: Sides, both: Any) -> bool:
    n_a, n_b = sides.a.counts()[0][sides.in_a][both], sides.b.counts()[0][sides.in_b][both]
    return bool(len(n_a) and (n_a == 1).all() and (n_b == 1).all())


def _mcnemar(before: Floats, after: Floats) -> dict[str, float]:
    """Return discordant counts with McNemar's exact and mid p-value.

    Source: McNemar 1947; Fagerland, Lydersen and Laake 2013 (mid p).
    """
    from scipy.stats import binom

    lost, won = int(((before == 1) & (after == 0)).sum()), int(((before == 0) & (after == 1)).sum())
    n, k = lost + won, min(lost, won)
    exact = min(1.0, 2.0 * float(binom.cdf(k, n, 0.5)))
    mid = 1.0 if lost == won else 2.0 * float(binom.cdf(k, n, 0.5)) - float(binom.pmf(k, n, 0.5))
    return {"lost": lost, "won": won, "p_exact": exact, "p_mid": mid}


def _widened(flip: SignFlip, units: Floats, confidence: float, pseudo: float, rollouts: float) -> tuple[float, float]:
    """Return the inverted test, made at least as wide as the adjusted interval of Agresti and Min.

    A shift of all differences is a strong model: where most tasks agree exactly, inverting the test alone would
    claim to know the mean far too well. With several rollouts per task the squared pseudo difference is smaller
    by their number, as the variance of a task's difference is. A bound never moves across zero, so that
    interval and test keep agreeing.
    """
    import numpy as np

    low, high = flip.interval(confidence)
    n = len(units)
    if n > 1:
        size = n + 2.0 * pseudo
        mean = float(units.sum()) / size
        variance = (float(np.square(units).sum()) + pseudo / rollouts) / size - mean * mean
        half = t_quantile(n, confidence) * np.sqrt(max(variance, 0.0) / size)
        if not (low > 0 >= mean - half):
            low = min(low, mean - half)
        if not (high < 0 <= mean + half):
            high = max(high, mean + half)
    return float(max(low, -1.0)), float(min(high, 1.0))


def unpaired_tests(a: Columns, b: Columns, names: Sequence[str]) -> dict[str, MetricTest]:
    """Return the comparison of means of each metric, over all tasks of either side."""
    import numpy as np

    out = {}
    for name in names:
        x, y = a.task_means(_column(a, name)), b.task_means(_column(b, name))
        out[name] = MetricTest(name, x[~np.isnan(x)], y[~np.isnan(y)], None, np.zeros(0))
    return out


def _mover(before: Floats, after: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of a difference of two independent means from their own intervals.

    Source: Newcombe 1998, method 10, with the interval of `intervals` for each side.
    """
    x, y = mean_interval(before, confidence=confidence), mean_interval(after, confidence=confidence)
    down_x, up_x = x.arms
    down_y, up_y = y.arms
    delta = float(after.mean() - before.mean())
    low, high = delta - (down_y**2 + up_x**2) ** 0.5, delta + (up_y**2 + down_x**2) ** 0.5
    return max(low, -1.0), min(high, 1.0)


def _mover_p(before: Floats, after: Floats) -> float:
    """Return 1 minus the largest level whose interval excludes zero, by bisection."""
    inside, outside = 1.0 - 1e-9, 0.0
    for _ in range(40):
        middle = (inside + outside) / 2
        low, high = _mover(before, after, middle) if middle > 0 else (0.0, 0.0)
        if low > 0 or high < 0:
            outside = middle
        else:
            inside = middle
    return 1.0 - outside


def levels_and_p(
    tests: Mapping[str, MetricTest], confidence: float, adjust: str | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the level of each interval and the (adjusted) p-values, so that the two agree.

    Source: Holm 1979. A rejected hypothesis of rank j has the level 1 - alpha / (m - j + 1); those that are kept share
    the level of the first one that is kept.
    """
    p = {name: test.p_value for name, test in tests.items()}
    if adjust is None:
        return dict.fromkeys(p, confidence), p
    order = sorted(p, key=lambda name: p[name])
    alpha, m = 1.0 - confidence, len(order)
    levels, adjusted, highest, stopped = {}, {}, 0.0, None
    for j, name in enumerate(order):
        highest = max(highest, min(1.0, p[name] * (m - j)))
        adjusted[name] = highest
        if stopped is None and highest > alpha:
            stopped = alpha / (m - j)
        levels[name] = 1.0 - (stopped if stopped is not None else alpha / (m - j))
    return levels, adjusted
