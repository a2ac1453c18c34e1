"""Columns beside a record's own: keys of the row that were asked for, with one type per column.

A loader that guesses types turns "007" into 7 where another row holds a number, so a mixed column is refused by
name before anything is written.

Example:
    >>> column_types([{"n": 1}, {"n": 0.5}, {"n": None}], ["n"])
    {'n': 'float'}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_export.files import INT64, big_integers_as_text
from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.rowio import dumps
from whileai_kernel.rows import strip_privileged

__all__ = ["FREE_FORM", "as_text", "column_types", "column_values"]

FREE_FORM = ("messages", "json")
"""Types of columns whose values may have any keys."""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if INT64[0] <= value <= INT64[1] else "big"
    return "float" if isinstance(value, float) else "text"


def as_text(record: Mapping[str, Any], types: Mapping[str, str], declared: set[str]) -> dict[str, Any]:
    """Return a record whose free-form columns are JSON text, for loaders that would merge differing keys."""
    return {
        name: dumps(big_integers_as_text(value, declared, name))
        if types.get(name) in FREE_FORM and value is not None
        else value
        for name, value in record.items()
    }


def column_types(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, str]:
    """Return the type of each column over all rows; objects are JSON text.

    Raises:
        ParameterError: A column is private.
        RowError: A column mixes text with numbers, or booleans with anything else.
    """
    out: dict[str, str] = {}
    for name in names:
        if name == "privileged":
            raise ParameterError(
                "privileged is never a column", why="it is what the model must not see", fix="use references=True"
            )
        kinds = {_kind(value) for row in rows if (value := row.get(name)) is not None}
        if kinds <= {"int", "float"} and kinds:
            out[name] = "float" if "float" in kinds else "int"
        elif kinds <= {"int", "big"} and kinds:
            out[name] = "text"
        elif len(kinds) <= 1:
            out[name] = next(iter(kinds), "text")
        else:
            raise RowError(
                f"column {name!r} mixes {' and '.join(sorted(kinds))}",
                why="a column has one type; a loader would silently change the values of the other",
                fix=f"make {name} text in every row, or leave the column out",
                field=name,
            )
    return out


def column_values(row: Mapping[str, Any], types: Mapping[str, str], declared: set[str]) -> dict[str, Any]:
    """Return the columns of a row, each of its type."""
    out: dict[str, Any] = {}
    for name, kind in types.items():
        value = strip_privileged(row.get(name))
        if isinstance(value, dict | list):
            value = json.dumps(value, ensure_ascii=False)
        elif kind == "float" and value is not None:
            value = float(value)
        elif kind == "text" and isinstance(value, int):
            declared.add(name)
            value = str(value)
        out[name] = value
    return out
