"""Tasks that are given and not made: asks that must run, and tasks of an earlier run with their worlds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rows import content_id, task_key
from whileai_simulate.draw import Draw
from whileai_simulate.records import make_person, make_record
from whileai_simulate.scenes import Setting

__all__ = ["read_tasks", "seed_tasks"]

_TASK = ("task_id", "prompt", "system_prompt", "tools", "axes", "world", "split", "lineage", "privileged")


def read_tasks(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the distinct tasks of rows (or of typed tasks), in order of first appearance.

    Args:
        items: Flat rows, tasks as mappings, or `models.Task` objects.

    Raises:
        RowError: An item has no prompt.
        ParameterError: There is no task.
    """
    found: dict[str, dict[str, Any]] = {}
    for n, item in enumerate(items):
        row = item.model_dump() if hasattr(item, "model_dump") else item
        if not isinstance(row, Mapping) or not isinstance(row.get("prompt"), str) or not row["prompt"]:
            raise RowError("a task needs a prompt", why=f"got {type(item).__name__}", fix="pass rows or tasks", row=n)
        key = task_key(row)
        if key in found:
            continue
        task = {k: row[k] for k in _TASK if row.get(k) is not None}
        task["task_id"] = key
        world = dict(task.get("world") or {})
        world.setdefault("seed", 0)
        world.setdefault("entities", {})
        world.setdefault("faults", [])
        task["world"] = world
        task.setdefault("axes", {})
        private = dict(task.get("privileged") or {})
        private.setdefault("plan", [])
        private.setdefault("goal", {"kind": "none", "subgoals": [], "changes": []})
        task["privileged"] = private
        found[key] = task
    if not found:
        raise ParameterError("tasks= holds no task", fix="pass the rows of an earlier run")
    return list(found.values())


def seed_tasks(setting: Setting, seeds: Sequence[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a task for each ask that must run; ids that it names are given records, so that tools find them.

    Raises:
        ParameterError: A seed is empty or names an unknown axis value.
    """
    out = []
    for n, seed in enumerate(seeds):
        given: Mapping[str, Any] = {"prompt": seed} if isinstance(seed, str) else seed
        prompt = given.get("prompt") if isinstance(given, Mapping) else None
        if not isinstance(prompt, str) or not prompt.strip():
            raise ParameterError(f"seed {n} has no text", fix="pass texts, or {'prompt': '...'}")
        for key in given:
            if key not in ("prompt", "axes", "reference"):
                unknown_name("key of a seed", key, ("prompt", "axes", "reference"))
        out.append(_seed_task(setting, n, prompt, given))
    return out


def _seed_task(setting: Setting, n: int, prompt: str, given: Mapping[str, Any]) -> dict[str, Any]:
    draw = Draw(setting.seed, "seed", n)
    person = make_person(draw, setting.locale)
    domain = setting.domain
    entities: dict[str, dict[str, Any]] = {}
    owner_id = None
    if domain.person is not None:
        owner = make_record(domain, domain.person, draw, person)
        owner_id = owner[domain.entities[domain.person].id_field]
        entities[domain.person] = {str(owner_id): owner}
    for name, entity in domain.entities.items():
        look = _look(entity.id_example, entity.id_schema.get("pattern"))
        for key in dict.fromkeys(re.findall(look, prompt)) if look else ():
            record = {**make_record(domain, name, draw, person, owner_id), entity.id_field: key}
            entities.setdefault(name, {})[str(key)] = record
    axes = {"source": "seed", **dict(given.get("axes") or {})}
    private: dict[str, Any] = {"goal": {"kind": "none", "subgoals": [], "changes": []}, "plan": []}
    if given.get("reference") is not None:
        private["reference"] = given["reference"]
    world_seed = draw.below(1 << 31)
    return {
        "task_id": content_id("task", prompt, axes, world_seed),
        "prompt": prompt,
        "system_prompt": setting.system_prompt,
        "tools": setting.tools,
        "axes": axes,
        "world": {"seed": world_seed, "state": None, "entities": entities, "faults": []},
        "lineage": {"writer": "seeds"},
        "privileged": private,
    }


def _look(example: str | None, pattern: Any) -> str | None:
    """Return a pattern for ids of the look of an example; `None` when too many words would match."""
    if isinstance(pattern, str):
        return rf"(?<!\w){pattern.strip('^$')}(?!\w)" if "(" not in pattern else None
    if not example or not any(c.isdigit() for c in example) or len(example) < 4:
        return None
    parts = "".join(r"\d" if c.isdigit() else re.escape(c) for c in example)
    return rf"(?<!\w){parts}(?!\w)"
