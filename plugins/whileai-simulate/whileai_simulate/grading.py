"""The verdict that a repeat policy decides by, put on the row as it lands.

Only what the policy needs: one judge, one verdict. Grading with concurrency, side-by-side verdicts and reports is the
business of the judging plugin.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable
from typing import Any

from whileai_kernel.registry import spec_of
from whileai_kernel.verdicts import error_judgment, to_judgment

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
            value = _wait(value)
        judgment, markers = to_judgment(value, scorer=scorer, threshold=getattr(judge, "threshold", 1.0))
    except Exception as err:  # noqa: BLE001 - recorded on the row as status "error"
        judgment = error_judgment(err)
    row.update(judgment.columns())
    if markers:
        row["markers"] = {**row["markers"], **markers}


def _wait(value: Awaitable[Any]) -> Any:
    """Wait for an awaitable from a thread that may or may not have a loop: on a loop of its own."""
    box: list[Any] = []

    async def run() -> Any:
        return await value

    def work() -> None:
        try:
            box.append((True, asyncio.run(run())))
        except Exception as err:  # noqa: BLE001 - raised again in the caller's thread
            box.append((False, err))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    good, result = box[0]
    if not good:
        raise result
    return result
