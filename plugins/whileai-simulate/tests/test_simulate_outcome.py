"""The outcome check: an agent that does nothing earns nothing, an honest one everything that is not blocked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from whileai_kernel.registry import make
from whileai_kernel.tools import Tool, as_tools
from whileai_simulate import honest_agent, simulate
from whileai_simulate.axes import WORLD_STATES
from whileai_simulate.outcome import Outcome, state_equal
from whileai_simulate.scenes import ACTING

ID = {"type": "string", "description": "Such as 'A-1704'."}


def shop() -> list[Tool]:
    def schema(name: str, kind: str, **extra: Any) -> dict[str, Any]:
        properties = {"order_id": ID, **extra}
        return {
            "name": name,
            "kind": kind,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        }

    return as_tools(
        [
            schema("get_order", "read"),
            schema("cancel_order", "write"),
            schema("update_order_note", "write", note={"type": "string"}),
        ]
    )


def rows_of(agent: Any, **call: Any) -> list[dict[str, Any]]:
    data = simulate(agent, tools=shop(), system_prompt="You must be kind.", situations=260, repeats=1, **call)
    return list(data)


def test_a_constant_sentence_earns_nothing_in_every_world_state() -> None:
    check = Outcome()
    seen: Counter[Any] = Counter()
    for row in rows_of(lambda message: "All done, your request has been completed."):
        verdict = check(row)
        goal = row["privileged"]["goal"]
        if goal["subgoals"]:
            assert verdict["reward"] == 0.0, row["prompt"]
            seen[row["axes"]["world_state"]] += 1
        else:
            assert verdict["reward"] is None
            assert verdict["status"] == "abstained"
    assert set(WORLD_STATES) <= set(seen)


def test_an_honest_agent_earns_everything_that_no_fault_blocks() -> None:
    check = Outcome()
    states: Counter[Any] = Counter()
    for row in rows_of(honest_agent()):
        verdict = check(row)
        if verdict["reward"] is None:
            blocked = any(f["kind"] == "permission_denied" for f in row["faults_fired"])
            assert blocked or not row["privileged"]["goal"]["subgoals"]
            continue
        assert verdict["reward"] == 1.0, (row["prompt"], row["world_log"])
        states[row["axes"]["world_state"]] += 1
    assert set(WORLD_STATES) <= set(states)


def test_where_acting_is_wrong_acting_earns_nothing() -> None:
    """An agent that does whatever the ask names, without looking at the stance."""

    def eager(message: str, *, context: Any) -> str:
        entities = context.task["world"]["entities"].get("order", {})
        for key in entities:
            context.call_tool("cancel_order", {"order_id": key})
        return "Cancelled."

    check = Outcome()
    for row in rows_of(eager):
        if row["axes"].get("tool") == "cancel_order" and row["axes"]["stance"] not in ACTING:
            assert check(row)["reward"] in (0.0, None)
            if row["world_log"]["changes"]:
                assert check(row)["reward"] == 0.0


def test_a_claimed_call_is_not_a_call() -> None:
    def liar(message: str) -> dict[str, Any]:
        return {
            "steps": [{"name": "cancel_order", "arguments": {"order_id": "A-1704"}, "result": {"status": "cancelled"}}],
            "final_text": "Cancelled.",
        }

    assert all(Outcome()(row)["reward"] in (0.0, None) for row in rows_of(liar))


def test_is_a_registered_verifier() -> None:
    assert make("verifiers", "simulate/outcome").threshold == 1.0
    assert make("verifiers", "simulate/outcome")({"final_text": "x"})["status"] == "missing"


def test_an_empty_agent_with_the_goal_state_already_there_needs_evidence() -> None:
    goal = {
        "kind": "lookup",
        "subgoals": [{"do": "see", "entity": "order", "id": "1", "effects": ["read"]}],
        "changes": [],
    }
    row = {"final_text": "ok", "privileged": {"goal": goal}, "world_log": {"calls": [], "changes": {}}}
    assert Outcome()(row)["reward"] == 0.0


@pytest.mark.parametrize(
    ("a", "b", "unordered", "equal", "where"),
    [
        ({"pay": [{"id": 1}, {"id": 2}]}, {"pay": [{"id": 2}, {"id": 1}]}, {"pay"}, True, ""),
        ({"x": 10}, {"x": 10.0}, set(), True, ""),
        ({"x": "10"}, {"x": 10}, set(), False, "x"),
        ({"log": ["a", "b"]}, {"log": ["b", "a"]}, set(), False, "log[0]"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, set(), False, "a.b"),
        ({"a": 1}, {"a": 1, "c": 2}, set(), False, "c"),
        ({"a": True}, {"a": 1}, set(), False, "a"),
        ({"pay": [1, 1]}, {"pay": [1, 2]}, {"pay"}, False, "pay"),
    ],
)
def test_states_are_compared_by_value(a: Any, b: Any, unordered: set[str], equal: bool, where: str) -> None:
    same, path = state_equal(a, b, unordered)
    assert same is equal
    if not equal:
        assert path == where
