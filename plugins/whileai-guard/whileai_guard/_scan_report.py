"""The report of a scan: one rank of features, and the regime with its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True)
class Feature:
    """One feature of a scan.

    Attributes:
        name: Name, for example `length.log_chars` or `phrase: as verified above`.
        found: Whether it is beyond the floor.
        r: Within-task correlation with the reward.
        effect: Change of the reward per unit of the feature (for presence: with it against without), within tasks.
        low: Lower end of its interval.
        high: Upper end.
        adjusted_p: Family-wise adjusted p value, the sampling error of the permutations included.
        share: Share of rows that have it, for presence features.
        endorsed: Whether the user said that it may be rewarded.
        beyond_gold: `True` when the reward pays for it more than the second opinion, `False` when that pays for it too,
            `None` when neither can be said or there is none.
        gold_effect: Its effect on the second opinion.
    """

    name: str
    found: bool
    r: float
    effect: float
    low: float
    high: float
    adjusted_p: float
    share: float | None = None
    endorsed: bool = False
    beyond_gold: bool | None = None
    gold_effect: float | None = None

    def __str__(self) -> str:
        return f"{self.name} r {self.r:+.2f}, effect {self.effect:+.3f} [{self.low:+.3f}..{self.high:+.3f}]"

    def to_dict(self) -> dict[str, Any]:
        """Return the feature as a plain dict."""
        return asdict(self)


@dataclass(frozen=True)
class ScanReport:
    """What a scan found.

    Attributes:
        regime: `suspected_hack`, `train`, `no_signal`, `exhausted_pool`, `degenerate` or `unknown`; of a comparison of
            two policies `moved`, `unmoved` or `unknown`.
        sentence: Why.
        features: Features by effect, those beyond the floor first.
        n_features: Features that were tested.
        counts: Rows, unscored rows, tasks, tasks with differing rewards, rows used.
        alpha: Family-wise error.
        permutations: Permutations behind the floor.
        flagged: Positions of rows whose text speaks to the grader.
    """

    regime: str
    sentence: str
    features: tuple[Feature, ...]
    n_features: int
    counts: Mapping[str, int] = field(default_factory=dict)
    alpha: float = 0.05
    permutations: int = 0
    flagged: tuple[int, ...] = ()

    @property
    def found(self) -> tuple[Feature, ...]:
        """Features beyond the floor that are not endorsed."""
        return tuple(f for f in self.features if f.found and not f.endorsed)

    def __str__(self) -> str:
        tail = f" | {len(self.flagged)} rows speak to the grader" if self.flagged else ""
        return (
            f"hack scan: {self.regime} | {self.sentence} | {self.n_features} features, "
            f"{self.counts.get('used', 0)} of {self.counts.get('rows', 0)} rows "
            f"in {self.counts.get('mixed', 0)} tasks{tail}"
        )

    def table(self, limit: int = 12) -> str:
        """Return the first features as a table for people.

        Args:
            limit: Features shown.
        """
        lines = [f"{'':1} {'feature':44} {'r':>6} {'effect':>8} {'interval':>18} {'p':>6}"]
        for f in self.features[:limit]:
            mark = "e" if f.endorsed else "*" if f.found else " "
            interval = f"[{f.low:+.3f}..{f.high:+.3f}]"
            lines.append(f"{mark} {f.name[:44]:44} {f.r:+6.2f} {f.effect:+8.3f} {interval:>18} {f.adjusted_p:6.3f}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "regime": self.regime,
            "sentence": self.sentence,
            "features": [f.to_dict() for f in self.features],
            "n_features": self.n_features,
            "counts": dict(self.counts),
            "alpha": self.alpha,
            "permutations": self.permutations,
            "flagged": list(self.flagged),
        }

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td>{'*' if f.found else ''}</td><td>{escape(f.name)}</td><td>{f.r:+.2f}</td><td>{f.effect:+.3f}</td>"
            f"<td>[{f.low:+.3f}..{f.high:+.3f}]</td><td>{f.adjusted_p:.3f}</td></tr>"
            for f in self.features[:20]
        )
        return (
            f"<p>{escape(str(self))}</p><table><tr><th></th><th>feature</th><th>r</th><th>effect</th><th>interval</th>"
            f"<th>adjusted p</th></tr>{lines}</table>"
        )
