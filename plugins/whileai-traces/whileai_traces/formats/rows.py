"""Rows of this project, of every schema version: read by the kernel, whatever the file is compressed with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from whileai_kernel.errors import RowError
from whileai_kernel.protocols import FileExample, ReadProblem
from whileai_kernel.rowio import loads, migrate
from whileai_kernel.rows import SCHEMA_VERSION, Row, task_key
from whileai_traces.build import RowBuilder
from whileai_traces.defaults import CERTAIN, LIKELY
from whileai_traces.files import OnProblem, first_records, open_bytes, plain_head

__all__ = ["Rows"]

MARKS = ("rollout_id", "schema_version", "final_text", "markers")


class Rows:
    """Rows as JSON Lines; unknown keys survive, older versions are migrated, a newer one is refused."""

    name: ClassVar[str] = "rows"
    user_ends: ClassVar[bool] = True

    @property
    def examples(self) -> tuple[FileExample, ...]:
        """Small files of the format, by which the source can be checked."""
        from whileai_traces.formats.examples import examples_of

        return examples_of(self.name)

    def sniff(self, path: Path, head: bytes) -> float:
        """Return how sure it is that a file holds rows."""
        return self.sniff_records(first_records(plain_head(path, head)))

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when records carry a schema version; likely when they have the keys that every measurement reads."""
        rows = [r for r in records if isinstance(r, Mapping)]
        if any("schema_version" in r and ("task_id" in r or "prompt" in r) for r in rows):
            return CERTAIN.value + 0.09
        hits = [
            r for r in rows if ("task_id" in r or "prompt" in r) and sum(k in r for k in MARKS) >= 1 and "reward" in r
        ]
        return CERTAIN.value if hits else (LIKELY.value if any("rollout_id" in r for r in rows) else 0.0)

    def read(self, path: Path, *, on_problem: OnProblem) -> Iterator[Row]:
        """Yield the rows of a file; a line that cannot be read costs that line alone.

        Raises:
            SchemaVersionError: A row is newer than this kernel; the error names the upgrade.
        """
        with open_bytes(path) as stream:
            for number, line in enumerate(stream, start=1):
                where = f"line {number}"
                try:
                    text = (
                        (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode("utf-8").strip(" \t\r\n")
                    )
                    if not text:
                        continue
                    row = loads(text)
                    if not isinstance(row, dict):
                        raise ValueError(f"a row is a JSON object, not {type(row).__name__}")
                except ValueError as err:
                    on_problem(ReadProblem(str(path), where, str(err)))
                    continue
                current = _current(row, where, path, on_problem)
                if current is not None:
                    yield current

    def rows(self, records: Any, build: RowBuilder) -> Iterator[Row]:
        """Yield rows at hand, brought to the current version."""
        for where, record in records:
            if not isinstance(record, Mapping):
                build.problem(where, "is not a row")
                continue
            row = _current(dict(record), where, build.path, build.on_problem)
            if row is not None:
                yield row


def _current(row: Row, where: str, path: Path, on_problem: OnProblem) -> Row | None:
    """Return a row of the current version that can be grouped, or report it; a newer one raises."""
    version = row.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and not isinstance(version, bool) and version > SCHEMA_VERSION:
        migrate(row)
    try:
        row = migrate(row)
        task_key(row)
    except RowError as err:
        on_problem(ReadProblem(str(path), where, err.what))
        return None
    return row
