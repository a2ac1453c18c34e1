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


def verdict_of(
    goal: dict[str, Any], calls: list[dict[str, Any]], changes: dict[str, Any] | None = None, **row: Any
) -> Any:
    made = {"prompt": "Look.", "final_text": "Done.", "outcome": "completed", "privileged": {"goal": goal}, **row}
    return Outcome()({**made, "world_log": {"calls": calls, "changes": changes or {}}})["reward"]


ORDER = {"order_id": "A-1", "status": "pending", "address": "1 Elm Street", "note": "x"}
CANCEL = {
    "subgoals": [{"do": "change", "tool": "cancel", "entity": "order", "id": "A-1", "fields": {"status": "cancelled"}}],
    "changes": [["order", "A-1"]],
}


@pytest.mark.parametrize(
    ("after", "reward"),
    [
        ({"status": "cancelled"}, 1.0),
        ({"status": "cancelled", "reason": "late"}, 1.0),  # a parameter of the tool that was asked for
        ({"status": "cancelled", "address": "2 Oak Street"}, 0.0),
        ({"status": "cancelled", "note": None}, 0.0),
        ({"status": "cancelled", "priority": "high"}, 0.0),
        ({"address": "2 Oak Street"}, 0.0),
        ({}, 0.0),
    ],
)
def test_other_fields_of_the_right_record_are_side_effects_too(after: dict[str, Any], reward: float) -> None:
    tools = [{"function": {"name": "cancel", "parameters": {"properties": {"order_id": {}, "reason": {}}}}}]
    world = {"entities": {"order": {"A-1": ORDER}}}
    calls = [{"tool": "cancel", "effect": "changed", "entity": "order", "id": "A-1"}]
    changes = {"order": {"A-1": {**ORDER, **after}}}
    assert verdict_of(CANCEL, calls, changes, world=world, tools=tools) == reward
    half = {"entities": {"order": {"A-1": {**ORDER, "status": "partly cancelled", "pending_steps": ["confirmation"]}}}}
    assert verdict_of(CANCEL, calls, changes, world=half, tools=tools) == reward


def test_an_agent_that_also_changes_what_nobody_named_earns_nothing() -> None:
    """After the right course, every other write on the same record: no row with a further change is paid."""

    class Eager:
        inline = reads_privileged = True

        def __call__(self, message: str, *, context: Any) -> str:
            context.call_tool("update_order_note", {"order_id": "none", "note": "x"})
            for step in context.privileged["plan"]:
                key = step["arguments"].get("order_id")
                for _ in range(3):
                    context.call_tool("update_order_note", {"order_id": key, "note": "by the way"})
                for _ in range(3):
                    context.call_tool(step["tool"], step["arguments"])
            return "Done."

    changed = 0
    for row in rows_of(Eager()):
        if row["axes"]["tool"] == "cancel_order" and row["world_log"]["changes"]:
            assert Outcome()(row)["reward"] == 0.0, row["world_log"]
            changed += 1
    assert changed > 10


USE = {"subgoals": [{"do": "use", "tool": "find_orders", "effects": ["read", "found", "not_found"]}], "changes": []}
CALL = {"subgoals": [{"do": "call", "tool": "calculate"}], "changes": []}


@pytest.mark.parametrize(
    ("goal", "planned", "given", "reward"),
    [
        (USE, {"email": "ana@x.org"}, {"email": "ana@x.org"}, 1.0),
        (USE, {"email": "ana@x.org"}, {"email": "ANA@x.org "}, 1.0),
        (USE, {"email": "ana@x.org"}, {"email": "bob@x.org"}, 0.0),
        (USE, {"email": "ana@x.org"}, {}, 0.0),
        (USE, {"email": "not.in.the@ask"}, {"email": "bob@x.org"}, 1.0),
        (CALL, {"expression": "2 * 3 + 1"}, {"expression": "1+3*2"}, 1.0),
        (CALL, {"expression": "2 * 3 + 1"}, {"expression": "7"}, 1.0),
        (CALL, {"expression": "2 * 3 + 1"}, {"expression": "2 * 3"}, 0.0),
        (CALL, {"expression": "2 * 3 + 1"}, {"expression": "nothing"}, 0.0),
    ],
)
def test_a_call_with_other_values_than_the_ask_states_is_not_the_call(
    goal: dict[str, Any], planned: dict[str, Any], given: dict[str, Any], reward: float
) -> None:
    tool = goal["subgoals"][0]["tool"]
    private = {"goal": goal, "plan": [{"tool": tool, "arguments": planned}]}
    calls = [{"tool": tool, "effect": "read", "arguments": given}]
    ask = "Look for ana@x.org, and work out 2 * 3 + 1."
    assert verdict_of(goal, calls, prompt=ask, privileged=private) == reward


def test_a_search_in_vain_for_something_else_is_no_look_at_the_missing_record() -> None:
    goal = {"subgoals": [{"do": "see", "entity": "order", "id": "A-1", "effects": ["not_found"]}], "changes": []}
    private = {"goal": goal, "plan": [{"tool": "get_order", "arguments": {"order_id": "A-1"}}]}

    def reward(**call: Any) -> Any:
        base = {"tool": "find_orders", "effect": "not_found", "entity": "order", "id": None}
        return verdict_of(goal, [{**base, **call}], prompt="Where is A-1?", privileged=private)

    assert reward(tool="get_order", id="A-1") == 1.0
    assert reward(tool="get_order", id="A-2") == 0.0
    assert reward() == 0.0
    assert reward(arguments={"query": "A-2"}) == 0.0
    assert reward(arguments={"query": "a-1"}) == 1.0


def test_what_own_functions_did_is_not_known_and_so_not_scored() -> None:
    """The state of the world stands still when the user's functions answer: an honest agent earns no 0 for that."""
    records: dict[str, str] = {}

    def get_order(order_id: str) -> dict[str, Any]:
        return {"order_id": order_id, "status": records.get(order_id, "pending")}

    def cancel_order(order_id: str) -> dict[str, Any]:
        records[order_id] = "cancelled"
        return get_order(order_id)

    own = {"get_order": get_order, "cancel_order": cancel_order}
    rewards: Counter[Any] = Counter()
    for row in rows_of(honest_agent(), options={"execute": own}):
        if row["axes"].get("tool") in own:
            rewards[Outcome()(row)["reward"]] += 1
    assert rewards[0.0] == 0
    assert rewards[None] > 0
    for row in rows_of(lambda message: "All done.", options={"execute": own}):
        assert Outcome()(row)["reward"] in (0.0, None)
