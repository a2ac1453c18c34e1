"""Recorded runs become a Dataset: which files, which format, what was skipped, and what two files share.

`read` is the front door, `iter_rows` the same one row at a time. Formats are the registered `sources`, so another
package can add one. What is not here: the shape of any format.

Example:
    >>> data = read([{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}])
    >>> data[0]["final_text"], data.provenance["files"][0]["format"]
    ('hello', 'traces/chat')
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whileai_kernel import entries, make
from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rows import Row, content_id
from whileai_traces.build import RowBuilder
from whileai_traces.defaults import LEAST, SHOWN_PROBLEMS
from whileai_traces.files import OnProblem, first_records, open_bytes, read_head

__all__ = ["FormatGuess", "detect", "iter_rows", "read"]

SKIPPED_NAMES = ("manifest.json", "readme.md", "license")
"""Files beside data that are no data; only left out when a directory is read."""


@dataclass(frozen=True, slots=True)
class FormatGuess:
    """Which format a file has, and how sure each format was.

    Attributes:
        format: Full id of the source, for example `traces/tau_bench`; `None` when no format was sure enough.
        tried: Confidence of each source, from 0 to 1, or the error that it raised.
    """

    format: str | None
    tried: dict[str, float | str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value if isinstance(value, str) else format(value, '.1f')}" for name, value in self.tried.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the guess as a plain mapping."""
        return {"format": self.format, "tried": dict(self.tried)}


def detect(path: str | Path) -> FormatGuess:
    """Say which format a file has, by its content.

    Every registered source is asked; one that raises is recorded and the others decide.

    Args:
        path: One file; gzip and zstd are decompressed.

    Raises:
        OSError: The file cannot be opened.
    """
    file = Path(path)
    head = read_head(file)
    return _best(lambda source: float(source.sniff(file, head)))


def _best(ask: Callable[[Any], float]) -> FormatGuess:
    tried: dict[str, float | str] = {}
    for entry in entries("sources"):
        try:
            tried[entry.id] = ask(make("sources", entry.id))
        except Exception as err:  # noqa: BLE001 - a foreign source may raise anything; it is named in the answer
            tried[entry.id] = f"raised {type(err).__name__}: {err}"
    sure = {name: value for name, value in tried.items() if isinstance(value, float) and value >= LEAST.value}
    top = max(sure.values(), default=0.0)
    winners = [name for name, value in sure.items() if value == top]
    return FormatGuess(winners[0] if len(winners) == 1 else None, tried)


def _unknown(what: str, guess: FormatGuess, seen: str) -> RowError:
    tied = [n for n, v in guess.tried.items() if isinstance(v, float) and v >= LEAST.value]
    why = f"fits {' and '.join(tied)} equally well" if tied else f"tried: {str(guess) or 'no source is installed'}"
    hint = f"; it holds {seen}" if seen else ""
    return RowError(f"cannot tell the format of {what}", why=f"{why}{hint}", fix="name it: read(path, format='chat')")


def _describe(head: bytes) -> str:
    records = first_records(head, limit=1)
    if records and isinstance(records[0], Mapping):
        keys = ", ".join(map(str, list(records[0])[:12]))
        return f"JSON objects with the keys {keys or '(none)'}"
    if records:
        return f"JSON {type(records[0]).__name__} values"
    text = head[:60].decode("utf-8", errors="replace").split("\n")[0]
    return f"no JSON record; it begins with {text!r}"


def _files(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        found = [p for p in sorted(path.rglob("*")) if p.is_file() and _is_data(p.relative_to(path))]
        if not found:
            raise ParameterError(f"{path} holds no files", fix="name a file, a folder with files, or a pattern")
        return found
    if path.exists():
        return [path]
    if any(c in str(source) for c in "*?["):
        found = sorted(Path(p) for p in glob.glob(str(source), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not found:
            raise ParameterError(f"no file matches {str(source)!r}", fix="check the pattern; ** crosses folders")
        return found
    raise ParameterError(f"there is no file {path}", why=f"looked from {Path.cwd()}", fix="check the path")


def _is_data(relative: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in relative.parts)
    return not hidden and relative.name.lower() not in SKIPPED_NAMES and not relative.name.endswith(".manifest.json")


def _source_for(path: Path, format: str | None, params: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name of a file's format and the source that reads it."""
    if format is None:
        guess = detect(path)
        if guess.format is None:
            raise _unknown(str(path), guess, _describe(read_head(path)))
        format = guess.format
    return format, make("sources", format, **params)


def iter_rows(
    source: str | Path, format: str | None = None, *, on_problem: OnProblem | None = None, **params: Any
) -> Iterator[Row]:
    """Yield the rows of a file, a folder or a pattern, one at a time.

    Formats whose rows need the whole file (traces made of spans) hold one file in memory; the others stream.

    Args:
        source: File, folder or pattern.
        format: Name of a source; by default found by content, per file.
        on_problem: Receives a `ReadProblem` per record that was skipped or read with a loss; by default they
            are dropped, so pass one, or use `read`.
        params: Parameters of the source.

    Raises:
        RowError: The format of a file cannot be told.
        ParameterError: There is no such file, or no such format.
    """
    for path in _files(source):
        _, reader = _source_for(path, format, params)
        yield from reader.read(path, on_problem=on_problem or _ignore)


def _ignore(problem: ReadProblem) -> None:
    """Take a problem that the caller chose not to hear of."""


def read(source: str | Path | Iterable[Mapping[str, Any]], format: str | None = None, **params: Any) -> Dataset:
    """Read recorded runs of this or another tool as rows.

    Args:
        source: A file, a folder, a pattern such as `"runs/**/*.jsonl"`, or records at hand (an iterable of
            mappings). Gzip and zstd are decompressed.
        format: Name of a source (`"chat"`, `"tau_bench"`, `"otel"`, ...). By default the format is found by
            content, per file.
        params: Parameters of the source.

    Returns:
        A `Dataset`. Its `warnings` name each record that was skipped or read with a loss, with file and line;
        its `provenance` holds the files, their formats and counts, and all skipped records.

    Raises:
        RowError: The format of the only file cannot be told (the error says what was tried), or a file gives
            problems and not one row.
        ParameterError: There is no such file, or no such format.
    """
    problems: list[ReadProblem] = []
    if isinstance(source, str | Path):
        paths = _files(source)
        rows, files, notes = _read_files(paths, format, problems, params)
    else:
        rows, files = _read_records(source, format, problems, params)
        notes = []
    if not rows and problems:
        shown = "; ".join(f"{p.where}: {p.message}" for p in problems[: SHOWN_PROBLEMS.value])
        raise RowError(
            f"not one row could be read from {files[0]['path'] if files else source}",
            why=f"{len(problems)} records were refused: {shown}",
            fix="correct the records, or name another format=",
        )
    counted = Counter(f["format"] for f in files)
    provenance = {
        "files": files,
        "formats": dict(counted),
        "skipped": [{"file": Path(p.path).name, "where": p.where, "message": p.message} for p in problems],
    }
    return Dataset(rows, provenance=provenance, warnings=[*notes, *_warnings(problems)])


def _warnings(problems: list[ReadProblem]) -> list[str]:
    shown = [f"{Path(p.path).name} {p.where}: {p.message}" for p in problems[: SHOWN_PROBLEMS.value]]
    if len(problems) > len(shown):
        shown.append(f"{len(problems) - len(shown)} more records with problems, all in provenance['skipped']")
    return shown


def _read_files(
    paths: list[Path], format: str | None, problems: list[ReadProblem], params: Mapping[str, Any]
) -> tuple[list[Row], list[dict[str, Any]], list[str]]:
    rows: list[Row] = []
    files: list[dict[str, Any]] = []
    notes: list[str] = []
    owners: dict[str, tuple[str, str]] = {}
    for path in paths:
        with open_bytes(path) as stream:
            empty = not stream.read(1)
        if empty and format is None:
            notes.append(f"{path.name} is empty")
            continue
        try:
            used, reader = _source_for(path, format, params)
        except RowError as err:
            if len(paths) == 1:
                raise
            notes.append(f"{path.name} was left out: {err.what}")
            continue
        before = len(rows)
        rows.extend(reader.read(path, on_problem=problems.append))
        if len(paths) > 1:
            notes += _keep_apart(rows, before, path, owners)
        files.append({"path": path.name, "format": used, "rows": len(rows) - before})
    if not files and not rows and notes and len(paths) > 1:
        raise RowError(f"none of {len(paths)} files could be read", why="; ".join(notes[:3]), fix="name the format=")
    return rows, files, notes


def _keep_apart(rows: list[Row], start: int, path: Path, owners: dict[str, tuple[str, str]]) -> list[str]:
    """Rename tasks of a file whose id another file uses for another task; number the rollouts of shared ones on."""
    renamed: dict[str, str] = {}
    used = Counter(row["task_id"] for row in rows[:start])
    for row in rows[start:]:
        task_id = row["task_id"]
        print_ = _fingerprint(row)
        owner, known = owners.setdefault(task_id, (str(path), print_))
        if owner == str(path) or known == print_:
            if used[task_id] and row.get("index") is not None and owner != str(path):
                row["index"] += used[task_id]
            continue
        renamed[task_id] = row["task_id"] = f"{path.stem}/{task_id}"
    if not renamed:
        return []
    first = next(iter(renamed.items()))
    return [
        f"{path.name}: {len(renamed)} task ids name another task in an earlier file; they got "
        f"the file's name in front ({first[0]} is {first[1]})"
    ]


def _fingerprint(row: Mapping[str, Any]) -> str:
    private = row.get("privileged")
    return content_id("print", private if private else row.get("prompt"))


def _read_records(
    source: Iterable[Mapping[str, Any]], format: str | None, problems: list[ReadProblem], params: Mapping[str, Any]
) -> tuple[list[Row], list[dict[str, Any]]]:
    records = list(source)
    place = Path("<records>")
    if not records:
        return [], []
    if format is None:
        guess = _best(lambda s: float(s.sniff_records(records[:5])) if hasattr(s, "sniff_records") else 0.0)
        if guess.format is None:
            first: Any = records[0]
            seen = ", ".join(map(str, list(first)[:12])) if isinstance(first, Mapping) else type(first).__name__
            raise _unknown("these records", guess, f"the keys {seen}")
        format = guess.format
    used, reader = format, make("sources", format, **params)
    if not hasattr(reader, "rows"):
        raise ParameterError(
            f"the format {used} reads files only",
            why="it has no rows(records, build)",
            fix="write the records to a file",
        )
    build = RowBuilder(reader.name, place, problems.append, reader.user_ends)
    places = ((f"record {n}", record) for n, record in enumerate(records, start=1))
    return list(reader.rows(places, build)), [{"path": str(place), "format": used, "rows": len(records)}]
