"""The lines and stamps that every selection report shares.

Example:
    >>> summary_line("rl", {"kept": 2, "rows": 4, "kept_tasks": 1, "tasks": 1, "dropped": {"truncated": 2}})
    'select rl: kept 2 of 4 rows in 1 of 1 tasks | dropped: truncated 2'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def summary_line(mode: str, report: Mapping[str, Any]) -> str:
    """Return the one line that a selection prints."""
    dropped = report["dropped"]
    tail = ", ".join(f"{reason} {n}" for reason, n in dropped.items()) if dropped else "nothing"
    parts = [
        f"select {mode}: kept {report['kept']} of {report['rows']} rows "
        f"in {report['kept_tasks']} of {report['tasks']} tasks",
        f"dropped: {tail}",
    ]
    outside = report.get("expected_outside_band")
    if outside is not None:
        parts.append(f"about {outside:.0%} of the kept tasks truly outside the band")
    if report.get("no_choice"):
        parts.append(f"nothing to choose in {report['no_choice']} tasks")
    return " | ".join(parts)


def calibration(rows: Sequence[Row], kept: Sequence[int], rate: str, rate_of: str) -> dict[str, Any]:
    """Return under which policy, scorer and threshold the rates were measured, with counts of rows.

    A band holds for the policy that was sampled and the judge that scored; this is what makes the selection stale.
    """
    policies: Counter[str] = Counter()
    scorers: Counter[str] = Counter()
    thresholds: Counter[str] = Counter()
    for row in rows:
        policy = row.get("policy") or {}
        name = "/".join(str(policy[k]) for k in ("name", "model", "version", "prompt_hash") if policy.get(k))
        policies[name or "unknown"] += 1
        scorer = row.get("scorer") or {}
        scorers["@".join(str(scorer[k]) for k in ("id", "version") if scorer.get(k)) or "unknown"] += 1
        thresholds[f"{row.get('threshold', 1.0):g}"] += 1
    return {
        "rate": rate,
        "rate_of": rate_of,
        "rows": len(rows),
        "kept": len(kept),
        "policies": dict(policies.most_common(5)),
        "scorers": dict(scorers.most_common(5)),
        "thresholds": dict(thresholds.most_common(5)),
        "mixed": len(policies) > 1 or len(scorers) > 1 or len(thresholds) > 1,
    }
