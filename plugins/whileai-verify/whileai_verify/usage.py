"""Memory of all processes of a candidate together: a limit on each process does not bound their sum.

Read from /proc by the monitor, outside of the candidate's reach. Anonymous and shared memory count; files do not.
"""

from __future__ import annotations

import contextlib
import os

__all__ = ["children", "memory_kib", "open_proc", "processes_below"]

_PROC: list[int] = []


def open_proc() -> None:
    """Keep /proc of this process namespace open: a private root has none, or one of another namespace."""
    with contextlib.suppress(OSError):
        _PROC.append(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))


def _read(path: str) -> str | None:
    """Return a file below /proc, `None` where there is none or it may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY, dir_fd=_PROC[0])
    except (OSError, IndexError):
        return None
    try:
        parts = []
        while part := os.read(fd, 65_536):
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(fd)
    return b"".join(parts).decode("ascii", "replace")


def processes_below(pid: int) -> list[int]:
    """Return every descendant of a process."""
    found: list[int] = []
    stack = [pid]
    while stack:
        for child in children(stack.pop()):
            found.append(child)
            stack.append(child)
    return found


def children(pid: int) -> list[int]:
    """Return the children of a process that any of its threads has started."""
    tasks: list[str] = []
    with contextlib.suppress(OSError, IndexError):
        fd = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=_PROC[0])
        try:
            tasks = os.listdir(fd)  # noqa: PTH208 - a path cannot be relative to a descriptor
        finally:
            os.close(fd)
    return [int(p) for task in tasks for p in (_read(f"{pid}/task/{task}/children") or "").split()]


def memory_kib(pids: list[int], limit: int) -> int:
    """Return the memory of processes together in KiB.

    Pages that a fork shares are counted once for each process first, and divided among them (proportional size) only
    where that sum is above the limit, because the division costs a walk over all pages.

    Args:
        pids: The processes; those that have ended count nothing.
        limit: KiB from which the exact figure matters.
    """
    total = sum(_fields(f"{pid}/status", ("RssAnon:", "RssShmem:")) or 0 for pid in pids)
    if total <= limit:
        return total
    exact = 0
    for pid in pids:
        shared = _fields(f"{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))
        if shared is None:  # not readable for an ordinary user
            shared = _fields(f"{pid}/status", ("RssAnon:", "RssShmem:"))
        exact += shared or 0
    return exact


def _fields(path: str, names: tuple[str, ...]) -> int | None:
    """Return the sum of lines `Name: 12 kB`, or `None` where the file cannot be read or has none of them."""
    lines = (_read(path) or "").split("\n")
    values = [int(line.split()[1]) for line in lines if line.startswith(names)]
    return sum(values) if values else None
