"""What a server is asked for, what a run may use, and runs without a server: structured output, n, recordings."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion
from whileai_openai import Cached, Ceilings, ChatModel, Metered, ModelAgent, ModelError, Recorded, from_spec
from whileai_openai.wire import holds_strictly, request_body

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is order A-17?"}]
CLOSED = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def reply(*texts: str) -> dict[str, Any]:
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"} for text in texts]
    return {"model": "m", "choices": choices, "usage": {"prompt_tokens": 10, "completion_tokens": 4 * len(texts)}}


def model_of(seen: list[dict[str, Any]], *texts: str, **options: Any) -> ChatModel:
    """A model whose server answers with one text per choice, and what it was asked."""

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(200, json=reply(*(texts or (f"reply {len(seen)}",))))

    return ChatModel("m", base_url="http://127.0.0.1:9/v1", transport=httpx.MockTransport(answer), **options)


@pytest.mark.parametrize("spec", ["vllm:m", "ollama:m", "openai:m"])
def test_providers_that_hold_a_reply_to_a_schema_say_so(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert "json_schema" in from_spec(spec).capabilities


def test_an_unknown_server_is_not_believed_to() -> None:
    assert from_spec("endpoint:m@http://127.0.0.1:9/v1").capabilities == frozenset()
    told = from_spec("endpoint:m@http://127.0.0.1:9/v1", structured="json_schema")
    assert "json_schema" in told.capabilities
    with pytest.raises(ParameterError, match="did you mean 'json_schema'"):
        from_spec("endpoint:m@http://127.0.0.1:9/v1", structured="json-schema")


def test_only_what_is_supported_is_asked_for_and_the_rest_in_words() -> None:
    enforced = request_body("m", ASK, schema=CLOSED, structured="json_schema")
    assert enforced["response_format"]["json_schema"]["strict"] is True
    assert enforced["messages"] == ASK
    some = request_body("m", ASK, schema=CLOSED, structured="json_object")
    assert some["response_format"] == {"type": "json_object"}
    nothing = request_body("m", ASK, schema=CLOSED, structured="none")
    assert "response_format" not in nothing
    for body in (some, nothing):
        system, user = body["messages"]
        assert system["content"].startswith("Be brief.")
        assert json.dumps(CLOSED) in system["content"]
        assert user == ASK[1]
    first = request_body("m", ASK[1:], schema=CLOSED, structured="none")["messages"][0]
    assert first["role"] == "system"
    assert ASK[0]["content"] == "Be brief."
    assert request_body("m", ASK, structured="json_object") == {"model": "m", "messages": ASK}


@given(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")), st.booleans())
def test_strict_mode_is_claimed_only_where_it_is_taken(named: set[str], required: set[str], closed: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {n: {"type": "string"} for n in named}}
    schema |= {"required": sorted(required), "additionalProperties": not closed}
    assert holds_strictly(schema) == (closed and named == required)
    assert holds_strictly({"type": "array", "items": schema}) == holds_strictly(schema)


def test_n_replies_of_one_request_are_counted_once() -> None:
    seen: list[dict[str, Any]] = []
    model = model_of(seen, "a", "b", "c", price=(1.0, 1.0))
    got = asyncio.run(model.samples(ASK, 3, sampling={"temperature": 1.0, "logprobs": True}))
    assert [r.message["content"] for r in got] == ["a", "b", "c"]
    assert (seen[0]["n"], seen[0]["logprobs"]) == (3, True)
    assert [r.attempts for r in got] == [1, 0, 0]
    assert sum(r.usage.get("completion_tokens", 0) for r in got) == 12
    assert sum(r.cost_usd or 0.0 for r in got) == pytest.approx(22e-6)
    with pytest.raises(ParameterError, match="whole number"):
        asyncio.run(model.samples(ASK, 0))


@pytest.mark.parametrize("options", [{"sampling": {"n": 2}}, {}])
def test_complete_never_loses_replies(options: dict[str, Any]) -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(ParameterError, match="samples"):
        asyncio.run(model_of(seen, **options).complete(ASK, (), None if options else {"n": 2}))
    assert not seen


def test_an_estimate_is_a_bound_and_says_when_it_is_none() -> None:
    seen: list[dict[str, Any]] = []
    model = model_of(seen, "ok", price=(1.0, 2.0), sampling={"max_tokens": 20})
    metered = Metered(model, Ceilings(usd=1.0))
    for got in (model.estimate(10, ASK), metered.estimate(10, ASK), ModelAgent(metered).estimate(10, ASK)):
        assert (got.calls, got.bounded) == (10, True)
        assert got.tokens >= 10 * (10 + 20)
        assert got.usd is not None
        assert str(got) == f"10 calls, at most {got.tokens} tokens, at most ${got.usd:.4f}"
    for _ in range(10):
        asyncio.run(metered.complete(ASK))
    assert metered.ledger.tokens <= got.tokens
    assert metered.ledger.cost_usd <= got.usd
    open_ended = model_of(seen).estimate(2, ASK)
    assert not open_ended.bounded
    assert "without a bound" in str(open_ended)
    assert "cost unknown" in str(open_ended)


def test_an_error_of_another_plugin_is_counted_too() -> None:
    class Foreign:
        id = "foreign:m"

        async def complete(self, *args: Any, **options: Any) -> Completion:
            error = RuntimeError("no")
            error.attempts = 3  # type: ignore[attr-defined]
            raise error

    metered = Metered(Foreign())
    with pytest.raises(RuntimeError):
        asyncio.run(metered.complete(ASK))
    assert (metered.ledger.requests, metered.ledger.failures) == (3, 1)


def test_a_wrapped_model_keeps_what_it_can_do() -> None:
    model = model_of([], structured="json_schema", sampling={"max_tokens": 5})
    metered = Metered(Cached(model, ":memory:"))
    assert "json_schema" in metered.capabilities
    assert metered.sampling == {"max_tokens": 5}


def test_rollouts_of_one_task_are_samples_and_not_one_kept_reply(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def rollouts() -> list[str]:
        cached = Cached(model_of(seen), tmp_path / "c.sqlite")
        agent = ModelAgent(Metered(cached))
        out = [
            asyncio.run(agent(ASK, [], SimpleNamespace(index=i, seed=i)))["messages"][0]["content"] for i in range(3)
        ]
        cached.close()
        return out

    first = rollouts()
    assert len(set(first)) == 3
    assert rollouts() == first
    assert len(seen) == 3


def test_a_recording_needs_no_key_and_makes_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.sqlite"
    seen: list[dict[str, Any]] = []
    kept = Cached(model_of(seen, sampling={"temperature": 0.5}, extra={"top_k": 3}, api_key="sk-recorded"), path)
    first = asyncio.run(kept.complete(ASK, (), {"max_tokens": 8}))
    kept.close()
    assert b"sk-recorded" not in path.read_bytes()

    def no(*args: Any, **options: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", no)
    replayed = Recorded(path)
    assert replayed.id == "endpoint:m@http://127.0.0.1:9/v1"
    got = asyncio.run(replayed.complete(ASK, (), {"max_tokens": 8}))
    assert (got.message, got.attempts) == (first.message, 0)
    with pytest.raises(ModelError) as caught:
        asyncio.run(replayed.complete(ASK, (), {"max_tokens": 9}))
    assert caught.value.kind == "not_recorded"
    assert len(seen) == 1
    replayed.close()


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no recording"):
        Recorded(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    path = tmp_path / "two.sqlite"
    Cached(model_of([]), path).close()
    with pytest.raises(ParameterError, match="no replies"):
        Recorded(path)
    for name in ("one", "two"):
        inner = model_of([])
        inner.id = name
        cached = Cached(inner, path)
        asyncio.run(cached.complete(ASK))
        cached.close()
    with pytest.raises(ParameterError, match="replies of one, two"):
        Recorded(path)
    with pytest.raises(ParameterError, match="did you mean 'one'"):
        Recorded(path, "onne")
    assert Recorded(path, "two").id == "two"
