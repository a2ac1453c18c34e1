"""How often each task is tried: fixed, none, successive and adaptive repeats, decided in rounds.

A round is a set of rollouts whose start depends on earlier rounds alone, so that the decisions do not depend on
timing or concurrency. Without a grader only `fixed` and `none` can decide anything.

Example:
    >>> policy = Repeats("successive", 4)
    >>> policy.first(), policy.more([1.0, 1.0]), policy.more([1.0, 0.0])
    (2, 0, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_simulate.defaults import ADAPTIVE_FLOOR, PROBES

__all__ = ["POLICIES", "Repeats"]

POLICIES = ("fixed", "none", "successive", "adaptive")


@dataclass(frozen=True, slots=True)
class Repeats:
    """A repeat policy.

    Attributes:
        policy: `fixed` (k each), `none` (1 each), `successive` (2 first, k where they disagree) or `adaptive` (2
            first, then one by one while a task of one verdict may still turn out mixed; k once it is).
        k: Most rollouts of a task.
        probes: Rollouts of the first round.
        floor: `adaptive` goes on while the chance of another verdict within k is at least this.
    """

    policy: str
    k: int
    probes: int = PROBES.value
    floor: float = ADAPTIVE_FLOOR.value

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            unknown_name("repeat_policy", self.policy, POLICIES)
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ParameterError(f"repeats must be a whole number from 1, not {self.k!r}", fix="pass repeats=4")

    @property
    def graded(self) -> bool:
        """Whether the policy needs verdicts."""
        return self.policy in ("successive", "adaptive")

    def first(self) -> int:
        """Return the number of rollouts that every task gets."""
        if self.policy == "none":
            return 1
        return min(self.k, self.probes) if self.graded else self.k

    def more(self, rewards: Sequence[float | None]) -> int:
        """Return how many further rollouts a task gets after these (`None` is not scored)."""
        n = len(rewards)
        if not self.graded or n >= self.k:
            return 0
        scored = [r for r in rewards if r is not None]
        if len(scored) < 2 or max(scored) - min(scored) > 1e-9:
            return self.k - n  # mixed, or nothing known: fill
        if self.policy == "successive":
            return 0
        return 1 if self.chance_of_other(len(scored), self.k - n) >= self.floor else 0

    @staticmethod
    def chance_of_other(n: int, left: int) -> float:
        """Return the chance that `left` more rollouts bring another verdict after `n` equal ones.

        The posterior predictive under a uniform prior on the pass rate: 1 - (n + 1) / (n + 1 + left).
        """
        return 1.0 - (n + 1) / (n + 1 + left)

    def state(self, rewards: Sequence[float | None], finished: bool) -> str:
        """Return what became of a task: `mixed`, `stopped`, `complete` or `probing`."""
        scored = [r for r in rewards if r is not None]
        if scored and max(scored) - min(scored) > 1e-9:
            return "mixed"
        if not finished:
            return "probing"
        limit = 1 if self.policy == "none" else self.k
        return "complete" if len(rewards) >= limit else "stopped"
