"""Grade many rows with one verifier, from synchronous or asynchronous code.

The full grading pipeline (several judges, journals, cost) is `wai.grade`; this is the short way that needs this plugin
alone. Rows come back in order, as copies, each with `reward`, `status`, `reason`, `scorer`, `evidence` and `threshold`.
A verifier that raises leaves its row not scored; one row never ends the batch.

Example:
    >>> rows = [{"task_id": "t", "final_text": "4", "privileged": {"reference": "4"}}]
    >>> verify_rows(rows, "exact_match")[0]["reward"]
    1.0
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.models import Judgment, Scorer
from whileai_kernel.verdicts import error_judgment, to_judgment
from whileai_verify.combine import resolve_part
from whileai_verify.defaults import ROW_THREADS

__all__ = ["averify_rows", "judge_row", "scorer_of", "verify_rows"]

Row = Mapping[str, Any]


def scorer_of(verifier: Any, name: str | None = None) -> Scorer:
    """Return who judged: the id, version and parameters with which a verifier was made, else its name."""
    from whileai_kernel.registry import spec_of

    spec = spec_of(verifier)
    if spec is not None:
        return Scorer(id=spec.id, version=spec.version, kind="rule", params=dict(spec.params))
    label = name or getattr(verifier, "__qualname__", None) or type(verifier).__name__
    return Scorer(id=str(label), version=str(getattr(verifier, "version", "-")), kind="rule")


def _written(row: Row, judgment: Judgment, markers: Mapping[str, float | None]) -> dict[str, Any]:
    """Return a copy of a row with a verdict on it; an earlier verdict moves to `judgments`."""
    out = dict(row)
    if row.get("reward") is not None or row.get("scorer") is not None:
        keys = ("reward", "status", "reason", "scorer", "evidence", "threshold")
        old = {k: row[k] for k in keys if row.get(k) is not None}
        old.setdefault("status", "missing" if row.get("reward") is None else "ok")
        out["judgments"] = [*(row.get("judgments") or []), old]
    out["markers"] = {**(row.get("markers") or {}), **markers}
    out.update(
        reward=judgment.reward,
        status=judgment.status,
        threshold=judgment.threshold,
        reason=judgment.reason,
        scorer=None if judgment.scorer is None else judgment.scorer.model_dump(mode="json", exclude_none=True),
        evidence=dict(judgment.evidence),
    )
    return out


def judge_row(verifier: Callable[[Row], Any], row: Row, scorer: Scorer | None = None) -> dict[str, Any]:
    """Return one row with the verdict of a synchronous verifier, or of an async one run to its end in a thread."""
    try:
        value = verifier(row)
        if inspect.isawaitable(value):
            value = _run(value)
    except Exception as error:  # noqa: BLE001 - one row never ends the batch; the status and the reason say why
        judgment = error_judgment(error, scorer=scorer)
        markers: dict[str, float | None] = {}
    else:
        judgment, markers = to_judgment(value, scorer=scorer, threshold=float(getattr(verifier, "threshold", 1.0)))
    return _written(row, judgment, markers)


def _run(value: Any) -> Any:
    async def wait() -> Any:
        return await value

    with ThreadPoolExecutor(1) as one:  # its own thread and loop: the caller's loop may be running
        return one.submit(lambda: asyncio.run(wait())).result()


def verify_rows(
    rows: Iterable[Row], verifier: Any, *, threads: int = ROW_THREADS.value, name: str | None = None
) -> list[dict[str, Any]]:
    """Grade rows with a verifier.

    Args:
        rows: Rows; an iterator is read once.
        verifier: A verifier, a registered name, or `{"name": ..., **params}`.
        threads: Rows graded at once. The built-in text verifiers are faster with 1; those that wait for a worker
            process (math, code) gain from more.
        name: Scorer id on the rows, for a verifier that was not made by name.

    Returns:
        Copies of the rows in order, with the verdict on each.

    Raises:
        ParameterError: `threads` is below 1, or the verifier cannot be made.
    """
    if threads < 1:
        raise ParameterError("threads must be at least 1", why=f"it is {threads}")
    part = resolve_part(verifier)
    scorer = scorer_of(part, name)
    if threads == 1:
        return [judge_row(part, row, scorer) for row in rows]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda row: judge_row(part, row, scorer), rows))


async def averify_rows(
    rows: Iterable[Row], verifier: Any, *, threads: int = ROW_THREADS.value, name: str | None = None
) -> list[dict[str, Any]]:
    """Grade rows without blocking the running event loop; arguments and result as in `verify_rows`."""
    return await asyncio.to_thread(verify_rows, rows, verifier, threads=threads, name=name)
