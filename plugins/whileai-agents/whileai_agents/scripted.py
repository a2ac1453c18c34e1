"""A model that follows a script: for tests, examples and dry runs, no network and no weights.

Example:
    >>> import asyncio
    >>> model = Scripted(lambda messages, tools: "hello")
    >>> asyncio.run(model.complete([{"role": "user", "content": "hi"}])).message["content"]
    'hello'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.messages import text_of
from whileai_kernel.testing.models import Answer, ScriptedModel

__all__ = ["Scripted", "call", "lookup"]


def call(name: str, arguments: Mapping[str, Any], number: int = 0) -> dict[str, Any]:
    """Return an assistant message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


class Scripted(ScriptedModel):
    """The kernel's scripted model, as a component that can be asked for by name.

    Args:
        script: `script(messages, tools)`, or one of the messages alone, returns a text, an assistant message, or a
            `Completion`; what it raises is the failure of the model. Or replies in order.
        name: Name of the model.
    """

    def __init__(self, script: Answer, name: str = "scripted") -> None:
        super().__init__(script, name)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters for the conformance kit."""
        return {"script": lookup}


def lookup(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Any:
    """A script: call the first tool once with a placeholder for each argument, then say what came back."""
    if messages[-1].get("role") == "tool" or not tools:
        return f"It says: {text_of(messages[-1].get('content'))}"
    function = tools[0]["function"]
    wanted = function.get("parameters", {}).get("required", ())
    return call(function["name"], dict.fromkeys(wanted, "A-17"), len(messages))
