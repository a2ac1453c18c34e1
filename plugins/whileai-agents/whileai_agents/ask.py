"""What a program asks of the model, whichever of the two OpenAI APIs it speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_agents.server import HttpError
from whileai_kernel.errors import RowError, WhileaiError
from whileai_kernel.messages import Message, normalise_messages
from whileai_kernel.tools import as_tool

__all__ = ["Ask", "bad_request", "read_messages", "read_tools"]


@dataclass(slots=True)
class Ask:
    """One request to the model.

    Attributes:
        messages: The conversation so far, in the one message model.
        tools: OpenAI tool dicts, as sent to the model and as kept on the row.
        sampling: Sampling parameters that the program asked for.
        schema: JSON schema that it wants the reply held to.
        stream: It wants server-sent events.
        usage_in_stream: It wants the usage in them.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    stream: bool = False
    usage_in_stream: bool = False


def bad_request(message: str) -> HttpError:
    """Return the error of a request that cannot be served."""
    return HttpError(400, message, "invalid_request_error")


def read_messages(messages: Any) -> list[Message]:
    """Bring the messages of a request to the one model.

    Raises:
        HttpError: 400, they are none.
    """
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list that is not empty")
    try:
        return normalise_messages(messages)
    except (RowError, AttributeError, TypeError) as err:
        raise bad_request(f"messages cannot be read: {err}") from None


def read_tools(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Bring the tools of a request to OpenAI tool dicts.

    Raises:
        HttpError: 400, one is no function tool.
    """
    out = []
    for n, tool in enumerate(tools):
        if isinstance(tool, Mapping) and tool.get("type", "function") != "function":
            raise bad_request(f"tools[{n}] is {tool.get('type')!r}: only function tools can be served here")
        try:
            out.append(as_tool(tool).to_openai())
        except WhileaiError as err:
            raise bad_request(f"tools[{n}]: {err.what}") from None
    return out
