r"""Rows in and out of JSONL: streaming, atomic, versioned, and never silently changed.

| input | what happens |
| --- | --- |
| U+2028, U+2029, U+0085 | written as `\u2028`..., so no reader splits a row at them |
| a lone surrogate | written as `\ud83d`, read back as the same lone surrogate |
| a surrogate pair as two code points | refused: JSON would read it back as one character |
| NaN, infinities, and `1e999` in a file | refused, row and path named |
| keys that are not text, objects that are not JSON | refused, row and path named |
| integers beyond 64 bits | written and read exactly, up to Python's limit of 4,300 digits; beyond it refused |
| tuples | written as arrays, read back as lists |
| keys that this version does not know | kept |
| a row without `schema_version` | read as the current version |
| an older `schema_version` | migrated by a chain of small functions |
| a newer one | refused; the error names the upgrade |

Files are UTF-8 with `\n` line ends; a path that ends in `.gz` is compressed with a fixed header, so equal rows
give equal bytes.

Example:
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> write_rows(path, [{"task_id": "t", "prompt": "a\u2028b", "reward": None}])
    1
    >>> next(iter(read_rows(path)))["prompt"] == "a\u2028b"
    True
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from whileai_kernel.encoding import prepared
from whileai_kernel.errors import FileThereError, RowError, SchemaVersionError, WhileaiError
from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rows import SCHEMA_VERSION, Row

__all__ = [
    "MIGRATIONS",
    "atomic_file",
    "check_json",
    "dumps",
    "dumps_row",
    "loads",
    "migrate",
    "read_rows",
    "write_rows",
]

Migration = Callable[[Row], Row]
MIGRATIONS: dict[int, Migration] = {}
"""From version n to n + 1. Empty while there is one version."""

_encode = prepared(json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")))
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PAIR_TEXT = (
    "holds a surrogate pair as two code points; decode it with s.encode('utf-16', 'surrogatepass').decode('utf-16')"
)


def dumps(value: Any) -> str:
    """Return `value` as one line of JSON, exact and without raw line separators.

    Raises:
        RowError: The value cannot be written exactly; `field` is the path inside the value.
    """
    try:
        line = _encode(value)
        _check_keys(value)
    except (TypeError, ValueError, RecursionError) as err:
        check_json(value)
        raise RowError(f"cannot be written as JSON: {err}", fix="use JSON values only") from err
    if line.isascii():
        return line
    for char in "\u0085\u2028\u2029":
        line = line.replace(char, f"\\u{ord(char):04x}")
    try:
        line.encode()
    except UnicodeEncodeError:
        check_json(value)
        line = _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", line)
    return line


def _check_keys(value: Any) -> None:
    # json writes the keys 1, True and None as "1", "true", "null": a silent change. str.join refuses them, at C speed.
    # It runs after the encoder, so the value has an end.
    stack = [value]
    for item in stack:
        if isinstance(item, dict):
            "".join(item)
            item = item.values()
        elif not isinstance(item, list | tuple):
            continue
        for inner in item:
            if type(inner) not in _SCALARS:
                stack.append(inner)


def check_json(value: Any, path: str = "") -> None:
    """Raise for the first thing in `value` that JSON cannot hold exactly, naming its path.

    Raises:
        RowError: With `field` set to the path, for example `messages[2].content`.
    """
    stack: list[tuple[str, Any, frozenset[int]]] = [(path, value, frozenset())]
    while stack:
        where, item, parents = stack.pop()
        problem = _problem(item, parents)
        if problem:
            raise RowError(problem, fix="use JSON values only, or drop the field", field=where or None)
        if isinstance(item, dict):
            inside = [(f"{where}.{key}" if where else key, inner) for key, inner in item.items()]
        elif isinstance(item, list | tuple):
            inside = [(f"{where}[{i}]", inner) for i, inner in enumerate(item)]
        else:
            continue
        stack.extend((place, inner, parents | {id(item)}) for place, inner in reversed(inside))


def _problem(item: Any, parents: frozenset[int]) -> str:
    if isinstance(item, str):
        return _PAIR_TEXT if _PAIR.search(item) else ""
    if isinstance(item, float):
        return "" if math.isfinite(item) else f"{item} is not a JSON number"
    if isinstance(item, int):
        try:
            str(int(item))
        except ValueError:
            return f"an integer of {item.bit_length()} bits has more digits than Python writes"
        return ""
    if isinstance(item, dict | list | tuple):
        if id(item) in parents:
            return "the value contains itself"
        if len(parents) > 900:
            return "nested deeper than 900"
        for key in item if isinstance(item, dict) else ():
            if not isinstance(key, str):
                return f"key {key!r:.80} is not text"
            if _PAIR.search(key):
                return f"key {key!r:.80} {_PAIR_TEXT}"
        return ""
    return "" if item is None else f"{type(item).__name__} is not a JSON value"


def dumps_row(row: Mapping[str, Any], position: int | None = None) -> str:
    """Return a row as one line of JSON (without the line end), stamped with the schema version.

    Args:
        row: A flat row.
        position: Position named in errors.

    Raises:
        RowError: As `dumps`.
    """
    if not isinstance(row, Mapping):
        raise RowError(f"a row must be a mapping, not {type(row).__name__}", fix="pass dicts", row=position)
    if "schema_version" not in row:
        row = {"schema_version": SCHEMA_VERSION, **row}
    try:
        return dumps(row if isinstance(row, dict) else dict(row))
    except RowError as err:
        raise err.at(row=position) from None


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(f"number {text[:40]} is too large for a float")
    return number


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


_decode = json.JSONDecoder(parse_constant=_constant, parse_float=_finite).decode


def loads(line: str) -> Any:
    """Read one line of JSON; NaN, infinities and numbers that overflow are refused.

    Raises:
        ValueError: The line is not JSON.
    """
    try:
        return _decode(line)
    except RecursionError as err:
        raise ValueError("nested too deeply") from err


def migrate(row: Row, *, version: int = SCHEMA_VERSION, migrations: Mapping[int, Migration] | None = None) -> Row:
    """Bring a row to `version`.

    Raises:
        SchemaVersionError: The row is newer than `version`, or its version is no positive integer.
    """
    steps = MIGRATIONS if migrations is None else migrations
    found = row.get("schema_version", version)
    if found == version and type(found) is int:
        return row
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise SchemaVersionError(
            f"schema_version {found!r:.40} is no version", fix=f"use {version}", field="schema_version"
        )
    if found > version:
        raise SchemaVersionError(
            f"the row has schema version {found}, this kernel reads up to {version}",
            why="it was written by a newer whileai-kernel",
            fix="pip install -U whileai-kernel",
            field="schema_version",
        )
    for step in range(found, version):
        row = {**steps[step](row), "schema_version": step + 1}
    return row


def read_rows(
    source: str | os.PathLike[str] | Iterable[str], on_problem: Callable[[ReadProblem], None] | None = None
) -> Iterator[Row]:
    """Read rows one at a time.

    Args:
        source: Path of a JSONL file (`.gz` too), or an iterable of lines.
        on_problem: Called for each line that cannot be read, which then costs that line alone. Without it the
            first such line raises.

    Yields:
        Rows of the current schema version.

    Raises:
        RowError: A line is not a JSON object (the error names file and line), or a compressed file is damaged.
        SchemaVersionError: A row is newer than this kernel.
    """
    if not isinstance(source, str | os.PathLike):
        yield from _read_lines(source, "<lines>", on_problem)
        return
    path = Path(source)
    with path.open("rb") as raw:
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        lines = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
        try:
            yield from _read_lines(lines, str(path), on_problem)
        except (EOFError, gzip.BadGzipFile, zlib.error) as err:
            if on_problem is None:
                raise RowError(f"{path} is damaged", why=str(err), fix="write or copy it again") from err
            on_problem(ReadProblem(str(path), "end", f"the compressed file is damaged: {err}"))


def _read_lines(
    lines: Iterable[str | bytes], name: str, on_problem: Callable[[ReadProblem], None] | None
) -> Iterator[Row]:
    # Bytes are split at \n alone and decoded line by line, so what is not UTF-8 costs its line too.
    for number, line in enumerate(lines, 1):
        try:
            text = (line.decode() if isinstance(line, bytes) else line).strip(" \t\r\n")
            if number == 1:
                text = text.removeprefix("\ufeff")
            if not text:
                continue
            row = loads(text)
            if not isinstance(row, dict):
                raise ValueError(f"a row is a JSON object, not {type(row).__name__}")
            row = migrate(row)
        except ValueError as err:  # SchemaVersionError is one too
            what = err.what if isinstance(err, WhileaiError) else str(err)
            if on_problem is not None:
                on_problem(ReadProblem(name, f"line {number}", what))
                continue
            kind = type(err) if isinstance(err, RowError) else RowError
            why, fix = (err.why, err.fix) if isinstance(err, WhileaiError) else ("", "mend or remove the line")
            raise kind(f"{name} line {number}: {what}", why, fix) from err
        yield row


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Write a file so that it is there whole or not at all: a temporary file beside it, synced, then renamed.

    A symbolic link stays one: the file that it points to is replaced.

    Raises:
        FileThereError: The file exists and `overwrite` is false.
    """
    target = Path(os.path.realpath(path))
    if not overwrite and target.exists():
        raise FileThereError(f"{path} exists", "nothing is replaced without being asked", "pass overwrite=True")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name[:48]}.{secrets.token_hex(8)}.tmp")
    try:
        with part.open("xb", buffering=1 << 20) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_rows(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]], *, overwrite: bool = True) -> int:
    """Write rows as JSONL, whole or not at all, in bounded memory.

    Args:
        path: Where to; `.gz` is compressed.
        rows: Rows, or any iterable of them.
        overwrite: Replace a file that exists.

    Returns:
        Number of rows written.

    Raises:
        RowError: A row cannot be written exactly; names its position and field. The old file stays.
        FileThereError: The file exists and `overwrite` is false.
    """
    count = 0
    with atomic_file(path, overwrite=overwrite) as raw:
        packed = str(path).endswith(".gz")
        out = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if packed else raw
        for row in rows:
            out.write(f"{dumps_row(row, count)}\n".encode())
            count += 1
        if packed:
            out.close()
    return count
