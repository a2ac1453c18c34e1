"""Files of recorded runs as JSON records: compression, encodings, and damage that costs one record only.

What is here: opening a file by what is in it (gzip, zstd, plain), the first bytes for detection, and one iterator
over the JSON records of a file, whether it is JSON Lines, one JSON array, one JSON object, or JSON objects one
after the other (indented or not). What is not here: what the records mean; that is each format's.

Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.jsonl"
    >>> _ = path.write_bytes(b'{"a": 1}\\n{broken\\n{"a": 2}\\n')
    >>> problems = []
    >>> [record for where, record in json_records(path, problems.append)], [p.where for p in problems]
    ([{'a': 1}, {'a': 2}], ['line 2'])
"""

from __future__ import annotations

import functools
import gzip
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from whileai_kernel.errors import MissingDependencyError
from whileai_kernel.protocols import ReadProblem
from whileai_traces.defaults import HEAD_BYTES, LINE_BYTES
from whileai_traces.documents import document_records
from whileai_traces.jsontext import DECODER, STRING_END, STRUCTURE, loads, split_array

__all__ = ["OnProblem", "first_records", "json_records", "loads", "open_bytes", "plain_head", "read_head", "suffix_of"]

OnProblem = Callable[[ReadProblem], None]
"""Receives every record that could not be read, or was read with a loss."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed: gzip and zstd are known by their first bytes, not by the name.

    Raises:
        MissingDependencyError: The file is zstd and neither Python 3.14 nor the package `zstandard` is there.
    """
    with path.open("rb") as raw:
        magic = raw.read(4)
    if magic.startswith(GZIP_MAGIC):
        return cast(IO[bytes], gzip.open(path, "rb"))
    if magic == ZSTD_MAGIC:
        return _open_zstd(path)
    return path.open("rb")


def _open_zstd(path: Path) -> IO[bytes]:
    return zstd_stream(path.open("rb"), str(path))


def zstd_stream(compressed: IO[bytes], what: str) -> IO[bytes]:
    """Return what a compressed stream holds, decompressed as it is read.

    Args:
        compressed: The stream.
        what: What it is, for the error.

    Raises:
        MissingDependencyError: Nothing here reads zstd.
    """
    if sys.version_info >= (3, 14):
        from compression import zstd

        return cast(IO[bytes], zstd.open(compressed, "rb"))
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError as err:
        raise MissingDependencyError(
            f"{what} is compressed with zstd, and nothing here reads zstd",
            why="Python reads zstd itself from 3.14 on; before that the package zstandard is needed",
            fix='pip install "whileai-traces[zstd]"',
        ) from err
    reader = zstandard.ZstdDecompressor().stream_reader(compressed, read_across_frames=True, closefd=True)
    return cast(IO[bytes], io.BufferedReader(reader))


def read_head(path: Path, size: int = HEAD_BYTES.value) -> bytes:
    """Return the first `size` decompressed bytes of a file, for detection by content."""
    with open_bytes(path) as stream:
        return stream.read(size)


def plain_head(path: Path, head: bytes) -> bytes:
    """Return the first bytes of a file decompressed, whether or not `head` is."""
    return read_head(path) if head.startswith((GZIP_MAGIC, ZSTD_MAGIC)) else head


def suffix_of(path: Path) -> str:
    """Return the suffix that says what is in the file, in lower case: `.csv` for `runs.csv.gz`."""
    suffixes = [s.lower() for s in path.suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst", ".zstd"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@functools.lru_cache(maxsize=2)  # every source asks for the records of the same head
def first_records(head: bytes, limit: int = 5) -> list[Any]:
    """Return up to `limit` JSON records that lie wholly within the first bytes of a file.

    Works on JSON Lines, on the elements of a JSON array and on a whole small document. An object that is cut off
    by the end of `head` is left out.
    """
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    out: list[Any] = []
    if text.startswith("["):
        found = _array_head(text, limit)
        if found is not None:
            return found or _partial(text)
    position = 0
    while position < len(text) and len(out) < limit:
        try:
            value, position = DECODER.raw_decode(text, position)
            out.append(value)
        except ValueError:
            following = text.find("\n", position)
            if following < 0:
                break
            position = following
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
    return out if any(isinstance(r, dict | list) for r in out) else _partial(text)


def _array_head(text: str, limit: int) -> list[Any] | None:
    """Return the first whole elements of a JSON array, or `None` when its lines are records of their own."""
    lines = [line for line in text.split("\n", 2)[:2] if line.strip()]
    if len(lines) == 2 and _try(lines[0]) is not None:
        return None
    out: list[Any] = []
    for _, piece in split_array(text):
        value = _try(piece)
        if value is not None:
            out.append(value)
        if len(out) >= limit:
            break
    return out


def _partial(text: str) -> list[Any]:
    """Return what can be seen of one large record that is cut off: everything before its last whole value."""
    if text[:1] not in ("{", "["):
        return []
    stack: list[str] = []
    cuts: list[tuple[int, str]] = []
    position = 0
    while match := STRUCTURE.search(text, position):
        char, position = match.group(), match.end()
        if char == '"':
            end = STRING_END.match(text, position)
            if end is None:
                break
            position = end.end()
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
            cuts.append((position, "".join(reversed(stack))))
        elif char in "}]":
            if not stack or stack.pop() != char:
                break
            cuts.append((position, "".join(reversed(stack))))
        else:
            cuts.append((match.start(), "".join(reversed(stack))))
        del cuts[:-8]
    for at, closers in reversed(cuts):
        value = _try(text[:at] + closers)
        if value is not None:
            return value[:1] if isinstance(value, list) else [value]
    return []


def _try(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None


def json_records(path: Path, on_problem: OnProblem) -> Iterator[tuple[str, Any]]:
    """Yield `(where, record)` for each JSON record of a file.

    JSON Lines are streamed, split at `\\n` only (U+2028 and its like are ordinary characters of a string). A JSON
    array yields its elements. A damaged line or element is reported with its place and costs that record alone; a
    file that ends in the middle of an array yields the elements before the cut.

    Args:
        path: Plain, gzip or zstd.
        on_problem: Receives a `ReadProblem` per record that is no JSON.
    """
    with open_bytes(path) as stream:
        if _is_lines(path):
            yield from _lines(path, stream, on_problem)
            return
        yield from document_records(path, stream, on_problem)


def _is_lines(path: Path) -> bool:
    """Say whether a file is JSON Lines: its first or its second line is a whole JSON record by itself."""
    with open_bytes(path) as stream:
        lines: list[bytes] = []
        rest = b""
        while line := stream.readline(LINE_BYTES.value):
            if not line.strip():
                continue
            lines.append(line)
            if not line.endswith(b"\n") and len(line) >= LINE_BYTES.value:
                return False
            if len(lines) == 1 and line.strip() in (b"[", b"{", b"\xef\xbb\xbf[", b"\xef\xbb\xbf{"):
                return False
            if len(lines) == 2:
                rest = line
                break
    if len(lines) < 2:
        return False
    first = _try(_decode(lines[0]))
    if isinstance(first, dict | list):
        return True
    return isinstance(_try(rest.decode("utf-8", errors="replace")), dict)


def _decode(line: bytes) -> str:
    return line.decode("utf-8-sig", errors="replace")


def _lines(path: Path, stream: IO[bytes], on_problem: OnProblem) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(stream, start=1):
        line = line.strip()
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        if not line:
            continue
        where = f"line {number}"
        try:
            yield where, loads(line.decode("utf-8"))
        except UnicodeDecodeError as err:
            on_problem(ReadProblem(str(path), where, f"is not UTF-8: {err.reason} at byte {err.start}"))
        except (ValueError, RecursionError) as err:
            on_problem(ReadProblem(str(path), where, f"is not JSON: {err}"))
