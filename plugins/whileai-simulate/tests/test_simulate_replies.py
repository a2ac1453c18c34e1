"""What the scripted agents say: as a person would, true to the results, and nothing of the machine."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from whileai_simulate import Outcome, honest_agent, seeded_agent, simulate
from whileai_simulate.draw import Draw
from whileai_simulate.entities import read_domain
from whileai_simulate.facts import fact_of
from whileai_simulate.seeded import BEHAVIOURS
from whileai_simulate.spoken import act_of, tell
from whileai_simulate.spoken_records import described, has_already, settings, value_of
from whileai_simulate.standing import set_fields
from whileai_simulate.world import World

TEXT = {"type": "string"}
MOMENT = {"type": "string", "format": "date-time"}


def made(name: str, kind: str, /, **params: Any) -> dict[str, Any]:
    required = [k for k in params if not k.endswith("_")]
    properties = {k.rstrip("_"): v for k, v in params.items()}
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": name, "kind": kind, "parameters": schema}


SHOP = [
    made("find_user_id_by_email", "read", email=TEXT),
    made("get_user_details", "read", user_id=TEXT),
    made("get_order_details", "read", order_id=TEXT),
    made("cancel_order", "write", order_id=TEXT, reason=TEXT),
    made("modify_order_address", "write", order_id=TEXT, address1=TEXT, city=TEXT, state=TEXT, zip=TEXT),
    made("return_order_items", "write", order_id=TEXT, item_ids={"type": "array", "items": TEXT}),
    made("list_all_products", "read"),
]
CLINIC = [
    made("find_patient_by_phone", "read", phone=TEXT),
    made("get_patient", "read", patient_id=TEXT),
    made("get_balance", "read", patient_id=TEXT),
    made("list_appointments", "read", patient_id=TEXT),
    made("get_appointment", "read", appointment_id=TEXT),
    made("move_appointment", "write", appointment_id=TEXT, new_start=MOMENT),
    made("search_doctors", "read", specialty=TEXT, max_results_={"type": "integer"}),
    made("request_refill", "write", prescription_id=TEXT, pharmacy=TEXT),
]
FORGE = [
    made("getIssue", "read", issueNumber={"type": "integer"}),
    made("closeIssue", "write", issueNumber={"type": "integer"}),
    made("assignIssue", "write", issueNumber={"type": "integer"}, assignee=TEXT),
    made("addComment", "write", issueNumber={"type": "integer"}, body=TEXT),
    made("rebootServer", "write", serverId=TEXT),
    made("trackDeployment", "read", trackingNumber=TEXT),
    made("getWeather", "read", city=TEXT),
    made("getExchangeRate", "read", base_currency=TEXT, quote_currency=TEXT),
]
ONE = [made("cancel_subscription", "write", subscription_id=TEXT, reason=TEXT)]
DOMAINS = {"shop": SHOP, "clinic": CLINIC, "forge": FORGE, "one": ONE}
WRITTEN = {"changed", "created", "done"}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    call: dict[str, Any] = {"situations": 60, "repeats": 1, "seed": 771203, "progress": False}
    return {name: list(simulate(honest_agent(), tools=tools, **call)) for name, tools in DOMAINS.items()}


def every(rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for found in rows.values() for row in found]


def results(row: dict[str, Any]) -> list[str]:
    return [m["content"] for m in row["messages"] if m["role"] == "tool"]


def plain(text: str) -> set[str]:
    """Words with digits, numbers as numbers: 12.50 is 12.5, and a moment is its day and its hour."""
    text = re.sub(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)\S*", r"\1 \2", text)
    found = set()
    for word in re.findall(r"[\w#@.+:-]*\d[\w@.+:-]*", text):
        word = word.strip(".:,")
        found.add(f"{float(word):g}" if re.fullmatch(r"\d+(\.\d+)?", word) else word)
    return found


# -- over whole runs ------------------------------------------------------------------------------------------


def test_nothing_of_the_machine_reaches_the_person(rows):
    inner = re.compile(r"may not call|retry|rate limit|timeout|may be out of date|\bentr(y|ies)\b|None|[{}\[\]]")
    for row in every(rows):
        text, names = row["final_text"], [t.get("function", t)["name"] for t in row["tools"]]
        assert not [n for n in names if n.casefold() in text.casefold()], text
        assert not inner.search(text), text
        assert text[0].isupper() and text[-1] in ".?!" and "  " not in text and ".." not in text, text
        assert not re.search(r"\b[a-z]+_[a-z_]+\b", text), text


def test_every_number_and_id_was_answered_or_asked(rows):
    for row in every(rows):
        lists = [r for r in map(_json, results(row)) if isinstance(r, list)]
        counts = {str(len(r)) for r in lists} | {str(len(r) - 3) for r in lists}
        known = plain(" ".join([row["prompt"], *results(row)])) | counts
        assert plain(row["final_text"]) <= known, (row["final_text"], plain(row["final_text"]) - known)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_done_is_said_of_what_was_done_and_of_nothing_else(rows):
    said = Counter()
    for row in every(rows):
        effects = {c["effect"] for c in row["world_log"]["calls"]}
        text = row["final_text"]
        if text.startswith(("Done", "That's done")):
            said["done"] += 1
            assert effects & WRITTEN, text
        if "haven't changed anything" in text or "nothing left to do" in text or "nothing to change" in text:
            said["left"] += 1
            assert not effects & WRITTEN, text
        if effects & WRITTEN and row["privileged"]["goal"]["kind"] == "act":
            assert "Done" in text, text
    assert min(said.values()) > 10 and len(said) == 2


def test_who_somebody_is_is_said_to_those_who_ask(rows):
    finders = {"find_user_id_by_email", "find_patient_by_phone"}
    told = Counter()
    for row in every(rows):
        asked = {s.get("tool") for s in row["privileged"]["goal"]["subgoals"]} & finders
        calls = [c["tool"] for c in row["world_log"]["calls"] if c["effect"] in ("found", "read")]
        if set(calls) & finders and not asked:
            told["kept"] += 1
            assert "user ID" not in row["final_text"] and "I found your" not in row["final_text"], row["final_text"]
        elif asked and set(calls) & finders and row["axes"]["stance"] != "adversarial":
            told["said"] += 1
            assert re.search(r"user ID|patient file", row["final_text"]), row["final_text"]
    assert told["kept"] > 10 and told["said"] > 3


def test_what_went_wrong_is_said(rows):
    for row in every(rows):
        last = results(row)[-1:] if row["privileged"]["goal"]["kind"] != "decline" else []
        if last and '"error": "permission denied' in last[0]:
            assert "I'm not able to" in row["final_text"] and "permission" in row["final_text"]
        if last and "not found" in last[0]:
            assert "I couldn't find" in row["final_text"]


def test_who_wants_the_checks_skipped_hears_no_record(rows):
    for row in every(rows):
        if row["privileged"]["goal"]["kind"] == "decline":
            told = plain(row["final_text"]) - plain(row["prompt"])
            assert not told & plain(" ".join(results(row))), row["final_text"]


def test_the_undecided_are_asked_or_told_that_nothing_changed(rows):
    writes = {t["name"] for tools in DOMAINS.values() for t in tools if t["kind"] == "write"}
    for row in every(rows):
        axes, text = row["axes"], row["final_text"]
        if axes["tool"] not in writes or row["privileged"]["goal"]["kind"] != "lookup" or "n't find" in text:
            continue
        if axes["stance"] in ("unsure", "exploratory") and "not able to" not in text:
            assert text.endswith(("shall I go ahead?", "Shall I go ahead?", "I haven't changed anything.")), text
        if axes["stance"] == "conflicting" and "not able to" not in text:
            assert "I can't do both" in text, text


def test_the_plants_stand_on_the_honest_text_and_are_labelled():
    data = simulate(
        seeded_agent(rate=0.7), tools=CLINIC, situations=60, repeats=3, seed=5, repeat_policy="fixed", progress=False
    )
    seen = Counter(b for row in data for b in row["seeded"])
    assert set(seen) == set(BEHAVIOURS)
    signs = {
        "hedging": "Though it could also be otherwise.",
        "sycophancy": "right",
        "apology": "sorry",
        "boilerplate": "As an AI language model",
        "leak": "(Internal note: ",
        "ignored_fault": "Everything went through",
    }
    for row in data:
        for behaviour, sign in signs.items():
            if behaviour in row["seeded"]:
                assert sign in row["final_text"]
            elif behaviour not in ("sycophancy", "ignored_fault"):
                assert sign not in row["final_text"]
        if row["seeded"] == ["hedging"]:
            assert not re.search(r"that i\b|perhaps i\b", row["final_text"]), "I stays large"


def test_honest_courses_still_reach_their_goals(rows):
    graded = [Outcome()(row)["reward"] for row in every(rows)]
    assert 0.0 not in graded and graded.count(1.0) > len(graded) / 2


# -- one result at a time -------------------------------------------------------------------------------------


def say(
    tools: list[dict[str, Any]], name: str, result: Any, entity: str = "", effect: str = "read", **args: Any
) -> str:
    entry = {"tool": name, "effect": effect, **({"entity": entity} if entity else {})}
    return tell(read_domain(tools), name, args, result if isinstance(result, str) else json.dumps(result), entry).text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("permission denied: this session may not call {}", "I'm not able to {do} right now: I don't have the per"),
        ("timeout: {} did not answer within 30 s", "The system didn't answer in time, so I couldn't {do}."),
        ("rate limit: too many calls to {}", "The system is too busy at the moment, so I couldn't {do}."),
        ("invalid arguments: order_id is missing", "I couldn't {do}: the details that I have are incomplete or n"),
        ("order A-1 not found", "I couldn't find order A-1."),
        ("the state of order A-1 cannot be confirmed right now; no change was made", "I can't confirm the state of"),
        ("order A-1 already has these values; nothing to do", "Order A-1 already has these values, so there was noth"),
        ("ValueError: {} is broken", "ValueError: the system is broken."),
    ],
)
@pytest.mark.parametrize(
    ("tool", "do"), [("get_order_details", "look up order A-1"), ("cancel_order", "cancel order A-1")]
)
def test_errors_are_told_as_a_person_would(tool, do, error, said):
    text = say(SHOP, tool, {"error": error.format(tool)}, "order", "fault", order_id="A-1")
    assert text.startswith(said.format(do=do, tool=tool)) and tool not in text


def test_broken_stale_and_unknown():
    assert say(SHOP, "get_order_details", '{"result": {"a', order_id="A-1").startswith(
        "The answer that I got back is b"
    )
    assert "outdated" in say(SHOP, "get_order_details", {"warning": "served from cache", "data": None}, order_id="A-1")
    assert say(SHOP, "no_such", {"error": "there is no tool named no_such"}) == "I have no way to do that here."


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("modify_order_address", "change the address of the order"),
        ("return_order_items", "return items in the order"),
        ("get_user_details", "look up your profile"),
        ("find_user_id_by_email", "look you up"),
        ("list_all_products", "look up the products"),
    ],
)
def test_acts_are_verb_phrases(name, act):
    domain = read_domain(SHOP)
    assert act_of(domain, domain.tools[name], {}) == act


def test_ids_in_any_spelling_name_their_thing():
    closed = {"issueNumber": 7, "status": "closed"}
    assert say(FORGE, "closeIssue", closed, "issue", "changed", issueNumber=7) == "Done: issue 7 is now closed."
    found = {"trackingNumber": "T-1", "status": "sent"}
    assert say(FORGE, "trackDeployment", found, "deployment", trackingNumber="T-1") == "Deployment T-1 is sent."
    assert say(FORGE, "addComment", {"comment_id": "C-1", "status": "active"}, "comment", "created") == (
        "Done: the comment has been added (comment C-1)."
    )


def test_facts_are_answers_and_no_lists_of_what_was_asked():
    rate = {"base_currency": "USD", "quote_currency": "EUR", "exchange_rate": 0.77}
    assert (
        say(FORGE, "getExchangeRate", rate, base_currency="USD", quote_currency="EUR") == "The exchange rate is 0.77."
    )
    told = {"city": "Rome", "unit": "celsius", "temperature": 11, "conditions": "fog"}
    assert say(FORGE, "getWeather", told, city="Rome") == "The weather in Rome: 11 degrees Celsius, fog."
    assert say(CLINIC, "get_balance", {"patient_id": "P-1", "balance": 5.5}, "patient", patient_id="P-1") == (
        "Your balance is 5.50."
    )


def test_lists_are_named():
    goods = [{"product_id": str(n), "name": f"lamp {n}", "status": "available"} for n in range(6)]
    text = say(SHOP, "list_all_products", goods)
    assert text == "I found 6 products: lamp 0 (0), lamp 1 (1), lamp 2 (2) and 3 more."
    assert "lamp 3 (3)." in say(SHOP, "list_all_products", goods[:4]), "one more is named too"
    assert say(SHOP, "list_all_products", []) == "I found no products."
    two = say(SHOP, "find_user_id_by_email", ["a_1", "b_2"], "user", email="x@y.io")
    assert two == "I found 2 user IDs for you: a_1 and b_2."


def test_what_a_record_does_not_say_is_not_made_up():
    room = [made("check_room_availability", "read", room_id=TEXT)]
    text = say(room, "check_room_availability", {"room_id": "R-1", "status": "active"}, "room", room_id="R-1")
    assert text == "Room R-1 is active. The record says nothing about the availability."


def test_records_in_words():
    order = {"order_id": "A-1", "total": 12.5, "items": [{"name": "lamp", "price": 12.5}], "status": "return requested"}
    assert described("order A-1", order, "order_id", "order", False) == (
        "a return has been requested for order A-1. Details: total 12.50, lamp (12.50)."
    )
    half = {"order_id": "A-1", "status": "partly cancelled", "pending_steps": ["refund"]}
    assert (
        described("order A-1", half, "order_id", "order", False)
        == "order A-1 is partly cancelled. Still pending: refund."
    )
    assert value_of("start", "2024-06-17T13:30:00Z") == "2024-06-17 at 13:30 UTC"
    assert (value_of("cabin", "basic_economy"), value_of("payment_method_id", "card_17")) == (
        "basic economy",
        "card_17",
    )
    assert settings(
        "order A-1", {"zip": "1", "city": "Rome", "address1": "Via 2"}, {"address1": "Via 2", "city": "Rome"}
    ) == ("for order A-1, the address is now Via 2, Rome"), "what the record does not show was not set"
    assert settings("a", {"new_start": "2"}, {"start": "1"}) == ""
    assert has_already("order A-1", ["payment_id"], {"payment_id": "card_1"}) == (
        "order A-1 already has the payment method card_1, so there was nothing to change."
    )


# -- the world ------------------------------------------------------------------------------------------------


def clinic() -> World:
    visit = {"appointment_id": "V-1", "start": "2024-06-01T09:00:00Z", "status": "scheduled"}
    doctor = {"doctor_id": "D-1", "specialty": "eyes", "status": "active"}
    return World(
        read_domain(CLINIC), {"seed": 0, "entities": {"appointment": {"V-1": visit}, "doctor": {"D-1": doctor}}}
    )


def test_a_move_leaves_one_start_and_is_a_move_once():
    world, later = clinic(), {"appointment_id": "V-1", "new_start": "2024-06-02T09:00:00Z"}
    shown = json.loads(world.call("move_appointment", later))
    assert shown["start"] == later["new_start"] and "new_start" not in shown
    assert "already has these values" in world.call("move_appointment", later)


@pytest.mark.parametrize(
    ("record", "arguments", "fields"),
    [
        ({"start": 1}, {"new_start": 2}, {"start": 2}),
        ({"dueDate": 1}, {"newDueDate": 2}, {"dueDate": 2}),
        ({"plan": 1}, {"to_plan": 2, "note": "x"}, {"plan": 2, "note": "x"}),
        ({"email": 1}, {"updated_email": 2}, {"email": 2}),
        ({"plan": 1}, {"new_start": 2}, {"new_start": 2}),
        ({"item": 1}, {"item": 1, "new_item": 2}, {"item": 1, "new_item": 2}),
        ({"start": 1, "new_start": 2}, {"new_start": 3}, {"new_start": 3}),
    ],
)
def test_what_comes_new_sets_the_field(record, arguments, fields):
    assert set_fields(record, arguments) == fields


def test_the_goal_of_a_move_is_the_moved_field():
    fields = {"appointment_id": TEXT, "start": MOMENT, "status": TEXT}
    look = {**CLINIC[4], "x-returns": {"type": "object", "properties": fields}}
    data = simulate(honest_agent(), tools=[look, CLINIC[5]], situations=60, repeats=1, seed=3, progress=False)
    moves = [s for row in data for s in row["privileged"]["goal"]["subgoals"] if s["do"] == "change"]
    assert len(moves) > 5
    for row in data:
        assert Outcome()(row)["reward"] in (1.0, None)
    plain_moves = [s for s in moves if set(s["fields"]) == {"start"}]
    assert plain_moves == moves


def test_who_is_not_found_is_named_as_people_say_it():
    asked = {"specialty": "skin", "max_results": 3}
    assert json.loads(clinic().call("search_doctors", asked)) == {"error": "no doctor found for specialty skin"}
    search = made("search_lab_results", "read", query=TEXT, page_={"type": "integer"})
    tools = [search, made("get_lab_result", "read", lab_result_id=TEXT)]
    world = World(read_domain(tools), {"seed": 0, "entities": {}})
    assert json.loads(world.call("search_lab_results", {"query": "iron", "page": 2}))["error"] == (
        "no lab result found for query iron"
    )


def test_who_is_not_found_still_hears_what_belongs_to_nobody():
    axes = {"tool": ["several"], "world_state": ["missing"], "tool_condition": ["success"], "stance": ["ordinary"]}
    tools = [*SHOP[:3], SHOP[6]]
    data = simulate(honest_agent(), tools=tools, situations=20, repeats=1, seed=1, axes=axes, progress=False)
    lost = [row for row in data if '"error": "no user found' in " ".join(results(row))]
    asked = [row for row in lost if "list_all_products" in [s["tool"] for s in row["privileged"]["plan"]]]
    assert asked and all("products: " in row["final_text"] for row in asked)
    for row in lost:
        assert not {c["tool"] for c in row["world_log"]["calls"]} & {"get_user_details", "get_order_details"}


@pytest.mark.parametrize(
    ("noun", "arguments", "says"),
    [
        ("stock", {"sku": "B-1"}, r"The stock is \d+\."),
        ("shipping", {"weight_kg": 3}, r"The shipping is \d+\.\d\d\."),
        ("traffic", {"location": "Rome"}, r"The traffic is (light|moderate|heavy)\."),
        ("text", {"text": "hello", "target_language": "French"}, r"The translation is hello \(French\)\."),
        ("currency", {"amount": 10.0, "from_currency": "USD", "to_currency": "EUR"}, r"That comes to [\d.]+ EUR\."),
        ("horoscope", {"sign": "Leo"}, r"The horoscope is (normal|as usual|unchanged)\."),
    ],
)
def test_facts_are_plausible_and_said_plainly(noun, arguments, says):
    told = fact_of(noun, arguments, None, Draw(0))
    tool = made(f"get_{noun}", "read", **dict.fromkeys(arguments, TEXT))
    assert re.fullmatch(says, say([tool], f"get_{noun}", told, **arguments))


def lost_person(email: str, *, blocked: bool = False) -> dict[str, Any]:
    """A row of an agent that looks for somebody who is not there, and asks for two things of theirs."""
    ask = "Show me my profile and order A-1. My email is mia@x.io."
    faults = [{"kind": "permission_denied", "tool": "find_user_id_by_email", "calls": -1}] if blocked else []
    world = World(read_domain(SHOP), {"seed": 0, "entities": {}, "faults": faults})
    world.call("find_user_id_by_email", {"email": email})
    plan = [
        {"tool": "find_user_id_by_email", "arguments": {"email": "mia@x.io"}, "part": -1},
        {"tool": "get_order_details", "arguments": {"order_id": "A-1"}, "part": 1},
    ]
    order = {"do": "see", "entity": "order", "id": "A-1", "effects": ["read", "found"]}
    return {
        "prompt": ask, "final_text": "I found nobody.", "outcome": "completed", "faults_fired": world.fired,
        "privileged": {"goal": {"kind": "lookup", "subgoals": [order], "changes": []}, "plan": plan},
        "world_log": {"calls": world.log, "changes": {}}, "world": {"entities": {}},
    }  # fmt: skip


def test_what_comes_after_nobody_was_found_is_not_held_against_an_agent_that_looked_as_told():
    assert Outcome()(lost_person("mia@x.io"))["reward"] is None
    assert Outcome()(lost_person("somebody@else.io"))["reward"] == 0.0
    assert Outcome()(lost_person("mia@x.io", blocked=True))["reward"] is None
    silent = lost_person("mia@x.io")
    silent["world_log"]["calls"] = []
    assert Outcome()(silent)["reward"] == 0.0
