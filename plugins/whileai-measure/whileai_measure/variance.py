"""How much a metric moves when nothing changed: re-runs, and the band that a difference must leave.

Three sources are kept apart: which tasks are in the set (the intervals of `pass_at`), sampling of rollouts within
tasks, and everything else that differs between two runs of one policy (server, batching, simulator, seeds). The first
does not show between re-runs on the same tasks; a paired comparison sees the second; only re-runs show the third.

Example:
    >>> band = noise_band([0.50, 0.53, 0.47, 0.52])
    >>> print(band)
    differences up to 0.119 are within noise (std 0.026 of 4 runs)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.columns import RowsLike, extract
from whileai_measure.defaults import CONFIDENCE
from whileai_measure.intervals import check_confidence, t_quantile

__all__ = ["EvalVariance", "NoiseBand", "eval_variance", "noise_band"]


@dataclass(frozen=True, slots=True)
class NoiseBand:
    """The difference of two runs that re-runs alone explain.

    Attributes:
        band: Differences up to this size are within noise.
        std: Standard deviation of the metric between runs.
        runs: Runs that it was estimated from; `None` where it was given as known.
        confidence: Level.
    """

    band: float
    std: float
    runs: int | None
    confidence: float

    def __str__(self) -> str:
        basis = "taken as known" if self.runs is None else f"of {self.runs} runs"
        return f"differences up to {self.band:.3f} are within noise (std {self.std:.3f} {basis})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class EvalVariance:
    """Variance of pass@1 between runs of one policy on the same tasks.

    Attributes:
        means: pass@1 of each run, over the tasks that all runs share.
        tasks: Shared tasks.
        run_std: Standard deviation between runs: pass it to `compare(run_std=..., run_std_runs=...)`.
        low: Lower bound of `run_std` (chi-square).
        high: Upper bound.
        rollout_std: What sampling of rollouts within tasks alone explains; `None` with one rollout per task and run.
        excess_std: What is left: everything that differs between runs beyond sampling; 0 where nothing is left.
        confidence: Level of the bounds.
        notes: What was left out.
    """

    means: tuple[float, ...]
    tasks: int
    run_std: float
    low: float
    high: float
    rollout_std: float | None
    excess_std: float | None
    confidence: float
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.means)

    def __str__(self) -> str:
        rollouts = "n/a" if self.rollout_std is None else f"{self.rollout_std:.3f}"
        excess = "n/a" if self.excess_std is None else f"{self.excess_std:.3f}"
        text = (
            f"std between runs {self.run_std:.3f} [{self.low:.3f}..{self.high:.3f}], sampling of rollouts {rollouts}, "
            f"rest {excess} ({self.runs} runs, {self.tasks} tasks)"
        )
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return out | {"means": list(self.means), "notes": list(self.notes), "runs": self.runs}


def eval_variance(
    *runs: RowsLike, threshold: float | None = None, confidence: float = CONFIDENCE.value
) -> EvalVariance:
    """Return how much pass@1 moves between runs of one policy on the same tasks.

    Args:
        runs: Two runs or more, each as rows, an iterator, a path or a table.
        threshold: Reward from which a rollout passes, instead of the row's own.
        confidence: Level of the bounds.

    Raises:
        ParameterError: Fewer than two runs, or no task that all of them have.

    Source: chi-square interval of a standard deviation; the variance of a mean of binomial counts, unbiased as
    p (1 - p) / (n - 1) per task.
    """
    import numpy as np
    from scipy.special import chdtri

    check_confidence(confidence)
    if len(runs) < 2:
        raise ParameterError("eval_variance needs two runs or more", fix="evaluate the same policy again and pass both")
    tables = [extract(run, threshold=threshold) for run in runs]
    others = [set(table.tasks) for table in tables[1:]]
    shared = [t for t in tables[0].tasks if all(t in other for other in others)]
    counts = []
    for table in tables:
        place = {t: i for i, t in enumerate(table.tasks)}
        at = np.array([place[t] for t in shared], dtype=np.int64)
        n, c, _ = table.counts()
        counts.append((n[at], c[at]))
    have = np.logical_and.reduce([n > 0 for n, _ in counts]) if shared else np.zeros(0, dtype=bool)
    if not have.any():
        raise ParameterError("no task is scored in every run", why="runs are compared on the same tasks")
    shares = [c[have] / n[have] for n, c in counts]
    means = np.array([s.mean() for s in shares])
    df, tail = len(runs) - 1, (1 - confidence) / 2
    std = float(means.std(ddof=1))
    low, high = (std * float(np.sqrt(df / chdtri(df, p))) for p in (tail, 1 - tail))
    within = [s * (1 - s) / np.maximum(n[have] - 1, 1) for s, (n, _) in zip(shares, counts, strict=True)]
    rollout = excess = None
    if all((n[have] > 1).all() for n, _ in counts):
        variance = float(np.mean([w.sum() / len(w) ** 2 for w in within]))
        rollout, excess = variance**0.5, max(0.0, std**2 - variance) ** 0.5
    notes = [f"run {i + 1}: {note}" for i, table in enumerate(tables) for note in table.left_out()]
    dropped = len(set().union(*(t.tasks for t in tables))) - int(have.sum())
    if dropped:
        notes.append(f"{dropped} tasks are not scored in every run and left out")
    return EvalVariance(
        tuple(means.tolist()), int(have.sum()), std, low, high, rollout, excess, confidence, tuple(notes)
    )


def noise_band(
    std: float | Sequence[float] | EvalVariance, runs: int | None = None, *, confidence: float = CONFIDENCE.value
) -> NoiseBand:
    """Return the difference of two runs below which re-runs alone explain it: t * std * sqrt(2).

    Args:
        std: Standard deviation between runs, the metric of each run, or the result of `eval_variance`.
        runs: Runs that a given standard deviation was estimated from; without it, it is taken as known.
        confidence: Level.

    Raises:
        ParameterError: Fewer than two runs, or a negative standard deviation.
    """
    import math

    import numpy as np
    from scipy.special import ndtri

    check_confidence(confidence)
    if isinstance(std, EvalVariance):
        value, runs = std.run_std, std.runs
    elif isinstance(std, list | tuple):
        if len(std) < 2:
            raise ParameterError("a noise band needs two runs or more", fix="pass the metric of each run")
        value, runs = float(np.std(np.asarray(std, dtype=np.float64), ddof=1)), len(std)
    elif isinstance(std, int | float) and not isinstance(std, bool):
        value = float(std)
    else:
        raise ParameterError(f"std must be a number or one number per run, not {type(std).__name__}")
    if not math.isfinite(value) or value < 0:
        raise ParameterError(f"a standard deviation is a finite number, at least 0, not {value!r}")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 2):
        raise ParameterError(
            f"a standard deviation needs two runs or more, not {runs!r}", fix="pass the number of runs"
        )
    quantile = float(ndtri(0.5 + confidence / 2)) if runs is None else float(t_quantile(runs, confidence))
    return NoiseBand(quantile * value * 2**0.5, value, runs, confidence)
