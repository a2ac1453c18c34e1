"""Asks that a person would believe: kinds of oddities that readers found, each on domains without hints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from whileai_kernel.messages import tool_calls
from whileai_kernel.tools import as_tools
from whileai_simulate import honest_agent, simulate
from whileai_simulate.draw import Draw
from whileai_simulate.entities import read_domain
from whileai_simulate.lexicon import GOODS, PRICES_OF, article, participle, plural
from whileai_simulate.people import make_person
from whileai_simulate.schema import problems
from whileai_simulate.values import value_for

TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
DAY = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}
SLOT = {
    "type": "object",
    "properties": {"date": DAY, "time": {"type": "string", "pattern": "^([01][0-9]|2[0-3]):(00|30)$"}},
    "required": ["date", "time"],
}


def made(name: str, required: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields) if required is None else required}
    return {"name": name, "description": "", "parameters": schema}


CALENDAR = [
    made("get_meeting", meeting_id=TEXT),
    made("create_meeting", ["title", "start", "duration_minutes", "attendees"], title=TEXT, start=MOMENT, room_id=TEXT,
         duration_minutes={"type": "integer", "minimum": 15, "maximum": 240},
         attendees={"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1}),
    made("move_meeting", meeting_id=TEXT, new_start=MOMENT),
    made("cancel_meeting", meeting_id=TEXT, notify_attendees={"type": "boolean"}),
    made("invite_attendee", meeting_id=TEXT, email={"type": "string", "format": "email"}),
    made("list_rooms", [], floor=WHOLE),
]  # fmt: skip
CODE = [
    made("getRepository", owner=TEXT, repo=TEXT),
    made("createIssue", ["owner", "repo", "title"], owner=TEXT, repo=TEXT, title=TEXT, body=TEXT),
    made("closeIssue", issueNumber=WHOLE, owner=TEXT, repo=TEXT),
    made("listPullRequests", ["owner", "repo"], owner=TEXT, repo=TEXT, state={"enum": ["open", "closed"]}),
    made("mergePullRequest", pullRequestId=TEXT, method={"enum": ["merge", "squash"]}),
    made("createBranch", repo=TEXT, branch_name=TEXT, from_branch=TEXT),
    made("search_code", query=TEXT),
    made("addComment", issueNumber=WHOLE, body=TEXT),
]
CLINIC = [
    made("find_patient", last_name=TEXT, date_of_birth=DAY),
    made("book_appointment", patient_id=TEXT, slot=SLOT, symptoms={"type": "array", "items": TEXT, "minItems": 1},
         insurance={"type": "object", "required": ["provider", "policy_number"], "properties": {
             "provider": TEXT, "policy_number": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{6}$"}}}),
    made("reschedule_appointment", appointment_id=TEXT, new_slot=SLOT),
    made("get_lab_results", patient_id=TEXT, test_type={"enum": ["blood", "urine"]}),
    made("update_contact_details", patient_id=TEXT, contact={"type": "object", "properties": {
        "phone": TEXT, "preferred": {"enum": ["email", "phone"]}}, "required": ["phone", "preferred"]}),
    made("request_prescription_refill", patient_id=TEXT, medication=TEXT, dosage_mg=WHOLE, pharmacy_phone=TEXT),
]  # fmt: skip
HOME = [
    made("turn_on_device", device_id=TEXT),
    made("get_device_status", device_id=TEXT),
    made("set_temperature", room=TEXT, degrees={"type": "number"}),
    made("create_schedule", device_id=TEXT, start_time=TEXT, end_time=TEXT),
    made("get_energy_usage", ["period"], period={"enum": ["day", "week"]}, device_id=TEXT),
    made("transfer_money", from_account=TEXT, to_account=TEXT, amount={"type": "number"}),
    made("list_transactions", account_number=TEXT, start_date=DAY, end_date=DAY),
    made("get_balance", account_number=TEXT),
    made("drop_course", student_id=WHOLE, course_code=TEXT),
]
DOMAINS = {"calendar": CALENDAR, "code": CODE, "clinic": CLINIC, "home": HOME}
POLICY = (
    "Always confirm changes. Verify the user's identity first. Refunds take 5 business days and must go to the card."
)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value not in ("", None) and not isinstance(value, bool):
        yield value


def plain(text: str) -> str:
    return re.sub(r"[_\s]+", " ", text).casefold()


def rows_of(tools: list[dict[str, Any]], count: int = 160, **more: Any) -> list[dict[str, Any]]:
    data = simulate(honest_agent(), tools=tools, system_prompt=POLICY, situations=count, repeats=1, seed=77, **more)
    return list(data)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    return {name: rows_of(tools) for name, tools in DOMAINS.items()}


@pytest.mark.parametrize("name", DOMAINS)
def test_calls_are_valid_and_told_where_nothing_is_explained(name: str, rows: Any) -> None:
    schemas = {t.name: t.parameters for t in as_tools(DOMAINS[name])}
    for row in rows[name]:
        for call in tool_calls(row["messages"]):
            assert call.arguments is not None
            assert problems(call.arguments, schemas[call.name]) == []
            known = plain(row["prompt"]) + plain(json.dumps([m["content"] for m in row["messages"][: call.turn]]))
            for leaf in leaves(call.arguments):
                assert plain(str(leaf)) in known, (leaf, row["prompt"], call)


@pytest.mark.parametrize("name", DOMAINS)
def test_nothing_is_called_none(name: str, rows: Any) -> None:
    assert not [r["prompt"] for r in rows[name] if "None" in r["final_text"]]


@pytest.mark.parametrize(("field", "about"), [
    ("owner", "issue"), ("repo", "issue"), ("path", "content"), ("title", "meeting"), ("symptom", "appointment"),
    ("medication", "refill"), ("provider", "appointment"), ("query", "code"), ("body", "issue"), ("whatever", "thing"),
    ("assignee", "task"), ("room", "device"), ("ticker", ""),
])  # fmt: skip
def test_text_is_words_and_not_random_letters(field: str, about: str) -> None:
    seen = {str(value_for(field, TEXT, Draw(n), make_person(Draw(n)), about)) for n in range(60)}
    assert len(seen) < 60 or field == "assignee", "drawn from what people write"
    assert not [v for v in seen if re.fullmatch(r"[a-z]{6}", v) and not set("aeiou") & set(v)]
    assert not seen & set(GOODS)


def test_moments_are_at_hours_at_which_people_meet() -> None:
    for n in range(60):
        moment = value_for("start", MOMENT, Draw(n), make_person(Draw(n)), "meeting")
        assert problems(moment, MOMENT) == []
        assert re.fullmatch(r"2024-0[5-7]-\d\dT(0[89]|1[0-8]):(00|30):00Z", moment)
        slot = value_for("slot", SLOT, Draw(n), make_person(Draw(n)))
        assert problems(slot, SLOT) == []
        assert "08:00" <= slot["time"] <= "18:30"


def test_what_begins_ends_later(rows: Any) -> None:
    seen = 0
    for row in rows["home"]:
        for call in tool_calls(row["messages"]):
            for begins, ends in (("start_time", "end_time"), ("start_date", "end_date")):
                if begins in (call.arguments or {}):
                    seen += 1
                    assert call.arguments[begins] < call.arguments[ends] or begins == "start_date"
                    assert call.arguments[begins] <= call.arguments[ends]
    assert seen


def test_goods_cost_what_they_may_cost() -> None:
    tools = [made("get_order", order_id=TEXT), made("get_item", item_id=TEXT)]
    for row in rows_of(tools, 60):
        for order in row["world"]["entities"].get("order", {}).values():
            names = [line["name"] for line in order["items"]]
            assert len(names) == len(set(names)), "one can say which is meant"
            assert all(line["price"] in PRICES_OF[line["name"]] for line in order["items"])
    assert max(PRICES_OF["water bottle"]) < min(PRICES_OF["office chair"])


def test_a_changed_address_leaves_no_stale_one() -> None:
    tools = [made("get_user", user_id=TEXT), made("update_user_address", user_id=TEXT, address1=TEXT, city=TEXT)]
    for row in rows_of(tools, 40):
        for user in row["world"]["entities"]["user"].values():
            assert "address" not in user


CONTRADICTIONS = [
    # history or stance, what must not stand beside it, over all rows
    (r"opposite before|disregard my earlier|Forget what I wrote|changed my mind", r"already (agreed|approved)"),
    (r"cut off|never finished|how far they got|then it closed", r"done this already|all settled"),
    (
        r"haven't decided|gathering information for now\. Could I|before I decide|just exploring: how",
        r"already tried|first attempt",
    ),
    (r"(app|website|page)\b.{0,40}(error|closed)", r"couldn't find it in the app|looked at the help page"),
    (r"head office", r"calling from"),
    (r"(?<!so: )yes, I confirm|Consider this my yes|You have my confirmation", r"rather not be asked twice\."),
    (r"Good afternoon", r"before lunch|this afternoon\."),
]


@pytest.mark.parametrize("name", DOMAINS)
def test_no_sentence_speaks_against_another(name: str, rows: Any) -> None:
    for row in rows[name]:
        for one, other in CONTRADICTIONS:
            found = re.search(one, row["prompt"], re.I) and re.search(other, row["prompt"], re.I)
            assert not found, row["prompt"]


BROKEN = re.compile(
    r"\b(\w+) \1\b|[{}]|\b(look|pull|turn) (up|on) it\b|\bme it\b|use on \d|[.?!][.?]|as the (new )?slot|"
    r"\ba [aeiou]\w|\bcodes\b|minutes: \d|\bmg: \d|\bmy (patient|tracking|student)\b(?! (file|ID))|_[a-z]+ as the"
)


@pytest.mark.parametrize("name", DOMAINS)
def test_grammar(name: str, rows: Any) -> None:
    for row in rows[name]:
        said = re.sub(r"(?<=\S)@\S+|[\w-]+/[\w./-]+|'s \w+", "", row["prompt"])
        assert not BROKEN.search(said.replace("a user", "")), (BROKEN.search(said), row["prompt"])


def test_stances_show_where_nothing_can_be_pointed_at() -> None:
    words = {
        "conflicting": r"but don't|without anything|don't want it|Please do both",
        "exploratory": r"exploring|gathering|not today|before I decide",
        "unsure": r"not sure whether|haven't decided|make sense|back and forth",
    }
    tools = [CALENDAR[1], CODE[5]]
    data = rows_of(tools, 60, axes={"stance": list(words), "tool": [t["name"] for t in tools]})
    assert {r["axes"]["stance"] for r in data} == set(words)
    for row in data:
        assert re.search(words[row["axes"]["stance"]], row["prompt"], re.I), row["prompt"]


def test_what_is_made_for_a_record_names_the_record(rows: Any) -> None:
    for name, tool in (("calendar", "invite_attendee"), ("code", "addComment"), ("home", "create_schedule")):
        for row in rows[name]:
            if row["axes"]["tool"] == tool:
                assert re.search(r"\b([A-Z]{2,3}-)?\d{5}\b", row["prompt"]), row["prompt"]


def test_details_of_the_first_wish_stand_before_the_second() -> None:
    lead = re.compile(r"(And then|After that|Also), please|(When that's done|Afterwards), please")
    tools = [CALENDAR[0], CALENDAR[3], CALENDAR[5]]
    data = rows_of(tools, 60, axes={"tool": ["several"], "stance": ["ordinary", "hurried"]})
    both = [r["prompt"] for r in data if "cancel" in r["prompt"] and lead.search(r["prompt"])]
    assert both
    assert all(re.search(r"notify", lead.split(text)[0]) for text in both)


def test_nobody_asks_for_one_thing_twice() -> None:
    finders = [made("find_user_id_by_email", email=TEXT), made("find_user_id_by_name", first_name=TEXT, last_name=TEXT)]
    data = rows_of([*finders, made("get_user_details", user_id=TEXT)], 60, axes={"tool": ["several"]})
    assert all(row["prompt"].count("my user ID") < 2 for row in data)


def test_who_asks_for_the_own_id_does_not_tell_it() -> None:
    tools = [made("find_user_id_by_email", email=TEXT), made("get_user_details", user_id=TEXT)]
    data = rows_of(tools, 60, axes={"tool": ["several"]})
    asks = [r for r in data if re.search(r"my user ID", r["prompt"])]
    assert asks
    for row in asks:
        for key in row["world"]["entities"].get("user", {}):
            assert key not in row["prompt"]


def test_reading_of_tools_without_hints() -> None:
    home, clinic = read_domain(HOME).tools, read_domain(CLINIC)
    assert (home["turn_on_device"].kind, home["turn_on_device"].done) == ("write", "turned on")
    assert (clinic.tools["get_lab_results"].mode, clinic.tools["get_lab_results"].entity) == ("list", "lab_result")
    assert home["get_balance"].mode == "get"
    assert "balance" in read_domain(HOME).entities["account"].fields
    assert home["drop_course"].done == "dropped"
    assert read_domain(CALENDAR).tools["create_meeting"].key is None, "a meeting can do without a room"
    assert read_domain([made("track_package", tracking_number=TEXT)]).entities.keys() == {"package"}
    assert "new_start" not in read_domain(CALENDAR).entities["meeting"].fields
    assert "method" not in read_domain(CODE).entities["pull_request"].fields


def test_a_verb_that_does_not_look_does_something() -> None:
    tools = [made(f"{verb}_shipment", shipment_id=TEXT) for verb in ("reroute", "expedite", "zap")]
    tools += [made("shipment_status", shipment_id=TEXT), made("order_details", order_id=TEXT)]
    kinds = {name: info.kind for name, info in read_domain(tools).tools.items()}
    assert [kinds[t["name"]] for t in tools] == ["write", "write", "write", "read", "read"]


def test_parties_are_people_of_their_own_and_told_like_people() -> None:
    party = {"type": "object", "required": ["name", "street", "city"],
             "properties": {"name": TEXT, "street": TEXT, "city": TEXT}}  # fmt: skip
    window = {"type": "object", "properties": {"from": MOMENT, "to": MOMENT}, "required": ["from", "to"]}
    parcel = {"type": "object", "properties": {"weight_kg": {"type": "number"}}, "required": ["weight_kg"]}
    tool = made(
        "create_shipment", sender=party, receiver=party, parcels={"type": "array", "items": parcel}, window=window
    )
    seen = 0
    for row in rows_of([tool], 40):
        for call in tool_calls(row["messages"]):
            seen += 1
            sent, got = call.arguments["sender"], call.arguments["receiver"]
            assert sent != got
            assert re.fullmatch(r"[A-Z][\w'-]+ [A-Z][\w'-]+", got["name"])
            assert f"{got['name']}, {got['street']}, {got['city']}" in row["prompt"]
            assert call.arguments["window"]["from"] < call.arguments["window"]["to"]
            assert f"weight {call.arguments['parcels'][0]['weight_kg']} kg" in row["prompt"]
    assert seen


def test_a_change_says_what_to() -> None:
    tool = made("update_member", ["member_id"], member_id=TEXT, email=TEXT, phone=TEXT)
    calls = [c for row in rows_of([tool], 40) for c in tool_calls(row["messages"])]
    assert calls
    assert all(len(c.arguments) > 1 for c in calls)


@pytest.mark.parametrize(("word", "many"), [
    ("category", "categories"), ("code", "code"), ("pull request", "pull requests"), ("flights", "flights"),
    ("branch", "branches"), ("person", "people"),
])  # fmt: skip
def test_plurals(word: str, many: str) -> None:
    assert plural(word) == many


def test_articles_and_participles() -> None:
    assert [article(n) for n in ("umbrella", "running shoes", "user", "code")] == [
        "an umbrella",
        "running shoes",
        "a user",
        "code",
    ]
    assert [participle(v) for v in ("drop", "open", "turn", "run")] == ["dropped", "opened", "turned", "run"]
