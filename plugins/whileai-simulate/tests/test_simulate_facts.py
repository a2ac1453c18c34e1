"""Tools that look up a fact: no records, no states, asks that a person would write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from whileai_simulate import Outcome, honest_agent, simulate
from whileai_simulate.entities import read_domain
from whileai_simulate.schema import problems


def look(name: str, /, returns: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    out = {"name": name, "kind": "read", "description": name, "parameters": schema}
    return {**out, "x-returns": returns} if returns else out


TEXT = {"type": "string"}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
FACTS = [
    look("get_weather", city=TEXT),
    look("get_current_weather", location=TEXT, unit=UNIT),
    look("get_stock_price", ticker=TEXT),
    look("get_exchange_rate", base={"type": "string", "enum": ["USD", "EUR"]}, target={"type": "string"}),
    look("check_distance", origin=TEXT, destination=TEXT),
]
RECORDS = [look("get_user", email=TEXT), look("search_products", query=TEXT), look("get_order", order_id=TEXT),
           look("find_customer_by_name", name=TEXT), look("get_flights", date=TEXT)]  # fmt: skip


@pytest.mark.parametrize("tool", FACTS, ids=lambda t: str(t["name"]))
def test_a_fact_has_no_record_and_no_state(tool: dict[str, Any]) -> None:
    domain = read_domain([tool])
    assert domain.entities == {}
    assert domain.tools[tool["name"]].mode == "generic"
    data = simulate(honest_agent(), tools=[tool], situations=60, repeats=1)
    noun = " ".join(tool["name"].split("_")[1:])
    outcome = Outcome()
    for row in data:
        if row["axes"]["tool"] == "none":
            continue
        assert row["axes"]["world_state"] == "none"
        assert f"the {noun}" in row["prompt"].casefold(), row["prompt"]
        for step in row["privileged"]["plan"]:
            assert problems(step["arguments"], tool["parameters"]) == []
            assert all(str(v) in row["prompt"] for v in step["arguments"].values()), "the ask tells every argument"
        assert row["faults_fired"] or outcome(row)["reward"] == 1.0
    silent = simulate(lambda message: "It is 20 degrees.", tools=[tool], situations=30, repeats=1)
    assert {outcome(r)["reward"] for r in silent if r["axes"]["tool"] != "none"} == {0.0}


@pytest.mark.parametrize("tool", RECORDS, ids=lambda t: str(t["name"]))
def test_a_record_is_no_fact(tool: dict[str, Any]) -> None:
    assert read_domain([tool]).tools[tool["name"]].mode in ("get", "find", "list")


def test_a_fact_is_the_same_for_the_same_question_and_in_the_unit_that_was_asked() -> None:
    data = simulate(
        lambda message, *, context: context.call_tool("get_current_weather", {"location": "Boston", "unit": "celsius"}),
        tools=[FACTS[1]], situations=3, repeats=3,
        axes={"tool_condition": ["success"], "tool": ["get_current_weather"]},
    )  # fmt: skip
    by_task: dict[str, set[str]] = {}
    for row in data:
        by_task.setdefault(row["task_id"], set()).add(row["final_text"])
    assert all(len(texts) == 1 for texts in by_task.values())
    assert len({t for texts in by_task.values() for t in texts}) > 1
    for text in (t for texts in by_task.values() for t in texts):
        told = json.loads(text)
        assert told["location"] == "Boston"
        assert told["unit"] == "celsius"
        assert 0 <= told["temperature"] <= 35


def test_a_declared_result_decides_what_a_fact_looks_like() -> None:
    returns = {"type": "object", "properties": {"degrees": {"type": "number", "minimum": 5, "maximum": 6}},
               "required": ["degrees"], "additionalProperties": False}  # fmt: skip
    tool = look("get_weather", returns, city=TEXT)
    data = simulate(
        lambda message, *, context: context.call_tool("get_weather", {"city": "Boston"}),
        tools=[tool], situations=5, repeats=1, axes={"tool_condition": ["success"], "tool": ["get_weather"]},
    )  # fmt: skip
    assert all(problems(json.loads(r["final_text"]), returns) == [] for r in data)
