"""Asks that a model writes are written before the first rollout, and kept beside the journal.

They cost money and need not come out the same twice, so a call that is cut off finds them again and asks only for what
is missing. Whole portions are kept: one that was cut is written again.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel.rowio import dumps, loads
from whileai_simulate.situations import TaskSource
from whileai_simulate.stopping import Stop

__all__ = ["count_written", "kept_path", "write_ahead"]

_PORTION = 64
VERSION = 1


def kept_path(journal: Path) -> Path:
    """Return the file that keeps what was written for a journal."""
    return journal.with_name(journal.name + ".tasks")


def write_ahead(source: TaskSource, writer: Any, path: Path | None, fingerprint: Callable[[], str]) -> str | None:
    """Have all asks written, if the writer writes ahead; return why it was cut short, or `None`.

    Args:
        source: The tasks of the run; `source.written` holds them afterwards.
        writer: The source's writer, behind the run's ledger.
        path: Where they are kept, or `None`.
        fingerprint: Returns the hash of the call that they belong to.
    """
    if not getattr(writer, "ahead", False):
        return None
    source.writer = writer
    for task in source.fixed:
        source.near.add(task["prompt"])
    kept = _read(path, fingerprint()) if path is not None else []
    if path is not None and not kept:
        path.write_text(dumps({"tasks": VERSION, "fingerprint": fingerprint()}) + "\n", encoding="utf-8", newline="\n")
    source.written = []
    position = len(source.fixed)
    try:
        for rows in _portions(source.grid):
            known = kept[len(source.written) : len(source.written) + len(rows)]
            if len(known) == len(rows):
                tasks = known
                for task in tasks:
                    source.near.add(task["prompt"])
            else:
                tasks = list(source.write(rows, position))
                if path is not None:
                    _append(path, tasks)
            source.written += tasks
            position += len(rows)
    except Stop as stop:
        return str(stop)
    except KeyboardInterrupt:
        return "interrupted"
    return None


def count_written(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many asks the model wrote, how many the offline writer worded instead, and why."""
    lineages = [t.get("lineage") or {} for t in tasks]
    instead = [x for x in lineages if "instead_of" in x]
    return {
        "written": sum(x.get("writer") == "simulate/model" for x in lineages),
        "offline": len(instead),
        "requests": sum(int(x.get("attempts", 0)) for x in lineages),
        "reasons": dict(Counter(str(x.get("why")) for x in instead).most_common()),
    }


def _portions(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    portion: list[dict[str, Any]] = []
    for row in rows:
        portion.append(row)
        if len(portion) == _PORTION:
            yield portion
            portion = []
    if portion:
        yield portion


def _append(path: Path, tasks: list[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(dumps({"portion": tasks}) + "\n")


def _read(path: Path, fingerprint: str) -> list[dict[str, Any]]:
    """Return the tasks that are kept for a call; a torn last line is a portion that is written again."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    whole, torn = lines[:-1], lines[-1]
    header = None
    with contextlib.suppress(ValueError):
        header = json.loads(whole[0]) if whole else None
    if not isinstance(header, dict) or header.get("tasks") != VERSION or header.get("fingerprint") != fingerprint:
        return []
    if torn:
        path.write_bytes(b"\n".join(whole) + b"\n")
    return [task for line in whole[1:] for task in loads(line.decode("utf-8"))["portion"]]
