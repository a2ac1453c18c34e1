"""Does it hold: coverage of the intervals, false alarms and power of the comparison, by simulation with a known truth.

Runs the same code that `pass_at` and `compare` run, on simulated tasks whose true rate is known, at the sizes that are
accepted, the smallest included.

Example:
    >>> report = self_check(tasks=(6, 20), trials=200, draws=399)
    >>> [line.tasks for line in report.lines], report.ok
    ([6, 20], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.defaults import CONFIDENCE, SEED, SELF_CHECK_DRAWS, SELF_CHECK_TRIALS
from whileai_measure.intervals import check_confidence, effective_wilson
from whileai_measure.power import eval_power
from whileai_measure.signflip import least_tasks, sign_flips

__all__ = ["CheckLine", "SelfCheck", "self_check"]


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One size.

    Attributes:
        tasks: Tasks per evaluation.
        k: Rollouts per task.
        coverage: Share of intervals of pass@1 that hold the truth.
        width: Mean width of these intervals.
        false_alarms: Share of comparisons of a policy with itself that find a difference; `None` where too small.
        power: Share of comparisons that find the effect; `None` where too small.
        planned: Power that `eval_power` promises for the same model.
        trials: Simulated evaluations.
    """

    tasks: int
    k: int
    coverage: float
    width: float
    false_alarms: float | None
    power: float | None
    planned: float | None
    trials: int


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The table of a self-check.

    Attributes:
        lines: One per size.
        confidence: Level of intervals; 1 minus the size of the test.
        effect: True difference behind `power`.
        ok: Coverage and false alarms are what they claim, within 3 standard errors of the simulation.
    """

    lines: tuple[CheckLine, ...]
    confidence: float
    effect: float
    ok: bool

    def __str__(self) -> str:
        names = f"{'tasks':>6} {'k':>3} {'coverage':>9} {'width':>6}"
        head = f"{names} {'false alarms':>13} {f'power {self.effect:+.2f}':>12} {'planned':>8}"
        rows = [
            f"{x.tasks:>6} {x.k:>3} {x.coverage:>9.3f} {x.width:>6.3f} "
            f"{_cell(x.false_alarms):>13} {_cell(x.power):>12} {_cell(x.planned):>8}"
            for x in self.lines
        ]
        word = "as claimed" if self.ok else "NOT as claimed"
        trials = self.lines[0].trials if self.lines else 0
        claim = f"coverage {self.confidence:.2f}, false alarms at most {1 - self.confidence:.2f}"
        tail = f"claimed: {claim}; measured: {word} ({trials} trials a line)"
        return "\n".join([head, *rows, tail])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        lines = [{name: getattr(x, name) for name in x.__slots__} for x in self.lines]
        return {"lines": lines, "confidence": self.confidence, "effect": self.effect, "ok": self.ok}

    def _repr_html_(self) -> str:
        from whileai_measure.plots import report_html, table

        header = ["tasks", "k", "coverage", "width", "false alarms", f"power {self.effect:+.2f}", "planned"]
        cells = [
            [
                x.tasks,
                x.k,
                f"{x.coverage:.3f}",
                f"{x.width:.3f}",
                _cell(x.false_alarms),
                _cell(x.power),
                _cell(x.planned),
            ]
            for x in self.lines
        ]
        return report_html([str(self).rsplit("\n", 1)[1]], table(header, cells))


def _cell(value: float | None) -> str:
    return "too few" if value is None else f"{value:.3f}"


def self_check(
    *,
    tasks: Sequence[int] = (3, 6, 10, 30, 100),
    k: int = 4,
    difficulty: tuple[float, float] = (2.0, 2.0),
    effect: float = 0.1,
    confidence: float = CONFIDENCE.value,
    trials: int = SELF_CHECK_TRIALS.value,
    draws: int = SELF_CHECK_DRAWS.value,
    seed: int = SEED.value,
) -> SelfCheck:
    """Measure coverage, false alarms and power at the sizes of interest.

    Args:
        tasks: Sizes.
        k: Rollouts per task and side.
        difficulty: Parameters of the beta distribution of a task's pass rate.
        effect: True difference for the power: half of the tasks gain twice it, as far as their rate allows.
        confidence: Level.
        trials: Simulated evaluations per size.
        draws: Sign patterns of each comparison.
        seed: Seed of the simulation.

    Raises:
        ParameterError: A size or the difficulty is out of range.

    Source: simulation; the truth is the mean of the beta distribution.
    """
    import numpy as np

    check_confidence(confidence)
    a, b = difficulty
    if a <= 0 or b <= 0:
        raise ParameterError(f"difficulty needs two positive numbers, not {difficulty!r}", fix="pass difficulty=(2, 2)")
    for size in (*tasks, k, trials):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ParameterError(f"sizes must be whole numbers from 1, not {size!r}")
    truth, alpha = a / (a + b), 1.0 - confidence
    lines = []
    for size in tasks:
        rng = np.random.default_rng([seed, size, k])
        p = rng.beta(a, b, (trials, size))
        x = rng.binomial(k, p) / k
        spread = x.var(axis=1, ddof=1) / size if size > 1 else np.zeros(trials)
        low, high, _ = effective_wilson(x.mean(axis=1), spread, size, ceiling=size * k, confidence=confidence)
        coverage = float(np.mean((low <= truth) & (truth <= high)))
        alarms = power = planned = None
        if size >= least_tasks(confidence):
            again = rng.binomial(k, p) / k
            gain = np.where(rng.random((trials, size)) < 0.5, 2 * effect, 0.0)
            moved = np.clip(p + gain, 0.0, 1.0)
            better = rng.binomial(k, moved) / k
            alarms = _rejected(again - x, alpha, draws, seed)
            power = _rejected(better - x, alpha, draws, seed)
            true_effect = float((moved - p).mean())
            spread_of_task = float((better - x).std())
            planned = eval_power(size, true_effect, spread=spread_of_task, confidence=confidence).power
        lines.append(CheckLine(size, k, coverage, float((high - low).mean()), alarms, power, planned, trials))
    slack = 3.0 * float(np.sqrt(confidence * alpha / trials))
    ok = all(
        x.coverage >= confidence - 0.02 - slack and (x.false_alarms is None or x.false_alarms <= alpha + slack)
        for x in lines
    )
    return SelfCheck(tuple(lines), confidence, effect, ok)


def _rejected(deltas: Any, alpha: float, draws: int, seed: int) -> float:
    """Return the share of rows of `deltas`, shape (trials, tasks), whose sign-flip test rejects."""
    flips = sign_flips(deltas.T, draws=draws, exact_tasks=10, seed=seed)
    return sum(f.p_value <= alpha for f in flips) / len(flips)
