"""Recorded runs of other tools become rows.

The names below are loaded when they are first used, so that importing the package loads nothing.

Example:
    >>> from whileai_traces import read
    >>> len(read([{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}]))
    1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_traces.build import RowBuilder, Score
    from whileai_traces.reading import FormatGuess, detect, iter_rows, read
    from whileai_traces.tooling import tools_from_traces

__all__ = ["FormatGuess", "RowBuilder", "Score", "detect", "iter_rows", "read", "tools_from_traces"]

_HOME = {
    "FormatGuess": "reading",
    "RowBuilder": "build",
    "Score": "build",
    "detect": "reading",
    "iter_rows": "reading",
    "read": "reading",
    "tools_from_traces": "tooling",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
