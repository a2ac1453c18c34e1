"""JSON lines as columns: the fields that a statistic reads, block by block, and nothing else kept.

A million rows are read in one pass. Lines are parsed by `orjson` where it is installed, else by `json`, some hundred at
a time; of each row only the named fields are kept, so that its other texts are freed while they are still in the cache.
Any line that the fast parser refuses, and any whose numbers it might read otherwise, is read by the kernel, so that
values, errors and line numbers are those of `read_rows`.

Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> _ = path.write_text('{"task_id": "a", "reward": 1}\\n{broken\\n{"task_id": "b"}\\n')
    >>> problems = []
    >>> next(columns_of(path, ["task_id", "reward"], problems.append))
    {'task_id': ['a', 'b'], 'reward': [1, None]}
    >>> problems[0].where
    'line 2'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rowio import loads, read_rows
from whileai_kernel.rows import SCHEMA_VERSION

__all__ = ["columns_of"]

CHUNK = 1 << 16  # bytes of lines parsed at once: their rows stay in the cache
ROWS, BYTES = 4_000, 1 << 25  # a block ends at either
DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
LONG = b"0" * 19  # integers of 20 digits and more may exceed 64 bits, where orjson reads a float
Load = Callable[[bytes], Any]


def columns_of(
    path: Path, fields: Sequence[str], on_problem: Callable[[ReadProblem], None]
) -> Iterator[dict[str, list[Any]]]:
    """Yield blocks of the rows of a file as one list per field, `None` where a row lacks it.

    Args:
        path: A file of JSON lines, not compressed.
        fields: Top-level fields to keep, at least one.
        on_problem: Called for each line that cannot be read, which then costs that line alone.
    """
    load, exact = _loader()
    block: dict[str, list[Any]] = {name: [] for name in fields}
    first, held = 1, 0
    with path.open("rb") as file:
        while lines := file.readlines(CHUNK):
            joined = b"".join(lines)
            rows = None
            if exact or LONG not in joined.translate(DIGITS):
                rows = _all_at_once(lines, load)
            if rows is None:
                rows = [
                    row
                    for number, line in enumerate(lines, first)
                    for row in _one(line, number, load, exact, str(path), on_problem)
                ]
            for name, column in block.items():
                column += _field(rows, name)
            first, held = first + len(lines), held + len(joined)
            if held >= BYTES or len(block[fields[0]]) >= ROWS:
                yield block
                block, held = {name: [] for name in fields}, 0
    if block[fields[0]]:
        yield block


def _loader() -> tuple[Load, bool]:
    """Return the fastest parser there is, and whether it reads every number as the kernel does."""
    try:
        import orjson
    except ImportError:
        return lambda line: loads(line.decode()), True
    return orjson.loads, False


def _all_at_once(lines: Sequence[bytes], load: Load) -> list[dict[str, Any]] | None:
    """Return the rows of lines that are all rows of this version; `None` where one is something else."""
    try:
        rows = list(map(load, lines))
    except ValueError:
        return None
    return rows if all(map(_current, rows)) else None


def _current(row: Any) -> bool:
    if type(row) is not dict:
        return False
    version = row.get("schema_version", SCHEMA_VERSION)
    return type(version) is int and version == SCHEMA_VERSION


def _one(
    line: bytes, number: int, load: Load, exact: bool, path: str, on_problem: Callable[[ReadProblem], None]
) -> list[dict[str, Any]]:
    """Return the row of a line, as a list; empty where it has none."""
    if exact or LONG not in line.translate(DIGITS):
        try:
            row = load(line)
        except ValueError:
            row = None  # the kernel says why, or reads what the fast parser does not
        if _current(row):
            return [row]
    found: list[ReadProblem] = []
    try:
        text = line.decode()
    except UnicodeDecodeError as err:
        on_problem(ReadProblem(path, f"line {number}", str(err)))
        return []
    rows = list(read_rows([text] if number == 1 else ["", text], found.append))  # line 1 alone may begin with a mark
    for problem in found:
        on_problem(ReadProblem(path, f"line {number}", problem.message))
    return rows


def _field(rows: Sequence[dict[str, Any]], name: str) -> list[Any]:
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]
