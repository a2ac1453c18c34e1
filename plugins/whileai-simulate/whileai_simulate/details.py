"""How people tell what only they know: a date, an address, a reason, the passengers of a flight.

Every argument of the right call that no record shows is told here, word for word, so that it is grounded in the ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.entities import Param
from whileai_simulate.lexicon import ADDRESS_FIELDS, label, singular, word_set, words_of
from whileai_simulate.naming import is_spoken_in, is_sum, object_of
from whileai_simulate.scenes import ASK, Target

__all__ = ["capital", "details_of"]

_MEASURES = "minutes hours days weeks months seconds mg kg km miles percent cm lbs ml liters litres celsius"
_UNITS = {unit: unit for unit in _MEASURES.split()} | {
    "m": "m",
    "gb": "GB",
    "mb": "MB",
    "tb": "TB",
    "kw": "kW",
    "kwh": "kWh",
}
_AT_MOST = frozenset(["limit", "max_results", "top_k", "page_size", "per_page"])
_TOLD = frozenset(["notify", "send", "include", "allow", "force", "skip", "enable", "delete", "add", "share", "keep"])
_PEOPLES = frozenset(["first_name", "last_name", "surname", "full_name"])
_SEARCHED = frozenset(["query", "keyword", "keywords", "search", "term", "q"])
_TITLED = frozenset(["title", "subject", "topic", "name"])


def details_of(target: Target, draw: Draw) -> str:
    """Return sentences with every argument that the ask must tell."""
    told = [(p, v) for p, v in target.details if v not in ("", None, ASK)]
    if not told:
        return ""
    if target.info.mode == "generic":
        if target.info.kind == "generic" and is_sum(target.info):
            return ""  # the sum stands in the wish
        bare = object_of(target)
        spoken = bare[0] if bare else None
        if spoken is None and target.info.kind == "read" and not target.info.wish:
            spoken = next((p for p, v in told if is_spoken_in(p, v)), None)
        told = [(p, v) for p, v in told if p is not spoken]
    parts: list[str] = []
    place = [(p, v) for p, v in told if p.name in ADDRESS_FIELDS]
    if len(place) >= 3:
        told = [pair for pair in told if pair not in place]
        lead = draw.choice(("The new address is", "It should go to", "Please use"))
        parts.append(f"{lead} {_place({p.name: v for p, v in place})}.")
    route = {p.name: v for p, v in told if p.name in ("origin", "destination", "date")}
    if "origin" in route and "destination" in route:
        told = [(p, v) for p, v in told if p.name not in route]
        when = f" on {route['date']}" if "date" in route else ""
        lead = draw.choice(("From", "I want to go from", "The route is"))
        parts.append(f"{lead} {route['origin']} to {route['destination']}{when}.")
    names = {p.name: v for p, v in told if p.name in ("first_name", "last_name")}
    if len(names) == 2:
        told = [(p, v) for p, v in told if p.name not in names]
        parts.append(
            f"{draw.choice(('My name is', 'The name is', 'It is under'))} {names['first_name']} {names['last_name']}."
        )
    told = _ways(told, parts)
    parts += [_one_detail(param, value, draw) for param, value in told]
    return " ".join(p for p in parts if p)


def _ways(told: list[tuple[Param, Any]], parts: list[str]) -> list[tuple[Param, Any]]:
    """Put what leads from one thing to another into a sentence; return what is left to tell."""
    starts, ends = ([p for p, _ in told if words_of(p.name)[0] == w and not p.many] for w in ("from", "to"))
    values = {p.name: v for p, v in told}
    for start in starts:
        alone = len(starts) == len(ends) == 1
        end = next((p for p in ends if p.name[2:] == start.name[4:]), ends[0] if alone else None)
        if end is None:
            continue
        said = []
        for param in (start, end):
            what = "" if start.name[4:] == end.name[2:] else f"{label(param.name).partition(' ')[2]} "
            said.append(f"{what}{_spoken(values[param.name])}")
        parts.append(f"From {said[0]} to {said[1]}.")
        told = [pair for pair in told if pair[0] is not start and pair[0] is not end]
    return told


def _place(values: Mapping[str, Any]) -> str:
    streets = [str(v) for k, v in values.items() if k.startswith(("address", "street")) and v]
    city = str(values.get("city", ""))
    tail = " ".join(str(values[k]) for k in ("state", "zip", "zip_code", "postal_code", "postcode") if values.get(k))
    country = str(values.get("country", ""))
    return ", ".join(p for p in (*streets, city, tail, country) if p)


def _spoken(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _spoken_object(value)
    if isinstance(value, list | tuple):
        return " and ".join(_spoken(v) for v in value)
    return str(value)


_PLACED = frozenset(ADDRESS_FIELDS)
_LEADS = {"day": "", "dob": "born ", "birth_date": "born ", "date_of_birth": "born ", "role": "as ",
          "date": "on ", "time": "at ", "amount": "for ",
          "quantity": "quantity "}  # fmt: skip


def _spoken_object(value: Mapping[str, Any]) -> str:
    """Return how people say an object: Ana Silva, born 1990-01-02; UA123 on 2024-06-01; on 2024-06-01 at 14:30."""
    rest = dict(value)
    if str(rest.get("street", "")).startswith(f"{rest.get('house_number')} "):
        del rest["house_number"]  # it stands before the street
    head = ""
    if {"first_name", "last_name"} <= set(rest):
        head = f"{rest.pop('first_name')} {rest.pop('last_name')}"
    ids = [k for k in rest if k in ("name", "full_name", "provider", "location")] or [
        k for k in rest if k.endswith(("_id", "_number", "_code")) or k == "id"
    ]
    if not head and ids:
        head = str(rest.pop(ids[0]))
    parts = [head] if head else []
    if len(_PLACED & rest.keys()) > 1:
        parts.append(_place({k: rest.pop(k) for k in list(rest) if k in _PLACED}))
    if rest.keys() == {"from", "to"}:
        return f"from {_spoken(rest['from'])} to {_spoken(rest['to'])}"
    for key, inner in rest.items():
        words = words_of(key)
        if len(words) > 1 and words[-1] in _UNITS:
            parts.append(f"{label('_'.join(words[:-1]))} {_spoken(inner)} {_UNITS[words[-1]]}")
            continue
        parts.append(f"{_LEADS.get(key, f'{label(key)} ')}{_spoken(inner)}")
    if rest and rest.keys() <= {"date", "time"} and not head:
        return " ".join(parts).removeprefix("on ")
    if (rest and rest.keys() <= {"date", "time"}) or (len(parts) == 2 and parts[1].startswith(("on ", "for "))):
        return " ".join(parts)
    return ", ".join(parts)


def _list_name(param: Param, value: Any, name: str) -> str:
    """Return the name of a list as it is said of what it holds: one passenger, two passengers."""
    words = words_of(param.name)
    return label("_".join([*words[:-1], singular(words[-1])])) if len(value) == 1 else name


_ASKING = word_set("is has should can use was are do does")
_LEADING = word_set("from to on at in by of for before after since until below above under over min max with due")
"""Words that make a name no noun: people say "Below: 5", and not that the below is 5."""


def _is_clause(value: Any) -> bool:
    """Whether a text is no noun: it is then told after a colon."""
    return isinstance(value, str) and value.count(" ") > 2 and (value[:1].islower() or value.startswith("I "))


def _one_detail(param: Param, value: Any, draw: Draw) -> str:
    name, text = label(param.name), _spoken(value)
    if isinstance(value, bool) and words_of(param.name)[0] in _ASKING:
        name = name.partition(" ")[2] or name  # is_public: public
    if param.entity:
        name = re.sub(r" IDs?$", "", name)
    words = words_of(param.name)
    last = words[-1]
    if text == "":
        return ""
    if param.name in _AT_MOST and isinstance(value, int):
        return draw.choice(("{t} results are enough.", "No more than {t}, please.")).format(t=text)
    told = _by_type(param, value, name, text, words) or _by_name(param, name, text, words, draw)
    if told:
        return told
    shown = text.replace("_", " ") if "enum" in param.schema else text
    if param.role == "new" and param.entity:
        noun = label(param.entity) + ("s" if isinstance(value, list) and len(value) > 1 else "")
        return draw.choice(
            ("I'd like {n} {t} instead.", "Please give me {n} {t} instead.", "The replacement should be {n} {t}.")
        ).format(n=noun, t=shown)
    if param.many and param.entity:
        return f"It's about {label(param.entity)}{'s' if len(value) > 1 else ''} {shown}."
    if param.name == "insurance" and value in ("yes", "no"):
        return "With insurance: yes." if value == "yes" else "Insurance: no."
    if _LEADING & {words[0], last} or last.endswith("ed") or _is_clause(value):
        return f"{capital(name)}: {shown}."
    if last.endswith("s") and not last.endswith("ss"):
        return f"{capital(name)}: {shown}."
    if "payment" in words:
        return draw.choice(("The {n} is {t}.", "{N}: {t}.", "Please use {t} as the {n}.")).format(
            n="payment method" if name == "payment" else name, N=capital(name), t=shown
        )
    return draw.choice(("The {n} is {t}.", "{N}: {t}.")).format(n=name, N=capital(name), t=shown)


def _by_type(param: Param, value: Any, name: str, text: str, words: Sequence[str]) -> str:
    """Return how people tell lists, objects, yes or no, and quantities; empty for other values."""
    if isinstance(value, list) and value and not param.entity:
        return f"{capital(_list_name(param, value, name))}: {text}."
    if isinstance(value, Mapping):
        return f"{capital(name)}: {text}."
    if isinstance(value, bool):
        if words == ("on",):
            return f"It should be {'on' if value else 'off'}."
        if words[0] in _TOLD and len(words) > 1:
            return f"Please {name}." if value else f"Please don't {name}."
        return f"{capital(name)}: {text}."
    if isinstance(value, int | float) and words[-1] in _UNITS and len(words) > 1:
        return f"{capital(label('_'.join(words[:-1])))}: {text} {_UNITS[words[-1]]}."
    return ""


def _by_name(param: Param, name: str, text: str, words: Sequence[str], draw: Draw) -> str:
    """Return how people tell a value of a common kind (a reason, an email, a date), or an empty text."""
    last = words[-1]
    own = param.name in ("zip", "zip_code", "phone", "phone_number", "mobile")
    if last == "reason":
        said = text.replace("_", " ") if "enum" in param.schema else text
        return draw.choice(("The reason is: {t}.", "Reason: {t}.", "As a reason you can note: {t}.")).format(t=said)
    if last == "email":
        if len(words) > 1:
            return draw.choice(("The {n} is {t}.", "{N}: {t}.")).format(n=name, N=capital(name), t=text)
        return draw.choice(("The email is {t}.", "The email address is {t}.", "Email: {t}.")).format(t=text)
    if own or last in ("zip", "phone"):
        n = name + (" code" if last == "zip" else "")
        return draw.choice(("My {n} is {t}." if own else "The {n} is {t}.", "{N}: {t}.")).format(
            n=n, N=capital(n), t=text
        )
    if last == "date" and len(words) == 1:
        return draw.choice(("It's for {t}.", "The date is {t}.", "On {t}, please.")).format(t=text)
    if param.name in _PEOPLES:
        return draw.choice(("My {n} is {t}.", "The {n} is {t}.", "{N}: {t}.")).format(n=name, N=capital(name), t=text)
    if last in ("amount", "price", "total"):
        return draw.choice(("The {n} is {t}.", "{N}: {t}.", "It should be {t}.")).format(
            n=name, N=capital(name), t=text
        )
    if last in _SEARCHED:
        return draw.choice(("The search term is {t}.", "Search term: {t}.", "What I'm after: {t}.")).format(t=text)
    if last in _TITLED or last in ("start", "end") or param.schema.get("format") == "date-time":
        return f"{capital(name)}: {text}."
    if last in ("message", "note", "notes", "comment", "body", "text", "content", "description", "summary"):
        return f"{capital(name)}: {text}{'' if text.endswith(('.', '!', '?')) else '.'}"
    return ""


def capital(text: str) -> str:
    """Return the text with a capital letter first."""
    return text[:1].upper() + text[1:]
