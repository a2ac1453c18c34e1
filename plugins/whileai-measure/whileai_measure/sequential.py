"""Stopping an evaluation early without paying for the peeking: a confidence sequence for a bounded mean.

An ordinary interval that is looked at after every task misses the truth far more often than it says. A confidence
sequence holds at all times at once, so an evaluation may stop as soon as it answers the question. This one bets
against each candidate mean on a grid; a candidate whose capital reaches 1/alpha is out for ever.

The unit is the task: feed one value per task (the mean over its rollouts), in an order that does not depend on results.

Example:
    >>> rule = StopWhen(above=0.5)
    >>> for _ in range(40):
    ...     reason = rule.update(1.0)
    ...     if reason: break
    >>> rule.tasks, reason
    (10, 'above 0.5: 1.00 [0.53..1.00] after 10 tasks')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.defaults import CONFIDENCE, CS_GRID, CS_TRUNCATION
from whileai_measure.intervals import check_confidence

__all__ = ["ConfidenceSequence", "StopWhen", "stop_when"]


class ConfidenceSequence:
    """Betting confidence sequence for the mean of values in [0, 1].

    Args:
        confidence: Chance that the truth is inside at every time.
        grid: Candidate means.
        truncation: Largest share of the capital bet in one step.

    Attributes:
        n: Values seen.
        mean: Mean of them, `None` before the first.
        low: Lower bound, never falls.
        high: Upper bound, never rises.

    Source: Waudby-Smith and Ramdas 2024, hedged capital process with predictable plug-in bets (Theorem 3, equations
    23 to 26).
    """

    def __init__(
        self,
        confidence: float = CONFIDENCE.value,
        *,
        grid: int = CS_GRID.value,
        truncation: float = CS_TRUNCATION.value,
    ) -> None:
        import numpy as np

        self.confidence = check_confidence(confidence)
        if not 0.0 < truncation < 1.0:
            raise ParameterError(f"truncation must lie between 0 and 1, not {truncation!r}")
        self._alpha = 1.0 - confidence
        self._step = 1.0 / grid
        self._m = np.linspace(0.0, 1.0, grid + 1)
        with np.errstate(divide="ignore"):
            self._most_up, self._most_down = truncation / self._m, truncation / (1.0 - self._m)
        self._up, self._down = np.zeros(grid + 1), np.zeros(grid + 1)
        self._inside = np.ones(grid + 1, dtype=bool)
        self.n, self._sum, self._squares = 0, 0.0, 0.0
        self.low, self.high = 0.0, 1.0

    @property
    def mean(self) -> float | None:
        """Mean of the values seen."""
        return self._sum / self.n if self.n else None

    def update(self, value: float) -> tuple[float, float]:
        """Add one value and return the bounds.

        Args:
            value: In [0, 1].

        Raises:
            ParameterError: The value is not a number in [0, 1].
        """
        import math

        import numpy as np

        if isinstance(value, bool | str) or not 0.0 <= float(value) <= 1.0:
            raise ParameterError(
                f"a value must be a number in [0, 1], not {value!r}", fix="leave out what is not scored"
            )
        x = float(value)
        # The bet uses the values before this one only: that is what makes every time valid.
        variance = (0.25 + self._squares) / (self.n + 1)
        t = self.n + 1
        bet = math.sqrt(2.0 * math.log(2.0 / self._alpha) / (variance * t * math.log(1.0 + t)))
        gain = x - self._m
        self._up += np.log1p(np.minimum(bet, self._most_up) * gain)
        self._down += np.log1p(np.minimum(bet, self._most_down) * -gain)
        self.n, self._sum = t, self._sum + x
        centre = (0.5 + self._sum) / (t + 1)
        self._squares += (x - centre) ** 2
        # Half of the capital bets on a higher mean, half on a lower one.
        self._inside &= np.maximum(self._up, self._down) + math.log(0.5) < math.log(1.0 / self._alpha)
        kept = np.flatnonzero(self._inside)
        if len(kept):  # one grid step outwards: the truth lies between grid points
            self.low = max(self.low, float(self._m[kept[0]]) - self._step)
            self.high = min(self.high, float(self._m[kept[-1]]) + self._step)
        return self.low, self.high

    def __str__(self) -> str:
        mean = "n/a" if self.mean is None else f"{self.mean:.2f}"
        return f"{mean} [{self.low:.2f}..{self.high:.2f}] after {self.n} tasks"


class StopWhen:
    """A rule that says when an evaluation has answered its question.

    Give one or more of the conditions; the first that holds stops. Call it with the values of tasks one by one
    (`update`), or with all rows so far (`rule(rows)`), as an engine does.

    Args:
        above: Stop once the mean is above this with confidence.
        below: Stop once the mean is below this with confidence.
        width: Stop once the interval is at most this wide.
        repeats: Rollouts that complete a task, when called with rows.
        confidence: Chance that the interval holds the truth at all times, and so at the time of stopping.
        threshold: Reward from which a rollout passes, instead of the row's own.
        mean_reward: Follow the mean reward instead of the pass rate.

    Raises:
        ParameterError: No condition, or one out of range.
    """

    def __init__(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        width: float | None = None,
        repeats: int = 1,
        confidence: float = CONFIDENCE.value,
        threshold: float | None = None,
        mean_reward: bool = False,
    ) -> None:
        if above is None and below is None and width is None:
            raise ParameterError("stop_when needs a condition", fix="pass above=, below= or width=")
        for name, value in (("above", above), ("below", below), ("width", width)):
            if value is not None and not 0.0 < value < 1.0:
                raise ParameterError(f"{name} must lie between 0 and 1, not {value!r}")
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise ParameterError(f"repeats must be a whole number from 1, not {repeats!r}")
        self.above, self.below, self.width, self.repeats = above, below, width, repeats
        self.threshold, self.mean_reward = threshold, mean_reward
        self.sequence = ConfidenceSequence(confidence)
        self.unscored = 0
        self.notes: tuple[str, ...] = ()
        self._seen: set[str] = set()

    @property
    def tasks(self) -> int:
        """Tasks that the bounds rest on."""
        return self.sequence.n

    def update(self, value: float) -> str | None:
        """Add the value of one task; return the reason to stop, or `None`."""
        self.sequence.update(value)
        return self.reason()

    def reason(self) -> str | None:
        """Return the reason to stop, or `None`."""
        s = self.sequence
        if self.above is not None and s.low > self.above:
            return f"above {self.above:g}: {s}"
        if self.below is not None and s.high < self.below:
            return f"below {self.below:g}: {s}"
        if self.width is not None and s.high - s.low <= self.width:
            return f"no wider than {self.width:g}: {s}"
        return None

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Take in the tasks that are complete and return the reason to stop, or `None`.

        Tasks are taken in order of first appearance and only up to the first one that is not complete: the order in
        which tasks finish depends on their results (long failures finish late), and would bias the mean.

        Args:
            rows: All rows so far.

        Raises:
            RowError: A row cannot be read.
        """
        import numpy as np

        from whileai_measure.columns import extract

        table = extract(rows if isinstance(rows, list | tuple) else list(rows), threshold=self.threshold)
        self.notes = tuple(table.left_out())
        count = np.bincount(table.code, minlength=len(table.tasks))
        means = table.task_means(table.reward if self.mean_reward else table.passed)
        for task, rollouts, mean in zip(table.tasks, count.tolist(), means.tolist(), strict=True):
            if task in self._seen:
                continue
            if rollouts < self.repeats:
                break
            self._seen.add(task)
            if mean != mean:
                self.unscored += 1
                continue
            reason = self.update(mean)
            if reason:
                return reason
        return self.reason() if self.tasks else None


def stop_when(**conditions: Any) -> StopWhen:
    """Return a stopping rule; see `StopWhen` for the conditions.

    Raises:
        ParameterError: No condition, an unknown one, or one out of range.
    """
    import inspect

    from whileai_kernel.errors import unknown_name

    known = list(inspect.signature(StopWhen.__init__).parameters)[1:]
    for name in conditions:
        if name not in known:
            unknown_name("condition", name, known)
    return StopWhen(**conditions)
