"""FinalState: the world ended as it should.

Where the right end is the beginning (a refusal, a look-up), doing nothing would be paid; such a task therefore needs
evidence: the calls it requires, or at least one call or a reply.

Example:
    >>> row = {"world": {"state": {"n": 10.0}}, "privileged": {"state": {"n": 10}}, "final_text": "Done."}
    >>> FinalState()(row)["reward"]
    1.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whileai_kernel.messages import tool_calls
from whileai_kernel.protocols import Example
from whileai_verify.compare import first_difference, without_expected
from whileai_verify.defaults import STATE_FLOAT_TOL
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    lookup,
    no_reference,
    not_scored,
    raw_reply_of,
    reference_of,
    verdict,
)

__all__ = ["FinalState"]


def _example(state: Any, text: str = "Done.") -> dict[str, Any]:
    return {
        "final_text": text,
        "messages": [{"role": "user", "content": "Ship 1."}, {"role": "assistant", "content": text}],
        "world": {"state": state},
        "privileged": {"state": {"orders": {"1": "shipped"}}, "initial_state": {"orders": {"1": "open"}}},
    }


class FinalState:
    """1 when the state at the end of a run equals the goal state.

    Args:
        actual: Dotted field of the row with the end state, or a function of the row that returns it.
        goal: Dotted field with the goal state.
        initial: Dotted field with the state before the run, where there is one.
        required_calls: Tools that have to be called besides; they may also stand in `privileged.required_calls`.
        unordered: Paths of lists whose order does not count (`orders.pay`, or `pay` at every depth).
        rel_tol: Relative tolerance of numbers.
        abs_tol: Absolute tolerance of numbers.
        subset: Compare only the keys that the goal names.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example(_example({"orders": {"1": "shipped"}}), 1.0),
        Example(_example({"orders": {"1": "open"}}), 0.0),
        Example(_example({"orders": {"1": "open"}}, ""), 0.0),
    )

    def __init__(
        self,
        *,
        actual: str | Callable[[Mapping[str, Any]], Any] = "world.state",
        goal: str = "privileged.state",
        initial: str = "privileged.initial_state",
        required_calls: Sequence[str] = (),
        unordered: Sequence[str] = (),
        rel_tol: float = STATE_FLOAT_TOL.value,
        abs_tol: float = 0.0,
        subset: bool = False,
        threshold: float = 1.0,
    ) -> None:
        self.actual, self.goal, self.initial = actual, goal, initial
        self.required_calls, self.unordered = tuple(required_calls), tuple(unordered)
        self.rel_tol, self.abs_tol, self.subset, self.threshold = rel_tol, abs_tol, subset, threshold

    def _difference(self, a: Any, b: Any) -> str | None:
        return first_difference(
            a, b, unordered=self.unordered, rel_tol=self.rel_tol, abs_tol=self.abs_tol, subset=self.subset
        )

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        goal = reference_of(row, self.goal)
        if goal is MISSING:
            return no_reference(self.goal)
        state = self.actual(row) if callable(self.actual) else lookup(row, self.actual)
        if state is MISSING or state is None:
            return not_scored("missing", "the row has no end state")
        required = self.required_calls or lookup(row, "privileged.required_calls") or ()
        made = {c.name for c in tool_calls(row.get("messages") or [])}
        absent = [n for n in required if n not in made]
        if absent:
            return verdict(0, f"{len(absent)} of {len(required)} required calls are absent", difference=None)
        difference = self._difference(state, goal)
        if difference:
            return verdict(0, f"the end state differs: {without_expected(difference)}", difference=difference)
        if not made and not raw_reply_of(row).strip():
            return verdict(0, "the run did nothing, so the state is no evidence", difference=None)
        unchanged = lookup(row, self.initial)
        note = {} if unchanged is MISSING else {"goal_is_initial": self._difference(unchanged, goal) is None}
        return verdict(1, "the end state is the goal", difference=None, **note)
