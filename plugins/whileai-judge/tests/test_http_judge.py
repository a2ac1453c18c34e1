"""A judge over a real HTTP model: a loopback server that answers, refuses, or is slow; counts of its requests."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from whileai_judge import Judge, JudgeError, grade
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel import make, make_rows

pytest.importorskip("whileai_openai", reason="the HTTP models are another plugin")


@pytest.fixture
def server():
    """Starts a server that answers every request with `respond(body) -> (status, text or None)`."""
    running = []

    def start(respond):
        requests = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append(body)
                status, text = respond(body)
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                reply = {"id": "c", "model": "m", "choices": [choice], "usage": {"total_tokens": 3}}
                data = json.dumps(reply if status == 200 else {"error": {"message": "no"}}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        http.handle_error = lambda *args: None  # a client that gave up is part of the test
        threading.Thread(target=http.serve_forever, daemon=True).start()
        running.append(http)
        url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        return make("models", "endpoint", model="judge-1", base_url=url, retries=0), requests

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


def by_reply(body):
    prompt = body["messages"][-1]["content"]
    return 200, verdict_line(prompt, "PASS" if quoted_block(prompt).startswith("yes") else "FAIL")


def test_one_client_serves_two_runs_and_a_running_loop(server):
    model, requests = server(by_reply)
    judge = Judge("Says yes.", model)
    rows = make_rows([f"q{i}" for i in range(12)], ["yes" if i % 3 else "no" for i in range(12)])
    expected = [float(bool(i % 3)) for i in range(12)]

    async def notebook():
        return [row["reward"] for row in grade(rows, judge, concurrency=4)]

    assert [row["reward"] for row in grade(rows, judge, concurrency=4)] == expected
    assert asyncio.run(notebook()) == expected
    data = grade(rows, judge)
    assert [row["reward"] for row in data] == expected
    assert len(requests) == 36
    assert data[0]["evidence"]["usage"]["total_tokens"] == 3


def test_a_key_that_is_refused_costs_few_requests(server):
    model, requests = server(lambda body: (401, None))
    with pytest.raises(JudgeError, match="first 8 of 50"):
        grade(make_rows(["q"] * 50, ["x"] * 50), Judge("Is right.", model), concurrency=16)
    assert len(requests) <= 16


def test_a_slow_server_is_a_timeout_and_a_broken_one_an_error_and_no_row_is_lost(server):
    release = threading.Event()

    def respond(body):
        reply = quoted_block(body["messages"][-1]["content"])
        if reply == "slow":
            release.wait(20)
        return (500, None) if reply == "broken" else by_reply(body)

    model, _ = server(respond)
    try:
        rows = make_rows([f"q{i}" for i in range(4)], ["yes", "slow", "broken", "no"])
        data = grade(rows, Judge("Says yes.", model), deadline=1.0)
    finally:
        release.set()
    assert [row["reward"] for row in data] == [1.0, None, None, 0.0]
    assert [row["status"] for row in data] == ["ok", "timeout", "error", "ok"]
