"""What the sources of JSON records share: detection on a few records, reading a file, reading records at hand.

A source of this package says two things: how sure it is that records are in its format (`sniff_records`), and
which rows they make (`rows`). Files, compression and damage are dealt with here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from whileai_kernel.protocols import FileExample
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder
from whileai_traces.files import OnProblem, first_records, json_records, plain_head

__all__ = ["JsonSource", "Records", "as_list", "as_mapping"]

Records = Iterable[tuple[str, Any]]
"""Records with their place in the file: `("line 3", {...})`."""


class JsonSource:
    """Base of the sources whose files hold JSON records.

    Attributes:
        name: Name of the format, and the key of its leftovers.
        user_ends: A complete conversation of this format ends with a user message.
    """

    name: ClassVar[str] = ""
    user_ends: ClassVar[bool] = False

    @property
    def examples(self) -> tuple[FileExample, ...]:
        """Small files of the format, by which the source can be checked."""
        from whileai_traces.formats.examples import examples_of

        return examples_of(self.name)

    def sniff(self, path: Path, head: bytes) -> float:
        """Return how sure this source is, from 0 to 1, that the file is in its format."""
        return self.sniff_records(first_records(plain_head(path, head)))

    def sniff_records(self, records: list[Any]) -> float:
        """Return how sure this source is that these records are in its format."""
        raise NotImplementedError

    def read(self, path: Path, *, on_problem: OnProblem) -> Iterator[Row]:
        """Yield the rows of a file; what cannot be read is reported and skipped."""
        build = RowBuilder(self.name, path, on_problem, self.user_ends)
        yield from self.rows(json_records(path, on_problem), build)

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield the rows of records."""
        raise NotImplementedError


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and the empty mapping for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and the empty list for anything else."""
    return value if isinstance(value, list) else []
