"""Agents of the OpenAI Agents SDK. Its tracing, which uploads what is said, is off."""

from __future__ import annotations

from typing import Any

from whileai_agents.failures import need
from whileai_agents.frameworks.base import FrameworkAgent, Ran, decoded, world_tools
from whileai_agents.responses import to_items, to_messages
from whileai_agents.rollout import Rollout
from whileai_kernel.messages import Message
from whileai_kernel.tools import Tool

__all__ = ["OpenAIAgentsAgent"]


class OpenAIAgentsAgent(FrameworkAgent):
    """An `agents.Agent`; agents that it hands off to get the world's tools by name too.

    Args:
        agent: The agent.
        responses: Speak the Responses API to the proxy, instead of chat completions.
        options: As `FrameworkAgent`.
    """

    library = "openai-agents"

    def __init__(self, agent: Any, model: Any = None, *, responses: bool = False, **options: Any) -> None:
        self.responses = responses
        super().__init__(agent, model, **options)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network beyond loopback, for the conformance kit."""
        from whileai_agents.scripted import Scripted, lookup

        sdk = need("agents", "openai-agents")
        return {"agent": sdk.Agent(name="helper"), "model": Scripted(lookup)}

    def own_instructions(self) -> Any:
        """Return the instructions of the agent; a function counts as having some."""
        return self.agent.instructions

    async def run(self, messages: list[Message], rollout: Rollout) -> Ran:
        """Run the SDK's loop."""
        sdk = need("agents", "openai-agents")
        bound = self._bound(sdk, self.agent, rollout, {})
        given: Any = to_items(messages)
        if not self.driver.has_model:
            config = sdk.RunConfig(tracing_disabled=True)
            return self._read(await sdk.Runner.run(bound, given, max_turns=self.max_turns, run_config=config))
        openai = need("openai", "openai-agents")
        name = self.agent.model if isinstance(self.agent.model, str) else str(self.driver.proxy.model.id)
        async with openai.AsyncOpenAI(base_url=rollout.base_url, api_key="whileai", max_retries=0) as client:
            provider = sdk.OpenAIProvider(openai_client=client, use_responses=self.responses)
            config = sdk.RunConfig(tracing_disabled=True, model=provider.get_model(name))
            return self._read(await sdk.Runner.run(bound, given, max_turns=self.max_turns, run_config=config))

    def _read(self, result: Any) -> Ran:
        used = result.context_wrapper.usage
        usage = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens, "requests": used.requests}
        items = [_plain(item.to_input_item()) for item in result.new_items]
        return Ran(to_messages(items), result.final_output, usage)

    def _bound(self, sdk: Any, agent: Any, rollout: Rollout, made: dict[int, Any]) -> Any:
        """Return a copy of an agent whose tools run in the world, and of the agents that it hands off to."""
        if id(agent) in made:
            return made[id(agent)]
        declared = {getattr(tool, "name", "") for tool in agent.tools}
        mine = agent.tools or agent.mcp_servers or agent is not self.agent
        served = world_tools(rollout, declared) if declared or not mine else []
        names = {tool.name for tool in served}
        kept = [tool for tool in agent.tools if getattr(tool, "name", "") not in names]
        copy = made[id(agent)] = agent.clone(tools=[*(_tool(sdk, rollout, tool) for tool in served), *kept])
        if any(isinstance(target, sdk.Agent) for target in agent.handoffs):
            copy.handoffs = [
                self._bound(sdk, target, rollout, made) if isinstance(target, sdk.Agent) else target
                for target in agent.handoffs
            ]
        return copy


def _tool(sdk: Any, rollout: Rollout, tool: Tool) -> Any:
    async def invoke(_: Any, arguments: str) -> str:
        return await rollout.call(tool.name, decoded(arguments))

    return sdk.FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _plain(item: Any) -> Any:
    return item.model_dump(exclude_unset=True) if hasattr(item, "model_dump") else item
