"""Rows of a file, through whichever installed source recognises it, else as JSON lines of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError

__all__ = ["read_file"]

HEAD = 65_536  # bytes a source may look at to recognise a file


def read_file(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file.

    Every registered source is asked how sure it is that the file is its own; the surest reads it. Records that it
    cannot read are reported as one warning with their number and the first of them. Without a source that knows the
    file it is read as JSON lines of rows.

    Args:
        path: An existing file.

    Raises:
        ParameterError: There is no such file.
        RowError: The file is not what it looks like.
    """
    from whileai_kernel.registry import entries, make
    from whileai_kernel.rowio import read_rows

    if not path.is_file():
        raise ParameterError(
            f"there is no file {path}",
            why="a path to rows must name a file" if not path.exists() else "it is not a file",
            fix="check the path and the working directory",
        )
    with path.open("rb") as file:
        head = file.read(HEAD)
    best: tuple[float, str] = (0.0, "")
    for entry in entries("sources"):
        sure = float(make("sources", entry.id).sniff(path, head))
        if sure > best[0]:
            best = (sure, entry.id)
    if not best[1]:
        yield from read_rows(path)
        return
    problems: list[Any] = []
    yield from make("sources", best[1]).read(path, on_problem=problems.append)
    if problems:
        warnings.warn(
            f"{path.name}: {len(problems)} records could not be read and are left out, the first: {problems[0]}",
            stacklevel=2,
        )
