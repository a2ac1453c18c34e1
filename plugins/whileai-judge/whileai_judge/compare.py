"""Several judges on the same labelled rows, side by side: how right, how steady, how fast, at what cost.

Example:
    >>> rows = [{"task_id": f"t{i}", "final_text": "ab"[i % 2], "gold": float(i % 2)} for i in range(40)]
    >>> judges = {"right": lambda row: row["final_text"] == "b", "lenient": lambda row: True}
    >>> table = compare_judges(rows, judges, gold=lambda row: row["gold"])
    >>> [line.name for line in table.lines], table.lines[1].behind.high < 0
    (['right', 'lenient'], True)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_judge.defaults import CONFIDENCE
from whileai_judge.intervals import Interval, Sums, figure_of, ratio
from whileai_judge.labels import Gold, gold_of
from whileai_judge.pipeline import grade
from whileai_judge.reference import Component
from whileai_judge.trust import TrustReport, judge_trust
from whileai_kernel.errors import ParameterError
from whileai_kernel.rows import passed, task_key


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """One judge of the table.

    Attributes:
        name: The judge.
        trust: Its report.
        behind: Its agreement minus that of the best, on rows that both scored, with an interval over tasks; None for
            the best itself and where there are too few tasks.
        seconds: Seconds of the whole grading, at the concurrency that was asked for.
        cost: Sum of the costs on the verdicts in US dollars; None when one is unknown.
        unscored: Rows without a verdict.
    """

    name: str
    trust: TrustReport
    behind: Interval | None
    seconds: float
    cost: float | None
    unscored: int


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """Judges side by side, the one that agrees most first."""

    lines: tuple[JudgeLine, ...]

    def __str__(self) -> str:
        head = ("judge", "verdict", "agreement", "kappa", "false pass", "false fail", "behind", "s", "cost", "unscored")
        cells: list[tuple[str, ...]] = [head]
        for line in self.lines:
            trust = line.trust
            figures = (trust.agreement, trust.kappa, trust.false_pass, trust.false_fail, line.behind)
            shown = ["-" if f is None else f"{f.value:.2f} [{f.low:.2f}..{f.high:.2f}]" for f in figures]
            cost = "-" if line.cost is None else f"{line.cost:.4g}"
            cells.append((line.name, trust.verdict, *shown, f"{line.seconds:.1f}", cost, str(line.unscored)))
        widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values."""
        return {
            "lines": [
                {
                    "name": line.name,
                    "trust": line.trust.to_dict(),
                    "behind": None if line.behind is None else line.behind.to_dict(),
                    "seconds": line.seconds,
                    "cost": line.cost,
                    "unscored": line.unscored,
                }
                for line in self.lines
            ]
        }

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def compare_judges(
    rows: Iterable[Mapping[str, Any]],
    judges: Mapping[str, Component | str],
    *,
    gold: Gold = None,
    confidence: float = CONFIDENCE.value,
    grading: Mapping[str, Any] | None = None,
    **floors: Any,
) -> JudgeTable:
    """Grade the same rows with several judges and compare each with the labels.

    Args:
        rows: Labelled rows.
        judges: Judges by name.
        gold: Whose labels are right, as for :func:`~whileai_judge.trust.judge_trust`.
        confidence: Confidence of the intervals.
        grading: Arguments of ``grade``.
        floors: Further arguments of ``judge_trust``.

    Returns:
        The table, sorted by agreement.

    Raises:
        ParameterError: There is no judge.
    """
    if not judges:
        raise ParameterError("there is no judge to compare", fix="pass judges={'name': judge}")
    listed = list(rows)
    right = [gold_of(row, gold) for row in listed]
    graded: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for name, judge in judges.items():
        started = time.perf_counter()
        graded[name] = grade(listed, judge, **(grading or {}))
        seconds[name] = time.perf_counter() - started
    reports = {name: judge_trust(data, gold=gold, confidence=confidence, **floors) for name, data in graded.items()}
    order = sorted(reports, key=lambda name: -_agreement(reports[name]))
    best = order[0]
    hits = {name: [_hit(row, one) for row, one in zip(data, right, strict=True)] for name, data in graded.items()}
    lines = []
    for name in order:
        costs = [(row.get("evidence") or {}).get("cost_usd") for row in graded[name]]
        known = [cost for cost in costs if isinstance(cost, int | float)]
        behind = None if name == best else _difference(listed, hits[name], hits[best], confidence)
        cost = sum(known) if len(known) == len(costs) and costs else None
        unscored = sum(row.get("reward") is None for row in graded[name])
        lines.append(JudgeLine(name, reports[name], behind, seconds[name], cost, unscored))
    return JudgeTable(tuple(lines))


def _agreement(report: TrustReport) -> float:
    return -1.0 if report.agreement is None else report.agreement.value


def _hit(row: Mapping[str, Any], right: float | None) -> bool | None:
    said = passed(row)
    return None if said is None or right is None else said == (right >= row.get("threshold", 1.0) - 1e-9)


def _difference(
    rows: list[Mapping[str, Any]], one: list[bool | None], other: list[bool | None], confidence: float
) -> Interval | None:
    by_task: dict[str, list[float]] = {}
    for row, a, b in zip(rows, one, other, strict=True):
        if a is not None and b is not None:
            sums = by_task.setdefault(task_key(row), [0.0, 0.0])
            sums[0] += a - b
            sums[1] += 1
    clusters: list[Sums] = [tuple(sums) for sums in by_task.values()]
    count = int(sum(sums[1] for sums in clusters))
    if len(clusters) < 2:
        return None
    return figure_of(clusters, ratio, confidence, rows=count, bounds=(-1.0, 1.0))
