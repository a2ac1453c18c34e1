"""What the agents of frameworks share: how a rollout is run, and which tools are the world's."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from whileai_agents import defaults as d
from whileai_agents.driver import Driver, read_reply
from whileai_agents.proxying import Proxy
from whileai_agents.rollout import Rollout
from whileai_kernel.messages import Message, parse_arguments
from whileai_kernel.tools import Tool

__all__ = ["FrameworkAgent", "Ran", "output_text", "world_tools", "world_of"]


class Ran:
    """What a framework's run gave.

    Attributes:
        messages: New messages, in the one model.
        output: The framework's own result: text, or an object that its output type wants.
        usage: Tokens as the framework counted them.
    """

    def __init__(self, messages: list[dict[str, Any]], output: Any, usage: Mapping[str, Any] | None = None) -> None:
        self.messages, self.output, self.usage = messages, output, dict(usage or {})


class FrameworkAgent:
    """An agent object of a framework as an agent of `simulate`.

    Its own instructions win over the system prompt of the simulation. Tools of the world stand in for its tools of the
    same names; an agent that declares none is given them all. One object serves any number of rollouts at once.

    Args:
        agent: The framework's object; never changed.
        model: The model that answers in place of the object's own, through the recording proxy, or its spec.
        proxy: A running proxy, instead of `model`.
        max_turns: Replies of the model before the framework's loop is stopped.
        name: Name on the rows; by default the object's.
    """

    library = ""

    def __init__(
        self,
        agent: Any,
        model: Any = None,
        *,
        proxy: Proxy | None = None,
        max_turns: int = d.MAX_TURNS.value,
        name: str | None = None,
        driver: Driver | None = None,
    ) -> None:
        self.agent, self.max_turns = agent, max_turns
        self.driver = driver if driver is not None else Driver(model, proxy)
        own = getattr(agent, "name", None)
        self.name = name or (own if isinstance(own, str) and own else self.library)
        self.model_id = self.driver.model_id
        self.policy = {**self.driver.policy(self.name), "framework": self.library}
        self.instructions = str(self.own_instructions() or "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def own_instructions(self) -> Any:
        """Return what the object itself tells its model, when it says anything."""
        raise NotImplementedError

    async def run(self, messages: list[Message], rollout: Rollout) -> Ran:
        """Run the framework on a conversation that ends on the user."""
        raise NotImplementedError

    async def __call__(self, messages: list[Message], context: Any) -> Any:
        """Answer one turn."""
        rollout = self.driver.rollout(context)
        given = [dict(m) for m in messages]
        if self.instructions:
            given = [m for m in given if m["role"] not in ("system", "developer")]
        ran = await self.run(given, rollout)
        recorded = self.driver.has_model and rollout.main is not None and bool(rollout.main.replies)
        final = output_text(ran.output)
        if recorded:
            said = rollout.main.messages[-1] if rollout.main is not None else {}
            if not isinstance(ran.output, str) and not said.get("tool_calls"):
                final = None  # the same thing as the model wrote it stands there already
            return read_reply({"final_text": final}, rollout, messages, True)
        out: dict[str, Any] = {"messages": ran.messages, "usage": ran.usage}
        if not ran.messages or ran.messages[-1].get("role") != "assistant" or ran.messages[-1].get("tool_calls"):
            out["messages"] = [*ran.messages, {"role": "assistant", "content": final or ""}]
        return out


def output_text(output: Any) -> str | None:
    """Return a framework's result as text: JSON when it is an object."""
    if output is None or isinstance(output, str):
        return output
    if hasattr(output, "model_dump"):
        output = output.model_dump(mode="json")
    return json.dumps(output, ensure_ascii=False, default=str)


def world_tools(rollout: Rollout, declared: Collection[str]) -> list[Tool]:
    """Return the tools that the world runs: those of the declared names, all when none is declared."""
    return [tool for tool in rollout.tools if not declared or tool.name in declared]


def world_of(rollout: Rollout, tool: Tool) -> Callable[..., Awaitable[str]]:
    """Return an async function with named arguments that calls a tool in the world."""

    async def called(**arguments: Any) -> str:
        return await rollout.call(tool.name, arguments)

    called.__name__ = tool.name
    called.__doc__ = tool.description
    return called


def decoded(arguments: Any) -> Mapping[str, Any] | str:
    """Return arguments of a call as an object, or as the text that is none."""
    found = parse_arguments(arguments)
    return str(arguments) if found is None else found


def last_user(messages: Sequence[Message]) -> tuple[list[Message], str]:
    """Split a conversation into what came before the last message, and the text of the last message."""
    return list(messages[:-1]), str(messages[-1].get("content") or "")
