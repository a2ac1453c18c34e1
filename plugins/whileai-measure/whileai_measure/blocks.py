"""Rows as blocks of lists by field, from memory, an iterator, a file or a table; and how their values are checked.

`columns` turns the blocks into arrays. Nothing is repaired in silence here: what is no number in range raises with its
row and field.

Example:
    >>> next(blocks([{"task_id": "a"}, {"task_id": "b"}])).get("task_id")
    ['a', 'b']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whileai_kernel.defaults import REWARD_TOLERANCE
from whileai_kernel.errors import ParameterError, RowError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]

__all__ = ["Block", "RowsLike", "blocks", "few", "in_unit", "numbers", "row_stream", "safe"]

RowsLike = Iterable[Mapping[str, Any]] | str | Path | Any
"""Rows, an iterator of rows, a path, or a pandas, polars or Arrow table."""

BLOCK = 4_000  # rows held at once: small blocks stay in the cache and cost the collector little
NAMES_SHOWN = 8  # names in a note before it says how many more there are; a text, not a result
FRAMES = {"pandas", "polars", "pyarrow"}


def safe(value: Any, limit: int = 60) -> str:
    """Return short printable text for a name: quoted only by its own marks, odd characters escaped."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(ch if ch.isprintable() and not 0xD800 <= ord(ch) < 0xE000 else ascii(ch)[1:-1] for ch in text)


def few(names: Iterable[str]) -> str:
    """Return names for a note: the first few, and how many more there are."""
    every = list(names)
    text = ", ".join(safe(name) for name in every[:NAMES_SHOWN])
    return f"{text} and {len(every) - NAMES_SHOWN} more" if len(every) > NAMES_SHOWN else text


class Block:
    """Some rows as lists by field."""

    def __init__(self, rows: Sequence[Any] | None, table: Mapping[str, list[Any]] | None, start: int) -> None:
        self.rows, self.table, self.start, self.plain = rows, table, start, False
        if rows is not None:
            kinds = set(map(type, rows))
            self.plain = kinds <= {dict}
            for kind in kinds:
                if not issubclass(kind, Mapping):
                    bad = next(i for i, row in enumerate(rows) if type(row) is kind)
                    raise RowError(
                        f"a row must be a mapping, not {kind.__name__}",
                        fix="pass dicts with task_id and reward, or use make_rows for prompts and completions",
                        row=start + bad,
                    )
            self.size = len(rows)
        else:
            assert table is not None
            self.size = len(next(iter(table.values()), []))

    def get(self, name: str) -> list[Any]:
        """Return the values of a field, `None` where a row lacks it."""
        if self.rows is None:
            assert self.table is not None
            return self.table.get(name) or [None] * self.size
        if self.plain:
            try:
                return list(map(itemgetter(name), self.rows))  # three times as fast as .get, where no row lacks it
            except KeyError:
                return [row.get(name) for row in self.rows]
        return [row.get(name) for row in self.rows]

    def path(self, dotted: str) -> list[Any]:
        """Return the values of a dotted field, for example `axes.channel`."""
        if self.table is not None and dotted in self.table:
            return self.table[dotted]
        head, *rest = dotted.split(".")
        values = self.get(dotted) if not rest else self.get(head)
        for part in rest:
            values = [v.get(part) if isinstance(v, Mapping) else None for v in values]
        return values

    def apply(self, label: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
        """Return the label of each row."""
        if self.rows is not None:
            return [label(row) for row in self.rows]
        assert self.table is not None
        names = list(self.table)
        return [label(dict(zip(names, values, strict=True))) for values in zip(*self.table.values(), strict=True)]


def blocks(source: RowsLike, unread: list[str] | None = None, fields: Sequence[str] | None = None) -> Iterator[Block]:
    """Yield the rows of any accepted source in blocks.

    Args:
        source: Rows, an iterator of rows, a path, or a table.
        unread: Is given one sentence per record of a file that could not be read.
        fields: Top-level fields that will be asked for, so that a file need not be kept whole; default all.

    Raises:
        RowError: A row is no mapping.
        ParameterError: The source is none of the accepted kinds.
    """
    if isinstance(source, str | Path):
        from whileai_measure.files import read_columns, read_file

        if fields is not None:
            start = 0
            for part in read_columns(Path(source), fields, unread):
                block = Block(None, part, start) if isinstance(part, dict) else Block(part, None, start)
                yield block
                start += block.size
            return
        source = read_file(Path(source), unread)
    top = type(source).__module__.partition(".")[0]
    if top in FRAMES and hasattr(type(source), "columns"):
        yield Block(None, _frame(source, top), 0)
        return
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise ParameterError(
            f"rows must be a list, an iterator, a path or a table, not {type(source).__name__}",
            fix="pass a list of row dicts" if not isinstance(source, Mapping) else "wrap the single row in a list",
        )
    if isinstance(source, list | tuple):
        for start in range(0, len(source), BLOCK):
            yield Block(source[start : start + BLOCK] if len(source) > BLOCK else source, None, start)
        return
    stream, start = iter(source), 0
    while rows := list(islice(stream, BLOCK)):
        yield Block(rows, None, start)
        start += len(rows)


def row_stream(source: RowsLike) -> Iterator[Mapping[str, Any]]:
    """Yield whole rows of any accepted source, for calls that read more than columns.

    Raises:
        RowError: A row is no mapping.
        ParameterError: The source is none of the accepted kinds.
    """
    for block in blocks(source):
        if block.rows is not None:
            yield from block.rows
        elif block.table:
            names = list(block.table)
            yield from (dict(zip(names, cells, strict=True)) for cells in zip(*block.table.values(), strict=True))


def _frame(source: Any, top: str) -> dict[str, list[Any]]:
    if top == "polars":
        if type(source).__name__ == "LazyFrame":
            raise ParameterError("a LazyFrame has no rows yet", fix="call .collect() first")
        return {str(name): source[name].to_list() for name in source.columns}
    if top == "pyarrow":
        return {str(name): source.column(name).to_pylist() for name in source.column_names}
    out = {}
    for name in source.columns:
        column = source[name]
        out[str(name)] = column.astype(object).where(column.notna(), None).tolist()
    return out


def numbers(values: list[Any], name: str, start: int) -> tuple[Floats, Bools, int]:
    """Return values as floats (None and NaN become NaN), which were NaN, and how many were booleans."""
    import numpy as np

    kinds = set(map(type, values))
    if kinds <= {float, int, type(None)}:
        try:
            out = np.array(values, dtype=np.float64)
        except OverflowError:
            kinds.add(object)  # an integer beyond float64: the loop below names its row
        else:
            nan = np.isnan(out)
            if type(None) in kinds:
                nan &= np.fromiter((v is not None for v in values), bool, len(values))
            return out, nan, 0
    booleans = 0
    out = np.full(len(values), np.nan)
    nan = np.zeros(len(values), dtype=bool)
    for i, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, bool | np.bool_):
            booleans += 1
        elif not isinstance(value, float | int | np.floating | np.integer):
            looks = isinstance(value, str) and _looks_like_number(value)
            raise RowError(
                f"{name} must be a number or null, not {type(value).__name__} {safe(value, 40)}",
                why="text is never read as a number: the writer may have meant something else" if looks else "",
                fix=f"convert the column once, for example float(row[{name!r}])"
                if looks
                else "use null for not scored",
                row=start + i,
                field=name,
            )
        try:
            out[i] = float(value)
        except OverflowError:
            out[i] = np.inf
        nan[i] = out[i] != out[i]
    return out, nan, booleans


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def in_unit(values: Floats, name: str, start: int) -> Floats:
    """Return values clipped to [0, 1] within rounding.

    Args:
        values: Numbers, NaN where absent.
        name: Field, for the error.
        start: Position of the first of them among all rows.

    Raises:
        RowError: A value lies outside.
    """
    import numpy as np

    slack = REWARD_TOLERANCE.value
    bad = (values < -slack) | (values > 1.0 + slack)
    if bad.any():
        i = int(np.argmax(bad))
        raise RowError(
            f"{name} must lie in [0, 1], not {values[i]:g}",
            why="every estimator and interval here is for bounded values",
            fix="rescale the values (x - low) / (high - low), or use null for not scored",
            row=start + i,
            field=name,
        )
    return np.clip(values, 0.0, 1.0)
