"""How much gradient a set of groups carries, and how large groups should be.

A group-relative advantage is zero in a group whose rewards are equal. With a true rate `p` and `k` rollouts the
chance of a mixed group is `1 - p^k - (1-p)^k`; over tasks whose rates follow the fitted beta distribution its mean has
a closed form, which is what `recommend_k` looks at.

Example:
    >>> rows = [{"task_id": f"t{t}", "prompt": "q", "final_text": "a", "reward": float(i < t % 3), "status": "ok"}
    ...         for t in range(30) for i in range(4)]
    >>> print(group_signal(rows))
    signal: 20 of 30 groups carry a gradient (67%) | mean reward variance 0.146 | rows in dead groups 40 of 120
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.rows import passed
from whileai_select._rates import BetaPrior, fit_prior
from whileai_select._rows import read_all, reward_of, task_keys
from whileai_select.defaults import MAX_K, MIN_VARIANCE, TARGET_SIGNAL

__all__ = ["GroupSignal", "KAdvice", "group_signal", "recommend_k"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class GroupSignal:
    """What the groups carry.

    Attributes:
        groups: Groups with at least one scored row.
        live: Groups whose rewards differ.
        share: `live / groups`.
        variance: Mean over groups of the reward variance (population form): the expected squared advantage before
            any normalisation.
        live_variance: The same over live groups.
        dead_rows: Scored rows in groups without a difference.
        rows: Scored rows.
        unscored: Rows without a reward.
    """

    groups: int
    live: int
    share: float
    variance: float
    live_variance: float
    dead_rows: int
    rows: int
    unscored: int

    def __str__(self) -> str:
        return (
            f"signal: {self.live} of {self.groups} groups carry a gradient ({self.share:.0%}) | "
            f"mean reward variance {self.variance:.3f} | rows in dead groups {self.dead_rows} of {self.rows}"
            + (f" | {self.unscored} not scored" if self.unscored else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a plain dict."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


def group_signal(rows: Iterable[Row] | str | Path, *, min_variance: float = MIN_VARIANCE.value) -> GroupSignal:
    """Measure which groups carry a gradient.

    Args:
        rows: Graded rows.
        min_variance: Variance up to which rewards count as equal.
    """
    groups, unscored = _scores(rows)
    variances = {key: _variance(values) for key, values in groups.items()}
    live = [key for key, v in variances.items() if v > min_variance]
    total = sum(len(v) for v in groups.values())
    n = len(groups)
    return GroupSignal(
        groups=n,
        live=len(live),
        share=len(live) / n if n else 0.0,
        variance=sum(variances.values()) / n if n else 0.0,
        live_variance=sum(variances[k] for k in live) / len(live) if live else 0.0,
        dead_rows=total - sum(len(groups[k]) for k in live),
        rows=total,
        unscored=unscored,
    )


def _scores(rows: Iterable[Row] | str | Path) -> tuple[dict[str, list[float]], int]:
    found = read_all(rows)
    groups: dict[str, list[float]] = defaultdict(list)
    unscored = 0
    for position, (row, key) in enumerate(zip(found, task_keys(found), strict=True)):
        reward = reward_of(row, position)
        if reward is None:
            unscored += 1
        else:
            groups[key].append(reward)
    return dict(groups), unscored


def _variance(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / len(values)


@dataclass(frozen=True)
class KAdvice:
    """Which group size to draw next.

    Attributes:
        k: The recommended size.
        table: `{k: expected share of mixed groups}`.
        target: Share of the reachable signal that was asked for.
        reachable: Share of groups that are mixed in the limit (tasks that are neither impossible nor sure).
        prior: Shapes of the fitted beta distribution of rates.
        reason: One sentence.
    """

    k: int
    table: Mapping[int, float]
    target: float
    reachable: float
    prior: tuple[float, float]
    reason: str

    def __str__(self) -> str:
        return f"recommend k={self.k} | {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as a plain dict."""
        return asdict(self)

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><td>{k}</td><td>{share:.0%}</td></tr>" for k, share in self.table.items())
        return f"<p>{self}</p><table><tr><th>k</th><th>mixed groups</th></tr>{cells}</table>"


def recommend_k(
    rows: Iterable[Row] | str | Path, *, target: float = TARGET_SIGNAL.value, max_k: int = MAX_K.value
) -> KAdvice:
    """Recommend a group size from the rates seen so far.

    Args:
        rows: Graded rows; a row passes at its threshold.
        target: Share of the mixed groups at `max_k` that the recommended size should reach.
        max_k: Largest size considered.

    Raises:
        ParameterError: No row is scored, or an argument is out of range.
    """
    if not 0.0 < target <= 1.0 or max_k < 2:
        raise ParameterError("target must lie in (0, 1] and max_k be at least 2", fix="leave them out")
    found = read_all(rows)
    tally: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row, key in zip(found, task_keys(found), strict=True):
        good = passed(row)
        if good is not None:
            tally[key][0] += good
            tally[key][1] += 1
    if not tally:
        raise ParameterError("no row is scored", why="the size follows from pass rates", fix="grade the rows first")
    prior = fit_prior(Counter((float(c), float(n)) for c, n in tally.values()))
    table = {k: mixed_share(prior, k) for k in range(2, max_k + 1)}
    best = table[max_k]
    k = next(size for size, share in table.items() if share >= target * best)
    shown = {size: table[size] for size in sorted({2, 4, 8, 16, 32, 64, k, max_k} & set(table))}
    reason = (
        f"{table[k]:.0%} of the groups would be mixed, {table[k] / best:.0%} of what k={max_k} gives "
        f"(rates like beta({prior.a:.2g}, {prior.b:.2g}), {len(tally)} tasks)"
    )
    return KAdvice(k, shown, target, best, (prior.a, prior.b), reason)


def mixed_share(prior: BetaPrior, k: int) -> float:
    """Return the expected share of mixed groups of size `k`: `1 - E[p^k] - E[(1-p)^k]` under the beta distribution."""
    all_pass = all_fail = 1.0
    for i in range(k):
        all_pass *= (prior.a + i) / (prior.a + prior.b + i)
        all_fail *= (prior.b + i) / (prior.a + prior.b + i)
    return max(0.0, 1.0 - all_pass - all_fail)
