"""Plausible records: people, ids that look like the domain's own, and fields that fit their schema.

Names, streets and phone numbers come from faker, drawn once per process into pools (a faker call costs 0.2 ms,
which a run of 10,000 rollouts a second cannot pay). Every value is checked against the field's schema; where a
plausible value does not satisfy it, a sampled one does.

Example:
    >>> person = make_person(Draw(0))
    >>> person["email"].split("@")[0].startswith(person["first_name"].lower())
    True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.entities import Domain, EntityType, Param
from whileai_simulate.lexicon import (
    AIRPORTS,
    CITIES,
    CLOSED_STATUSES,
    GOODS,
    PEOPLE,
    PRICES,
    PRICES_OF,
    plural,
    singular,
    words_of,
)
from whileai_simulate.schema import ALNUM, problems, resolve, sample, type_of
from whileai_simulate.vocabulary import number_for, plain_word, word_for

__all__ = ["Record", "flat", "make_id", "make_person", "make_record", "value_for"]

Record = dict[str, Any]
_POOL = 400
_TODAY = date(2024, 5, 15)
_MAILS = ("example.com", "example.org", "example.net")
_PERSON_ID = re.compile(r"^[a-z]+_[a-z]+_\d+$")


@lru_cache(maxsize=4)
def _pools(locale: str = "en_US") -> tuple[list[str], list[str], list[str]]:
    """First names, last names and streets of a locale, the same in every process."""
    from faker import Faker

    fake = Faker(locale, use_weighting=False)
    fake.seed_instance(20240515)

    def pool(make: Callable[[], str]) -> list[str]:
        return list(dict.fromkeys(make() for _ in range(_POOL)))

    return pool(fake.first_name), pool(fake.last_name), pool(fake.street_name)


def make_person(draw: Draw, locale: str = "en_US") -> Record:
    """Return a profile whose parts agree: the email carries the name, the zip code belongs to the city."""
    firsts, lasts, streets = _pools(locale)
    choice, below = draw.choice, draw.below
    first, last = choice(firsts), choice(lasts)
    city, state, zip3 = choice(CITIES)
    digits = 1000 + below(9000)
    plain = _letters(last)
    return {
        "first_name": first,
        "last_name": last,
        "email": f"{first.lower()}.{plain}{digits % 100}@{choice(_MAILS)}",
        "phone": f"+1-555-{100 + below(900)}-{digits}",
        "address1": f"{12 + below(969)} {choice(streets)}",
        "address2": f"Apt {1 + below(48)}" if below(2) else "",
        "city": city,
        "state": state,
        "zip": f"{zip3}{1 + below(99):02}",
        "country": "USA",
    }


def make_id(entity: EntityType, draw: Draw, person: Mapping[str, Any] | None = None) -> Any:
    """Return an id: by pattern, format or enum of its schema, else after the example, else such as `ORD-48213`."""
    schema = entity.id_schema
    example = entity.id_example
    if schema.get("type") == "integer":
        low = int(schema.get("minimum", 10_000))
        return draw.between(low, max(low, int(schema.get("maximum", low + 89_999))))
    if len(schema) > 1 and any(schema.get(k) for k in ("pattern", "format", "enum", "const")):
        return sample(schema, draw)
    if example is None and entity.name == "flight":
        return f"{draw.choice(('UA', 'DL', 'AA', 'BA', 'LH'))}{draw.between(100, 2999)}"
    if example is None:
        return f"{_prefix(entity.name)}-{draw.between(10_000, 99_999)}"
    if entity.name in PEOPLE and person is not None and _PERSON_ID.match(example):
        return f"{_letters(person['first_name'])}_{_letters(person['last_name'])}_{draw.between(1000, 9999)}"
    if example.startswith("gift_card_") and draw.below(3):
        example = f"{draw.choice(('credit_card', 'paypal'))}_0000000"
    return _like(example, draw)


@lru_cache(maxsize=1024)
def _prefix(name: str) -> str:
    """Return the letters that ids of a type begin with: order, ORD; pull_request, PR."""
    words = name.split("_")
    return ("".join(w[:1] for w in words) if len(words) > 1 else name[:3]).upper()


@lru_cache(maxsize=4096)
def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _like(example: str, draw: Draw) -> str:
    """Return text of the look of `example`: digits change; letters too when they stand between or after digits."""
    parts = _look(example)
    if isinstance(parts, int):
        return draw.text(ALNUM, parts) if parts else draw.choice(AIRPORTS)
    return "".join([p if isinstance(p, str) else str(draw.between(p[0], p[1])) for p in parts])


@lru_cache(maxsize=1024)
def _look(example: str) -> int | tuple[str | tuple[int, int], ...]:
    """Return the parts of an id: fixed text, and bounds of each run of digits; a number where letters vary too."""
    if re.fullmatch(r"[A-Z]{3}", example):
        return 0
    if re.fullmatch(r"[A-Z0-9]{5,}", example) and re.search(r"\d[A-Z]", example):
        return len(example)
    runs = re.findall(r"\d+|\D+", example)
    return tuple((10 ** (len(r) - 1), 10 ** len(r) - 1) if r.isdigit() else r for r in runs)


def day(draw: Draw, *, past: bool) -> str:
    """Return a date within two months before, or after, the day of the simulated world (2024-05-15)."""
    shift = draw.between(2, 60)
    return (_TODAY + timedelta(days=-shift if past else shift)).isoformat()


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
    ]
)
_MONEY = frozenset(
    ["price", "amount", "total", "cost", "fee", "balance", "subtotal", "refund", "charge", "balance", "credit"]
)
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
        several = [value_for(singular(name), items, draw, person, about) for _ in range(count)]
        return several if not problems(several, schema, root=root) else sample(schema, draw, root=root)
    if kind == "object" and schema.get("properties"):
        required = schema.get("required", schema["properties"])
        made = {
            k: value_for(k, {**s, "x-root": root}, draw, person, about)
            for k, s in schema["properties"].items()
            if k in required
        }
        return made if not problems(made, schema, root=root) else sample(schema, draw, root=root)
    if kind == "string" and not schema.get("pattern") and not schema.get("format"):
        word = plain_word(draw)
        if not problems(word, schema, root=root):
            return word
    return sample(schema, draw, root=root)


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
    return draw.between(1, 4) if whole else float(draw.between(1, 20))


def _by_format(form: str, words: Sequence[str], draw: Draw, person: Mapping[str, Any]) -> str | None:
    """Return text of a format as people have it: a meeting starts at half past ten, and not at 03:47."""
    past = bool(_PAST & set(words))
    if form == "date-time":
        return f"{day(draw, past=past)}T{_clock(draw)}:00Z"
    if form == "time":
        return f"{_clock(draw)}:00Z"
    if form == "email" and not {"email", "mail"} & set(words):
        firsts, lasts, _ = _pools()
        return f"{draw.choice(firsts).lower()}.{_letters(draw.choice(lasts))}@example.com"
    return None


def _clock(draw: Draw) -> str:
    return f"{draw.between(8, 18):02}:{draw.choice(('00', '30'))}"


_OTHERS = """
assignee reviewer organizer organiser attendee participant manager contact author recipient host driver agent
technician teacher instructor approver requester sender
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
        firsts, lasts, _ = _pools()
        return f"{draw.choice(firsts)} {draw.choice(lasts)}"
    if "email" in words or "mail" in words:
        return person["email"]
    if "phone" in words or "mobile" in words:
        return person["phone"]
    if last in ("zip", "postcode") or joined in ("zip_code", "postal_code"):
        return person["zip"]
    if "address" in words or last == "street":
        if last == "2":
            return person["address2"]
        return person["address1"] if len(words) > 1 or last == "street" else _one_line(person)
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
    known = word_for(words, about, draw) or _note_by_name(last, draw)
    if known is not None:
        return known
    if last == "currency":
        return "USD"
    if last in ("account", "iban", "card"):
        return str(draw.between(10_000_000, 99_999_999))
    if last in ("number", "code", "id", "reference", "key") and len(words) > 1:
        return f"{words[-2][:3].upper()}-{draw.between(10_000, 99_999)}"
    return None


_NAMED = frozenset((*PEOPLE, "full", "contact"))
_OF_GOODS = frozenset(("order", "purchase", "item", "product", "return", "exchange", "shipment"))
_BY_PERSON = frozenset({"", "reservation", "booking", "appointment", *PEOPLE})
"""Records that stand under the name of a person."""


def _when_by_name(words: Sequence[str], last: str, joined: str, draw: Draw) -> str | None:
    if last in ("dob", "birth", "birthday", "birthdate"):
        return f"{1960 + draw.below(45)}-0{draw.between(1, 9)}-1{draw.below(10)}"
    if last in ("start", "end", "when", "datetime", "timestamp") or joined.endswith("_at"):
        date_only = day(draw, past=bool(_PAST & set(words)))
        return date_only if joined.endswith("_at") else f"{date_only} {_clock(draw)}"
    if last in ("date", "day") or "date" in words:
        return day(draw, past=bool(_PAST & set(words)))
    if last == "time":
        return _clock(draw)
    return None


_NOTES = {
    "return": ("changed my mind", "ordered by mistake", "found it cheaper elsewhere", "arrived too late",
               "no longer needed", "wrong size", "moving house"),
    "reason": ("change of plans", "no longer needed", "something came up", "moving house", "booked by mistake"),
    "note": ("please ring the bell", "leave it with the neighbour", "call before arriving", "handle with care"),
    "message": ("please call me back", "running ten minutes late", "thanks for your help", "can we move it to Friday"),
    "comment": ("please ring the bell", "the box was damaged", "great service so far"),
    "description": ("the screen stays black", "it stopped charging", "the lid does not close", "a part is missing"),
    "summary": ("customer asks for help with a delivery", "customer wants to change a booking"),
    "priority": ("normal", "high", "low"),
    "color": ("blue", "black", "red", "green"),
    "size": ("S", "M", "L", "XL"),
}  # fmt: skip


def _note_by_name(last: str, draw: Draw) -> str | None:
    key = {"notes": "note", "body": "message", "text": "message", "content": "message", "comments": "comment",
           "details": "description", "problem": "description", "colour": "color"}.get(last, last)  # fmt: skip
    return draw.choice(_NOTES[key]) if key in _NOTES else None


def _one_line(person: Mapping[str, Any]) -> str:
    second = f", {person['address2']}" if person["address2"] else ""
    return f"{person['address1']}{second}, {person['city']}, {person['state']} {person['zip']}"


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


def make_record(domain: Domain, name: str, draw: Draw, person: Mapping[str, Any], owner_id: Any = None) -> Record:
    """Return one record of an entity type.

    Args:
        domain: What the tools are about.
        name: Entity type.
        draw: Where the values come from.
        person: Profile of its owner (or of the person that it is).
        owner_id: Id of the owner, when the domain has one.
    """
    entity = domain.entities[name]
    record: Record = {entity.id_field: make_id(entity, draw, person)}
    if domain.person and name != domain.person and entity.owner == domain.person and owner_id is not None:
        record[domain.entities[domain.person].id_field] = owner_id
    declared = entity.fields
    for field_name, schema in declared.items():
        if field_name in record or field_name == "status":
            continue
        if _is_reference(field_name, domain):
            record[field_name] = make_id(domain.entities[_reference_of(field_name)], draw, person)
        elif field_name not in ("reason",):
            record[field_name] = value_for(field_name, schema, draw, person, name)
    if not entity.closed:
        for field_name, value in _usual(domain, name, draw, person).items():
            if field_name != "address" or "address1" not in record:  # said once, so that a change leaves nothing stale
                record.setdefault(field_name, value)
    if entity.values is not None:
        record = flat(record, entity.values)
    status = entity.fields.get("status")
    if status is not None and status.get("enum"):
        open_ones = [s for s in status["enum"] if s not in CLOSED_STATUSES] or status["enum"]
        record["status"] = draw.choice(open_ones)
    elif not entity.closed or status is not None:
        record["status"] = entity.statuses[0]
    return record


def flat(record: Record, schema: Mapping[str, Any]) -> Record:
    """Return the record with every value as the schema wants it; what cannot be so is left out."""
    out: Record = {}
    for name, value in record.items():
        if not problems(value, schema):
            out[name] = value
        elif not isinstance(value, list | dict) and not problems(str(value), schema):
            out[name] = str(value)
    return out


@lru_cache(maxsize=4096)
def _reference_of(field_name: str) -> str:
    return re.sub(r"_(id|number|code)$", "", field_name)


def _is_reference(field_name: str, domain: Domain) -> bool:
    return field_name.endswith(("_id", "_number", "_code")) and _reference_of(field_name) in domain.entities


def _usual(domain: Domain, name: str, draw: Draw, person: Mapping[str, Any]) -> Record:
    """Return the fields that records of this kind usually have, where no schema says otherwise."""
    if name in PEOPLE:
        keys = ("first_name", "last_name", "email", "phone")
        return {k: person[k] for k in keys} | {
            "address": _one_line(person), "member_since": f"{draw.between(2016, 2023)}-{draw.between(1, 12):02}"
        }  # fmt: skip
    if name in ("order", "purchase", "cart"):
        lines = _lines(domain, draw, person)
        out: Record = {
            "items": lines,
            "total": round(sum(i["price"] for i in lines), 2),
            "placed_at": day(draw, past=True),
        }
        return out if domain.person else {"customer_name": f"{person['first_name']} {person['last_name']}", **out}
    if name in ("product", "item", "sku", "article"):
        goods = draw.choice(GOODS)
        return {"name": goods, "price": draw.choice(PRICES_OF[goods]), "in_stock": draw.between(1, 40)}
    if name == "flight":
        start = draw.between(6, 20)
        origin = draw.choice(AIRPORTS)
        return {
            "origin": origin,
            "destination": draw.choice([a for a in AIRPORTS if a != origin]),
            "departs": f"{start:02}:{draw.choice(('05', '20', '45'))}",
            "arrives": f"{(start + draw.between(1, 3)) % 24:02}:{draw.choice(('10', '35', '50'))}",
            "price": draw.between(60, 480),
        }
    if name == "airport":
        city = draw.choice(CITIES)[0]
        return {"code": draw.choice(AIRPORTS), "city": city}
    if name in ("reservation", "booking", "appointment"):
        return {"name": f"{person['first_name']} {person['last_name']}", "created_at": day(draw, past=True)}
    if name in ("transaction", "charge"):
        return {"amount": draw.choice(PRICES), "currency": "USD", "date": day(draw, past=True)}
    if name in ("invoice", "payment", "refund", "bill"):
        return {"amount": draw.choice(PRICES), "currency": "USD", "due_date": day(draw, past=False)}
    if name in ("ticket", "case", "claim", "issue"):
        said = "subject" if not {"title", "description", "subject"} & domain.entities[name].fields.keys() else ""
        return ({said: word_for((said,), name, draw)} if said else {}) | {"opened_at": day(draw, past=True)}
    if name == "payment_method":
        return {"label": "card ending in " + str(draw.between(1000, 9999))}
    made = _SHOWN.get(name.rpartition("_")[2])
    if made is None:
        return {"created_at": day(draw, past=True)}
    declared = domain.entities[name].fields
    if "department" in declared:
        made = {k: s for k, s in made.items() if k != "specialty"}
    return {k: value_for(k, s, draw, person, name) for k, s in made.items() if k not in declared}


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_SHOWN: dict[str, dict[str, dict[str, str]]] = {
    "room": {"name": _TEXT, "floor": _WHOLE, "capacity": _WHOLE},
    "meeting": {"title": _TEXT, "organizer": _TEXT}, "event": {"title": _TEXT, "date": _TEXT, "venue": _TEXT},
    "doctor": {"doctor": _TEXT, "specialty": _TEXT}, "result": {"issued_at": _TEXT, "finding": _TEXT},
    "report": {"created_at": _TEXT, "finding": _TEXT}, "slot": {"time": _TEXT},
    "repository": {"visibility": _TEXT, "created_at": _TEXT}, "code": {"path": _TEXT, "snippet": _TEXT},
    "content": {"snippet": _TEXT}, "document": {"title": _TEXT, "created_at": _TEXT},
    "article": {"title": _TEXT, "created_at": _TEXT}, "task": {"title": _TEXT, "due_date": _TEXT},
    "package": {"created_at": _TEXT, "city": _TEXT}, "subscription": {"plan": _TEXT, "created_at": _TEXT},
}  # fmt: skip
"""Fields that records of a kind usually show, where no schema says otherwise."""


def _lines(domain: Domain, draw: Draw, person: Mapping[str, Any]) -> list[Record]:
    """Return one to three lines of an order, each of other goods, so that a person can say which one is meant."""
    first, step = draw.below(len(GOODS)), 1 + draw.below(len(GOODS) // 3)
    out = []
    for n in range(draw.between(1, 3)):
        goods = GOODS[(first + n * step) % len(GOODS)]
        line: Record = {"name": goods}
        for kind in ("product", "item"):
            if kind in domain.entities:
                line[domain.entities[kind].id_field] = make_id(domain.entities[kind], draw, person)
        out.append(line | {"price": draw.choice(PRICES_OF[goods])})
    return out


def collection_field(entity: str) -> str:
    """Return the name of the field that lists what a person owns: orders, payment_methods."""
    return plural(entity)


def reference_values(param: Param, record: Mapping[str, Any], owner: Mapping[str, Any]) -> list[Any]:
    """Return ids that `param` may refer to and that the record, its lines or its owner's record show."""
    found: list[Any] = []
    names = {param.name, param.name.rstrip("s"), f"{param.entity}_id"}
    for source in (record, *[line for line in record.get("items", ()) if isinstance(line, Mapping)], owner):
        found += [source[n] for n in names if n in source and not isinstance(source[n], list)]
    listed = owner.get(collection_field(param.entity or ""), ())
    found += [v for v in listed if not isinstance(v, Mapping)]
    return list(dict.fromkeys(found))
