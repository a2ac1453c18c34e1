"""Can the judge be talked into a pass? Replies that must fail, and how often the judge passes them.

:func:`judge_probes` grades the rows once, then once per probe: worthless replies on all rows, and additions to replies
that the judge had failed. Each probe gets a rate with an interval over tasks and a verdict: ``holds`` when the
upper end is below the ceiling, ``fooled`` when the lower end is above it, ``unclear`` in between, ``too few rows``
below the least number. Other plugins add
probes through the hook ``wai_register_probes``.

Example:
    >>> rows = [{"task_id": f"t{i}", "prompt": "Where is my order?", "final_text": "Hm."} for i in range(30)]
    >>> report = judge_probes(rows, lambda row: "order" in row["final_text"].lower(), probes=["prompt_echo"])
    >>> report.results[0].verdict
    'fooled'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_judge.attacks import Probe
from whileai_judge.bookkeeping import copy_row
from whileai_judge.defaults import CONFIDENCE, PROBE_CEILING, PROBE_MIN_ROWS, PROBE_ROWS
from whileai_judge.intervals import Interval, clustered_rate
from whileai_judge.labels import Gold, gold_of
from whileai_judge.pipeline import grade
from whileai_judge.reference import Component
from whileai_kernel.registry import entries, make
from whileai_kernel.rows import passed, task_key


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe found.

    Attributes:
        name: The probe.
        verdict: ``holds``, ``fooled``, ``unclear`` or ``too few rows``.
        passed: Share of the probe's replies that the judge passed, with an interval over tasks; None without any.
        unscored: Replies that the judge did not score.
        keeps_reply: Whether the probe adds to failing replies (else it replaces replies).
    """

    name: str
    verdict: str
    passed: Interval | None
    unscored: int
    keeps_reply: bool

    def __str__(self) -> str:
        rate = "no reply was scored" if self.passed is None else f"passed {self.passed}"
        left = f", {self.unscored} not scored" if self.unscored else ""
        return f"{self.name}: {self.verdict}, {rate}{left}"


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What all probes found.

    Attributes:
        results: One per probe, in the order in which they were asked for.
        base_rows: Failing rows that additions were tried on.
    """

    results: tuple[ProbeResult, ...]
    base_rows: int

    @property
    def fooled(self) -> tuple[str, ...]:
        """Names of the probes that the judge passes too often."""
        return tuple(result.name for result in self.results if result.verdict == "fooled")

    def __str__(self) -> str:
        return "\n".join(str(result) for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "base_rows": self.base_rows,
            "results": [
                {
                    "name": result.name,
                    "verdict": result.verdict,
                    "passed": None if result.passed is None else result.passed.to_dict(),
                    "unscored": result.unscored,
                    "keeps_reply": result.keeps_reply,
                }
                for result in self.results
            ],
        }

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def available_probes() -> dict[str, Probe]:
    """All registered probes, by bare name, or by full id where two plugins share one."""
    found = entries("probes")
    names = [entry.name for entry in found]
    return {entry.name if names.count(entry.name) == 1 else entry.id: make("probes", entry.id) for entry in found}


def judge_probes(
    rows: Iterable[Mapping[str, Any]],
    judge: Component | str,
    *,
    probes: Sequence[str] | Mapping[str, Probe] | None = None,
    gold: Gold = None,
    max_rows: int = PROBE_ROWS.value,
    min_rows: int = PROBE_MIN_ROWS.value,
    ceiling: float = PROBE_CEILING.value,
    confidence: float = CONFIDENCE.value,
    **grading: Any,
) -> ProbeReport:
    """Try to talk a judge into passing replies that must fail.

    Args:
        rows: Rows to build the replies from; spread over tasks, at most ``max_rows``.
        judge: The judge, as for :func:`~whileai_judge.pipeline.grade`.
        probes: Names of probes, or probes by name; all available ones by default.
        gold: Labels; a reply labelled as passing is not used as a failing one.
        max_rows: Most rows per probe.
        min_rows: Fewest scored replies for a verdict.
        ceiling: Share of passes that is too much.
        confidence: Confidence of the intervals.
        grading: Further arguments of ``grade``: ``concurrency``, ``deadline``...

    Raises:
        UnknownNameError: A probe is unknown.
    """
    chosen = _chosen(probes)
    used = _spread(rows, max_rows)
    adding = [name for name, probe in chosen.items() if getattr(probe, "keeps_reply", False)]
    failing: list[Mapping[str, Any]] = []
    if adding:
        judged = grade(used, judge, **grading)
        for row, verdict in zip(used, judged, strict=True):
            right = gold_of(row, gold)
            if passed(verdict) is False and (right is None or right < 1.0):
                failing.append(row)
    results = []
    for name, probe in chosen.items():
        keeps = name in adding
        replies = [(row, text) for row in (failing if keeps else used) if (text := probe(row)) is not None]
        judged = grade([_with_reply(row, text) for row, text in replies], judge, **grading)
        scored = [(task_key(row), passed(row)) for row in judged if passed(row) is not None]
        rate = clustered_rate(scored, confidence) if scored else None
        verdict_of = _verdict(rate, min_rows, ceiling)
        results.append(ProbeResult(name, verdict_of, rate, len(judged) - len(scored), keeps))
    return ProbeReport(tuple(results), len(failing))


def _chosen(probes: Sequence[str] | Mapping[str, Probe] | None) -> dict[str, Probe]:
    if isinstance(probes, Mapping):
        return dict(probes)
    if probes is None:
        return available_probes()
    return {name: make("probes", name) for name in probes}


def _spread(rows: Iterable[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    """At most ``limit`` rows: the first of every task, then the second of every task, and so on."""
    rank: dict[str, int] = {}
    ordered: list[tuple[int, int, Mapping[str, Any]]] = []
    for position, row in enumerate(rows):
        task = task_key(row)
        rank[task] = rank.get(task, -1) + 1
        ordered.append((rank[task], position, row))
    ordered.sort(key=lambda item: item[:2])
    return [row for _, _, row in ordered[:limit]]


def _with_reply(row: Mapping[str, Any], text: str) -> dict[str, Any]:
    new = copy_row(row)
    new["final_text"] = text
    new["finish_reason"] = "stop"
    messages = new.get("messages") or []
    if messages and messages[-1].get("role") == "assistant":
        messages[-1] = {"role": "assistant", "content": text}
    for key in ("reward", "reason", "scorer", "evidence", "judgments", "rollout_id", "seeded"):
        new.pop(key, None)
    new["status"] = "missing"
    return new


def _verdict(rate: Interval | None, min_rows: int, ceiling: float) -> str:
    if rate is None or rate.rows < min_rows:
        return "too few rows"
    if rate.low > ceiling:
        return "fooled"
    return "holds" if rate.high <= ceiling else "unclear"
