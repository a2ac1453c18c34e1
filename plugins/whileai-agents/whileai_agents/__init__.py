"""Agents that were written elsewhere: a recording proxy, URLs, programs, MCP tools, agent frameworks.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> from whileai_agents import Scripted, proxy
    >>> with proxy(Scripted(lambda messages, tools: "hello")) as running:
    ...     running.base_url.startswith("http://127.0.0.1:")
    True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_agents.endpoint import EndpointAgent
    from whileai_agents.failures import AgentError
    from whileai_agents.function import FunctionAgent
    from whileai_agents.mcp_client import McpTools, mcp_tools
    from whileai_agents.program import ProgramAgent
    from whileai_agents.proxying import Proxy, proxy
    from whileai_agents.rollout import Rollout
    from whileai_agents.scripted import Scripted

_HOME = {
    "AgentError": "failures",
    "EndpointAgent": "endpoint",
    "FunctionAgent": "function",
    "McpTools": "mcp_client",
    "ProgramAgent": "program",
    "Proxy": "proxying",
    "Rollout": "rollout",
    "Scripted": "scripted",
    "mcp_tools": "mcp_client",
    "proxy": "proxying",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
