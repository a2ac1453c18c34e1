"""Records in words: what a support agent picks out of a record and how it is said.

Example:
    >>> described("order A-1", {"order_id": "A-1", "total": 12.5, "status": "pending"}, "order_id", "order", False)
    'order A-1 is pending: total 12.50.'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from whileai_simulate.facts import PLACES
from whileai_simulate.lexicon import ADDRESS_FIELDS, CATALOG, article, label, plural, singular, words_of

__all__ = ["described", "has_already", "listed", "requested", "settings", "value_of"]

_SUMS = """
price total balance amount cost fee subtotal tax refund premium limit salary deposit charge payment shipping fare toll
quote estimate
"""
_MONEY = frozenset(_SUMS.split())
_APART = frozenset(("status", "note", "pending_steps", "possible_duplicate_of", "first_name", "last_name", "currency",
                     "created_at"))  # fmt: skip
_TITLES = frozenset(("title", "subject", "body", "text", "snippet", "description", "message", "summary"))
_VERBATIM = _TITLES | {"path", "name", "file", "branch"}
_ENUM = re.compile(r"[a-z]+(?:_[a-z]+)+")
_KEYS = frozenset(("id", "ids", "number", "code"))
_ADDRESS = frozenset(ADDRESS_FIELDS)
_FACTS = 4
"""Facts of a record that are told."""
_NAMED = 3
"""Entries of a list that are named."""


def described(what: str, record: Mapping[str, Any], id_field: str, entity: str, own: bool) -> str:
    """Return what there is to say of a record, with its status first.

    Args:
        what: How it is named.
        record: The record.
        id_field: Field that holds its id.
        entity: Its type.
        own: It is the record of the person who asks.
    """
    status = record.get("status")
    facts = ", ".join(_facts(record, id_field, entity, own))
    sentences: list[str] = []
    if status == "unknown" or (status is None and record.get("note")):
        sentences.append(f"I can't confirm the state of {what} right now; it is {record.get('note') or 'unknown'}")
    elif isinstance(status, str) and status.endswith(" requested"):
        sentences.append(f"{requested(status)} for {what}{f'. Details: {facts}' if facts else ''}")
    elif status:
        sentences.append(f"{what} is {status}{f': {facts}' if facts else ''}")
    elif facts:
        sentences.append(f"here is {what}: {facts}")
    else:
        sentences.append(f"{what} is on record")
    note = record.get("note")
    if note and len(sentences) == 1 and not sentences[0].startswith("I can't"):
        sentences.append(f"Note: {note}")
    pending = record.get("pending_steps")
    if pending:
        steps = ", ".join(map(str, pending)) if isinstance(pending, list | tuple) else str(pending)
        sentences.append(f"Still pending: {steps}")
    if record.get("possible_duplicate_of") is not None:
        sentences.append(f"It is flagged as a possible duplicate of {record['possible_duplicate_of']}")
    return ". ".join(sentences) + "."


def requested(status: str, already: str = "") -> str:
    """Return what a status says that ends on requested: a return has been requested."""
    act = status.removesuffix(" requested")
    half = "partly " if act.startswith("partly ") else ""
    return f"{article(act.removeprefix('partly '))} has {already}been {half}requested"


def _facts(record: Mapping[str, Any], id_field: str, entity: str, own: bool) -> list[str]:
    out: list[str] = []
    full = ""
    if isinstance(record.get("first_name"), str):
        full = f"{record['first_name']} {record.get('last_name', '')}".rstrip()
        out.append(f"name {full}")
    for field, value in record.items():
        if len(out) == _FACTS:
            break
        if field == id_field or field in _APART or value is None or value in ("", full):
            continue
        if field in ("origin", "destination") and record.get("origin") and record.get("destination"):
            if field == "origin":
                out.append(f"from {value} to {record['destination']}")
            continue
        if isinstance(value, list):
            names = [_line(v) for v in value if isinstance(v, Mapping) and isinstance(v.get("name"), str)]
            if names:
                out.append(_and(names, _NAMED))
        elif isinstance(value, str | int | float) and not (field in _ADDRESS and "address1" in record):
            said = _fact(field, value, entity, record)
            if said:
                out.append(said)
    if own and len(out) < _FACTS and isinstance(record.get("address1"), str):
        out.append(f"address {address_of(record)}")
    if not out and isinstance(record.get("created_at"), str):
        out.append(f"created on {value_of('created_at', record['created_at'])}")
    return out


def _fact(field: str, value: Any, entity: str, record: Mapping[str, Any]) -> str:
    words = words_of(field)
    last = words[-1] if words else ""
    if last in _KEYS and len(words) > 1:
        return ""  # ids of other things help nobody
    text = value_of(field, value)
    if field == "name":
        if entity in CATALOG or "price" in record:
            return text
        return f"in the name of {text}" if _is_name(text) else f"name {text}"
    if field == "state" and "status" in record:
        return ""  # how an issue stands is its status; a state of a country says nothing alone
    if field == entity:
        return text
    if field in _TITLES:
        return f'"{text}"'
    if last == "at" and len(words) > 1:
        return f"{' '.join(words[:-1])} on {text}"
    if field == "member_since":
        return f"member since {text}"
    if field == "in_stock":
        return ("in stock" if value else "out of stock") if isinstance(value, bool) else f"{text} in stock"
    if field in ("date", "day"):
        return f"on {text}"
    if field in PLACES and field not in ("state", "destination", "country", "region"):
        return f"in {text}"
    if last in _MONEY and isinstance(record.get("currency"), str):
        text = f"{text} {record['currency']}"
    return f"{label(field)} {text}"


def _is_name(text: str) -> bool:
    return " " in text and all(w[:1].isupper() for w in text.split())


def _line(item: Mapping[str, Any]) -> str:
    price = item.get("price")
    return f"{item['name']} ({value_of('price', price)})" if isinstance(price, int | float) else str(item["name"])


def address_of(record: Mapping[str, Any]) -> str:
    """Return the address that a record has, on one line."""
    parts = [str(record[f]) for f in ("address1", "address2", "street", "city") if record.get(f)]
    rest = " ".join(str(record[f]) for f in ("state", "zip", "zip_code", "postal_code", "postcode") if record.get(f))
    return ", ".join([*parts, *([rest] if rest else [])])


def listed(values: Sequence[Any], id_field: str, entity: str) -> str:
    """Return the entries of a list by name, a few of them: espresso cups (7389), backpack (7630) and 2 more."""
    return _and([_entry(v, id_field, entity) for v in values[: _NAMED + 1]], _NAMED, len(values))


def _entry(value: Any, id_field: str, entity: str) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    key = value.get(id_field)
    if key is None:
        key = next((v for k, v in value.items() if words_of(k)[-1:] in (("id",), ("number",), ("code",))), None)
    name = next((value[f] for f in ("name", "title", "subject") if isinstance(value.get(f), str)), None)
    if name is not None and entity in CATALOG:
        return f"{name} ({key})" if key is not None else str(name)
    facts = [f for f in _facts(value, id_field, entity, False) if not f.startswith("in the name of ")][:2]
    status = value.get("status")
    if isinstance(status, str) and status not in ("active", "available"):
        facts.append(status)
    if key is None:
        return ", ".join(facts) or "one without a name"
    return f"{key} ({', '.join(facts)})" if facts else str(key)


def _and(names: list[str], most: int, count: int = 0) -> str:
    count = max(count, len(names))
    if count > most + 1:  # "and 1 more" is no shorter than its name
        return f"{', '.join(names[:most])} and {count - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def settings(what: str, new: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what a change has set, as far as the record shows it: the address on order A-1 is now 3 Main St, Austin.

    Args:
        what: How the record is named.
        new: Arguments of the change without the one that names the record.
        after: The record as the tool shows it after the change.
    """
    coming = {_bare(k) for k in new if _bare(k) != k}
    shown = {k: v for k, v in new.items() if "_".join(words_of(k)) not in coming and v not in (None, "", [], {})}
    shown = {k: v for k, v in shown.items() if _shows(after, k, v)}
    told: list[str] = []
    if "address1" in shown or "street" in shown:
        told.append(f"the address is now {address_of(shown)}")
        shown = {k: v for k, v in shown.items() if k not in _ADDRESS}
    for field, value in shown.items():
        noun, be = _noun(field, value), "are" if _is_many(field, value) else "is"
        if isinstance(value, list) and _bare(field) != field:
            told.append(f"the new {noun} {be} {_text(field, value)}")
        else:
            told.append(f"the {noun} {be} now {_text(field, value)}")
    return f"for {what}, {_and(told, len(told))}" if told else ""


def has_already(what: str, names: Sequence[str], record: Mapping[str, Any]) -> str:
    """Return that a record has the wanted values already.

    Args:
        what: How the record is named.
        names: Arguments of the change that stand in the record, by the name of the argument.
        record: The record.
    """
    coming = {_bare(k) for k in names if _bare(k) != k}
    kept = [n for n in names if "_".join(words_of(n)) not in coming]
    told: list[str] = []
    if "address1" in kept or "street" in kept:
        told.append(f"the address {address_of(record)}")
        kept = [n for n in kept if n not in _ADDRESS]
    told += [f"the {_noun(name, record[name])} {_text(name, record[name])}" for name in kept]
    return f"{what} already has {_and(told, len(told))}, so there was nothing to change."


def _noun(field: str, value: Any) -> str:
    """Return how people call what an argument sets: the payment method, the items."""
    noun = label(_bare(field)).removesuffix(" IDs").removesuffix(" ID")
    if isinstance(value, list):
        head, space, last = noun.rpartition(" ")
        return f"{head}{space}{singular(last)}" if len(value) == 1 else plural(noun)
    return "payment method" if noun == "payment" else noun


def _is_many(field: str, value: Any) -> bool:
    last = label(_bare(field)).rpartition(" ")[2]
    return len(value) != 1 if isinstance(value, list) else singular(last) != last and not last.isupper()


def _text(field: str, value: Any) -> str:
    if isinstance(value, list):
        return _and([_text(field, v) for v in value], len(value))
    if not isinstance(value, Mapping):
        return value_of(field, value)
    if isinstance(value.get("first_name"), str):
        return f"{value['first_name']} {value.get('last_name', '')}".rstrip()
    first, *rest = [value_of(k, v) for k, v in value.items() if isinstance(v, str | int | float)] or ["as you said"]
    return f"{first} ({', '.join(rest)})" if rest else first


def _bare(name: str) -> str:
    words = words_of(name)
    return "_".join(words[1:]) if len(words) > 1 and words[0] in ("new", "updated") else name


def _shows(after: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a record shows a value under the name of an argument, or under the field that it sets."""
    return bool(after.get(name) == value or after.get(_field(tuple(after), name)) == value)


@lru_cache(maxsize=2048)
def _field(fields: tuple[str, ...], name: str) -> str:
    words = words_of(name)[1:]
    return next((f for f in fields if words_of(f) == words), "")


def value_of(field: str, value: Any) -> str:
    """Return a value as people write it: 12.50 for a price, 2024-06-17 at 13:30 UTC for a moment, yes for true."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}" if words_of(field)[-1:] and words_of(field)[-1] in _MONEY else f"{value:g}"
    if isinstance(value, str):
        if "_" in value and field not in _VERBATIM and _ENUM.fullmatch(value):
            return value.replace("_", " ")
        if len(value) >= 16 and value[10] == "T" and value[4] == "-" and value[13] == ":":
            return f"{value[:10]} at {value[11:16]}{' UTC' if value.endswith('Z') else ''}"
        return value
    return str(value)
