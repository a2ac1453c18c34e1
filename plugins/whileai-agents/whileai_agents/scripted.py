"""A model that follows a script: for tests, examples and dry runs, no network and no weights.

Example:
    >>> import asyncio
    >>> model = Scripted(lambda messages, tools: "hello")
    >>> asyncio.run(model.complete([{"role": "user", "content": "hi"}])).message["content"]
    'hello'
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion

__all__ = ["Scripted", "call", "lookup"]

Script = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], Any]


def call(name: str, arguments: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """Return an assistant message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


class Scripted:
    """A model whose replies a function writes.

    Args:
        script: `script(messages, tools)` returns a text, an assistant message, or a `Completion`; what it raises is the
            failure of the model.
        name: Name of the model.
    """

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self.script, self.id = script, name

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters for the conformance kit."""
        return {"script": lookup}

    def __repr__(self) -> str:
        return f"Scripted({self.id!r})"

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> Completion:
        """Answer a conversation as the script says; tokens are counted as words."""
        reply = self.script(messages, tools)
        if isinstance(reply, Completion):
            return reply
        message = {"role": "assistant", "content": reply} if isinstance(reply, str) else dict(reply)
        words = sum(len(text_of(m.get("content")).split()) for m in messages)
        usage = {"prompt_tokens": words, "completion_tokens": len(text_of(message.get("content")).split())}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        return Completion(message, finish, self.id, usage)


def lookup(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Any:
    """A script: call the first tool once with a placeholder for each argument, then say what came back."""
    if messages[-1].get("role") == "tool" or not tools:
        return f"It says: {text_of(messages[-1].get('content'))}"
    function = tools[0]["function"]
    wanted = function.get("parameters", {}).get("required", ())
    return call(function["name"], dict.fromkeys(wanted, "A-17"), len(messages))
