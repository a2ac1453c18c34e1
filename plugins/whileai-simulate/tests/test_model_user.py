"""A user on a model: what it knows, when it may end a talk, and whose failure a failure is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.protocols import Completion
from whileai_kernel.testing import ScriptedModel
from whileai_kernel.tools import tool
from whileai_simulate import ModelUser, Outcome, UserFailedError, simulate
from whileai_simulate.briefs import brief_of
from whileai_simulate.prompts import quoted, user_messages
from whileai_simulate.replies import read_object
from whileai_simulate.user_faults import FAULTS, agrees


@tool(kind="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id."""
    ...


@tool(kind="write")
def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    ...


TOOLS = [get_order, cancel_order]
POLICY = "Zebra-quartz policy: always ask for a yes before a change."
CANCEL = {"tool": ["cancel_order"], "stance": ["ordinary"], "world_state": ["exists"], "tool_condition": ["success"],
          "history": ["fresh"], "policy_rule": None}  # fmt: skip


def turn(message: str = "", decision: str = "continue", agrees: bool = False) -> str:
    return json.dumps({"message": message, "agrees": agrees, "decision": decision})


def run(agent: Any, user: Any, **call: Any) -> Any:
    arguments = {"tools": TOOLS, "system_prompt": POLICY, "situations": 1, "repeats": 1, "axes": CANCEL}
    return simulate(agent, user=user, progress=False, **{**arguments, **call})


def asking(words: str = "Shall I cancel it? (yes/no)") -> Callable[..., str]:
    """An agent that asks once and then cancels."""

    def agent(messages: list[dict[str, Any]], *, context: Any) -> str:
        if sum(m["role"] == "user" for m in messages) == 1:
            return words
        order = next(w.strip(".,?!") for w in messages[1]["content"].split() if w.startswith("ORD-"))
        context.call_tool("cancel_order", {"order_id": order})
        return "Your order is cancelled."

    return agent


def polite(messages: list[Mapping[str, Any]]) -> str:
    """A user that agrees (and would be gone in the same turn), and leaves when it is told that all is done."""
    if "is cancelled" in messages[-1]["content"]:
        return turn("Thanks, bye.", "done")
    return turn("Yes, go ahead.", "done", agrees=True)


# -- the public report: a stop in the agreeing turn, and reasoning that reaches the user ------------------------


def test_the_agent_gets_the_turn_after_the_yes() -> None:
    row = run(asking(), ScriptedModel(polite))[0]
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "user", "assistant"]
    assert row["messages"][3]["content"] == "Yes, go ahead."
    assert [c["effect"] for c in row["world_log"]["calls"]] == ["changed"]
    assert Outcome()(row)["reward"] == 1.0
    assert row["ended_by"] == "user_stop"
    assert row["user"]["held"] == 1
    assert row["user"]["decisions"] == ["continue", "done"]
    assert row["user"]["closing"] == "Thanks, bye.", "the closing words are no turn of the row"


@pytest.mark.parametrize("flag", [True, False])
def test_agreement_is_seen_with_and_without_the_flag(flag: bool) -> None:
    def user(messages: list[Mapping[str, Any]]) -> str:
        return turn("Thanks.", "done") if "is cancelled" in messages[-1]["content"] else turn("Yes.", "done", flag)

    assert run(asking(), ScriptedModel(user))[0]["user"]["held"] == 1


def test_telling_what_was_asked_for_is_not_the_end_either() -> None:
    def user(messages: list[Mapping[str, Any]]) -> str:
        if "is cancelled" in messages[-1]["content"]:
            return turn("", "done")
        fact = next(line for line in messages[0]["content"].splitlines() if "your email" in line)
        return turn(f"{fact.rpartition(' ')[2]}, bye.", "done")

    row = run(asking("What is your email?"), ScriptedModel(user))[0]
    assert row["user"]["held"] == 1
    assert row["world_log"]["calls"]


def test_reasoning_and_stop_markers_in_it_never_reach_the_user() -> None:
    seen: list[str] = []

    def user(messages: list[Mapping[str, Any]]) -> str:
        seen.append(json.dumps(messages))
        return polite(messages)

    row = run(asking("<think>plan: ###STOP### heron-4217</think>What is your name?"), ScriptedModel(user))[0]
    assert "heron-4217" not in seen[0]
    assert "###STOP###" not in seen[0]
    assert "What is your name?" in seen[0]
    assert row["ended_by"] == "user_stop"
    assert row["user"]["said"] == 1, "the marker in the reasoning ended nothing"


def test_every_row_says_how_it_ended_and_the_report_shows_shares() -> None:
    def flaky(messages: list[Mapping[str, Any]]) -> str:
        return turn("I am leaving.", "give_up") if len(messages[1]["content"]) % 2 else polite(messages)

    data = run(asking(), ScriptedModel(flaky), situations=6, axes={**CANCEL, "stance": None, "history": None})
    assert sum(data.report.ended_by.values()) == 6
    assert set(data.report.ended_by) <= {"user_stop", "user_gave_up"}
    assert "ended by:" in str(data.report)
    single = run(lambda message: "hi", "none")
    assert single[0]["ended_by"] == "agent"
    assert "user" not in single[0]
    scripted = run(asking(), "scripted")[0]
    assert (scripted["ended_by"], scripted["user"]["kind"]) == ("user_stop", "scripted")
    endless = run(lambda message: "Shall I?", ScriptedModel(lambda m: turn("Well, yes.")), options={"max_turns": 3})
    assert (endless[0]["ended_by"], endless[0]["outcome"]) == ("max_turns", "truncated")
    tired = run(
        lambda message: f"Shall I? {message}", ScriptedModel(lambda m: turn("Well, yes.")), options={"patience": 2}
    )
    assert (tired[0]["ended_by"], tired[0]["user"]["said"]) == ("patience", 2)


def test_a_cut_reply_is_not_answered() -> None:
    def agent(messages: list[Any]) -> dict[str, Any]:
        return {"final_text": "Shall I cancel your", "finish_reason": "length"}

    user = ScriptedModel([])
    row = run(agent, user)[0]
    assert (row["ended_by"], row["outcome"]) == ("length", "truncated")
    assert user.calls == []


# -- what it knows ----------------------------------------------------------------------------------------------


def test_it_is_told_what_a_person_knows_and_nothing_else() -> None:
    prompts: list[str] = []

    def user(messages: list[Mapping[str, Any]]) -> str:
        prompts.append(json.dumps(messages, ensure_ascii=False))
        return turn("Thanks.", "done") if "is cancelled" in messages[-1]["content"] else turn("Yes.", agrees=True)

    axes = {"policy_rule": None}
    data = run(asking(), ScriptedModel(user), situations=40, axes=axes, seed=5)
    assert len(prompts) >= 40
    labels = re.compile(
        "already_acted|rate_limited|permission_denied|prior_failure|contradicts_earlier|adversarial|exploratory|"
        "tool_condition|world_state|privileged|subgoals|cancel_order|get_order"
    )
    for prompt in prompts:
        assert not labels.search(prompt)
        assert "Zebra-quartz" not in prompt
    for row in data:
        mine = [p for p in prompts if json.dumps(row["prompt"], ensure_ascii=False)[1:-1] in p]
        for call in row["world_log"]["calls"]:
            assert mine
            assert not [p for p in mine if call["tool"] in p]
        reference = row["privileged"]["reference"]
        assert not [p for p in mine if reference in p]


SECRET = st.text("QZXJKV", min_size=6, max_size=9)


@given(secret=SECRET)
@settings(max_examples=60, deadline=None)
def test_no_private_part_of_a_task_reaches_a_brief(secret: str) -> None:
    """Whatever a task holds beside the ask, the person and the brief of its own stays away."""
    task = {
        "prompt": "Please cancel order A-17.",
        "system_prompt": secret,
        "axes": {"stance": "ordinary", "tool": secret, "world_state": secret},
        "world": {"entities": {"order": {secret: {"status": secret}}}, "faults": [{"kind": secret}]},
        "privileged": {
            "reference": secret, "state": secret, "goal": {"kind": secret}, "rubric": {"rule": secret},
            "plan": [{"tool": "get", "arguments": {"order_id": "A-17", "payment": secret}}],
            "user": {"facts": {"email": "ana@example.com"}},
        },
        "lineage": {"writer": secret},
    }  # fmt: skip
    text = json.dumps(user_messages(brief_of(task), [("you", task["prompt"]), ("assistant", "Yes?")]))
    assert secret not in text
    assert "A-17" in text
    assert "ana@example.com" in text


@given(text=st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_quoted_text_cannot_close_its_delimiters(text: str) -> None:
    once = quoted("ASSISTANT", text)
    inner = quoted("ASSISTANT", once)
    token = inner.splitlines()[0].split()[1]
    assert inner.count(f"ASSISTANT {token}>>>") == 1


def test_a_task_brings_its_own_brief() -> None:
    first = run(asking(), ScriptedModel(polite))[0]
    own = {"goal": "You want a horse.", "persona": "You are a knight.", "facts": {"horse": "Rocinante"}, "patience": 1,
           "excludes": ["You want no donkey."], "agree": False}  # fmt: skip
    task = {**first, "privileged": {**first["privileged"], "user": own}}
    model = ScriptedModel(lambda m: turn("My horse is Rocinante."))
    row = run(lambda message: "What is your horse?", model, situations=None, axes=None, tasks=[task])[0]
    told = model.calls[0]["messages"][0]["content"]
    for words in ("You want a horse.", "You are a knight.", "Rocinante", "You want no donkey.", "say no"):
        assert words in told
    assert (row["ended_by"], row["user"]["said"]) == ("patience", 1)
    with pytest.raises(ParameterError, match="did you mean 'persona'"):
        brief_of({"prompt": "x", "privileged": {"user": {"personna": "y"}}})


# -- replies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        turn("Yes, go ahead.", agrees=True),
        "Sure:\n```json\n" + turn("Yes, go ahead.", agrees=True) + "\n```",
        "<think>should I " + turn("No.", "done") + "?</think>" + turn("Yes, go ahead.", agrees=True),
        turn("nonsense") + " I mean " + turn("Yes, go ahead.", agrees=True),
        '{"message": "User: Yes, go ahead.", "decision": "CONTINUE"}',
        '{"decision": "continue", "extra": {"a": [1]}, "message": "Yes, go ahead."}',
    ],
)
def test_replies_are_read(reply: str) -> None:
    done = turn("Thanks.", "done")
    model = ScriptedModel(lambda m: done if "is cancelled" in m[-1]["content"] else reply)
    row = run(asking(), model)[0]
    assert row["messages"][3]["content"] == "Yes, go ahead."
    assert row["user"]["retried"] == 0


@pytest.mark.parametrize(
    "reply",
    ["", "{", '{"message": 3}', "<think>never closed", turn(""), '{"message": "x", "decision": "maybe"}', "[1, 2]"],
)
def test_a_reply_that_cannot_be_used_is_asked_for_again_and_then_the_users_failure(reply: str) -> None:
    model = ScriptedModel(lambda m: reply)
    row = run(asking(), model, options={"give_up_after": 0})[0]
    assert len(model.calls) == 3, "once, and two retries"
    assert "cannot be used" in model.calls[1]["messages"][1]["content"]
    assert row["ended_by"] == "error"
    assert row["outcome"] == "failed"
    assert row["error"]["by"] == "user"
    assert row["final_text"] == "Shall I cancel it? (yes/no)", "what the agent said is kept"
    assert len(row["messages"]) == 3


def test_plain_text_of_a_model_that_writes_no_json_is_a_message_and_never_the_end() -> None:
    model = ScriptedModel(lambda m: "Yes, go ahead.")
    row = run(asking(), model, options={"patience": 1})[0]
    assert row["messages"][3]["content"] == "Yes, go ahead."
    assert (row["user"]["retried"], row["ended_by"]) == (2, "patience")


def test_a_message_that_breaks_the_part_is_asked_for_again() -> None:
    first = iter(["How can I help you today?", "I'm sorry, as an AI I cannot say.", "Yes."])
    model = ScriptedModel(lambda m: turn("", "done") if "is cancelled" in m[-1]["content"] else turn(next(first)))
    row = run(asking(), model)[0]
    assert row["messages"][3]["content"] == "Yes."
    assert row["user"]["retried"] == 2
    assert "speaks as the assistant" in model.calls[1]["messages"][1]["content"]


@given(text=st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    value = read_object(text, "message")
    assert value is None or "message" in value


def test_a_reply_of_braces_takes_bounded_time() -> None:
    assert read_object("{" * 200_000, "message") is None


# -- failures ---------------------------------------------------------------------------------------------------


class Broken(WhileaiError, RuntimeError):
    """What a model raises."""

    def __init__(self, permanent: bool) -> None:
        super().__init__("the key is wrong", "401")
        self.permanent = permanent


def failing(permanent: bool) -> ScriptedModel:
    def answer(messages: list[Any]) -> str:
        raise Broken(permanent)

    return ScriptedModel(answer)


def test_a_failure_of_the_users_model_is_not_the_agents() -> None:
    data = run(asking(), failing(False), situations=4, options={"give_up_after": 0}, axes={**CANCEL, "stance": None})
    assert {r["outcome"] for r in data} == {"failed"}
    assert {r["error"]["by"] for r in data} == {"user"}
    assert all(r["error"]["message"].startswith("the simulated user: the key is wrong (401)") for r in data)
    assert data.report.user_failed == 4
    assert any("say nothing about the agent" in w for w in data.warnings)
    assert {(Outcome()(r)["reward"], Outcome()(r)["status"]) for r in data} == {(None, "error")}
    graded = run(asking(), failing(False), judge=lambda row: 0.0, options={"give_up_after": 0})
    assert (graded[0]["reward"], graded[0]["status"]) == (None, "error")


def test_a_wrong_key_of_the_user_calls_the_run_off_and_names_the_user() -> None:
    user = failing(True)
    with pytest.raises(UserFailedError) as caught:
        run(asking(), user, situations=40, axes={**CANCEL, "stance": None}, concurrency=2)
    assert "the simulated user failed" in str(caught.value)
    assert "agent" not in str(caught.value).partition("\n")[0]
    assert len(user.calls) <= 4


def test_a_slow_user_is_the_users_failure() -> None:
    async def never(messages: list[Any]) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    row = run(asking(), ScriptedModel(never), deadline_s=0.05, options={"give_up_after": 0})[0]
    assert (row["ended_by"], row["error"]["by"]) == ("deadline", "user")


def test_a_user_of_ones_own_may_be_sync_and_may_fail() -> None:
    class Parrot:
        def start(self, task: Any, seed: int, patience: int) -> Any:
            return self

        ended_by = "user_stop"

        def reply(self, spoken: str) -> str | None:
            return None if "is cancelled" in spoken else f"{spoken}!"

    assert run(asking(), Parrot())[0]["messages"][3]["content"] == "Shall I cancel it? (yes/no)!"

    class Silent(Parrot):
        def reply(self, spoken: str) -> str | None:
            raise ValueError("no words")

    row = run(asking(), Silent(), options={"give_up_after": 0})[0]
    assert row["error"] == {"type": "ValueError", "message": "the simulated user: no words", "by": "user"}


@pytest.mark.parametrize(
    ("user", "words"),
    [("scriptd", "scripted"), (3, "no user"), (ModelUser, "no user"), ("simulate.nothing:x", "import")],
)
def test_what_is_no_user_says_what_to_pass(user: Any, words: str) -> None:
    with pytest.raises(WhileaiError, match=words):
        run(asking(), user)
    with pytest.raises(ParameterError, match="patience"):
        ModelUser(ScriptedModel([]), patience=0)


# -- figures ----------------------------------------------------------------------------------------------------


def test_usage_of_the_user_stands_apart_from_the_agents() -> None:
    def agent(messages: list[dict[str, Any]], *, context: Any) -> dict[str, Any]:
        text = asking()(messages, context=context)
        return {"final_text": text, "usage": {"prompt_tokens": 100, "completion_tokens": 7}}

    def user(messages: list[Mapping[str, Any]]) -> Completion:
        message = {"role": "assistant", "content": polite(messages)}
        return Completion(message, "stop", "m", {"prompt_tokens": 11, "completion_tokens": 3}, 0.25)

    data = run(agent, ScriptedModel(user))
    row = data[0]
    assert row["usage"] == {"prompt_tokens": 200, "completion_tokens": 14}
    assert row["user"]["usage"] == {"prompt_tokens": 22, "completion_tokens": 6, "requests": 2, "cost_usd": 0.5}
    assert data.report.tokens == 200 + 14 + 22 + 6
    assert data.report.sides["user"]["cost_usd"] == 0.5
    assert data.report.sides["agent"]["prompt_tokens"] == 200
    assert "cost_usd" not in data.report.sides["agent"], "unknown, and not 0"
    assert "cost unknown" in str(data.report)


def test_the_same_rows_at_any_concurrency_and_a_seed_per_rollout() -> None:
    def user(messages: list[Mapping[str, Any]]) -> str:
        return polite(messages)

    first, second = ScriptedModel(user), ScriptedModel(user)
    axes = {**CANCEL, "stance": None, "history": None}
    a = run(asking(), first, situations=6, repeats=2, axes=axes, concurrency=1)
    b = run(asking(), second, situations=6, repeats=2, axes=axes, concurrency=8)
    assert json.dumps(a.rows) == json.dumps(b.rows)
    seeds = [c["sampling"]["seed"] for c in first.calls]
    assert len(set(seeds)) == len(seeds)
    assert sorted(seeds) == sorted(c["sampling"]["seed"] for c in second.calls)
    assert ModelUser(first).version == ModelUser(second).version != ModelUser(first, persona="x").version


def test_a_resumed_run_asks_nobody_again(tmp_path: Any) -> None:
    out = tmp_path / "rows.jsonl"
    axes = {**CANCEL, "stance": None, "history": None}
    call = {"situations": 5, "axes": axes, "output": out, "options": {"patience": 4}}
    whole = run(asking(), ScriptedModel(polite), **{**call, "output": tmp_path / "whole.jsonl"})
    cut = run(asking(), ScriptedModel(polite), **call, budget={"rollouts": 5, "seconds": 1e9})
    assert [r["user"] for r in whole] == [r["user"] for r in cut]
    again = ScriptedModel(polite)
    assert len(run(asking(), again, **call, budget={"rollouts": 5, "seconds": 1e9})) == 5
    assert again.calls == []


def test_rules_have_words() -> None:
    assert all(meaning for meaning in FAULTS.values())
    for text, wanted in [
        ("Yes, please go ahead.", True), ("Sure!", True), ("ok, do it", True), ("Please proceed.", True),
        ("Yes, but don't do it yet", False), ("No.", False), ("Not now, go ahead later? no", False),
        ("Yes. It doesn't fit any more.", True), ("Yes. Wait, not yet.", False),
        ("Yes, go ahead. But don't touch the other one.", False), ("My order is A-17.", False),
        ("I want to cancel it.", False), ("Is that right?", False),
    ]:  # fmt: skip
        assert agrees(text) is wanted, text


@pytest.mark.parametrize("user", ["none", "scripted"])
def test_a_stop_iteration_of_the_agent_fails_the_rollout_at_once(user: str) -> None:
    """It once ended the generator that is the conversation, and the run waited for its deadline."""

    def plain(message: str) -> str:
        return next(iter(()))

    async def coroutine(message: str) -> str:
        return next(iter(()))

    def inline(message: str) -> str:
        return next(iter(()))

    inline.inline = True  # type: ignore[attr-defined]
    for agent in (plain, coroutine, inline):
        row = run(agent, user, deadline_s=60, options={"give_up_after": 0})[0]
        assert (row["outcome"], row["error"]["type"], row["ended_by"]) == ("failed", "RuntimeError", "error")
        assert "StopIteration" in row["error"]["message"]
