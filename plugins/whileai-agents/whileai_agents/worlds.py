"""Worlds for a proxy that runs on its own: tasks from a file, a world per rollout.

`read_worlds("rows.jsonl")` reads the tasks of an earlier simulation with their worlds. A rollout is named by its task
(`<task id>` or its number, from 0) and, for further tries, a dot and a number: `/r/3/v1`, `/r/3.1/v1`. The engine of
the worlds belongs to another plugin and is reached by its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError, UnknownNameError
from whileai_kernel.plugins import manager
from whileai_kernel.registry import Entry, resolve
from whileai_kernel.rowio import read_rows
from whileai_kernel.rows import task_key
from whileai_kernel.tools import as_tools

__all__ = ["Worlds", "mock_world", "read_worlds"]

MakeWorld = Callable[[Mapping[str, Any]], Any]
_TASK_KEYS = ("task_id", "prompt", "system_prompt", "tools", "axes", "world", "split", "lineage")


def mock_world(task: Mapping[str, Any]) -> Any:
    """Return the mock world of a task that `simulate` wrote.

    Raises:
        ParameterError: The task has no world or no tools.
        UnknownNameError: The plugin that runs such worlds is not installed.
    """
    if not task.get("tools") or not isinstance(task.get("world"), Mapping):
        raise ParameterError(
            f"task {task_key(task)} has no world to serve", why="it needs tools and world", fix="use simulated rows"
        )
    read_domain = _of_simulate("whileai_simulate.entities:read_domain")
    return _of_simulate("whileai_simulate.world:World")(read_domain(as_tools(task["tools"])), task["world"])


def _of_simulate(target: str) -> Any:
    """Load a part of the plugin that runs simulated worlds, by its name."""
    plugin = next((p for p in manager().plugins if p.name == "simulate"), None)
    if plugin is None:
        raise UnknownNameError("no plugin here runs simulated worlds", fix="pip install whileai-simulate")
    return Entry("worlds", "mock", plugin, target).load()


class Worlds:
    """The tasks of a proxy, and a new world for each rollout.

    Args:
        tasks: Tasks, as parts of rows.
        make_world: `make_world(task)` returns an object with `call(name, arguments) -> str`.
    """

    def __init__(self, tasks: Iterator[Mapping[str, Any]], make_world: MakeWorld = mock_world) -> None:
        self.make_world = make_world
        self.tasks: dict[str, dict[str, Any]] = {}
        for task in tasks:
            self.tasks.setdefault(task_key(task), {key: task[key] for key in _TASK_KEYS if task.get(key) is not None})
        if not self.tasks:
            raise ParameterError("there are no tasks to serve", fix="give a file of simulated rows")
        self._order = list(self.tasks)

    def __call__(self, name: str) -> dict[str, Any] | None:
        """Return what a rollout of that name is made of, or `None` when there is no such task."""
        key, _, again = (name, "", "") if name in self.tasks else name.rpartition(".")
        if not key:
            key, again = name, ""
        if key not in self.tasks and key.isdigit() and int(key) < len(self._order):
            key = self._order[int(key)]
        if key not in self.tasks or (again and not again.isdigit()):
            return None
        task = self.tasks[key]
        world = self.make_world(task)

        def call_tool(tool: str, arguments: Any) -> str:
            return str(world.call(tool, arguments))

        index = int(again) if again else 0
        return {"task": task, "index": index, "tools": task.get("tools") or (), "call_tool": call_tool, "world": world}

    def listing(self, url: str) -> list[dict[str, Any]]:
        """Return the tasks for people and programs: the ask, and where the rollout is found."""
        return [
            {
                "task_id": key,
                "prompt": task.get("prompt"),
                "system_prompt": task.get("system_prompt"),
                "base_url": f"{url}/r/{n}/v1",
                "mcp_url": f"{url}/r/{n}/mcp",
            }
            for n, (key, task) in enumerate(self.tasks.items())
        ]


def read_worlds(where: str | os.PathLike[str], make_world: str | MakeWorld | None = None) -> Worlds:
    """Read the tasks of a file of rows.

    Args:
        where: JSONL file of rows or tasks.
        make_world: Own worlds: a function, or `"file.py:function"`; by default the mock world of `simulate`.
    """
    maker: Any = resolve("agents", make_world) if isinstance(make_world, str) else make_world
    return Worlds(read_rows(Path(where)), maker or mock_world)
