"""pass@k, pass^k, mean reward and comparisons, with intervals over tasks.

Importing the package loads no numpy and no scipy: every name is imported when it is first used.

Example:
    >>> import whileai_measure as measure
    >>> print(measure.pass_at([{"task_id": "a", "reward": 1}, {"task_id": "b", "reward": 0}]))
    pass@1 0.50 [0.01..0.99] (2 tasks, k=1)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_measure.columns import Columns, extract
    from whileai_measure.estimators import pass_at_k, pass_hat_k
    from whileai_measure.intervals import Estimate, mean_interval
    from whileai_measure.passat import PassAt, pass_at

_HOMES = {
    "columns": ("Columns", "extract"),
    "estimators": ("pass_at_k", "pass_hat_k"),
    "intervals": ("Estimate", "mean_interval"),
    "passat": ("PassAt", "pass_at"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["Columns", "Estimate", "PassAt", "extract", "mean_interval", "pass_at", "pass_at_k", "pass_hat_k"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
