"""Plain text tables for a terminal.

Example:
    >>> print(table(("name", "n"), [("a", 1), ("bc", 22)]))
    name  n
    a     1
    bc    22
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns with two blanks between them and no trailing blanks."""
    lines = [tuple(headers), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
