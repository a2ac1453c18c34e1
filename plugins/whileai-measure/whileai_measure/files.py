"""Rows of a file, through whichever installed source recognises it, else as JSON lines of rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import ReadProblem
from whileai_measure.columns import safe

__all__ = ["read_columns", "read_file"]

HEAD = 65_536  # bytes a source may look at to recognise a file


def read_file(path: Path, unread: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file.

    Rows of this schema are read by the kernel. For other files every registered source is asked how sure it is that the
    file is its own, and the surest reads it; where none knows the file it is read as JSON lines of rows. A record that
    cannot be read costs that record alone.

    Args:
        path: An existing file.
        unread: Is given one sentence per record that could not be read; without it these are one warning.

    Raises:
        ParameterError: There is no such file.
        RowError: The file is not what it looks like.
    """
    from whileai_kernel.registry import make
    from whileai_kernel.rowio import read_rows

    source, _ = _recognise(path)
    problems: list[ReadProblem] = []
    yield from (
        make("sources", source).read(path, on_problem=problems.append) if source else read_rows(path, problems.append)
    )
    _report(path, problems, unread)


def read_columns(
    path: Path, fields: Sequence[str], unread: list[str] | None = None
) -> Iterator[dict[str, list[Any]] | list[dict[str, Any]]]:
    """Yield the rows of a file in blocks: as columns of some fields where it is JSON lines of rows, else as rows.

    Args:
        path: An existing file.
        fields: Top-level fields to keep.
        unread: As in `read_file`.

    Raises:
        ParameterError: There is no such file.
        RowError: The file is not what it looks like.
    """
    from itertools import islice

    from whileai_measure.lines import ROWS, columns_of

    source, packed = _recognise(path)
    if source or packed:
        stream = read_file(path, unread)
        while block := list(islice(stream, ROWS)):
            yield block
        return
    problems: list[ReadProblem] = []
    yield from columns_of(path, fields, problems.append)
    _report(path, problems, unread)


def _recognise(path: Path) -> tuple[str, bool]:
    """Return the id of the source that reads a file (empty: it holds rows), and whether it is compressed."""
    from whileai_kernel.registry import entries, make

    if not path.is_file():
        raise ParameterError(
            f"there is no file {path}",
            why="a path to rows must name a file" if not path.exists() else "it is not a file",
            fix="check the path and the working directory",
        )
    with path.open("rb") as file:
        head = file.read(HEAD)
    best: tuple[float, str] = (0.0, "")
    if not _own(head):
        for entry in entries("sources"):
            sure = float(make("sources", entry.id).sniff(path, head))
            if sure > best[0]:
                best = (sure, entry.id)
    return best[1], head[:2] == b"\x1f\x8b"


def _report(path: Path, problems: Sequence[ReadProblem], unread: list[str] | None) -> None:
    if unread is not None:
        unread += [safe(str(problem), 200) for problem in problems]
    elif problems:
        warnings.warn(
            f"{path.name}: {len(problems)} records could not be read and are left out, the first: {problems[0]}",
            stacklevel=3,
        )


def _own(head: bytes) -> bool:
    """Return whether a file begins with a row that says its schema version."""
    line = head.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n", 1)[0]
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(b'{"schema_version":')  # a first row longer than the head
    return isinstance(row, dict) and isinstance(row.get("schema_version"), int)
