"""Recorded runs of other tools become rows.

The names below are loaded when they are first used, so that importing the package loads nothing.

Example:
    >>> from whileai_traces import read
    >>> len(read([{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}]))
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_traces.build import RowBuilder, Score
    from whileai_traces.reading import FormatGuess, detect, iter_rows, read
    from whileai_traces.tooling import tools_from_traces

__all__ = ["FormatGuess", "RowBuilder", "Score", "detect", "iter_rows", "read", "tools_from_traces"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".build": ("RowBuilder", "Score"),
        ".reading": ("FormatGuess", "detect", "iter_rows", "read"),
        ".tooling": ("tools_from_traces",),
    },
)
