"""Plausible records: ids that look like the domain's own, and fields that fit their schema.

Example:
    >>> from whileai_simulate.entities import EntityType
    >>> make_id(EntityType("order", "order_id", id_example="#W1234567"), Draw(0))[:2]
    '#W'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.entities import Domain, EntityType, Param
from whileai_simulate.lexicon import (
    ADDRESS_FIELDS,
    AIRPORTS,
    CATALOG,
    CITIES,
    CLOSED_STATUSES,
    GOODS,
    PEOPLE,
    PRICES,
    PRICES_OF,
    plural,
)
from whileai_simulate.ordering import in_order
from whileai_simulate.people import Record, letters, make_person, one_line
from whileai_simulate.schema import ALNUM, problems, sample
from whileai_simulate.values import day, value_for
from whileai_simulate.vocabulary import word_for

__all__ = [
    "Record",
    "collection_field",
    "day",
    "flat",
    "make_id",
    "make_person",
    "make_record",
    "reference_values",
    "value_for",
]

_ADDRESSED = frozenset(ADDRESS_FIELDS)
_PERSON_ID = re.compile(r"^[a-z]+_[a-z]+_\d+$")


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
        return f"{letters(person['first_name'])}_{letters(person['last_name'])}_{draw.between(1000, 9999)}"
    if example.startswith("gift_card_") and draw.below(3):
        example = f"{draw.choice(('credit_card', 'paypal'))}_0000000"
    return _like(example, draw)


@lru_cache(maxsize=1024)
def _prefix(name: str) -> str:
    """Return the letters that ids of a type begin with: order, ORD; pull_request, PR."""
    words = name.split("_")
    return ("".join(w[:1] for w in words) if len(words) > 1 else name[:3]).upper()


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
    if name in CATALOG and not _ADDRESSED.isdisjoint(entity.fields):
        person = make_person(draw)  # places stand where they stand, and not where the person lives
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
    in_order(record)
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
            "address": one_line(person), "member_since": f"{draw.between(2016, 2023)}-{draw.between(1, 12):02}"
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
