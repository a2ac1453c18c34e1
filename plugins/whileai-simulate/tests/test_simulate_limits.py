"""What an agent may do to a run, and a run to its agent: errors of every kind, deadlines, seconds, cancellation."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError
from whileai_kernel.tools import tool
from whileai_simulate import asimulate, simulate

PLAIN: dict[str, Any] = {"situations": 20, "repeats": 1, "progress": False, "concurrency": 4}
NEVER_OFF = {"options": {"give_up_after": 0}}


class Own(BaseException):
    """An error that is no `Exception`."""


@tool(kind="read")
def get_order(order_id: str) -> dict:
    """Look up an order."""
    raise NotImplementedError


def agent_of(kind: str, body: Callable[[], Any]) -> Any:
    """An agent of a kind that does something and answers."""
    if kind == "async":

        async def waits(message: str) -> str:
            body()
            return "ok"

        return waits
    if kind == "inline":

        class InPlace:
            inline = True

            def __call__(self, message: str) -> str:
                body()
                return "ok"

        return InPlace()

    def plain(message: str) -> str:
        body()
        return "ok"

    return plain


@pytest.mark.parametrize("kind", ["sync", "async", "inline"])
@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, GeneratorExit, Own, StopAsyncIteration])
def test_whatever_an_agent_raises_costs_its_rollout_alone(kind: str, error: type[BaseException]) -> None:
    calls = iter(range(10**6))

    def body() -> None:
        if next(calls) % 10 == 3:
            raise error("x")

    data = simulate(agent_of(kind, body), **PLAIN)
    failed = [row["error"]["type"] for row in data if row["outcome"] == "failed"]
    assert len(data) == 20 and failed == [error.__name__] * 2


@pytest.mark.parametrize("kind", ["sync", "async", "inline"])
def test_a_reply_after_the_deadline_is_late_whoever_gives_it(kind: str) -> None:
    """Also where the clock is not heard: a coroutine that blocks the loop, an agent that runs in place."""
    agent = agent_of(kind, lambda: threading.Event().wait(0.2))
    data = simulate(agent, **{**PLAIN, "situations": 2}, deadline_s=0.1, **NEVER_OFF)
    assert {row["ended_by"] for row in data} == {"deadline"} and {row["outcome"] for row in data} == {"failed"}


def test_a_swallowed_cancellation_is_no_way_around_the_deadline() -> None:
    async def agent(message: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "ok"

    data = simulate(agent, **{**PLAIN, "situations": 2}, deadline_s=0.1, **NEVER_OFF)
    assert {row["ended_by"] for row in data} == {"deadline"}


@pytest.mark.parametrize("kind", ["sync", "async", "swallowing"])
def test_what_is_in_flight_when_the_seconds_are_over_is_given_up(kind: str, tmp_path: Any) -> None:
    """None of these agents would ever end by itself, so that the run ends says that it gave them up."""
    hold = threading.Event()

    async def waits(message: str) -> str:
        await asyncio.Event().wait()
        return "ok"

    async def swallows(message: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "ok"
        return "ok"

    def blocks(message: str) -> str:
        hold.wait()
        return "ok"

    agent = {"async": waits, "sync": blocks, "swallowing": swallows}[kind]
    call = {**PLAIN, "deadline_s": None, "output": tmp_path / "rows.jsonl", "budget": {"seconds": 0.3}}
    data = simulate(agent, **call)
    hold.set()
    assert len(data) == 0 and data.report.stopped == "budget of 0.3 s" and data.report.rows == 0


def test_a_cancelled_run_asks_its_agent_no_more_and_can_go_on(tmp_path: Any) -> None:
    calls: list[str] = []
    two, go_on = threading.Event(), threading.Event()

    async def agent(message: str) -> str:
        calls.append(message)
        if not go_on.is_set():
            if len(calls) == 2:
                two.set()
            await asyncio.Event().wait()
        return "ok"

    call = {**PLAIN, "situations": 6, "concurrency": 2, "deadline_s": None, "output": tmp_path / "rows.jsonl"}

    async def main() -> int:
        task = asyncio.create_task(asimulate(agent, **call))
        await asyncio.to_thread(two.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held = len(calls)
        go_on.set()
        data = await asimulate(agent, **call)  # in the same context: an earlier cancellation does not end it
        assert len(data) == 6
        return held

    assert asyncio.run(main()) == 2 and len(calls) == 8


@pytest.mark.parametrize("order", ["the first ends first", "the last ends first"])
def test_runs_side_by_side_leave_the_collector_as_it_was(order: str) -> None:
    before = gc.get_threshold()
    begun = {name: threading.Event() for name in "ab"}
    go_on = {name: threading.Event() for name in "ab"}

    def agent_named(name: str) -> Any:
        def agent(message: str) -> str:
            begun[name].set()
            go_on[name].wait()
            return "ok"

        return agent

    runs = {
        name: threading.Thread(target=simulate, args=(agent_named(name),), kwargs={**PLAIN, "situations": 2})
        for name in "ab"
    }
    for name in "ab":
        runs[name].start()
        begun[name].wait()
    assert gc.get_threshold()[0] > before[0]
    for name in "ab" if order == "the first ends first" else "ba":
        assert gc.get_threshold()[0] > before[0]
        go_on[name].set()
        runs[name].join()
    assert gc.get_threshold() == before


@pytest.mark.parametrize("said", [10**400, -5, True, "many", None, float("1e300")])
@pytest.mark.parametrize("key", ["total_tokens", "prompt_tokens", "cost_usd"])
def test_usage_of_any_size_ends_no_run_and_pays_nothing_back(said: Any, key: str) -> None:
    data = simulate(lambda m: {"final_text": "x", "usage": {key: said}}, **{**PLAIN, "situations": 2})
    assert len(data) == 2 and data.report.tokens == 0 and data.report.usd == 0


@pytest.mark.parametrize("role", ["wizard", "system", "tool", "", None, 3, ["user"]])
def test_text_steps_have_roles_of_a_chat(role: Any) -> None:
    step = {"role": role, "text": "abra"}
    data = simulate(lambda m: {"steps": [step], "final_text": "x"}, **{**PLAIN, "situations": 2}, **NEVER_OFF)
    assert all(row["outcome"] == "failed" and "role" in row["error"]["message"] for row in data)


@pytest.mark.parametrize("choices", [[{}], "x", [None], {"a": 1}, [{"message": "hi"}], [{"message": None}], 7])
def test_a_bad_completion_says_what_is_bad(choices: Any) -> None:
    data = simulate(lambda m: {"choices": choices}, **{**PLAIN, "situations": 2}, **NEVER_OFF)
    assert all(row["error"]["type"] == "BadReturnError" and "choices" in row["error"]["message"] for row in data)


@pytest.mark.parametrize("agent", [lambda: "x", lambda **kw: "x", lambda *, tools: "x"])
def test_an_agent_that_takes_no_message_is_refused_at_once(agent: Any) -> None:
    with pytest.raises(ParameterError, match="takes no message"):
        simulate(agent, **PLAIN)


def test_tools_may_be_taken_by_keyword() -> None:
    seen = []

    def needs(messages: list, *, tools: list) -> str:
        seen.append((type(messages), tools[0]["function"]["name"]))
        return "ok"

    def may(message: str, *, tools: Any = None, context: Any) -> str:
        seen.append((type(message), tools[0]["function"]["name"]))
        return "ok"

    for agent in (needs, may):
        simulate(agent, tools=[get_order], **{**PLAIN, "situations": 1})
    assert seen == [(list, "get_order"), (str, "get_order")]


@pytest.mark.parametrize(
    ("judge", "state"), [(lambda row: 1.0, "stopped"), (lambda row: float(row["index"] % 2), "mixed")]
)
def test_groups_of_several_runs_tell_what_was_decided(judge: Any, state: str) -> None:
    data = simulate(
        lambda m: "x", situations=6, repeats=4, runs=2, judge=judge, repeat_policy="successive", progress=False
    )
    assert {group["state"] for group in data.groups.values()} == {state}
    asked = {"stopped": 2 * 2, "mixed": 2 * 4}[state]
    assert {(group["rollouts"], group["saved"]) for group in data.groups.values()} == {(asked, 8 - asked)}


@pytest.mark.parametrize("kind", ["plain", "reads the private part"])
def test_an_agent_cannot_change_the_task_through_its_context(kind: str) -> None:
    class Spoils:
        reads_privileged = kind != "plain"

        def __call__(self, message: str, *, context: Any) -> str:
            parts = [context.task["world"]["entities"], context.task["world"]["faults"], context.task["axes"]]
            if self.reads_privileged:
                parts += [context.privileged["plan"], context.privileged["goal"]]
            for part in parts:
                part.clear()
            context.task["tools"][0]["function"].clear()
            return "x"

    call: dict[str, Any] = {"tools": [get_order], "situations": 6, "repeats": 2, "progress": False}
    good, bad = simulate(lambda m: "x", **call), simulate(Spoils(), **call)
    for key in ("world", "axes", "tools", "privileged"):
        assert [row[key] for row in bad] == [row[key] for row in good]
