"""A judge over a real HTTP model: a loopback server that answers, refuses, or is slow; counts of its requests."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from whileai_judge import Judge, JudgeError, grade
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel import make, make_rows
from whileai_kernel.testing import ModelServer, Reply, completion_body

pytest.importorskip("whileai_openai", reason="the HTTP models are another plugin")


@pytest.fixture
def serve():
    """Starts a model server with `answer`, and gives a model of it beside the server."""
    with contextlib.ExitStack() as stack:

        def start(answer):
            server = stack.enter_context(ModelServer(answer))
            return make("models", "endpoint", model="judge-1", base_url=server.url, retries=0), server

        yield start


def by_reply(request):
    asked = request.body["messages"]
    verdict = "PASS" if quoted_block(asked).startswith("yes") else "FAIL"
    return completion_body(verdict_line(asked, verdict), usage=(2, 1))


def test_one_client_serves_two_runs_and_a_running_loop(serve):
    model, server = serve(by_reply)
    judge = Judge("Says yes.", model)
    rows = make_rows([f"q{i}" for i in range(12)], ["yes" if i % 3 else "no" for i in range(12)])
    expected = [float(bool(i % 3)) for i in range(12)]

    async def notebook():
        return [row["reward"] for row in grade(rows, judge, concurrency=4)]

    assert [row["reward"] for row in grade(rows, judge, concurrency=4)] == expected
    assert asyncio.run(notebook()) == expected
    data = grade(rows, judge)
    assert [row["reward"] for row in data] == expected
    assert len(server.requests) == 36
    assert data[0]["evidence"]["usage"]["total_tokens"] == 3


def test_a_key_that_is_refused_costs_few_requests(serve):
    model, server = serve(lambda request: Reply(401, {"error": {"message": "no"}}))
    with pytest.raises(JudgeError, match="first 8 of 50"):
        grade(make_rows(["q"] * 50, ["x"] * 50), Judge("Is right.", model), concurrency=16)
    assert len(server.requests) <= 16


def test_a_slow_server_is_a_timeout_and_a_broken_one_an_error_and_no_row_is_lost(serve):
    release = threading.Event()

    def respond(request):
        reply = quoted_block(request.body["messages"])
        if reply == "slow":
            release.wait(20)
        return Reply(500, {"error": {"message": "no"}}) if reply == "broken" else by_reply(request)

    model, _ = serve(respond)
    try:
        rows = make_rows([f"q{i}" for i in range(4)], ["yes", "slow", "broken", "no"])
        data = grade(rows, Judge("Says yes.", model), deadline=1.0)
    finally:
        release.set()
    assert [row["reward"] for row in data] == [1.0, None, None, 0.0]
    assert [row["status"] for row in data] == ["ok", "timeout", "error", "ok"]
