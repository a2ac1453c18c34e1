"""Memory of all processes of a candidate together: a limit on each process does not bound their sum.

Read from /proc by the monitor, outside of the candidate's reach. Anonymous and shared memory count; files do not.
"""

from __future__ import annotations

import contextlib
import os

__all__ = ["memory_kib", "processes_below", "processes_here"]


def processes_here() -> list[int]:
    """Return every process that the mounted /proc shows: those of the candidate's own process namespace."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - no pathlib here
    except OSError:
        return []


def processes_below(pid: int) -> list[int]:
    """Return every descendant of a process, where there is no process namespace."""
    found: list[int] = []
    stack = [pid]
    while stack:
        for child in children(stack.pop()):
            found.append(child)
            stack.append(child)
    return found


def children(pid: int) -> list[int]:
    """Return the children of a process that any of its threads has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - no pathlib here
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
                found += [int(p) for p in file.read().split()]
    return found


def memory_kib(pids: list[int], limit: int) -> int:
    """Return the memory of processes together in KiB.

    Pages that a fork shares are counted once for each process first, and divided among them (proportional size) only
    where that sum is above the limit, because the division costs a walk over all pages.

    Args:
        pids: The processes; those that have ended count nothing.
        limit: KiB from which the exact figure matters.
    """
    total = sum(_fields(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:")) or 0 for pid in pids)
    if total <= limit:
        return total
    exact = 0
    for pid in pids:
        shared = _fields(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))
        if shared is None:  # not readable for an ordinary user
            shared = _fields(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))
        exact += shared or 0
    return exact


def _fields(path: str, names: tuple[str, ...]) -> int | None:
    """Return the sum of lines `Name: 12 kB`, or `None` where the file cannot be read or has none of them."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib here
            lines = file.read().decode("ascii", "replace").split("\n")
    except OSError:
        return None
    values = [int(line.split()[1]) for line in lines if line.startswith(names)]
    return sum(values) if values else None
