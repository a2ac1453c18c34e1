"""One rollout behind a proxy: its base URL, the world whose tools it serves, and what it recorded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from whileai_agents.conversations import Book, Conversation
from whileai_agents.failures import AgentError
from whileai_agents.recording import add_usage, usage_of
from whileai_kernel.errors import WhileaiError
from whileai_kernel.messages import Message, spoken_text, text_of
from whileai_kernel.rows import LENGTH_REASONS
from whileai_kernel.tools import Tool, as_tools

__all__ = ["Rollout", "RolloutOverError", "new_messages"]

TAKEN = "(taken as the answer)"
"""Stands as the result of a call that a framework takes as its output, so that each call has one."""

CallTool = Callable[[str, Any], str]


class RolloutOverError(WhileaiError, RuntimeError):
    """The rollout is over, or the world has no tools to call."""


class Rollout:
    """A rollout that an agent program takes part in; made by `Proxy.rollout`.

    Attributes:
        name: Its name in the URLs.
        base_url: Where the program finds its model: an OpenAI-compatible URL that ends in `/v1`.
        mcp_url: Where the program finds the tools of the task: an MCP server (streamable HTTP).
        task: The task, never `privileged`.
        index: Number of the rollout within its task; `None` until it is counted.
        tools: Tools of the task.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        task: Mapping[str, Any] | None = None,
        index: int | None = None,
        tools: Sequence[Any] = (),
        call_tool: CallTool | None = None,
        world: Any = None,
        threads: Executor | None = None,
        on_close: Callable[[Rollout], None] | None = None,
    ) -> None:
        self.name, self.task, self.index = name, {k: v for k, v in (task or {}).items() if k != "privileged"}, index
        self.base_url, self.mcp_url = f"{url}/r/{name}/v1", f"{url}/r/{name}/mcp"
        self.tools: list[Tool] = as_tools(tools)
        self.world, self.closed = world, False
        self.book = Book(one_rollout=True)
        self.main: Conversation | None = None
        self._call_tool, self._threads, self._on_close = call_tool, threads, on_close
        self._lock = threading.Lock()
        self._told: set[int] = set()

    def __repr__(self) -> str:
        return f"Rollout({self.base_url!r})"

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the rollout: its URLs answer 410 from now on."""
        self.closed = True
        if self._on_close is not None:
            self._on_close(self)

    def _called(self, name: str, arguments: Any) -> str:
        if self._call_tool is None:
            raise RolloutOverError("no world is served here", fix="give task, tools and call_tool to the rollout")
        with self._lock:  # a world is no thread-safe object
            if self.closed:
                raise RolloutOverError("the rollout is over")
            return self._call_tool(name, arguments)

    async def call(self, name: str, arguments: Any) -> str:
        """Call a tool in the world of the rollout, on a thread; faults happen here."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._called, name, arguments)

    @property
    def fired(self) -> list[Any]:
        """Faults of the world that really happened."""
        return list(getattr(self.world, "fired", None) or ())

    def belongs(self, conversation: Conversation) -> bool:
        """Whether a conversation is the rollout's own, and not that of a helper agent inside it."""
        if conversation.branch is not None:
            return self.belongs(conversation.branch[0])
        prompt = str(self.task.get("prompt") or "").strip()
        said = [text_of(m.get("content")) for m in conversation.messages if m.get("role") == "user"]
        return conversation.number == 0 or (bool(prompt) and any(prompt in text for text in said))

    def take_usage(self) -> dict[str, Any]:
        """Return the usage of all replies since the last time that this was asked, helpers' included."""
        fresh = []
        for conversation in list(self.book.open.values()):
            for _, reply in conversation.replies[conversation.shared_replies :]:
                if id(reply) not in self._told:
                    self._told.add(id(reply))
                    fresh.append(reply)
        return add_usage(usage_of(reply) for reply in fresh)

    def turn(self, asked: Sequence[Message], final: str | None = None) -> dict[str, Any]:
        """Return what the agent did in answer to a conversation, as an agent of `simulate` returns it.

        `system_prompt` says what its model was told, where that is not the system prompt of the simulation.

        Args:
            asked: The conversation that the agent was given.
            final: What the agent said in the end; `None` when that is what its model said.

        Raises:
            AgentError: The model's last answer was an error, and the agent had nothing to say itself.
        """
        out: dict[str, Any] = {"usage": self.take_usage()}
        found = self.main
        if found is None:
            return {**out, **({"final_text": final} if final is not None else {"messages": []})}
        new = new_messages(found.messages, asked, found.replies[found.shared_replies][0] if found.replies else None)
        told, given = (system_of(messages) for messages in (found.messages, asked))
        if told != given:
            out["system_prompt"] = told
        last = new[-1] if new else {}
        if final is not None and last.get("role") == "assistant" and not last.get("tool_calls"):
            said = text_of(last.get("content"))
            if final.strip() in (said.strip(), spoken_text(said).strip()):
                final = None  # the agent repeats what its model said
        if final is None and found.error is not None:
            raise AgentError(
                f"the model did not answer: {found.error.get('message', '')}",
                permanent=found.error.get("permanent") is True,
            )
        if new:
            out["messages"] = new
        if final is not None:
            out["final_text"] = final
            for call in (new[-1].get("tool_calls") or ()) if new else ():  # an output tool: nobody answers its call
                out["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": TAKEN})
            if out.get("messages") and out["messages"][-1]["role"] == "tool":
                out["messages"].append({"role": "assistant", "content": final})
        reply = found.replies[-1][1] if found.replies else None
        if reply is not None:
            if final is None or reply.finish_reason in LENGTH_REASONS:
                out["finish_reason"] = reply.finish_reason
            if reply.logprobs is not None:
                out["logprobs"] = reply.logprobs
        return out


def system_of(messages: Sequence[Message]) -> str | None:
    """Return what a model is told before the conversation, or `None`."""
    first = messages[0] if messages else {}
    return text_of(first.get("content")) if first.get("role") in ("system", "developer") else None


def new_messages(messages: Sequence[Message], asked: Sequence[Message], first: int | None = None) -> list[Message]:
    """Return the messages of a conversation after what an agent was asked.

    Args:
        messages: The whole conversation, as the model saw it: with whatever the program put in front.
        asked: What the agent was given, which ends on the user.
        first: Position of the first reply, for a program that words the ask in another way.
    """
    wanted = next((text_of(m.get("content")).strip() for m in reversed(asked) if m.get("role") == "user"), "")
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "user" and wanted and wanted in text_of(message.get("content")):
            return [dict(m) for m in messages[place + 1 :]]
    return [dict(m) for m in messages[len(messages) if first is None else first :]]
