"""The mock world: records that tools read and change, with consequences and planned faults.

A world is data (`entities` by type and id, a fault plan) plus what one rollout did to it. The data belongs to the
task and is never changed; a rollout keeps its changes beside it, so that a thousand rollouts share one base. A write
changes what a later read shows, a second write is refused as already done, a search returns what exists, and an
unknown id is not found. The log of calls is kept by the world and not by the agent, so a claimed call is not a call.

Example:
    >>> from whileai_simulate.entities import read_domain
    >>> tool = {"name": "cancel_order", "x-kind": "write", "parameters": {"type": "object",
    ...     "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}
    >>> data = {"seed": 0, "entities": {"order": {"A-1": {"order_id": "A-1", "status": "pending"}}}}
    >>> world = World(read_domain([tool]), data)
    >>> world.call("cancel_order", {"order_id": "A-1"}), world.call("cancel_order", {"order_id": "A-1"})[:40]
    ('{"order_id": "A-1", "status": "cancelled"}', '{"error": "order A-1 is already cancelle')
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from whileai_kernel.errors import ParameterError
from whileai_simulate.arithmetic import arithmetic
from whileai_simulate.draw import Draw
from whileai_simulate.encoding import encode as _encode
from whileai_simulate.entities import Domain, ToolInfo
from whileai_simulate.facts import fact_of
from whileai_simulate.faults import SAME_FOR_ALL, Fault, fault_result
from whileai_simulate.lexicon import CLOSED_STATUSES, label, participle, words_of
from whileai_simulate.records import Record, flat, make_id
from whileai_simulate.schema import fits_plainly, problems
from whileai_simulate.standing import has_values, is_partial, is_unknown, meant_by, searches, set_fields
from whileai_simulate.waiting import wait

__all__ = ["World", "WorldClosedError"]

T = TypeVar("T")
_REOPENING = frozenset({"reopen", "restore", "reactivate", "activate", "unarchive"})


class WorldClosedError(RuntimeError):
    """The rollout is over (its deadline passed); its world takes no further calls."""


class World:
    """The world of one rollout.

    Args:
        domain: What the tools are about.
        data: `{"seed", "entities": {type: {id: record}}, "faults": [...]}`; never changed.
        cache: Shared by the rollouts of one task: encoded results of reads.
        execute: Own functions by tool name, which run instead of the mock; faults are still injected.
        faults: Own faults by name.

    Attributes:
        log: Calls so far, as the world saw them.
        fired: Faults that fired.
        off_loop: Runs what blocks beside the event loop; set by the engine.
    """

    __slots__ = (
        "_cache",
        "_changed",
        "_closed",
        "_counts",
        "_data",
        "_domain",
        "_execute",
        "_own_faults",
        "fired",
        "log",
        "off_loop",
    )

    def __init__(
        self,
        domain: Domain,
        data: Mapping[str, Any],
        cache: dict[Any, Any] | None = None,
        execute: Mapping[str, Callable[..., Any]] | None = None,
        faults: Mapping[str, Fault] | None = None,
    ) -> None:
        self._domain = domain
        self._data = data
        self._cache = {} if cache is None else cache
        self._changed: dict[str, dict[Any, Record]] = {}
        self._counts: dict[str, int] = {}
        self._execute = execute or {}
        self._own_faults = faults or {}
        self._closed = False
        self.off_loop: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None
        self.log: list[dict[str, Any]] = []
        self.fired: list[dict[str, Any]] = []

    # -- what a rollout did ---------------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        """What the tools are about."""
        return self._domain

    @property
    def changes(self) -> dict[str, dict[str, Record]]:
        """Records that were changed or made, by type and id (as text)."""
        return {kind: {str(k): r for k, r in records.items()} for kind, records in self._changed.items()}

    def record(self, entity: str, key: Any) -> Record | None:
        """Return the record as it stands now, or `None`."""
        changed = self._changed.get(entity)
        if changed is not None and key in changed:
            return changed[key]
        found = self._data["entities"].get(entity, {}).get(str(key))
        return found if found is None or self._same_id(entity, found, key) else None

    @property
    def is_open(self) -> bool:
        """Whether the rollout still goes on."""
        return not self._closed

    def close(self) -> None:
        """Refuse further calls."""
        self._closed = True

    # -- calls ----------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Any) -> str:
        """Run one tool call and return the result as text (JSON unless a fault breaks it).

        Args:
            name: Name of the tool.
            arguments: The arguments as an object; anything else is answered with an error, as a server would.

        Raises:
            WorldClosedError: The rollout is over.
            ParameterError: An async agent calls an own coroutine function; it is to await `acall`.
        """
        found = self._begin(name, arguments)
        if isinstance(found, str):
            return found
        info, own, fault = found
        try:
            value = own(**arguments)
            if inspect.isawaitable(value) and not self._on_loop():
                value = wait(value)
        except Exception as err:  # noqa: BLE001 - an own tool that raises answers with its error, as a server would
            return self._raised(info, arguments, err)
        if inspect.iscoroutine(value):
            value.close()
            raise ParameterError(
                f"{name} is a coroutine function, and waiting for it here would block every other rollout",
                fix=f"await context.acall_tool({name!r}, ...)",
            )
        return self._returned(info, arguments, value, fault)

    async def acall(self, name: str, arguments: Any) -> str:
        """Do as `call` without blocking the event loop: own coroutine functions are awaited, others run on a thread.

        Raises:
            WorldClosedError: The rollout is over.
        """
        found = self._begin(name, arguments)
        if isinstance(found, str):
            return found
        info, own, fault = found
        try:
            if inspect.iscoroutinefunction(own):
                value = await own(**arguments)
            else:
                value = await (self.off_loop or asyncio.to_thread)(lambda: own(**arguments))
                value = await value if inspect.isawaitable(value) else value
        except Exception as err:  # noqa: BLE001 - as above
            return self._raised(info, arguments, err)
        return self._returned(info, arguments, value, fault)

    def is_own(self, name: str) -> bool:
        """Whether a function of the user's answers the tool, which may take its time."""
        return name in self._execute

    def _begin(self, name: str, arguments: Any) -> str | tuple[ToolInfo, Callable[..., Any], dict[str, Any] | None]:
        """Answer a call, unless an own function is to do so: then return it, and the fault that its answer suffers."""
        if self._closed:
            raise WorldClosedError("the rollout is over: its deadline passed")
        info = self._domain.tools.get(name)
        if info is None:
            return self.note(name, None, "unknown_tool", _error(f"there is no tool named {name}"))
        if not isinstance(arguments, dict):
            return self.note(name, None, "invalid", _error("arguments must be a JSON object"))
        found = [] if fits_plainly(arguments, info.tool.parameters) else _invalid(info, arguments)
        if found:
            return self.note(name, arguments, "invalid", _error(f"invalid arguments: {'; '.join(found[:3])}"))
        fault, own = self._fault(name), self._execute.get(name)
        if fault is None:
            return self.answer(info, arguments) if own is None else (info, own, None)
        if own is not None and info.kind == "read" and (fault["kind"] not in SAME_FOR_ALL or self._own_faults):
            return info, own, fault  # what arrives broken or stale is what it says
        return self._faulty(info, arguments, fault)

    def replay(self, key: Any, run: Callable[[], T]) -> T:
        """Return what `run` returns, and leave the world as it leaves it; other rollouts of the task skip the work.

        For courses that are the same in every rollout of the task: a plan that is followed to the letter. The mock is
        a function of the task, so they end the same. Own functions and worlds of one's own are always run.

        Args:
            key: Names the course within the task.
            run: Follows it on this world; what it returns is shared and must not be changed.
        """
        if self._execute or self._own_faults or self._closed or self.log or type(self) is not World:
            return run()
        known = self._cache.get(key)
        if known is None:
            value = run()
            self._cache[key] = (value, self.log.copy(), self.fired.copy(), self._copied(), self._counts.copy())
            return value
        value, log, fired, changed, counts = known
        self.log, self.fired, self._counts = log.copy(), fired.copy(), counts.copy()
        if changed:
            self._changed = {kind: records.copy() for kind, records in changed.items()}
        return cast(T, value)

    def _copied(self) -> dict[str, dict[Any, Record]]:
        return {kind: records.copy() for kind, records in self._changed.items()}

    def answer(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        """Answer a valid call that no fault strikes: the method to override in a world of one's own.

        An override that changes or reads records itself says so with `note`, which the outcome check reads.
        """
        mode = info.mode
        if mode == "get":
            return self._get(info, arguments)
        if mode == "change":
            return self._change(info, arguments)
        if mode in ("find", "list"):
            return self._find(info, arguments)
        if mode == "create":
            return self._create(info, arguments)
        return self._generic(info, arguments)

    def note(
        self, tool: str, arguments: Any, effect: str, result: str, entity: str | None = None, key: Any = None
    ) -> str:
        """Log a call and return its result.

        Args:
            tool: Name of the tool.
            arguments: Arguments of the call.
            effect: `read`, `found`, `not_found`, `changed`, `created`, `refused`, `done`, `fault`, `invalid`,
                `unknown_tool` or `tool_error`.
            result: What the agent sees.
            entity: Type of the record concerned.
            key: Id of the record concerned.
        """
        entry: dict[str, Any] = {"tool": tool, "effect": effect}
        if entity is not None:
            entry["entity"], entry["id"] = entity, key
        if effect in ("invalid", "fault") or key is None:
            entry["arguments"] = arguments  # what a call was about that no id tells
        self.log.append(entry)
        return result

    def _fault(self, name: str) -> dict[str, Any] | None:
        for fault in self._data.get("faults", ()):
            if fault["tool"] == name:
                count = self._counts[name] = self._counts.get(name, 0) + 1
                if fault["calls"] < 0 or count <= fault["calls"]:
                    self.fired.append({"kind": fault["kind"], "tool": name, "call": count})
                    return dict(fault)
        return None

    def _faulty(self, info: ToolInfo, arguments: dict[str, Any], fault: dict[str, Any]) -> str:
        """Answer with the fault; a write that is answered so has not happened."""
        if fault["kind"] in SAME_FOR_ALL and not self._own_faults:
            return self.note(info.name, arguments, "fault", fault_result(fault, ""))
        old: Any = None
        honest = '{"status": "ok"}'
        record = self.record(info.entity, arguments.get(info.key)) if info.entity and info.key else None
        if info.name in self._execute:
            old = {"status": "ok"}  # an own write, which is not run: what it would have said is not known
        elif record is not None:
            honest = _encode(record)
            first = self._domain.entities[info.entity or ""].statuses[0]
            old = {**record, "status": first} if "status" in record else dict(record)
            old.pop("possible_duplicate_of", None)
        elif fault["kind"] == "malformed" and info.mode in ("find", "list"):
            shadow = World(self._domain, {**self._data, "faults": []})
            honest = shadow.call(info.name, arguments)
        return self.note(info.name, arguments, "fault", fault_result(fault, honest, old, self._own_faults))

    def _on_loop(self) -> bool:
        """Whether this is the thread of the event loop that the rollouts of an async agent share."""
        if self.off_loop is None:
            return False
        try:
            return asyncio.get_running_loop() is not None
        except RuntimeError:
            return False

    def _returned(
        self, info: ToolInfo, arguments: dict[str, Any], value: Any, fault: dict[str, Any] | None = None
    ) -> str:
        if self._closed:
            raise WorldClosedError("the rollout is over: its deadline passed")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        effect = "changed" if info.kind == "write" else "read"
        if fault is not None:
            effect, text = "fault", fault_result(fault, text, _read_back(text), self._own_faults)
        return self.note(info.name, arguments, effect, text, info.entity, self._key_in(info, arguments))

    def _raised(self, info: ToolInfo, arguments: dict[str, Any], err: Exception) -> str:
        text = _error(f"{type(err).__name__}: {err}")
        return self.note(info.name, arguments, "tool_error", text, info.entity, self._key_in(info, arguments))

    @staticmethod
    def _key_in(info: ToolInfo, arguments: dict[str, Any]) -> Any:
        return arguments.get(info.key) if info.key else None

    # -- reads ----------------------------------------------------------------------------------------------

    def _shown(self, entity: str, record: Record) -> str:
        """Return a record as the tools show it: with values of the declared type, where one is declared for all."""
        values = self._domain.entities[entity].values
        return _encode(record if values is None else flat(record, values))

    def _same_id(self, entity: str, record: Record, key: Any) -> bool:
        return bool(record.get(self._domain.entities[entity].id_field) == key)

    def _get(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        entity, key = info.entity or "", arguments.get(info.key or "")
        record = self.record(entity, key)
        if record is not None:
            # Further arguments narrow the record: a flight number on another day is another flight.
            for name, value in arguments.items():
                if name != info.key and name in record and isinstance(value, str) and record[name] != value:
                    record = None
                    break
        if record is None:
            return self.note(info.name, arguments, "not_found", _not_found(entity, key), entity, key)
        cache_key = (entity, key)
        if entity in self._changed and key in self._changed[entity]:
            text = self._shown(entity, record)
        else:
            cached = self._cache.get(cache_key)
            text = cached if cached is not None else self._cache.setdefault(cache_key, _encode(record))
        return self.note(info.name, arguments, "read", text, entity, key)

    def _all(self, entity: str) -> list[Record]:
        changed = self._changed.get(entity, {})
        base = self._data["entities"].get(entity, {}).values()
        id_field = self._domain.entities[entity].id_field
        seen = [changed.get(r.get(id_field), r) for r in base]
        known = {str(r.get(id_field)) for r in seen}
        return seen + [r for k, r in changed.items() if str(k) not in known]

    def _find(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        entity = info.entity or ""
        if entity not in self._domain.entities:
            return self.note(info.name, arguments, "read", "[]")
        parent = self._parent(info)
        if parent is not None and parent != entity and self.record(parent, arguments.get(info.key or "")) is None:
            key = arguments.get(info.key or "")
            return self.note(info.name, arguments, "not_found", _not_found(parent, key), parent, key)
        matches = [r for r in self._all(entity) if all(meant_by(r, k, v) for k, v in arguments.items())]
        id_field = self._domain.entities[entity].id_field
        if info.mode == "find" and not matches:
            fields = self._domain.entities[entity].fields
            asked = ", ".join(f"{label(k)} {v}" for k, v in arguments.items() if k in fields or searches(k))
            text = f"no {label(entity)} found{' for ' if asked else ''}{asked}"
            return self.note(info.name, arguments, "not_found", _error(text), entity)
        for record in matches:
            self.note(info.name, arguments, "found", "", entity, record.get(id_field))
        wants_id = "id" in words_of(info.name)
        if wants_id and len(matches) == 1:
            return _encode(matches[0].get(id_field))
        if not matches:
            self.note(info.name, arguments, "read", "", entity)
        return _encode([r.get(id_field) for r in matches] if wants_id else matches)

    def _parent(self, info: ToolInfo) -> str | None:
        return next((p.entity for p in info.params if p.name == info.key), None) if info.key else None

    # -- writes ---------------------------------------------------------------------------------------------

    def _change(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        entity, key = info.entity or "", arguments.get(info.key or "")
        record = self.record(entity, key)
        if record is None:
            return self.note(info.name, arguments, "not_found", _not_found(entity, key), entity, key)
        new = {k: v for k, v in arguments.items() if k != info.key}
        status = record.get("status")
        refusal = self._refusal(info, record, new, f"{label(entity)} {key}", status)
        if refusal:
            text = _encode({"error": refusal, **({"status": status} if status is not None else {})})
            return self.note(info.name, arguments, "refused", text, entity, key)
        after = {**record, **set_fields(record, new)}
        after.pop("pending_steps", None)
        if info.done is not None:
            after["status"] = info.done
        elif is_partial(record) and status is not None:
            after["status"] = info.needs or self._domain.entities[entity].statuses[0]
        self._changed.setdefault(entity, {})[key] = after
        return self.note(info.name, arguments, "changed", self._shown(entity, after), entity, key)

    def _refusal(self, info: ToolInfo, record: Record, new: dict[str, Any], what: str, status: Any) -> str | None:
        if is_unknown(record):
            return f"the state of {what} cannot be confirmed right now; no change was made"
        if info.done is not None and status == info.done:
            return f"{what} is already {status}"
        half = is_partial(record)
        if info.done is None and not half and new and has_values(record, new):
            return f"{what} already has these values; nothing to do"
        if info.needs and status is not None and status != info.needs and not half:
            return f"{what} is {status}, not {info.needs}"
        if status in CLOSED_STATUSES and info.verb not in _REOPENING:
            return f"{what} is {status} and cannot be changed"
        return None

    def _create(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        entity = info.entity or ""
        parent = self._parent(info)
        if parent is not None:
            key = arguments.get(info.key or "")
            owner = self.record(parent, key)
            if owner is None:
                return self.note(info.name, arguments, "not_found", _not_found(parent, key), parent, key)
            if is_unknown(owner):
                text = _error(f"the state of {label(parent)} {key} cannot be confirmed right now; nothing was made")
                return self.note(info.name, arguments, "refused", text, parent, key)
        id_field = self._domain.entities[entity].id_field
        for record in self._all(entity):
            if all(record.get(k) == v for k, v in arguments.items()):
                key = record.get(id_field)
                if record.get("status") == "draft":
                    done = {**record, "status": self._domain.entities[entity].statuses[0]}
                    self._changed.setdefault(entity, {})[key] = done
                    return self.note(info.name, arguments, "created", self._shown(entity, done), entity, key)
                text = _encode({"error": f"this {label(entity)} was already {participle(info.verb)}", id_field: key})
                return self.note(info.name, arguments, "refused", text, entity, key)
        made = self._changed.get(entity, {})
        draw = Draw(self._data.get("seed", 0), "made", entity, len(made))
        key = make_id(self._domain.entities[entity], draw)
        record = {id_field: key, **arguments, "status": self._domain.entities[entity].statuses[0]}
        self._changed.setdefault(entity, {})[key] = record
        return self.note(info.name, arguments, "created", self._shown(entity, record), entity, key)

    # -- tools that touch no state --------------------------------------------------------------------------

    def _generic(self, info: ToolInfo, arguments: dict[str, Any]) -> str:
        text = next((v for v in arguments.values() if isinstance(v, str)), "")
        if any(w in ("calculate", "calculator", "compute", "evaluate") for w in words_of(info.name)):
            try:
                return self.note(info.name, arguments, "done", _encode(arithmetic(text)))
            except (ValueError, SyntaxError, ZeroDivisionError, OverflowError) as err:
                return self.note(info.name, arguments, "invalid", _error(f"cannot calculate: {err}"))
        if info.kind == "read":
            draw = Draw(self._data.get("seed", 0), "fact", info.name, _encode(arguments))
            fact = fact_of(" ".join(words_of(info.spoken or info.name)[1:]), arguments, info.tool.returns, draw)
            return self.note(info.name, arguments, "read", _encode(fact))
        if "transfer" in info.name or "escalate" in info.name:
            return self.note(info.name, arguments, "done", _encode("Transfer successful"))
        return self.note(info.name, arguments, "done", _encode({"status": "ok"}))


def _invalid(info: ToolInfo, arguments: dict[str, Any]) -> list[str]:
    known = info.tool.parameters.get("properties", {})
    return problems(arguments, info.tool.parameters) + [
        f"{a} is not a parameter" for a in arguments if a not in known and not _open(info)
    ]


def _open(info: ToolInfo) -> bool:
    extra = info.tool.parameters.get("additionalProperties")
    return extra is True or isinstance(extra, Mapping)


def _read_back(text: str) -> Any:
    """Return the value of a JSON text, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _error(text: str) -> str:
    return _encode({"error": text})


def _not_found(entity: str, key: Any) -> str:
    return _error(f"{label(entity)} {key} not found")
