"""The proxy over the wire: both APIs, errors with their status, keys, rollouts, a kill."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from whileai_agents import Proxy, Scripted, proxy
from whileai_agents.chat import read_chat
from whileai_agents.responses import read_responses, to_items, to_messages
from whileai_agents.scripted import call
from whileai_agents.server import HttpError
from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.messages import validate_messages
from whileai_kernel.models import from_row
from whileai_kernel.protocols import Completion
from whileai_kernel.rowio import read_rows

KEY = "sk-live-0123456789abcdef"


def echo(messages: Any, tools: Any) -> str:
    return f"You said: {messages[-1]['content']}"


def post(url: str, body: Any, headers: Mapping[str, str] = {}) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, dict(headers))) as reply:
        return reply.read().decode()


def chat(base_url: str, *messages: Any, **more: Any) -> Any:
    return json.loads(post(f"{base_url}/chat/completions", {"model": "m", "messages": list(messages), **more}))


def refused(url: str, body: Any, headers: Mapping[str, str] = {}) -> tuple[int, Any, Any]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(url, body, headers)
    return caught.value.code, json.loads(caught.value.read())["error"], caught.value.headers


ASK = {"role": "user", "content": "hi"}


# -- what is served -------------------------------------------------------------------------------------------


def test_models_are_listed() -> None:
    with proxy(Scripted(echo, "some-model")) as running:
        with urllib.request.urlopen(f"{running.base_url}/models") as reply:
            assert [m["id"] for m in json.load(reply)["data"]] == ["some-model"]
        with urllib.request.urlopen(f"{running.base_url}/models/some-model") as reply:
            assert json.load(reply)["id"] == "some-model"


def test_the_model_gets_what_was_asked() -> None:
    class Model:
        id = "m"
        asked: tuple[Any, ...] = ()

        async def complete(self, messages: Any, tools: Any = (), sampling: Any = None, *, schema: Any = None, deadline_s: Any = None) -> Completion:  # fmt: skip  # noqa: E501
            self.asked = (messages, tools, sampling, schema, deadline_s)
            return Completion({"role": "assistant", "content": "{}"}, "stop")

    model = Model()
    schema = {"type": "object"}
    with Proxy(model, sampling={"logprobs": True, "temperature": 1}, deadline_s=9.0) as running:
        more = {"temperature": 0, "max_completion_tokens": 5, "user": "u", "tool_choice": "auto"}
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        chat(running.base_url, ASK, response_format=wanted, **more)
    expected = {"logprobs": True, "temperature": 0, "max_tokens": 5}
    assert model.asked == ([ASK], [], expected, schema, 9.0)
    assert running.rows()[0]["policy"]["sampling"] == {"temperature": 0, "max_tokens": 5}


def test_logprobs_and_ids_are_recorded_and_passed_on() -> None:
    logprobs = [{"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": []}]

    def script(messages: Any, tools: Any) -> Completion:
        message = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
        return Completion(message, "stop", logprobs=logprobs, prompt_ids=[1, 2], completion_ids=[3], cost_usd=0.25)

    with proxy(Scripted(script)) as running:
        reply = chat(running.base_url, ASK, logprobs=True)
        events = post(f"{running.base_url}/responses", {"input": "hi", "stream": True})
    assert reply["choices"][0]["logprobs"]["content"] == logprobs
    assert reply["choices"][0]["message"]["reasoning_content"] == "hm"
    assert '"logprob": -0.5' in events
    row = running.rows()[0]
    assert row["logprobs"] == {
        "message": 1, "logprobs": logprobs, "prompt_token_ids": [1, 2], "completion_token_ids": [3],
    }  # fmt: skip
    assert row["usage"] == {"requests": 1, "cost_usd": 0.25}
    assert row["messages"][1]["reasoning_content"] == "hm"


def test_a_cut_reply_is_truncated() -> None:
    with proxy(Scripted(lambda m, t: Completion({"role": "assistant", "content": "a"}, "length"))) as running:
        assert chat(running.base_url, ASK)["choices"][0]["finish_reason"] == "length"
        response = json.loads(post(f"{running.base_url}/responses", {"input": "other"}))
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert {(row["outcome"], row["finish_reason"]) for row in running.rows()} == {("truncated", "length")}


def test_responses_keep_their_conversation_by_id() -> None:
    with proxy(Scripted(lambda messages, tools: f"{len(messages)} messages")) as running:
        first = json.loads(post(f"{running.base_url}/responses", {"input": "one", "instructions": "s"}))
        body = {"input": "two", "previous_response_id": first["id"], "instructions": "s"}
        second = json.loads(post(f"{running.base_url}/responses", body))
        status, error, _ = refused(f"{running.base_url}/responses", {"input": "x", "previous_response_id": "resp_9"})
    assert second["output"][0]["content"][0]["text"] == "4 messages"
    assert len(running.rows()) == 1
    assert [m["content"] for m in running.rows()[0]["messages"]] == ["s", "one", "2 messages", "two", "4 messages"]
    assert (status, "resp_9" in error["message"]) == (400, True)


def test_items_and_messages_are_inverse() -> None:
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in "ab"]
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Looking.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "done"},
    ]
    assert to_messages(to_items(messages)) == messages


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("chat", {"messages": []}),
        ("chat", {}),
        ("chat", {"messages": "hi"}),
        ("chat", {"messages": [{"role": "wizard", "content": "x"}]}),
        ("chat", {"messages": [7]}),
        ("chat", {"messages": [ASK], "n": 2}),
        ("chat", {"messages": [ASK], "tools": [{"type": "web_search"}]}),
        ("chat", {"messages": [ASK], "tools": [{"type": "function", "function": {"name": "no name!"}}]}),
        ("responses", {"input": 7}),
        ("responses", {"input": [7]}),
        ("responses", {"input": [{"type": "computer_call"}]}),
        ("responses", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
        ("responses", {"input": "x", "tools": [{"type": "web_search"}]}),
        ("responses", {"input": "x", "tool_choice": {"type": "file_search"}}),
        ("responses", {"input": "x", "background": True}),
    ],
)
def test_what_cannot_be_served_is_refused(api: str, body: dict[str, Any]) -> None:
    with pytest.raises(HttpError) as caught:
        read_chat(body) if api == "chat" else read_responses(body, {})
    assert caught.value.status == 400
    assert str(caught.value)


def test_odd_requests_leave_the_server_standing() -> None:
    with proxy(Scripted(echo)) as running:
        url = f"{running.base_url}/chat/completions"
        assert refused(url, b"{")[0] == 400
        assert refused(url, b"[1]")[0] == 400
        assert refused(f"{running.base_url}/nothing", b"{}")[0] == 404
        assert refused(f"{running.base_url}/embeddings", b"{}")[0] == 404
        for raw in (
            b"\x00\x01\x02\r\n\r\n",
            b"GET",
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 9\r\n\r\n{",
        ):
            with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))) as link:
                link.sendall(raw)
        assert chat(running.base_url, ASK)["choices"][0]["message"]["content"] == "You said: hi"
    assert len(running.rows()) == 1


def test_chunked_bodies_and_kept_connections() -> None:
    with proxy(Scripted(echo)) as running:
        link = http.client.HTTPConnection("127.0.0.1", int(running.url.rpartition(":")[2]))
        for n in range(3):
            body = json.dumps({"messages": [{"role": "user", "content": f"{n}"}]}).encode()
            link.request("POST", "/v1/chat/completions", iter([body[:10], body[10:]]), encode_chunked=True,
                         headers={"transfer-encoding": "chunked", "expect": "100-continue"})  # fmt: skip
            assert json.loads(link.getresponse().read())["choices"][0]["message"]["content"] == f"You said: {n}"
        link.close()


@pytest.mark.parametrize(
    "header", [("Origin", "https://evil.example"), ("Host", "evil.example:80"), ("Origin", "null")]
)
def test_web_pages_are_refused(header: tuple[str, str]) -> None:
    with proxy(Scripted(echo)) as running:
        status, _, _ = refused(f"{running.base_url}/chat/completions", {"messages": [ASK]}, dict([header]))
    assert status == 403
    assert running.rows() == []


def test_a_taken_port_and_a_wrong_model_are_said(tmp_path: Path) -> None:
    with proxy(Scripted(echo)) as running:
        port = int(running.url.rpartition(":")[2])
        with pytest.raises(ParameterError, match=str(port)), proxy(Scripted(echo), tmp_path / "r.jsonl", port=port):
            pass
    with pytest.raises(WhileaiError):
        Proxy("no-such-model")
    with pytest.raises(ParameterError, match="no model"):
        Proxy(lambda: None)


# -- failures -------------------------------------------------------------------------------------------------


class UpstreamError(RuntimeError):
    def __init__(
        self, status: int | None, kind: str, retry_after: float | None = None, permanent: bool = False
    ) -> None:
        super().__init__(f"upstream says {status} {kind}")
        self.status_code, self.kind, self.retry_after, self.permanent = status, kind, retry_after, permanent


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UpstreamError(429, "rate_limited", 7.0), 429),
        (UpstreamError(401, "auth", permanent=True), 401),
        (UpstreamError(400, "context_length"), 400),
        (UpstreamError(503, "server"), 503),
        (UpstreamError(200, "malformed"), 502),
        (UpstreamError(None, "connection"), 502),
        (UpstreamError(None, "timeout"), 504),
        (TimeoutError("slow"), 504),
        (RuntimeError("boom"), 500),
    ],
)
def test_errors_are_passed_on_with_their_status(error: Exception, status: int) -> None:
    def script(messages: Any, tools: Any) -> Any:
        raise error

    with proxy(Scripted(script)) as running:
        for path, body in (("chat/completions", {"messages": [ASK], "stream": True}), ("responses", {"input": "hi"})):
            got, said, headers = refused(f"{running.base_url}/{path}", body)
            assert got == status
            assert str(error) in said["message"]
            assert headers["x-should-retry"] == "false", "retries belong to the model"
            assert headers.get("retry-after") == ("7" if status == 429 else None)
    row = running.rows()[0]
    assert (row["outcome"], row["final_text"], row["reward"]) == ("failed", None, None)
    assert row["error"]["type"] == type(error).__name__
    assert row["messages"] == [ASK]
    assert row["conversation"]["failures"] == 2, "the second request is the same conversation's"


def test_a_second_try_mends_the_row() -> None:
    replies = iter([UpstreamError(503, "server"), "fine"])

    def script(messages: Any, tools: Any) -> Any:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with proxy(Scripted(script)) as running:
        refused(f"{running.base_url}/chat/completions", {"messages": [ASK]})
        chat(running.base_url, ASK)
    (row,) = running.rows()
    assert (row["outcome"], row["final_text"], "error" in row) == ("completed", "fine", False)
    assert row["conversation"] == {"number": 0, "requests": 2, "failures": 1}


def test_a_program_that_goes_away_is_a_failed_row() -> None:
    begun, over = threading.Event(), threading.Event()

    class Model:
        id = "slow"

        async def complete(self, messages: Any, tools: Any = (), sampling: Any = None, **_: Any) -> Completion:
            import asyncio

            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                over.set()
            raise AssertionError

    with proxy(Model()) as running:
        body = json.dumps({"messages": [ASK]}).encode()
        with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))) as link:
            link.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
            assert begun.wait(30)
        assert over.wait(30), "the model's work is called off"
    (row,) = running.rows()
    assert row["error"]["type"] == "ClientGoneError"


# -- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "api-key"])
def test_keys_that_a_program_sends_reach_no_row(header: str, tmp_path: Path, capfd: Any) -> None:
    """The key in the header, and again wherever a careless program or model repeats it."""

    def script(messages: Any, tools: Any) -> Any:
        if messages[-1]["content"] == "fail":
            raise RuntimeError(f"the server says: wrong key {KEY}")
        if messages[-1]["role"] == "user":
            return call("get", {"key": KEY})
        return f"your key is {KEY}"

    value = f"Bearer {KEY}" if header == "Authorization" else KEY
    out = tmp_path / "rows.jsonl"
    tool = {
        "type": "function",
        "function": {"name": "get", "description": f"use {KEY}", "parameters": {"type": "object"}},
    }
    with proxy(Scripted(script), out) as running:
        messages: list[Any] = [{"role": "system", "content": f"key: {KEY}"}, {"role": "user", "content": f"{KEY}?"}]
        body = {"messages": messages, "tools": [tool], "user": KEY, "metadata": {"key": KEY}, "api_key": KEY}
        for stream in (False, True):
            post(f"{running.base_url}/chat/completions", {**body, "stream": stream}, {header: value})
        answer = json.loads(post(f"{running.base_url}/chat/completions", body, {header: value}))
        message = answer["choices"][0]["message"]
        assert KEY in message["tool_calls"][0]["function"]["arguments"], "the program gets what the model said"
        more = [*messages, message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": KEY}]
        post(f"{running.base_url}/chat/completions?key={KEY}", {**body, "messages": more}, {header: value})
        status, error, _ = refused(
            f"{running.base_url}/responses", {"input": "fail", "instructions": KEY}, {header: value}
        )
        assert (status, KEY in error["message"]) == (500, False)
        assert KEY not in repr(running)
        assert KEY not in json.dumps(running.rows())
    assert KEY.encode() not in out.read_bytes()
    rows = list(read_rows(out))
    assert len(rows) == 4
    assert "[key]" in json.dumps(rows)
    assert KEY not in "".join(capfd.readouterr())


def test_a_placeholder_is_no_key() -> None:
    with proxy(Scripted(echo)) as running:
        post(f"{running.base_url}/chat/completions", {"messages": [{"role": "user", "content": "a - b"}]},
             {"Authorization": "Bearer -"})  # fmt: skip
    assert running.rows()[0]["prompt"] == "a - b"


# -- rollouts -------------------------------------------------------------------------------------------------


def test_rollouts_are_apart_and_their_helpers_are_linked() -> None:
    task = {"task_id": "t", "prompt": "the job", "privileged": {"reference": "SECRET-GOLD"}, "axes": {"a": 1}}
    with proxy(Scripted(echo)) as running:
        first, second = running.rollout(task=task), running.rollout(task=task)
        for rollout in (first, second):
            chat(rollout.base_url, {"role": "user", "content": "the job"})
        chat(first.base_url, {"role": "user", "content": "a helper's part"})
        chat(first.base_url, {"role": "user", "content": "the job"})
    main, other, helper, branch = running.rows()
    assert [r["task_id"] for r in (main, other, branch)] == ["t"] * 3
    assert [r["index"] for r in (main, other, branch)] == [0, 1, 0]
    assert helper["task_id"] != "t"
    assert helper["conversation"]["beside"] == main["rollout_id"]
    assert branch["conversation"]["branch_of"] == main["rollout_id"]
    assert branch["conversation"]["branch_at"] == 1
    assert len({r["rollout_id"] for r in running.rows()}) == 4
    assert main["axes"] == {"a": 1}
    assert "SECRET-GOLD" not in json.dumps(running.rows())
    for row in running.rows():
        from_row(row)
        assert validate_messages(row["messages"]) == []


def test_a_rollout_that_is_over_takes_no_more_requests() -> None:
    with proxy(Scripted(echo)) as running:
        with running.rollout(name="mine") as rollout:
            chat(rollout.base_url, ASK)
        assert refused(f"{rollout.base_url}/chat/completions", {"messages": [ASK]})[0] == 410
        with pytest.raises(ParameterError, match="mine"):
            running.rollout(name="mine")
        with pytest.raises(ParameterError):
            running.rollout(name="no/slash")
        chat(f"{running.url}/r/made-by-the-program/v1", ASK)
    assert [row["conversation"]["rollout"] for row in running.rows()] == ["mine", "made-by-the-program"]


def test_many_programs_at_once_lose_nothing(tmp_path: Path) -> None:
    def work(n: int) -> None:
        messages: list[Any] = [{"role": "user", "content": f"task {n}"}]
        for turn in range(4):
            messages.append(chat(running.base_url, *messages)["choices"][0]["message"])
            messages.append({"role": "user", "content": f"turn {turn}"})

    with proxy(Scripted(echo), tmp_path / "rows.jsonl") as running:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = running.rows()
    assert sorted(len(row["messages"]) for row in rows) == [8] * 12
    assert sum(row["usage"]["requests"] for row in rows) == 48


# -- the command ----------------------------------------------------------------------------------------------

MODEL = """
from whileai_agents import Scripted
model = Scripted(lambda messages, tools: f"reply {len(messages)}")
"""
COMMAND = """
import argparse, sys
from whileai_agents.cli import ProxyCommand
parser = argparse.ArgumentParser()
command = ProxyCommand()
command.add_arguments(parser)
sys.exit(command.run(parser.parse_args()))
"""


def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdout is not None
    said: dict[str, str] = {}
    for line in process.stdout:
        if line.startswith("recording to"):
            break
        name, _, value = line.strip().rpartition(" ")
        said[name.strip()] = value
    return process, said


def test_a_kill_loses_nothing_that_has_landed(tmp_path: Path) -> None:
    process, said = start(tmp_path, "--out", "rows.jsonl", "--model", "model.py:model")
    base_url = said["base URL"]
    for n in range(3):
        first = chat(base_url, {"role": "user", "content": f"task {n}"})["choices"][0]["message"]
        chat(base_url, {"role": "user", "content": f"task {n}"}, first, {"role": "user", "content": "more"})
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    rows = list(read_rows(tmp_path / "rows.jsonl"))
    assert [(row["prompt"], len(row["messages"]), row["final_text"]) for row in rows] == [
        (f"task {n}", 4, "reply 3") for n in range(3)
    ]
    process, said = start(tmp_path, "--out", "rows.jsonl", "--model", "model.py:model")
    chat(said["base URL"], {"role": "user", "content": "task 0"})
    process.send_signal(signal.SIGTERM if os.name == "posix" else signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.strip() == "4 rows in rows.jsonl"
    rows = list(read_rows(tmp_path / "rows.jsonl"))
    assert [row["index"] for row in rows] == [0, 0, 0, 1], "the second run goes on counting"
    assert len({row["rollout_id"] for row in rows}) == 4


def test_the_command_needs_something_to_serve(tmp_path: Path) -> None:
    import argparse

    from whileai_agents.cli import ProxyCommand

    parser = argparse.ArgumentParser()
    ProxyCommand().add_arguments(parser)
    with pytest.raises(ParameterError, match="nothing to serve"):
        ProxyCommand().run(parser.parse_args(["--out", str(tmp_path / "r.jsonl")]))


def test_worlds_from_the_shell(tmp_path: Path) -> None:
    """Tasks of a simulation, served to a program that only knows two URLs; faults happen and are recorded."""
    simulate = pytest.importorskip("whileai_simulate").simulate
    from whileai_kernel.testing.acting import reference_tools

    def nothing(message: str) -> str:
        return "hello"

    simulate(
        nothing,
        tools=reference_tools(),
        situations=12,
        repeats=1,
        seed=3,
        output=tmp_path / "tasks.jsonl",
        progress=False,
    )
    tasks = list(read_rows(tmp_path / "tasks.jsonl"))
    faulty = next(n for n, row in enumerate(tasks) if row["world"].get("faults"))
    tool = tasks[faulty]["world"]["faults"][0]["tool"]
    entity = next(iter(tasks[faulty]["world"]["entities"].values()))
    process, said = start(tmp_path, "--out", "rows.jsonl", "--model", "model.py:model", "--world", "tasks.jsonl")
    root = said["list of tasks"].removesuffix("/tasks")
    with urllib.request.urlopen(said["list of tasks"]) as reply:
        listed = json.load(reply)
    assert [task["prompt"] for task in listed] == [row["prompt"] for row in tasks]
    ask = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {"order_id": next(iter(entity))}},
    }
    results = []
    for name in (f"{faulty}", f"{faulty}.1"):
        result = json.loads(post(f"{root}/r/{name}/mcp", ask))["result"]["content"][0]["text"]
        results.append(result)
        chat(f"{root}/r/{name}/v1", {"role": "user", "content": tasks[faulty]["prompt"]})
    assert refused(f"{root}/r/999/v1/chat/completions", {"messages": [ASK]})[0] == 404
    process.send_signal(signal.SIGTERM if os.name == "posix" else signal.SIGINT)
    process.communicate(timeout=60)
    rows = list(read_rows(tmp_path / "rows.jsonl"))
    assert [(row["task_id"], row["index"]) for row in rows] == [(tasks[faulty]["task_id"], n) for n in (0, 1)]
    assert results[0] == results[1], "each try has a fresh world"
    assert [row["faults_fired"][0]["tool"] for row in rows] == [tool, tool]
    assert "privileged" not in rows[0]
