"""Programs, endpoints and functions as agents: what they are sent, what they may answer, how they fail."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from whileai_agents import AgentError, EndpointAgent, FunctionAgent, ProgramAgent, Proxy, Scripted
from whileai_agents.agents import agent_of
from whileai_agents.program import read_output
from whileai_agents.rollout import new_messages
from whileai_agents.scripted import call, lookup
from whileai_kernel import resolve
from whileai_kernel.errors import ParameterError
from whileai_kernel.testing import ModelServer, Reply
from whileai_kernel.testing.acting import StubContext, reference_tools

MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "Where is order A-17?"}]


def ask(agent: Any, context: Any = None, messages: Any = MESSAGES) -> Any:
    return asyncio.run(agent([dict(m) for m in messages], context=context or StubContext()))


def program(code: str, **options: Any) -> ProgramAgent:
    return ProgramAgent([sys.executable, "-c", code], **options)


# -- programs -------------------------------------------------------------------------------------------------


def test_a_program_is_sent_its_conversation() -> None:
    sent = json.loads(ask(program("import sys; print('text: ' + sys.stdin.read())")).removeprefix("text: "))
    assert sent["messages"] == MESSAGES
    assert sent["tools"] == [tool.to_openai() for tool in reference_tools()]
    assert sent["task"] == {"task_id": "t", "prompt": "Where is order A-17?", "axes": {}}
    assert sent["rollout"] == {"name": "t.0", "index": 0, "seed": 0}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/r/t\.0/mcp", sent["mcp_url"])
    assert "base_url" not in sent, "no model was given"
    assert "world" not in sent["task"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It has shipped.\n", "It has shipped."),
        ('{"final_text": "yes"}', {"final_text": "yes"}),
        ('loading...\n{"messages": [{"role": "user"}]}\n', {"messages": [{"role": "user"}]}),
        ('[{"role": "assistant", "content": "yes"}]', [{"role": "assistant", "content": "yes"}]),
        ('{"status": "shipped"}', '{"status": "shipped"}'),
        ('See:\n{"status": "shipped"}', 'See:\n{"status": "shipped"}'),
        ("{not json", "{not json"),
        ("[1, 2]", "[1, 2]"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_program_may_write(written: str, read: Any) -> None:
    assert read_output(written) == read


def test_a_program_finds_its_model_and_no_real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-real-key")
    code = (
        "import os; print(os.environ['OPENAI_API_KEY'], os.environ['OPENAI_BASE_URL'], os.environ['WHILEAI_MCP_URL'])"
    )
    key, base_url, mcp_url = ask(program(code, model=Scripted(lookup))).split()
    assert key == "whileai"
    assert base_url.rpartition("/")[0] == mcp_url.rpartition("/")[0]
    assert ask(program("import os; print(os.environ['OPENAI_API_KEY'])")) == "sk-a-real-key"


def test_what_the_proxy_recorded_wins_over_what_a_program_reports() -> None:
    reported = "{'messages': [{'role': 'assistant', 'content': 'made up'}]}"
    code = ProgramAgent.example_params()["argv"][2].replace(
        "print(", f"print('debug'); print(json.dumps({reported}) or "
    )
    got = ask(program(code, model=Scripted(lambda messages, tools: "as the model said")))
    assert got["messages"] == [{"role": "assistant", "content": "as the model said"}]
    assert got["final_text"] == "made up", "what it says in the end is still its own"
    assert got["usage"] == {"prompt_tokens": 5, "completion_tokens": 4, "requests": 1}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ValueError('no such order')", "exit code 1: ValueError: no such order"),
        ("raise SystemExit(3)", "exit code 3: it wrote no reason"),
        ("pass", "answered nothing"),
        ('print(\'{"error": "out of luck"}\')', "out of luck"),
        ("print('x' * 2000)", "more than 1000 bytes"),
    ],
)
def test_a_program_that_fails_says_why(code: str, reason: str) -> None:
    with pytest.raises(AgentError, match=re.escape(reason)):
        ask(program(code, max_output=1000))


def test_a_program_that_is_not_there_is_a_permanent_failure() -> None:
    with pytest.raises(AgentError, match="cannot be started") as caught:
        ask(ProgramAgent(["no-such-program-4217"]))
    assert caught.value.permanent
    with pytest.raises(ParameterError):
        ProgramAgent("")


def test_a_deadline_kills_the_whole_process_group() -> None:
    """A child of the program and the program itself both hold a connection: it ends when both are dead."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        code = (
            "import socket, subprocess, sys\n"
            f"link = socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}))\n"
            "link.set_inheritable(True)\n"
            "child = [sys.executable, '-c', 'import threading; threading.Event().wait()']\n"
            "subprocess.Popen(child, close_fds=False)\n"
            "link.sendall(b'up')\n"
            "import threading; threading.Event().wait()\n"
        )

        async def main() -> bytes:
            work = asyncio.ensure_future(program(code)([dict(m) for m in MESSAGES], StubContext()))
            link, _ = await asyncio.to_thread(listening.accept)
            with link:
                link.settimeout(60)
                assert await asyncio.to_thread(link.recv, 2) == b"up"
                work.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await work
                return await asyncio.to_thread(link.recv, 1)

        assert asyncio.run(main()) == b""


# -- endpoints ------------------------------------------------------------------------------------------------


def test_an_endpoint_is_sent_its_conversation_and_a_key(monkeypatch: Any) -> None:
    monkeypatch.setenv("WHILEAI_AGENT_KEY", "sk-agent-0123456789abcdef")
    with ModelServer([{"final_text": "yes"}]) as server:
        assert ask(resolve("agents", f"{server.origin}/agent")) == {"final_text": "yes"}
    (request,) = server.requests
    assert request.body["messages"] == MESSAGES
    assert set(request.body) == {"messages", "tools", "task", "rollout", "mcp_url"}
    assert request.headers["authorization"] == "Bearer sk-agent-0123456789abcdef"


def test_an_endpoint_may_answer_in_text() -> None:
    with ModelServer([Reply(200, "  just text \n", {"content-type": "text/plain"})]) as server:
        assert ask(EndpointAgent(f"{server.origin}/agent")) == "just text"


@pytest.mark.parametrize(
    ("status", "body", "reason", "permanent"),
    [
        (500, b"down", "answered 500: down", False),
        (401, b"who are you, sk-agent-0123456789abcdef", "answered 401: who are you, [key]", True),
        (404, b"", "answered 404", True),
        (200, b'{"error": "no credit"}', "no credit", False),
        (200, b"", "answered nothing", False),
        (200, b"x" * 3000, "more than 2000 bytes", False),
    ],
)
def test_an_endpoint_that_fails_says_why_and_is_asked_once(
    status: int, body: bytes, reason: str, permanent: bool
) -> None:
    with ModelServer(lambda request: Reply(status, body)) as server:
        agent = EndpointAgent(f"{server.origin}/agent", headers={"x-key": "sk-agent-0123456789abcdef"}, max_output=2000)
        with pytest.raises(AgentError, match=re.escape(reason)) as caught:
            ask(agent)
    assert caught.value.permanent is permanent
    assert len(server.requests) == 1
    assert "sk-agent" not in f"{caught.value}{agent!r}"


def test_an_endpoint_that_is_not_there() -> None:
    with pytest.raises(AgentError, match="could not be reached"):
        ask(EndpointAgent("http://127.0.0.1:9/agent"))
    for url in ("ftp://x", "http://user:password@host/agent"):
        with pytest.raises(ParameterError) as caught:
            EndpointAgent(url)
        assert "password@" not in str(caught.value)


def test_a_chat_server_is_an_agent_whose_calls_the_engine_runs() -> None:
    with Proxy(Scripted(lookup, "served")) as running:
        agent = EndpointAgent(f"{running.base_url}#served")
        got = ask(agent)
    assert got["messages"][0]["tool_calls"][0]["function"]["name"] == "get_order"
    assert agent.policy["model"] == "served"
    assert "x-kind" not in json.dumps(running.rows()[0]["messages"])


# -- functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_drives_a_program_by_its_url(asynchronous: bool) -> None:
    import httpx

    def drive(messages: Any, rollout: Any) -> None:
        httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": messages}).raise_for_status()

    async def drive_async(messages: Any, rollout: Any) -> str:
        async with httpx.AsyncClient() as client:
            await client.post(f"{rollout.base_url}/chat/completions", json={"messages": messages})
        return "my own words"

    with Proxy(Scripted(lambda messages, tools: "done")) as running:
        got = ask(running.agent(drive_async if asynchronous else drive))
    assert got["messages"] == [{"role": "assistant", "content": "done"}]
    assert got.get("final_text") == ("my own words" if asynchronous else None)


def test_an_upstream_error_that_a_program_swallows_is_still_a_failure() -> None:
    import httpx

    class WrongKeyError(RuntimeError):
        status_code, permanent = 401, True

    def script(messages: Any, tools: Any) -> Any:
        raise WrongKeyError("wrong key")

    def drive(messages: Any, rollout: Any) -> None:
        httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": messages})

    with pytest.raises(AgentError, match="answered nothing"):
        ask(FunctionAgent(drive, Scripted(script)))


def test_a_loop_that_ends_on_a_call_is_a_failure() -> None:
    import httpx

    def drive(messages: Any, rollout: Any) -> None:
        httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": messages})

    with pytest.raises(AgentError, match="tool call"):
        ask(FunctionAgent(drive, Scripted(lambda messages, tools: call("get_order", {}))))


def test_turns_of_one_rollout_share_a_conversation() -> None:
    import httpx

    def drive(messages: Any, rollout: Any) -> None:
        httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": messages})

    with Proxy(Scripted(lambda messages, tools: f"reply {len(messages)}")) as running:
        agent, context = running.agent(drive), StubContext()
        first = ask(agent, context)
        more = [*MESSAGES, *first["messages"], {"role": "user", "content": "and A-18?"}]
        second = ask(agent, context, more)
        assert second["messages"] == [{"role": "assistant", "content": "reply 4"}]
        assert second["usage"]["requests"] == 1, "usage is that of the turn"
        assert len(running.rows()) == 1


def test_what_the_model_was_told_is_said() -> None:
    import httpx

    def drive(messages: Any, rollout: Any) -> None:
        own = [{"role": "system", "content": "own words"}, *messages[1:]]
        httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": own})

    assert ask(FunctionAgent(drive, Scripted(lambda m, t: "ok")))["system_prompt"] == "own words"


def test_what_tells_one_agent_from_another(tmp_path: Path) -> None:
    path = tmp_path / "my_agent.py"
    path.write_text("print(1)", encoding="utf-8")
    before = ProgramAgent(["python", str(path)])
    path.write_text("print(2)", encoding="utf-8")
    after = ProgramAgent(["python", "my_agent.py"], cwd=tmp_path)
    assert before.code != after.code
    assert ProgramAgent(["python", str(path)]).code == after.code
    assert ProgramAgent(["python", "x" * 5000, "a\0b"]).code
    assert ProgramAgent("a", Scripted(lookup, "one")).model_id == "one"


# -- references -----------------------------------------------------------------------------------------------


def test_references() -> None:
    assert resolve("agents", "exec:python my_agent.py --fast").argv == ("python", "my_agent.py", "--fast")
    assert resolve("agents", ["python", "my agent.py"]).argv == ("python", "my agent.py")
    assert resolve("agents", "http://127.0.0.1:1/agent").name == "http://127.0.0.1:1/agent"
    assert agent_of("something else") is None
    assert agent_of(print) is None, "a plain callable is an agent already"
    assert agent_of([1, 2]) is None
    with Proxy() as running, pytest.raises(ParameterError, match="no agent"):
        running.agent(42)


def test_recognition_imports_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from whileai_agents.plugin import wai_resolve\n"
        "class Agent: pass\n"
        "assert wai_resolve('agents', Agent()) is None\n"
        "heavy = {'agents', 'langgraph', 'pydantic_ai', 'openai', 'mcp', 'httpx', 'h11', 'pydantic'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.split() == []


def test_new_messages_of_a_conversation() -> None:
    own = [{"role": "system", "content": "own words in front"}]
    asked = [{"role": "user", "content": "q"}]
    reply = {"role": "assistant", "content": "a"}
    assert new_messages([*own, *asked, reply], [{"role": "system", "content": "s"}, *asked]) == [reply]
    wrapped = [{"role": "user", "content": "The customer says: q. Answer."}, reply]
    assert new_messages(wrapped, asked) == [reply]
    reworded = [{"role": "user", "content": "something else"}, reply]
    assert new_messages(reworded, asked, 1) == [reply]
    assert new_messages(reworded, asked) == []
