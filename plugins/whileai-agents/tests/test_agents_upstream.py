"""The proxy in front of a real client and a server that misbehaves: statuses, retries in one place, nothing lost."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from whileai_agents import Proxy
from whileai_kernel.testing import ModelServer, Reply, Request

ChatModel = pytest.importorskip("whileai_openai").ChatModel
KEY = "sk-upstream-0123456789abcdef"
ASK = {"model": "any", "messages": [{"role": "user", "content": "Where is order A-17?"}]}


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Request], Any]], ModelServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(ModelServer(answer))


def error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    return Reply(status, {"error": {"message": f"{message} {KEY}", "code": code}}, headers)


def post(base_url: str) -> tuple[int, Any, Any]:
    try:
        with urllib.request.urlopen(f"{base_url}/chat/completions", json.dumps(ASK).encode()) as reply:
            return reply.status, json.load(reply), reply.headers
    except urllib.error.HTTPError as err:
        return err.code, json.load(err), err.headers


@pytest.mark.parametrize(
    ("answer", "status", "requests", "kind"),
    [
        (error(429, "slow down", **{"retry-after": "0"}), 429, 3, "rate_limited"),
        (error(500, "oops", **{"retry-after": "0"}), 500, 3, "server"),
        (error(400, "too long", "context_length_exceeded"), 400, 1, "context_length"),
        (error(401, "who are you"), 401, 1, "auth"),
        (error(404, "no such model"), 404, 1, "not_found"),
        (error(400, "this model does not support tools: tools unsupported"), 400, 1, "no_tools"),
    ],
)
def test_statuses_are_passed_on_and_retries_are_made_once(
    serve: Any, answer: Reply, status: int, requests: int, kind: str
) -> None:
    server = serve(lambda request: answer)
    with Proxy(ChatModel("m", base_url=server.url, api_key=KEY, retries=2)) as proxy:
        got, body, headers = post(proxy.base_url)
        (row,) = proxy.rows()
    assert (got, body["error"]["type"]) == (status, kind)
    assert len(server.requests) == requests
    assert headers["x-should-retry"] == "false"
    assert (row["outcome"], row["final_text"], row["reward"], row["status"]) == ("failed", None, None, "missing")
    assert row["error"]["status_code"] == status
    assert KEY not in json.dumps([row, body])


@pytest.mark.parametrize("body", [b"no json", {}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": 7}]}])
def test_replies_that_are_none_are_failures(serve: Any, body: Any) -> None:
    server = serve(lambda request: Reply(body=body))
    with Proxy(ChatModel("m", base_url=server.url, retries=0)) as proxy:
        got, said, _ = post(proxy.base_url)
        (row,) = proxy.rows()
    assert (got, said["error"]["type"], row["outcome"], len(server.requests)) == (502, "malformed", "failed", 1)


def test_a_retry_that_works_is_counted_on_the_row(serve: Any) -> None:
    server = serve([error(503, "busy", **{"retry-after": "0"})] * 2 + ["Shipped."])
    with Proxy(ChatModel("m", base_url=server.url, api_key=KEY, retries=2)) as proxy:
        assert post(proxy.base_url)[0] == 200
        (row,) = proxy.rows()
    assert (row["outcome"], row["usage"]["requests"], row["conversation"]["requests"]) == ("completed", 3, 1)
    assert row["policy"]["model"] == f"endpoint:m@{server.url}"


def test_a_server_that_is_not_there_is_a_bad_gateway() -> None:
    with Proxy(ChatModel("m", base_url="http://127.0.0.1:9/v1", retries=0)) as proxy:
        got, body, _ = post(proxy.base_url)
    assert (got, body["error"]["type"]) == (502, "connection")


@pytest.mark.integration
def test_the_clients_of_openai_do_not_retry_on_top(serve: Any) -> None:
    openai = pytest.importorskip("openai")
    server = serve(lambda request: error(429, "slow down", **{"retry-after": "0"}))
    with Proxy(ChatModel("m", base_url=server.url, retries=1)) as proxy:
        client = openai.OpenAI(base_url=proxy.base_url, api_key="none", max_retries=5)
        with pytest.raises(openai.RateLimitError), client:
            client.chat.completions.create(**ASK)
        (row,) = proxy.rows()
    assert len(server.requests) == 2, "one request and the model's own retry"
    assert row["conversation"]["requests"] == 1
