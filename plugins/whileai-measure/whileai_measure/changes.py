"""What `compare` returns: the change of each metric, and the whole comparison with its verdict.

The numbers come from `paired`, the words from `verdict`; nothing is computed here.

Example:
    >>> VERDICTS[0], Change("pass@1", 0, *(None,) * 7, 0.95, "inconclusive", "no tasks").to_dict()["verdict"]
    ('improved', 'inconclusive')
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from whileai_measure.columns import safe
from whileai_measure.intervals import shown_digits

__all__ = ["ALLOWED", "VERDICTS", "Change", "Comparison"]

VERDICTS = ("improved", "regressed", "no difference detected", "within noise", "inconclusive", "not comparable")
"""The words of a verdict."""

ALLOWED = ("scoring", "prompts", "truncation", "graded", "shared")
"""Reasons for "not comparable" that a caller may wave through with `allow=`."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one metric.

    Attributes:
        metric: `pass@1`, `mean reward`, or the name of a marker.
        tasks: Paired tasks (both sides together where unpaired).
        before: Mean over these tasks before.
        after: Mean over these tasks after.
        delta: after - before.
        low: Lower bound of delta.
        high: Upper bound of delta.
        p_value: Two-sided p-value, before adjustment.
        p_adjusted: After Holm's adjustment; the same as `p_value` without it.
        confidence: Level of the interval; above the level asked for where the adjustment asks for more.
        verdict: One of `VERDICTS`.
        sentence: Why.
        no_larger_than: Size of a difference that the data rule out (two one-sided tests), or `None`.
        method: The test.
        mcnemar: Discordant counts and McNemar's exact and mid p, where there is one rollout per task.
        deltas: Difference of each paired task, for plots.
    """

    metric: str
    tasks: int
    before: float | None
    after: float | None
    delta: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    confidence: float
    verdict: str
    sentence: str
    no_larger_than: float | None = None
    method: str = "sign-flip"
    mcnemar: dict[str, float] | None = None
    deltas: tuple[float, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        if (
            self.delta is None
            or self.before is None
            or self.low is None
            or self.high is None
            or self.p_adjusted is None
        ):
            return f"{self.metric} n/a: {self.sentence}"
        kind = "tasks" if "unpaired" in self.method else "paired tasks"
        n = shown_digits(self.high - self.low, self.low, self.high)
        bounds = f"[{self.low:+.{n}f}..{self.high:+.{n}f}]"
        size = f"{self.before:.{n}f} -> {self.after:.{n}f}, {self.delta:+.{n}f} {bounds}"
        return f"{self.metric} {size}, p={self.p_adjusted:.2g} ({self.tasks} {kind})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values, without the differences of single tasks."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "deltas"}


@dataclass(frozen=True)
class Comparison:
    """Before against after.

    Attributes:
        verdict: Verdict on the target, one of `VERDICTS`.
        sentence: Why.
        target: Metric that the verdict is about.
        changes: Every metric by name.
        paired: Tasks were paired.
        shared: Tasks on both sides.
        unpaired_before: Task ids that only the first side has.
        unpaired_after: Task ids that only the second side has.
        regressions: Metrics of `must_not_regress` (and the target) that regressed.
        over_optimised: The proxy rose and the target did not.
        family_error: Largest chance of one false alarm or more over all metrics tested.
        reasons: Differences between the sides that could explain the change.
        notes: What a reader must know.
        floors: Noise floors that were applied, by name.
    """

    verdict: str
    sentence: str
    target: str
    changes: dict[str, Change]
    paired: bool
    shared: int
    unpaired_before: tuple[str, ...]
    unpaired_after: tuple[str, ...]
    regressions: tuple[str, ...]
    over_optimised: bool
    family_error: float
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floors: dict[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 without a regression, 1 with one, 2 where the sides are not comparable."""
        if self.verdict == "not comparable":
            return 2
        return 1 if self.regressions else 0

    @property
    def change(self) -> Change | None:
        """The change of the target, `None` where nothing could be computed."""
        return self.changes.get(self.target)

    def __str__(self) -> str:
        target = self.change
        lines = [f"{self.verdict}: {target if target is not None else self.sentence}"]
        if target is not None and self.verdict not in ("improved", "regressed"):
            lines.append(f"  {self.sentence}")
        width = max((len(name) for name in self.changes), default=0)
        for name, change in self.changes.items():
            if name != self.target:
                lines.append(f"  {change.verdict:<22} {name:<{width}} {str(change).removeprefix(name + ' ')}")
        if self.regressions:
            lines.append(f"  regressed: {', '.join(safe(name) for name in self.regressions)}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        out = {name: value for name, value in self.__dict__.items() if name != "changes"}
        out = {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}
        out["changes"] = {name: change.to_dict() for name, change in self.changes.items()}
        out["exit_code"] = self.exit_code
        return out

    def plot(self) -> str:
        """Return an SVG of the changes with their intervals and of the paired differences of the target."""
        from whileai_measure.plots import comparison_plot

        return comparison_plot(self)

    def _repr_html_(self) -> str:
        from whileai_measure.plots import comparison_html

        return comparison_html(self)
