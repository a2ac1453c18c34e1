"""The verdict that a repeat policy decides by, put on the row as it lands.

Only what the policy needs: one judge, one verdict. Grading with concurrency, side-by-side verdicts and reports is the
business of the judging plugin.
"""

from __future__ import annotations

import inspect
from typing import Any

from whileai_kernel.registry import spec_of
from whileai_kernel.rows import ordered
from whileai_kernel.verdicts import error_judgment, to_judgment
from whileai_simulate.waiting import wait

__all__ = ["grade_row"]


def grade_row(row: dict[str, Any], judge: Any) -> None:
    """Put the judge's verdict on the row; an error of the judge is "not scored" with its reason."""
    spec = spec_of(judge)
    name = spec.id if spec is not None else getattr(judge, "__name__", type(judge).__name__)
    scorer = {"id": str(name), "version": spec.version if spec is not None else None}
    markers: dict[str, float | None] = {}
    try:
        value = judge(row)
        if inspect.isawaitable(value):
            value = wait(value)
        judgment, markers = to_judgment(value, scorer=scorer, threshold=getattr(judge, "threshold", 1.0))
    except Exception as err:  # noqa: BLE001 - recorded on the row as status "error"
        judgment = error_judgment(err)
    row.update(judgment.columns())
    if markers:
        row["markers"] = {**row["markers"], **markers}
    in_order = ordered(row)
    row.clear()
    row.update(in_order)
