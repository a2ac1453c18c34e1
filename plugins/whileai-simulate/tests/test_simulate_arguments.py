"""Wrong arguments: each is refused before anything runs, by name, with what to type next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError, RowError, UnknownNameError, WhileaiError
from whileai_kernel.rowio import write_rows
from whileai_kernel.tools import tool
from whileai_simulate import Options, honest_agent, recommend, simulate
from whileai_simulate.faults import Fault
from whileai_simulate.journal import JournalError

NAN, INF = float("nan"), float("inf")


@tool(kind="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id, such as 'A-1704'."""
    ...


@tool(kind="write")
def cancel_order(order_id: str, reason: str) -> dict[str, Any]:
    """Cancel an order."""
    ...


TOOLS = [get_order, cancel_order]
STANCES = ("ordinary", "ambiguous", "boundary", "adversarial", "hurried", "unsure", "retry", "mistaken", "exploratory",
           "conflicting")  # fmt: skip


def run(**call: Any) -> Any:
    calls: list[str] = []
    given = {"tools": TOOLS, "system_prompt": "Never lie.", "situations": 4, "repeats": 1, "progress": False, **call}
    try:
        return simulate(lambda message: calls.append(message) or "ok", **given)
    except WhileaiError:
        assert not calls, "the agent ran before the call was refused"
        raise


WRONG: list[tuple[dict[str, Any], str]] = [
    *(({"deadline_s": v}, "deadline_s must be") for v in (0, -1, "x", NAN, INF, True)),
    *(({"budget": {"seconds": v}}, "budget seconds must be") for v in (NAN, INF, 0, -1, "5", True)),
    *(({"budget": {"rollouts": v}, "situations": None}, "budget rollouts must be") for v in (2.5, INF, 0, True)),
    *(({"seed": v}, "seed must be a whole number") for v in ("a", 1.5, None, True, NAN)),
    *(({name: v}, f"{name} must be a whole number") for name in ("runs", "concurrency") for v in (0, "4", 1.5, True)),
    *(({"situations": v}, "situations must be") for v in (0, -1, 2.5, True, "4")),
    *(({"options": {"off_topic": v}}, "off_topic must be in") for v in (1, -0.1, NAN, "a", True)),
    *(
        ({"options": {name: v}}, f"{name} must be a whole number")
        for name in ("strength", "patience", "max_turns", "near_window", "leak_ngram")
        for v in (0, "4", 1.5, True)
    ),
    *(({"options": {"give_up_after": v}}, "give_up_after must be") for v in (-1, "x", 1.5)),
    *(
        ({"options": {name: v}}, f"{name} must be a number")
        for name in ("near_duplicate", "share_tolerance", "adaptive_floor")
        for v in (-1, 2, "x", NAN)
    ),
    *(({"options": {name: "x"}}, f"{name} must be a number") for name in ("rollout_tokens", "rollout_usd")),
    ({"options": [1]}, "options must be a mapping"),
    ({"options": {"locale": "en_UZ"}}, "unknown locale 'en_UZ'"),
    ({"options": {"execute": {"get_ordr": len}}}, "did you mean 'get_order'"),
    ({"options": {"execute": {"get_order": 3}}}, "must be a function"),
    ({"options": {"execute": "yes"}}, "execute must be"),
    ({"options": {"faults": {"strike": 3}}}, "must be a Fault"),
    ({"options": {"faults": {"timeout": Fault(lambda name, honest: "no")}}}, "built-in tool condition"),
    ({"options": {"world": object}}, "subclass of World"),
    ({"options": {"weights": {"stance": {"hurrid": 2}}}}, "did you mean 'hurried'"),
    ({"options": {"weights": {"stanec": {"hurried": 2}}}}, "did you mean 'stance'"),
    *(({"options": {"weights": {"stance": {"hurried": v}}}}, "weight of stance hurried") for v in (-2, NAN, "2")),
    ({"options": {"weights": {"stance": ["hurried"]}}}, "must be a mapping by value"),
    ({"options": {"weights": {"stance": dict.fromkeys(STANCES, 0)}}}, "every value of axis 'stance' has weight 0"),
    ({"options": {"forbidden": [("tol", "get_order", "stance", "hurried")]}}, "did you mean 'tool'"),
    ({"options": {"forbidden": [("tool", "get_ordr", "stance", "hurried")]}}, "did you mean 'get_order'"),
    *(({"options": {"forbidden": v}}, "a forbidden pair is") for v in ([("tool", "get_order")], "abcd", [3])),
    ({"options": {"forbidden": [("tool", "get_order", "tool", "cancel_order")]}}, "pin the axis"),
    *(({"axes": {name: ["hurried"]}}, "did you mean 'stance'") for name in ("stanec", "stances", "Stance")),
    *(({"axes": {"stance": v}}, "must have a list of values") for v in (3, {"hurried"}, {"hurried": 1}, iter("ab"))),
    *(({"axes": {"colour": [v]}}, "must be text or a number") for v in ([1], None, {}, NAN)),
    ({"axes": ["stance"]}, "axes must be a mapping"),
    ({"axes": {3: [1]}}, "must be text"),
    ({"axes": {"stance": ["retry"], "history": ["fresh"]}}, "stance=retry and history=fresh exclude each other"),
    *(({"seeds": v}, "seeds must be a list") for v in ("cancel my order", {"prompt": "x"}, 3)),
    *(({"seeds": [v]}, "seed 0 has no text") for v in ("", " \n", 3, {"prompt": ""}, {"promt": "x"})),
    ({"seeds": [{"prompt": "x", "axes": {"stance": "hurrid"}}]}, "did you mean 'hurried'"),
    ({"seeds": [{"prompt": "x", "axes": ["stance"]}]}, "axes of a seed"),
    ({"seeds": ["hello there"] * 5}, "5 seeds must run, and there is room for 4"),
    ({"tasks": "none.jsonl"}, "there is no file 'none.jsonl'"),
    ({"tasks": 3}, "tasks must be rows or a path"),
    ({"tasks": [3]}, "a row is a mapping"),
    ({"tasks": {"prompt": "x"}}, "tasks must be rows or a path"),
    *(
        ({"tasks": [{"prompt": "x"}], "situations": None, **more}, "exclude each other")
        for more in ({"seeds": ["hi there"]}, {"axes": {"stance": ["hurried"]}}, {"traces": [{"prompt": "x"}]})
    ),
    ({"traces": "none.jsonl"}, "there is no file 'none.jsonl'"),
    *(({"traces": v}, "traces must be rows or a path") for v in (3, {"prompt": "x"})),
    ({"traces": [3]}, "a row is a mapping"),
    *(({name: v}, f"{name} must be a path") for name in ("output", "checkpoint") for v in ("", 3)),
    *(({name: v}, f"{name} is no path") for name in ("output", "checkpoint") for v in ("a\0b", "x" * 300)),
    ({"judge": 3}, "3 is no judge"),
    ({"judge": "simulate/outcom"}, "did you mean 'simulate/outcome'"),
    ({"progress": "x"}, "progress must be"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[f"{n}-{next(iter(call))}" for n, (call, _) in enumerate(WRONG)])
def test_a_wrong_argument_is_refused_before_anything_runs(call: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, UnknownNameError, WhileaiError)) as caught:
        run(**call)
    assert said in str(caught.value)


def test_right_ones_are_taken() -> None:
    assert len(run(deadline_s=None)) == len(run(seeds=None)) == len(run(traces=[])) == 4
    assert len(run(options=Options(strength=1, give_up_after=0))) == 4
    assert len(run(axes={"colour": ("red", "blue"), "history": None})) == 4
    assert len(run(options={"forbidden": [("tool", "get_order", "stance", "hurried")]}, axes={"stance": None})) == 4
    assert len(run(options={"locale": "de_DE"})) == 4


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    for name in ("output", "checkpoint"):
        with pytest.raises(ParameterError, match="is a directory"):
            run(**{name: tmp_path})
    with pytest.raises(ParameterError, match="same file"):
        run(output=tmp_path / "a.jsonl", checkpoint=tmp_path / "x" / ".." / "a.jsonl")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(JournalError, match="cannot open"):
        run(checkpoint=tmp_path / "file" / "journal")
    with pytest.raises(ParameterError, match="cannot write"):
        run(output=tmp_path / "file" / "rows.jsonl")
    with pytest.raises(ParameterError, match="cannot write"):
        run(output=tmp_path / "file" / "rows.jsonl", checkpoint=tmp_path / "journal")


def test_tasks_and_traces_come_from_a_file_too(tmp_path: Path) -> None:
    rows = simulate(honest_agent(), tools=TOOLS, system_prompt="Never lie.", situations=6, repeats=2, progress=False)
    write_rows(tmp_path / "rows.jsonl", rows)
    for given in (str(tmp_path / "rows.jsonl"), tmp_path / "rows.jsonl", rows, list(rows), iter(rows)):
        again = simulate(honest_agent(), tasks=given, repeats=2, progress=False)
        assert [r["messages"] for r in again] == [r["messages"] for r in rows]
    failing = [{**r, "reward": 0.0, "status": "ok"} for r in rows]
    write_rows(tmp_path / "traces.jsonl", failing)
    assert list(run(traces=tmp_path / "traces.jsonl")) == list(run(traces=failing))


def test_what_a_task_lacks_the_call_adds() -> None:
    seen: list[Any] = []

    def agent(messages: list[Any], tools: list[Any]) -> str:
        seen.append((messages[0]["role"], messages[0]["content"], [t["function"]["name"] for t in tools]))
        return "ok"

    tasks = [{"prompt": "hello"}, {"prompt": "good day", "system_prompt": "Be brief.", "tools": []}]
    data = simulate(
        agent, tools=TOOLS, system_prompt="Never lie.", tasks=tasks, repeats=1, concurrency=1, progress=False
    )
    assert seen[0] == ("system", "Never lie.", ["get_order", "cancel_order"])
    assert seen[1][:2] == ("system", "Be brief.")
    assert any("1 of 2 tasks bring a system prompt of their own" in w for w in data.warnings)


def test_labels_of_foreign_traces_aim_nothing_and_never_show() -> None:
    secret = "the customer's very own words"
    rows = [{"prompt": "x", "reward": 0.0, "axes": {"stance": secret, "tool": [secret], "history": {"a": secret}}},
            {"prompt": "y", "reward": 0.0, "axes": secret}, {"prompt": "z", "reward": 0.0}]  # fmt: skip
    data = run(traces=rows)
    assert secret not in str(list(data)) + str(data.warnings) + str(data.provenance) + str(data.report)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"axes": "text"}, "axes of a task must be a mapping"),
        ({"axes": {"stance": ["a"]}}, "axis 'stance' of a task"),
        ({"world": "text"}, "world of a task must be a mapping"),
        ({"world": {"entities": {"order": [1]}}}, "entities of a world"),
        ({"world": {"entities": {"order": {"A-1": 1}}}}, "entities of a world"),
        ({"world": {"faults": [{"kind": "timeout"}]}}, "faults of a world"),
        ({"world": {"faults": "timeout"}}, "faults of a world"),
        ({"privileged": "secret"}, "privileged of a task must be a mapping"),
        ({"privileged": {"plan": [{"tool": "x"}]}}, "the plan of a task"),
        ({"privileged": {"plan": "call it"}}, "the plan of a task"),
        ({"privileged": {"goal": "do it"}}, "the goal of a task"),
        ({"tools": "text"}, "tools of a task must be a list"),
        ({"system_prompt": 5}, "system_prompt of a task must be text"),
        ({"prompt": ["x"]}, "a task needs a prompt"),
        ({"prompt": ""}, "a task needs a prompt"),
    ],
)
def test_a_task_of_another_shape_is_named_by_its_place(task: dict[str, Any], said: str) -> None:
    with pytest.raises(RowError) as caught:
        run(tasks=[{"prompt": "fine"}, {"prompt": "hello", **task}], situations=None)
    assert said in str(caught.value)
    assert caught.value.row == 1


def test_parts_of_a_task_that_are_none_are_as_if_they_were_not_there() -> None:
    empty = {"world": None, "axes": None, "privileged": {"plan": None, "goal": None}, "tools": None, "split": None}
    tasks = [{"prompt": "hello", **empty}, {"prompt": "hi", "world": {"entities": None, "faults": None, "seed": None}}]
    data = simulate(honest_agent(), tools=TOOLS, tasks=tasks, repeats=1, progress=False)
    assert [row["outcome"] for row in data] == ["completed"] * 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        *(({"half_width": v}, "half_width must be in") for v in (0, 0.6, NAN, "x", True)),
        *(({"concurrency": v, "rollout_s": 1.0}, "concurrency must be") for v in (0, -1, 1.5, "x")),
        *(({name: v}, f"{name} must be a number") for name in ("rollout_usd", "rollout_s") for v in (-1, NAN, "x")),
        ({"mode": "rll"}, "did you mean 'rl'"),
        ({"strength": 5}, "strength must be"),
    ],
)
def test_a_recommendation_of_nonsense_is_refused(call: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        recommend(TOOLS, "Never lie.", **call)
    assert said in str(caught.value)
