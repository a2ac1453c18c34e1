"""The engine: what runs while agents wait. Counts and orders, no clocks."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from whileai_kernel.tools import tool
from whileai_simulate import simulate, situations
from whileai_simulate.ahead import Ahead


@tool
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id."""
    ...


class Diary:
    """What happened, in order: `made` a task, `asked` the agent, `landed` a rollout."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        real = situations.task_of

        def task_of(*args: Any) -> Any:
            self.events.append("made")
            return real(*args)

        monkeypatch.setattr(situations, "task_of", task_of)

    def landed(self, done: int, planned: int) -> None:
        self.events.append("landed")

    def before(self, number: int) -> Counter[str]:
        """Count the events before the `number`-th rollout landed."""
        ends = [n for n, event in enumerate(self.events) if event == "landed"]
        return Counter(self.events[: ends[number - 1]])


class Held:
    """Agents that wait until all slots are taken and as many further tasks are made."""

    def __init__(self, diary: Diary, slots: int, tasks: int) -> None:
        self.diary, self.slots, self.tasks = diary, slots, tasks
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self.diary.events.append("asked")
            self._now += 1
            self.most = max(self.most, self._now)

    def leave(self) -> None:
        with self._lock:
            self._now -= 1

    def free(self) -> bool:
        seen = Counter(self.diary.events)
        return seen["asked"] >= self.slots and seen["made"] >= min(seen["asked"] + self.slots, self.tasks)

    async def anything(self, message: str) -> str:
        self.enter()
        for _ in range(20_000):
            if self.free():
                break
            await asyncio.sleep(0)
        self.leave()
        return "ok"

    def blocking(self, message: str) -> str:
        self.enter()
        for _ in range(20_000):
            if self.free():
                break
            threading.Event().wait(0.001)
        self.leave()
        return "ok"


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_all_slots_are_filled_and_the_next_tasks_are_made_while_agents_wait(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary(monkeypatch)
    held = Held(diary, 8, 32)
    agent = held.anything if kind == "async" else held.blocking
    simulate(agent, tools=[get_order], situations=32, repeats=1, concurrency=8, progress=diary.landed)
    assert held.most == 8
    first = diary.before(1)
    assert first["asked"] >= 8, "every slot has an agent before the first one lands"
    assert first["made"] >= 16, "a second wave of tasks is ready before the first wave lands"


def test_a_free_slot_is_filled_before_anything_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(monkeypatch)
    held = Held(diary, 4, 40)
    simulate(held.anything, tools=[get_order], situations=40, repeats=1, concurrency=4, progress=diary.landed)
    events = diary.events
    for n, event in enumerate(events):
        if event == "landed" and "asked" in events[n:]:
            between = events[n + 1 : n + events[n:].index("asked")]
            assert "made" not in between, "the next agent waited for a task to be made"


def test_no_more_is_made_ahead_than_there_is_use_for(monkeypatch: pytest.MonkeyPatch) -> None:
    diary = Diary(monkeypatch)
    held = Held(diary, 3, 30)
    simulate(held.anything, tools=[get_order], situations=30, repeats=1, concurrency=3, progress=diary.landed)
    made = landed = 0
    for event in diary.events:
        made += event == "made"
        landed += event == "landed"
        assert made <= landed + 3 + 3 + 1, "tasks pile up"


def test_ahead_keeps_order_and_raises_in_its_turn() -> None:
    def items() -> Any:
        yield from (1, 2)
        raise ValueError("three")

    ahead: Ahead[int] = Ahead(items(), room=9)
    assert [ahead.make() for _ in range(4)] == [True, True, False, False]
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(ahead)
    with pytest.raises(StopIteration):
        next(ahead)


# -- own tools of async agents --------------------------------------------------------------------------------


def meeting(parties: int) -> tuple[Any, Any]:
    """A tool, async and blocking, that returns only when as many calls of it are under way at once."""
    here: list[str] = []
    lock = threading.Lock()

    def arrive(order_id: str) -> bool:
        with lock:
            here.append(order_id)
            return len(here) >= parties

    async def waiting(order_id: str) -> str:
        arrive(order_id)
        for _ in range(5000):
            if len(here) >= parties:
                return f"met {order_id}"
            await asyncio.sleep(0.001)
        return "alone"

    def blocking(order_id: str) -> str:
        arrive(order_id)
        for _ in range(5000):
            if len(here) >= parties:
                return f"met {order_id}"
            threading.Event().wait(0.001)
        return "alone"

    return waiting, blocking


def by_messages(messages: list[dict[str, Any]]) -> Any:
    """The engine runs the call that this reply ends on."""
    if messages[-1]["role"] == "tool":
        return messages[-1]["content"]
    call = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "X"}'}}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}]


async def aby_messages(messages: list[dict[str, Any]]) -> Any:
    return by_messages(messages)


async def aby_context(message: str, *, context: Any) -> str:
    return str(await context.acall_tool("get_order", {"order_id": "X"}))


def by_context(message: str, *, context: Any) -> str:
    return str(context.call_tool("get_order", {"order_id": "X"}))


async def aby_tool(message: str, *, context: Any) -> str:
    value = context.tools[0].fn(order_id="X")
    return str(await value if asyncio.iscoroutine(value) else value)


@pytest.mark.parametrize("own", [0, 1], ids=["async tool", "blocking tool"])
@pytest.mark.parametrize("agent", [aby_messages, aby_context, by_messages, by_context])
def test_own_tools_of_one_rollout_do_not_hold_up_the_others(agent: Any, own: int) -> None:
    fn = meeting(4)[own]
    data = simulate(
        agent, tools=[get_order], situations=4, repeats=1, concurrency=4, options={"execute": {"get_order": fn}},
        axes={"tool_condition": ["success"], "tool": ["get_order"]},
    )  # fmt: skip
    assert [r["final_text"] for r in data] == ["met X"] * 4
    assert [len(r["world_log"]["calls"]) for r in data] == [1] * 4


def test_bound_tools_are_awaited_where_the_own_function_is() -> None:
    there = meeting(4)[0]

    @tool
    async def get_order(order_id: str) -> str:
        """Look up an order by id."""
        return str(await there(order_id))

    data = simulate(
        aby_tool, tools=[get_order], situations=4, repeats=1, concurrency=4,
        axes={"tool_condition": ["success"], "tool": ["get_order"]},
    )  # fmt: skip
    assert [r["final_text"] for r in data] == ["met X"] * 4


def test_a_blocking_call_of_an_async_tool_in_an_async_agent_says_what_to_await() -> None:
    async def agent(message: str, *, context: Any) -> str:
        return str(context.call_tool("get_order", {"order_id": "X"}))

    data = simulate(
        agent, tools=[get_order], situations=2, repeats=1, options={"execute": {"get_order": meeting(1)[0]},
        "give_up_after": 0}, axes={"tool_condition": ["success"], "tool": ["get_order"]},
    )  # fmt: skip
    assert {r["outcome"] for r in data} == {"failed"}
    assert all("coroutine function" in r["error"]["message"] for r in data)


@pytest.mark.parametrize("agent", [aby_messages, aby_context, by_context])
def test_an_own_tool_that_raises_answers_with_its_error(agent: Any) -> None:
    async def broken(order_id: str) -> str:
        raise KeyError(order_id)

    data = simulate(
        agent, tools=[get_order], situations=2, repeats=1, options={"execute": {"get_order": broken}},
        axes={"tool_condition": ["success"], "tool": ["get_order"]},
    )  # fmt: skip
    assert all("KeyError" in r["final_text"] for r in data)
    assert {c["effect"] for r in data for c in r["world_log"]["calls"]} == {"tool_error"}


@pytest.mark.parametrize("agent", [aby_messages, aby_context])
def test_a_hanging_tool_is_the_rollouts_deadline_and_not_the_users(agent: Any) -> None:
    async def hang(order_id: str) -> str:
        await asyncio.sleep(60)
        return "late"

    data = simulate(
        agent, tools=[get_order], situations=2, repeats=1, deadline_s=0.2,
        options={"execute": {"get_order": hang}, "give_up_after": 0},
        axes={"tool_condition": ["success"], "tool": ["get_order"]},
    )  # fmt: skip
    assert [r["error"]["type"] for r in data] == ["DeadlineError"] * 2
    assert all("by" not in r["error"] for r in data)


def test_a_blocking_judge_of_many_rollouts_is_asked_side_by_side() -> None:
    barrier = threading.Barrier(12)

    def judge(row: Any) -> float:
        barrier.wait(20)
        return 1.0

    async def agent(message: str) -> str:
        return "ok"

    data = simulate(agent, tools=[get_order], situations=12, repeats=1, concurrency=12, judge=judge)
    assert [r["reward"] for r in data] == [1.0] * 12
