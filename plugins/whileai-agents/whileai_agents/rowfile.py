"""A JSONL file of rows that grow: always one line per row, at every moment.

A row that has grown is appended as a new line, and then its old line is overwritten with spaces, which readers of JSONL
skip. So a kill loses at most what was in flight, no second file and no repair step is needed, and whoever reads the
file sees each conversation once. A clean end removes the blank lines. An existing file is continued: its rows stay.

Example:
    >>> import tempfile, pathlib
    >>> file = RowFile(pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl")
    >>> first = file.put({"rollout_id": "a", "turns": 1}); second = file.put({"rollout_id": "a", "turns": 2}, first)
    >>> file.close(); [row["turns"] for row in file.read()]
    [2]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from whileai_kernel.errors import FileThereError, RowError
from whileai_kernel.rowio import atomic_file, dumps, loads, read_rows

__all__ = ["RowFile"]

Place = tuple[int, int]


class RowFile:
    """An open file of rows.

    Args:
        path: The file; made when absent, continued when present.

    Raises:
        FileThereError: Another process writes it.
        RowError: It is no JSONL file of rows.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch(exist_ok=True)
        self._file: IO[bytes] = self.path.open("r+b", buffering=0)
        self.recovered_bytes = 0
        self._blank = False
        try:
            _lock(self._file, self.path)
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        """Cut off a torn last line, and blank what a kill left twice."""
        places: dict[str, Place] = {}
        self.tasks: dict[str, int] = {}
        offset = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    self.recovered_bytes = len(line)
                    self._file.truncate(offset)
                    break
                if line.strip():
                    self._index(line, (offset, len(line)), places)
                else:
                    self._blank = True
                offset += len(line)
        self._end = offset

    def _index(self, line: bytes, place: Place, places: dict[str, Place]) -> None:
        try:
            row = loads(line.decode("utf-8"))
        except ValueError as err:
            raise RowError(
                f"{self.path.name} is no file of rows", why=f"byte {place[0]}: {err}", fix="give another path"
            ) from err
        if not isinstance(row, dict):
            raise RowError(f"{self.path.name} is no file of rows", why=f"byte {place[0]}", fix="give another path")
        rollout_id = str(row.get("rollout_id") or "")
        if rollout_id in places:  # a kill between appending the new line and blanking the old one
            self._erase(places[rollout_id])
        else:
            task_id = str(row.get("task_id") or "")
            self.tasks[task_id] = self.tasks.get(task_id, 0) + 1
        if rollout_id:
            places[rollout_id] = place

    def put(self, row: Mapping[str, Any], old: Place | None = None) -> Place:
        """Write a row, in place of an older version of it; return where it stands.

        Raises:
            RowError: It cannot be written as JSON.
            OSError: The disk is full; the older version is still there.
        """
        data = (dumps(dict(row)) + "\n").encode("utf-8")
        start = self._file.seek(self._end)
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) or 0 :]
        except OSError:
            self._file.truncate(start)
            raise
        self._end += len(data)
        if old is not None:
            self._erase(old)
        return start, len(data)

    def _erase(self, place: Place) -> None:
        self._blank = True
        self._file.seek(place[0])
        self._file.write(b" " * (place[1] - 1))

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as they stand in the file."""
        return read_rows(self.path)

    def close(self) -> None:
        """Remove the blank lines and close; safe to call twice."""
        if self._file.closed:
            return
        if self._blank:
            with self.path.open("rb") as lines, atomic_file(self.path) as out:
                out.writelines(line for line in lines if line.strip())
        self._file.close()


def _lock(file: IO[bytes], path: Path) -> None:
    """Take an advisory lock that dies with the process, where the system has one."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        raise FileThereError(
            f"{path.name} is being written by another process", why="one proxy owns a file", fix="give another path"
        ) from err
