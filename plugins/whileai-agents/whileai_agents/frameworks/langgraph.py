"""Compiled graphs of LangGraph whose state has `messages`.

A graph holds its model inside, so a model cannot be put in from outside. A graph that takes `base_url` from its config
(`init_chat_model(configurable_fields=("base_url", ...))`) is pointed at the proxy; any other one is made per rollout
by a function, see `FunctionAgent`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_agents.failures import AgentError, need
from whileai_agents.frameworks.base import FrameworkAgent, Ran, world_of, world_tools
from whileai_agents.rollout import Rollout, new_messages
from whileai_kernel.messages import Message, normalise_messages
from whileai_kernel.tools import Tool

__all__ = ["LangGraphAgent"]

_threads = itertools.count()


class LangGraphAgent(FrameworkAgent):
    """A compiled graph. Tools that it runs in a `ToolNode` are replaced by the world's of the same names.

    Args:
        agent: The graph.
        options: As `FrameworkAgent`.
    """

    library = "langgraph"

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network, for the conformance kit."""
        graph = need("langgraph.graph", "langgraph")
        messages = need("langchain_core.messages", "langgraph")

        def answer(state: Any) -> dict[str, Any]:
            return {"messages": [messages.AIMessage(content="It has shipped.", id="answer")]}

        built = graph.StateGraph(graph.MessagesState)
        built.add_node("answer", answer)
        built.add_edge(graph.START, "answer")
        return {"agent": built.compile()}

    def own_instructions(self) -> Any:
        """Return nothing: what a graph tells its model cannot be seen from outside."""
        return None

    async def run(self, messages: list[Message], rollout: Rollout) -> Ran:
        """Run the graph."""
        core = need("langchain_core.messages", "langgraph")
        config: dict[str, Any] = {
            "recursion_limit": 2 * self.max_turns + 1,
            "configurable": {"thread_id": f"{rollout.name}-{next(_threads)}"},
        }
        if self.driver.has_model:
            config["configurable"].update(base_url=rollout.base_url, api_key="whileai")
        graph = _bound(self.agent, rollout)
        state = await graph.ainvoke({"messages": messages}, config)
        said = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
        if not said:
            raise AgentError(
                "the graph's result has no messages", why=f"it is {type(state).__name__}", fix="use MessagesState"
            )
        converted = core.convert_to_openai_messages(list(said))
        new = new_messages(normalise_messages(converted), messages)
        for message in new:
            if message["role"] == "tool":
                message.pop("name", None)  # the call that it answers names the tool
        own = said[len(said) - len(new) :]
        return Ran(new, None, _usage(own))


def _usage(said: Sequence[Any]) -> dict[str, Any]:
    found = [m.usage_metadata for m in said if getattr(m, "usage_metadata", None)]
    if not found:
        return {}
    return {
        "prompt_tokens": sum(part["input_tokens"] for part in found),
        "completion_tokens": sum(part["output_tokens"] for part in found),
        "requests": len(found),
    }


def _bound(graph: Any, rollout: Rollout) -> Any:
    """Return a copy of the graph whose tool nodes run the world's tools; the graph itself when there are none."""
    nodes = {}
    for name, node in graph.nodes.items():
        known = getattr(getattr(node, "bound", None), "tools_by_name", None)
        served = world_tools(rollout, set(known)) if known else []
        if known is None or not served:
            continue
        runner = copy.copy(node.bound)
        for attribute, value in vars(node.bound).items():  # methods that it holds are bound to the original
            if getattr(value, "__self__", None) is node.bound:
                setattr(runner, attribute, getattr(runner, value.__name__))
        # The node keeps its own options (error handling, wrappers); only the functions behind the names are others.
        runner._tools_by_name = {**known, **{tool.name: _tool(rollout, tool) for tool in served}}
        nodes[name] = node.copy({"bound": runner})
    return graph.copy({"nodes": {**graph.nodes, **nodes}}) if nodes else graph


def _tool(rollout: Rollout, tool: Tool) -> Any:
    tools = need("langchain_core.tools", "langgraph")
    return tools.StructuredTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=tool.parameters,
        coroutine=world_of(rollout, tool),
    )
