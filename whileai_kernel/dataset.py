"""Dataset: rows with where they came from and what to know about them; list-like and picklable.

Functions of plugins take any iterable of rows; they return a Dataset when there is something to say beside the
rows. It holds no method that computes anything.

Example:
    >>> data = Dataset([{"task_id": "a"}, {"task_id": "b"}], provenance={"source": "by hand"})
    >>> len(data), data[0]["task_id"], data[1:].provenance
    (2, 'a', {'source': 'by hand'})
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, overload

from whileai_kernel.rows import Row

__all__ = ["Dataset"]


class Dataset(Sequence[Row]):
    """A list of rows with provenance and warnings.

    Args:
        rows: Flat rows.
        provenance: How the rows were made: stage, parameters, seeds, files. JSON-serialisable.
        warnings: Sentences for people; every one is about these rows.
    """

    def __init__(
        self, rows: Iterable[Row] = (), *, provenance: Mapping[str, Any] | None = None, warnings: Iterable[str] = ()
    ) -> None:
        self.rows: list[Row] = list(rows)
        self.provenance: dict[str, Any] = dict(provenance or {})
        self.warnings: list[str] = list(warnings)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Row | Self:
        return self.replace(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dataset):
            return self.rows == other.rows
        return self.rows == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        notes = f", {len(self.warnings)} warnings" if self.warnings else ""
        tasks = len({row.get("task_id") for row in self.rows})
        return f"{type(self).__name__}({len(self)} rows, {tasks} tasks{notes})"

    def replace(self, rows: Iterable[Row]) -> Self:
        """Return a dataset of the same class with other rows and the same provenance and warnings."""
        new = object.__new__(type(self))
        # What was worked out from the rows (a cached property) is not true of other rows.
        cached = {name for cls in type(self).__mro__ for name, a in vars(cls).items() if isinstance(a, cached_property)}
        new.__dict__.update({name: value for name, value in self.__dict__.items() if name not in cached})
        new.rows, new.provenance, new.warnings = list(rows), dict(self.provenance), list(self.warnings)
        return new

    def filter(self, keep: Callable[[Row], bool]) -> Self:
        """Return the rows for which `keep(row)` is true."""
        return self.replace(row for row in self.rows if keep(row))

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> int:
        """Write the rows as JSONL with `rowio.write_rows` and return how many were written."""
        from whileai_kernel.rowio import write_rows

        return write_rows(path, self.rows, overwrite=overwrite)
