"""What the tools are about: typed entities, and what each tool does to them.

Sources, best first: what is declared (`kind`, return schemas, `x-entity` on a parameter), what the parameters say
(an `order_id` names the entity `order`; a pattern, format or an example in the description gives the look of its
ids), and only then names of tools. Every guess from a name is recorded and shown by `preflight`.

Example:
    >>> order_id = {"type": "string", "description": "such as 'A-17'"}
    >>> schema = {"type": "object", "properties": {"order_id": order_id}, "required": ["order_id"]}
    >>> domain = read_domain([{"name": "get_order", "x-kind": "read", "parameters": schema}])
    >>> domain.tools["get_order"].mode, domain.entities["order"].id_example
    ('get', 'A-17')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from whileai_kernel.tools import Tool, as_tools
from whileai_simulate.lexicon import (
    CATALOG,
    CREATE_VERBS,
    PARTICLES,
    PEOPLE,
    READ_VERBS,
    SET_VERBS,
    STATUSES,
    WRITE_VERBS,
    participle,
    plural,
    singular,
    words_of,
)
from whileai_simulate.parameters import Param, keyed, nouns_of, params_of, reference_of
from whileai_simulate.schema import resolve, type_of
from whileai_simulate.tool_names import imperative, is_verb, namespace_of, verb_first
from whileai_simulate.vocabulary import QUERIES

__all__ = ["Domain", "EntityType", "Param", "ToolInfo", "read_domain"]

_PAGING = "limit page offset count sort cursor size order top max_results page_size per_page sort_by order_by top_k"
_CONTROLS = frozenset(_PAGING.split())
"""Parameters that say how much a search shows; no record has them."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What one tool does.

    Attributes:
        tool: The tool itself.
        kind: `read`, `write` or `generic`.
        mode: `get` (one record by id), `find` (records by fields), `list` (all, or those of an owner), `create`,
            `change` (of one record) or `generic`.
        verb: First word of its name.
        entity: Entity type that it is about, or `None`.
        params: Parameters in order.
        key: Name of the parameter that identifies the record, or `None`.
        done: Status that a change leaves, or `None` when it only sets fields.
        needs: Status that the record must have before, or `None`.
        guesses: What was inferred from names alone, one sentence each.
        spoken: Its name with the verb first (`stop_vm` for `vm.stop`), from which asks are worded.
        wish: What the description says it does ("recommend tracks"), where the name does not say it.
    """

    tool: Tool
    kind: str
    mode: str
    verb: str
    entity: str | None
    params: tuple[Param, ...]
    key: str | None = None
    done: str | None = None
    needs: str | None = None
    guesses: tuple[str, ...] = ()
    spoken: str = ""
    wish: str = ""

    @property
    def name(self) -> str:
        """Name in calls."""
        return self.tool.name


@dataclass(slots=True)
class EntityType:
    """One type of thing in the world.

    Attributes:
        name: Singular noun, for example `order`.
        id_field: Field that holds the id in records.
        id_schema: Schema of the id.
        id_example: An example id from the schemas, or `None`.
        fields: Declared fields (from return schemas and from the parameters of writes) and their schemas.
        statuses: Ordinary statuses.
        owner: Entity type that owns it, or `None`.
        closed: The return schema allows no further fields.
        values: Schema of every value, where the return schema names no fields but a type for all of them.
        sources: Where it was seen.
    """

    name: str
    id_field: str
    id_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    id_example: str | None = None
    fields: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    statuses: tuple[str, ...] = ("active",)
    owner: str | None = None
    closed: bool = False
    values: Mapping[str, Any] | None = None
    sources: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Domain:
    """All tools and entity types, and who the person is that writes."""

    tools: dict[str, ToolInfo]
    entities: dict[str, EntityType]
    person: str | None
    _reader: dict[str | None, ToolInfo | None] = field(default_factory=dict, repr=False, compare=False)

    def readers(self, entity: str | None) -> list[ToolInfo]:
        """Tools that return one record of the entity by its id."""
        return [t for t in self.tools.values() if t.mode == "get" and t.entity == entity]

    def reader(self, entity: str | None) -> ToolInfo | None:
        """The first tool that returns one record of the entity by its id and needs nothing else, or `None`."""
        if entity not in self._reader:
            alone = (t for t in self.readers(entity) if [p.name for p in t.params if p.required] == [t.key])
            self._reader[entity] = next(alone, None)
        return self._reader[entity]

    def finders(self, entity: str | None) -> list[ToolInfo]:
        """Tools that find records of the entity by other fields."""
        return [t for t in self.tools.values() if t.mode == "find" and t.entity == entity]


def read_domain(tools: Iterable[Any]) -> Domain:
    """Infer entities and effects from tools.

    Args:
        tools: Anything that `whileai_kernel.tools.as_tool` reads.
    """
    parsed = as_tools(list(tools))
    shared = namespace_of(tool.name for tool in parsed)
    named = {t.name: verb_first(t.name, t.description or "", shared, keyed(t), nouns_of(t)) for t in parsed}
    params = {tool.name: params_of(tool, named[tool.name]) for tool in parsed}
    entities: dict[str, EntityType] = {}
    for tool in parsed:
        for param in params[tool.name]:
            if param.entity:
                _note_id(entities, param, tool)
    for tool in parsed:
        _note_returns(entities, tool, params[tool.name], named[tool.name])
    infos = {tool.name: _told(_info(tool, params[tool.name], entities, named[tool.name]), named) for tool in parsed}
    for info in infos.values():
        _note_fields(entities, info)
    person = next((p for p in PEOPLE if p in entities and not _only_searched(entities[p], named)), None)
    for entity in entities.values():
        if entity.name != person and entity.name not in CATALOG and entity.name not in PEOPLE:
            entity.owner = person
        needed = [i.needs for i in infos.values() if i.entity == entity.name and i.needs]
        allowed = [s for s in (entity.fields.get("status") or {}).get("enum", ()) if isinstance(s, str)]
        if allowed:
            infos = {n: _spell_status(i, entity.name, allowed) for n, i in infos.items()}
        entity.statuses = tuple(dict.fromkeys([*STATUSES.get(entity.name, ("active",)), *needed]))
    return Domain(infos, entities, person)


def _told(info: ToolInfo, named: Mapping[str, tuple[str, ...]]) -> ToolInfo:
    """Add how people say what the tool does."""
    words = named[info.name]
    bare = len(words) < 2 and not info.key
    ours = words[0] not in words_of(info.name) and info.mode == "generic"
    said = imperative(info.tool.description or "") if bare or ours or not is_verb(words[0]) else ""
    return replace(info, spoken="_".join(words), wish=said)


def _only_searched(entity: EntityType, named: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a kind of people is known from nothing but a search in many of them: they are not who asks."""
    tools = [source.removeprefix("name of ") for source in entity.sources]
    return bool(tools) and all(tool in named and plural(entity.name) in named[tool] for tool in tools)


def _spell_status(info: ToolInfo, entity: str, allowed: list[str]) -> ToolInfo:
    """Take the status that a change leaves from those that the result schema declares: cancelled, canceled."""
    if info.entity != entity or info.done is None or info.done in allowed:
        return info
    near = [s for s in allowed if s.casefold().startswith(info.verb[:4].casefold())] or get_close_matches(
        info.done, allowed, 1
    )
    return replace(info, done=near[0]) if near else info


def _note_id(entities: dict[str, EntityType], param: Param, tool: Tool) -> None:
    name = param.entity or ""
    schema: Mapping[str, Any] = param.schema
    if param.many and type_of(schema) == "array":
        schema = schema.get("items", {"type": "string"})
    field_name = param.name
    if param.many:
        field_name = re.sub(r"[sS]$", "", field_name)
    field_name = re.sub(r"^(new|old|target|source|from|to|original|current)_", "", field_name)
    entity = entities.setdefault(
        name, EntityType(name, field_name, {k: v for k, v in schema.items() if k != "description"})
    )
    entity.id_example = entity.id_example or param.example
    entity.sources.append(f"parameter {param.name} of {tool.name}")


def _note_returns(entities: dict[str, EntityType], tool: Tool, params: tuple[Param, ...], named: Sequence[str]) -> None:
    """Read the declared result: an object (or a list of objects) whose id names an entity gives its fields."""
    if not tool.returns:
        return
    root = tool.returns
    schema = resolve(root, root)
    if type_of(schema) == "array":
        schema = resolve(schema.get("items", {}), root)
    fields = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    if not fields and not (isinstance(extra, Mapping) and extra):
        return
    words = [singular(w) for w in named]
    own = [e for e in entities if e in words] or [p.entity for p in params if p.entity in entities]
    for name in fields:
        entity, many, _ = reference_of(name, resolve(fields[name], root), words)
        if entity and not many and (name == "id" or entity in words) and not own:
            entities.setdefault(entity, EntityType(entity, name, fields[name])).sources.append(f"result of {tool.name}")
            own = [entity]
    if own and own[0] in entities:
        target = entities[str(own[0])]
        target.fields.update({name: {**resolve(s, root), "x-root": root} for name, s in fields.items()})
        target.values = resolve(extra, root) if isinstance(extra, Mapping) and extra else target.values
        target.closed = target.closed or schema.get("additionalProperties") is False
        target.sources.append(f"result of {tool.name}")


_NOUNS = frozenset((*PEOPLE, *CATALOG, *STATUSES, "lookup", "info", "details", "status", "history"))


def _kind(tool: Tool, words: Sequence[str]) -> tuple[str, str | None]:
    if tool.kind is not None:
        return tool.kind, None
    verb = words[0] if words else ""
    if verb in READ_VERBS or (verb in _NOUNS and singular(words[-1]) in _PARTS):
        guess = "read"  # get_order, order_details
    elif verb in WRITE_VERBS and "human" not in words:
        guess = "write"
    elif not any(words_of(p)[-1:] in (("id",), ("number",), ("code",)) for p in tool.parameters.get("properties", {})):
        guess = "generic"
    else:
        # Verbs that look are a closed class; what is no noun and none of them does something.
        guess = "read" if verb in _NOUNS or words[-1] in _PARTS | _FIGURES else "write"
    return guess, f"{tool.name}: kind {guess!r} is guessed from the name; declare kind= (or x-kind)"


def _info(tool: Tool, params: tuple[Param, ...], entities: dict[str, EntityType], words: tuple[str, ...]) -> ToolInfo:
    nouns = [singular(w) for w in words]
    kind, guess = _kind(tool, words)
    guesses = [guess] if guess else []
    verb = words[0] if words else tool.name
    if kind == "generic":
        return ToolInfo(tool, kind, "generic", verb, None, params, guesses=tuple(guesses))
    keys = [p for p in params if p.entity and not p.role and not p.many and p.required]
    keys = keys or [p for p in params if p.entity and not p.role and not p.many]
    head = nouns[1 : nouns.index("by")] if "by" in nouns[1:] else nouns[1:]
    if verb in CREATE_VERBS and not any(p.entity for p in params):
        head = head[: next((i for i, w in enumerate(head) if i and w in ("to", "for", "in", "on")), None)]
    named = [e for e in entities if _mentions(head, e)]
    if kind == "read":
        return _read_info(tool, params, keys, head, named, words, guesses, entities)
    key = keys[0] if keys else None
    if key and verb in CREATE_VERBS and not key.required and key.entity not in named:
        key = None  # what is made can do without it
    if verb in CREATE_VERBS and not (key and named and key.entity in named and verb not in ("book", "send", "create")):
        thing = named[-1] if named and (not key or named[-1] != key.entity) else (head[-1] if head else "record")
        if thing not in entities:
            guesses.append(f"{tool.name}: makes a {thing}, guessed from the name; declare its result schema")
            entities[thing] = EntityType(thing, f"{thing}_id", sources=[f"name of {tool.name}"])
        return ToolInfo(
            tool, kind, "create", verb, thing, params, key=key.name if key else None, guesses=tuple(guesses)
        )
    if key is None:
        entity = named[-1] if named else None
        if entity is None:
            guesses.append(f"{tool.name}: changes nothing that is known; give a parameter <entity>_id or x-entity")
        return ToolInfo(tool, kind, "change" if entity else "generic", verb, entity, params, guesses=tuple(guesses))
    chosen = next((p for p in keys if p.entity in named), key)
    pool = {s for statuses in STATUSES.values() for s in statuses}
    needs = next((w for w in words[1:] if w in pool), None)
    done = None
    if verb not in SET_VERBS:
        part = participle(verb)
        if len(words) > 1 and words[1] in PARTICLES:
            part = f"{part} {words[1]}"
        done = f"{verb} requested" if verb in ("return", "exchange") else part
    return ToolInfo(tool, kind, "change", verb, chosen.entity, params, chosen.name, done, needs, tuple(guesses))


def _read_info(
    tool: Tool, params: tuple[Param, ...], keys: list[Param], head: list[str], named: list[str],
    words: tuple[str, ...], guesses: list[str], entities: dict[str, EntityType],
) -> ToolInfo:  # fmt: skip
    verb = words[0]
    own = [p for p in keys if p.entity in named] or ([] if named else keys)
    parts = [w for w in head if w not in _PARTS]
    apart = parts and (_is_plural(words, parts[-1]) or (verb in _SHOWING and parts[-1] not in _FIGURES))
    if own and not named and apart:
        # The lab results of a patient and the invoice of an order are records of their own.
        part = "_".join(parts)
        guesses.append(f"{tool.name}: lists each {part}, guessed from the name; declare its result schema")
        entities.setdefault(part, EntityType(part, f"{part}_id", sources=[f"name of {tool.name}"]))
        return ToolInfo(tool, "read", "list", verb, part, params, own[0].name, guesses=tuple(guesses))
    if keys and parts and parts[-1] in _FIGURES:
        # The balance of an account, and the leave balance of an employee: a number that the record shows.
        own = own if any(p.entity in named for p in own) else keys
        figure = {"type": "number"} if len(parts) == 1 else {"type": "integer", "minimum": 1, "maximum": 30}
        entities[own[0].entity or ""].fields.setdefault("_".join(parts), figure)
        return ToolInfo(tool, "read", "get", verb, own[0].entity, params, own[0].name, guesses=tuple(guesses))
    if own and (verb not in ("list", "search") or [own[0].entity] == named[-1:]):
        return ToolInfo(tool, "read", "get", verb, own[0].entity, params, own[0].name, guesses=tuple(guesses))
    entity = named[-1] if named else None
    if entity is None and not parts and not keys:
        said = [singular(w) for w in words_of(imperative(tool.description or ""))]
        entity = next((w for w in said[1:] if w in entities), None)  # search, which searches tracks and albums
    if entity is None and not keys and _is_fact(words, params, head):
        return ToolInfo(tool, "read", "generic", verb, None, params, guesses=tuple(guesses))
    if entity is None:
        entity = next((w for w in reversed(head) if w not in ("detail", "info", "status", "all", "type")), None)
        if entity is not None and entity not in entities:
            guesses.append(f"{tool.name}: is about {entity}, guessed from the name; declare its result schema")
            entities[entity] = EntityType(entity, f"{entity}_id", sources=[f"name of {tool.name}"])
    if keys:
        return ToolInfo(
            tool, "read", "list", verb, entity or keys[0].entity, params, keys[0].name, guesses=tuple(guesses)
        )
    if entity is None and verb not in ("find", "search", "list", "browse", "query", "lookup"):
        return ToolInfo(tool, "read", "generic", verb, None, params, guesses=tuple(guesses))  # calculate(expression)
    mode = "find" if any(p.required for p in params) or (params and verb in ("find", "search")) else "list"
    return ToolInfo(tool, "read", mode, verb, entity, params, guesses=tuple(guesses))


_WHOLE = "detail info information status data all type setting preference profile account summary record by id"
_PARTS = frozenset(_WHOLE.split())
"""Words of tool names that mean a record itself."""
_SHOWING = frozenset({"get", "show", "fetch", "retrieve", "view", "download", "read"})
_FIGURE_NAMES = (
    "balance limit score point credit price rate weather temperature forecast total amount count level usage"
)
_FIGURES = frozenset(_FIGURE_NAMES.split())
"""Nouns that are a number of a record and no record of their own."""
_RANGES = frozenset({"start", "end", "from", "to", "since", "until", "min", "max", "before", "after"})


def _is_plural(words: Sequence[str], noun: str) -> bool:
    return plural(noun) != noun and plural(noun) in words


_NAMED_THINGS = """
repository repo document file page note event meeting playlist song recipe device server deployment project task
ticket message invoice contract report branch commit issue profile policy record log calendar course
"""
_THINGS = frozenset(_NAMED_THINGS.split())
"""Nouns that are records although nothing gives them an id."""


def _is_fact(words: Sequence[str], params: tuple[Param, ...], head: list[str]) -> bool:
    """Whether a tool looks up a fact (the weather in a city) and no record: one thing, of a kind that has no ids."""
    if not head or words[0] in ("find", "search", "list", "browse", "query") or not any(p.required for p in params):
        return False
    several = words[len(head)] != head[-1]
    known = head[-1] in PEOPLE or head[-1] in CATALOG or head[-1] in STATUSES or head[-1] in _THINGS
    return not several and not known and "by" not in words


def _mentions(words: list[str], entity: str) -> bool:
    parts = entity.split("_")
    return any(words[i : i + len(parts)] == parts for i in range(len(words)))


def _searches(param: Param) -> bool:
    return bool(QUERIES & set(words_of(param.name)[-1:]))


def _note_fields(entities: dict[str, EntityType], info: ToolInfo) -> None:
    """A field that a write sets, or a search matches, is a field of the record.

    What a cancellation or a merge is told (a reason, a method) belongs to the act, and what shall come new (a new
    start) is not there before; how much a search shows and the words that it looks for are no fields either.
    """
    entity = entities.get(info.entity or "")
    if entity is None or info.mode not in ("change", "find", "create", "list") or info.done is not None:
        return
    for param in info.params:
        words = words_of(param.name)
        if words[0] == "new" or "_".join(words) in _CONTROLS:
            continue
        if info.kind == "read" and (_searches(param) or (len(words) > 1 and words[0] in _RANGES)):
            continue
        if param.name == info.key or param.role or (info.mode == "create" and param.entity == info.entity):
            continue
        if param.many and info.mode == "change":
            continue
        entity.fields.setdefault(param.name, param.schema)
