"""Tools that nobody tuned the writer for: whatever their naming, what they are asked for can be said by a person."""

from __future__ import annotations

import re
from typing import Any

import pytest

from whileai_kernel.messages import tool_calls
from whileai_kernel.tools import as_tools
from whileai_simulate import honest_agent, simulate
from whileai_simulate.draw import Draw
from whileai_simulate.entities import read_domain
from whileai_simulate.lexicon import article, label, participle
from whileai_simulate.ordering import in_order
from whileai_simulate.people import make_person
from whileai_simulate.schema import problems
from whileai_simulate.tool_names import imperative, namespace_of, verb_first
from whileai_simulate.values import explained, value_for
from whileai_simulate.vocabulary import plain_word

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
YES = {"type": "boolean"}
DAY = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}


def made(name: str, required: list[str] | None = None, about: str = "", /, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": list(fields) if required is None else required}
    return {"name": name, "description": about, "parameters": schema}


def thing(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def rows_of(*tools: dict[str, Any], count: int = 60, **more: Any) -> list[dict[str, Any]]:
    policy = "Always confirm changes."
    data = simulate(
        honest_agent(), tools=list(tools), system_prompt=policy, situations=count, repeats=1, seed=9, **more
    )
    return list(data)


def asks(*tools: dict[str, Any], **more: Any) -> list[str]:
    return [r["prompt"] for r in rows_of(*tools, **more) if r["axes"]["tool"] != "none"]


def value(name: str, schema: dict[str, Any], n: int, about: str = "") -> Any:
    return value_for(name, schema, Draw(n), make_person(Draw(n)), about)


@pytest.mark.parametrize(("name", "about", "spoken"), [
    ("vm.create", "", "create vm"), ("firewall.add_rule", "", "add firewall rule"), ("lead_create", "", "create lead"),
    ("stock_lookup", "", "lookup stock"), ("order_cancel", "", "cancel order"), ("cancel_order", "", "cancel order"),
    ("order_details", "", "get order details"), ("recommendations", "", "get recommendations"),
    ("usersList", "", "list users"), ("access_log", "", "get access log"), ("gymClassBooking", "", "book gym class"),
    ("tax_calc", "", "calculate tax"), ("hold_place", "Place a hold on a title", "place hold"),
    ("process_refund", "Refund an order", "process refund"), ("activity_log", "Log a call", "log activity"),
    ("snapshot", "Take a snapshot of a volume", "take snapshot"), ("turn_on_device", "", "turn on device"),
    ("irrigate", "", "irrigate"), ("zap_shipment", "", "zap shipment"),
])  # fmt: skip
def test_names_of_any_order_are_read_verb_first(name: str, about: str, spoken: str) -> None:
    assert " ".join(verb_first(name, about)) == spoken


def test_what_the_parameters_name_is_no_verb() -> None:
    tools = [made("instrument_calibrate", instrument_id=TEXT), made("freezer_inventory", [], freezer=TEXT),
             made("loan_renew", loan_id=TEXT), made("bill_explain", bill_id=TEXT),
             made("vm.stop", instance_id=TEXT)]  # fmt: skip
    infos = read_domain(tools).tools
    assert [i.spoken for i in infos.values()] == [
        "calibrate_instrument", "get_freezer_inventory", "renew_loan", "explain_bill", "stop"]  # fmt: skip
    assert [i.kind for i in infos.values()] == ["write", "read", "write", "read", "write"]


def test_a_word_of_a_longer_parameter_is_no_noun() -> None:
    tools = [made("publishArticle", ["articleId"], articleId=TEXT, publishAt=MOMENT),
             made("comments_moderate", comment_id=TEXT), made("geofence", name=TEXT, radius_m=WHOLE),
             made("trip_report", ["vehicle_id"], "Report of the trips of a vehicle", vehicle_id=TEXT)]  # fmt: skip
    infos = read_domain(tools).tools
    assert [i.spoken for i in infos.values()] == [
        "publish_article", "moderate_comments", "create_geofence", "get_trip_report"]  # fmt: skip


def test_a_bare_verb_takes_no_figure_and_a_thing_before_a_verb_is_its_object() -> None:
    tools = [made("quote", None, "Get a quote for car insurance", driver_age=WHOLE), made("time_track", task_id=WHOLE)]
    assert [i.spoken for i in read_domain(tools).tools.values()] == ["quote", "track_time"]
    told = asks(*tools, axes={"tool": ["quote"]})
    assert told
    assert all(re.search("get a quote", text, re.I) for text in told), told
    assert all(value("incident_date", DAY, n) < "2024-05-15" for n in range(20))


def test_occupations_are_people_and_weeks_are_dates() -> None:
    for n in range(20):
        assert re.fullmatch(r"[A-Z][\w'-]+ [A-Z][\w'-]+", value("dentist", TEXT, n))
        assert re.fullmatch(r"2024-06-\d\d", value("week", TEXT, n))


def test_a_word_that_all_tools_share_is_the_name_of_the_system() -> None:
    assert namespace_of(["crm_lead_create", "crm_lead_convert", "assignOwner"]) == "crm"
    assert namespace_of(["get_order_details", "get_user_details"]) == ""
    assert namespace_of([]) == ""


@pytest.mark.parametrize(("about", "said"), [
    ("Search tracks, albums and artists", "search tracks, albums and artists"),
    ("Transfers money between two accounts. The amount ...", "transfer money between two accounts"),
    ("Change the machine type of a stopped instance", "change the machine type of a stopped instance"),
    ("Remaining days per leave type", ""), ("Weather forecast for the farm", ""), ("", ""),
    ("Get the user by id", ""), ("GET /v1/orders", ""),
])  # fmt: skip
def test_a_description_is_quoted_only_where_it_is_a_plain_wish(about: str, said: str) -> None:
    assert imperative(about) == said


def test_a_search_without_words_searches_what_its_description_says() -> None:
    tools = [made("search", ["q"], "Search tracks, albums and artists", q=TEXT), made("play", track_id=TEXT)]
    assert read_domain(tools).tools["search"].entity == "track"
    found = [r for r in rows_of(*tools) if r["axes"]["tool"] == "search" and r["axes"]["stance"] == "ordinary"]
    assert found
    assert all("search tracks, albums and artists" in r["prompt"] for r in found)


def test_a_bare_verb_takes_its_first_argument() -> None:
    told = asks(made("irrigate", field=TEXT, minutes=WHOLE), axes={"stance": ["ordinary"]})
    assert told
    assert all(re.search(r"irrigate field F-\d\d\b.*Minutes: \d+", text) for text in told)


@pytest.mark.parametrize("tools", [
    [made("approve_leave_request", request_id=WHOLE), made("get_leave_balance", employee_id=WHOLE)],
    [made("vm.stop", instance_id=TEXT)],
    [made("read_sensor", sensor_id=TEXT)],
])  # fmt: skip
def test_only_what_people_own_is_theirs(tools: list[dict[str, Any]]) -> None:
    assert not [t for t in asks(*tools) if re.search(r"\bmy (request|instance|sensor) \w", t)]


def test_who_looks_after_people_names_them() -> None:
    tools = [made("getGrades", studentId=WHOLE), made("recordGrade", studentId=WHOLE, points=WHOLE)]
    for text in asks(*tools, axes={"tool": ["recordGrade"], "stance": ["ordinary", "hurried"]}):
        assert re.search(r"record a grade for student \d+", text), text
        assert not re.search(r"[Mm]y student ID|registered under", text)


def test_figures_of_a_person_are_told_and_shown() -> None:
    tools = [made("request_leave", employee_id=WHOLE, start_date=DAY), made("get_leave_balance", employee_id=WHOLE)]
    domain = read_domain(tools)
    assert (domain.tools["get_leave_balance"].mode, domain.tools["get_leave_balance"].entity) == ("get", "employee")
    assert "leave_balance" in domain.entities["employee"].fields
    assert "balance" in read_domain([made("getAccountBalance", accountId=TEXT)]).entities["account"].fields


def test_nobody_who_is_only_searched_for_is_the_one_who_asks() -> None:
    assert read_domain([made("search_accounts", ["country"], country=TEXT)]).person is None
    assert read_domain([made("find_customer", ["phone"], phone=TEXT)]).person == "customer"


def test_the_second_of_a_kind_is_another_one() -> None:
    tool = made("merge_cases", primary_case_id=TEXT, duplicate_case_id=TEXT)
    assert read_domain([tool]).entities.keys() == {"case"}
    calls = [c for row in rows_of(tool) for c in tool_calls(row["messages"])]
    assert calls
    assert all(c.arguments["primary_case_id"] != c.arguments["duplicate_case_id"] for c in calls)


def test_calls_are_valid_where_a_record_holds_another_value() -> None:
    tool = made("attendance_mark", student_id=WHOLE, status={"type": "string", "enum": ["present", "late"]})
    schema = as_tools([tool])[0].parameters
    for row in rows_of(tool):
        for call in tool_calls(row["messages"]):
            assert problems(call.arguments, schema) == []


@pytest.mark.parametrize(("name", "schema", "pattern"), [
    ("month", {"type": "string", "pattern": r"^\d{4}-\d{2}$"}, r"2024-0\d"), ("month", TEXT, r"2024-0\d"),
    ("name", {"type": "string", "pattern": "^[a-z][a-z0-9-]{2,20}$"}, "[aeiou]"),
    ("file_url", {"type": "string", "format": "uri"}, r"^https://www\.example\.com/file/\d+$"),
    ("isbn", TEXT, r"^978\d{10}$"), ("to_bin", TEXT, r"^B-\d\d$"),
    ("explanation", TEXT, " "), ("comment", TEXT, "^[^x]*$"),
])  # fmt: skip
def test_text_that_is_bounded_or_unknown_is_what_people_write(name: str, schema: dict[str, Any], pattern: str) -> None:
    for n in range(40):
        text = value(name, schema, n)
        assert re.search(pattern, text), text
        assert problems(text, schema) == []


def test_an_account_number_is_one_that_banks_accept() -> None:
    for n in range(40):
        iban = value("iban", TEXT, n)
        assert int(iban[4:] + "1314" + iban[2:4]) % 97 == 1


@pytest.mark.parametrize(("name", "schema", "low"), [
    ("level", {"type": "integer", "minimum": 0, "maximum": 100}, 5), ("yearly_kwh", WHOLE, 1000),
    ("disk_gb", {"type": "integer", "minimum": 10, "maximum": 2000}, 100), ("gross_income", NUMBER, 1000),
])  # fmt: skip
def test_numbers_are_round_and_of_the_size_of_the_thing(name: str, schema: dict[str, Any], low: int) -> None:
    seen = [value(name, schema, n) for n in range(40)]
    assert all(problems(v, schema) == [] and v >= low and v % 5 == 0 for v in seen), seen


def test_what_has_been_is_past() -> None:
    for name in ("harvested_on", "given_on", "read_on", "collected_at", "last_seen"):
        assert all(value(name, DAY, n) < "2024-05-15" for n in range(30)), name
    assert all(value("needed_on", DAY, n) > "2024-05-15" for n in range(30))


def test_nothing_is_named_twice_in_a_list() -> None:
    schema = {"type": "array", "items": TEXT, "minItems": 2}
    assert all(len(set(value("ingredients", schema, n))) == 2 for n in range(60))


def test_what_nobody_can_guess_is_left_out_or_as_usual() -> None:
    assert not explained("crop", "harvest")
    assert explained("field", "harvest")
    tool = made("log_harvest", ["field", "crop"], field=TEXT, crop=TEXT, variety=TEXT, extras={"type": "object"})
    calls = [c.arguments for row in rows_of(tool) for c in tool_calls(row["messages"])]
    assert calls
    assert {c["crop"] for c in calls} <= {"the usual one", "same as last time"}
    assert all(re.fullmatch(r"F-\d\d", c["field"]) and c.keys() <= {"field", "crop"} for c in calls)
    words = {plain_word(("soil", "type"), "", Draw(n)) for n in range(20)}
    assert words <= {"standard", "regular", "basic"}


def test_an_object_of_which_nothing_is_required_still_says_something() -> None:
    open_filter = {"type": "object", "properties": {"country": TEXT}, "required": []}
    tool = made("search_accounts", ["filter"], filter=open_filter)
    for text in asks(tool):
        assert not re.search(r"Filter: ?\.", text)
        assert not re.search(r"my account|look me up", text)


def test_bounds_and_nested_spans_are_in_order() -> None:
    values = {"below": 20, "above": 4, "min_price": 5, "max_price": 5, "start": 3, "unrelated": "x",
              "pickup": {"place": "Reno", "time": "2024-06-24T12:30:00Z"},
              "return": {"place": "Tulsa", "time": "2024-05-26T15:30:00Z"}}  # fmt: skip
    in_order(values)
    assert (values["below"], values["above"]) == (4, 20)
    assert values["min_price"] < values["max_price"]  # type: ignore[operator]
    assert values["pickup"] == {"place": "Reno", "time": "2024-05-26T15:30:00Z"}
    assert values["return"] == {"place": "Tulsa", "time": "2024-06-24T12:30:00Z"}


def test_details_are_told_as_people_tell_them() -> None:
    party = thing(full_name=TEXT, license_number=TEXT, date_of_birth=DAY)
    place = thing(street=TEXT, house_number=TEXT, city=TEXT)
    tool = made("rent_car", below=WHOLE, above=WHOLE, is_public=YES, from_account=TEXT, to_iban=TEXT, driver=party,
                address=place, recipient_email=TEXT, disk_gb=WHOLE)  # fmt: skip
    for text in asks(tool, axes={"stance": ["ordinary"]}):
        assert not re.search(r"The (below|above|to \w+|from \w+) is|Is public|House|The email", text), text
        assert re.search(r"Public: (yes|no)\.", text)
        assert re.search(r"From account \d+ to IBAN DE\d{20}\.", text)
        assert re.search(r"Driver: [A-Z][\w']+ [A-Z][\w']+, license number LIC-\d+, born \d{4}", text)
        assert re.search(r"ecipient email( is|:) \S+@", text)
        assert re.search(r"Disk: \d+ GB\.", text)


def test_the_number_of_a_thing_names_it_once() -> None:
    for text in asks(made("receive_shipment", asn_number=TEXT)):
        assert "ASN ASN" not in text
        assert " on ASN" not in text


def test_one_thing_is_not_listed_and_an_agreement_is_not_told() -> None:
    told = asks(made("getShipmentStatus", trackingNumber=TEXT), made("get_rental_agreement", rental_id=TEXT))
    assert any("status of my shipment" in text for text in told)
    assert not [t for t in told if re.search(r"all shipment|list the shipment|(tell me|find out) the agreement", t)]


@pytest.mark.parametrize(("name", "said"), [
    ("vm_id", "VM ID"), ("source_cidr", "source CIDR"), ("weight_kg", "weight kg"), ("target_lang", "target language"),
])  # fmt: skip
def test_what_is_spelled_is_spelled(name: str, said: str) -> None:
    assert label(name) == said


def test_articles_and_participles_of_odd_words() -> None:
    assert [article(n) for n in ("VM", "SMS", "IP address", "API key", "leave")] == [
        "a VM", "an SMS", "an IP address", "an API key", "leave"]  # fmt: skip
    assert [participle(v) for v in ("do", "take", "snapshot", "resend")] == ["done", "taken", "snapshotted", "resent"]
