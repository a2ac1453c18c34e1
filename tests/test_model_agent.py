"""A model behind a server on loopback as the agent of a simulation: the loop with a model in it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import whileai as wai
from whileai_kernel.testing import ModelServer, Reply, Request, completion_body

KEY = "sk-very-secret-4217"


class Clerk:
    """A model that looks the order up and says what it found."""

    status = 200

    def __call__(self, request: Request) -> Any:
        if self.status != 200:
            return Reply(self.status, {"error": {"message": f"no: {request.headers['authorization']}"}})
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return completion_body(f"I looked: {last['content'][:200]}", usage=(10, 2))
        order = re.search(r"[#A-Z]+[-_]?\d+[A-Z0-9-]*", last["content"])
        arguments = json.dumps({"order_id": order.group(0) if order else "A-1"})
        call = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": arguments}}
        return completion_body({"content": None, "tool_calls": [call]}, usage=(10, 2))


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def server(clerk: Clerk) -> Iterator[ModelServer]:
    with ModelServer(clerk) as running:
        yield running


@wai.tool(kind="read")
def get_order(order_id: str) -> dict[str, str]:
    """Look up an order by id."""
    raise NotImplementedError


def run(agent: Any, **options: Any) -> wai.SimulationData:
    arguments = {"tools": [get_order], "system_prompt": "Help with orders.", "situations": 6, "repeats": 2, "seed": 1}
    return wai.simulate(agent, **{**arguments, **options})


def test_a_spec_is_an_agent(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILEAI_API_KEY", KEY)
    data = run(f"endpoint:m@{server.url}")
    assert len(data) == 12
    assert {row["outcome"] for row in data} == {"completed"}
    for row in data:
        assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
        # two turns of 10 + 2 tokens: the usage of a rollout is that of all its turns
        assert (row["usage"]["prompt_tokens"], row["usage"]["completion_tokens"], row["usage"]["requests"]) == (
            20,
            4,
            2,
        )
        assert row["finish_reason"] == "stop"
        assert row["policy"]["model"] == f"endpoint:m@{server.url}"
    assert len(server.requests) == 24
    assert all("x-kind" not in json.dumps(request.body) for request in server.requests)
    assert KEY not in json.dumps(data.rows)
    assert KEY not in json.dumps(data.provenance, default=repr)


def test_in_a_running_loop_with_an_object(server: ModelServer) -> None:
    async def cell() -> wai.SimulationData:
        return run(wai.make("agents", "model", model=wai.Endpoint("m", base_url=server.url, api_key=KEY)))

    assert len(asyncio.run(cell())) == 12


def test_a_wrong_key_calls_the_run_off_early_and_shows_no_key(server: ModelServer, clerk: Clerk) -> None:
    clerk.status = 401
    agent = wai.make("agents", "model", model=wai.Endpoint("m", base_url=server.url, api_key=KEY))
    with pytest.raises(wai.WhileaiError) as caught:
        run(agent, situations=40, concurrency=4)
    assert "401" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) <= 16
