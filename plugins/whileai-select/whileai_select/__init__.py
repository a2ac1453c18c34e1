"""Selection of the rows that teach: RL bands, rejection sampling, preference pairs, curriculum.

Every selection returns the kept rows and a ledger in which each dropped row has exactly one reason. The names
below are loaded on first use, so importing the package costs nothing.

Example:
    >>> from whileai_select import select
    >>> rows = [{"task_id": "t", "prompt": "q", "final_text": str(i), "reward": i % 2, "status": "ok",
    ...          "markers": {}} for i in range(4)]
    >>> selected = select(rows, mode="rl")
    >>> len(selected.rows), selected.report["dropped"]
    (4, {})
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "build_preference_pairs": "whileai_select.pairs",
    "curriculum": "whileai_select.rounds",
    "fit_saturation": "whileai_select.rounds",
    "group_signal": "whileai_select.signal",
    "next_round": "whileai_select.rounds",
    "publish_gate": "whileai_select.gate",
    "recommend_k": "whileai_select.signal",
    "retire_solved": "whileai_select.rounds",
    "select": "whileai_select.selection",
    "select_rl": "whileai_select.rl",
    "select_sft": "whileai_select.sft",
    "trim": "whileai_select.rounds",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
