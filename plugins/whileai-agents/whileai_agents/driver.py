"""What the agents of this plugin share: a proxy of their own or a given one, and a rollout in it per rollout."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_agents import defaults as d
from whileai_agents.failures import AgentError
from whileai_agents.proxying import Proxy
from whileai_agents.rollout import Rollout
from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import Message, text_of

__all__ = ["Driver", "read_reply", "request_of"]


class Driver:
    """Opens rollouts behind a proxy.

    Args:
        model: Model of the agent, or its spec; `None` when the agent reaches a model of its own.
        proxy: A running proxy, instead of `model`.
        remember: Rollouts whose base URLs stay open.
    """

    def __init__(self, model: Any = None, proxy: Proxy | None = None, *, remember: int = d.OPEN_ROLLOUTS.value) -> None:
        if model is not None and proxy is not None:
            raise ParameterError("give model= or proxy=, not both", why="the proxy has a model already")
        self.proxy = proxy if proxy is not None else Proxy(model)
        if proxy is None:
            weakref.finalize(self, self.proxy.close)
        self._open: OrderedDict[int, tuple[Any, Rollout]] = OrderedDict()
        self._remember, self._lock = remember, threading.Lock()

    @property
    def has_model(self) -> bool:
        """Whether the agent's model is behind the proxy."""
        return self.proxy.model is not None

    @property
    def model_id(self) -> str | None:
        """Id of the model behind the proxy, which tells one run from another when a journal is resumed."""
        return str(self.proxy.model.id) if self.has_model else None

    def rollout(self, context: Any) -> Rollout:
        """Return the rollout of a context; all turns of one rollout have the same context."""
        with self._lock:
            known = self._open.get(id(context))
            if known is not None:
                self._open.move_to_end(id(context))
                return known[1]
            made = self.proxy.rollout(context)
            self._open[id(context)] = (context, made)  # the context is kept, so that its id stays its own
            old = [self._open.popitem(last=False)[1][1] for _ in range(len(self._open) - self._remember)]
        for rollout in old:
            rollout.close()
        return made

    def policy(self, name: str) -> dict[str, Any]:
        """Return what stands on the rows as the policy."""
        if not self.has_model:
            return {"name": name}
        return {"name": name, "model": str(self.proxy.model.id), "sampling": dict(self.proxy.sampling)}

    def environment(self, rollout: Rollout) -> dict[str, str]:
        """Return the variables in which a program finds its rollout."""
        here = ",".join([*filter(None, [os.environ.get("NO_PROXY", "")]), "127.0.0.1", "localhost"])
        out = {"WHILEAI_ROLLOUT": rollout.name, "NO_PROXY": here, "no_proxy": here}
        if rollout.tools:
            out["WHILEAI_MCP_URL"] = rollout.mcp_url
        if self.has_model:
            out["WHILEAI_BASE_URL"] = out["OPENAI_BASE_URL"] = out["OPENAI_API_BASE"] = rollout.base_url
            out["OPENAI_API_KEY"] = "whileai"  # clients insist on a key, and none is needed here
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return Driver, (self.proxy.model,)


_PUBLIC = ("task_id", "prompt", "system_prompt", "axes", "split")


def request_of(messages: Sequence[Message], context: Any, rollout: Rollout, has_model: bool) -> dict[str, Any]:
    """Return what a program or an endpoint is sent: the conversation, its tools, and where its rollout is.

    The state of the world is left out: an agent reads it through its tools.
    """
    out: dict[str, Any] = {
        "messages": [dict(m) for m in messages],
        "tools": [tool.to_openai() for tool in rollout.tools],
        "task": {key: context.task[key] for key in _PUBLIC if context.task.get(key) is not None},
        "rollout": {"name": rollout.name, "index": context.index, "seed": context.seed},
    }
    if rollout.tools:
        out["mcp_url"] = rollout.mcp_url
    if has_model:
        out["base_url"] = rollout.base_url
    return out


def read_reply(reply: Any, rollout: Rollout, messages: Sequence[Message], has_model: bool) -> Any:
    """Return what an agent answered as an agent of `simulate` returns it.

    What the proxy recorded is exact, so it wins over messages that the agent reports; what the agent says in the end
    (`final_text`, or a plain text) is said after them when it is something else.

    Raises:
        AgentError: It answered nothing, or reports a failure.
    """
    if isinstance(reply, Mapping) and reply.get("error"):
        raise AgentError(f"the agent reports: {str(reply['error'])[:1000]}")
    recorded = has_model and rollout.main is not None and bool(rollout.main.replies)
    if not recorded:
        if reply is None or (isinstance(reply, str) and not reply.strip()):
            raise AgentError("the agent answered nothing", fix="print the answer, or JSON with final_text or messages")
        return reply
    final = reply if isinstance(reply, str) else None
    if isinstance(reply, Mapping):
        final = reply.get("final_text")
        said = reply.get("messages")
        if final is None and isinstance(said, list) and said and isinstance(said[-1], Mapping):
            final = text_of(said[-1].get("content"))
    turn = rollout.turn(messages, final.strip() or None if isinstance(final, str) else None)
    last = (turn.get("messages") or [{}])[-1]
    if last.get("tool_calls") and "final_text" not in turn:
        raise AgentError("the agent stopped on a tool call", why="its model asked for a tool and nothing came after")
    if isinstance(reply, Mapping) and reply.get("outcome") == "truncated":
        turn["outcome"] = "truncated"
    return turn


def split_command(ref: str) -> list[str]:
    """Return the arguments of a command line, quotes and backslashes read as the system's shell reads them."""
    import shlex

    return shlex.split(ref, posix=os.name != "nt")
