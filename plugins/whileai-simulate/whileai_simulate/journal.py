"""The journal of a run: every finished rollout is on disk at once, and the same call resumes.

A JSONL file: a header that says which call it belongs to, each task once, and one line per rollout as it lands. One
process owns it (an advisory lock that dies with the process). A torn last line, which a kill in the middle of a write
leaves, is cut off and reported. Task parts are stored once, so a long policy does not fill the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from whileai_kernel.errors import WhileaiError
from whileai_kernel.rowio import dumps, loads

__all__ = ["TASK_KEYS", "Journal", "JournalError"]

VERSION = 1
TASK_KEYS = ("prompt", "system_prompt", "tools", "axes", "world", "split", "lineage", "privileged")
"""Keys of a row that belong to its task and are stored once per task."""


class JournalError(WhileaiError, OSError):
    """The journal belongs to another call or process, or cannot be read or written."""


class Journal:
    """An open journal.

    Args:
        path: The file; made when absent.
        fingerprint: Hash of everything that shapes the rows of the call.
        call: What the call was, for people and for the error that refuses another call.
        shared: Keys that all tasks share (system prompt, tools), stored in the header alone.

    Raises:
        JournalError: Another process has it open, it belongs to another call, or it is no journal.
    """

    def __init__(self, path: Path, fingerprint: str, call: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self.path = path
        self.recovered_bytes = 0
        self.done: dict[tuple[int, int], tuple[int, int]] = {}
        self.tasks: dict[int, tuple[int, int]] = {}
        self._shared = dict(shared)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("a+b", buffering=0)
        try:
            _lock(self._file, path)
            self._open(fingerprint, call)
        except BaseException:
            self._file.close()
            raise
        self._end = self._file.seek(0, os.SEEK_END)

    def _open(self, fingerprint: str, call: Mapping[str, Any]) -> None:
        self._file.seek(0)
        header_line = self._file.readline()
        if not header_line.endswith(b"\n"):
            self.recovered_bytes = len(header_line)
            self._file.truncate(0)
            self._write({"journal": VERSION, "fingerprint": fingerprint, "call": dict(call), "shared": self._shared})
            return
        try:
            header = json.loads(header_line)
        except ValueError:
            header = None
        if not isinstance(header, dict) or header.get("journal") != VERSION:
            raise JournalError(
                f"{self.path.name} is no journal of this version", why="its first line is no journal header",
                fix="give another path for checkpoint=, or move the file away",
            )  # fmt: skip
        if header.get("fingerprint") != fingerprint:
            before, now = header.get("call", {}), json.loads(json.dumps(dict(call)))
            differs = [k for k in sorted({*before, *now}) if before.get(k) != now.get(k)]
            raise JournalError(
                f"{self.path.name} belongs to another call",
                why=f"different: {', '.join(differs) or 'the agent or the tools'}",
                fix="repeat the call exactly to resume, or give another output= or checkpoint=",
            )
        self._index(len(header_line))

    def _index(self, offset: int) -> None:
        """Remember where each line stands; cut off a torn last one."""
        self._file.seek(offset)
        for line in self._file:
            entry = None
            if line.endswith(b"\n"):
                with contextlib.suppress(ValueError):
                    entry = loads(line.decode("utf-8"))
            if not isinstance(entry, dict) or "p" not in entry:
                if self._file.read(1):
                    raise JournalError(
                        f"{self.path.name} is damaged at byte {offset}", why="a line in the middle cannot be read",
                        fix="restore the file from a copy, or give another path",
                    )  # fmt: skip
                self.recovered_bytes = len(line)
                self._file.truncate(offset)
                return
            where = (offset, len(line))
            if "task" in entry:
                self.tasks[entry["p"]] = where
            else:
                self.done[(entry["p"], entry["i"])] = where
            offset += len(line)

    def _write(self, entry: Mapping[str, Any]) -> tuple[int, int]:
        data = (dumps(dict(entry)) + "\n").encode("utf-8")
        start = self._file.seek(0, os.SEEK_END)
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError as err:
            with contextlib.suppress(OSError):
                self._file.truncate(start)  # half a line would look like a damaged file
            raise JournalError(
                f"cannot write {self.path.name}: {err.strerror or err}", why="finished rollouts before it are safe",
                fix="make room, then repeat the call to resume",
            ) from err  # fmt: skip
        return start, len(data)

    def add(self, position: int, index: int, row: Mapping[str, Any]) -> None:
        """Append a finished rollout; on return it is with the operating system.

        Raises:
            JournalError: It cannot be written (the disk is full).
        """
        if position not in self.tasks:
            task = {k: row[k] for k in TASK_KEYS if k in row and k not in self._shared}
            self.tasks[position] = self._write({"p": position, "task": task})
        part = {k: v for k, v in row.items() if k not in TASK_KEYS}
        self.done[(position, index)] = self._write({"p": position, "i": index, "row": part})

    def _read(self, where: tuple[int, int]) -> dict[str, Any]:
        self._file.seek(where[0])
        entry: dict[str, Any] = loads(self._file.read(where[1]).decode("utf-8"))
        return entry

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all finished rollouts as flat rows, in the order of tasks and rollouts."""
        return self.rows_at(sorted(self.done))

    def rows_at(self, keys: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
        """Yield some finished rollouts, by position and index."""
        from whileai_kernel.rows import ordered

        task: dict[str, Any] = {}
        current = -1
        for position, index in keys:
            if position != current:
                task, current = self._read(self.tasks[position])["task"], position
            yield ordered({**self._read(self.done[(position, index)])["row"], **self._shared, **task})

    def close(self, *, remove: bool = False) -> None:
        """Close the file and give the lock back.

        Args:
            remove: Also delete it: its rows stand in the output.
        """
        if remove:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _lock(file: IO[bytes], path: Path) -> None:
    """Take the advisory lock of the file; it is given back when the process ends, however it ends."""
    try:
        if os.name == "nt":  # pragma: no cover - exercised on Windows only
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        raise JournalError(
            f"{path.name} is in use by another process", why="one process at a time may write a journal",
            fix="wait for it, or give another output= or checkpoint=",
        ) from err  # fmt: skip
