"""One grading pipeline for every judge: callables, verifiers, model judges, registered names, files.

:func:`grade` copies the rows, calls the judge on each copy within a bounded concurrency and a deadline,
turns what it returned into a verdict (:mod:`whileai_kernel.verdicts` decides the status) and gives back a
new ``Dataset`` in the order of the input. An earlier verdict on a row moves to its ``judgments``; markers
are merged. Rows that could not be scored are kept, counted, and bound in the warning that the data set
carries.

Not here: how calls are run (:mod:`whileai_judge.engine`), what a model judge asks
(:mod:`whileai_judge.judge`), whether a judge can be believed (:mod:`whileai_judge.trust`).

Example:
    >>> from whileai_kernel.rows import make_rows
    >>> graded = grade(make_rows(["2+2?", "3+3?"], ["4", "7"]), lambda row: row["final_text"] == "4")
    >>> [row["reward"] for row in graded]
    [1.0, 0.0]
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_judge.batches import outcomes_of
from whileai_judge.bookkeeping import ONE_VALUE, count_verdicts, put_verdict, warnings_of
from whileai_judge.defaults import CONCURRENCY, DEADLINE_SECONDS, MAX_ABANDONED, STOP_AFTER, THRESHOLD
from whileai_judge.engine import AllFailed, Outcome
from whileai_judge.reference import Component, resolve_judge, scorer_of
from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import FindingsError, ParameterError, RowError, WhileaiError
from whileai_kernel.lifecycle import check_rows, emit_row, emit_row_failed, stage
from whileai_kernel.rows import Row

Rows = Iterable[Mapping[str, Any]] | str | os.PathLike[str]


class JudgeError(WhileaiError, RuntimeError):
    """The judge failed on every one of the first rows, so the stage was stopped before the rest was
    tried."""


@dataclass(frozen=True, slots=True)
class _Options:
    concurrency: int
    deadline: float | None
    threshold: float | None
    stop_after: int | None
    max_abandoned: int
    primary: bool
    allow: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("max_abandoned", 1), ("stop_after", 1)):
            value = getattr(self, name)
            if value is None and name == "stop_after":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ParameterError(
                    f"{name}={value!r} is not a whole number of at least {least}",
                    fix=f"pass {name}=8, for example",
                )
        if self.deadline is not None and not _is_number(self.deadline, above=0.0):
            raise ParameterError(f"deadline={self.deadline!r} is not a positive number of seconds", fix="deadline=60.0")
        if self.threshold is not None and not (_is_number(self.threshold) and 0 <= self.threshold <= 1):
            raise ParameterError(f"threshold={self.threshold!r} is not a number in [0, 1]", fix="pass threshold=1.0")


def _is_number(value: Any, above: float = float("-inf")) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < float("inf")


def grade(
    rows: Rows,
    judge: Component | str,
    *,
    concurrency: int = CONCURRENCY.value,
    deadline: float | None = DEADLINE_SECONDS.value,
    threshold: float | None = None,
    stop_after: int | None = STOP_AFTER.value,
    max_abandoned: int = MAX_ABANDONED.value,
    primary: bool = True,
    allow: Iterable[str] = (),
) -> Dataset:
    """Put a verdict on every row.

    Works in scripts, in notebooks, and inside a running event loop (it blocks that loop: use
    :func:`agrade` there).

    Args:
        rows: Rows, a ``Dataset``, or the path of a JSONL file of rows. They are copied, never changed.
        judge: A function ``row -> verdict`` (plain or async), an object with such a ``__call__``, the name
            of a registered judge or verifier (``"seeded"``, ``"verify/exact_match"``), or
            ``"file.py:function"``. An object with ``grade_batch(rows) -> verdicts`` gets several rows per call.
        concurrency: The most calls in flight at once. Plain functions are called from more than one thread
            when they are slow; ``1`` calls them one after the other in row order.
        deadline: Seconds that one call may take before its row is not scored, ``timeout``; ``None`` for no
            limit.
        threshold: Reward from which a row passes; by default the judge's own ``threshold`` attribute, else
            1.0.
        stop_after: Stop with an error when the judge failed on this many first rows and more are left;
            ``None`` never stops.
        max_abandoned: Start no further call once this many were abandoned in mid-flight.
        primary: False puts the verdict beside the ones on the row (in ``judgments``) and leaves its reward
            alone.
        allow: Names of findings of row checks that do not stop the stage.

    Returns:
        A new ``Dataset``, one row per input row and in their order. ``provenance["grade"]`` has the scorer
        and the counts, ``warnings`` says what could not be scored and whether every row got the same
        reward.

    Raises:
        JudgeError: The judge failed on every one of the first rows.
        ParameterError: An argument cannot be used.
        FindingsError: A row check found an error that ``allow`` does not name; the graded rows are on the
            error, as ``error.dataset``.
        RowError: An input row is not a mapping.
        UnknownNameError: No judge and no verifier has that name.
    """
    options = _Options(concurrency, deadline, threshold, stop_after, max_abandoned, primary, tuple(allow))
    return _grade(rows, judge, options, None, None)


async def agrade(
    rows: Rows,
    judge: Component | str,
    *,
    concurrency: int = CONCURRENCY.value,
    deadline: float | None = DEADLINE_SECONDS.value,
    threshold: float | None = None,
    stop_after: int | None = STOP_AFTER.value,
    max_abandoned: int = MAX_ABANDONED.value,
    primary: bool = True,
    allow: Iterable[str] = (),
) -> Dataset:
    """Put a verdict on every row without blocking the running loop; arguments as for :func:`grade`.

    Coroutine judges run on the caller's loop, so a client that belongs to it can be used. A coroutine that
    blocks that loop cannot be interrupted; its row is a ``timeout`` once it returns.
    """
    options = _Options(concurrency, deadline, threshold, stop_after, max_abandoned, primary, tuple(allow))
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Dataset] = loop.create_future()
    cancel = threading.Event()

    def settle(result: Dataset | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        elif result is not None:
            done.set_result(result)

    def work() -> None:
        result: Dataset | None = None
        error: BaseException | None = None
        try:
            result = _grade(rows, judge, options, loop, cancel)
        except BaseException as raised:  # noqa: BLE001 - handed to the awaiting caller
            error = raised
        if not cancel.is_set():
            loop.call_soon_threadsafe(settle, result, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="whileai-judge-agrade", daemon=True).start()
    try:
        return await done
    finally:
        cancel.set()


def _grade(
    rows: Rows,
    judge: Component | str,
    options: _Options,
    loop: asyncio.AbstractEventLoop | None,
    cancel: threading.Event | None,
) -> Dataset:
    items, provenance, warnings = _read_input(rows)
    component = resolve_judge(judge)
    scorer = scorer_of(component, judge if isinstance(judge, str) else None)
    own = getattr(component, "threshold", None)
    threshold = next((float(t) for t in (options.threshold, own) if t is not None), THRESHOLD.value)
    graded: list[Row] = []
    with stage("grade", scorer=scorer, rows=len(items)) as running:
        outcomes = outcomes_of(
            component,
            [row for row in items if not _of_the_user(row)],
            concurrency=options.concurrency,
            deadline=options.deadline,
            stop_after=options.stop_after,
            max_abandoned=options.max_abandoned,
            loop=loop,
            cancel=cancel,
        )
        try:
            for row in items:
                outcome = _of_the_user(row) or next(outcomes, None)
                if outcome is None:
                    break
                new = put_verdict(row, outcome, scorer, threshold, options.deadline, options.primary)
                graded.append(new)
                if outcome.kind == "value":
                    emit_row(new, running)
                else:
                    verdict = new if options.primary else new["judgments"][-1]
                    emit_row_failed(new, running, outcome.error or TimeoutError(verdict.get("reason")))
        except AllFailed as stopped:
            raise judge_error(stopped, scorer["id"], len(items)) from stopped.outcomes[0].error
        finally:
            outcomes.close()
        verdicts = graded if options.primary else [row["judgments"][-1] for row in graded]
        counts = count_verdicts(verdicts)
        said = warnings_of(counts, verdicts)
        record = {"scorer": scorer, "threshold": threshold, "deadline_s": options.deadline, "counts": counts}
        if options.primary:
            stale = (provenance.get("grade") or {}).get("warnings", ())
            warnings = [text for text in warnings if text not in stale]
            provenance["grade"] = {**record, "warnings": said}
        else:
            provenance["grade_beside"] = [*provenance.get("grade_beside", ()), {**record, "warnings": said}]
        data = Dataset(graded, provenance=provenance, warnings=[*warnings, *said])
        try:
            findings = check_rows(graded, running, allow=options.allow)
        except FindingsError as error:
            error.dataset = data  # type: ignore[attr-defined]  # the verdicts are paid for: not lost with the stop
            raise
    if any(finding.name.endswith("/shared_reward") for finding in findings):
        data.warnings = [text for text in data.warnings if not text.startswith(ONE_VALUE)]  # said once is enough
    told = set(data.warnings)
    data.warnings += [str(f) for f in findings if f.level != "info" and str(f) not in told]
    return data


def _of_the_user(row: Mapping[str, Any]) -> Outcome | None:
    """The verdict on a rollout that failed because its simulated user did: none, it says nothing about the agent."""
    error = row.get("error")
    if not isinstance(error, Mapping) or error.get("by") != "user":
        return None
    reason = f"the simulated user failed: {error.get('message') or error.get('type') or 'no reason given'}"
    return Outcome("value", {"reward": None, "status": "error", "reason": reason})


def _read_input(rows: Rows) -> tuple[list[Mapping[str, Any]], dict[str, Any], list[str]]:
    """The rows as a list, with the provenance and the warnings that they came with."""
    if isinstance(rows, str | os.PathLike):
        from whileai_kernel.rowio import read_rows

        return list(read_rows(Path(rows))), {"path": os.fspath(rows)}, []
    if isinstance(rows, Mapping):
        raise RowError("grade takes many rows, not one", fix="pass a list: grade([row], judge)")
    items = list(rows)
    for position, row in enumerate(items):
        if not isinstance(row, Mapping):
            raise RowError(
                f"a row must be a mapping, not {type(row).__name__}",
                fix="make rows with whileai_kernel.rows.make_rows(prompts, completions)",
                row=position,
            )
    return items, dict(getattr(rows, "provenance", None) or {}), list(getattr(rows, "warnings", None) or [])


def judge_error(stopped: AllFailed, judge: str, rows: int) -> JudgeError:
    """The error of a judge that failed on every one of the first rows."""
    tried = len(stopped.outcomes)
    first = next((o.error for o in stopped.outcomes if o.error is not None), None)
    if first is None:
        why = f"none of them came back within {max(o.seconds for o in stopped.outcomes):.3g} s"
    else:
        why = f"the first error was {type(first).__name__}: {first}"
    fix = "try it on one row: judge(rows[0]); stop_after=None grades all rows regardless"
    if isinstance(first, ValueError) and "main thread" in str(first):
        fix = "judges run outside the main thread, where signal fails: use deadline= instead of an alarm"
    return JudgeError(f"judge {judge} failed on each of the first {tried} of {rows} rows", why=why, fix=fix)
