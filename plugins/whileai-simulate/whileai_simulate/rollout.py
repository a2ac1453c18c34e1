"""One rollout: the task, the world made for it, the conversation, and the flat row that comes out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from whileai_kernel.rows import SCHEMA_VERSION
from whileai_kernel.tools import Tool
from whileai_simulate.agents import AgentContext, Conversation, Message, PreparedAgent, converse
from whileai_simulate.draw import hash64
from whileai_simulate.entities import Domain
from whileai_simulate.faults import Fault
from whileai_simulate.world import World

__all__ = ["Job", "Rollout", "Stage1", "TaskSlot"]


@dataclass(slots=True)
class TaskSlot:
    """A task with its place in the run.

    Attributes:
        position: Place in the run, from 0.
        task: The task part of a row.
        cache: Encoded reads, shared by the rollouts of the task.
    """

    position: int
    task: dict[str, Any]
    cache: dict[Any, Any] = field(default_factory=dict)


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
    models: Sequence[Any] = ()  # what holds connections of the engine's loop


class Rollout:
    """A rollout under way: its world, its context and its conversation."""

    __slots__ = ("at_user", "context", "job", "shared", "steps", "user", "world")

    def __init__(self, shared: Stage1, job: Job) -> None:
        task = job.slot.task
        self.shared, self.job = shared, job
        self.world = shared.make_world(shared.domain, task["world"], job.slot.cache, shared.execute, shared.faults)
        agent = shared.agent
        seed = hash64(shared.seed, task["task_id"], job.index)
        tools: list[Tool] = []
        if agent.context_name is not None and not agent.trusted:
            tools = [_bound(tool, self.world) for tool in shared.tools]
        shown = task if agent.reads_privileged else {k: v for k, v in task.items() if k != "privileged"}
        self.context = AgentContext(
            shown,
            self.world,
            seed,
            job.index,
            tools,
            shared.deadline_s,
            task["privileged"] if agent.reads_privileged else None,
        )
        opening = self.opening()
        self.at_user = False
        self.user = shared.make_user(task, job.index) if shared.make_user else None
        self.steps: Generator[Any, Any, Conversation] = converse(
            agent, opening, self.world, self.user, shared.max_turns
        )

    def run_sync(self, ask: Callable[[list[Message]], Any]) -> Conversation:
        """Run the whole conversation with a blocking `ask`."""
        try:
            messages = next(self.steps)
            while True:
                messages = self.steps.send(ask(messages))
        except StopIteration as stop:
            end: Conversation = stop.value
            return end

    def ask(self, messages: Any) -> Any:
        """Call the agent once, or hand over the answer of a user who has to be waited for."""
        self.at_user = type(messages) is not list
        if self.at_user:
            return messages
        return self.shared.agent.call(messages, self.context)

    def opening(self) -> list[Message]:
        """Return system prompt and ask, for a rollout that failed before it said anything."""
        task = self.job.slot.task
        system = [{"role": "system", "content": task["system_prompt"]}] if task.get("system_prompt") else []
        return [*system, {"role": "user", "content": task["prompt"]}]

    def row(self, end: Conversation) -> dict[str, Any]:
        """Return the flat row of the rollout; it shares the task's parts with the other rollouts of the task."""
        job, world = self.job, self.world
        task = job.slot.task
        task_id = task["task_id"]
        row: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "task_id": task_id,
            "rollout_id": _rollout_id(task_id, job.index, self.shared.agent.name, self.context.seed, end.final_text),
            "index": job.index,
            "prompt": task["prompt"],
            "final_text": end.final_text,
            "reward": None,
            "status": "missing",
            "markers": {},
        }
        for key in ("system_prompt", "tools", "axes", "world", "split", "lineage"):
            if task.get(key) is not None:
                row[key] = task[key]
        row["policy"] = self.shared.agent.policy
        row["messages"] = end.messages
        row["finish_reason"] = end.finish_reason
        row["outcome"] = end.outcome
        if end.error is not None:
            row["error"] = end.error
        if end.usage:
            row["usage"] = end.usage
        row.update(end.extra)
        row["faults_fired"] = world.fired
        if end.seeded is not None:
            row["seeded"] = end.seeded
        row["privileged"] = task["privileged"]
        row["world_log"] = {"calls": world.log, "changes": world.changes}
        row["ended_by"] = end.ended_by
        if self.user is not None and callable(told := getattr(self.user, "record", None)):
            row["user"] = told()
        if self.shared.runs > 1:
            row["run"] = job.run
        return row


def _rollout_id(*parts: object) -> str:
    """Return a content hash as `rows.content_id` does, without the detour over JSON (a tenth of a rollout's time)."""
    text = "\x1f".join([str(p) for p in parts])
    return "rollout_" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _bound(tool: Tool, world: World) -> Tool:
    """Return the tool with a function that runs it on the world of the rollout."""

    def call(**arguments: Any) -> str:
        return world.call(tool.name, arguments)

    return Tool(tool.name, tool.description, tool.parameters, tool.returns, tool.kind, fn=call, is_stub=False)
