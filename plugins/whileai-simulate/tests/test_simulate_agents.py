"""Agents of every arity, and what happens to every wrong return."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import validate_messages
from whileai_kernel.models import Rollout, from_row
from whileai_simulate import AgentFailedError, simulate
from whileai_simulate.agents import prepare

TOOL = {
    "name": "get_order",
    "kind": "read",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
}


def run(agent: Any, n: int = 2, **call: Any) -> list[dict[str, Any]]:
    call.setdefault("options", {"give_up_after": 0})
    call.setdefault("tools", [TOOL])
    return list(simulate(agent, situations=n, repeats=1, system_prompt="Be kind.", **call))


def by_message(message: str) -> str:
    assert isinstance(message, str)
    return f"got {message}"


def by_messages(messages: list[dict[str, Any]]) -> str:
    assert [m["role"] for m in messages] == ["system", "user"]
    return "ok"


def by_tools(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    assert tools[0]["function"]["name"] == "get_order"
    tools[0]["function"]["name"] = "vandal"
    return "ok"


def by_context(message: str, context: Any) -> str:
    assert "privileged" not in context.task
    assert context.seed >= 0
    assert context.index == 0
    assert context.tools[0].name == "get_order"
    return context.call_tool("get_order", '{"order_id": "X"}')


def only_context(*, context: Any) -> str:
    return context.tools[0](order_id="X")


async def by_async(messages: list[dict[str, Any]]) -> str:
    await asyncio.sleep(0)
    return "ok"


async def async_context(message: str, *, context: Any) -> str:
    return context.call_tool("get_order", {"order_id": "X"})


class Callable_:
    def __call__(self, message: str) -> str:
        return "ok"


class AsyncCallable:
    async def __call__(self, message: str) -> str:
        return "ok"


@pytest.mark.parametrize(
    "agent",
    [
        by_message,
        by_messages,
        by_tools,
        by_context,
        only_context,
        by_async,
        async_context,
        Callable_(),
        AsyncCallable(),
        functools.partial(lambda message, tone: f"{tone} {message}", tone="calm"),
        lambda m: "ok",
        lambda message: by_async([]),
    ],
)
def test_every_arity(agent: Any) -> None:
    rows = run(agent)
    assert [r["outcome"] for r in rows] == ["completed", "completed"], rows[0].get("error")
    assert rows[0]["tools"][0]["function"]["name"] == "get_order"
    assert all(r["final_text"] for r in rows)


def test_needs_that_nobody_meets_are_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="model"):
        prepare(lambda messages, tools, model: "x")
    with pytest.raises(ParameterError, match="callable"):
        prepare("text")
    with pytest.raises(ParameterError, match="instance"):
        simulate(Callable_)


def generator() -> Any:
    yield "a"


def cycle() -> Any:
    value: dict[str, Any] = {"final_text": "x"}
    value["steps"] = [value]
    return value


def deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return {"final_text": "x", "usage": value}


MALFORMED: dict[str, Any] = {
    "None": lambda: None,
    "bytes": lambda: b"hi",
    "NaN": lambda: float("nan"),
    "number": lambda: 7,
    "generator": generator,
    "cycle": cycle,
    "deep": deep,
    "empty text": lambda: "",
    "blank text": lambda: "  \n",
    "empty list": lambda: [],
    "empty dict": dict,
    "set": lambda: {"a"},
    "steps as text": lambda: {"steps": "text", "final_text": "x"},
    "step as text": lambda: {"steps": ["text"], "final_text": "x"},
    "steps without a final text": lambda: {"steps": []},
    "final text as number": lambda: {"final_text": 3},
    "NaN inside": lambda: {"final_text": "x", "usage": {"cost": float("nan")}},
    "role unknown": lambda: [{"role": "robot", "content": "x"}],
    "ends on the user": lambda: [{"role": "user", "content": "x"}],
    "messages of text": lambda: ["a", "b"],
    "content as number": lambda: [{"role": "assistant", "content": 5}],
    "unrelated object": object,
    "a class": lambda: dict,
    "an exception": lambda: ValueError("x"),
}


def of_kind(kind: str, make: Any) -> Any:
    """An agent of each kind that the engine drives in its own way, whose answer is made by `make`."""

    async def slow(message: str) -> Any:
        return make()

    class Inline:
        inline = True

        def __call__(self, message: str) -> Any:
            return make()

    class Trusted(Inline):
        trusted = True

    return {"async": slow, "sync": lambda message: make(), "inline": Inline(), "trusted": Trusted()}[kind]


KINDS = ["sync", "async", "inline", "trusted"]


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_return_is_a_failed_rollout_with_its_reason(name: str, kind: str) -> None:
    (row,) = run(of_kind(kind, MALFORMED[name]), 1)
    assert row["outcome"] == "failed"
    assert row["final_text"] is None
    assert row["error"]["type"] == "BadReturnError"
    assert row["error"]["message"]
    assert [m["role"] for m in row["messages"]] == ["system", "user"]
    assert row["reward"] is None
    from_row(row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ValueError, StopIteration, StopAsyncIteration, TimeoutError, RecursionError])
def test_whatever_an_agent_raises_is_a_failed_rollout(kind: str, error: type[Exception]) -> None:
    def make() -> Any:
        raise error("so it goes")

    (row,) = run(of_kind(kind, make), 1)
    assert row["outcome"] == "failed"
    assert "so it goes" in row["error"]["message"] or error is StopIteration  # a coroutine cannot raise it as it is
    assert row["ended_by"] == "error"
    from_row(row)


def test_good_returns() -> None:
    steps = {"steps": [{"tool": "get_order", "arguments": {"order_id": "1"}, "result": {"a": 1}}], "final_text": "done"}
    (row,) = run(lambda message: steps, 1)
    assert validate_messages(row["messages"]) == []
    assert row["final_text"] == "done"
    (row,) = run(lambda messages: [*messages, {"role": "assistant", "content": "hi"}], 1)
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant"]
    (row,) = run(lambda message: Rollout(final_text="from a rollout", usage={"total_tokens": 3}), 1)
    assert row["final_text"] == "from a rollout"
    assert row["usage"] == {"total_tokens": 3}
    (row,) = run(lambda message: {"final_text": "cut", "finish_reason": "length"}, 1)
    assert row["outcome"] == "truncated"


def test_calls_that_a_reply_ends_on_are_answered_from_the_world() -> None:
    def agent(messages: list[dict[str, Any]]) -> Any:
        if messages[-1]["role"] == "tool":
            return f"it says {messages[-1]['content'][:20]}"
        call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "X"}'}}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}]

    (row,) = run(agent, 1)
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert validate_messages(row["messages"]) == []
    assert row["world_log"]["calls"][0]["tool"] == "get_order"

    def for_ever(messages: list[dict[str, Any]]) -> Any:
        call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}]

    (row,) = run(for_ever, 1, options={"max_turns": 3, "give_up_after": 0})
    assert row["outcome"] == "truncated"
    assert row["ended_by"] == "max_turns"


def test_exceptions_are_failed_rollouts_and_the_rest_runs() -> None:
    count = iter(range(100))

    def flaky(message: str) -> str:
        if next(count) % 10 == 0:
            raise ValueError("a tenth fails")
        return "ok"

    data = simulate(flaky, tools=[TOOL], situations=40, repeats=1, concurrency=1)
    assert [r["outcome"] for r in data].count("failed") == 4
    assert data.report.failed == 4
    assert data.report.reasons == {"ValueError: a tenth fails": 4}


def test_system_exit_in_an_agent_is_its_failure() -> None:
    def leaver(message: str) -> str:
        raise SystemExit(3)

    assert run(leaver, 1)[0]["outcome"] == "failed"


def test_an_agent_that_only_fails_is_called_off_with_its_first_failure() -> None:
    calls = []

    def broken(message: str) -> str:
        calls.append(1)
        raise KeyError(f"number {len(calls)}")

    with pytest.raises(AgentFailedError, match="number 1"):
        simulate(broken, tools=[TOOL], situations=200, repeats=1, concurrency=1)
    assert len(calls) == 20


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_hanging_agent_meets_its_deadline_and_the_rest_runs(kind: str) -> None:
    release = threading.Event()
    first = threading.Lock()

    def hang(message: str) -> str:
        if first.acquire(blocking=False):
            release.wait(30)
        return "ok"

    async def ahang(message: str) -> str:
        if first.acquire(blocking=False):
            await asyncio.sleep(30)
        return "ok"

    try:
        rows = run(hang if kind == "sync" else ahang, 6, deadline_s=0.3, concurrency=1)
    finally:
        release.set()
    failed = [r for r in rows if r["outcome"] == "failed"]
    assert len(rows) == 6
    assert len(failed) == 1
    assert failed[0]["error"]["type"] == "DeadlineError"
    assert failed[0]["ended_by"] == "deadline"


def test_a_permanent_failure_ends_the_run_at_once() -> None:
    calls = []

    class KeyRefusedError(RuntimeError):
        permanent = True

    async def agent(message: str) -> str:
        calls.append(1)
        await asyncio.sleep(0)
        raise KeyRefusedError("401")

    with pytest.raises(AgentFailedError, match="401"):
        simulate(agent, tools=[TOOL], situations=50, repeats=1, concurrency=16)
    assert len(calls) <= 16


def test_cut_and_failed_rollouts_are_warned_about() -> None:
    count = iter(range(100))

    def agent(message: str) -> Any:
        if next(count) % 4 == 0:
            raise ValueError("x")
        return {"final_text": "cut", "finish_reason": "length"}

    data = simulate(agent, tools=[TOOL], situations=12, repeats=1, concurrency=1)
    assert any("9 of 12 rollouts (75%) were cut by a length" in w for w in data.warnings)
    assert any("3 of 12 rollouts failed, most often: ValueError: x" in w for w in data.warnings)
    with pytest.raises(ParameterError, match="system_prompt"):
        simulate(agent, tools=[TOOL], system_prompt=["no"])


@pytest.mark.parametrize("task_prompt", ["Help with orders.", ""])
@pytest.mark.parametrize("told", ["You are Ada.", None, "Help with orders."])
def test_a_row_shows_the_system_prompt_that_the_agents_model_was_given(task_prompt, told):
    """In the first turn the agent says so; in later ones it is in the conversation that it is asked about."""
    seen = []

    def agent(messages, tools):
        seen.append([m["role"] for m in messages])
        out = {"messages": [{"role": "assistant", "content": "It has shipped."}]}
        return {**out, "system_prompt": told} if len(messages) < 3 else out

    rows = simulate(agent, system_prompt=task_prompt, situations=2, repeats=1, user="scripted", seed=1)
    for row in rows:
        systems = [m["content"] for m in row["messages"] if m["role"] == "system"]
        assert systems == ([told] if told else [])
        assert row.get("system_prompt") == told
        assert row["messages"][len(systems)]["content"] == row["prompt"]
    assert any("assistant" in roles and (roles[0] == "system") == bool(told) for roles in seen) or len(seen) == 2


def test_a_system_prompt_that_is_no_text_fails_the_rollout():
    row = simulate(
        lambda message: {"final_text": "hi", "system_prompt": 3}, situations=1, options={"give_up_after": 0}
    )[0]
    assert row["outcome"] == "failed"
    assert "system_prompt must be text" in row["error"]["message"]
