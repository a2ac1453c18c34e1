"""One rollout: the task, the world made for it, the conversation, and the flat row that comes out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from whileai_kernel.rows import SCHEMA_VERSION
from whileai_kernel.tools import Tool
from whileai_simulate.agents import AgentContext, PreparedAgent, ToolAnswer, converse, copied
from whileai_simulate.draw import hash64, mixed
from whileai_simulate.entities import Domain
from whileai_simulate.faults import Fault
from whileai_simulate.returns import Conversation, Message, Reply
from whileai_simulate.world import World

__all__ = ["Job", "Rollout", "Stage1", "TaskSlot"]


@dataclass(slots=True)
class TaskSlot:
    """A task with its place in the run.

    Attributes:
        position: Place in the run, from 0.
        task: The task part of a row.
        cache: Encoded reads and whole courses, shared by the rollouts of the task.
        head: The part of the row that all rollouts of the task share, made with the first row.
        start: Hash of the task and the seed of the run, from which its rollouts have their seeds.
    """

    position: int
    task: dict[str, Any]
    cache: dict[Any, Any] = field(default_factory=dict)
    head: dict[str, Any] | None = None
    start: int | None = None


@dataclass(slots=True)
class Job:
    """One rollout to do: a task, the number of the rollout within it, and the run it belongs to."""

    slot: TaskSlot
    index: int
    run: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Place of the row in the result."""
        return self.slot.position, self.index


@dataclass(slots=True)
class Stage1:
    """What every rollout of a run shares."""

    agent: PreparedAgent
    domain: Domain
    seed: int
    tools: list[Tool]
    execute: Mapping[str, Callable[..., Any]]
    max_turns: int
    deadline_s: float | None = None
    make_user: Callable[[Mapping[str, Any], int], Any] | None = None
    runs: int = 1
    grade: Callable[[dict[str, Any]], Any] | None = None
    make_world: Callable[..., World] = World
    faults: Mapping[str, Fault] | None = None
    waits: bool = False  # the user or the judge is asked over a network, so rollouts wait side by side
    grade_waits: bool = False  # the judge is a coroutine function, which needs no thread
    models: Sequence[Any] = ()  # what holds connections of the engine's loop


class Rollout:
    """A rollout under way: its world, its context and its conversation."""

    __slots__ = ("at_user", "context", "job", "shared", "user", "world")

    def __init__(self, shared: Stage1, job: Job) -> None:
        slot, agent = job.slot, shared.agent
        task = slot.task
        self.shared, self.job = shared, job
        self.world = world = shared.make_world(shared.domain, task["world"], slot.cache, shared.execute, shared.faults)
        tools: list[Tool] = []
        if agent.context_name is not None and not agent.trusted:
            tools = [_bound(tool, world, agent.is_async) for tool in shared.tools]
        shown = task if agent.reads_privileged else {k: v for k, v in task.items() if k != "privileged"}
        if slot.start is None:
            slot.start = hash64(shared.seed, task["task_id"])
        self.context = AgentContext(
            shown,
            world,
            mixed(slot.start, job.index),
            job.index,
            tools,
            shared.deadline_s,
            None if not agent.reads_privileged else task["privileged"] if agent.trusted else copied(task["privileged"]),
        )
        self.at_user = False
        self.user = shared.make_user(task, job.index) if shared.make_user else None

    def conversation(self) -> Generator[Any, Any, Conversation]:
        """Start the conversation; see `converse`."""
        shared = self.shared
        return converse(shared.agent, self.opening(), self.world, self.user, shared.max_turns)

    def run_sync(self, ask: Callable[[list[Message]], Any]) -> Conversation:
        """Run the whole conversation with a blocking `ask`."""
        if self.user is None and self.shared.agent.trusted:
            messages = self.opening()
            raw = ask(messages)
            if type(raw) is Reply and "tool_calls" not in raw.messages[-1]:
                return Conversation([*messages, *raw.messages], raw.final_text, raw.finish_reason, seeded=raw.seeded)
            steps = self.conversation()
            next(steps)
        else:
            steps = self.conversation()
            raw = ask(next(steps))
        while True:
            try:
                messages = steps.send(raw)
            except StopIteration as stop:
                end: Conversation = stop.value
                return end
            raw = ask(messages)

    def ask(self, messages: Any) -> Any:
        """Call the agent once, or hand over the answer of a user or a tool that has to be waited for."""
        if type(messages) is list:
            self.at_user = False
            return self.shared.agent.call(messages, self.context)
        self.at_user = type(messages) is not ToolAnswer
        return messages

    def opening(self) -> list[Message]:
        """Return system prompt and ask, for a rollout that failed before it said anything."""
        task = self.job.slot.task
        system = [{"role": "system", "content": task["system_prompt"]}] if task.get("system_prompt") else []
        return [*system, {"role": "user", "content": task["prompt"]}]

    def row(self, end: Conversation) -> dict[str, Any]:
        """Return the flat row of the rollout; it shares the task's parts with the other rollouts of the task."""
        job, world, shared = self.job, self.world, self.shared
        slot = job.slot
        if slot.head is None:
            slot.head = _head(slot.task, shared.agent.policy)
        row = slot.head.copy()
        row["rollout_id"] = _rollout_id(row["task_id"], job.index, shared.agent.name, self.context.seed, end.final_text)
        row["index"], row["final_text"], row["markers"], row["messages"] = job.index, end.final_text, {}, end.messages
        row["finish_reason"], row["outcome"] = end.finish_reason, end.outcome
        if end.error is not None:
            row["error"] = end.error
        if end.usage:
            row["usage"] = end.usage
        if end.extra:
            row.update(end.extra)
        first = end.messages[0]
        told = first["content"] if first["role"] == "system" else None
        if told != row.get("system_prompt"):  # the agent's model was given another one than the task's
            row.update(system_prompt=told) if told else row.pop("system_prompt")
        row["faults_fired"], row["ended_by"] = world.fired, end.ended_by
        row["world_log"] = {"calls": world.log, "changes": world.changes}
        if end.seeded is None:
            del row["seeded"]
        else:
            row["seeded"] = end.seeded
        if self.user is not None and callable(told := getattr(self.user, "record", None)):
            row["user"] = told()
        if shared.runs > 1:
            row["run"] = job.run
        return row


def _head(task: Mapping[str, Any], policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that every row of a task has; those of the rollout are still empty."""
    head: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION, "task_id": task["task_id"], "rollout_id": None, "index": 0,
        "prompt": task["prompt"], "final_text": None, "reward": None, "status": "missing", "markers": None,
    }  # fmt: skip
    for key in ("system_prompt", "tools", "axes", "world", "split", "lineage"):
        if task.get(key) is not None:
            head[key] = task[key]
    return {
        **head, "policy": policy, "messages": None, "finish_reason": None, "outcome": None, "faults_fired": None,
        "seeded": None, "privileged": task["privileged"], "world_log": None, "ended_by": None,
    }  # fmt: skip


def _rollout_id(task_id: str, index: int, name: str, seed: int, text: str | None) -> str:
    """Return a content hash as `rows.content_id` does, without the detour over JSON (a tenth of a rollout's time)."""
    parts = f"{task_id}\x1f{index}\x1f{name}\x1f{seed}\x1f{text}"
    return "rollout_" + sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _bound(tool: Tool, world: World, on_loop: bool) -> Tool:
    """Return the tool with a function that runs it on the world of the rollout.

    It is a coroutine function where the user's own is one and the agent can await it.
    """

    def call(**arguments: Any) -> str:
        return world.call(tool.name, arguments)

    async def acall(**arguments: Any) -> str:
        return await world.acall(tool.name, arguments)

    fn = acall if on_loop and inspect.iscoroutinefunction(tool.fn) and world.is_own(tool.name) else call
    return Tool(tool.name, tool.description, tool.parameters, tool.returns, tool.kind, fn=fn, is_stub=False)
