"""What holds without litellm: names, laziness, credentials, attempts, prices, and no key anywhere."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import MissingDependencyError, ParameterError, PluginError
from whileai_kernel.registry import make, resolve
from whileai_litellm import LiteLLMModel, ModelError, from_spec
from whileai_litellm.credentials import AWS, source_of
from whileai_litellm.failures import from_exception, secrets_of
from whileai_litellm.library import check_version
from whileai_litellm.wire import Malformed, parse, request

KEY = "sk-ant-very-secret-4217"
ASK = [{"role": "user", "content": "Where is order A-17?"}]
REPLY = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "Shipped."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 4},
}


class Raised(Exception):
    """An exception shaped as litellm's are."""

    def __init__(self, message: str, status: int | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.status_code, self.litellm_response_headers = message, status, headers


def asking(*answers: Any) -> tuple[list[dict[str, Any]], Any]:
    """A stand-in for `litellm.acompletion`: each call takes the next answer, the last one again and again."""
    seen: list[dict[str, Any]] = []

    async def ask(**asked: Any) -> Any:
        seen.append(asked)
        answer = answers[min(len(seen), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return seen, ask


def run(model: LiteLLMModel, **options: Any) -> Any:
    return asyncio.run(model.complete(ASK, **options))


@pytest.fixture(autouse=True)
def no_keys_and_short_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from whileai_kernel.defaults import Sourced
    from whileai_litellm import defaults

    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "FIREWORKS_API_KEY")
    for name in (*names, "FIREWORKS_AI_API_KEY", "AWS_SHARED_CREDENTIALS_FILE", *AWS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(defaults, "WAIT_BASE_S", Sourced(0.001, "test", "test"))


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("anthropic:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("bedrock:eu.anthropic.claude-v1:0", "bedrock/eu.anthropic.claude-v1:0"),
        ("gemini:gemini-3-pro", "gemini/gemini-3-pro"),
        ("fireworks:accounts/fireworks/models/q", "fireworks_ai/accounts/fireworks/models/q"),
        ("litellm:groq/llama-3.3", "groq/llama-3.3"),
    ],
)
def test_specs(spec: str, model: str) -> None:
    for made in (from_spec(spec), resolve("models", spec)):
        assert isinstance(made, LiteLLMModel)
        assert (made.id, made.model) == (spec, model)
    prefix, _, name = spec.partition(":")
    assert make("models", f"litellm/{prefix}", model=name).id == spec


@pytest.mark.parametrize("spec", ["antropic:x", "anthropic:", "litellm:two words"])
def test_specs_that_are_none(spec: str) -> None:
    with pytest.raises(ParameterError):
        from_spec(spec)


def test_a_spec_is_an_agent() -> None:
    pytest.importorskip("whileai_openai")
    agent = resolve("agents", "anthropic:claude-sonnet-4-5")
    assert agent.policy["model"] == "anthropic:claude-sonnet-4-5"


def test_importing_listing_and_making_needs_no_network_and_no_litellm() -> None:
    code = (
        "import socket, sys\n"
        "def no(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = no\n"
        "socket.getaddrinfo = no\n"
        "from whileai_kernel.registry import entries, resolve\n"
        "ids = [e.id for e in entries('models')]\n"
        "model = resolve('models', 'anthropic:claude-sonnet-4-5')\n"
        "repr(model), model.capabilities\n"
        "print('litellm/anthropic' in ids, 'litellm' in sys.modules, 'httpx' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "False", "False"]


@pytest.mark.parametrize("spec", ["anthropic:m", "bedrock:m", "gemini:m", "fireworks:m"])
def test_a_missing_key_is_said_before_any_request_and_for_good(spec: str) -> None:
    seen, ask = asking(REPLY)
    model = from_spec(spec, ask=ask)
    assert "no key found" in repr(model)
    for _ in range(2):
        with pytest.raises(ModelError, match="needs a key") as caught:
            run(model)
        assert (caught.value.kind, caught.value.permanent, caught.value.attempts) == ("auth", True, 0)
    assert not seen
    assert run(from_spec(spec, ask=ask, check_credentials=False)).attempts == 1


def test_where_a_key_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    seen, ask = asking(REPLY)
    model = from_spec("anthropic:m", ask=ask)
    assert repr(model) == "LiteLLM('anthropic:m', key from ANTHROPIC_AUTH_TOKEN)"
    assert run(model).attempts == 1
    assert "api_key" not in seen[0]
    file = tmp_path / ".aws" / "credentials"
    assert source_of(AWS) is None
    file.parent.mkdir()
    file.write_text("[default]\n", encoding="utf-8")
    assert source_of(AWS) == "the AWS credentials file"


def test_one_request_is_asked_for_per_attempt_and_nobody_else_retries() -> None:
    seen, ask = asking(REPLY)
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}, "x-kind": "read"}
    model = from_spec("anthropic:m", ask=ask, api_key=KEY, sampling={"temperature": 0.5, "seed": None})
    got = run(model, tools=[tool], sampling={"max_tokens": 7})
    assert (got.message, got.finish_reason, got.cost_usd) == (
        {"role": "assistant", "content": "Shipped."},
        "stop",
        None,
    )
    asked = seen[0]
    assert (asked["max_retries"], asked["model"], asked["api_key"]) == (0, "anthropic/m", KEY)
    assert (asked["temperature"], asked["max_tokens"]) == (0.5, 7)
    assert not {"num_retries", "seed"} & set(asked)
    assert "x-kind" not in asked["tools"][0]
    assert 0 < asked["timeout"] <= 120


def test_transient_failures_cost_exactly_retries_plus_one() -> None:
    seen, ask = asking(Raised("slow down", 429))
    with pytest.raises(ModelError) as caught:
        run(from_spec("anthropic:m", ask=ask, api_key=KEY, retries=3))
    assert (len(seen), caught.value.attempts, caught.value.kind) == (4, 4, "rate_limited")


def test_a_provider_that_recovers_is_counted() -> None:
    seen, ask = asking(Raised("oops", 503), Raised("oops", 500), REPLY)
    assert run(from_spec("anthropic:m", ask=ask, api_key=KEY)).attempts == len(seen) == 3


@pytest.mark.parametrize(("name", "value", "seconds"), [("Retry-After", "0.05", 0.05), ("retry-after-ms", "50", 0.05)])
def test_retry_after_is_waited_for(name: str, value: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(wait: float) -> None:
        waits.append(wait)
        await sleep(0)

    monkeypatch.setattr("whileai_litellm.model.asyncio.sleep", noted)
    _, ask = asking(Raised("slow", 429, {name: value}), REPLY)
    assert run(from_spec("anthropic:m", ask=ask, api_key=KEY)).attempts == 2
    assert waits == [pytest.approx(seconds)]


def test_retry_after_beyond_the_deadline_fails_now() -> None:
    seen, ask = asking(Raised("slow", 429, {"retry-after": "3600"}))
    with pytest.raises(ModelError) as caught:
        run(from_spec("anthropic:m", ask=ask, api_key=KEY))
    assert (len(seen), caught.value.retry_after) == (1, 3600)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Raised("no", 401), "auth"),
        (Raised("no", 403), "auth"),
        (Raised("what model", 404), "not_found"),
        (Raised("bad", 400), "bad_request"),
        (Raised("bad", 422), "bad_request"),
        (Raised("maximum context length is 4096 tokens", 400), "context_length"),
        (Raised("tools are not supported", 400), "no_tools"),
        (Raised("insufficient_quota", 429), "quota"),
    ],
)
def test_what_will_not_get_better_is_asked_once(error: Raised, kind: str) -> None:
    seen, ask = asking(error)
    model = from_spec("anthropic:m", ask=ask, api_key=KEY)
    with pytest.raises(ModelError) as caught:
        run(model)
    assert (len(seen), caught.value.kind, caught.value.attempts) == (1, kind, 1)
    assert caught.value.fix
    with pytest.raises(ModelError):
        run(model)
    assert len(seen) == (1 if caught.value.permanent else 2)


def test_the_deadline_holds() -> None:
    async def never(**asked: Any) -> Any:
        await asyncio.Event().wait()

    with pytest.raises(ModelError) as caught:
        run(from_spec("anthropic:m", ask=never, api_key=KEY, deadline_s=0.05))
    assert (caught.value.kind, caught.value.attempts) == ("timeout", 1)


def test_a_price_that_is_given_prices_a_reply() -> None:
    _, ask = asking(REPLY)
    assert run(from_spec("anthropic:m", ask=ask, api_key=KEY, price=(1.0, 2.0))).cost_usd == pytest.approx(18e-6)


def test_a_schema_is_enforced_where_the_provider_does_and_asked_for_in_words_elsewhere() -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    seen, ask = asking(REPLY)
    run(from_spec("gemini:m", ask=ask, api_key=KEY), schema=schema)
    assert seen[0]["response_format"]["json_schema"]["schema"] == schema
    assert "json_schema" in from_spec("gemini:m").capabilities
    run(from_spec("litellm:x/m", ask=ask, api_key=KEY), schema=schema)
    assert "response_format" not in seen[1]
    assert '"properties"' in seen[1]["messages"][0]["content"]
    assert from_spec("litellm:x/m").capabilities == frozenset()


def test_the_key_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "sk-of-another-1")
    _, ask = asking(Raised(f"you sent {KEY} and sk-of-another-1", 400))
    model = from_spec("anthropic:m", ask=ask, api_key=KEY)
    with pytest.raises(ModelError) as caught:
        run(model)
    texts = [repr(model), str(vars(model)), str(caught.value), repr(caught.value)]
    texts += ["".join(traceback.format_exception(caught.value)), str(pickle.loads(pickle.dumps(caught.value)))]
    echo = {**REPLY, "choices": [{"message": {"role": "assistant", "content": f"echo {KEY}"}}]}
    texts.append(str(run(from_spec("anthropic:m", ask=asking(echo)[1], api_key=KEY))))
    for text in texts:
        assert KEY not in text
        assert "sk-of-another-1" not in text
    model._ask = None
    assert KEY.encode() not in pickle.dumps(model)


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.89.9", "2.0.0", "0.1", "junk"])
def test_versions_outside_the_safe_range_are_refused(version: str) -> None:
    with pytest.raises(PluginError, match="safe range"):
        check_version(version)


def test_versions_inside_are_not() -> None:
    check_version("1.90.0")
    check_version("1.110.2")


def test_without_litellm_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    from whileai_litellm import library

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    library._imported.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"whileai-litellm\[litellm\]"):
        run(from_spec("anthropic:m", api_key=KEY))
    library._imported.cache_clear()


@given(st.one_of(st.none(), st.text(), st.lists(st.integers()), st.dictionaries(st.text(), st.integers())))
def test_what_is_no_completion_is_malformed_and_never_a_crash(choices: Any) -> None:
    for payload in ({"choices": choices}, {"choices": [choices]}, {"choices": [{"message": choices}]}):
        try:
            got = parse(payload)
        except Malformed:
            continue
        assert got["message"]["role"] == "assistant"


@given(st.text(), st.one_of(st.none(), st.integers(100, 600)))
def test_every_failure_has_a_kind_and_a_fix(text: str, status: int | None) -> None:
    error = from_exception(Raised(text, status), "anthropic:m", [])
    assert error.kind
    assert error.fix
    assert not (error.transient and error.permanent)


def test_secrets_are_replaced_longest_first() -> None:
    environ = {"A_KEY": "secret-12", "B_TOKEN": "secret-123", "SHORT_KEY": "abc", "HOME": "secret-12-home"}
    assert secrets_of(None, environ) == ["secret-123", "secret-12"]


def test_history_is_sent_in_the_shape_of_the_api() -> None:
    call = {"id": "", "type": "function", "function": {"name": "get", "arguments": ""}}
    messages = [
        {"role": "assistant", "content": None, "reasoning_content": "secret thought", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "one", "is_error": True},
    ]
    sent = request(messages, (), {}, None, False)["messages"]
    assert sent[0]["tool_calls"][0]["function"] == {"name": "get", "arguments": "{}"}
    assert sent[0]["tool_calls"][0]["id"] == "call_0"
    assert set(sent[0]) == {"role", "content", "tool_calls"}
    assert sent[1] == {"role": "tool", "tool_call_id": "a", "content": "one"}
