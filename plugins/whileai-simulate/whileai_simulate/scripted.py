"""A model that answers by a function or from a list: for tests, documentation and dry runs, without key or network.

Example:
    >>> import asyncio
    >>> model = ScriptedModel(lambda messages: "Hi.")
    >>> asyncio.run(model.complete([{"role": "user", "content": "?"}])).message["content"]
    'Hi.'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion

__all__ = ["ScriptedModel"]


class ScriptedModel:
    """Answers a conversation.

    Args:
        answer: A function of the messages that returns text or a `Completion` (may be async, may raise), or replies in
            order.
        name: The model's id.
        price: US dollars per million prompt and completion tokens, or `None`.
        sampling: Sampling that the model brings.
    """

    def __init__(
        self,
        answer: Callable[[list[Mapping[str, Any]]], Any] | Iterable[Any],
        name: str = "scripted",
        price: tuple[float, float] | None = None,
        sampling: Mapping[str, Any] | None = None,
    ) -> None:
        self.id, self.price, self.sampling = name, price, dict(sampling or {})
        self.calls: list[dict[str, Any]] = []
        self._answer = answer if callable(answer) else None
        self._replies = iter(()) if callable(answer) else iter(answer)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> Completion:
        """Answer; tokens are counted as words.

        Raises:
            ParameterError: There is no further reply.
        """
        self.calls.append({"messages": list(messages), "sampling": dict(sampling or {}), "schema": schema})
        value = self._answer(list(messages)) if self._answer is not None else next(self._replies, None)
        value = await value if inspect.isawaitable(value) else value
        if value is None:
            raise ParameterError("the scripted model has no further reply", fix="give it more, or a function")
        if isinstance(value, Completion):
            return value
        sent = sum(len(text_of(m.get("content")).split()) for m in messages)
        usage = {"prompt_tokens": sent, "completion_tokens": len(str(value).split())}
        cost = None
        if self.price is not None:
            cost = (usage["prompt_tokens"] * self.price[0] + usage["completion_tokens"] * self.price[1]) / 1e6
        return Completion({"role": "assistant", "content": str(value)}, "stop", self.id, usage, cost)
