"""The scripted model and the scripted model server of the testing kit."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import urllib.error
import urllib.request

import pytest

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion, Model
from whileai_kernel.testing import ModelServer, Reply, ScriptedModel, completion_body

ASK = [{"role": "user", "content": "Where is order A-17?"}]
TOOL = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}


def complete(model, *args, **options):
    return asyncio.run(model.complete(*(args or (ASK,)), **options))


# --- the model ---


def test_it_is_a_model(failed_checks):
    assert isinstance(ScriptedModel([]), Model)
    assert failed_checks("models", ScriptedModel(lambda messages: "x", price=(1.0, 2.0))) == {}
    assert repr(ScriptedModel([], "m")) == "ScriptedModel('m')"


def test_a_text_a_message_and_a_completion_are_replies():
    whole = Completion({"role": "assistant", "content": "x"}, "length", "other")
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    model = ScriptedModel(["On its way.", call, whole], "m", price=(1.0, 10.0))
    first, second, third = (complete(model) for _ in range(3))
    assert first.message == {"role": "assistant", "content": "On its way."}
    assert (first.finish_reason, first.model) == ("stop", "m")
    assert first.usage == {"prompt_tokens": 4, "completion_tokens": 3}
    assert first.cost_usd == pytest.approx((4 * 1.0 + 3 * 10.0) / 1e6)
    assert (second.message, second.finish_reason, second.usage["completion_tokens"]) == (call, "tool_calls", 0)
    assert third is whole


def test_without_a_price_the_cost_is_unknown():
    assert complete(ScriptedModel(["x"])).cost_usd is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda messages: f"{len(messages)}", "1"),
        (lambda messages, tools: f"{len(messages)} {len(tools)}", "1 1"),
        (lambda *args: f"{len(args)}", "2"),
        (lambda messages, tools=(): f"{len(tools)}", "1"),
        (lambda messages, greeting="Hi": greeting, "Hi"),
        (lambda messages, *, greeting="Hi": greeting, "Hi"),
    ],
)
def test_a_script_is_given_what_it_asks_for(answer, expected):
    assert complete(ScriptedModel(answer), ASK, [TOOL]).message["content"] == expected


def test_a_script_may_be_a_coroutine_or_an_object_or_a_built_in_function():
    async def slow(messages):
        await asyncio.sleep(0)
        return "later"

    class Counts:
        def __call__(self, messages, tools):
            return f"{len(tools)}"

    assert complete(ScriptedModel(slow)).message["content"] == "later"
    assert complete(ScriptedModel(Counts())).message["content"] == "0"
    assert complete(ScriptedModel(str)).message["content"] == str(ASK)


def test_what_a_script_raises_is_the_failure_of_the_model():
    def down(messages):
        raise ConnectionError("down")

    model = ScriptedModel(down)
    with pytest.raises(ConnectionError, match="down"):
        complete(model)
    assert len(model.calls) == 1


def test_calls_are_recorded_as_they_were_made():
    model = ScriptedModel(["a", "b"], sampling={"seed": 1}, capabilities={"json_schema"})
    messages = list(ASK)
    complete(model, messages, [TOOL], {"temperature": 0.5}, schema={"type": "object"}, deadline_s=3.0, repeat=2)
    messages.append({"role": "assistant", "content": "a"})
    assert model.calls == [
        {"messages": ASK, "tools": [TOOL], "sampling": {"temperature": 0.5}, "schema": {"type": "object"},
         "deadline_s": 3.0, "repeat": 2}
    ]  # fmt: skip
    assert (model.sampling, model.capabilities) == ({"seed": 1}, frozenset({"json_schema"}))


def test_it_runs_out_loudly():
    model = ScriptedModel(["one"], "m")
    complete(model)
    with pytest.raises(ParameterError, match="'m' has no further reply") as caught:
        complete(model)
    assert "held 1" in caught.value.why


@pytest.mark.parametrize("reply", [None, 7, ["x"]])
def test_a_reply_of_no_known_shape_is_said(reply):
    with pytest.raises(ParameterError, match=f"returned {type(reply).__name__}"):
        complete(ScriptedModel(lambda messages: reply))


def test_the_scripted_parts_do_not_load_the_kit(python):
    loaded = python.modules_after("from whileai_kernel.testing import ModelServer, ScriptedModel")
    assert "whileai_kernel.testing.server" in loaded
    assert not {"pydantic", "pytest", "whileai_kernel.testing.kit", "whileai_kernel.testing.checking"} & set(loaded)


# --- the server ---


def post(server, body=None, raw=None):
    request = urllib.request.Request(f"{server.url}/chat/completions", raw or json.dumps(body or {"m": 1}).encode())
    request.add_header("Authorization", "Bearer k")
    try:
        with urllib.request.urlopen(request) as got:
            return got.status, got.headers, got.read()
    except urllib.error.HTTPError as err:
        with err:
            return err.code, err.headers, err.read()


def test_answers_in_order_then_an_error_that_says_so():
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    whole = completion_body("x", usage=(1, 2), model="m", finish_reason="length", logprobs=None)
    with ModelServer(["Hello.", call, whole]) as server:
        bodies = [json.loads(post(server)[2]) for _ in range(3)]
        status, _, last = post(server)
    said = [body["choices"][0] for body in bodies]
    assert (said[0]["message"]["content"], said[0]["finish_reason"]) == ("Hello.", "stop")
    assert (said[1]["message"], said[1]["finish_reason"]) == (call, "tool_calls")
    assert (said[2]["finish_reason"], said[2]["logprobs"]) == ("length", None)
    assert bodies[2]["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert status == 500
    assert b"no further reply: it held 3" in last


def test_a_function_answers_by_the_request():
    with ModelServer(lambda request: f"{request.number} {request.body['m']} {request.path}") as server:
        texts = [json.loads(post(server, {"m": m})[2])["choices"][0]["message"]["content"] for m in "ab"]
    assert texts == ["0 a /v1/chat/completions", "1 b /v1/chat/completions"]
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer k"] * 2
    assert server.requests[0].at_s <= server.requests[1].at_s


@pytest.mark.parametrize(
    ("reply", "status", "body"),
    [
        (Reply(429, {"error": {"message": "slow"}}, {"Retry-After": "3"}), 429, b'{"error": {"message": "slow"}}'),
        (Reply(200, "{not json"), 200, b"{not json"),
        (Reply(503, b"\xff", {"content-type": "text/plain"}), 503, b"\xff"),
        (Reply(200, None), 200, b"null"),
    ],
)
def test_a_reply_is_sent_as_it_is(reply, status, body):
    with ModelServer([reply]) as server:
        got = post(server)
    assert (got[0], got[2]) == (status, body)
    wanted = {"content-type": "application/json", "content-length": str(len(body))}
    wanted |= {name.lower(): value for name, value in reply.headers.items()}
    assert {name: got[1][name] for name in wanted} == wanted


def test_a_connection_is_cut_in_the_middle():
    with (
        ModelServer([Reply(body='{"choices": [{"mess', cut=True)]) as server,
        pytest.raises(http.client.IncompleteRead),
    ):
        post(server)


def test_a_request_that_is_no_json_is_kept_as_bytes():
    with ModelServer(["x"]) as server:
        post(server, raw=b"{oops")
    assert server.requests[0].body == b"{oops"


def test_requests_at_one_time_are_counted():
    together = threading.Barrier(3)

    def answer(request):
        together.wait(10)
        return "x"

    with ModelServer(answer) as server:
        threads = [threading.Thread(target=post, args=(server,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.most_in_flight == 3
    assert sorted(request.number for request in server.requests) == [0, 1, 2]


@pytest.mark.parametrize("wrong", [lambda request: 7, lambda request: request.body["nobody"]])
def test_a_script_that_fails_is_answered_and_raised_at_the_end(wrong):
    with pytest.raises((TypeError, KeyError)), ModelServer(wrong) as server:
        assert post(server)[0] == 500


def test_the_failure_of_the_test_itself_comes_first():
    with pytest.raises(AssertionError, match="mine"), ModelServer(lambda request: 7) as server:
        post(server)
        raise AssertionError("mine")


def test_nobody_answers_after_the_end_not_even_on_a_kept_connection():
    with ModelServer(lambda request: "x") as server:
        host = server.origin.removeprefix("http://")
        kept = http.client.HTTPConnection(host, timeout=10)
        kept.request("POST", "/v1/chat/completions", "{}")
        kept.getresponse().read()
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        kept.request("POST", "/v1/chat/completions", "{}")
        kept.getresponse()
    kept.close()
    with pytest.raises(urllib.error.URLError):
        post(server)
    assert len(server.requests) == 1


def test_a_client_that_gives_up_says_nothing_on_the_terminal(capfd):
    asked, release = threading.Event(), threading.Event()

    def slow(request):
        asked.set()
        release.wait(10)
        return "x" * 5_000_000

    with ModelServer(slow) as server:
        host = server.origin.removeprefix("http://")
        client = http.client.HTTPConnection(host, timeout=10)
        client.request("POST", "/v1/chat/completions", "{}")
        assert asked.wait(10)
        client.close()
        release.set()
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(10)
    assert capfd.readouterr().err == ""
