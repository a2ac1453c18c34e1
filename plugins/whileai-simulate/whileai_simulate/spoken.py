"""What the scripted agents say of tool results: sentences that a support agent would write, true to the result.

Nothing is said that the world did not answer, and names of tools and of their errors stay inside.

Example:
    >>> from whileai_simulate.entities import read_domain
    >>> tool = {"name": "cancel_order", "x-kind": "write", "parameters": {"type": "object",
    ...     "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}
    >>> domain = read_domain([tool])
    >>> entry = {"tool": "cancel_order", "effect": "changed", "entity": "order", "id": "A-1"}
    >>> tell(domain, "cancel_order", {"order_id": "A-1"}, '{"order_id": "A-1", "status": "cancelled"}', entry).text
    'Done: order A-1 is now cancelled.'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from whileai_simulate.entities import Domain, ToolInfo
from whileai_simulate.facts import PLACES
from whileai_simulate.lexicon import MASS, PARTICLES, article, label, participle, plural, words_of
from whileai_simulate.naming import aspect_of, file_of
from whileai_simulate.spoken_records import (
    address_of,
    described,
    listed,
    requested,
    settings,
    value_of,
)

__all__ = ["Told", "act_of", "capital", "described_by", "nothing_left", "tell", "thing_of"]

_decoded = json.JSONDecoder().raw_decode  # what `json.loads` does between looks at white space


class Told(NamedTuple):
    """What a result comes to.

    Attributes:
        text: Sentences for the person.
        stop: The course ends here.
        record: The one record that was shown, where the result is one.
        entity: Its type.
    """

    text: str
    stop: bool = False
    record: Mapping[str, Any] | None = None
    entity: str = ""


def tell(domain: Domain, name: str, arguments: Mapping[str, Any], result: str, entry: Mapping[str, Any]) -> Told:
    """Return what to say of a result.

    Args:
        domain: What the tools are about.
        name: Tool that was called.
        arguments: Arguments of the call.
        result: What the tool answered.
        entry: The call as the log of the world has it.
    """
    info = domain.tools.get(name)
    try:
        value, end = _decoded(result)
        if end != len(result):
            value = json.loads(result)
    except ValueError:
        return Told(f"The answer that I got back is broken, so I couldn't {act_of(domain, info, arguments)}.", True)
    if isinstance(value, dict):
        if "error" in value:
            return Told(_trouble(domain, info, name, arguments, value), True)
        if "warning" in value:
            return Told("The system only shows an outdated copy, so I can't confirm the current state.", True)
        return Told(_of_record(domain, info, arguments, value, entry), False, value, str(entry.get("entity") or ""))
    if isinstance(value, list):
        return Told(_of_list(domain, info, arguments, value), False)
    return Told(_of_value(domain, info, value, entry), False)


# -- what was answered ----------------------------------------------------------------------------------------


def _of_record(
    domain: Domain,
    info: ToolInfo | None,
    arguments: Mapping[str, Any],
    value: Mapping[str, Any],
    entry: Mapping[str, Any],
) -> str:
    effect, entity = entry["effect"], str(entry.get("entity") or "")
    if not entity and effect == "read":
        return _of_fact(info, arguments, value)
    if effect == "done" or (not entity and value.get("status") == "ok"):
        return "That's done."
    what = thing_of(domain, entity, value)
    if effect == "created":
        return _made(domain, info, entity, value)
    if effect == "changed":
        return _changed(domain, info, arguments, value, what)
    rest = ""
    aspect = aspect_of(info.spoken or info.name, entity) if info is not None else ""
    if aspect and aspect != "status":
        field = "_".join(aspect.split())
        whose = f"your {aspect}" if entity == domain.person else f"the {aspect} of {what}"
        if isinstance(value.get(field), str | int | float):
            return f"{capital(whose)} is {value_of(field, value[field])}."
        if aspect == "address" and isinstance(value.get("address1"), str):
            return f"{capital(whose)} is {address_of(value)}."
        if not _speaks_of(tuple(value), aspect):
            rest = f" The record says nothing about {whose if entity == domain.person else f'the {aspect}'}."
    return capital(described(what, value, _id_field(domain, entity), entity, entity == domain.person)) + rest


@lru_cache(maxsize=2048)
def _speaks_of(fields: tuple[str, ...], aspect: str) -> bool:
    """Whether a field has to do with what was asked for: the items, the contact details."""
    stems = {w[:5] for w in aspect.split()}
    return any(w[:5] in stems for f in fields for w in words_of(f)) or bool(stems & _BROAD)


_BROAD = frozenset(w[:5] for w in ("contact", "details", "history", "summary", "overview", "progress", "state"))


def described_by(domain: Domain, told: Told | None) -> str:
    """Return what there is to say of the record that a result showed."""
    if told is None or told.record is None or not told.entity:
        return ""
    what, entity = thing_of(domain, told.entity, told.record), told.entity
    return capital(described(what, told.record, _id_field(domain, entity), entity, entity == domain.person))


def nothing_left(what: str, status: str) -> str:
    """Return what to say of a record that is as somebody wants to have it already."""
    asked = status.endswith(" requested")
    told = f"{requested(status, 'already ')} for {what}" if asked else f"{what} is already {status}"
    return f"{capital(told)}, so there was nothing left to do."


def _made(domain: Domain, info: ToolInfo | None, entity: str, value: Mapping[str, Any]) -> str:
    noun = label(entity) if entity else "entry"
    key = value.get(_id_field(domain, entity))
    verb = info.verb if info is not None else "make"
    return f"Done: the {noun} has been {participle(verb)}{f' ({noun} {key})' if key is not None else ''}."


def _changed(
    domain: Domain, info: ToolInfo | None, arguments: Mapping[str, Any], value: Mapping[str, Any], what: str
) -> str:
    status = value.get("status")
    text = ""
    if info is not None and info.done is None:
        new = {k: v for k, v in arguments.items() if k != info.key}
        text = settings(what, new, value)
    elif isinstance(status, str) and status.endswith(" requested"):
        text = f"{article(status.removesuffix(' requested'))} is now requested for {what}"
    elif status and info is not None:
        text = f"{what} is now {status}"
    text = text or f"{what} is updated"
    twin = value.get("possible_duplicate_of")
    return f"Done: {text}." + (f" Please note that it is flagged as a possible duplicate of {twin}." if twin else "")


def _of_fact(info: ToolInfo | None, arguments: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """Say a fact without what was asked: It is 11 degrees; the exchange rate is 0.77."""
    told = {k: v for k, v in value.items() if k not in arguments and isinstance(v, str | int | float)}
    if "temperature" in told:
        place = next((f" in {v}" for k, v in value.items() if k in PLACES), "")
        unit = str(told.get("unit") or arguments.get("unit") or "")
        degrees = f"{told['temperature']} degrees{f' {unit.capitalize()}' if unit else ''}"
        sky = told.get("conditions")
        return f"The weather{place}: {degrees}{f', {sky}' if sky else ''}."
    if not told:
        told = {k: v for k, v in value.items() if isinstance(v, str | int | float)} or dict(value)
    if len(told) == 1:
        ((field, answer),) = told.items()
        if field == "converted_amount":
            coin = next((v for k, v in value.items() if words_of(k)[:1] in (("to",), ("target",))), "")
            return f"That comes to {value_of(field, answer)}{f' {coin}' if coin else ''}."
        return f"The {label(field)} is {value_of(field, answer)}."
    return f"Here is what I found: {', '.join(f'{label(k)} {value_of(k, v)}' for k, v in told.items())}."


def _of_list(domain: Domain, info: ToolInfo | None, arguments: Mapping[str, Any], value: Sequence[Any]) -> str:
    entity = info.entity if info is not None and info.entity else ""
    noun = label(entity) if entity else "entry"
    own = entity == domain.person
    if own:
        noun = file_of(entity)
    if not value:
        return f"I found no {plural(noun)}{_narrowed(info, arguments)}."
    if len(value) == 1 and isinstance(value[0], Mapping):
        what = thing_of(domain, entity, value[0])
        told = capital(described(what, value[0], _id_field(domain, entity), entity, own))
        return told if own else f"I found one {_counted(noun, 1)}. {told}"
    if own and isinstance(value[0], str | int):
        noun = f"{label(entity)} ID"
    names = listed(value, _id_field(domain, entity), entity)
    return f"I found {len(value)} {_counted(noun, len(value))}{' for you' if own else ''}: {names}."


def _counted(noun: str, count: int) -> str:
    """Return a noun after a number: 2 appointments, 2 entries for code."""
    if noun.rpartition(" ")[2] in MASS:
        return f"{'entry' if count == 1 else 'entries'} for {noun}"
    return noun if count == 1 else plural(noun)


def _narrowed(info: ToolInfo | None, arguments: Mapping[str, Any]) -> str:
    """Return what a list was asked for: for account ACC-1."""
    if info is None or info.key is None or info.key not in arguments:
        return ""
    parent = next((p.entity for p in info.params if p.name == info.key), None)
    return f" for {label(parent or '')} {arguments[info.key]}" if parent else ""


def _of_value(domain: Domain, info: ToolInfo | None, value: Any, entry: Mapping[str, Any]) -> str:
    entity = str(entry.get("entity") or "")
    if isinstance(value, str) and " " in value:
        if value == "Transfer successful":
            person = info is not None and {"human", "agent", "agents", "escalate"} & set(words_of(info.name))
            return "I'm putting you through to a person now." if person else "Done: the transfer was successful."
        return _sentence(value)
    if entity:
        return f"{'Your' if entity == domain.person else 'The'} {label(entity)} ID is {value}."
    return f"The result is {value_of('', value)}."


# -- what went wrong ------------------------------------------------------------------------------------------

_MISSING = re.compile(r"(?P<what>.+) not found")
_NONE = re.compile(r"no (?P<what>.+?) found(?: for (?P<by>.+))?")
_UNSURE = re.compile(r"the state of (?P<what>.+) cannot be confirmed right now; .+")
_SAME = re.compile(r"(?P<what>.+) already has these values; nothing to do")
_AGAIN = re.compile(r"this .+ was already (?P<how>\w+)")


def _trouble(
    domain: Domain, info: ToolInfo | None, name: str, arguments: Mapping[str, Any], value: Mapping[str, Any]
) -> str:
    """Return an error as a person would tell it."""
    error = str(value["error"])
    do = act_of(domain, info, arguments)
    head = error.partition(":")[0]
    if head in _HEADS:
        return _HEADS[head].format(do=do)
    if info is None:
        return "I have no way to do that here."
    for pattern, say in _SAYINGS:
        match = pattern.fullmatch(error)
        if match is not None:
            return say(domain, value, match)
    if info.kind == "write" and value.get("status") is not None:
        rest = "I haven't changed anything" if " is already " in error else f"I couldn't {do}"
        return _sentence(f"{error}, so {rest}")
    return _sentence(error.replace(name, "the system"))


_HEADS = {
    "permission denied": "I'm not able to {do} right now: I don't have the permission for it.",
    "timeout": "The system didn't answer in time, so I couldn't {do}.",
    "rate limit": "The system is too busy at the moment, so I couldn't {do}.",
    "invalid arguments": "I couldn't {do}: the details that I have are incomplete or not accepted.",
    "cannot calculate": "I couldn't {do}: it is not a sum that I can calculate.",
}


def _say_missing(domain: Domain, value: Mapping[str, Any], match: re.Match[str]) -> str:
    return f"I couldn't find {_own(domain, match['what'])}. Please check that this is right."


def _say_none(domain: Domain, value: Mapping[str, Any], match: re.Match[str]) -> str:
    what, by = match["what"], match["by"]
    if domain.person is not None and what == label(domain.person):
        return f"I couldn't find {article(file_of(domain.person))} with {by}. Please check that this is right."
    if by and by.startswith(_WORDS):
        return f"I couldn't find any {plural(what)} for {by.partition(' ')[2]}."
    way = _ROUTE.match(by or "")
    if way is not None:
        return f"I couldn't find any {plural(what)} from {way['a']} to {way['b']}{(by or '')[way.end() :]}."
    return f"I couldn't find any {plural(what)}{f' with {by}' if by else ''}."


_ROUTE = re.compile(r"origin (?P<a>[^,]+), destination (?P<b>[^,]+)")


_WORDS = ("query ", "keyword ", "keywords ", "search ", "text ")


def _say_unsure(domain: Domain, value: Mapping[str, Any], match: re.Match[str]) -> str:
    return f"I can't confirm the state of {_own(domain, match['what'])} right now, so I haven't changed anything."


def _say_same(domain: Domain, value: Mapping[str, Any], match: re.Match[str]) -> str:
    return f"{capital(_own(domain, match['what']))} already has these values, so there was nothing to change."


def _say_again(domain: Domain, value: Mapping[str, Any], match: re.Match[str]) -> str:
    key = next((v for k, v in value.items() if k not in ("error", "status")), None)
    return f"{_sentence(match[0])[:-1]}{f' ({key})' if key is not None else ''}, so I haven't done it again."


_SAYINGS = (
    (_MISSING, _say_missing),
    (_NONE, _say_none),
    (_UNSURE, _say_unsure),
    (_SAME, _say_same),
    (_AGAIN, _say_again),
)


def _own(domain: Domain, what: str) -> str:
    """Return how to name a thing of an error to the person: user mia_li_1, your profile."""
    noun, _, key = what.rpartition(" ")
    return f"your {file_of(domain.person)} ({key})" if domain.person and noun == label(domain.person) else what


# -- things and acts ------------------------------------------------------------------------------------------


def _id_field(domain: Domain, entity: str) -> str:
    found = domain.entities.get(entity)
    return "" if found is None else found.id_field


def thing_of(domain: Domain, entity: str, record: Mapping[str, Any]) -> str:
    """Return how the agent names a record: order #W4821345, your profile."""
    if entity and entity == domain.person:
        return f"your {file_of(entity)}"
    key = record.get(_id_field(domain, entity))
    if key is None:
        field, key = next(((k, v) for k, v in record.items() if words_of(k)[-1:] in _KEYS), ("", None))
        entity = entity or " ".join(words_of(field)[:-1])
    noun = label(entity) if entity else "entry"
    return f"{noun} {key}" if key is not None else f"the {noun}"


_KEYS = (("id",), ("number",), ("code",))


def act_of(domain: Domain, info: ToolInfo | None, arguments: Mapping[str, Any], key: Any = None) -> str:
    """Return what a call does as a verb phrase: look up order A-1, cancel the subscription, send a message."""
    if info is None:
        return "do that"
    if info.key is not None and info.mode in ("get", "change"):
        key = arguments.get(info.key, key)
        noun = label(info.entity or "")
        mine = info.entity == domain.person
        thing = f"your {file_of(info.entity or '')}" if mine else f"{noun} {key}" if key is not None else f"the {noun}"
    elif info.key is not None and info.mode == "list":
        parent = next((p.entity for p in info.params if p.name == info.key), None)
        thing = "your" if parent == domain.person else "the"
    else:
        thing = ""
    return _act(
        info.spoken or info.name,
        info.mode,
        info.kind,
        info.entity or "",
        info.done,
        info.entity == domain.person,
        thing,
    )


@lru_cache(maxsize=2048)
def _act(name: str, mode: str, kind: str, entity: str, done: str | None, own: bool, thing: str) -> str:
    words = words_of(name)
    if mode == "get":
        aspect = aspect_of(name, entity)
        whole = f"look up your {aspect}" if own else f"look up the {aspect} of {thing}"
        return whole if aspect else f"look up {thing}"
    if mode == "find":
        return "look you up" if own else f"search for {plural(label(entity))}"
    if mode == "list":
        return f"look up {thing or 'the'} {plural(label(entity))}"
    if mode == "create":
        return f"{words[0]} {article(label(entity))}"
    if mode == "change" and thing:
        if done is None:
            aspect, verb = aspect_of(name, entity), "change" if words[0] == "modify" else words[0]
            of = f"your {aspect}" if own else f"the {aspect} of {thing}"
            return f"{verb} {of if aspect else thing}"
        verb = " ".join(words[:2]) if len(words) > 2 and words[1] in PARTICLES else words[0]
        return f"{verb} {f'items in {thing}' if 'items' in words else thing}"
    if "human" in words or {"transfer", "agent"} <= {*words, *(w.rstrip("s") for w in words)}:
        return "put you through to a person"
    if words[0] in ("calculate", "compute", "evaluate"):
        return "work that out"
    if kind == "read":
        return f"look up the {' '.join(words[1:])}" if len(words) > 1 else "look that up"
    return " ".join(words)


def capital(text: str) -> str:
    """Return a text with its first letter large."""
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    text = capital(text.strip())
    return text if text.endswith((".", "!", "?")) else f"{text}."
