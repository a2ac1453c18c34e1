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

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_select.gate import publish_gate
    from whileai_select.pairs import build_preference_pairs
    from whileai_select.rl import select_rl
    from whileai_select.rounds import curriculum, fit_saturation, next_round, retire_solved, trim
    from whileai_select.selection import select
    from whileai_select.sft import select_sft
    from whileai_select.signal import group_signal, recommend_k

__all__ = [
    "build_preference_pairs",
    "curriculum",
    "fit_saturation",
    "group_signal",
    "next_round",
    "publish_gate",
    "recommend_k",
    "retire_solved",
    "select",
    "select_rl",
    "select_sft",
    "trim",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".gate": ("publish_gate",),
        ".pairs": ("build_preference_pairs",),
        ".rl": ("select_rl",),
        ".rounds": ("curriculum", "fit_saturation", "next_round", "retire_solved", "trim"),
        ".selection": ("select",),
        ".sft": ("select_sft",),
        ".signal": ("group_signal", "recommend_k"),
    },
)
