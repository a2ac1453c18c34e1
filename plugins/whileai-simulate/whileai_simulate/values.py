"""Plausible values of fields: by the name of the field, its schema, and what the record is about.

Every value is checked against the field's schema; where a plausible value does not satisfy it, a sampled one does.

Example:
    >>> from whileai_simulate.draw import Draw
    >>> from whileai_simulate.people import make_person
    >>> value_for("city", {"type": "string"}, Draw(0), make_person(Draw(0))) != ""
    True
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.lexicon import (
    AIRPORTS,
    CITIES,
    GOODS,
    IRREGULAR_PARTICIPLES,
    PEOPLE,
    PRICES,
    singular,
    word_set,
    words_of,
)
from whileai_simulate.people import Record, letters, make_person, one_line, pools
from whileai_simulate.schema import problems, resolve, sample, type_of
from whileai_simulate.vocabulary import is_explained, number_for, plain_word, word_for

__all__ = ["day", "explained", "value_for"]

_TODAY = date(2024, 5, 15)
_DAYS_BEFORE = [(_TODAY - timedelta(days=shift)).isoformat() for shift in range(2, 61)]
_DAYS_AFTER = [(_TODAY + timedelta(days=shift)).isoformat() for shift in range(2, 61)]


def day(draw: Draw, *, past: bool) -> str:
    """Return a date within two months before, or after, the day of the simulated world (2024-05-15)."""
    return (_DAYS_BEFORE if past else _DAYS_AFTER)[draw.below(len(_DAYS_AFTER))]


_PAST = frozenset(
    [
        "created",
        "placed",
        "ordered",
        "opened",
        "issued",
        "registered",
        "joined",
        "since",
        "received",
        "processed",
        "delivered",
        "incident",
        "accident",
        "loss",
        "purchase",
    ]
)
_NO_PEOPLE = word_set(
    "playlist checklist wishlist shortlist setlist waitlist whitelist blacklist allowlist meridian career"
)
_SMALL = word_set("unit apartment room seat table door gate floor line platform bus row dock bay rack shelf bin desk")
"""Things that are numbered from one."""
_AHEAD = word_set("needed scheduled planned expected requested estimated promised desired preferred proposed")


def _is_past(words: Sequence[str]) -> bool:
    """Whether a date is of what has been: created_at, harvested_on, last_seen."""
    if words[-1] in ("on", "at") and words[0] in ("read", "put", "set", "cut"):
        return True
    return any(
        w in _PAST or w in IRREGULAR_PARTICIPLES or (w.endswith("ed") and w not in _AHEAD) for w in words
    ) or words[0] in ("last", "previous")


_MONEY = frozenset(["price", "amount", "total", "cost", "fee", "balance", "subtotal", "refund", "charge", "credit"])
_COUNT = frozenset(
    [
        "quantity",
        "count",
        "qty",
        "number",
        "seats",
        "guests",
        "nights",
        "passengers",
        "bags",
        "baggages",
        "luggage",
        "people",
        "persons",
        "items",
        "adults",
        "children",
        "rooms",
        "days",
    ]
)


def value_for(
    name: str, schema: Mapping[str, Any], draw: Draw, person: Mapping[str, Any], about: str | None = ""
) -> Any:
    """Return a plausible value of a field that satisfies its schema.

    Args:
        name: Name of the field.
        schema: Its schema; `x-root` is the document that its references point into.
        draw: Where the values come from.
        person: Profile of the person that the record belongs to.
        about: Entity type of the record; titles and names depend on it.
    """
    root = schema.get("x-root", schema)
    if "enum" in schema or "const" in schema:
        return sample(schema, draw, root=root)
    if "$ref" in schema:
        schema = {**resolve(schema, root), "x-root": root}
        return value_for(name, schema, draw, person, about)
    value = _by_name(name, schema, draw, person, about or "")
    if value is not None and (_plain_text(value, schema) or not problems(value, schema, root=root)):
        return value
    kind = type_of(schema)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        items = {**schema["items"], "x-root": root}
        count = max(1, int(schema.get("minItems", 1)))
        several: list[Any] = []
        for _ in range(count):
            one = value_for(singular(name), items, draw, person, about)
            for _ in range(12 if one in several else 0):
                if one not in several:
                    break
                one = value_for(singular(name), items, draw, person, about)  # nobody names one thing twice
            several.append(one)
        return several if not problems(several, schema, root=root) else sample(schema, draw, root=root)
    if kind == "object" and schema.get("properties"):
        required = schema.get("required") or list(schema["properties"])[: None if "required" not in schema else 1]
        role = words_of(name)[-1:]
        if _ROLES & set(role):
            person = make_person(draw)  # somebody of their own, with a name and an address that belong together
        about = "" if _ROLES & set(role) else role[0] if role else about
        made = {
            k: value_for(k, {**s, "x-root": root}, draw, person, about)
            for k, s in schema["properties"].items()
            if k in required
        }
        return made if not problems(made, schema, root=root) else sample(schema, draw, root=root)
    if kind == "string" and not schema.get("pattern") and not schema.get("format"):
        for word in _period(words_of(name), draw)[:1]:
            if not problems(word, schema, root=root):
                return word
        word = plain_word(words_of(name), str(schema.get("description", "")), draw)
        if not problems(word, schema, root=root):
            return word
    if kind == "string" and isinstance(value, str):
        for shaped in _shapes(value):
            if not problems(shaped, schema, root=root):
                return shaped
    if kind == "string":
        period = _period(words_of(name), draw)
        fitting = next((p for p in period if not problems(p, schema, root=root)), None)
        if fitting is not None:
            return fitting
    return sample(schema, draw, root=root)


def _shapes(text: str) -> Iterator[str]:
    """Yield the ways in which a text is written where a pattern bounds it: Web shop, web-shop, web_shop, WEBSHOP."""
    low = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    yield low
    yield low.replace("-", "_")
    yield low.replace("-", "")
    yield low.replace("-", "").upper()
    yield text.capitalize()


def _period(words: Sequence[str], draw: Draw) -> tuple[str, ...]:
    """Return how a month, a quarter or a year is written, for a field that is one."""
    month, year = draw.between(1, 4), 2024
    if "month" in words:
        name = _MONTHS[month - 1]
        return (f"{year}-{month:02}", f"{month:02}/{year}", name, name[:3], f"{month:02}", str(month), f"{name} {year}")
    if "quarter" in words:
        return (f"{year}-Q{month}", f"Q{month}", f"Q{month} {year}", f"{year}Q{month}", str(month))
    if "week" in words:
        return (f"2024-06-{7 * month - 4:02}", f"{year}-W{22 + month}", f"W{10 + month}", str(10 + month))
    if "year" in words:
        return (str(year),)
    return ()


_MONTHS = ("January", "February", "March", "April")


@lru_cache(maxsize=4096)
def explained(name: str, about: str, description: str = "") -> bool:
    """Whether the name of a text field, or its description, says what people write there."""
    words, draw = words_of(name), Draw(0)
    known = _text_by_name(words, words[-1] if words else "", draw, make_person(draw), about)
    return known is not None or is_explained(words, description) or bool(_period(words, draw))


_PLAIN: dict[int, tuple[Mapping[str, Any], bool]] = {}
"""Whether a schema is a plain string, by its identity; the schema is kept so that the identity stays its own."""

_BOUNDS = ("format", "pattern", "minLength", "maxLength", "anyOf", "oneOf", "allOf", "$ref")


def _plain_text(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a text can be taken without a look at the schema: it is of type string and bounds nothing."""
    if type(value) is not str:
        return False
    known = _PLAIN.get(id(schema))
    if known is None or known[0] is not schema:
        plain = schema.get("type") == "string" and not any(k in schema for k in _BOUNDS)
        if len(_PLAIN) > 4096:
            _PLAIN.clear()
        known = _PLAIN[id(schema)] = (schema, plain)
    return known[1]


def _by_name(name: str, schema: Mapping[str, Any], draw: Draw, person: Mapping[str, Any], about: str) -> Any:
    words = words_of(name)
    last = words[-1] if words else ""
    kind = type_of(schema)
    if kind == "object":
        return _object_by_name(words, draw, person) if not schema.get("properties") else None
    if kind == "array":
        inner = schema.get("items", {})
        if isinstance(inner, Mapping) and type_of(inner) == "object" and not inner.get("properties"):
            return [_object_by_name([*words[:-1], singular(last)], draw, person)]
        return None
    if kind in ("integer", "number"):
        return _number_by_name(words, last, schema, draw, kind == "integer")
    if kind != "string":
        return None
    if "format" in schema:
        shaped = _by_format(str(schema["format"]), words, draw, person)
        if shaped is not None:
            return shaped
    return _text_by_name(words, last, draw, person, about)


def _number_by_name(words: Sequence[str], last: str, schema: Mapping[str, Any], draw: Draw, whole: bool) -> Any:
    if _COUNT & set(words):
        return draw.between(1, 3)
    if last in _MONEY or words[0] in _MONEY:
        return draw.between(2, 40) * 5 if whole else draw.choice(PRICES)
    known = number_for(words, schema.get("minimum"), schema.get("maximum"), draw)
    if known is not None:
        return known
    return draw.between(1, 4) if whole else draw.between(1, 20)


def _by_format(form: str, words: Sequence[str], draw: Draw, person: Mapping[str, Any]) -> str | None:
    """Return text of a format as people have it: a meeting starts at half past ten, and not at 03:47."""
    past = _is_past(words)
    if form == "date-time":
        return f"{day(draw, past=past)}T{_clock(draw)}:00Z"
    if form == "date" and not _BIRTH & set(words):
        return day(draw, past=past)
    if form == "time":
        return f"{_clock(draw)}:00Z"
    if form in ("uri", "url", "uri-reference", "iri"):
        return _address(words, draw)
    if form == "email" and not {"email", "mail"} & set(words):
        firsts, lasts, _ = pools()
        return f"{draw.choice(firsts).lower()}.{letters(draw.choice(lasts))}@example.com"
    return None


def _address(words: Sequence[str], draw: Draw) -> str:
    """Return the address of a page or file: https://www.example.com/photos/482."""
    of = next((w for w in words if w not in ("url", "uri", "link", "href", "website")), "page")
    return f"https://www.example.com/{of}/{draw.between(100, 999)}"


def _clock(draw: Draw) -> str:
    return f"{draw.between(8, 18):02}:{draw.choice(('00', '30'))}"


_PARTIES = (
    "sender receiver recipient consignee beneficiary guest person owner payer payee buyer seller "
    "party participant attendee signatory applicant candidate customer client patient employee contact driver"
)
_ROLES = frozenset(_PARTIES.split())
"""Objects that stand for a person of their own."""
_OTHERS = """
assignee reviewer organizer organiser attendee participant manager contact author recipient host driver agent
technician teacher instructor approver requester sender operator supervisor inspector signer signatory
"""
_STAFF = frozenset(_OTHERS.split())
"""Fields that name somebody else."""


def _text_by_name(words: Sequence[str], last: str, draw: Draw, person: Mapping[str, Any], about: str) -> Any:
    joined = "_".join(words)
    if joined in person:
        return person[joined]
    if last in ("name", "fullname") and (words[0] in _NAMED if len(words) > 1 else about in _BY_PERSON):
        return f"{person['first_name']} {person['last_name']}"
    if last in _STAFF or (last == "name" and len(words) > 1 and words[-2] in _STAFF):
        firsts, lasts, _ = pools()
        return f"{draw.choice(firsts)} {draw.choice(lasts)}"
    if "email" in words or "mail" in words:
        return person["email"]
    if "phone" in words or "mobile" in words:
        return person["phone"]
    if last in ("url", "uri", "link", "href", "website"):
        return _address(words, draw)
    if last in ("zip", "postcode") or joined in ("zip_code", "postal_code"):
        return person["zip"]
    if "address" in words or last == "street":
        if last == "2":
            return person["address2"]
        return person["address1"] if len(words) > 1 or last == "street" else one_line(person)
    if last in ("origin", "destination", "airport", "departure", "arrival") or joined in ("from", "to"):
        return draw.choice(AIRPORTS)
    if last in ("city", "town", "location"):
        return draw.choice(CITIES)[0]
    when = _when_by_name(words, last, joined, draw)
    if when is not None:
        return when
    if last in ("expression", "formula"):
        return f"{draw.between(12, 95)} * {draw.between(3, 19)} + {draw.between(10, 400)}"
    if last in ("product", "item"):
        return draw.choice(GOODS)
    if last == "reason" and about in _OF_GOODS:
        return draw.choice(_NOTES["return"])
    known = word_for(words, about, draw) or _note_by_name(last, draw, about)
    if known is not None:
        return known
    if last == "currency":
        return "USD"
    if last.endswith(("ist", "ian", "eer")) and len(last) > 5 and last not in _NO_PEOPLE:
        firsts, lasts, _ = pools()
        return f"{draw.choice(firsts)} {draw.choice(lasts)}"  # a dentist, a technician
    if last == "number" and words[0] in ("house", "building"):
        return str(person["address1"]).partition(" ")[0]
    if last == "number" and words[0] in _SMALL:
        return str(draw.between(1, 40))
    if last == "iban":
        bank, account = draw.between(10_000_000, 99_999_999), draw.between(10**9, 10**10 - 1)
        return f"DE{98 - int(f'{bank}{account}131400') % 97:02}{bank}{account}"
    if last == "owner":
        firsts, lasts, _ = pools()
        return f"{draw.choice(firsts)} {draw.choice(lasts)}"
    if last in ("account", "card"):
        return str(draw.between(10_000_000, 99_999_999))
    if last in ("number", "code", "id", "reference", "key") and len(words) > 1:
        return f"{words[-2][:3].upper()}-{draw.between(10_000, 99_999)}"
    return None


_NAMED = frozenset((*PEOPLE, "full", "contact"))
_OF_GOODS = frozenset(("order", "purchase", "item", "product", "return", "exchange", "shipment"))
_BY_PERSON = frozenset({"", "reservation", "booking", "appointment", *PEOPLE})
"""Records that stand under the name of a person."""


_BIRTH = frozenset({"dob", "birth", "birthday", "birthdate"})


def _when_by_name(words: Sequence[str], last: str, joined: str, draw: Draw) -> str | None:
    if last in _BIRTH:
        return f"{1960 + draw.below(45)}-0{draw.between(1, 9)}-1{draw.below(10)}"
    if last in ("start", "end", "when", "datetime", "timestamp") or joined.endswith("_at"):
        date_only = day(draw, past=_is_past(words))
        return date_only if joined.endswith("_at") else f"{date_only} {_clock(draw)}"
    if last in ("date", "day") or "date" in words:
        return day(draw, past=_is_past(words))
    if last == "time":
        return _clock(draw)
    return None


_NOTES = {
    "return": ("changed my mind", "ordered by mistake", "found it cheaper elsewhere", "arrived too late",
               "no longer needed", "wrong size", "moving house"),
    "reason": ("change of plans", "no longer needed", "something came up"),
    "note": ("please see my last email", "call me if anything is unclear", "I can explain it on the phone"),
    "message": ("please call me back", "thanks for your help", "please get back to me this week"),
    "comment": ("please see my last email", "call me if anything is unclear", "thanks for looking after this"),
    "description": ("it no longer works as it should", "something has been wrong since yesterday",
                    "it was fine until this morning"),
    "summary": ("customer asks for help with a delivery", "customer wants to change a booking"),
    "priority": ("normal", "high", "low"),
    "color": ("blue", "black", "red", "green"),
    "size": ("S", "M", "L", "XL"),
}  # fmt: skip


_DELIVERED = frozenset(("order", "purchase", "shipment", "delivery", "package", "parcel", "item", "product"))
_NOTES_OF = {
    "note": ("please ring the bell", "leave it with the neighbour", "call before arriving", "handle with care"),
    "comment": ("please ring the bell", "the box was damaged", "great service so far"),
    "description": ("the screen stays black", "it stopped charging", "the lid does not close", "a part is missing"),
}
"""Notes on what is delivered; elsewhere a note must fit anything."""


def _note_by_name(last: str, draw: Draw, about: str) -> str | None:
    key = {"notes": "note", "body": "message", "text": "message", "content": "message", "comments": "comment",
           "details": "description", "problem": "description", "colour": "color"}.get(last, last)  # fmt: skip
    if key in _NOTES_OF and about in _DELIVERED:
        return draw.choice(_NOTES_OF[key])
    return draw.choice(_NOTES[key]) if key in _NOTES else None


def _object_by_name(words: Sequence[str], draw: Draw, person: Mapping[str, Any]) -> Record:
    """Return an object of a kind that the schema leaves open."""
    last = words[-1] if words else ""
    if last in ("passenger", "guest", "traveler", "person", "contact"):
        born = f"{1960 + draw.below(45)}-0{draw.between(1, 9)}-1{draw.below(10)}"
        return {"first_name": person["first_name"], "last_name": person["last_name"], "dob": born}
    if last in ("flight", "segment", "leg"):
        return {
            "flight_number": f"{draw.choice(('UA', 'DL', 'AA'))}{draw.between(100, 2999)}",
            "date": day(draw, past=False),
        }
    if last in ("method", "payment"):
        return {"payment_id": f"credit_card_{draw.between(1000000, 9999999)}", "amount": draw.between(10, 90) * 5}
    if last == "address":
        return {k: person[k] for k in ("address1", "address2", "city", "state", "zip", "country")}
    if last in ("item", "product", "line"):
        return {"name": draw.choice(GOODS), "quantity": draw.between(1, 3)}
    return {"name": draw.choice(GOODS)}
