"""Runs as a user makes them: sizes, sameness, budgets, replay, traces, wording."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError, StopStage
from whileai_kernel.messages import tool_calls, validate_messages
from whileai_kernel.models import from_row
from whileai_kernel.rowio import dumps_row
from whileai_kernel.tools import tool
from whileai_simulate import asimulate, honest_agent, seeded_agent, simulate
from whileai_simulate.dedup import shingles


@tool
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id."""
    ...


def program(**call: Any) -> Any:
    call = {"situations": 16, "repeats": 4, "repeat_policy": "fixed", "mode": "rl", "seed": 0, **call}
    call = {"simulator": False, "system_prompt": "Help customers with orders.", **call}
    return simulate(
        seeded_agent([get_order]),
        tools=[get_order],
        **{k: v for k, v in call.items() if v is not None},
    )


def text_of(rows: Any) -> str:
    return "\n".join(dumps_row(row) for row in rows)


def test_sixteen_tasks_of_exactly_four() -> None:
    data = program()
    assert Counter(Counter(r["task_id"] for r in data).values()) == {4: 16}
    assert [r["index"] for r in data] == [0, 1, 2, 3] * 16
    assert len({r["rollout_id"] for r in data}) == 64
    assert all(isinstance(r["seeded"], list) for r in data)
    by_task = Counter(r["task_id"] for r in data if not r["seeded"])
    assert sum(0 < n < 4 for n in by_task.values()) >= 10, "groups must be mixed"
    assert 0.5 < sum(not r["seeded"] for r in data) / 64 < 0.8
    for row in data:
        from_row(row)
        assert validate_messages(row["messages"]) == []


def test_a_budget_gives_the_same_rows() -> None:
    assert text_of(program()) == text_of(program(situations=None, budget=64))
    assert text_of(program()) == text_of(program(situations=None, budget={"rollouts": 66}))


def test_the_same_in_a_running_loop_and_twice() -> None:
    async def cell() -> Any:
        return program()

    first = text_of(program())
    assert first == text_of(program())
    assert first == text_of(asyncio.run(cell()))
    assert first == text_of(asyncio.run(asimulate(
        seeded_agent(), tools=[get_order], system_prompt="Help customers with orders.", situations=16, repeats=4
    )))  # fmt: skip


CODE = """
import hashlib, sys
from whileai_kernel.rowio import dumps_row
from whileai_kernel.tools import as_tool
from whileai_simulate import seeded_agent, simulate

order_id = {"type": "string", "description": "such as '#W0000000'"}
parameters = {"type": "object", "properties": {"order_id": order_id}, "required": ["order_id"]}
kinds = (("get_order", "read"), ("cancel_order", "write"))
tools = [{"name": name, "kind": kind, "parameters": parameters} for name, kind in kinds]


def own(message, *, context):
    return "ok " + str(context.seed)


agent = seeded_agent() if sys.argv[1] == "1" else own
data = simulate(agent, tools=tools, system_prompt="You must be kind. Never lie.", situations=40, repeats=2,
                concurrency=int(sys.argv[2]), output=sys.argv[3])
print(hashlib.sha256("".join(map(dumps_row, data)).encode()).hexdigest())
"""


@pytest.mark.parametrize("own", ["1", "0"])
def test_the_same_file_under_two_hash_seeds_and_at_any_concurrency(tmp_path: Any, own: str) -> None:
    seen = set()
    files = set()
    for hash_seed, concurrency in (("0", "1"), ("7", "32"), ("random", "3")):
        out = tmp_path / f"{hash_seed}.jsonl"
        done = subprocess.run(
            [sys.executable, "-c", CODE, own, concurrency, str(out)],
            capture_output=True, text=True, check=True, encoding="utf-8",
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )  # fmt: skip
        seen.add(done.stdout)
        files.add(out.read_bytes())
    assert len(seen) == 1
    assert len(files) == 1


def test_another_seed_gives_other_rows() -> None:
    assert text_of(program(seed=1)) != text_of(program(seed=0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"situation": 4}, "did you mean 'situations'"),
        ({"max_turns": 4}, "options="),
        ({"mode": "rll"}, "did you mean 'rl'"),
        ({"repeat_policy": "fixd"}, "did you mean 'fixed'"),
        ({"repeats": 0}, "repeats"),
        ({"situations": 0}, "situations"),
        ({"budget": 3, "situations": None}, "less than one task"),
        ({"budget": {"rollout": 3}}, "did you mean 'rollouts'"),
        ({"budget": -1}, "above 0"),
        ({"options": {"strenght": 3}}, "did you mean 'strength'"),
        ({"options": {"weights": {"stance": {"hurry": 2}}}}, "hurried"),
        ({"axes": {"stanc": None}}, "did you mean 'stance'"),
        ({"repeat_policy": "adaptive"}, "judge="),
        ({"simulator": True}, "model-backed"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_wrong_arguments_name_the_nearest(call: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        program(**call)
    assert words in str(caught.value)


def test_modes_are_presets() -> None:
    data = simulate(seeded_agent(), tools=[get_order], mode="explore", situations=3)
    assert len(data) == 3
    data = simulate(seeded_agent(), tools=[get_order], mode="sft", situations=3)
    assert len(data) == 12


def test_no_tools_at_all() -> None:
    data = simulate(seeded_agent(), situations=3, repeats=1)
    assert [r["axes"]["tool"] for r in data] == ["none"] * 3
    assert all(r["world"]["entities"] == {} for r in data)


# -- coverage, shares, wording --------------------------------------------------------------------------------


def test_pairs_are_covered_when_there_is_room_and_reported() -> None:
    data = program(situations=100, repeats=1)
    pairs = data.report.pairs
    assert pairs["planned"] == pairs["covered"] > 300
    few = program(situations=12, repeats=1).report.pairs
    assert few["covered"] < few["planned"]
    assert few["missing"]


def test_shares_are_within_the_stated_tolerance() -> None:
    weights = {"stance": {"hurried": 5}, "tool_condition": {"success": 5}}
    data = program(situations=600, repeats=1, options={"weights": weights, "off_topic": 0.1})
    report = data.report
    assert report.tolerance == 0.05
    assert all(s.within for s in report.shares), [s for s in report.shares if not s.within]
    got = {(s.axis, s.value): s for s in report.shares}
    assert abs(got["stance", "hurried"].got - 5 / 14) < 0.05
    assert abs(got["tool", "none"].got - 0.1) < 0.05
    counted = Counter(r["axes"]["stance"] for r in data)
    assert counted["hurried"] == got["stance", "hurried"].count
    planned = Counter(f["kind"] for r in data for f in r["world"]["faults"])
    assert {k: v["planned"] for k, v in report.faults.items()} == dict(planned)
    assert "stance, got (asked)" in str(report)
    json.dumps(report.to_dict())


def test_off_topic_asks_are_few_labelled_and_have_no_right_tool() -> None:
    data = program(situations=200, repeats=1)
    off = [r for r in data if r["axes"]["tool"] == "none"]
    assert 1 <= len(off) <= 0.12 * 200
    for row in off:
        assert row["privileged"]["plan"] == []
        assert row["privileged"]["goal"]["kind"] == "none"
        assert row["world"]["faults"] == []
        assert tool_calls(row["messages"]) == []


def fifty() -> list[dict[str, Any]]:
    out = []
    for noun in ("order", "ticket", "invoice", "shipment", "device", "lease", "policy", "claim", "card", "loan"):
        for verb, kind in (
            ("get", "read"),
            ("cancel", "write"),
            ("update", "write"),
            ("close", "write"),
            ("renew", "write"),
        ):
            properties = {f"{noun}_id": {"type": "string"}}
            if verb == "update":
                properties["note"] = {"type": "string"}
            schema = {"type": "object", "properties": properties, "required": list(properties)}
            out.append({"name": f"{verb}_{noun}", "kind": kind, "parameters": schema})
    return out


@pytest.mark.parametrize("tools", [[get_order], fifty()], ids=["one tool", "fifty tools"])
def test_thousands_of_distinct_situations(tools: list[Any]) -> None:
    """The full 10,000 are run by the bench; near-duplicates are counted here by brute force on a slice."""
    data = simulate(honest_agent(), tools=tools, system_prompt="Be kind.", situations=2000, repeats=1)
    asks = [r["prompt"] for r in data]
    assert len(set(asks)) == 2000
    assert data.report.wording["kept_duplicates"] == 0
    sets = [shingles(a) for a in asks[:250]]
    for i, a in enumerate(sets):
        for b in sets[:i]:
            assert len(a & b) / len(a | b) < 0.9


def test_asks_show_what_the_situation_says() -> None:
    data = program(situations=300, repeats=1)
    for row in data:
        ask = row["prompt"]
        assert "{" not in ask
        assert "  " not in ask
        assert "None" not in ask
        assert ask[0].isupper() or ask[0].isdigit()
        if row["axes"]["tool"] == "get_order":
            (order_id,) = {a["order_id"] for a in [s["arguments"] for s in row["privileged"]["plan"]]} or {None}
            if order_id is not None:
                assert order_id in ask
                assert re.fullmatch(r"ORD-\d{5}", order_id)
        if row["axes"]["history"] == "fresh" and row["axes"]["stance"] != "mistaken":
            assert not re.search(r"yesterday|last week|again about|it's me again", ask.casefold()), ask


# -- seeds, tasks, traces -------------------------------------------------------------------------------------


def test_seeds_run_each_or_the_call_refuses() -> None:
    asks = [f"Where is my order ORD-{n:05}?" for n in range(5)]
    data = program(seeds=asks, situations=8, repeats=2)
    prompts = [r["prompt"] for r in data]
    assert all(prompts.count(a) == 2 for a in asks)
    assert prompts[:2] == [asks[0]] * 2
    with pytest.raises(ParameterError, match="5 seeds must run"):
        program(seeds=asks, situations=4)
    with pytest.raises(ParameterError, match="no text"):
        program(seeds=[" "])
    assert len(program(seeds=asks, situations=None, repeats=1, budget=5)) == 5


def test_a_seed_names_things_that_then_exist() -> None:
    tools = [
        {"name": "get_order", "kind": "read", "parameters": {"type": "object", "required": ["order_id"], "properties": {
            "order_id": {"type": "string", "description": "such as '#W0000000'"}}}}
    ]  # fmt: skip
    data = simulate(
        lambda message, *, context: context.call_tool("get_order", {"order_id": "#W7654321"}),
        tools=tools, seeds=["Where is #W7654321?"], situations=1, repeats=1,
    )  # fmt: skip
    assert json.loads(data[0]["final_text"])["order_id"] == "#W7654321"


def test_tasks_replay_with_their_worlds() -> None:
    first = program(situations=6, repeats=2)
    again = simulate(seeded_agent(), tasks=json.loads(json.dumps(list(first))), repeats=2)
    assert text_of(first) == text_of(again)
    other = simulate(honest_agent(), tasks=first, repeats=1)
    assert [r["task_id"] for r in other] == list(dict.fromkeys(r["task_id"] for r in first))
    with pytest.raises(ParameterError, match="leave situations out"):
        simulate(seeded_agent(), tasks=first, situations=3)


def test_traces_aim_and_never_enter() -> None:
    base = program(situations=60, repeats=1)
    traces = []
    for row in base:
        bad = row["axes"]["stance"] == "hurried"
        traces.append({**row, "reward": 0.0 if bad else 1.0, "status": "ok"})
    aimed = program(situations=400, repeats=1, traces=traces)
    plain = program(situations=400, repeats=1)

    def share(rows: Any) -> float:
        return sum(r["axes"]["stance"] == "hurried" for r in rows) / 400

    assert share(aimed) > 1.5 * share(plain)
    assert any("aimed at" in w for w in aimed.warnings)


def test_text_of_traces_never_enters_and_is_counted() -> None:
    # The very asks that the call would write come as traces, so that each first wording is a leak.
    own = program(situations=60, repeats=1)
    traces = [{"prompt": r["prompt"], "reward": 1.0} for r in own]
    clean = program(situations=60, repeats=1, traces=traces)
    assert clean.report.wording["leaks"] >= 50
    assert not {r["prompt"] for r in own} & {r["prompt"] for r in clean}
    known = {g for t in traces for g in shingles(t["prompt"], 8) if any(c.isdigit() for c in g)}
    assert not any(known & shingles(r["prompt"], 8) for r in clean)


# -- repeats, runs, budgets -----------------------------------------------------------------------------------


def test_successive_fills_only_where_verdicts_disagree() -> None:
    data = program(situations=40, repeats=6, repeat_policy="successive", judge=lambda row: not row["seeded"])
    for task_id, group in data.groups.items():
        rows = [r for r in data if r["task_id"] == task_id]
        first = {r["reward"] for r in rows[:2]}
        assert len(rows) == (6 if len(first) == 2 else 2)
        assert group["saved"] == 6 - len(rows)
    states = Counter(g["state"] for g in data.groups.values())
    assert states == {
        "mixed": sum(len(r) == 6 for r in _groups(data)),
        "stopped": sum(len(r) == 2 for r in _groups(data)),
    }
    assert data.report.groups["saved"] == 40 * 6 - len(data)


def _groups(data: Any) -> list[list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in data:
        found.setdefault(row["task_id"], []).append(row)
    return list(found.values())


def test_decisions_do_not_depend_on_concurrency() -> None:
    def judge(row: Any) -> float:
        return float(int(row["rollout_id"][-1], 16) % 2)

    def agent(message: str, *, context: Any) -> str:
        return f"answer {context.seed % 97}"

    call = {"tools": [get_order], "situations": 20, "repeats": 5, "repeat_policy": "adaptive", "judge": judge}
    one, many = (simulate(agent, concurrency=n, **call) for n in (1, 16))
    assert text_of(one) == text_of(many)
    assert len(one) < 100


def test_runs_repeat_the_whole_on_the_same_tasks() -> None:
    data = program(situations=5, repeats=2, runs=3)
    assert len(data) == 30
    assert Counter(r["run"] for r in data) == {0: 10, 1: 10, 2: 10}
    assert {len({r["task_id"] for r in data if r["run"] == n}) for n in range(3)} == {5}
    assert len({r["rollout_id"] for r in data}) == 30


def test_token_and_money_budgets_stop_before_they_are_exceeded() -> None:
    def agent(message: str) -> dict[str, Any]:
        return {"final_text": "ok", "usage": {"total_tokens": 100, "cost_usd": 0.01}}

    data = simulate(agent, tools=[get_order], situations=50, repeats=1, budget={"tokens": 1050}, concurrency=1)
    assert len(data) == 10
    assert data.report.tokens == 1000
    assert "budget of 1050 tokens" in data.report.stopped
    assert data.warnings
    data = simulate(agent, tools=[get_order], situations=50, repeats=1, budget={"usd": 0.055}, concurrency=1)
    assert len(data) == 5
    options = {"rollout_tokens": 100}
    data = simulate(
        agent, tools=[get_order], situations=50, repeats=1, budget={"tokens": 1050}, concurrency=8, options=options
    )
    assert 0 < data.report.tokens <= 1050


def test_a_call_that_uses_too_much_at_once_is_not_started_twice() -> None:
    data = simulate(
        lambda message: {"final_text": "ok", "usage": {"total_tokens": 90}},
        tools=[get_order], situations=50, repeats=1, budget={"tokens": 100}, concurrency=16,
    )  # fmt: skip
    assert data.report.tokens <= 100


# -- grounding ------------------------------------------------------------------------------------------------


def test_interrupt_returns_what_landed() -> None:
    calls = []

    def agent(message: str) -> str:
        calls.append(1)
        return "ok"

    def progress(done: int, planned: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    class Inline:
        inline = True

        def __call__(self, message: str) -> str:
            return agent(message)

    data = simulate(Inline(), tools=[get_order], situations=10, repeats=1, progress=progress)
    assert len(data) == 3
    assert data.report.stopped == "interrupted"


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    program(situations=4, repeats=2, progress=lambda done, planned: seen.append((done, planned)))
    assert seen == [(n, 8) for n in range(1, 9)]


def test_two_runs_in_one_process_with_an_async_agent() -> None:
    async def agent(message: str) -> str:
        await asyncio.sleep(0)
        return "ok"

    for _ in range(2):
        assert len(simulate(agent, tools=[get_order], situations=8, repeats=1, concurrency=4)) == 8


def test_ctrl_c_with_rollouts_in_flight_returns_what_landed(request: pytest.FixtureRequest) -> None:
    import _thread
    import signal
    import threading

    # Workers of a parallel run, and what a shell starts in the background, ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    interrupted, over = threading.Event(), threading.Event()
    request.addfinalizer(over.set)

    def progress(done: int, planned: int) -> None:
        if done == 3:
            interrupted.set()
            _thread.interrupt_main()

    def agent(message: str) -> str:
        if interrupted.is_set():  # the calls after the signal are in flight until the test is over
            over.wait(60)
        return "ok"

    data = simulate(agent, tools=[get_order], situations=400, repeats=1, concurrency=2, progress=progress)
    assert 3 <= len(data) < 400
    assert data.report.stopped == "interrupted"
    assert any("stopped early" in w for w in data.warnings)


def test_strength_three_covers_triples() -> None:
    data = program(situations=700, repeats=1, options={"strength": 3, "off_topic": 0.0})
    pairs = data.report.pairs
    assert pairs["planned"] == pairs["covered"] > 1500


def test_clauses_of_the_policy_that_no_situation_is_about_are_told() -> None:
    policy = "\n".join(f"- You must never do number {n} without a written approval." for n in range(40))
    few = program(system_prompt=policy, situations=10, repeats=1)
    told = [w for w in few.warnings if "clauses of the policy are in none of the 10 situations" in w]
    met = {row["axes"]["policy_rule"] for row in few} - {"none"}
    assert len(told) == 1
    assert told[0].startswith(f"{40 - len(met)} clauses")
    room = program(system_prompt=policy, situations=90, repeats=1)
    assert len({row["axes"]["policy_rule"] for row in room} - {"none"}) == 40
    assert not any("clauses of the policy" in w for w in room.warnings)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_an_earlier_run_may_be_traces(seed: int) -> None:
    """What the writer says whoever asks is no leak; the ask of a trace, with its ids, is: it never comes again."""

    @tool(kind="write")
    def set_address(order_id: str, address: str) -> dict[str, Any]:
        """Change the address of an order."""
        ...

    call: dict[str, Any] = {"tools": [get_order, set_address], "situations": 120, "repeats": 1, "progress": False}
    before = simulate(honest_agent(), **call)
    traces = [{**row, "reward": 0.0, "status": "ok"} for row in before]
    after = simulate(honest_agent(), traces=traces, seed=seed, **call)
    said = {row["prompt"] for row in before}
    assert len(after) == 120
    assert not any(row["prompt"] in said for row in after)
    numbered = {run for row in before for run in shingles(row["prompt"], 8) if any(c.isdigit() for c in run)}
    assert not any(numbered & shingles(row["prompt"], 8) for row in after)
    assert not seed or after.report.wording["leaks"] < 40


@pytest.mark.parametrize(
    "trace",
    [{}, {"reward": "bad"}, {"messages": "text"}, {"messages": [5]}, {"messages": None, "prompt": None}, {"prompt": 5},
     {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
     {"messages": [{"role": "assistant", "tool_calls": [{"function": None}]}]},
     {"messages": [{"role": "assistant", "tool_calls": "x"}]}],
)  # fmt: skip
def test_traces_of_any_shape_end_no_run(trace: dict[str, Any]) -> None:
    data = program(traces=[{"reward": 0.0, **trace}], situations=4, repeats=1)
    assert len(data) == 4


async def waits(message: str) -> str:
    await asyncio.sleep(0)
    return "ok"


@pytest.mark.parametrize("agent", [lambda message: "ok", waits, honest_agent()], ids=["sync", "async", "inline"])
def test_a_progress_hook_that_raises_ends_no_run(agent: Any) -> None:
    calls: list[int] = []

    def hook(done: int, planned: int) -> None:
        calls.append(done)
        raise ZeroDivisionError("mine")

    with pytest.warns(RuntimeWarning, match="progress: ZeroDivisionError: mine"):
        data = simulate(agent, situations=6, repeats=2, progress=hook)
    assert len(data) == 12
    assert calls == [1], "it is not called again"

    def stop(done: int, planned: int) -> None:
        raise StopStage("enough")

    with pytest.raises(StopStage, match="enough"):
        simulate(agent, situations=6, repeats=2, progress=stop)


@pytest.mark.parametrize("later", [False, True])
def test_a_judge_that_writes_into_its_row_changes_nothing(later: bool) -> None:
    def spoil(row: dict[str, Any]) -> float:
        row["prompt"] = "spoilt"
        row["messages"].clear()
        row["privileged"].clear()
        row["world"]["entities"].clear()
        row["final_text"], row["reward"], row["extra"] = "spoilt", 0.25, 1
        return 1.0

    async def spoil_later(row: dict[str, Any]) -> float:
        await asyncio.sleep(0)
        return spoil(row)

    call: dict[str, Any] = {"tools": [get_order], "situations": 6, "repeats": 2, "progress": False}
    honest = simulate(honest_agent(), judge=lambda row: 1.0, **call)
    spoilt = simulate(honest_agent(), judge=spoil_later if later else spoil, **call)
    assert [{**row, "scorer": None} for row in spoilt] == [{**row, "scorer": None} for row in honest]
