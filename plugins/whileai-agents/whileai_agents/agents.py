"""Which agent a reference is: a URL, a program, an object of a framework, a function."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["FRAMEWORKS", "agent_of", "framework_of"]

FRAMEWORKS = {
    ("agents", "Agent"): "openai_agents:OpenAIAgentsAgent",
    ("langgraph", "Pregel"): "langgraph:LangGraphAgent",
    ("pydantic_ai", "AbstractAgent"): "pydantic_ai:PydanticAIAgent",
}
"""Top-level module and class name of what is recognised, and the adapter. An instance of a subclass counts."""


def framework_of(what: object) -> Callable[..., Any] | None:
    """Return the adapter of an object of a known framework, else `None`; imports nothing but our own module."""
    if what is None or isinstance(what, str | type | dict | list | tuple):
        return None
    for cls in type(what).__mro__:
        target = FRAMEWORKS.get(((cls.__module__ or "").partition(".")[0], cls.__name__))
        if target is not None:
            module, _, name = target.partition(":")
            found: Callable[..., Any] = getattr(importlib.import_module(f"whileai_agents.frameworks.{module}"), name)
            return found
    return None


def agent_of(what: Any, **options: Any) -> Any | None:
    """Return the agent of a reference, or `None` when it is none of ours.

    Args:
        what: `"http://..."`, `"exec:..."`, a list of program arguments, an object of a framework, or (with a proxy or a
            model among the options) a function `f(messages, rollout)`.
        options: Options of the agent.
    """
    if isinstance(what, str):
        if what.startswith(("http://", "https://")):
            from whileai_agents.endpoint import EndpointAgent

            return EndpointAgent(what, **options)
        if what.startswith("exec:"):
            from whileai_agents.program import ProgramAgent

            return ProgramAgent(what.removeprefix("exec:"), **options)
        return None
    if isinstance(what, list | tuple) and what and all(isinstance(word, str) for word in what):
        from whileai_agents.program import ProgramAgent

        return ProgramAgent(what, **options)
    adapter = framework_of(what)
    if adapter is not None:
        return adapter(what, **options)
    if callable(what) and options:
        from whileai_agents.function import FunctionAgent

        return FunctionAgent(what, **options)
    return None
