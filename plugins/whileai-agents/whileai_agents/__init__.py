"""Agents that were written elsewhere: a recording proxy, URLs, programs, MCP tools, agent frameworks.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> from whileai_agents import Scripted, proxy
    >>> with proxy(Scripted(lambda messages, tools: "hello")) as running:
    ...     running.base_url.startswith("http://127.0.0.1:")
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_agents.endpoint import EndpointAgent
    from whileai_agents.failures import AgentError
    from whileai_agents.function import FunctionAgent
    from whileai_agents.mcp_client import McpTools, mcp_tools
    from whileai_agents.program import ProgramAgent
    from whileai_agents.proxying import Proxy, proxy
    from whileai_agents.rollout import Rollout
    from whileai_agents.scripted import Scripted

__all__ = [
    "AgentError",
    "EndpointAgent",
    "FunctionAgent",
    "McpTools",
    "ProgramAgent",
    "Proxy",
    "Rollout",
    "Scripted",
    "mcp_tools",
    "proxy",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".endpoint": ("EndpointAgent",),
        ".failures": ("AgentError",),
        ".function": ("FunctionAgent",),
        ".mcp_client": ("McpTools", "mcp_tools"),
        ".program": ("ProgramAgent",),
        ".proxying": ("Proxy", "proxy"),
        ".rollout": ("Rollout",),
        ".scripted": ("Scripted",),
    },
)
