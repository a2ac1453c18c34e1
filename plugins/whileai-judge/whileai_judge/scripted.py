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
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion

_BLOCK = re.compile(r"<<<(?P<name>[A-Z]+) (?P<token>[0-9a-f]+)\n(?P<body>.*?)\n(?P=name) (?P=token)>>>", re.DOTALL)


class ScriptedModel:
    """Answers each prompt with ``answer(prompt)``, or with the given replies one after the other.

    Args:
        answer: A function of the prompt's text that returns text or a ``Completion`` (may be async), or the
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
        self.id = name
        self.capabilities = frozenset(capabilities)
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
        repeat: int = 0,
    ) -> Completion:
        """Answer.

        Raises:
            ParameterError: There is no further reply.
        """
        prompt = "\n".join(text_of(message.get("content")) for message in messages)
        call = {"prompt": prompt, "sampling": dict(sampling or {}), "schema": schema, "repeat": repeat}
        self.calls.append(call)
        if self._answer is not None:
            said = self._answer(prompt)
            said = await said if inspect.isawaitable(said) else said
        else:
            said = next(self._replies, None)
            if said is None:
                raise ParameterError("the scripted model has no further reply", fix="give it more, or a function")
        return (
            said
            if isinstance(said, Completion)
            else Completion({"role": "assistant", "content": said}, "stop", self.id)
        )


def quoted_block(prompt: str, name: str = "REPLY") -> str | None:
    """A text that a judge's prompt quotes (``REPLY``, ``CONVERSATION``, ``REFERENCE``, ``FIRST``, ``SECOND``)."""
    return next((match["body"] for match in _BLOCK.finditer(prompt) if match["name"] == name), None)


def verdict_line(prompt: str, verdict: str) -> str:
    """An answer with the last line that the prompt asks for."""
    marker = re.findall(r"^(VERDICT [0-9a-f]+): \.\.\.$", prompt, re.MULTILINE)
    return f"By the rule of the script.\n{marker[-1] if marker else 'VERDICT'}: {verdict}"
