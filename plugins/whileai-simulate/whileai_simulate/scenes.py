"""Scenes: the world, the goal and the right course of one situation, before anybody words it.

From the values of the axes a scene makes the person, the records in the wanted state, the arguments of the right call
(each stands in the ask or in a record that a tool shows), the goal as a condition on the state of the world, and the
course of an honest agent. A scene is plain data: the row carries it, and `tasks=` replays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_simulate.arguments import ASK, SINCE, arguments_of, make_findable
from whileai_simulate.axes import NO_TOOL, SEVERAL, Axes, Rule, may_be
from whileai_simulate.draw import Draw
from whileai_simulate.entities import Domain, EntityType, Param, ToolInfo
from whileai_simulate.faults import SUCCESS, Fault, plan_fault
from whileai_simulate.lexicon import AIRPORTS, CLOSED_STATUSES, CLOSINGS, PARTLY, label, plural, words_of
from whileai_simulate.records import (
    Record,
    collection_field,
    make_id,
    make_person,
    make_record,
)
from whileai_simulate.standing import UNKNOWN_NOTE, partly, set_fields

__all__ = ["ACTING", "ASK", "Scene", "Setting", "build_scene"]

ACTING = frozenset({"ordinary", "boundary", "hurried", "retry", "mistaken"})
"""Stances under which a requested change is right; under the others it is right to look and not to act."""


_SEEN = ["read", "found"]


@dataclass(slots=True)
class Setting:
    """What all scenes of a run share."""

    domain: Domain
    axes: Axes
    seed: int = 0
    locale: str = "en_US"
    authenticate: bool = False
    confirm: bool = False
    tools: list[dict[str, Any]] = field(default_factory=list)
    system_prompt: str | None = None
    faults: dict[str, Fault] = field(default_factory=dict)

    @property
    def rules(self) -> dict[str, Rule]:
        """Clauses of the policy by their value on the axis."""
        return self.axes.rules


@dataclass(slots=True)
class Target:
    """One tool that the ask is about, with its record, its arguments, and how people name it once that is known."""

    info: ToolInfo
    entity: str
    record: Record | None
    arguments: dict[str, Any]
    details: list[tuple[Param, Any]]
    thing: str | None = None


@dataclass(slots=True)
class Scene:
    """One situation as data.

    Attributes:
        axes: Values of the axes.
        world: Seed, entities and fault plan.
        goal: What the state of the world must show; see `outcome`.
        plan: Calls of an honest agent, in order.
        person: Who writes.
        targets: What the ask is about.
        found_by: Field by which the person is identified in the ask, when the course looks them up.
    """

    axes: dict[str, Any]
    world: dict[str, Any]
    goal: dict[str, Any]
    plan: list[dict[str, Any]]
    person: Record
    targets: list[Target]
    found_by: list[str] = field(default_factory=list)


def build_scene(setting: Setting, axes: Mapping[str, Any], *key: object) -> Scene:
    """Build the scene of a situation; the same setting, axes and key give the same scene."""
    draw = Draw(setting.seed, "scene", *key)
    domain = setting.domain
    person = make_person(draw, setting.locale)
    names = _tools_of(setting, axes, draw)
    entities: dict[str, dict[str, Record]] = {}
    world: dict[str, Any] = {
        "seed": draw.below(1 << 31),
        "state": axes.get("world_state"),
        "entities": entities,
        "faults": [],
    }
    owner = _owner(setting, person, draw, entities)
    state = axes.get("world_state", "exists")
    targets: list[Target] = []
    for n, name in enumerate(names):
        gone = targets[0] if targets and state == "missing" else None
        target = _target(setting, domain.tools[name], person, owner, entities, draw, gone)
        targets.append(target)
        if n == 0:
            _apply_state(setting, target, state, person, entities, draw)
    _list_owned(domain, owner, entities)
    scene = Scene(dict(axes), world, {"kind": "none", "subgoals": [], "changes": []}, [], person, targets)
    if targets:
        _course(setting, scene, owner, str(axes.get("stance", "ordinary")), str(state), draw)
        condition = axes.get("tool_condition", SUCCESS)
        called = [step["tool"] for step in scene.plan]
        struck = called[-1] if called and targets[0].info.name not in called else targets[0].info.name
        world["faults"] = plan_fault(str(condition), struck, draw, setting.faults)
    return scene


def _tools_of(setting: Setting, axes: Mapping[str, Any], draw: Draw) -> list[str]:
    known = list(setting.domain.tools)
    name = axes.get("tool", known[0] if known else NO_TOOL)
    if name == NO_TOOL or not known:
        return []
    if name != SEVERAL:
        return [str(name)]
    infos = setting.domain.tools
    first_pool = [n for n in known if infos[n].mode in ("get", "change", "create", "find")] or known
    state = str(axes.get("world_state"))
    first_pool = [n for n in first_pool if may_be(infos[n], setting.domain, state)] or first_pool
    first = draw.choice(first_pool)
    # Two changes of one record would get in each other's way: the second wish looks, or is about another thing.
    # Two searches for one thing are one wish.
    found = infos[first].entity if infos[first].mode == "find" else None
    rest = [n for n in known if n != first and infos[n].kind == "read"]
    rest = [n for n in rest if found is None or infos[n].mode != "find" or infos[n].entity != found]
    rest = rest or [n for n in known if n != first and infos[n].entity != infos[first].entity]
    if axes.get("stance", "ordinary") not in ACTING:
        # Who is undecided has the thing looked at as it is: the second wish is about another.
        rest = [n for n in rest if infos[n].entity != infos[first].entity] or rest
    other = [n for n in rest if infos[n].entity == infos[first].entity and infos[n].mode == "get"] or rest
    return [first, draw.choice(other if draw.below(2) else rest)] if rest else [first]


def _owner(setting: Setting, person: Record, draw: Draw, entities: dict[str, dict[str, Record]]) -> Record:
    name = setting.domain.person
    if name is None:
        return dict(person)
    record = make_record(setting.domain, name, draw, person)
    entities.setdefault(name, {})[str(record[setting.domain.entities[name].id_field])] = record
    return record


def _list_owned(domain: Domain, owner: Record, entities: dict[str, dict[str, Record]]) -> None:
    """Let the owner's record list what the person owns: the ids of orders, payment methods, ..."""
    if domain.person is None or domain.entities[domain.person].closed:
        return
    owner_id = owner[domain.entities[domain.person].id_field]
    for name, entity in domain.entities.items():
        if entity.owner != domain.person or collection_field(name) in domain.entities[domain.person].fields:
            continue
        field_name = domain.entities[domain.person].id_field
        ids = [r[entity.id_field] for r in entities.get(name, {}).values() if r.get(field_name) == owner_id]
        shown = [
            r[entity.id_field]
            for kind in entities.values()
            for r in kind.values()
            if entity.id_field in r and kind is not entities.get(name) and r.get(field_name) == owner_id
        ]
        listed = list(dict.fromkeys([*ids, *shown]))
        if listed:
            owner[collection_field(name)] = listed


def _put(domain: Domain, entities: dict[str, dict[str, Record]], name: str, record: Record) -> Record:
    entities.setdefault(name, {})[str(record[domain.entities[name].id_field])] = record
    return record


def _target(
    setting: Setting,
    info: ToolInfo,
    person: Record,
    owner: Record,
    entities: dict[str, dict[str, Record]],
    draw: Draw,
    gone: Target | None = None,
) -> Target:
    """Make (or find) the record that a tool is about, and the arguments of the right call.

    `gone` is an earlier target whose record is missing: a further wish about such a thing is about that one.
    """
    domain = setting.domain
    entity = info.entity or ""
    record: Record | None = None
    owner_id = owner.get(domain.entities[domain.person].id_field) if domain.person else None
    if info.mode == "create" or (info.mode == "list" and info.key):
        parent = next((p.entity for p in info.params if p.name == info.key), None)
        if parent and parent in domain.entities:
            record = owner if parent == domain.person else _existing(domain, entities, parent)
            record = record or _put(domain, entities, parent, make_record(domain, parent, draw, person, owner_id))
            entity = parent
        if info.mode == "list" and info.entity in domain.entities and info.entity != entity and record is not None:
            parent_field = domain.entities[entity].id_field
            several = plural(words_of(info.entity or "")[-1]) in words_of(info.spoken)
            for _ in range(draw.between(1, 3) if several else 1):
                child = make_record(domain, info.entity or "", draw, person, owner_id)
                child[parent_field] = record[parent_field]
                _put(domain, entities, info.entity or "", child)
    elif entity and entity == domain.person:
        record = owner
    elif entity in domain.entities:
        record = _existing(domain, entities, entity)
        if record is None and gone is not None and gone.entity == entity:
            record = gone.record
        if record is None:
            record = make_record(domain, entity, draw, person, owner_id)
            if record.get("origin") is not None and record.get("origin") == record.get("destination"):
                record["destination"] = next(a for a in AIRPORTS if a != record["origin"])
            if info.needs and "status" in record:
                record["status"] = info.needs
            if info.mode == "find":
                make_findable(info, domain.entities[entity], record, draw)
            _put(domain, entities, entity, record)
            _put_lines(domain, entities, record, person, draw)
        if info.mode == "list":
            for _ in range(3):
                _put(domain, entities, entity, make_record(domain, entity, draw, person, owner_id))
    arguments, details = arguments_of(setting, info, record, owner, person, draw)
    if info.mode == "list" and info.key and info.entity != entity:
        for child in entities.get(info.entity or "", {}).values():  # what the list is narrowed to is there
            child.update({k: v for k, v in arguments.items() if k != info.key and k in child})
            since = next((v for k, v in arguments.items() if k.startswith(SINCE)), None)
            for name in ("created_at", "date"):
                if isinstance(since, str) and name in child and name not in arguments:
                    child[name] = since[:10]
    return Target(info, entity, record, arguments, details)


def _existing(domain: Domain, entities: dict[str, dict[str, Record]], name: str) -> Record | None:
    return next(iter(entities.get(name, {}).values()), None)


def _put_lines(
    domain: Domain, entities: dict[str, dict[str, Record]], record: Record, person: Record, draw: Draw
) -> None:
    """Give every id that the lines of a record show a record of its own, with the same name and price."""
    for line in record.get("items", ()):
        if not isinstance(line, Mapping):
            continue
        for kind in ("product", "item"):
            if kind in domain.entities and domain.entities[kind].id_field in line:
                other = make_record(domain, kind, draw, person)
                _put(domain, entities, kind, {**other, **{k: v for k, v in line.items() if k in other}})


# -- world states ---------------------------------------------------------------------------------------------


def _apply_state(
    setting: Setting, target: Target, state: str, person: Record, entities: dict[str, dict[str, Record]], draw: Draw
) -> None:
    """Bring the record of the first target into the wanted state."""
    record, domain, info = target.record, setting.domain, target.info
    if info.mode == "create" and info.entity in domain.entities and state in ("already_acted", "partial"):
        made = domain.entities[info.entity]
        status = made.statuses[0] if state == "already_acted" else "draft"
        _put(domain, entities, made.name, {made.id_field: make_id(made, draw), **target.arguments, "status": status})
        return
    if record is None or target.entity not in domain.entities:
        return
    entity = domain.entities[target.entity]
    key = str(record[entity.id_field])
    visible = not entity.closed or "status" in entity.fields
    if state == "missing":
        entities[target.entity].pop(key, None)
        _gone(domain, target, entities)
    elif state == "already_acted":
        if info.mode == "change" and info.done is None:
            record.update(set_fields(record, {k: v for k, v in target.arguments.items() if k != info.key}))
        elif visible:
            closed = [s for s in _enum(entity.fields.get("status")) if s in CLOSED_STATUSES]
            usual = closed[0] if closed else CLOSINGS.get(entity.name, "closed")
            _set_status(entity, record, info.done or usual, "somebody has acted on this already")
    elif state == "duplicate":
        twin = {**record, entity.id_field: make_id(entity, draw, person)}
        if visible:
            record["possible_duplicate_of"] = twin[entity.id_field]
            twin["possible_duplicate_of"] = record[entity.id_field]
        _put(domain, entities, target.entity, twin)
    elif state == "partial":
        if visible:
            half = info.done if info.mode == "change" else PARTLY.get(entity.name, "processed")
            _set_status(entity, record, partly(half), "begun and not finished")
            record["pending_steps"] = ["confirmation"] if entity.values is None else "confirmation"
    elif state == "unknown" and visible:
        _set_status(entity, record, "unknown", UNKNOWN_NOTE)
        record["note"] = UNKNOWN_NOTE


def _set_status(entity: EntityType, record: Record, status: str, note: str) -> None:
    """Set the status; where the result schema does not allow it, say it in a note and leave the status alone."""
    allowed = _enum(entity.fields.get("status"))
    if allowed and status not in allowed:
        record["note"] = note
    else:
        record["status"] = status


def _enum(schema: Mapping[str, Any] | None) -> list[Any]:
    return list((schema or {}).get("enum", ()))


def _gone(domain: Domain, target: Target, entities: dict[str, dict[str, Record]]) -> None:
    """A search for a missing record must not meet another one by chance: nothing else of its type fits the ask."""
    wanted = {k: v for k, v in target.arguments.items() if k != target.info.key}
    if target.info.mode == "find":
        for key, record in list(entities.get(target.entity, {}).items()):
            if all(record.get(k) == v for k, v in wanted.items()):
                del entities[target.entity][key]


# -- goal and course ------------------------------------------------------------------------------------------


def _course(setting: Setting, scene: Scene, owner: Record, stance: str, state: str, draw: Draw) -> None:
    """Decide what is right, and the calls of an honest agent."""
    domain = setting.domain
    acting = stance in ACTING
    kinds = {t.info.kind for t in scene.targets}
    scene.goal["kind"] = "act" if acting and "write" in kinds else "decline" if stance == "adversarial" else "lookup"
    if domain.person is not None and _needs_person(setting, scene.targets):
        _identify(setting, scene, owner, draw)
    for step in scene.plan:
        step["part"] = -1  # without the person nothing else is possible
    for n, target in enumerate(scene.targets):
        before = len(scene.plan)
        same = target.record is scene.targets[0].record
        found = state if n == 0 or same else "exists"
        if n and target.info.mode == "create" and found in ("already_acted", "partial"):
            found = "exists"  # that is so of the thing which it is made for
        _pursue(setting, scene, target, acting, found, stance)
        for step in scene.plan[before:]:
            step["part"] = n
    if len(scene.plan) < 2:
        return
    unique: list[dict[str, Any]] = []
    for step in scene.plan:
        if all((step["tool"], step["arguments"]) != (u["tool"], u["arguments"]) for u in unique):
            unique.append(step)
    scene.plan[:] = unique


def _needs_person(setting: Setting, targets: list[Target]) -> bool:
    """Whether a call takes the person's id, or is about what a person owns and must be asked who they are."""
    domain, person = setting.domain, setting.domain.person
    if any(p.entity == person and p.name in t.arguments for t in targets for p in t.info.params):
        return True
    return setting.authenticate and any(
        t.entity and (t.entity == person or (t.entity in domain.entities and domain.entities[t.entity].owner))
        for t in targets
    )


def _identify(setting: Setting, scene: Scene, owner: Record, draw: Draw) -> None:
    """Start with the call that finds the person by what the ask tells, where the tools offer one."""
    domain = setting.domain
    finders = [t for t in domain.finders(domain.person) if all(p.name in owner for p in t.params if p.required)]
    asked = next((t for t in scene.targets if t.info in finders), None)
    if asked is not None and str(scene.axes.get("stance")) != "adversarial":
        # Who asks for the own id as well is found by that same call, and without it nothing else is possible.
        scene.plan.append({"tool": asked.info.name, "arguments": asked.arguments})
    if not finders or asked is not None:
        return
    by_mail = [t for t in finders if any("email" in p.name for p in t.params)]
    finder = by_mail[0] if by_mail and draw.below(4) else draw.choice(finders)
    fields = [p.name for p in finder.params if p.required]
    scene.found_by = fields
    scene.plan.append({"tool": finder.name, "arguments": {f: owner[f] for f in fields}})


def _pursue(setting: Setting, scene: Scene, target: Target, acting: bool, state: str, stance: str) -> None:
    info, domain = target.info, setting.domain
    goal, plan = scene.goal, scene.plan
    call = {"tool": info.name, "arguments": target.arguments}
    if info.mode == "generic" or (info.kind == "write" and target.record is None and info.mode != "create"):
        if info.kind != "write" or acting:
            goal["subgoals"].append({"do": "call", "tool": info.name})
            plan.append(call)
        return
    key = (
        target.record[domain.entities[target.entity].id_field]
        if target.record and target.entity in domain.entities
        else None
    )
    sight = {"do": "see", "entity": target.entity, "id": key, "effects": ["not_found"] if state == "missing" else _SEEN}
    if info.kind == "read":
        if info.mode in ("find", "list") and (info.mode == "find" or key is None):
            sight = {"do": "use", "tool": info.name, "effects": [*_SEEN, "not_found"]}
        if info.mode == "list" and info.key and state != "missing":
            sight = {"do": "use", "tool": info.name, "effects": _SEEN}
        if stance != "adversarial":
            goal["subgoals"].append(sight)
            plan.append(call)
        return
    reader = domain.reader(target.entity)
    if reader is not None and key is not None:
        plan.append({"tool": reader.name, "arguments": {reader.key or "": key}})
    change = acting and state in ("exists", "duplicate", "partial")
    if change:
        goal["subgoals"].append(_change_goal(domain, target, key))
        goal["changes"].append(_changed_entity(target, key))
        plan.append(call)
    elif reader is None or key is None:
        # Without a tool that looks, only the attempt can show the state; where acting is wrong nothing can be asked.
        if acting:
            effects = {"missing": ["not_found"], "already_acted": ["refused"], "unknown": ["refused"]}
            goal["subgoals"].append({"do": "use", "tool": info.name, "effects": effects.get(state, ["refused"])})
            plan.append(call)
    elif info.mode == "create" and acting and state == "already_acted":
        goal["subgoals"].append({"do": "use", "tool": info.name, "effects": ["refused"]})
        plan.append(call)
    else:
        if acting and state in ("already_acted", "unknown"):
            sight["effects"] = [*_SEEN, "refused"]
        goal["subgoals"].append(sight)


def _change_goal(domain: Domain, target: Target, key: Any) -> dict[str, Any]:
    info = target.info
    wanted = {k: v for k, v in target.arguments.items() if k != info.key or info.mode == "create"}
    if info.mode == "create":
        return {"do": "make", "tool": info.name, "entity": info.entity, "fields": wanted}
    wanted = set_fields(target.record or {}, wanted)
    if info.done is not None:
        wanted["status"] = info.done
    return {"do": "change", "tool": info.name, "entity": target.entity, "id": key, "fields": wanted}


def _changed_entity(target: Target, key: Any) -> list[Any]:
    return [target.info.entity, None] if target.info.mode == "create" else [target.entity, key]


def subject(scene: Scene, domain: Domain) -> tuple[str, Any] | None:
    """Return how people name the first target's record and its id, or `None` when there is none."""
    for target in scene.targets:
        if target.record is not None and target.entity in domain.entities:
            return label(target.entity), target.record[domain.entities[target.entity].id_field]
    return None
