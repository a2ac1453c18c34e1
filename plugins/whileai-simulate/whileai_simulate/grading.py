"""The verdict that a repeat policy decides by, put on the row as it lands.

Only what the policy needs: one judge, one verdict. Grading with concurrency, side-by-side verdicts and reports is the
business of the judging plugin.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Awaitable
from typing import Any

from whileai_kernel.registry import spec_of
from whileai_kernel.rows import ordered
from whileai_kernel.verdicts import error_judgment, to_judgment

__all__ = ["grade_row", "is_async"]


def is_async(judge: Any) -> bool:
    """Whether a judge has to be waited for."""
    return inspect.iscoroutinefunction(judge) or inspect.iscoroutinefunction(getattr(judge, "__call__", None))  # noqa: B004


def grade_row(row: dict[str, Any], judge: Any) -> Awaitable[None] | None:
    """Put the judge's verdict on the row; an error of the judge is "not scored" with its reason.

    A rollout that failed because its simulated user did says nothing about the agent and is not scored.

    Returns:
        What has to be awaited, when the judge is async.
    """
    error = row.get("error") or {}
    if error.get("by") == "user":
        row.update(error_judgment(RuntimeError(str(error.get("message")))).columns())
        return None
    try:
        value = judge(_shown(row, judge))
    except Exception as err:  # noqa: BLE001 - recorded on the row as status "error"
        value = err
    if inspect.isawaitable(value):
        return _grade_later(row, judge, value)
    _put(row, judge, value)
    return None


def _shown(row: dict[str, Any], judge: Any) -> dict[str, Any]:
    """Return what a judge is shown: a copy, since one that writes into its row would change what the agent did.

    The schemas of the tools, which are the largest part, are shared; a judge with `reads_only` gets the row itself.
    """
    if getattr(judge, "reads_only", False) is True:
        return row
    tools = {"tools": row["tools"]} if "tools" in row else {}
    rest = {k: v for k, v in row.items() if k != "tools"}
    shown: dict[str, Any] = pickle.loads(pickle.dumps(rest, 5))  # three times faster than deepcopy
    return {**shown, **tools}


async def _grade_later(row: dict[str, Any], judge: Any, value: Awaitable[Any]) -> None:
    try:
        verdict = await value
    except Exception as err:  # noqa: BLE001 - as above
        verdict = err
    _put(row, judge, verdict)


def _put(row: dict[str, Any], judge: Any, value: Any) -> None:
    spec = spec_of(judge)
    name = spec.id if spec is not None else getattr(judge, "__name__", type(judge).__name__)
    scorer = {"id": str(name), "version": spec.version if spec is not None else None}
    scorer = getattr(judge, "scorer", None) or scorer
    markers: dict[str, float | None] = {}
    try:
        if isinstance(value, Exception):
            raise value
        judgment, markers = to_judgment(value, scorer=scorer, threshold=getattr(judge, "threshold", 1.0))
    except Exception as err:  # noqa: BLE001 - recorded on the row as status "error"
        judgment = error_judgment(err)
    row.update(judgment.columns())
    if markers:
        row["markers"] = {**row["markers"], **markers}
    in_order = ordered(row)
    row.clear()
    row.update(in_order)
