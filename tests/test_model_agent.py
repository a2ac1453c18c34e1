"""A model behind a server on loopback as the agent of a simulation: the loop with a model in it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import whileai as wai

KEY = "sk-very-secret-4217"


def scripted(body: dict[str, Any]) -> dict[str, Any]:
    """A model that looks the order up and says what it found."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return {"role": "assistant", "content": f"I looked: {last['content'][:200]}"}
    order = re.search(r"[#A-Z]+[-_]?\d+[A-Z0-9-]*", last["content"])
    arguments = json.dumps({"order_id": order.group(0) if order else "A-1"})
    call = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.fixture
def server() -> Iterator[dict[str, Any]]:
    seen: dict[str, Any] = {"requests": [], "status": 200}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen["requests"].append(body)
            reply: dict[str, Any] = {"error": {"message": f"no: {self.headers['authorization']}"}}
            if seen["status"] == 200:
                message = scripted(body)
                finish = "tool_calls" if message.get("tool_calls") else "stop"
                reply = {"model": "m", "choices": [{"message": message, "finish_reason": finish}]}
                reply["usage"] = {"prompt_tokens": 10, "completion_tokens": 2}
            raw = json.dumps(reply).encode()
            self.send_response(seen["status"])
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            return

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    seen["url"] = f"http://127.0.0.1:{httpd.server_port}/v1"
    yield seen
    httpd.shutdown()
    httpd.server_close()


@wai.tool(kind="read")
def get_order(order_id: str) -> dict[str, str]:
    """Look up an order by id."""
    raise NotImplementedError


def run(agent: Any, **options: Any) -> wai.SimulationData:
    arguments = {"tools": [get_order], "system_prompt": "Help with orders.", "situations": 6, "repeats": 2, "seed": 1}
    return wai.simulate(agent, **{**arguments, **options})


def test_a_spec_is_an_agent(server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILEAI_API_KEY", KEY)
    data = run(f"endpoint:m@{server['url']}")
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
        assert row["policy"]["model"] == f"endpoint:m@{server['url']}"
    assert len(server["requests"]) == 24
    assert all("x-kind" not in json.dumps(body) for body in server["requests"])
    assert KEY not in json.dumps(data.rows)
    assert KEY not in json.dumps(data.provenance, default=repr)


def test_in_a_running_loop_with_an_object(server: dict[str, Any]) -> None:
    async def cell() -> wai.SimulationData:
        return run(wai.make("agents", "model", model=wai.Endpoint("m", base_url=server["url"], api_key=KEY)))

    assert len(asyncio.run(cell())) == 12


def test_a_wrong_key_calls_the_run_off_early_and_shows_no_key(server: dict[str, Any]) -> None:
    server["status"] = 401
    agent = wai.make("agents", "model", model=wai.Endpoint("m", base_url=server["url"], api_key=KEY))
    with pytest.raises(wai.WhileaiError) as caught:
        run(agent, situations=40, concurrency=4)
    assert "401" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server["requests"]) <= 16
