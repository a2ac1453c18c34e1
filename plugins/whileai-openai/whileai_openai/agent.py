"""`ModelAgent`: a chat model as an agent of `simulate`; the engine runs the tools and asks again.

One call is one turn: the conversation so far goes to the model, its message comes back with usage and finish reason.
Tool calls that name no tool or carry no JSON are answered by the world as errors, as any other call is answered. It
takes any model of the kernel's protocol, or a spec.

Example:
    >>> ModelAgent("ollama:llama3.2").policy["model"]
    'ollama:llama3.2@http://127.0.0.1:11434/v1'
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.protocols import Completion, Model
from whileai_kernel.registry import resolve
from whileai_kernel.tools import as_tool

__all__ = ["ModelAgent"]


class ModelAgent:
    """An agent that is a chat model with the task's tools.

    Args:
        model: A model, or its spec, for example `vllm:qwen3@http://127.0.0.1:8000/v1`.
        sampling: Sampling parameters of every turn.
        deadline_s: Seconds for one turn; by default the model's own.
        seeded: Send the rollout's seed, so that a server that honours seeds repeats itself.
    """

    def __init__(
        self,
        model: Model | str,
        sampling: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
        seeded: bool = False,
    ) -> None:
        self.model: Any = resolve("models", model)
        self.sampling, self.deadline_s, self.seeded = dict(sampling or {}), deadline_s, seeded
        self.name = self.model.id
        shown = {**getattr(self.model, "sampling", {}), **self.sampling}
        self.policy = {"name": self.name, "model": self.model.id, "sampling": shown}

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network, for the conformance kit."""
        from whileai_openai.specs import Endpoint, example_params

        return {"model": Endpoint(**example_params())}

    def __repr__(self) -> str:
        return f"ModelAgent({self.model!r})"

    def estimate(self, turns: int, messages: Sequence[Any], tools: Sequence[Any] = ()) -> Any:
        """Return what `turns` turns like this one may use; print it before a run. See `ledger.estimate`."""
        from whileai_openai.ledger import estimate

        return estimate(self.model, turns, messages, [as_tool(t).to_openai() for t in tools], self.sampling)

    async def __call__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any], context: Any
    ) -> dict[str, Any]:
        """Answer one turn: `{"messages": [message], "usage", "finish_reason", "logprobs"}`."""
        sampling = {**self.sampling, "seed": context.seed % 2**31} if self.seeded else self.sampling
        options: dict[str, Any] = {"deadline_s": self.deadline_s}
        if _takes_repeat(self.model):
            options["repeat"] = context.index  # rollouts of one task are samples, not one reply many times
        reply: Completion = await self.model.complete(
            messages, [as_tool(t).to_openai() for t in tools], sampling, **options
        )
        usage: dict[str, Any] = {**reply.usage, "requests": reply.attempts}
        if reply.cost_usd is not None:
            usage["cost_usd"] = reply.cost_usd
        turn = {"messages": [reply.message], "usage": usage, "finish_reason": reply.finish_reason}
        return turn if reply.logprobs is None else {**turn, "logprobs": reply.logprobs}


def _takes_repeat(model: Any) -> bool:
    """Whether a model, or the one that it wraps, tells equal requests apart by `repeat`, as a cache does."""
    parameters = inspect.signature(model.complete).parameters
    if "repeat" in parameters:
        return True
    inner = getattr(model, "inner", None)
    return inner is not None and any(p.kind is p.VAR_KEYWORD for p in parameters.values()) and _takes_repeat(inner)
