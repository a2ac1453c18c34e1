"""The grading pipeline and the judges.

Importing this package imports nothing of it; names are loaded when they are first used.

Example:
    >>> import whileai_judge
    >>> rows = [{"task_id": "t", "final_text": "4"}]
    >>> graded = whileai_judge.grade(rows, lambda row: row["final_text"] == "4")
    >>> graded[0]["reward"]
    1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_judge.pipeline import JudgeError, agrade, grade

_HOMES = {
    "pipeline": ("JudgeError", "agrade", "grade"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["JudgeError", "agrade", "grade"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
