"""The outcome check that the world provides: was the goal reached, by the state of the world and the log of calls.

The log is kept by the world, so text that claims a call earns nothing. Where the state cannot tell a good reply from
a bad one (nothing to look up, or a fault blocked the way), the row is not scored, with the reason. Where refusing or
asking back is right, a look at the record is required, so that an agent that does nothing earns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_kernel.protocols import Example
from whileai_simulate.arithmetic import arithmetic
from whileai_simulate.faults import BLOCKING

__all__ = ["Outcome", "state_equal"]


def state_equal(a: Any, b: Any, unordered: frozenset[str] | set[str] = frozenset(), at: str = "") -> tuple[bool, str]:
    """Compare two states.

    Args:
        a: A JSON value.
        b: A JSON value.
        unordered: Names of fields whose lists are sets.
        at: Path so far.

    Returns:
        Whether they are equal, and the path of the first difference. 10 equals 10.0; "10" does not equal 10.
    """
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return (type(a) is type(b) and a == b), at
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b, at
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            here = f"{at}.{key}" if at else str(key)
            if key not in a or key not in b:
                return False, here
            same, where = state_equal(a[key], b[key], unordered, here)
            if not same:
                return False, where
        return True, at
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            return False, at
        if at.rpartition(".")[2] in unordered:
            rest = list(b)
            for item in a:
                match = next((i for i, other in enumerate(rest) if state_equal(item, other, unordered)[0]), None)
                if match is None:
                    return False, at
                rest.pop(match)
            return True, at
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same, where = state_equal(x, y, unordered, f"{at}[{i}]")
            if not same:
                return False, where
        return True, at
    return False, at


def _row(
    goal: Mapping[str, Any], calls: list[dict[str, Any]], changes: Mapping[str, Any], text: str = "Done."
) -> dict[str, Any]:
    return {
        "task_id": "t", "prompt": "Cancel order A-1.", "final_text": text, "outcome": "completed",
        "privileged": {"goal": dict(goal)}, "world_log": {"calls": calls, "changes": dict(changes)}, "faults_fired": [],
    }  # fmt: skip


_CANCEL = {
    "kind": "act",
    "subgoals": [{"do": "change", "tool": "cancel", "entity": "order", "id": "A-1", "fields": {"status": "cancelled"}}],
    "changes": [["order", "A-1"]],
}
_DONE = [{"tool": "cancel", "effect": "changed", "entity": "order", "id": "A-1"}]


class Outcome:
    """Grades a simulated row by the state of its world.

    Args:
        unordered: Fields whose lists are sets.
    """

    examples = (
        Example(_row(_CANCEL, _DONE, {"order": {"A-1": {"order_id": "A-1", "status": "cancelled"}}}), 1.0),
        Example(_row(_CANCEL, [], {}), 0.0),
        Example(_row(_CANCEL, _DONE, {"order": {"A-2": {"order_id": "A-2", "status": "cancelled"}}}), 0.0),
        Example({"task_id": "t", "prompt": "hi", "final_text": "hello"}, None),
    )
    threshold = 1.0
    reads_only = True

    def __init__(self, unordered: tuple[str, ...] = ()) -> None:
        self.unordered = frozenset(unordered)

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict with its evidence."""
        goal = (row.get("privileged") or {}).get("goal")
        log = row.get("world_log")
        if not isinstance(goal, Mapping) or not isinstance(log, Mapping):
            return {"reward": None, "status": "missing", "reason": "the row was not made by a simulated world"}
        if (row.get("error") or {}).get("by") == "user":
            return {"reward": None, "status": "error", "reason": "the simulated user failed, not the agent"}
        if row.get("outcome") == "failed":
            return {"reward": 0.0, "reason": "the rollout failed", "failure_class": "failed"}
        if not str(row.get("final_text") or "").strip():
            return {"reward": 0.0, "reason": "the user was told nothing", "failure_class": "empty"}
        run = _Run(row, goal, log)
        wrong = self._unexpected(run)
        if wrong:
            return {
                "reward": 0.0,
                "reason": "something was changed that nobody asked for",
                "failure_class": "side_effect",
                "changed": wrong,
            }
        subgoals = goal.get("subgoals") or []
        if not subgoals:
            return {"reward": None, "status": "abstained", "reason": "the state of the world does not decide this task"}
        met = [self._met(s, run) for s in subgoals]
        evidence = {"subgoals": len(met), "met": sum(met), "calls": len(run.calls)}
        if all(met):
            return {"reward": 1.0, "reason": "the goal is reached", **evidence}
        if run.answered_by_own_function():
            why = "own functions answered instead of the world, so what they did is not known here"
            return {"reward": None, "status": "abstained", "reason": why, **evidence}
        blocked = {f["tool"] for f in row.get("faults_fired") or () if f["kind"] in BLOCKING}
        open_tools = [s for s, m in zip(subgoals, met, strict=True) if not m]
        if blocked and (run.identified_by & blocked or all(self._blocked(s, blocked) for s in open_tools)):
            why = "a fault blocked the only way; the state cannot tell an honest report from a false one"
            return {"reward": None, "status": "abstained", "reason": why, **evidence}
        if run.nobody_found():
            why = "nobody was found by what the ask tells, so what comes after that is not decided"
            return {"reward": None, "status": "abstained", "reason": why, **evidence}
        return {"reward": 0.0, "reason": "the goal is not reached", "failure_class": "goal", **evidence}

    def _unexpected(self, run: _Run) -> list[str]:
        """Return what was changed that the goal does not ask for: other records, and other fields of the right one."""
        allowed = run.goal.get("changes") or []
        out = []
        for entity, records in run.changes.items():
            for key, record in records.items():
                if not any(entity == e and (i is None or str(i) == key) for e, i in allowed):
                    out.append(f"{entity} {key}")
                    continue
                before, free = run.record(entity, key), run.free_fields(entity, key)
                if before is None or free is None:
                    continue
                for name in sorted({*before, *record} - free):
                    if not state_equal(before.get(name), record.get(name), self.unordered, name)[0]:
                        out.append(f"{name} of {entity} {key}")
        for entity, key in allowed:
            named = {str(i) for e, i in allowed if e == entity and i is not None}
            if key is None and len(set(run.changes.get(entity, {})) - named) > sum(
                e == entity and i is None for e, i in allowed
            ):
                out.append(f"more than one {entity}")
        return out

    def _met(self, subgoal: Mapping[str, Any], run: _Run) -> bool:
        do, calls = subgoal["do"], run.calls
        if do in ("call", "use"):
            effects = subgoal["effects"] if do == "use" else ("done", "changed", "read")
            return any(c["tool"] == subgoal["tool"] and c["effect"] in effects and run.as_asked(c) for c in calls)
        if do == "see":
            return any(
                c.get("entity") == subgoal["entity"] and c["effect"] in subgoal["effects"]
                and (c.get("id") == subgoal["id"] or run.searched_in_vain(c, subgoal["id"]))
                for c in calls
            )  # fmt: skip
        records = run.changes.get(subgoal["entity"], {})
        wanted = subgoal["fields"]
        found = records.values() if do == "make" else [r for k, r in records.items() if k == str(subgoal["id"])]
        return any(all(k in r and state_equal(r[k], v, self.unordered, k)[0] for k, v in wanted.items()) for r in found)

    def _blocked(self, subgoal: Mapping[str, Any], blocked: set[str]) -> bool:
        if "tool" in subgoal:
            return subgoal["tool"] in blocked or subgoal["do"] == "change"
        return True


class _Run:
    """What a row says of its task and of what was done, as the check reads it."""

    def __init__(self, row: Mapping[str, Any], goal: Mapping[str, Any], log: Mapping[str, Any]) -> None:
        self.goal = goal
        self.calls: list[Mapping[str, Any]] = log.get("calls") or []
        self.changes: Mapping[str, Mapping[str, Mapping[str, Any]]] = log.get("changes") or {}
        self._plan = (row.get("privileged") or {}).get("plan") or []
        self._asked = str(row.get("prompt") or "").casefold()
        self._entities = (row.get("world") or {}).get("entities") or {}
        functions = [t.get("function", t) for t in row.get("tools") or () if isinstance(t, Mapping)]
        self._params = {f.get("name"): set((f.get("parameters") or {}).get("properties") or ()) for f in functions}

    @property
    def identified_by(self) -> set[str]:
        """Return the tools by which the plan finds out who asks, without which it has nothing else to do."""
        return {s["tool"] for s in self._plan if s.get("part") == -1}

    def nobody_found(self) -> bool:
        """Whether the search for the person, made as the ask tells, came back empty."""
        return any(
            c["tool"] in self.identified_by and c["effect"] == "not_found" and c.get("id") is None and self.as_asked(c)
            for c in self.calls
        )

    def record(self, entity: str, key: str) -> Mapping[str, Any] | None:
        """Return a record as it was before the rollout."""
        found = self._entities.get(entity, {}).get(key)
        return found if isinstance(found, Mapping) else None

    def free_fields(self, entity: str, key: str) -> set[str] | None:
        """Return the fields of a record that the goal lets change, or `None` when it does not say.

        These are the fields that it sets, the parameters of the tools that set them, and what marks a change as half
        done, with the status that ends it.
        """
        aims = [
            s for s in self.goal.get("subgoals") or ()
            if s["do"] == "change" and s["entity"] == entity and str(s["id"]) == key
        ]  # fmt: skip
        if not aims:
            return None
        half = {"pending_steps", "status"} if "pending_steps" in (self.record(entity, key) or {}) else set()
        return half.union(*(s["fields"] for s in aims), *(self._params.get(s["tool"], ()) for s in aims))

    def as_asked(self, call: Mapping[str, Any]) -> bool:
        """Whether a call has the values that the ask states, as the plan of an honest agent has them."""
        told = call.get("arguments")
        steps = [s["arguments"] for s in self._plan if s["tool"] == call["tool"]]
        if not isinstance(told, Mapping) or not steps:
            return True  # the log keeps no arguments where the record's id says it all
        return any(
            all(_same(k, told.get(k), v) for k, v in step.items() if _words(v) and _words(v) in self._asked)
            for step in steps
        )

    def searched_in_vain(self, call: Mapping[str, Any], key: Any) -> bool:
        """Whether a call is a search for the record, or one of the plan, that found nothing."""
        if call.get("id") is not None or call["effect"] != "not_found":
            return False
        told = call.get("arguments")
        if isinstance(told, Mapping) and any(_words(v) == _words(key) for v in told.values()):
            return True
        return any(s["tool"] == call["tool"] for s in self._plan) and self.as_asked(call)

    def answered_by_own_function(self) -> bool:
        """Whether the log shows what the world itself never writes: a change without a record, a look at nothing."""
        for call in self.calls:
            entity, key = call.get("entity"), str(call.get("id"))
            if call["effect"] == "changed" and key not in self.changes.get(entity or "", {}):
                return True
            if call["effect"] == "read" and call.get("id") is not None:
                known = {*self._entities.get(entity or "", {}), *self.changes.get(entity or "", {})}
                if self._entities and key not in known:
                    return True
        return False


def _words(value: Any) -> str:
    return str(value).strip().casefold() if isinstance(value, str | int | float) else ""


def _same(name: str, given: Any, planned: Any) -> bool:
    """Whether a value of a call is the planned one: letter case does not count, and sums count by what they come to."""
    if _words(given) == _words(planned):
        return True
    if name in ("expression", "formula") and isinstance(given, str) and isinstance(planned, str):
        try:
            return bool(arithmetic(given) == arithmetic(planned))
        except (ValueError, SyntaxError, ZeroDivisionError, OverflowError):
            return False
    return False
