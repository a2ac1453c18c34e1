"""The light module of whileai-agents: what it adds, as strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register

_AT = "whileai_agents.frameworks"


@hookimpl
def wai_register_agents(register: Register) -> None:
    """Register agents that were written elsewhere."""
    register("program", "whileai_agents.program:ProgramAgent", summary="A program: JSON in, JSON or text out.")
    register("endpoint", "whileai_agents.endpoint:EndpointAgent", summary="An agent behind a URL.")
    register("function", "whileai_agents.function:FunctionAgent", summary="A function that drives an agent program.")
    register(
        "openai_agents",
        f"{_AT}.openai_agents:OpenAIAgentsAgent",
        summary="An agent of the OpenAI Agents SDK.",
        needs="openai-agents",
    )
    register(
        "langgraph", f"{_AT}.langgraph:LangGraphAgent", summary="A compiled graph of LangGraph.", needs="langgraph"
    )
    register(
        "pydantic_ai", f"{_AT}.pydantic_ai:PydanticAIAgent", summary="An agent of pydantic-ai.", needs="pydantic-ai"
    )


@hookimpl
def wai_register_models(register: Register) -> None:
    """Register the model that follows a script."""
    register("scripted", "whileai_agents.scripted:Scripted", summary="A model whose replies a function writes.")


@hookimpl
def wai_register_commands(register: Register) -> None:
    """Register the command."""
    register("proxy", "whileai_agents.cli:ProxyCommand", summary="Record what agents and models say, as rows.")


@hookimpl
def wai_resolve(kind: str, ref: object) -> object | None:
    """Make an agent of a URL, of a program (`exec:...`, or a list), or of an object of a framework.

    `mcp:<url or command>` stands for the tools of an MCP server, wherever a reference may stand for tools.
    """
    if isinstance(ref, str) and ref.startswith("mcp:") and kind in ("agents", "tools"):
        from whileai_agents.mcp_client import mcp_tools

        return mcp_tools(ref.removeprefix("mcp:"))
    if kind != "agents":
        return None
    if isinstance(ref, str) and not ref.startswith(("http://", "https://", "exec:")):
        return None
    from whileai_agents.agents import agent_of

    return agent_of(ref)
