"""The client against a real server on loopback that misbehaves in every way that servers do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError, SettingsError
from whileai_kernel.registry import resolve
from whileai_kernel.testing import ModelServer, Reply, Request, completion_body
from whileai_openai import BudgetError, Cached, Ceilings, ChatModel, Metered, ModelError, from_spec

KEY = "sk-very-secret-4217"
ASK = [{"role": "user", "content": "Where is order A-17?"}]


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Request], Any]], ModelServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(ModelServer(answer))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from whileai_kernel.defaults import Sourced
    from whileai_openai import defaults

    monkeypatch.setattr(defaults, "WAIT_BASE_S", Sourced(0.001, "test", "test"))


def run(model: Any, *args: Any, **kwargs: Any) -> Any:
    """Complete once in a loop of its own, and close the connections."""

    async def once() -> Any:
        try:
            return await model.complete(*(args or (ASK,)), **kwargs)
        finally:
            inner = getattr(model, "inner", model)
            await getattr(inner, "inner", inner).aclose()

    return asyncio.run(once())


def model_at(server: ModelServer, **options: Any) -> ChatModel:
    return ChatModel("m", base_url=server.url, **{"api_key": KEY, "retries": 3, **options})


def test_a_reply_with_everything(serve: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"k":1}'}}
    reply = completion_body(
        {"content": None, "tool_calls": [call], "reasoning_content": "look it up"},
        logprobs={"content": [{"token": "x", "logprob": -0.1}]},
        token_ids=[5, 6],
    )
    server = serve(lambda request: {**reply, "prompt_token_ids": [1, 2, 3]})
    got = run(model_at(server, price=(1.0, 2.0)))
    assert got.message == {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "look it up"}
    assert (got.finish_reason, got.model, got.attempts) == ("tool_calls", "served", 1)
    assert got.usage["completion_tokens"] == 4
    assert got.cost_usd == pytest.approx((10 * 1.0 + 4 * 2.0) / 1e6)
    assert got.logprobs == [{"token": "x", "logprob": -0.1}]
    assert (got.prompt_ids, got.completion_ids) == ([1, 2, 3], [5, 6])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_unknown_price_is_unknown(serve: Any) -> None:
    assert run(model_at(serve(lambda request: "Shipped."))).cost_usd is None


def test_what_is_sent(serve: Any) -> None:
    server = serve(lambda request: "Shipped.")
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}, "x-kind": "read"}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "reasoning_content": "secret thought",
         "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "a", "content": "one", "is_error": True},
    ]  # fmt: skip
    schema = {"title": "verdict of", "type": "object", "properties": {"ok": {"type": "boolean"}}}
    run(model_at(server, max_tokens_key="max_completion_tokens", structured="json_schema",
                 sampling={"temperature": 0.5, "seed": None}),
        messages, [tool], {"max_tokens": 7}, schema=schema)  # fmt: skip
    body = server.requests[0].body
    assert body["tools"] == [{"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}]
    assert body["messages"][1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get", "arguments": "{}"}}],
    }
    assert body["messages"][2] == {"role": "tool", "content": "one", "tool_call_id": "a"}
    assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 7)
    assert "seed" not in body
    assert "max_tokens" not in body
    assert body["response_format"]["json_schema"] == {"name": "verdict_of", "schema": schema, "strict": False}


def test_always_429_costs_exactly_retries_plus_one(serve: Any) -> None:
    server = serve(lambda request: Reply(429, {"error": {"message": "slow down"}}))
    with pytest.raises(ModelError, match="429") as caught:
        run(model_at(server))
    assert len(server.requests) == 4
    assert (caught.value.kind, caught.value.attempts, caught.value.status_code) == ("rate_limited", 4, 429)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "bad"}, "bad_request"),
        (401, {"message": "no"}, "auth"),
        (403, {"message": "no"}, "auth"),
        (404, {"message": "no such model"}, "not_found"),
        (422, {"message": "bad"}, "bad_request"),
        (429, {"message": "pay", "code": "insufficient_quota"}, "quota"),
        (400, {"message": "x", "code": "context_length_exceeded"}, "context_length"),
        (400, {"message": "This model's maximum context length is 4096 tokens"}, "context_length"),
        (400, {"message": "request exceeds the available context size (2048 tokens)"}, "context_length"),
        (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice'}, "no_tools"),
    ],
)
def test_what_will_not_get_better_is_asked_once(serve: Any, status: int, error: dict[str, str], kind: str) -> None:
    server = serve(lambda request: Reply(status, {"error": error}))
    with pytest.raises(ModelError) as caught:
        run(model_at(server))
    assert len(server.requests) == 1
    assert (caught.value.kind, caught.value.attempts) == (kind, 1)
    assert caught.value.fix


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
def test_a_server_that_recovers(serve: Any, status: int) -> None:
    server = serve(lambda request: Reply(status, "oops") if request.number < 2 else "Shipped.")
    assert run(model_at(server)).attempts == 3
    assert len(server.requests) == 3


@pytest.mark.parametrize("header", [{"retry-after": "0.2"}, {"retry-after-ms": "200"}])
def test_retry_after_is_waited_for(serve: Any, header: dict[str, str]) -> None:
    server = serve(lambda request: Reply(429, {}, header) if request.number == 0 else "Shipped.")
    assert run(model_at(server)).attempts == 2
    assert server.requests[1].at_s - server.requests[0].at_s >= 0.2


def test_retry_after_beyond_the_deadline_fails_now(serve: Any) -> None:
    server = serve(lambda request: Reply(429, {}, {"retry-after": "3600"}))
    with pytest.raises(ModelError) as caught:
        run(model_at(server, deadline_s=30.0))
    assert (caught.value.kind, len(server.requests)) == ("rate_limited", 1)
    assert caught.value.retry_after == 3600


def test_an_unreadable_retry_after_is_as_good_as_none(serve: Any) -> None:
    server = serve(lambda request: Reply(503, {}, {"retry-after": "soon"}) if request.number == 0 else "Shipped.")
    assert run(model_at(server)).attempts == 2


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
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"content": "", "tool_calls": ["x"]}}]},
    ],
)
def test_a_malformed_reply_is_retried_and_then_said(serve: Any, payload: Any) -> None:
    server = serve(lambda request: Reply(body=payload))
    with pytest.raises(ModelError) as caught:
        run(model_at(server))
    assert (caught.value.kind, len(server.requests)) == ("malformed", 4)


def test_a_cut_stream_is_a_connection_failure(serve: Any) -> None:
    server = serve(lambda request: Reply(body='{"choices": [{"mess', cut=True) if request.number < 1 else "Shipped.")
    assert run(model_at(server)).attempts == 2


def test_nobody_listens() -> None:
    with pytest.raises(ModelError) as caught:
        run(ChatModel("m", base_url="http://127.0.0.1:9/v1", retries=1))
    assert (caught.value.kind, caught.value.attempts) == ("connection", 2)


def test_the_deadline_holds(serve: Any) -> None:
    release = threading.Event()

    def slow(request: Request) -> str:
        release.wait(10)
        return "Shipped."

    server = serve(slow)
    with pytest.raises(ModelError) as caught:
        run(model_at(server, deadline_s=0.2))
    release.set()
    assert (caught.value.kind, caught.value.attempts) == ("timeout", 1)


def test_a_wrong_key_stops_a_run_early(serve: Any) -> None:
    server = serve(lambda request: Reply(401, {"error": {"message": "bad key"}}))
    model = model_at(server, concurrency=16)

    async def all_of_them() -> list[Any]:
        try:
            return await asyncio.gather(*(model.complete(ASK) for _ in range(50)), return_exceptions=True)
        finally:
            await model.aclose()

    got = asyncio.run(all_of_them())
    assert all(isinstance(e, ModelError) and e.kind == "auth" for e in got)
    assert len(server.requests) <= 16


def test_concurrency_per_host_is_held(serve: Any) -> None:
    server = serve(lambda request: "Shipped.")
    models = [model_at(server, concurrency=3) for _ in range(2)]

    async def all_of_them() -> None:
        await asyncio.gather(*(models[i % 2].complete(ASK) for i in range(30)))
        for model in models:
            await model.aclose()

    asyncio.run(all_of_them())
    assert len(server.requests) == 30
    assert server.most_in_flight <= 3


def test_one_object_serves_several_loops(serve: Any) -> None:
    model = model_at(serve(lambda request: "Shipped."))
    assert run(model).attempts == run(model).attempts == 1


def test_tool_calls_in_other_shapes(serve: Any) -> None:
    calls = [{"function": {"name": "get", "arguments": {"k": 1}}}, {"name": "get", "arguments": "{}"}]
    server = serve(lambda request: completion_body({"content": "", "tool_calls": calls}, finish_reason="stop"))
    got = run(model_at(server)).message["tool_calls"]
    assert [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in got] == [
        ("call_0", "get", '{"k": 1}'),
        ("call_1", "get", "{}"),
    ]


def test_the_key_is_nowhere(serve: Any, caplog: pytest.LogCaptureFixture, tmp_path: Any) -> None:
    caplog.set_level(logging.DEBUG)
    server = serve(lambda request: Reply(400, {"error": {"message": f"you sent Bearer {KEY}"}}))
    model = model_at(server)
    texts = [repr(model), str(model), repr(model.key), str(vars(model))]
    with pytest.raises(ModelError) as caught:
        run(model)
    texts += [str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value))]
    texts += [repr(pickle.loads(pickle.dumps(caught.value))), caplog.text]
    good = serve(lambda request: f"echo {KEY}")
    cached = Cached(model_at(good), tmp_path / "cache.sqlite")
    texts.append(str(run(cached)))
    cached.close()
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()
    for text in texts:
        assert KEY not in text, text


def test_keys_are_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILEAI_API_KEY", KEY)
    model = from_spec("endpoint:m@http://127.0.0.1:1/v1")
    stored = pickle.dumps(model)
    assert KEY.encode() not in stored
    assert pickle.loads(stored).key.reveal() == KEY
    monkeypatch.delenv("WHILEAI_API_KEY")
    with pytest.raises(SettingsError, match="never pickled"):
        pickle.loads(stored)


def test_a_missing_key_is_said_before_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        from_spec("openai:gpt-5")


def test_a_key_with_a_line_end_is_refused() -> None:
    with pytest.raises(SettingsError, match="no header"):
        ChatModel("m", base_url="http://127.0.0.1:1/v1", api_key="sk-1\n")


@pytest.mark.parametrize(
    ("spec", "model", "url"),
    [
        ("vllm:Qwen/Qwen3-8B@http://h:8000/v1", "Qwen/Qwen3-8B", "http://h:8000/v1"),
        ("ollama:llama3.2:3b", "llama3.2:3b", "http://127.0.0.1:11434/v1"),
        ("endpoint:a@b@https://h/v1/", "a@b", "https://h/v1"),
    ],
)
def test_specs(spec: str, model: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    for made in (from_spec(spec), resolve("models", spec)):
        assert isinstance(made, ChatModel)
        assert (made.model, made.base_url) == (model, url)


@pytest.mark.parametrize("spec", ["opnai:x", "endpoint:x", "vllm:@http://h/v1"])
def test_specs_that_are_none(spec: str) -> None:
    with pytest.raises(ParameterError):
        from_spec(spec)


def test_cache_hits_make_no_request_and_repeats_differ(serve: Any, tmp_path: Any) -> None:
    server = serve(lambda request: f"reply {request.number}")
    path = tmp_path / "cache.sqlite"

    async def session(mode: str = "use") -> list[Any]:
        model = model_at(server)
        cached = Cached(model, path, mode)
        try:
            return [await cached.complete(ASK, repeat=i % 2) for i in range(4)]
        finally:
            cached.close()
            await model.aclose()

    first = asyncio.run(session())
    assert [r.message["content"] for r in first] == ["reply 0", "reply 1", "reply 0", "reply 1"]
    assert len(server.requests) == 2
    again = asyncio.run(session("replay"))
    assert [r.message for r in again] == [r.message for r in first]
    assert all(r.attempts == 0 for r in again)
    assert len(server.requests) == 2
    asyncio.run(session("refresh"))
    assert len(server.requests) == 6


def test_replay_says_what_is_missing(tmp_path: Any) -> None:
    cached = Cached(ChatModel("m", base_url="http://127.0.0.1:9/v1"), tmp_path / "c.sqlite", "replay")
    with pytest.raises(ModelError, match="not in") as caught:
        asyncio.run(cached.complete(ASK))
    assert caught.value.kind == "not_recorded"
    cached.close()


def test_ledger_counts_what_happened(serve: Any) -> None:
    server = serve(lambda request: Reply(500, "x") if request.number == 0 else "Shipped.")
    metered = Metered(model_at(server, price=(1.0, 1.0)))
    run(metered)
    run(metered)
    assert metered.ledger.to_dict() == {
        "requests": 3,
        "completions": 2,
        "failures": 0,
        "prompt_tokens": 20,
        "completion_tokens": 8,
        "cost_usd": pytest.approx(28e-6),
        "unpriced": 0,
        "refused": 0,
    }


def test_a_ceiling_stops_before_it_is_passed(serve: Any) -> None:
    server = serve(lambda request: "Shipped.")
    metered = Metered(model_at(server, retries=0, sampling={"max_tokens": 20}), Ceilings(tokens=100))
    model = metered.inner

    async def many() -> list[Any]:
        try:
            return await asyncio.gather(*(metered.complete(ASK) for _ in range(20)), return_exceptions=True)
        finally:
            await model.aclose()  # type: ignore[attr-defined]

    got = asyncio.run(many())
    assert any(isinstance(e, BudgetError) for e in got)
    assert metered.ledger.tokens <= 100
    assert metered.ledger.refused + metered.ledger.completions == 20
    assert len(server.requests) == metered.ledger.completions


def test_ceilings_that_cannot_be_held_are_refused_at_once() -> None:
    model = ChatModel("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ParameterError, match="price"):
        Metered(model, Ceilings(usd=1.0))
    with pytest.raises(ParameterError, match="max_tokens"):
        asyncio.run(Metered(model, Ceilings(tokens=10)).complete(ASK))


def test_importing_and_listing_needs_no_network_and_no_httpx() -> None:
    import subprocess
    import sys

    code = (
        "import socket, sys\n"
        "def no(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = no\n"
        "import whileai_openai\n"
        "from whileai_kernel.registry import entries\n"
        "print([e.id for e in entries('models')], 'httpx' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "openai/openai" in out
    assert out.strip().endswith("False")
