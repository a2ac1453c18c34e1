"""litellm itself against a real server on loopback that misbehaves in every way that servers do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from whileai_kernel.testing import ModelServer, Reply, Request, completion_body
from whileai_litellm import LiteLLMModel, ModelError, from_spec

pytest.importorskip("litellm", reason="litellm is not installed: pip install 'whileai-litellm[litellm]'")

pytestmark = pytest.mark.integration

KEY = "sk-very-secret-4217"
ASK = [{"role": "user", "content": "Where is order A-17?"}]


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Request], Any]], ModelServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(ModelServer(answer))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from whileai_kernel.defaults import Sourced
    from whileai_litellm import defaults

    monkeypatch.setattr(defaults, "WAIT_BASE_S", Sourced(0.001, "test", "test"))


@pytest.fixture(params=["openai/m", "hosted_vllm/m"])
def at(request: pytest.FixtureRequest) -> Callable[..., LiteLLMModel]:
    """Makes a model of a server, over both of litellm's transports."""

    def make(server: ModelServer, **options: Any) -> LiteLLMModel:
        given = {"base_url": server.url, "api_key": KEY, "retries": 3, **options}
        return from_spec(f"litellm:{request.param}", **given)

    return make


def run(model: LiteLLMModel, *args: Any, **options: Any) -> Any:
    return asyncio.run(model.complete(ASK, *args, **options))


def test_a_reply_with_everything(serve: Any, at: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"k":1}'}}
    logprobs = {"content": [{"token": "x", "bytes": [120], "logprob": -0.1, "top_logprobs": []}]}
    message = {"content": None, "tool_calls": [call], "reasoning_content": "look it up"}
    reply = completion_body(message, logprobs=logprobs)
    server = serve(lambda request: reply)
    got = run(at(server, price=(1.0, 2.0)), (), {"max_tokens": 7, "temperature": 0.5})
    assert got.message == {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "look it up"}
    assert (got.finish_reason, got.attempts) == ("tool_calls", 1)
    assert (got.usage["prompt_tokens"], got.usage["completion_tokens"]) == (10, 4)
    assert got.cost_usd == pytest.approx(18e-6)
    assert got.logprobs[0]["logprob"] == -0.1
    assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {KEY}"]
    assert (server.requests[0].body["max_tokens"], server.requests[0].body["temperature"]) == (7, 0.5)
    json.dumps(got.message)


def test_an_unknown_price_is_unknown_and_no_error(serve: Any, at: Any) -> None:
    model = at(serve(lambda request: "Shipped."))
    assert run(model).cost_usd is None
    assert model.price is None


def test_a_known_price_is_read_from_the_bundled_map_without_the_network() -> None:
    sent, received = from_spec("anthropic:claude-sonnet-4-5", api_key=KEY).price or (0.0, 0.0)
    assert 0 < sent < received


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "bad"}, "bad_request"),
        (401, {"message": "no"}, "auth"),
        (403, {"message": "no"}, "auth"),
        (404, {"message": "no such model"}, "not_found"),
        (422, {"message": "bad"}, "bad_request"),
        (429, {"message": "pay", "code": "insufficient_quota"}, "quota"),
        (400, {"message": "This model's maximum context length is 4096 tokens"}, "context_length"),
        (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice'}, "no_tools"),
    ],
)
def test_what_will_not_get_better_is_asked_once(
    serve: Any, at: Any, status: int, error: dict[str, str], kind: str
) -> None:
    server = serve(lambda request: Reply(status, {"error": error}))
    with pytest.raises(ModelError) as caught:
        run(at(server))
    assert (len(server.requests), caught.value.kind, caught.value.attempts) == (1, kind, 1)
    assert caught.value.status_code == status
    assert caught.value.fix


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limited"), (500, "server"), (503, "server"), (529, "server")])
def test_what_may_get_better_costs_exactly_retries_plus_one(serve: Any, at: Any, status: int, kind: str) -> None:
    server = serve(lambda request: Reply(status, {"error": {"message": "later"}}))
    with pytest.raises(ModelError) as caught:
        run(at(server))
    assert (len(server.requests), caught.value.attempts) == (4, 4)
    assert caught.value.kind == kind


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_server_that_recovers(serve: Any, at: Any, status: int) -> None:
    server = serve(lambda request: Reply(status, "oops") if request.number < 2 else "Shipped.")
    assert run(at(server)).attempts == len(server.requests) == 3


@pytest.mark.parametrize("header", [{"retry-after": "0.2"}, {"retry-after-ms": "200"}])
def test_retry_after_is_waited_for(serve: Any, at: Any, header: dict[str, str]) -> None:
    server = serve(
        lambda request: Reply(429, {"error": {"message": "x"}}, header) if request.number == 0 else "Shipped."
    )
    assert run(at(server)).attempts == 2
    assert server.requests[1].at_s - server.requests[0].at_s >= 0.2


def test_retry_after_beyond_the_deadline_fails_now(serve: Any, at: Any) -> None:
    server = serve(lambda request: Reply(429, {"error": {"message": "x"}}, {"retry-after": "3600"}))
    with pytest.raises(ModelError) as caught:
        run(at(server, deadline_s=30.0))
    assert (caught.value.kind, len(server.requests), caught.value.retry_after) == ("rate_limited", 1, 3600)


@pytest.mark.filterwarnings("ignore::UserWarning")  # pydantic, about the broken replies
@pytest.mark.parametrize(
    "payload",
    [
        "{not json",
        "",
        "[]",
        {"choices": []},
        {"choices": None},
        {"choices": "x"},
        {"choices": [{}]},
        {"choices": [{"message": "hi"}]},
        {"choices": [{"message": {"content": "", "tool_calls": ["x"]}}]},
    ],
)
def test_a_malformed_reply_is_retried_and_then_said(serve: Any, at: Any, payload: Any) -> None:
    server = serve(lambda request: Reply(body=payload))
    with pytest.raises(ModelError) as caught:
        run(at(server))
    assert (caught.value.kind, len(server.requests), caught.value.attempts) == ("malformed", 4, 4)


def test_a_cut_stream_is_retried(serve: Any, at: Any) -> None:
    server = serve(lambda request: Reply(body='{"choices": [{"mess', cut=True) if request.number < 1 else "Shipped.")
    assert run(at(server)).attempts == len(server.requests) == 2


def test_nobody_listens(at: Any, serve: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ModelError) as caught:
        run(at(serve(lambda request: "Shipped."), base_url=url, retries=1))
    assert (caught.value.kind, caught.value.attempts) == ("connection", 2)


def test_the_deadline_holds(serve: Any, at: Any) -> None:
    release = threading.Event()

    def slow(request: Request) -> str:
        release.wait(10)
        return "Shipped."

    server = serve(slow)
    run(at(serve(lambda request: "Shipped.")))  # what litellm imports on its first call
    with pytest.raises(ModelError) as caught:
        run(at(server, deadline_s=0.3))
    release.set()
    assert (caught.value.kind, caught.value.attempts) == ("timeout", 1)


def test_a_wrong_key_stops_a_run_early(serve: Any, at: Any) -> None:
    server = serve(lambda request: Reply(401, {"error": {"message": "bad key"}}))
    model = at(server, concurrency=8)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(model.complete(ASK) for _ in range(50)), return_exceptions=True)

    got = asyncio.run(all_of_them())
    assert all(isinstance(e, ModelError) and e.kind == "auth" for e in got)
    assert len(server.requests) <= 8


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_wrong_tool_calls_are_kept_for_the_engine_to_answer(serve: Any, at: Any) -> None:
    calls = [
        {"function": {"name": "get", "arguments": {"k": 1}}},
        {"id": "", "type": "function", "function": {"name": "nobody", "arguments": "{oops"}},
    ]
    server = serve(lambda request: completion_body({"content": "", "tool_calls": calls}, finish_reason="stop"))
    got = run(at(server)).message["tool_calls"]
    assert [(c["function"]["name"], c["function"]["arguments"]) for c in got] == [
        ("get", '{"k": 1}'),
        ("nobody", "{oops"),
    ]
    assert all(c["id"] for c in got)


def test_the_key_is_nowhere(serve: Any, at: Any, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    caplog.set_level(logging.INFO)
    server = serve(lambda request: Reply(400, {"error": {"message": f"you sent Bearer {KEY}"}}))
    model = at(server)
    with pytest.raises(ModelError) as caught:
        run(model)
    texts = [repr(model), str(vars(model)), str(caught.value), "".join(traceback.format_exception(caught.value))]
    good = at(serve(lambda request: f"echo {KEY}"))
    texts += [str(run(good)), caplog.text, *capfd.readouterr()]
    for text in texts:
        assert KEY not in text, text[:300]


def test_importing_it_makes_no_request_and_changes_no_environment_of_the_user(tmp_path: Any) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-dotenv\n", encoding="utf-8")
    code = (
        "import os, socket\n"
        "calls = []\n"
        "def no(*a, **k): calls.append(a); raise OSError('no network')\n"
        "socket.socket.connect = no\n"
        "socket.getaddrinfo = no\n"
        "from whileai_litellm.library import load\n"
        "load()\n"
        "print(len(calls), os.environ.get('OPENAI_API_KEY'))"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LITELLM", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=env
    )
    assert done.stdout.split() == ["0", "None"]


def test_a_missing_key_of_any_provider_is_found_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(ModelError, match="GROQ_API_KEY") as caught:
        run(from_spec("litellm:groq/llama-3.3-70b-versatile"))
    assert (caught.value.kind, caught.value.attempts) == ("auth", 0)


def test_one_object_serves_several_loops(serve: Any, at: Any) -> None:
    model = at(serve(lambda request: "Shipped."))
    assert [run(model).attempts for _ in range(3)] == [1, 1, 1]


def test_a_provider_with_a_wire_format_of_its_own(serve: Any) -> None:
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "get", "input": {"k": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 4},
    }
    slow = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    server = serve(
        lambda request: Reply(429, slow, {"retry-after": "0.05"}) if request.number == 0 else Reply(body=reply)
    )
    model = from_spec("anthropic:claude-sonnet-4-5", api_key=KEY, base_url=server.origin)
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {}}}}
    got = run(model, [tool], {"max_tokens": 9})
    assert (got.attempts, got.finish_reason) == (2, "tool_calls")
    assert got.message["content"] == "Looking."
    assert json.loads(got.message["tool_calls"][0]["function"]["arguments"]) == {"k": 1}
    assert (got.usage["prompt_tokens"], got.usage["completion_tokens"]) == (10, 4)
    assert got.cost_usd is not None  # the bundled map knows this one
    assert server.requests[1].body["max_tokens"] == 9
