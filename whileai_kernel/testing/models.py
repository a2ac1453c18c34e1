"""A model that follows a script: for tests, documentation and dry runs, without weights, key or network.

Example:
    >>> import asyncio
    >>> model = ScriptedModel(lambda messages: f"{len(messages)} messages")
    >>> asyncio.run(model.complete([{"role": "user", "content": "Hi"}])).message["content"]
    '1 messages'
    >>> ScriptedModel(["Hello.", {"role": "assistant", "content": "Goodbye."}])
    ScriptedModel('scripted')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion

__all__ = ["Answer", "ScriptedModel"]

Answer = Callable[..., Any] | Iterable[Any]
"""A function of the messages, or of the messages and the tools; or the replies in order."""

_NO_MORE = object()


class ScriptedModel:
    """A model whose replies a function writes, or that gives the replies of a list one after the other.

    A reply is a text, an assistant message, or a `Completion`. Where it is no `Completion`, its usage counts words as
    tokens.

    Args:
        answer: A function of the messages, or of the messages and the tools, that returns a reply (it may be async, and
            what it raises is the failure of the model), or replies in order.
        name: The model's id.
        price: US dollars per million prompt and completion tokens, or `None` when it is not known.
        sampling: Sampling that the model brings.
        capabilities: For example `{"json_schema"}`.

    Attributes:
        calls: What was asked, in order: `messages`, `tools`, `sampling`, `schema`, `deadline_s`, `repeat`.
    """

    def __init__(
        self,
        answer: Answer,
        name: str = "scripted",
        *,
        price: tuple[float, float] | None = None,
        sampling: Mapping[str, Any] | None = None,
        capabilities: Iterable[str] = (),
    ) -> None:
        self.id, self.price, self.sampling = name, price, dict(sampling or {})
        self.capabilities = frozenset(capabilities)
        self.calls: list[dict[str, Any]] = []
        if callable(answer):
            self._answer, self._takes_tools = answer, _takes_two(answer)
        else:
            replies = iter(answer)
            self._answer, self._takes_tools = lambda messages: next(replies, _NO_MORE), False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
        repeat: int = 0,
    ) -> Completion:
        """Answer a conversation as the script says.

        Args:
            messages: The conversation.
            tools: OpenAI tool dicts.
            sampling: Recorded.
            schema: Recorded.
            deadline_s: Recorded.
            repeat: Number of the sample among equal requests; recorded.

        Raises:
            ParameterError: There is no further reply, or it is of no known shape.
        """
        asked, offered = list(messages), list(tools)
        self.calls.append(
            {
                "messages": asked,
                "tools": offered,
                "sampling": dict(sampling or {}),
                "schema": schema,
                "deadline_s": deadline_s,
                "repeat": repeat,
            }
        )
        reply = self._answer(asked, offered) if self._takes_tools else self._answer(asked)
        return self._completion(await reply if inspect.isawaitable(reply) else reply, asked)

    def _completion(self, reply: Any, messages: Sequence[Mapping[str, Any]]) -> Completion:
        if reply is _NO_MORE:
            raise ParameterError(
                f"the model {self.id!r} has no further reply",
                why=f"its script held {len(self.calls) - 1}",
                fix="give it more replies, or a function",
            )
        if isinstance(reply, Completion):
            return reply
        if not isinstance(reply, str | Mapping):
            raise ParameterError(
                f"the script of the model {self.id!r} returned {type(reply).__name__}",
                fix="return a text, an assistant message or a Completion",
            )
        message = {"role": "assistant", "content": reply} if isinstance(reply, str) else dict(reply)
        sent = sum(_words(m) for m in messages)
        usage = {"prompt_tokens": sent, "completion_tokens": _words(message)}
        cost = None if self.price is None else (sent * self.price[0] + _words(message) * self.price[1]) / 1e6
        return Completion(message, "tool_calls" if message.get("tool_calls") else "stop", self.id, usage, cost)


def _words(message: Mapping[str, Any]) -> int:
    return len(text_of(message.get("content")).split())


def _takes_two(answer: Callable[..., Any]) -> bool:
    """Whether a script wants the tools too: by name, by a second parameter without default, or it takes any number."""
    try:
        parameters = inspect.signature(answer).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none that can be read
        return False
    given = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in given if p.default is p.empty]
    return (
        len(needed) >= 2
        or any(p.name == "tools" for p in given[1:])
        or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    )
