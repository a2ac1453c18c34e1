"""All sides of a run on models: one ledger, ceilings that hold across sides, an estimate first, and the shell."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.protocols import Completion
from whileai_kernel.rowio import read_rows
from whileai_kernel.testing import ModelServer, Reply, Request, ScriptedModel, completion_body
from whileai_simulate import ModelUser, simulate
from whileai_simulate.audit_command import AuditUserCommand
from whileai_simulate.cli import SimulateCommand
from whileai_simulate.ledger import RunLedger, tokens_of

TOOLS = [
    {"name": "get_order", "kind": "read", "description": "Look up an order.",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string", "description": "such as 'A-1704'"}},
                    "required": ["order_id"]}}
]  # fmt: skip
POLICY = "Help with orders."
KEY = "sk-very-secret-4217"


def reply(text: str, sent: int = 50, received: int = 10, price: float | None = None) -> Completion:
    usage = {"prompt_tokens": sent, "completion_tokens": received}
    cost = None if price is None else (sent + received) * price
    return Completion({"role": "assistant", "content": text}, "stop", "m", usage, cost)


class ModelAsAgent:
    """An agent that asks a model, as the agents of model plugins do."""

    def __init__(self, model: Any) -> None:
        self.model, self.name = model, "asker"

    async def __call__(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        got = await self.model.complete(messages, (), {"max_tokens": 10})
        usage = {**got.usage, "requests": got.attempts}
        return {"messages": [got.message], "usage": usage, "finish_reason": got.finish_reason}


def talk(done_after: int = 2) -> Callable[[list[Mapping[str, Any]]], Completion]:
    """A user that answers until the agent has spoken so many times."""

    def answer(messages: list[Mapping[str, Any]]) -> Completion:
        spoken = messages[1]["content"].count("The assistant wrote")
        decision = "done" if spoken >= done_after else "continue"
        return reply(json.dumps({"message": f"It is number {spoken}, yes?", "agrees": False, "decision": decision}))

    return answer


def run(agent: Any, user: Any, **call: Any) -> Any:
    arguments = {"tools": TOOLS, "system_prompt": POLICY, "situations": 40, "repeats": 1, "progress": False}
    return simulate(agent, user=user, **{**arguments, **call})


# -- the ledger -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize("limit", [2_000, 9_000, 40_000])
def test_tokens_of_all_sides_together_never_pass_the_budget(concurrency: int, limit: int) -> None:
    """What the models counted, over all their replies, stays below the ceiling whatever is in flight."""
    counted: Counter[str] = Counter()

    def counts(side: str, answer: Callable[[list[Any]], Completion]) -> ScriptedModel:
        def counting(messages: list[Any]) -> Completion:
            got = answer(messages)
            counted[side] += got.usage["prompt_tokens"] + got.usage["completion_tokens"]
            return got

        return ScriptedModel(counting, name=side, sampling={"max_tokens": 10})

    agent = ModelAsAgent(counts("agent", lambda m: reply("Is it the right one?")))
    user = ModelUser(counts("user", talk()), sampling={"max_tokens": 10})
    data = run(agent, user, concurrency=concurrency, budget={"tokens": limit})
    assert sum(counted.values()) <= limit
    sides = data.report.sides
    assert {s: sides[s]["prompt_tokens"] + sides[s]["completion_tokens"] for s in sides} == dict(counted)
    if limit == 40_000 and concurrency == 1:
        assert data.report.rows > 3
    assert data.report.stopped is None or "budget" in data.report.stopped
    assert all(row["outcome"] == "completed" for row in data), "a refused request is no failure of the agent"
    assert data.report.rows == len(data)


def test_money_is_held_and_an_unknown_price_is_refused() -> None:
    def answer(messages: list[Any]) -> Completion:
        return reply("Is it the right one?", price=0.001)

    priced = ScriptedModel(answer, price=(1000.0, 1000.0), sampling={"max_tokens": 10})
    data = run(ModelAsAgent(priced), "none", budget={"usd": 0.5})
    assert data.report.stopped is not None
    assert "usd" in data.report.stopped
    assert 0 < data.report.sides["agent"]["cost_usd"] <= 0.5
    with pytest.raises(ParameterError, match="no known price"):
        run(ModelAsAgent(ScriptedModel(answer, name="m")), "none", budget={"usd": 0.5})


def test_the_writer_is_held_too() -> None:
    def answer(messages: list[Any]) -> Completion:
        draft = re.search(r"<<<DRAFT (\w+)\n(.*?)\nDRAFT \1>>>", messages[0]["content"], re.S)
        assert draft is not None
        return reply(json.dumps({"ask": draft.group(2)}), 300, 40)

    writer = ScriptedModel(answer, sampling={"max_tokens": 40})
    data = run(lambda message: "hi", "none", simulator=writer, budget={"tokens": 3_000})
    assert data.report.stopped is not None
    assert "writer" in data.report.stopped
    assert data.report.rows == 0
    used = data.report.sides["writer"]
    assert 0 < used["prompt_tokens"] + used["completion_tokens"] <= 3_000


def test_what_the_caller_passed_stays_as_it_is() -> None:
    model = ScriptedModel(lambda m: reply("Done."))
    agent, user = ModelAsAgent(model), ModelUser(ScriptedModel(talk(1)))
    inner = user.model
    run(agent, user, situations=2)
    assert agent.model is model
    assert user.model is inner


def test_a_ledger_by_hand() -> None:
    ledger = RunLedger(tokens=100)
    ledger.reserve("agent", 60, 0.0)
    with pytest.raises(Exception, match="60 in flight, the next request of the user takes up to 50"):
        ledger.reserve("user", 50, 0.0)
    ledger.settle("agent", 60, 0.0, reply("x", 20, 5))
    ledger.reserve("user", 50, 0.0)
    ledger.settle("user", 50, 0.0, None)
    assert ledger.spent("tokens") == 25
    assert ledger.to_dict()["agent"]["requests"] == 1
    assert tokens_of("語" * 30) >= 30, "a character of Chinese is about a token"


# -- the estimate -----------------------------------------------------------------------------------------------


def test_an_estimate_comes_before_the_first_request(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    def answer(messages: list[Any]) -> Completion:
        if not seen:
            seen.append(capsys.readouterr().err)
        return reply("Done.")

    model = ScriptedModel(answer, name="agent-model")
    user = ScriptedModel(talk(1), name="user-model", price=(1.0, 2.0))
    data = run(ModelAsAgent(model), user, situations=5, repeats=2, progress=lambda done, planned: None)
    text = seen[0]
    assert "estimate for up to 10 rollouts, before the first request" in text
    assert re.search(r"agent +agent-model +10 to 120 +about [\d,]+ +cost unknown", text)
    assert re.search(r"user +user-model +0 to 50 +about [\d,]+ +about \$", text)
    assert "in all: cost unknown" in text
    assert "no ceiling" in text
    assert data.report.estimate["sides"][0]["usd"] is None
    assert json.dumps(data.report.to_dict(), allow_nan=False)


def test_no_model_no_estimate_and_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lambda message: "hi", "scripted", situations=2, progress=None).report.estimate is None
    run(ModelAsAgent(ScriptedModel(lambda m: reply("x"))), "none", situations=2)
    assert capsys.readouterr().err == ""


# -- the judge --------------------------------------------------------------------------------------------------


def test_a_model_judges_by_the_reference_and_keeps_the_ledger() -> None:
    scripted = pytest.importorskip("whileai_judge.scripted")
    judge = ScriptedModel(lambda messages: scripted.verdict_line(messages, "PASS"), name="judge-model")
    data = run(lambda message: "hi", "none", judge=judge, situations=3)
    assert {row["reward"] for row in data} == {1.0}
    assert {row["scorer"]["id"] for row in data} == {"judge/outcome"}
    assert all("Reference:" in call["messages"][0]["content"] for call in judge.calls)
    assert data.report.sides["judge"]["requests"] == 3
    assert data.provenance["judge"].startswith("judge_")


# -- the shell, against a real server ----------------------------------------------------------------------------


def scripted_reply(body: dict[str, Any]) -> dict[str, Any]:
    """One server plays every side, told apart by the name of the model."""
    messages, model = body["messages"], body["model"]
    if model == "writer":
        draft = re.search(r"<<<DRAFT (\w+)\n(.*?)\nDRAFT \1>>>", messages[0]["content"], re.S)
        assert draft is not None
        return {"role": "assistant", "content": json.dumps({"ask": f"Hello again! {draft.group(2)}"})}
    if model == "user":
        told = "found it" in messages[1]["content"]
        agree = "you have not decided" not in messages[0]["content"]
        words = "Thanks!" if told else "Yes, please do." if agree else "Just have a look, please."
        turn = {"message": words, "agrees": agree and not told, "decision": "done" if agree or told else "continue"}
        return {"role": "assistant", "content": f"```json\n{json.dumps(turn)}\n```"}
    if model == "judge":
        text = "\n".join(m["content"] for m in messages)
        marker = re.findall(r"^(VERDICT [0-9a-f]+): \.\.\.$", text, re.M)[-1]
        return {"role": "assistant", "content": f"It looked the order up.\n{marker}: PASS"}
    said = sum(m["role"] == "assistant" for m in messages)
    if said == 0:
        return {"role": "assistant", "content": "<think>heron-4217</think>Shall I look it up? (yes/no)"}
    if messages[-1]["role"] == "user":
        call = {"name": "get_order", "arguments": '{"order_id": "A-1"}'}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    return {"role": "assistant", "content": "I looked and found it."}


@pytest.fixture
def refused() -> set[str]:
    """Models that the server refuses."""
    return set()


@pytest.fixture
def server(refused: set[str]) -> Iterator[ModelServer]:
    def answer(request: Request) -> Any:
        model = request.body["model"]
        if model in refused:
            return Reply(401, {"error": {"message": f"wrong key {request.headers.get('authorization')}"}})
        return completion_body(scripted_reply(request.body), model=model, usage=(40, 9))

    with ModelServer(answer) as running:
        yield running


def files(tmp_path: Path) -> tuple[str, str, str]:
    tools, policy, rubric = tmp_path / "tools.json", tmp_path / "policy.md", tmp_path / "rubric.md"
    tools.write_text(json.dumps(TOOLS), encoding="utf-8")
    policy.write_text(POLICY, encoding="utf-8")
    rubric.write_text("The assistant looked the order up.", encoding="utf-8")
    return str(tools), str(policy), str(rubric)


def command(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    SimulateCommand().add_arguments(parser)
    return parser.parse_args(argv)


def test_every_side_on_a_server_from_the_shell(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("whileai_openai")
    pytest.importorskip("whileai_judge")
    monkeypatch.setenv("WHILEAI_API_KEY", KEY)
    tools, policy, rubric = files(tmp_path)
    out = tmp_path / "rows.jsonl"
    spec = {side: f"endpoint:{side}@{server.url}" for side in ("agent", "user", "writer", "judge")}
    argv = ["--agent", spec["agent"], "--user", spec["user"], "--judge", spec["judge"], "--rubric", rubric,
            "--simulator", spec["writer"], "--tools", tools, "--policy", policy, "--out", str(out),
            "--situations", "4", "--repeats", "2", "--seed", "1", "--max-tokens", "200000"]  # fmt: skip
    assert SimulateCommand().run(command(argv)) == 0
    printed = capsys.readouterr()
    assert "estimate for up to 8 rollouts" in printed.err
    assert "writer: 4 asks written" in printed.out
    assert f"user: {spec['user']}, 16 requests" in printed.out
    rows = list(read_rows(out))
    assert len(rows) == 8
    for row in rows:
        assert [m["role"] for m in row["messages"]] == [
            "system", "user", "assistant", "user", "assistant", "tool", "assistant"
        ]  # fmt: skip
        assert row["prompt"].startswith("Hello again!")
        assert (row["ended_by"], row["reward"], row["status"]) == ("user_stop", 1.0, "ok")
        assert row["scorer"]["id"] == "judge/rubric"
        assert row["usage"]["requests"] == 3
        assert row["user"]["usage"]["requests"] == 2
        assert row["user"]["held"] == (row["messages"][3]["content"] == "Yes, please do.")
    assert any(row["user"]["held"] for row in rows)
    by_side = Counter(request.body["model"] for request in server.requests)
    assert by_side == {"writer": 4, "agent": 24, "user": 16, "judge": 8}
    sent = json.dumps([r.body for r in server.requests if r.body["model"] == "user"])
    assert "heron-4217" not in sent
    assert "get_order" not in sent
    everything = out.read_text(encoding="utf-8") + printed.out + printed.err
    assert KEY not in everything
    # The same command once more finds a finished run and asks nobody.
    assert SimulateCommand().run(command(argv)) == 0
    assert len(server.requests) == sum(by_side.values())
    # And the audit of the file, from the shell.
    parser = argparse.ArgumentParser()
    AuditUserCommand().add_arguments(parser)
    capsys.readouterr()
    assert AuditUserCommand().run(parser.parse_args([str(out)])) == 0
    assert "no failures among 8 talks" in capsys.readouterr().out


def test_the_command_itself(server: ModelServer, tmp_path: Path) -> None:
    """`wai simulate ...` as a process of its own."""
    pytest.importorskip("whileai_openai")
    pytest.importorskip("whileai_cli")
    tools, policy, _ = files(tmp_path)
    out = tmp_path / "rows.jsonl"
    wai = "import sys; from whileai_cli.main import main; sys.exit(main())"
    argv = [sys.executable, "-c", wai, "simulate", "--agent", f"endpoint:agent@{server.url}",
            "--user", f"endpoint:user@{server.url}", "--tools", tools, "--policy", policy,
            "--out", str(out), "--situations", "3", "--repeats", "1"]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "before the first request" in done.stderr
    assert "ended by: user_stop 3 (100%)" in done.stdout
    assert len(list(read_rows(out))) == 3


@pytest.mark.parametrize("side", ["agent", "user", "writer", "judge"])
def test_a_wrong_key_of_any_side_is_named(server: ModelServer, refused: set[str], tmp_path: Path, side: str) -> None:
    pytest.importorskip("whileai_openai")
    pytest.importorskip("whileai_judge")
    refused.add(side)
    tools, policy, rubric = files(tmp_path)
    spec = {s: f"endpoint:{s}@{server.url}" for s in ("agent", "user", "writer", "judge")}
    argv = ["--agent", spec["agent"], "--user", spec["user"], "--judge", spec["judge"], "--rubric", rubric,
            "--simulator", spec["writer"], "--tools", tools, "--policy", policy, "--out", str(tmp_path / "r.jsonl"),
            "--situations", "20", "--repeats", "1", "--concurrency", "2", "--quiet"]  # fmt: skip
    if side == "judge":  # a verdict that does not come is a status on the row, and the rows are kept
        assert SimulateCommand().run(command(argv)) == 0
        assert {r["status"] for r in read_rows(tmp_path / "r.jsonl")} == {"error"}
        return
    with pytest.raises(WhileaiError) as caught:
        SimulateCommand().run(command(argv))
    named = {"agent": "agent", "user": "simulated user", "writer": "writer"}[side]
    assert named in str(caught.value).partition("\n")[0]
    assert "401" in str(caught.value)
    assert sum(r.body["model"] == side for r in server.requests) <= 10


def test_a_rubric_without_a_judge_says_so(tmp_path: Path) -> None:
    tools, policy, rubric = files(tmp_path)
    argv = ["--agent", "honest", "--tools", tools, "--policy", policy, "--rubric", rubric]
    with pytest.raises(ParameterError, match="--rubric needs --judge"):
        SimulateCommand().run(command(argv))


def test_the_environment_names_agent_and_user_where_the_command_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("WHILEAI_AGENT", "WHILEAI_USER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit):
        command([])
    assert "--agent" in capsys.readouterr().err
    monkeypatch.setenv("WHILEAI_AGENT", "seeded")
    monkeypatch.setenv("WHILEAI_USER", "scripted")
    assert (command([]).agent, command([]).user) == ("seeded", "scripted")
    assert (command(["--agent", "honest"]).agent, command(["--user", "none"]).user) == ("honest", "none")
