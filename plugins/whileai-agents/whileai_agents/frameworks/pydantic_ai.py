"""Agents of pydantic-ai."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from whileai_agents.failures import need
from whileai_agents.frameworks.base import FrameworkAgent, Ran, decoded, last_user, world_of, world_tools
from whileai_agents.rollout import Rollout
from whileai_kernel.messages import Message, text_of
from whileai_kernel.rowio import dumps

__all__ = ["PydanticAIAgent", "from_history", "to_history"]


class PydanticAIAgent(FrameworkAgent):
    """A `pydantic_ai.Agent`. What is put in place of its model and tools holds for the rollout alone.

    Args:
        agent: The agent.
        deps: Dependencies of every run, for an agent whose tools want some.
        options: As `FrameworkAgent`.
    """

    library = "pydantic-ai"

    def __init__(self, agent: Any, model: Any = None, *, deps: Any = None, **options: Any) -> None:
        self.deps = deps
        super().__init__(agent, model, **options)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network beyond loopback, for the conformance kit."""
        from whileai_agents.scripted import Scripted, lookup

        need("openai", "pydantic-ai")
        return {"agent": need("pydantic_ai", "pydantic-ai").Agent(name="helper"), "model": Scripted(lookup)}

    def own_instructions(self) -> Any:
        """Return the static system prompts and instructions of the agent; functions count as having some."""
        parts = [getattr(self.agent, name, None) for name in _INSTRUCTIONS]
        return "\n".join(str(part) for part in parts if part)

    async def run(self, messages: list[Message], rollout: Rollout) -> Ran:
        """Run the agent."""
        library = need("pydantic_ai", "pydantic-ai")
        history, ask = last_user(messages)
        system = [text_of(m.get("content")) for m in history if m["role"] in ("system", "developer")]
        history = [m for m in history if m["role"] not in ("system", "developer")]
        prompts = [str(p) for p in getattr(self.agent, "_system_prompts", ())]
        changes: dict[str, Any] = self._tools(library, rollout)
        if system:
            changes["instructions"] = "\n".join(system)
        async with contextlib.AsyncExitStack() as stack:
            if self.driver.has_model:
                changes["model"] = await self._model(rollout, stack)
            if changes:
                stack.enter_context(self.agent.override(**changes))
            result = await self.agent.run(
                ask,
                message_history=to_history(history, prompts) if history else None,
                usage_limits=library.UsageLimits(request_limit=self.max_turns),
                deps=self.deps,
            )
        used: Any = result.usage
        if not hasattr(used, "input_tokens"):
            used = used()  # a method in earlier versions
        usage = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens, "requests": used.requests}
        said = from_history(result.new_messages())
        while said and said[0]["role"] in ("system", "user"):
            said.pop(0)
        return Ran(said, result.output, usage)

    async def _model(self, rollout: Rollout, stack: contextlib.AsyncExitStack) -> Any:
        openai = need("openai", "pydantic-ai")
        models = need("pydantic_ai.models.openai", "pydantic-ai")
        providers = need("pydantic_ai.providers.openai", "pydantic-ai")
        client = openai.AsyncOpenAI(base_url=rollout.base_url, api_key="whileai", max_retries=0)
        await stack.enter_async_context(client)
        provider = providers.OpenAIProvider(openai_client=client)
        return models.OpenAIChatModel(str(self.driver.proxy.model.id), provider=provider)

    def _tools(self, library: Any, rollout: Rollout) -> dict[str, Any]:
        """Return the overrides that put the world's tools in place."""
        sets = list(self.agent.toolsets)
        named = {name: tool for one in sets for name, tool in getattr(one, "tools", {}).items()}
        opaque = [one for one in sets if not hasattr(one, "tools")]
        if not named and opaque:
            return {}  # tools of an MCP server or another toolset: the agent has its own
        served = world_tools(rollout, set(named))
        if not served:
            return {}
        names = {tool.name for tool in served}
        made = [
            library.Tool.from_schema(world_of(rollout, tool), tool.name, tool.description, tool.parameters)
            for tool in served
        ]
        for tool in made:
            tool.strict = False  # the schema goes to the model as the world has it
        changes: dict[str, Any] = {"tools": [*made, *(tool for name, tool in named.items() if name not in names)]}
        if len(sets) > 1:
            changes["toolsets"] = opaque
        return changes


_INSTRUCTIONS = ("_instructions", "_system_prompts", "_system_prompt_functions")


def from_history(history: Iterable[Any]) -> list[dict[str, Any]]:
    """Return messages of pydantic-ai in the one message model."""
    out: list[dict[str, Any]] = []
    for message in history:
        if message.kind == "response":
            out.append(_from_response(message))
            continue
        for part in message.parts:
            kind = part.part_kind
            if kind == "tool-return" or (kind == "retry-prompt" and part.tool_name):
                text = part.model_response_str() if kind == "tool-return" else part.model_response()
                out.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
            elif kind == "retry-prompt":
                out.append({"role": "user", "content": part.model_response()})
            elif kind in ("system-prompt", "user-prompt"):
                content = part.content if isinstance(part.content, str) else text_of(list(part.content))
                out.append({"role": kind.partition("-")[0], "content": content})
    return out


def _from_response(message: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"role": "assistant", "content": ""}
    for part in message.parts:
        if part.part_kind == "text":
            out["content"] += part.content
        elif part.part_kind == "thinking":
            out["reasoning_content"] = out.get("reasoning_content", "") + part.content
        elif part.part_kind == "tool-call":
            arguments = part.args if isinstance(part.args, str) else dumps(part.args or {})
            function = {"name": part.tool_name, "arguments": arguments}
            call = {"id": part.tool_call_id, "type": "function", "function": function}
            out.setdefault("tool_calls", []).append(call)
    return out


def to_history(messages: Iterable[Message], system: Iterable[str] = ()) -> list[Any]:
    """Return messages of the one model as pydantic-ai's, with the agent's static system prompts in front."""
    m = need("pydantic_ai.messages", "pydantic-ai")
    names: dict[str, str] = {}
    out: list[Any] = [m.ModelRequest(parts=[m.SystemPromptPart(text) for text in system])] if system else []
    for message in messages:
        content = text_of(message.get("content"))
        if message["role"] == "assistant":
            parts: list[Any] = [m.TextPart(content)] if content else []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                names[call["id"]] = function["name"]
                arguments = decoded(function["arguments"])
                parts.append(m.ToolCallPart(function["name"], arguments, call["id"]))
            out.append(m.ModelResponse(parts=parts))
        elif message["role"] == "tool":
            number = message.get("tool_call_id") or ""
            part = m.ToolReturnPart(names.get(number, ""), content, tool_call_id=number)
            out.append(m.ModelRequest(parts=[part]))
        else:
            out.append(m.ModelRequest(parts=[m.UserPromptPart(content)]))
    return out
