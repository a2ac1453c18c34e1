"""The journal of a run: every finished rollout is on disk at once, and the same call resumes.

A JSONL file: a header that says which call it belongs to, each task once, and one line per rollout as it lands. One
process owns it (an advisory lock that dies with the process). A torn last line, which a kill in the middle of a write
leaves, is cut off and reported. Task parts are stored once, so a long policy does not fill the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from whileai_kernel.errors import WhileaiError
from whileai_kernel.rowio import atomic_file, dumps, loads

__all__ = ["TASK_KEYS", "Journal", "JournalError"]

VERSION = 1
_BEGINS = b'{"journal":%d,' % VERSION
_HEADER_MOST = 1 << 28
"""Bytes of a first line beyond which a file is certainly no journal."""
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
        width: Most rollouts of a task.

    Attributes:
        recovered_bytes: Length of a torn last line that was cut off.
        finished: What `finish` noted, when the run is over and its rows stand elsewhere, else `None`.

    Raises:
        JournalError: Another process has it open, it belongs to another call, or it is no journal.
    """

    def __init__(
        self, path: Path, fingerprint: str, call: Mapping[str, Any], shared: Mapping[str, Any], width: int
    ) -> None:
        self.path = path
        self.recovered_bytes = 0
        self.finished: dict[str, Any] | None = None
        self._width = width
        self._done = array("q")  # place of each rollout in the file, eight bytes each
        self._tasks = array("q")
        self._shared = dict(shared)
        if path.exists() and not path.is_file():
            raise JournalError(
                f"{path} is no file", why="a journal is read back, which a device or a pipe cannot be",
                fix="give the path of a file for checkpoint=",
            )  # fmt: skip
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        except OSError as err:
            raise JournalError(
                f"cannot open {path} for writing: {err.strerror or err}", why="finished rollouts are kept there",
                fix="give output= or checkpoint= in a directory that can be written",
            ) from err  # fmt: skip
        # Reading has a handle of its own: without a buffer every byte of a line would be a system call.
        self._reader: IO[bytes] = path.open("rb")
        try:
            _lock(self._file, path)
            self._open(fingerprint, call)
        except BaseException:
            self.close()
            raise

    def _open(self, fingerprint: str, call: Mapping[str, Any]) -> None:
        header_line = self._reader.readline(_HEADER_MOST)
        if not header_line.endswith(b"\n") and _is_begun(header_line):
            self.recovered_bytes = len(header_line)
            self._cut(0)
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
        self._reader.seek(offset)
        while line := self._reader.readline():
            entry: Any = None
            if line.endswith(b"\n"):
                with contextlib.suppress(ValueError):
                    entry = loads(line.decode("utf-8"))
            if isinstance(entry, dict) and "finished" in entry:
                self.finished = entry["finished"]
                return
            if not self._is_entry(entry):
                if self._reader.read(1):
                    raise JournalError(
                        f"{self.path.name} is damaged at byte {offset}", why="a line in the middle cannot be read",
                        fix="restore the file from a copy, or give another path",
                    )  # fmt: skip
                self.recovered_bytes = len(line)
                self._cut(offset)
                return
            if "task" in entry:
                _put(self._tasks, entry["p"], offset)
            elif "i" in entry:
                _put(self._done, entry["p"] * self._width + entry["i"], offset)
            offset += len(line)

    def _is_entry(self, entry: Any) -> bool:
        """Whether a line says what a journal says: the place of a task, or of a rollout of it."""
        if not isinstance(entry, dict):
            return False
        places = [entry.get("p"), entry.get("i", 0)]
        fine = all(type(n) is int and n >= 0 for n in places) and places[1] < self._width
        return fine and ("task" in entry or "row" in entry)

    def _cut(self, length: int) -> None:
        self._file.truncate(length)
        self._reader.seek(0, os.SEEK_END)  # what was read ahead is gone

    def _write(self, entry: Mapping[str, Any]) -> int:
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
        return start

    def add(self, position: int, index: int, row: Mapping[str, Any]) -> None:
        """Append a finished rollout; on return it is with the operating system.

        Raises:
            JournalError: It cannot be written (the disk is full).
        """
        if _at(self._tasks, position) < 0:
            task = {k: row[k] for k in TASK_KEYS if k in row and k not in self._shared}
            _put(self._tasks, position, self._write({"p": position, "task": task}))
        part = {k: v for k, v in row.items() if k not in TASK_KEYS}
        where = self._write({"p": position, "i": index, "row": part})
        _put(self._done, position * self._width + index, where)

    def has(self, position: int, index: int) -> bool:
        """Whether a rollout is in the journal."""
        return _at(self._done, position * self._width + index) >= 0

    def _read(self, where: int) -> dict[str, Any]:
        self._reader.seek(where)
        entry: dict[str, Any] = loads(self._reader.readline().decode("utf-8"))
        return entry

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all finished rollouts as flat rows, in the order of tasks and rollouts."""
        return self.rows_at(divmod(key, self._width) for key, where in enumerate(self._done) if where >= 0)

    def rows_at(self, keys: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
        """Yield some finished rollouts, by position and index."""
        from whileai_kernel.rows import ordered

        task: dict[str, Any] = {}
        current = -1
        for position, index in keys:
            if position != current:
                task, current = self._read(self._tasks[position])["task"], position
            row = self._read(self._done[position * self._width + index])["row"]
            yield ordered({**row, **self._shared, **task})

    def finish(self, note: Mapping[str, Any]) -> None:
        """Let the journal of a run whose rows stand in its output shrink to a note, so that it can be recognised.

        Args:
            note: What to remember; found again in `finished`.
        """
        self._reader.seek(0)
        header = self._reader.readline()
        with atomic_file(self.path) as file:
            file.write(header + dumps({"finished": dict(note)}).encode() + b"\n")

    @staticmethod
    def forget(path: Path) -> None:
        """Remove the note of a finished run, whatever call it belongs to; a run that is not finished stays."""
        if path.exists():
            with path.open("rb") as file:
                file.readline()
                finished = file.readline().startswith(b'{"finished":')
            if finished:
                path.unlink()

    def restart(self) -> None:
        """Forget that the run was finished: its rows are gone, so it starts over."""
        self._reader.seek(0)
        header = self._reader.readline()
        self._cut(len(header))
        self.finished = None

    def close(self) -> None:
        """Close the file and give the lock back."""
        self._reader.close()
        self._file.close()


def _is_begun(line: bytes) -> bool:
    """Whether the first line of a file is that of a journal, cut off while it was written; nothing else is replaced."""
    return line.startswith(_BEGINS) or _BEGINS.startswith(line)


def _put(table: array[int], at: int, where: int) -> None:
    if at >= len(table):
        table.extend([-1] * (at + 1 - len(table)))
    table[at] = where


def _at(table: array[int], at: int) -> int:
    return table[at] if at < len(table) else -1


def _lock(file: IO[bytes], path: Path) -> None:
    """Take the advisory lock of the file; it is given back when the process ends, however it ends."""
    try:
        if os.name == "nt":  # pragma: no cover - exercised on Windows only
            import msvcrt

            file.seek(1 << 40)  # far behind the end: what is locked there cannot be read by anybody
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        raise JournalError(
            f"{path.name} is in use by another process", why="one process at a time may write a journal",
            fix="wait for it, or give another output= or checkpoint=",
        ) from err  # fmt: skip
