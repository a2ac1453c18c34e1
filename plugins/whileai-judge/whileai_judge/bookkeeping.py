"""What happens to a row when a verdict is put on it, and what is counted about it.

Copies, the move of an earlier verdict to ``judgments``, merged markers, counts by status, and the
sentences that a graded data set carries as warnings. Nothing here calls a judge.

Example:
    >>> row = {"task_id": "t", "prompt": "q", "final_text": "a", "reward": None, "status": "missing"}
    >>> put_verdict(row, Outcome("value", True), {"id": "mine"}, 1.0, None)["reward"]
    1.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from whileai_judge.engine import Outcome
from whileai_kernel.errors import WhileaiError
from whileai_kernel.rows import STATUSES, Row, ordered
from whileai_kernel.verdicts import error_judgment, timeout_judgment, to_judgment

ONE_VALUE = "every one of the"
VERDICT_KEYS = ("reward", "status", "reason", "scorer", "evidence", "threshold")


def copy_value(value: Any) -> Any:
    """Copy nested dicts and lists; leaves are shared (rows are JSON, so their leaves cannot change)."""
    if type(value) is dict:
        return {k: copy_value(v) if type(v) is dict or type(v) is list else v for k, v in value.items()}
    if type(value) is list:
        return [copy_value(v) if type(v) is dict or type(v) is list else v for v in value]
    return value


def copy_row(row: Mapping[str, Any]) -> Row:
    """Copy a row so that nothing done to the copy reaches the original."""
    return {k: copy_value(v) for k, v in row.items()}


def verdict_of(row: Mapping[str, Any]) -> Row | None:
    """The verdict that is on a row, or None when nobody has judged it."""
    if row.get("reward") is None and row.get("scorer") is None and row.get("status") in (None, "missing"):
        return None
    return {key: row[key] for key in VERDICT_KEYS if key in row}


def put_verdict(
    row: Mapping[str, Any],
    outcome: Outcome,
    scorer: dict[str, Any],
    threshold: float,
    deadline: float | None,
    primary: bool = True,
) -> Row:
    """A copy of ``row`` with the verdict on it.

    Args:
        row: The row that was judged.
        outcome: What became of the call of the judge.
        scorer: Who judged: ``id``, ``version``, ``kind``, ``params``.
        threshold: Reward from which the row passes, unless the verdict names its own.
        deadline: Seconds that the call had, for the reason of a timeout.
        primary: False: the verdict goes to ``judgments`` and the row's own stays.

    Returns:
        A new row: the verdict's keys, markers merged over the row's, an earlier verdict appended to
        ``judgments``.
    """
    columns, markers = _columns(outcome, scorer, threshold, deadline)
    new = copy_row(row)
    if not primary:
        new.setdefault("reward", None)
        new.setdefault("status", "missing" if new["reward"] is None else "ok")
        new["judgments"] = [*(new.get("judgments") or []), columns]
    else:
        earlier = verdict_of(new)
        if earlier is not None:
            new["judgments"] = [*(new.get("judgments") or []), earlier]
        for key in VERDICT_KEYS:
            new.pop(key, None)
        new.update(columns)
    new["markers"] = {**(new.get("markers") or {}), **markers}
    return {key: new[key] for key in _key_order(tuple(new))}


@lru_cache(maxsize=256)
def _key_order(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The kernel's order of these keys; rows of one set share few sets of keys, so it is sorted once."""
    return tuple(ordered(dict.fromkeys(keys)))


def _columns(
    outcome: Outcome, scorer: dict[str, Any], threshold: float, deadline: float | None
) -> tuple[Row, dict[str, float | None]]:
    value = outcome.value
    if outcome.kind == "value" and (type(value) is bool or (type(value) in (float, int) and 0 <= value <= 1)):
        # The hot path: what to_judgment makes of a plain bool or number, without building the typed object.
        reward = float(value) + 0.0
        return {"reward": reward, "status": "ok", "threshold": threshold, "scorer": copy_value(scorer)}, {}
    markers: dict[str, float | None] = {}
    if outcome.kind == "value":
        judgment, markers = to_judgment(value, threshold=threshold)
    elif outcome.kind == "error" and outcome.error is not None:
        judgment = error_judgment(outcome.error, threshold=threshold)
    elif outcome.kind == "timeout":
        judgment = timeout_judgment(outcome.seconds if deadline is None else deadline, threshold=threshold)
    else:
        skipped = WhileaiError("not judged: too many calls before it never came back")
        judgment = error_judgment(skipped, threshold=threshold)
    columns = judgment.columns()
    columns.setdefault("scorer", copy_value(scorer))  # a Judgment that names its own scorer keeps it
    if "evidence" in columns:
        columns["evidence"] = copy_value(columns["evidence"])  # a judge may hand back parts of its own state
    return columns, markers


def count_verdicts(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by status and the mean, with the bound that the rows not scored put on it.

    Args:
        verdicts: Rows or judgments (``reward``, ``status``).

    Returns:
        ``rows``, ``scored``, one count per status that occurs, ``mean`` of the scored (None without any)
        and ``bounds``, the least and the largest mean that the rows not scored leave possible.
    """
    statuses: Counter[str] = Counter()
    total, scored, rows = 0.0, 0, 0
    for verdict in verdicts:
        rows += 1
        statuses[verdict.get("status") or "missing"] += 1
        reward = verdict.get("reward")
        if reward is not None:
            total += reward
            scored += 1
    counts: dict[str, Any] = {"rows": rows, "scored": scored}
    counts.update({status: statuses[status] for status in STATUSES if statuses[status]})
    counts["mean"] = total / scored if scored else None
    counts["bounds"] = [total / rows, (total + rows - scored) / rows] if rows else None
    return counts


def warnings_of(counts: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sentences a graded data set should carry: what was not scored, and a reward that never varies."""
    rows, scored = counts["rows"], counts["scored"]
    found: list[str] = []
    if not rows:
        return ["nothing to grade: there are no rows"]
    if scored < rows:
        causes = ", ".join(f"{counts[status]} {status}" for status in STATUSES if status != "ok" and status in counts)
        low, high = counts["bounds"]
        text = f"{rows - scored} of {rows} rows are not scored ({causes})"
        if scored:
            text += f"; mean reward {counts['mean']:.3f} over {scored} rows, {low:.3f} to {high:.3f} over all"
        reason = next((v.get("reason") for v in verdicts if v.get("reward") is None and v.get("reason")), None)
        found.append(text + (f"; first: {str(reason)[:200]}" if reason else ""))
    rewards = {verdict["reward"] for verdict in verdicts if verdict.get("reward") is not None}
    if scored > 1 and len(rewards) == 1:
        found.append(
            f"{ONE_VALUE} {scored} scored rows has reward {next(iter(rewards)):g}: nothing can be "
            "selected or compared; check that the judge reads the right field"
        )
    return found
