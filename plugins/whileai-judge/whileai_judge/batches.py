"""Calls of a judge on copies of rows, one by one or in batches.

A judge with ``grade_batch(rows) -> verdicts`` (plain or async) is called with up to ``batch_size`` rows at once: a
reward model on a GPU, an endpoint that takes many. A batch that raises, overstays or returns another number of verdicts
costs its rows alone, and none of them is lost.

Example:
    >>> class Lengths:
    ...     batch_size = 2
    ...     def grade_batch(self, rows):
    ...         return [len(row["final_text"]) / 10 for row in rows]
    >>> [o.value for o in outcomes_of(Lengths(), [{"final_text": "a" * n} for n in (1, 5, 10)])]
    [0.1, 0.5, 1.0]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from whileai_judge.bookkeeping import copy_row
from whileai_judge.defaults import BATCH_SIZE
from whileai_judge.engine import AllFailed, Outcome, is_async, run_calls
from whileai_kernel.errors import ParameterError

RowLike = Mapping[str, Any]


def outcomes_of(
    component: Any, items: Sequence[RowLike], *, stop_after: int | None = None, **running: Any
) -> Generator[Outcome, None, None]:
    """Call a judge on copies of rows.

    Args:
        component: The judge.
        items: The rows.
        stop_after: Rows, as for :func:`~whileai_judge.engine.run_calls`; of batches, as many as hold them.
        running: Further arguments of ``run_calls``.

    Yields:
        One outcome per row, in order.

    Raises:
        AllFailed: As ``run_calls``.
        ParameterError: ``batch_size`` is not a whole number of at least 1.
    """
    batch = getattr(component, "grade_batch", None)
    if not callable(batch):
        yield from run_calls(_on_copy(component), items, stop_after=stop_after, **running)
        return
    size = getattr(component, "batch_size", BATCH_SIZE.value)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ParameterError(f"batch_size={size!r} is not a whole number of at least 1", fix="set batch_size = 32")
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    enough = None if stop_after is None else -(-stop_after // size)
    outcomes = run_calls(_on_copies(batch), batches, stop_after=enough, **running)
    try:
        for rows, outcome in zip(batches, outcomes, strict=False):
            yield from _per_row(rows, outcome)
    except AllFailed as stopped:
        failed = zip(batches, stopped.outcomes, strict=False)
        raise AllFailed([outcome for rows, outcome in failed for _ in rows]) from None
    finally:
        outcomes.close()


def _per_row(rows: Sequence[RowLike], outcome: Outcome) -> list[Outcome]:
    if outcome.kind != "value":
        return [outcome] * len(rows)
    value = outcome.value
    verdicts = None if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__") else list(value)
    if verdicts is None or len(verdicts) != len(rows):
        given = type(value).__name__ if verdicts is None else f"{len(verdicts)} verdicts"
        error = ValueError(f"grade_batch returned {given} for {len(rows)} rows")
        return [Outcome("error", None, error, outcome.seconds)] * len(rows)
    return [Outcome("value", verdict, None, outcome.seconds) for verdict in verdicts]


def _on_copy(component: Callable[[RowLike], Any]) -> Callable[[RowLike], Any]:
    """The judge, called on a copy: what it does to its argument stays with it."""
    if not is_async(component):
        return lambda row: component(copy_row(row))

    async def call(row: RowLike) -> Any:
        return await component(copy_row(row))

    return call


def _on_copies(batch: Callable[[list[RowLike]], Any]) -> Callable[[Sequence[RowLike]], Any]:
    if not is_async(batch):
        return lambda rows: batch([copy_row(row) for row in rows])

    async def call(rows: Sequence[RowLike]) -> Any:
        return await batch([copy_row(row) for row in rows])

    return call
