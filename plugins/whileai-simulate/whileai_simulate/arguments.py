"""Arguments of the right call: from the record, from its owner, or told by the person in the ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from whileai_simulate.draw import Draw
from whileai_simulate.entities import EntityType, Param, ToolInfo
from whileai_simulate.lexicon import AIRPORTS, singular, words_of
from whileai_simulate.ordering import in_order
from whileai_simulate.people import Record, make_person
from whileai_simulate.records import make_id, reference_values
from whileai_simulate.schema import problems, type_of
from whileai_simulate.values import day, explained, value_for
from whileai_simulate.vocabulary import QUERIES, plain_word, usual_word, word_for

if TYPE_CHECKING:
    from whileai_simulate.scenes import Setting

__all__ = ["ASK", "SINCE", "arguments_of", "make_findable"]

ASK = "<the ask>"
"""Stands in a plan for the wording of the ask, which is written later."""

SINCE = ("start", "from", "since", "after")
_SPAN_NAMES = (*SINCE, "end", "to", "until", "before")


def make_findable(info: ToolInfo, entity: EntityType, record: Record, draw: Draw) -> None:
    """Let a record that a search is to find hold words to search for."""
    if any(words_of(p.name)[-1] in QUERIES for p in info.params) and _searched_text(entity, record) is None:
        if entity.closed:
            return
        record["title"] = word_for(("title",), entity.name, draw)


def _searched_text(entity: EntityType, record: Mapping[str, Any]) -> str | None:
    """Return the words by which people look for a record: its name, its title, a line of it."""
    for name in ("name", "title", "subject", "snippet", "description", "text"):
        if isinstance(record.get(name), str):
            return str(record[name])
    if not entity.closed:
        return None
    words = (
        v for k, v in record.items() if isinstance(v, str) and v.isalpha() and k not in (entity.id_field, "status")
    )
    return next(words, None)


def _is_text(param: Param) -> bool:
    return type_of(param.schema) == "string" and not any(k in param.schema for k in ("enum", "format", "pattern"))


_TELLING = ("enum", "const", "format", "pattern", "examples", "example", "default")


def _is_unknown(info: ToolInfo, param: Param) -> bool:
    """Whether nothing says what people write into a parameter; where it need not be told, it is not."""
    if param.entity or param.options or param.example:
        return bool(param.entity)
    schema: Mapping[str, Any] = param.schema
    name, kind = param.name, type_of(schema)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        name, schema, kind = singular(name), schema["items"], type_of(schema["items"])
    if kind == "object":
        return not schema.get("properties")
    if kind != "string" or any(k in schema for k in _TELLING):
        return False
    return not explained(name, info.entity or words_of(info.spoken)[-1], str(schema.get("description", "")))


def arguments_of(
    setting: Setting, info: ToolInfo, record: Record | None, owner: Record, person: Record, draw: Draw
) -> tuple[dict[str, Any], list[tuple[Param, Any]]]:
    """Return the arguments of the right call and those that only the ask can tell."""
    domain = setting.domain
    arguments: dict[str, Any] = {}
    told: list[tuple[Param, Any]] = []
    fresh = None if info.kind == "write" else person  # what is written is about somebody else, made when it is needed
    lines = 1 + draw.below(2)
    given = [p for p in info.params if p.required and p.name != info.key]
    # A change says what to: where nothing is required, the first thing that can be told is.
    says = next((p for p in info.params if p.name != info.key and not p.entity), None)
    says = says if info.mode == "change" and info.done is None and not given else None
    for param in info.params:
        if (
            param is not says
            and not param.required
            and param.name != info.key
            and not (info.mode in ("create", "find") and draw.below(3) == 0 and not _is_unknown(info, param))
        ):
            continue
        if param.name == info.key and record is not None:
            entity = domain.entities[param.entity or ""]
            arguments[param.name] = record[entity.id_field]
            continue
        if param.entity and param.entity == domain.person and not param.role:
            arguments[param.name] = owner[domain.entities[param.entity].id_field]
            continue
        if param.entity and param.entity in domain.entities:
            known = [] if param.role else reference_values(param, record or {}, owner)
            entity = domain.entities[param.entity]
            if param.many:
                values = known[:lines] or [make_id(entity, draw, person) for _ in range(lines)]
                lines = len(values)
                arguments[param.name] = values
            else:
                if info.mode == "change" and info.done is None and record is not None:
                    known = [k for k in known if k != record.get(param.name)]  # a change to what is there is none
                arguments[param.name] = known[0] if known else make_id(entity, draw, person)
            if not known:
                told.append((param, arguments[param.name]))
            continue
        if param.name in ("summary", "transcript"):
            arguments[param.name] = ASK
            continue
        value: Any = None
        if param.options:
            value = draw.choice(param.options)
        elif info.kind == "write" and param.name == "text" and _is_text(param):
            value = plain_word(("remark",), "", draw)  # what is written is a remark, and no search
        elif param.example and _is_text(param) and not explained(param.name, info.entity or ""):
            value = param.example
        elif record is not None and param.name in record and (info.mode in ("find", "get") or info.done is not None):
            value = record[param.name]  # it says which record is meant
            if "enum" in param.schema and value not in param.schema["enum"]:
                value = draw.choice(param.schema["enum"])
        elif info.mode == "find" and record is not None and words_of(param.name)[-1] in QUERIES:
            value = _searched_text(domain.entities[info.entity or ""], record)
        if value is None:
            schema = {"x-root": info.tool.parameters, **param.schema}
            for _ in range(6):
                if info.mode == "list" and param.name.startswith(_SPAN_NAMES) and param.name.endswith("date"):
                    value = day(draw, past=True)  # what is listed has been
                    break
                fresh = fresh or make_person(draw, setting.locale)
                value = value_for(param.name, schema, draw, fresh, info.entity or words_of(info.spoken)[-1])
                if isinstance(value, str) and not param.entity and _is_unknown(info, param):
                    plainer = usual_word(draw)
                    value = value if problems(plainer, param.schema) else plainer
                if record is None or info.mode != "change" or record.get(param.name) != value:
                    break  # a change to what is there already would be none
        arguments[param.name] = value
        told.append((param, value))
    if told:
        _agree(info, arguments)
    return arguments, [(p, arguments[p.name]) for p, _ in told]


def _agree(info: ToolInfo, arguments: dict[str, Any]) -> None:
    """Let the arguments of a call agree with each other."""
    for name, value in list(arguments.items()):
        # A part is no larger than its whole: nonfree_baggages and total_baggages.
        whole = arguments.get("total_" + name.rpartition("_")[2])
        if isinstance(value, int) and isinstance(whole, int) and value > whole:
            arguments[name] = whole
        if value == "round_trip" and "one_way" in info.tool.parameters["properties"][name].get("enum", ()):
            arguments[name] = "one_way"  # the ask names the way there alone
    in_order(arguments)
    if arguments.get("origin") is not None and arguments.get("origin") == arguments.get("destination"):
        arguments["destination"] = next(a for a in AIRPORTS if a != arguments["origin"])
