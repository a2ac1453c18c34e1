"""A model that answers by a function: for tests, documentation and dry runs, without a key and without a network.

Example:
    >>> import asyncio
    >>> model = ScriptedModel(lambda prompt: "VERDICT: PASS")
    >>> asyncio.run(model.complete([{"role": "user", "content": "?"}])).message["content"]
    'VERDICT: PASS'
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of

_BLOCK = re.compile(r"<<<(?P<name>[A-Z]+) (?P<token>[0-9a-f]+)\n(?P<body>.*?)\n(?P=name) (?P=token)>>>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer in the shape that judges read.

    Attributes:
        message: The assistant's chat message.
        finish_reason: Why it ended.
        usage: Tokens, as a server would report them.
        cost: Price, None when unknown.
    """

    message: Mapping[str, Any]
    finish_reason: str | None = "stop"
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None


class ScriptedModel:
    """Answers each prompt with ``answer(prompt)``, or with the given replies one after the other.

    Args:
        answer: A function of the prompt's text that returns text or a :class:`Completion` (may be async), or the
            replies in order.
        name: The model's name.
        capabilities: For example ``{"json_schema"}``.
    """

    def __init__(
        self,
        answer: Callable[[str], Any] | Iterable[str | Completion],
        name: str = "scripted",
        capabilities: Iterable[str] = (),
    ) -> None:
        self.model = name
        self.capabilities = frozenset(capabilities)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._answer = answer if callable(answer) else None
        self._replies = iter(()) if callable(answer) else iter(answer)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] = (),
        sampling: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Answer.

        Raises:
            ParameterError: There is no further reply.
        """
        prompt = "\n".join(text_of(message.get("content")) for message in messages)
        self.calls.append((prompt, dict(sampling or {})))
        if self._answer is not None:
            said = self._answer(prompt)
            said = await said if inspect.isawaitable(said) else said
        else:
            said = next(self._replies, None)
            if said is None:
                raise ParameterError("the scripted model has no further reply", fix="give it more, or a function")
        return said if isinstance(said, Completion) else Completion({"role": "assistant", "content": said})


def quoted_block(prompt: str, name: str = "REPLY") -> str | None:
    """A text that a judge's prompt quotes (``REPLY``, ``CONVERSATION``, ``REFERENCE``, ``FIRST``, ``SECOND``)."""
    return next((match["body"] for match in _BLOCK.finditer(prompt) if match["name"] == name), None)


def verdict_line(prompt: str, verdict: str) -> str:
    """An answer with the last line that the prompt asks for."""
    marker = re.findall(r"^(VERDICT [0-9a-f]+): \.\.\.$", prompt, re.MULTILINE)
    return f"By the rule of the script.\n{marker[-1] if marker else 'VERDICT'}: {verdict}"
