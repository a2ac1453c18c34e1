"""The world: consequences, states that results show, faults, own functions."""

from __future__ import annotations

import copy
import json
from typing import Any, Literal, TypedDict

import pytest

from whileai_simulate.arithmetic import arithmetic
from whileai_simulate.axes import WORLD_STATES
from whileai_simulate.draw import Draw
from whileai_simulate.entities import read_domain
from whileai_simulate.faults import FAULTS, plan_fault
from whileai_simulate.scenes import build_scene
from whileai_simulate.setting import make_setting
from whileai_simulate.world import World, WorldClosedError


def schema(name: str, kind: str, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required or list(properties)}
    return {"name": name, "kind": kind, "description": name, "parameters": parameters}


TEXT = {"type": "string"}
TOOLS = [
    schema("get_order", "read", order_id=TEXT),
    schema("get_user", "read", user_id=TEXT),
    schema("find_user_by_email", "read", email=TEXT),
    schema("list_orders", "read", user_id=TEXT),
    schema("search_products", "read", query=TEXT),
    schema("get_product", "read", product_id=TEXT),
    schema("cancel_pending_order", "write", order_id=TEXT),
    schema("update_order_note", "write", order_id=TEXT, note=TEXT),
    schema("create_ticket", "write", user_id=TEXT, subject=TEXT),
    schema("calculate", "generic", expression=TEXT),
]


def shop() -> World:
    data = {
        "seed": 1,
        "entities": {
            "user": {"U1": {"user_id": "U1", "email": "a@x.io", "status": "active"}},
            "order": {
                "O1": {"order_id": "O1", "user_id": "U1", "status": "pending", "note": "none"},
                "O2": {"order_id": "O2", "user_id": "U1", "status": "delivered", "note": "none"},
                "O3": {"order_id": "O3", "user_id": "U2", "status": "pending", "note": "none"},
            },
            "product": {"P1": {"product_id": "P1", "name": "desk lamp"}},
        },
        "faults": [],
    }
    return World(read_domain(TOOLS), data)


def ask(world: World, name: str, **arguments: Any) -> Any:
    return json.loads(world.call(name, arguments))


def test_a_write_changes_what_a_later_read_shows_and_a_second_one_is_refused() -> None:
    world = shop()
    assert ask(world, "get_order", order_id="O1")["status"] == "pending"
    assert ask(world, "cancel_pending_order", order_id="O1")["status"] == "cancelled"
    assert ask(world, "get_order", order_id="O1")["status"] == "cancelled"
    assert "already" in ask(world, "cancel_pending_order", order_id="O1")["error"]
    assert ask(world, "list_orders", user_id="U1")[0]["status"] == "cancelled"
    assert list(world.changes) == ["order"]
    assert list(world.changes["order"]) == ["O1"]


def test_rollouts_of_a_task_do_not_see_each_other() -> None:
    data = copy.deepcopy(shop()._data)
    before = copy.deepcopy(data)
    first, second = (World(read_domain(TOOLS), data, {}) for _ in range(2))
    ask(first, "cancel_pending_order", order_id="O1")
    assert ask(second, "get_order", order_id="O1")["status"] == "pending"
    assert data == before


def test_a_write_needs_the_status_in_its_name() -> None:
    assert "delivered, not pending" in ask(shop(), "cancel_pending_order", order_id="O2")["error"]


def test_setting_what_is_there_already_is_refused() -> None:
    world = shop()
    assert ask(world, "update_order_note", order_id="O1", note="ring")["note"] == "ring"
    assert "already" in ask(world, "update_order_note", order_id="O1", note="ring")["error"]
    assert ask(world, "update_order_note", order_id="O1", note="knock")["note"] == "knock"


def test_a_closed_record_takes_no_change() -> None:
    world = shop()
    ask(world, "cancel_pending_order", order_id="O1")
    assert "cannot be changed" in ask(world, "update_order_note", order_id="O1", note="x")["error"]


def test_searches_return_what_exists() -> None:
    world = shop()
    assert [r["order_id"] for r in ask(world, "list_orders", user_id="U1")] == ["O1", "O2"]
    assert ask(world, "find_user_by_email", email="A@X.io")[0]["user_id"] == "U1"
    assert "no user found" in ask(world, "find_user_by_email", email="b@x.io")["error"]
    assert ask(world, "search_products", query="LAMP")[0]["product_id"] == "P1"
    assert "not found" in ask(world, "list_orders", user_id="U9")["error"]


def test_what_is_made_can_be_found_and_is_made_once() -> None:
    world = shop()
    made = ask(world, "create_ticket", user_id="U1", subject="broken")
    assert made["subject"] == "broken"
    again = ask(world, "create_ticket", user_id="U1", subject="broken")
    assert "already" in again["error"]
    assert again["ticket_id"] == made["ticket_id"]
    assert "not found" in ask(world, "create_ticket", user_id="U9", subject="x")["error"]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("get_order", {}, "order_id is missing"),
        ("get_order", {"order_id": 7}, "must be a string"),
        ("get_order", {"order_id": "O1", "extra": 1}, "extra is not a parameter"),
        ("get_order", None, "must be a JSON object"),
        ("get_orders", {"order_id": "O1"}, "no tool named"),
    ],
)
def test_wrong_calls_are_answered_as_a_server_would(name: str, arguments: Any, words: str) -> None:
    world = shop()
    assert words in json.loads(world.call(name, arguments))["error"]
    assert world.log[-1]["effect"] in ("invalid", "unknown_tool")
    assert world.changes == {}


def test_a_closed_world_takes_no_calls() -> None:
    world = shop()
    world.close()
    with pytest.raises(WorldClosedError):
        world.call("get_order", {"order_id": "O1"})


@pytest.mark.parametrize(("text", "value"), [("2 + 2 * 3", 8), ("(1.5 - 0.5) / 4", 0.25), ("-7 % 4", 1)])
def test_arithmetic(text: str, value: float) -> None:
    assert arithmetic(text) == value


@pytest.mark.parametrize(
    "text", ["__import__('os')", "9**9**9", "a + 1", "1 if 1 else 2", "1" * 300, "'a' * 3", "True + 1"]
)
def test_arithmetic_takes_nothing_else(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        arithmetic(text)


# -- states ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["get_order", "cancel_pending_order", "update_order_note", "create_ticket"])
def test_each_world_state_shows_in_tool_results_alone(tool: str) -> None:
    """Ids and names aside, six states give six different answers (of the read, or of the attempt)."""
    setting = make_setting(TOOLS, None)
    seen: dict[str, str] = {}
    for state in WORLD_STATES:
        scene = build_scene(
            setting, {"tool": tool, "stance": "ordinary", "world_state": state, "tool_condition": "success"}, 1
        )
        world = World(setting.domain, scene.world)
        answers = []
        call = scene.targets[0]
        if call.info.kind == "write" and call.info.mode != "create":
            answers.append(ask(world, "get_order", **{"order_id": call.arguments["order_id"]}))
        if call.info.mode == "create":
            answers.append(ask(world, "get_user", user_id=call.arguments["user_id"]))
        answers.append(json.loads(world.call(tool, call.arguments)))
        shape = []
        for answer in answers:
            text = answer.get("error", "")
            kind = next(
                (w for w in ("not found", "already", "cannot be confirmed") if w in text), "error" if text else "ok"
            )
            shape.append((kind, str(answer.get("status")), "possible_duplicate_of" in answer, len(world.log)))
        draft = any(r.get("status") == "draft" for kind in scene.world["entities"].values() for r in kind.values())
        seen[state] = repr((shape, draft))
    assert len(set(seen.values())) == len(WORLD_STATES), seen


def test_the_id_of_the_ask_is_the_id_of_the_world() -> None:
    setting = make_setting(TOOLS, "You must verify the identity of the user.")
    for n in range(60):
        scene = build_scene(setting, {"tool": "get_order", "stance": "ordinary", "world_state": "exists"}, n)
        order_id = scene.targets[0].arguments["order_id"]
        record = scene.world["entities"]["order"][order_id]
        owner = scene.world["entities"]["user"][record["user_id"]]
        assert order_id in owner["orders"]


def test_records_are_consistent() -> None:
    setting = make_setting(TOOLS, None)
    for n in range(60):
        scene = build_scene(setting, {"tool": "get_order", "world_state": "exists"}, n)
        for order in scene.world["entities"]["order"].values():
            assert order["total"] == pytest.approx(sum(line["price"] for line in order["items"]))
            for line in order["items"]:
                product = scene.world["entities"]["product"][line["product_id"]]
                assert (product["name"], product["price"]) == (line["name"], line["price"])
        user = next(iter(scene.world["entities"]["user"].values()))
        assert user["email"].startswith(user["first_name"].lower())


# -- faults ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_fire_as_planned_and_are_recorded(kind: str) -> None:
    world = shop()
    world._data["faults"] = plan_fault(kind, "cancel_pending_order", Draw(0))  # type: ignore[index]
    answer = world.call("cancel_pending_order", {"order_id": "O1"})
    assert [f["kind"] for f in world.fired] == [kind]
    assert world.changes == {}, "a write that was answered by a fault has not happened"
    if kind == "malformed":
        with pytest.raises(ValueError):
            json.loads(answer)
    else:
        assert {"error", "warning"} & set(json.loads(answer))
    for _ in range(3):
        answer = world.call("cancel_pending_order", {"order_id": "O1"})
    if kind == "permission_denied":
        assert len(world.fired) == 4
        assert world.changes == {}
    else:
        assert world.changes["order"]["O1"]["status"] == "cancelled"
        assert len(world.fired) <= 2


def test_a_stale_answer_shows_an_older_record() -> None:
    world = shop()
    world._data["faults"] = plan_fault("stale", "get_order", Draw(0))  # type: ignore[index]
    old = ask(world, "get_order", order_id="O2")
    assert old["data"]["status"] == "pending"
    assert "as_of" in old
    assert ask(world, "get_order", order_id="O2")["status"] == "delivered"


def test_own_functions_run_instead_of_the_mock_with_faults_still_injected() -> None:
    calls = []

    def get_order(order_id: str) -> dict[str, str]:
        calls.append(order_id)
        return {"order_id": order_id, "own": "yes"}

    async def slow(order_id: str) -> str:
        return f"async {order_id}"

    def broken(user_id: str) -> None:
        raise KeyError("no")

    data = {"seed": 0, "entities": {}, "faults": plan_fault("timeout", "get_order", Draw(0))}
    own = {"get_order": get_order, "cancel_pending_order": slow, "get_user": broken}
    world = World(read_domain(TOOLS), data, execute=own)
    assert "timeout" in ask(world, "get_order", order_id="Z")["error"]
    assert calls == []
    assert ask(world, "get_order", order_id="Z") == {"order_id": "Z", "own": "yes"}
    assert world.call("cancel_pending_order", {"order_id": "Z"}) == "async Z"
    assert "KeyError" in ask(world, "get_user", user_id="Z")["error"]
    assert [e["effect"] for e in world.log] == ["fault", "read", "changed", "tool_error"]


def test_own_faults_and_own_worlds() -> None:
    from whileai_simulate import simulate
    from whileai_simulate.faults import Fault
    from whileai_simulate.outcome import Outcome

    class Slow(World):
        def answer(self, info: Any, arguments: dict[str, Any]) -> str:
            if info.name == "cancel_pending_order":
                return self.note(
                    info.name, arguments, "refused", '{"error": "closed on Sundays"}', "order", arguments["order_id"]
                )
            return super().answer(info, arguments)

    seen: list[str] = []

    def agent(message: str, *, context: Any) -> str:
        order = next(iter(context.task["world"]["entities"].get("order") or {"none": 0}))
        seen.append(context.call_tool("cancel_pending_order", {"order_id": order}))
        seen.append(context.call_tool("cancel_pending_order", {"order_id": order}))
        return "ok"

    data = simulate(
        agent, tools=TOOLS, situations=3, repeats=1, concurrency=1,
        axes={"tool": ["cancel_pending_order"], "tool_condition": ["strike"], "world_state": ["exists"],
              "stance": ["ordinary"]},
        options={"faults": {"strike": Fault(lambda tool, honest: f"{tool} is on strike")}, "world": Slow},
    )  # fmt: skip
    assert seen[:2] == ["cancel_pending_order is on strike", '{"error": "closed on Sundays"}']
    assert data.report.faults == {"strike": {"planned": 3, "fired": 3}}
    assert {Outcome()(row)["reward"] for row in data} == {0.0}
    assert "0x" not in json.dumps(data.provenance)


# -- declared results -----------------------------------------------------------------------------------------


class Line(TypedDict):
    sku: str
    quantity: int


class Ticket(TypedDict):
    ticket_id: str
    status: Literal["open", "waiting", "closed"]
    priority: Literal["low", "high"]
    lines: list[Line]


def _results(tools: list[Any], **axes: Any) -> list[tuple[str, Any]]:
    """What every successful call of an honest run returned, with the tool's name."""
    from whileai_kernel.messages import tool_calls
    from whileai_simulate import honest_agent, simulate

    pinned = {"tool_condition": ["success"], **axes}
    data = simulate(honest_agent(), tools=tools, situations=80, repeats=1, axes=pinned)
    found = []
    for row in data:
        for call in tool_calls(row["messages"]):
            value = json.loads(call.result or "null")
            if not (isinstance(value, dict) and "error" in value):
                found.append((call.name, value))
    assert found
    return found


def test_results_satisfy_the_declared_schema_in_every_state() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from whileai_kernel.tools import tool

    @tool(kind="read")
    def get_ticket(ticket_id: str) -> Ticket: ...

    @tool(kind="write")
    def close_ticket(ticket_id: str) -> Ticket: ...

    @tool(kind="write")
    def cancel_parcel(parcel_id: str) -> dict[str, str]: ...

    @tool(kind="read")
    def get_parcel(parcel_id: str) -> dict[str, str]: ...

    tools = [get_ticket, close_ticket, cancel_parcel, get_parcel]
    checks = {t.name: jsonschema.Draft202012Validator(t.returns) for t in tools}
    seen = set()
    for name, value in _results(tools):
        assert list(checks[name].iter_errors(value)) == [], (name, value)
        seen.add((name, value.get("status")))
    assert ("close_ticket", "closed") in seen, "the status that the schema spells is the one that a change leaves"
    assert {n for n, _ in seen} == set(checks)


def test_spellings_of_a_status_follow_the_schema() -> None:
    status = {"type": "object", "properties": {"order_id": TEXT, "status": {"enum": ["new", "canceled"]}}}
    tools = [
        {**schema("get_order", "read", order_id=TEXT), "x-returns": status},
        schema("cancel_order", "write", order_id=TEXT),
    ]
    domain = read_domain(tools)
    assert domain.tools["cancel_order"].done == "canceled"
    assert "canceled" in {v.get("status") for n, v in _results(tools, world_state=["exists"]) if n == "cancel_order"}
