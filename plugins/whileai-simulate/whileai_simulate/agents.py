"""Agents of every arity: how one is called, and how what it returns becomes a conversation.

An agent is any callable, sync or async: `f(message)`, `f(messages)`, `f(messages, tools)`, each with a parameter
`context` if it wants one. It returns text, `{"steps": [...], "final_text": ...}`, messages, or a Rollout; a mapping may
hold `system_prompt`, what its model was told where that is not the task's. A reply that ends on tool calls is answered
from the world and the agent is asked again. Whatever else it returns is a failed rollout with the reason, never text.

Example:
    >>> prepare(lambda messages, tools: "hi").style
    'messages'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import parse_arguments, spoken_text
from whileai_kernel.protocols import MESSAGE_LISTS
from whileai_kernel.tools import Tool
from whileai_simulate.returns import Conversation, Message, Reply, failed, read_return
from whileai_simulate.users import UserFailure, ask_user
from whileai_simulate.world import World

__all__ = ["AgentContext", "PreparedAgent", "ToolAnswer", "converse", "copied", "prepare"]


class AgentContext:
    """What an agent may know about its rollout.

    Attributes:
        task: The task without its private part; the rollout's own copy, so that nothing done to it reaches another.
        world: The world of the rollout.
        tools: The tools, each bound to the world.
        seed: Seed of the rollout, in [0, 2**64).
        index: Number of the rollout within its task.
        deadline_s: Seconds that the rollout may take, or `None`.
        privileged: The private part of the task, for scripted agents that ask for it (`reads_privileged = True`).
    """

    __slots__ = ("_own", "_task", "deadline_s", "index", "privileged", "seed", "tools", "world")

    def __init__(
        self,
        task: Mapping[str, Any],
        world: World,
        seed: int,
        index: int,
        tools: Sequence[Tool] = (),
        deadline_s: float | None = None,
        privileged: Mapping[str, Any] | None = None,
    ) -> None:
        self._task, self._own = task, False
        self.world, self.seed, self.index, self.tools = world, seed, index, tools
        self.deadline_s, self.privileged = deadline_s, privileged

    @property
    def task(self) -> Mapping[str, Any]:
        """The task without its private part."""
        if not self._own:  # made when it is asked for: most agents read their messages alone
            self._task, self._own = copied(dict(self._task)), True
        return self._task

    @property
    def shared_task(self) -> Mapping[str, Any]:
        """The task as its other rollouts have it too, without a copy: to read, and never to change."""
        return self._task

    def plain_tools(self) -> list[dict[str, Any]]:
        """Return the tools as model servers take them, each time anew."""
        found: list[dict[str, Any]] = copied(list(self._task.get("tools") or ()))
        return found

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Call a tool in the world of the task and return the text of its result; faults happen here."""
        return self.world.call(name, parse_arguments(arguments))

    async def acall_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Do as `call_tool` without blocking the event loop, where an own function answers the tool."""
        return await self.world.acall(name, parse_arguments(arguments))


@dataclass(slots=True)
class PreparedAgent:
    """An agent with how it wants to be called.

    Attributes:
        fn: The callable.
        name: Name on the row.
        style: `message`, `messages` or `context` (nothing but the context).
        wants_tools: It takes the tools, as OpenAI tool dicts, as its second argument.
        tools_by_name: It takes them as a keyword argument instead.
        context_name: Name of the parameter that takes the context, or `None`.
        inline: Cheap and never blocking, so that it runs without a thread and without a deadline.
        is_async: It is a coroutine function.
        reads_privileged: It is a scripted agent that follows the private plan.
        trusted: Its `Reply` needs no checking.
    """

    fn: Callable[..., Any]
    name: str
    style: str
    wants_tools: bool = False
    tools_by_name: bool = False
    context_name: str | None = None
    inline: bool = False
    is_async: bool = False
    reads_privileged: bool = False
    trusted: bool = False
    policy: dict[str, Any] = field(default_factory=dict)

    def call(self, messages: list[Message], context: AgentContext) -> Any:
        """Call the agent on the conversation so far."""
        if self.trusted and self.style == "context":
            return self.fn(context=context)
        args: list[Any] = []
        named: dict[str, Any] = {}
        if self.style == "message":
            args.append(next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""))
        elif self.style == "messages":
            args.append([dict(m) for m in messages] if not self.trusted else messages)
        if self.wants_tools:
            if self.tools_by_name:
                named["tools"] = context.plain_tools()
            else:
                args.append(context.plain_tools())
        if self.context_name is not None:
            named[self.context_name] = context
        try:
            return self.fn(*args, **named)
        except StopIteration as err:
            # It would end the conversation, which is a generator, instead of failing the rollout.
            raise RuntimeError("the agent raised StopIteration (a next() without a default?)") from err


def copied(value: Any) -> Any:
    """Return JSON data with its own objects and arrays, several times faster than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copied(inner) for inner in value]
    return value


def prepare(agent: Any, name: str | None = None) -> PreparedAgent:
    """Read the signature of an agent.

    Args:
        agent: The callable. Attributes `inline`, `reads_privileged`, `trusted`, `name` and `policy` are honoured.
        name: Name on the row; by default the callable's own.

    Raises:
        ParameterError: It cannot be called, or it needs arguments that an agent is not given.
    """
    if not callable(agent):
        raise ParameterError(
            f"the agent must be callable, not {type(agent).__name__}",
            why="an agent is f(message), f(messages) or f(messages, tools)",
            fix="pass a function, or the name of a registered agent such as 'simulate/seeded'",
        )
    label = name or getattr(agent, "name", None) or getattr(agent, "__name__", None) or type(agent).__name__
    flags = {k: bool(getattr(agent, k, False)) for k in ("inline", "reads_privileged", "trusted")}
    call = agent if inspect.isroutine(agent) else getattr(agent, "__call__", agent)  # noqa: B004 - the bound method is wanted
    is_async = inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(call)
    policy = {"name": str(label), **dict(getattr(agent, "policy", None) or {})}
    try:
        params = list(inspect.signature(agent).parameters.values())
    except (TypeError, ValueError):
        params = [inspect.Parameter("message", inspect.Parameter.POSITIONAL_ONLY)]  # built in, and keeps it to itself
    context_name = next((p.name for p in params if p.name == "context"), None)
    plain = [p for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "context"]
    needed = [p for p in plain if p.default is p.empty]
    by_name = any(p.kind is p.KEYWORD_ONLY and p.name == "tools" for p in params)
    required_kw = [
        p for p in params
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty and p.name not in ("context", "tools")
    ]  # fmt: skip
    tools = len(plain) > 1 and (plain[1].name == "tools" or len(needed) > 1)
    if len(needed) > 2 or required_kw or (len(needed) == 2 and not tools):
        extra = [p.name for p in (*needed[2:], *required_kw)]
        raise ParameterError(
            f"agent {label} needs {', '.join(extra)}, which agents are not given",
            why="an agent is f(message), f(messages) or f(messages, tools), each with `context` if it wants one",
            fix="give the other parameters defaults, or bind them with functools.partial",
        )
    if not plain and not any(p.kind is p.VAR_POSITIONAL for p in params):
        if context_name is None:
            raise ParameterError(
                f"agent {label} takes no message",
                why="an agent is f(message), f(messages) or f(messages, tools), each with `context` if it wants one",
                fix="give it a parameter for the message",
            )
        style = "context"
    elif plain and (tools or plain[0].name in MESSAGE_LISTS or "list" in str(plain[0].annotation).lower()):
        style = "messages"
    else:
        style = "message"
    return PreparedAgent(
        agent, str(label), style, tools or by_name, by_name, context_name, is_async=is_async, policy=policy, **flags
    )


def converse(
    agent: PreparedAgent,
    opening: list[Message],
    world: World,
    user: Any | None,
    max_turns: int,
) -> Generator[Any, Any, Conversation]:
    """Run the conversation of one rollout: yields the messages to answer, is sent what the agent returned.

    A user who has to be waited for is yielded as an awaitable; what it comes to is sent back.

    Args:
        agent: The agent, prepared.
        opening: System prompt and ask.
        world: The world of the rollout.
        user: A user with `reply(spoken) -> str | None`, sync or async, or `None` for a single ask.
        max_turns: Replies of the agent before the rollout is truncated.
    """
    messages = list(opening)
    used: dict[str, Any] = {}
    for _ in range(max_turns):
        raw = yield messages
        if agent.trusted and type(raw) is Reply:
            messages += raw.messages
            if user is None:
                return Conversation(messages, raw.final_text, raw.finish_reason, seeded=raw.seeded)
            end = Conversation(messages, raw.final_text, raw.finish_reason, seeded=raw.seeded)
        else:
            end = read_return(raw, messages)
            messages, end.usage = end.messages, add_usage(used, end.usage)
            if end.outcome == "failed":
                return end
        calls = messages[-1].get("tool_calls") if messages[-1]["role"] == "assistant" else None
        if calls:
            if agent.style == "message":
                reason = "the agent returned a tool call, but it takes a single message and cannot see the result"
                return failed(messages, "BadReturnError", reason)
            for call in calls:
                answer = answer_call(world, call, agent.is_async)
                if type(answer) is ToolAnswer:
                    answer = yield answer
                messages.append({"role": "tool", "tool_call_id": call.get("id", ""), "content": answer})
            continue
        if end.outcome == "truncated":
            end.ended_by = "length"  # nobody answers half a sentence, and the row must say that it was cut
            return end
        if user is None:
            return end
        answer = ask_user(user, spoken_text(end.final_text))
        if inspect.isawaitable(answer):
            answer = yield answer
        if type(answer) is UserFailure:
            end.outcome, end.error, end.ended_by = "failed", answer.error, "error"
            return end
        if answer is None:
            end.ended_by = user.ended_by
            return end
        messages.append({"role": "user", "content": answer})
    return Conversation(messages, final_of(messages), "length", "truncated", usage=used, ended_by="max_turns")


def add_usage(total: dict[str, Any], turn: Mapping[str, Any]) -> dict[str, Any]:
    """Add the usage of a turn to that of the rollout: numbers are summed, whatever else a turn says replaces."""
    for name, value in turn.items():
        before = total.get(name)
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (before, value))
        total[name] = before + value if numbers else value
    return dict(total)


class ToolAnswer:
    """The awaited answer of an own tool; the engine tells it from that of a user."""

    def __init__(self, answer: Coroutine[Any, Any, str]) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, str]:
        return self._answer.__await__()


def answer_call(world: World, call: Mapping[str, Any], on_loop: bool) -> str | ToolAnswer:
    """Run one call of a message on the world; on an event loop, own tools are to be awaited."""
    function = call.get("function") or {}
    name, arguments = str(function.get("name", "")), parse_arguments(function.get("arguments"))
    return ToolAnswer(world.acall(name, arguments)) if on_loop and world.is_own(name) else world.call(name, arguments)


def final_of(messages: Sequence[Message]) -> str | None:
    """Return the last text that the assistant said, or `None`."""
    return next((m["content"] for m in reversed(messages) if m["role"] == "assistant" and m.get("content")), None)
