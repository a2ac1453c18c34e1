"""A function that drives an agent program: `f(messages, rollout)`, sync or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from whileai_agents import defaults as d
from whileai_agents.driver import Driver, read_reply
from whileai_agents.proxying import Proxy
from whileai_kernel.messages import Message

__all__ = ["FunctionAgent"]


class FunctionAgent:
    """A function as an agent whose model is behind a proxy.

    Args:
        fn: `fn(messages, rollout)`; `rollout.base_url` is its model, `rollout.mcp_url` its tools. It may return text,
            messages, an agent of a framework that is then run, or nothing when all went through the proxy.
        model: The model behind the proxy, or its spec.
        proxy: A running proxy, instead of `model`.
        name: Name on the rows; by default the function's.
    """

    def __init__(
        self,
        fn: Callable[[list[Message], Any], Any],
        model: Any = None,
        *,
        proxy: Proxy | None = None,
        name: str | None = None,
    ) -> None:
        self.fn, self.driver = fn, Driver(model, proxy)
        self._threads = ThreadPoolExecutor(d.TOOL_THREADS.value, thread_name_prefix="wai-agent-fn")
        self.name = name or str(getattr(fn, "__name__", type(fn).__name__))
        self.model_id = self.driver.model_id
        self.policy = self.driver.policy(self.name)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network beyond loopback, for the conformance kit."""
        return {"fn": _example}

    def __repr__(self) -> str:
        return f"FunctionAgent({self.name!r})"

    async def __call__(self, messages: list[Message], context: Any) -> Any:
        """Run the function for one turn."""
        from whileai_agents.agents import framework_of

        rollout = self.driver.rollout(context)
        given = [dict(m) for m in messages]
        if inspect.iscoroutinefunction(self.fn):
            answer = await self.fn(given, rollout)
        else:
            # Threads of its own: those of the tools must stay free for the calls that the function waits for.
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, self.fn, given, rollout)
            if inspect.isawaitable(answer):
                answer = await answer
        driven = framework_of(answer)
        if driven is not None:
            answer = await driven(answer, driver=self.driver)(messages, context)
            if self.driver.has_model:
                return answer
        return read_reply(answer, rollout, messages, self.driver.has_model)


def _example(messages: list[Message], rollout: Any) -> str:
    return f"You said: {messages[-1]['content']}"
