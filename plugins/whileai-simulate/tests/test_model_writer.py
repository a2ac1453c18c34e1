"""A writer on a model: every ask is held against the world, repeats are written again, and falling back is loud."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.testing import ScriptedModel, check_component
from whileai_simulate import ModelWriter, honest_agent, simulate
from whileai_simulate.language import known, language_problem
from whileai_simulate.replies import ReplyError
from whileai_simulate.scenes import build_scene
from whileai_simulate.setting import make_setting
from whileai_simulate.situations import Grid
from whileai_simulate.writer import task_of, word_scene
from whileai_simulate.writer_checks import ask_problems, kept_texts

ID = {"type": "string", "description": "such as '#W0000000'"}
TOOLS = [
    {"name": "get_order", "kind": "read", "description": "Look up an order.",
     "parameters": {"type": "object", "properties": {"order_id": ID}, "required": ["order_id"]}},
    {"name": "cancel_order", "kind": "write", "description": "Cancel an order.",
     "parameters": {"type": "object", "properties": {"order_id": ID, "reason": {"type": "string"}},
                    "required": ["order_id", "reason"]}},
]  # fmt: skip
POLICY = "You must look an order up before you cancel it."


def draft_of(messages: list[Mapping[str, Any]]) -> str:
    found = re.search(r"<<<DRAFT (\w+)\n(.*?)\nDRAFT \1>>>", messages[0]["content"], re.S)
    assert found is not None
    return found.group(2)


def kept_in(messages: list[Mapping[str, Any]]) -> list[str]:
    """What the prompt says has to stand in the ask."""
    line = next(x for x in messages[0]["content"].splitlines() if x.startswith("- These have to stand"))
    return [json.loads(x) for x in re.findall(r'"(?:[^"\\]|\\.)*"', line)]


def ask(text: str) -> str:
    return json.dumps({"ask": text}, ensure_ascii=False)


def good(messages: list[Mapping[str, Any]]) -> str:
    """Other words for the plain version, with everything that has to be in it."""
    draft = draft_of(messages)
    return ask(f"Well, as I said on the phone to my sister only yesterday: {draft[:1].lower()}{draft[1:]}")


def run(model: Any, **call: Any) -> Any:
    arguments = {"tools": TOOLS, "system_prompt": POLICY, "situations": 12, "repeats": 1, "seed": 3, "progress": False}
    return simulate(honest_agent(), simulator=model, **{**arguments, **call})


def test_it_conforms() -> None:
    report = check_component("writers", ModelWriter)
    assert report.ok, str(report)


def test_asks_are_the_models_and_worlds_are_as_ever() -> None:
    model = ScriptedModel(good, name="scripted:1")
    data, offline = run(model), run(False)
    assert all("my sister" in row["prompt"] for row in data)
    assert {row["lineage"]["writer"] for row in data} == {"simulate/model"}
    assert {row["lineage"]["model"] for row in data} == {"scripted:1"}
    assert [r["world"] for r in data] == [r["world"] for r in offline]
    assert [r["axes"] for r in data] == [r["axes"] for r in offline]
    assert data.report.writer == {"written": 12, "offline": 0, "requests": 12, "reasons": {}}
    assert data.report.sides["writer"]["requests"] == 12
    assert len({r["task_id"] for r in data}) == 12
    again = run(ScriptedModel(good, name="scripted:1"), concurrency=1)
    assert json.dumps(again.rows) == json.dumps(data.rows)


def test_the_prompt_shows_what_is_needed_and_no_label() -> None:
    model = ScriptedModel(good)
    data = run(model, situations=40, axes={"policy_rule": None})
    for call in model.calls:
        text = json.dumps(call["messages"])
        for word in ("already_acted", "rate_limited", "permission_denied", "prior_partial", "cancel_order", "get_order",
                     "Reference:", "world_state"):  # fmt: skip
            assert word not in text
    assert len({c["sampling"]["seed"] for c in model.calls}) == len(model.calls)
    assert len(data) == 40


BAD = {
    "the id is lost": lambda d, k: ask("Please help me with my order, it is the one from last week."),
    "an id is made up": lambda d, k: ask(f"{d} It is like my other order #W9999999."),
    "a tool is named": lambda d, k: ask(f"{d} Use cancel_order for it."),
    "a label is named": lambda d, k: ask(f"{d} This one is already_acted."),
    "a narrator speaks": lambda d, k: ask(f"The customer wants this: {d}"),
    "a role is named": lambda d, k: ask(f"User: {d}"),
    "a stage direction": lambda d, k: ask(f"*sighs loudly* {d}"),
    "the assistant speaks": lambda d, k: ask(f"{d} How can I help you?"),
    "a placeholder": lambda d, k: ask(f"{d} My name is [your name]."),
    "a test is named": lambda d, k: ask(f"{d} This is an adversarial scenario."),
    "another language": lambda d, k: ask(
        f"Guten Tag, bitte kümmern Sie sich um {' '.join(k)}, ich brauche das nicht mehr und möchte, dass es bald ist."
    ),
    "far too long": lambda d, k: ask(d + " and so on" * 200),
    "empty": lambda d, k: ask("  "),
    "no JSON": lambda d, k: d,
    "another key": lambda d, k: json.dumps({"text": d}),
    "a number": lambda d, k: '{"ask": 3}',
    "cut": lambda d, k: '{"ask": "Please',
}


@pytest.mark.parametrize("kind", sorted(BAD))
def test_a_bad_ask_is_written_again_and_then_offline_and_loudly(kind: str) -> None:
    axes = {"tool": ["cancel_order"], "stance": ["ordinary"], "world_state": ["exists"], "policy_rule": None}
    model = ScriptedModel(lambda m: BAD[kind](draft_of(m), kept_in(m)))
    data = run(model, situations=3, axes=axes)
    assert len(model.calls) == 9, "each once, and two retries"
    assert "cannot be used" in model.calls[-1]["messages"][1]["content"]
    assert data.report.writer["offline"] == 3
    assert any("3 of 3 asks were worded offline" in w for w in data.warnings)
    assert {r["lineage"]["writer"] for r in data} == {"simulate/offline"}
    assert all(r["lineage"]["why"] for r in data)
    offline = run(False, situations=3, axes=axes)
    assert [r["prompt"] for r in data] == [r["prompt"] for r in offline]


def test_a_retry_that_is_better_is_taken() -> None:
    def answer(messages: list[Mapping[str, Any]]) -> str:
        return good(messages) if "cannot be used" in messages[1]["content"] else ask("Nothing.")

    data = run(ScriptedModel(answer))
    assert data.report.writer["written"] == 12
    assert {r["lineage"]["attempts"] for r in data} == {2}


def test_hidden_state_and_other_records_are_given_away_by_nobody() -> None:
    axes = {"tool": ["cancel_order"], "stance": ["ordinary"], "world_state": ["exists"], "policy_rule": None}
    setting = make_setting(TOOLS, POLICY, seed=3, axes=axes)
    scene = build_scene(setting, next(iter(Grid(setting.axes, 1, 2, 3))), 0, 0)
    draft = word_scene(setting, scene, 0)
    reference = str(task_of(setting, build_scene(setting, scene.axes, 0, 0), draft)["privileged"]["reference"])

    def problems(text: str) -> list[str]:
        return ask_problems(text, setting=setting, scene=scene, draft=draft, reference=reference)

    assert problems(draft) == []
    record = scene.targets[0].record
    assert record is not None
    assert any("status" in p for p in problems(f"{draft} It is {record['status']}."))
    scene.world["entities"]["order"]["#W7770001"] = {"order_id": "#W7770001", "items": [{"item_id": "88123456"}]}
    assert problems(f"{draft} And 88123456, too.") == ["it tells '88123456', which only the records show"]
    assert any("reference" in p for p in problems(f"{draft} {reference}"))
    assert any("address" in p for p in problems(f"{draft} Write to x.y@example.net."))
    mine = scene.person["email"]
    assert problems(f"{draft} My email is {mine}.") == [], "a person knows their own address"


def test_plain_versions_of_every_kind_pass_their_own_checks() -> None:
    """The checks refuse nothing that the offline writer says."""
    for seed in (1, 2):
        setting = make_setting(TOOLS, POLICY, seed=seed)
        for n, axes in enumerate(Grid(setting.axes, 120, 2, seed)):
            scene = build_scene(setting, axes, n, 0)
            draft = word_scene(setting, scene, n)
            task = task_of(setting, build_scene(setting, axes, n, 0), draft)
            reference = task["privileged"]["reference"]
            found = ask_problems(draft, setting=setting, scene=scene, draft=draft, reference=reference)
            assert found == [], (draft, axes)
            kept = kept_texts(scene, draft)
            assert all(k in draft for k in kept)
            record = scene.targets[0].record if scene.targets else None
            if record and str(record["order_id"]) in draft:
                assert str(record["order_id"]) in kept


def test_repeats_are_written_again_and_then_offline() -> None:
    axes = {"tool": ["get_order"], "stance": ["ordinary"], "world_state": ["exists"], "policy_rule": None}
    long = "please look this order of mine up for me and tell me how it stands, " + ", ".join(
        f"as I have told {who} and {who}'s brother" for who in ("Ana", "Ben", "Cleo", "Dora", "Ed", "Fay", "Gus", "Hal")
    )
    model = ScriptedModel(lambda m: ask(f"{long}. {' '.join(kept_in(m))}"))
    data = run(model, situations=4, axes=axes)
    assert len({r["prompt"] for r in data}) == 4
    assert data.report.writer["written"] == 1
    assert data.report.writer["reasons"] == {"it is nearly an earlier message": 3}
    assert "brother" in model.calls[-1]["messages"][0]["content"], "it is shown what to sound unlike"


def test_a_model_that_fails_now_and_then_costs_single_asks() -> None:
    def answer(messages: list[Mapping[str, Any]]) -> str:
        if "#W" in draft_of(messages) and int(re.sub(r"\D", "", draft_of(messages))[:7] or 0) % 3 == 0:
            raise ReplyError("overloaded")
        return good(messages)

    data = run(ScriptedModel(answer), situations=30)
    assert 0 < data.report.writer["offline"] < 30
    assert any("overloaded" in w for w in data.warnings)


def test_a_model_that_always_fails_is_an_error_and_no_quiet_offline_run() -> None:
    def answer(messages: list[Any]) -> str:
        raise WhileaiError("the key is wrong", "401", "set OPENAI_API_KEY")

    with pytest.raises(WhileaiError) as caught:
        run(ScriptedModel(answer, name="m"))
    assert "the writer m failed at every ask" in str(caught.value)
    assert "set OPENAI_API_KEY" in str(caught.value)


def test_text_of_traces_never_enters() -> None:
    said = "as I said on the phone to my sister only yesterday, it broke"
    trace = {"task_id": "t", "prompt": said, "reward": 0.0, "messages": [{"role": "user", "content": said}]}
    data = run(ScriptedModel(good), traces=[trace])
    assert data.report.writer["offline"] == 12
    assert not [r for r in data if "my sister" in r["prompt"]]


def test_other_languages() -> None:
    assert (
        language_problem("Könnten Sie bitte meine Bestellung stornieren? Ich brauche sie nicht mehr.", "German") is None
    )
    assert language_problem("Could you please cancel my order? I do not need it any more.", "German") is not None
    assert language_problem("Pouvez-vous annuler ma commande ? Je ne la veux pas.", "French") is None
    assert language_problem("Пожалуйста, отмените мой заказ #W123.", "Russian") is None
    assert language_problem("Please cancel it.", "Russian") is not None
    assert language_problem("注文をキャンセルしてください", "Japanese") is None
    assert language_problem("注文をキャンセルしてください", "English") is not None
    assert language_problem("#W4821345", "English") is None, "nothing speaks against it"
    assert (known("German"), known("Klingon")) == (True, False)

    def german(messages: list[Mapping[str, Any]]) -> str:
        kept = " und ".join(kept_in(messages))
        return ask(
            f"Guten Tag, bitte helfen Sie mir mit {kept}. Ich habe es bei Ihnen gekauft und brauche es nicht mehr."
        )

    axes = {"tool": ["cancel_order"], "stance": ["ordinary"], "world_state": ["exists"], "policy_rule": None}
    data = run(ModelWriter(ScriptedModel(german), language="German"), situations=2, axes=axes)
    assert data.report.writer["written"] == 2
    klingon = run(ModelWriter(ScriptedModel(german), language="Klingon"), situations=2, axes=axes)
    assert any("not checked for their language" in w for w in klingon.warnings)


def test_true_is_the_model_that_plays_the_user() -> None:
    with pytest.raises(ParameterError) as caught:
        run(True)
    assert "simulator='openai:<model>'" in str(caught.value)

    def both(messages: list[Mapping[str, Any]]) -> str:
        if "DRAFT" in messages[0]["content"]:
            return good(messages)
        return json.dumps({"message": "", "agrees": False, "decision": "done"})

    data = run(True, user=ScriptedModel(both, name="one"))
    assert {r["lineage"]["model"] for r in data} == {"one"}
    assert {r["user"]["model"] for r in data} == {"one"}


@pytest.mark.parametrize("wrong", [3, ModelWriter, "ofline", "openai", object()])
def test_what_is_no_writer_says_so(wrong: Any) -> None:
    with pytest.raises(WhileaiError, match="writer"):
        run(wrong)


PROGRAM = """
import json, os, signal, sys
sys.path.insert(0, {tests!r})
from test_model_writer import TOOLS, POLICY, good
from whileai_simulate import honest_agent, simulate
from whileai_kernel.testing import ScriptedModel

out, die = sys.argv[1], int(sys.argv[2])
model = ScriptedModel(good, name="scripted:1")
landed = 0


def progress(done, planned):
    if die and done >= die:
        os.kill(os.getpid(), signal.SIGKILL)


data = simulate(honest_agent(), simulator=model, tools=TOOLS, system_prompt=POLICY, situations=20, repeats=1, seed=3,
                output=out, progress=progress)
print(len(model.calls))
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_what_was_written_is_paid_for_once(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parent)), encoding="utf-8")

    def go(out: str, die: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), str(tmp_path / out), str(die)]
        return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")

    whole = go("whole.jsonl", 0)
    assert whole.stdout.strip() == "20", whole.stderr
    assert go("cut.jsonl", 7).returncode == -signal.SIGKILL
    resumed = go("cut.jsonl", 0)
    assert resumed.stdout.strip() == "0", resumed.stderr
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not list(tmp_path.glob("*.tasks"))
