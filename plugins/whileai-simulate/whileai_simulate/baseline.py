"""What agents that do nothing earn from a judge: the check to make before a reward is trained on.

Three of them answer every ask with the same words and call no tool: nothing, one constant sentence, a refusal. Only
situations whose goal needs an action or a look count, so whatever they earn there is paid for nothing.

Example:
    >>> from whileai_simulate.outcome import Outcome
    >>> order = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    >>> tools = [{"name": "get_order", "kind": "read", "parameters": order}]
    >>> [result.paid for result in null_baseline(Outcome(), tools, situations=10)]
    [0, 0, 0]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from whileai_kernel.rows import passed
from whileai_simulate.agents import AgentContext
from whileai_simulate.defaults import NULL_SITUATIONS
from whileai_simulate.returns import Reply

__all__ = ["NULL_ANSWERS", "NullResult", "null_baseline"]

NULL_ANSWERS = {
    "empty": "",
    "constant": "Done! Everything is taken care of. Is there anything else I can help you with?",
    "refusal": "I'm sorry, but I can't help with that.",
}
"""What the do-nothing agents say, by name."""


@dataclass(frozen=True, slots=True)
class NullResult:
    """What one do-nothing agent earned.

    Attributes:
        agent: `empty`, `constant` or `refusal`.
        rows: Situations whose goal needs an action or a look.
        scored: Those on which the judge gave a verdict.
        paid: Those that it passed.
        mean: Mean reward over the scored ones, or `None`.
        example: Ask of the first one that was paid more than 0, or `None`.
        failure: What the judge raised first, or `None`.
    """

    agent: str
    rows: int
    scored: int
    paid: int
    mean: float | None
    example: str | None
    failure: str | None

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.agent}: not scored on any of {self.rows} situations{self._why()}"
        text = f"{self.agent}: mean reward {self.mean:.2f}, passes {self.paid} of {self.scored}{self._why()}"
        return f"{text}, for example on {self.example!r:.120}" if self.example else text

    def _why(self) -> str:
        return f" (the judge raised {self.failure})" if self.failure else ""


class _NullAgent:
    """Says the same to everything and calls nothing."""

    inline = True
    trusted = True

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def __call__(self, *, context: AgentContext) -> Reply:
        return Reply([{"role": "assistant", "content": self.text}], self.text)


def null_baseline(
    judge: Any,
    tools: Iterable[Any],
    system_prompt: str | None = None,
    *,
    situations: int = NULL_SITUATIONS.value,
    seed: int = 0,
) -> list[NullResult]:
    """Run the do-nothing agents and grade them.

    Args:
        judge: A callable, verifier or judge, or its name; it grades three times `situations` rows at most.
        tools: Tools of the agent.
        system_prompt: The policy.
        situations: Situations per agent.
        seed: Seed of the situations.
    """
    from whileai_simulate.run import simulate

    tools = list(tools)
    out = []
    for name, text in NULL_ANSWERS.items():
        data = simulate(
            _NullAgent(name, text), tools=tools, system_prompt=system_prompt, situations=situations, repeats=1,
            seed=seed, judge=judge, progress=False, options={"off_topic": 0.0} if tools else None,
        )  # fmt: skip
        rows = [r for r in data if r["privileged"]["goal"]["subgoals"]]
        scored = [r for r in rows if r["reward"] is not None]
        paid = [r for r in scored if r["reward"] > 0]
        mean = sum(r["reward"] for r in scored) / len(scored) if scored else None
        failure = next((str(r.get("reason")) for r in rows if r["status"] in ("error", "timeout")), None)
        out.append(
            NullResult(
                name, len(rows), len(scored), sum(passed(r) is True for r in scored), mean,
                paid[0]["prompt"] if paid else None, failure,
            )
        )  # fmt: skip
    return out
