"""Every tool call of the offline agents: valid by its own schema, and its arguments are told or shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest

from whileai_kernel.messages import tool_calls
from whileai_kernel.tools import as_tools, tool
from whileai_simulate import honest_agent, simulate


class Guest(TypedDict):
    first_name: str
    last_name: str


class Room(TypedDict):
    room_id: str
    city: str
    price: float


@tool(kind="read")
def search_rooms(city: str, nights: int, view: Literal["sea", "garden"] = "sea") -> list[Room]:
    """Find rooms."""
    ...


@tool(kind="read")
def get_booking(booking_id: Annotated[str, "such as 'BK-2024-0001'"]) -> dict[str, Any]:
    """Get a booking."""
    ...


@tool(kind="write")
def book_room(customer_id: int, city: str, guests: list[Guest], breakfast: bool, arrival_date: str) -> dict[str, Any]:
    """Book."""
    ...


@tool(kind="write")
def cancel_booking(booking_id: str, reason: Literal["illness", "change of plans"]) -> dict[str, Any]:
    """Cancel."""
    ...


PATTERNED = {
    "name": "update_meter",
    "kind": "write",
    "parameters": {
        "type": "object",
        "properties": {
            "meter_id": {"type": "string", "pattern": "^M[0-9]{2}-[A-F]{3}$"},
            "reading": {"type": "number", "minimum": 0, "maximum": 50, "multipleOf": 0.5},
            "since": {"type": "string", "format": "date"},
            "address": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
                "required": ["city", "zip"],
            },
            "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "minItems": 1},
        },
        "required": ["meter_id", "reading", "since", "address", "tags"],
        "additionalProperties": False,
    },
}


def sets() -> Iterator[Any]:
    yield pytest.param(
        [search_rooms, get_booking, book_room, cancel_booking, PATTERNED], "You must confirm changes.", id="hotel"
    )
    for name in ("retail", "airline"):
        yield pytest.param(name, None, id=name)


def load(tools: Any, policy: Any) -> tuple[Any, Any]:
    if not isinstance(tools, str):
        return tools, policy
    root = os.environ.get("WHILEAI_SHARED")
    places = [Path(root)] if root else [p / "shared" for p in Path(__file__).resolve().parents]
    data = next((p / "data" for p in places if (p / "data").is_dir()), None)
    if data is None:
        pytest.skip("the folder shared/data is absent; set WHILEAI_SHARED to the folder that holds data/")
    schemas = json.loads((data / f"tau2_{tools}_tools.json").read_text(encoding="utf-8"))
    return schemas, (data / f"tau2_{tools}_policy.md").read_text(encoding="utf-8")


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value not in ("", None) and not isinstance(value, bool):
        yield value


def plain(text: str) -> str:
    return re.sub(r"[_\s]+", " ", text).casefold()


@pytest.mark.parametrize(("tools", "policy"), list(sets()))
def test_calls_are_valid_and_grounded(tools: Any, policy: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tools, policy = load(tools, policy)
    checks = {
        t.name: jsonschema.Draft202012Validator(t.parameters, format_checker=jsonschema.FormatChecker())
        for t in as_tools(tools)
    }
    data = simulate(honest_agent(), tools=tools, system_prompt=policy, situations=400, repeats=1)
    seen = set()
    for row in data:
        for call in tool_calls(row["messages"]):
            seen.add(call.name)
            assert call.arguments is not None
            errors = list(checks[call.name].iter_errors(call.arguments))
            assert not errors, (call, errors)
            known = plain(row["prompt"]) + plain(
                json.dumps([m["content"] for m in row["messages"][: call.turn]], ensure_ascii=False)
            )
            for leaf in leaves(call.arguments):
                assert plain(str(leaf)) in known, (leaf, row["prompt"], call)
    assert seen == set(checks)


def test_ids_look_like_those_of_the_domain() -> None:
    tools, policy = load("retail", None)
    data = simulate(honest_agent(), tools=tools, system_prompt=policy, situations=200, repeats=1)
    looks = {
        "order": r"#W\d{7}", "item": r"\d{10}", "product": r"\d{10}", "user": r"[a-z]+_[a-z]+_\d{4}",
        "payment_method": r"(gift_card|credit_card|paypal)_\d{7}",
    }  # fmt: skip
    for row in data:
        for entity, records in row["world"]["entities"].items():
            for key in records:
                assert re.fullmatch(looks[entity], key), key
