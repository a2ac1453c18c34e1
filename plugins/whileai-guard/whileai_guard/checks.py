"""Findings about rows that are about to leave a stage: what `wai_check_rows` of this plugin returns.

Example:
    >>> rows = [{"reward": 1.0, "status": "ok", "rollout_id": str(i)} for i in range(4)]
    >>> [f.name for f in shared_reward(rows)]
    ['guard/shared_reward']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whileai_guard._text import assistant_turns
from whileai_guard.defaults import FINDING_EXAMPLES, SHARED_REWARD_ROWS
from whileai_guard.leaks import quoted_privileged
from whileai_guard.risk import no_grader_address
from whileai_kernel.lifecycle import Finding
from whileai_kernel.rows import passed

__all__ = ["empty_reply_paid", "find_all", "grader_address", "leaked_reference", "shared_reward", "split_overlap"]

Row = Mapping[str, Any]


def find_all(rows: Sequence[Row], stage_name: str) -> list[Finding]:
    """Return the findings for one stage; an error level is used only where rows leave for training."""
    leaving = stage_name.startswith(("export", "train", "publish"))
    return [
        *leaked_reference(rows, leaving=leaving),
        *empty_reply_paid(rows, leaving=leaving),
        *split_overlap(rows, leaving=leaving),
        *grader_address(rows),
        *shared_reward(rows),
    ]


def row_name(row: Row, position: int) -> str | int:
    """Return the name under which a finding lists a row."""
    name = row.get("rollout_id")
    return name if isinstance(name, str) and name else position


def leaked_reference(rows: Sequence[Row], *, leaving: bool = True) -> list[Finding]:
    """Find rows that quote their private reference, rubric or hidden state."""
    hits = [row_name(row, i) for i, row in enumerate(rows) if row.get("privileged") and quoted_privileged(row)]
    if not hits:
        return []
    return [
        Finding(
            name="guard/leaked_reference",
            level="error" if leaving else "warning",
            message="rows quote their private reference, rubric or hidden state; a policy trained on them learns to "
            "read the answer instead of finding it",
            fix="drop them (select does so), or look at guard.leak_report(rows) to see the quoted spans",
            count=len(hits),
            rows=tuple(hits[: FINDING_EXAMPLES.value]),
        )
    ]


def empty_reply_paid(rows: Sequence[Row], *, leaving: bool = True) -> list[Finding]:
    """Find rows that passed although the agent said nothing and called nothing: the reward pays for doing nothing."""
    hits = [
        row_name(row, i)
        for i, row in enumerate(rows)
        if passed(row) and not assistant_turns(row) and not any(m.get("tool_calls") for m in row.get("messages") or ())
    ]
    if not hits:
        return []
    return [
        Finding(
            name="guard/empty_reply_paid",
            level="error" if leaving else "warning",
            message="an agent that does nothing earns the reward on these rows; training on it teaches to do nothing",
            fix="mend the verifier (where no change is the goal, require a read or a refusal), or drop the rows",
            count=len(hits),
            rows=tuple(hits[: FINDING_EXAMPLES.value]),
        )
    ]


def split_overlap(rows: Sequence[Row], *, leaving: bool = True) -> list[Finding]:
    """Find tasks that stand on more than one side of a split."""
    sides: dict[str, set[str]] = {}
    for row in rows:
        if row.get("split") and row.get("task_id"):
            sides.setdefault(str(row["task_id"]), set()).add(str(row["split"]))
    both = {task for task, found in sides.items() if len(found) > 1}
    hits = [row_name(row, i) for i, row in enumerate(rows) if str(row.get("task_id")) in both] if both else []
    if not hits:
        return []
    return [
        Finding(
            name="guard/split_overlap",
            level="error" if leaving else "warning",
            message=f"{len(both)} tasks stand on more than one side of the split, so the holdout measures memory",
            fix="split by task: guard.split_rows(rows, holdout=0.1)",
            count=len(hits),
            rows=tuple(hits[: FINDING_EXAMPLES.value]),
        )
    ]


def grader_address(rows: Sequence[Row]) -> list[Finding]:
    """Find replies that speak to their grader."""
    hits = [row_name(row, i) for i, row in enumerate(rows) if no_grader_address(row)["value"] == 0.0]
    if not hits:
        return []
    return [
        Finding(
            name="guard/grader_address",
            level="warning",
            message="replies speak to their grader or write a verdict of their own",
            fix="look at the spans of the marker guard/no_grader_address, and drop the rows or harden the judge",
            count=len(hits),
            rows=tuple(hits[: FINDING_EXAMPLES.value]),
        )
    ]


def shared_reward(rows: Sequence[Row], min_rows: int = SHARED_REWARD_ROWS.value) -> list[Finding]:
    """Find that every scored row has one and the same reward: usually a grader that does not grade."""
    rewards = [row["reward"] for row in rows if row.get("reward") is not None]
    if len(rewards) < min_rows or len(set(rewards)) > 1:
        return []
    return [
        Finding(
            name="guard/shared_reward",
            level="warning",
            message=f"all {len(rewards)} scored rows have reward {rewards[0]:g}: check the grader; nothing can be "
            "learned from a reward that does not vary",
            fix="grade a few rows by hand, or run the judge on a known wrong answer",
            count=len(rewards),
        )
    ]
