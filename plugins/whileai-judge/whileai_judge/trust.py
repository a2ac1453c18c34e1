"""Can this judge be believed? Its verdicts against labels, with intervals over tasks and a verdict of its own.

:func:`judge_trust` reads rows that carry a verdict of the judge and a label (see :mod:`whileai_judge.labels`). It
reports agreement, kappa, AC1, both error rates, the effect of length, self-consistency, agreement per slice and on two
halves of the tasks, and says ``trusted``, ``not trusted`` or ``cannot tell``. It refuses to certify on degenerate
labels (one class, too few) and names what is missing. Judges that are none are named: one that always says the same
(``constant``), one that follows length (``length``) or the seat (``seat``), one that agrees no better than chance
(``random``), one that contradicts itself (``inconsistent``).

Example:
    >>> rows = [{"task_id": f"t{i}", "reward": i % 2, "status": "ok", "final_text": "x"} for i in range(8)]
    >>> report = judge_trust(rows, gold=lambda row: row["reward"])
    >>> report.verdict, report.agreement.value
    ('cannot tell', 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from whileai_judge.confusion import ac1, chance_figure, kappa
from whileai_judge.defaults import (
    CHANCE_KAPPA,
    CONFIDENCE,
    CONSISTENCY_FLOOR,
    ERROR_CEILING,
    FLIP_CEILING,
    KAPPA_FLOOR,
    LENGTH_EFFECT,
    MIN_PER_CLASS,
    MIN_TASKS,
)
from whileai_judge.intervals import Interval, Sums, clustered_rate, figure_of, rate_of, total
from whileai_judge.labels import Gold, gold_of
from whileai_judge.pairs import PairwiseReport
from whileai_judge.prompts import reply_text
from whileai_kernel.rows import content_id, task_key

_FIGURES = (
    *("agreement", "kappa", "ac1", "false_pass", "false_fail"),
    *("length_effect", "self_consistency", "position_flips"),
)
Trust = Literal["trusted", "not trusted", "cannot tell"]


@dataclass(frozen=True, slots=True)
class TrustReport:
    """What the labels say about a judge. Every interval is over tasks.

    Attributes:
        verdict: ``trusted``, ``not trusted`` or ``cannot tell``.
        faults: What is wrong with the judge, by name.
        missing: What would be needed to tell.
        confusion: Rows by ``tp``, ``fp``, ``fn``, ``tn`` (positive: passed).
        rows: Rows with a verdict and a label.
        tasks: Their tasks.
        unused: Rows left out, by cause: ``no label``, ``not scored``.
        agreement: Share of rows on which judge and label say the same.
        kappa: Cohen's kappa; None where it does not exist.
        ac1: Gwet's AC1; None where it does not exist.
        false_pass: Share of failing rows that the judge passes.
        false_fail: Share of passing rows that the judge fails.
        length_effect: Correlation of the judge's verdict with log length among rows of one label; 0 is none.
        self_consistency: Share of pairs of the judge's votes on one row that are equal.
        position_flips: Share of pairs whose verdict followed the seat, from the pairwise report that was given.
        slices: Agreement per slice, ``"field=value"``.
        halves: Agreement on two halves of the tasks, split by a hash: tune a rubric on one, read the other.
    """

    verdict: Trust
    faults: Mapping[str, str]
    missing: tuple[str, ...]
    confusion: Mapping[str, int]
    rows: int
    tasks: int
    unused: Mapping[str, int]
    agreement: Interval | None = None
    kappa: Interval | None = None
    ac1: Interval | None = None
    false_pass: Interval | None = None
    false_fail: Interval | None = None
    length_effect: Interval | None = None
    self_consistency: Interval | None = None
    position_flips: Interval | None = None
    slices: Mapping[str, Interval] = field(default_factory=dict)
    halves: Mapping[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        def show(interval: Interval | None) -> str:
            return "-" if interval is None else f"{interval.value:.2f} [{interval.low:.2f}..{interval.high:.2f}]"

        left = "".join(f", {n} {cause}" for cause, n in self.unused.items() if n)
        lines = [
            f"{self.verdict} | agreement {show(self.agreement)} | kappa {show(self.kappa)} | false pass "
            f"{show(self.false_pass)} | false fail {show(self.false_fail)} ({self.rows} rows, {self.tasks} tasks{left})"
        ]
        more = {"AC1": self.ac1, "length effect": self.length_effect}
        more |= {"self-consistency": self.self_consistency, "position flips": self.position_flips}
        lines += ["  " + " | ".join(f"{name} {show(one)}" for name, one in more.items() if one is not None)]
        lines += [f"  {name}: agreement {show(one)}" for name, one in self.slices.items()]
        lines = [line for line in lines if line.strip()]
        lines += [f"  {name}: {text}" for name, text in self.faults.items()]
        lines += [f"  missing: {text}" for text in self.missing]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = ("verdict", "rows", "tasks")
        intervals = {name: getattr(self, name) for name in _FIGURES}
        return {
            **{name: getattr(self, name) for name in plain},
            "faults": dict(self.faults),
            "missing": list(self.missing),
            "confusion": dict(self.confusion),
            "unused": dict(self.unused),
            **{name: None if one is None else one.to_dict() for name, one in intervals.items()},
            "slices": {name: one.to_dict() for name, one in self.slices.items()},
            "halves": {name: one.to_dict() for name, one in self.halves.items()},
        }

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, slots=True)
class _Used:
    """A row that counts: its task, both verdicts, the length of its reply and the row itself."""

    task: str
    judged: bool
    gold: bool
    length: float
    row: Mapping[str, Any]


def verdict_by(row: Mapping[str, Any], judge: str | None) -> Mapping[str, Any] | None:
    """The last verdict of a judge on a row: the row's own, or the one whose scorer has this id."""
    if judge is None:
        return row
    verdicts = [row, *reversed(row.get("judgments") or ())]
    return next((v for v in verdicts if (v.get("scorer") or {}).get("id") == judge), None)


def judge_trust(
    rows: Iterable[Mapping[str, Any]],
    *,
    judge: str | None = None,
    gold: Gold = None,
    threshold: float | None = None,
    slices: Sequence[str] = (),
    pairs: PairwiseReport | None = None,
    confidence: float = CONFIDENCE.value,
    kappa_floor: float = KAPPA_FLOOR.value,
    error_ceiling: float = ERROR_CEILING.value,
    chance_kappa: float = CHANCE_KAPPA.value,
    length_effect: float = LENGTH_EFFECT.value,
    consistency_floor: float = CONSISTENCY_FLOOR.value,
    flip_ceiling: float = FLIP_CEILING.value,
    min_per_class: int = MIN_PER_CLASS.value,
    min_tasks: int = MIN_TASKS.value,
) -> TrustReport:
    """Compare a judge with labels.

    Args:
        rows: Rows with a verdict of the judge and labels.
        judge: Scorer id of the judge; the verdict that is on the row by default.
        gold: Whose labels are right: a function of the row, or a scorer id; those of people by default.
        threshold: Reward from which a verdict passes; each verdict's own by default.
        slices: Fields to report agreement by, for example ``"axes.stance"``.
        pairs: What the judge did with pairs, for the seat.
        confidence: Confidence of every interval.
        kappa_floor: Kappa's lower end must reach it.
        error_ceiling: The upper ends of both error rates must stay below it.
        chance_kappa: Kappa below which, or with an interval that holds 0, the judge is called random.
        length_effect: Absolute correlation with length from which the judge follows it.
        consistency_floor: Self-consistency must not lie below it.
        flip_ceiling: The most position flips: above the lower end the judge follows the seat, above the upper end
            more pairs are needed to tell.
        min_per_class: Fewest passing and fewest failing rows.
        min_tasks: Fewest tasks.
    """
    listed = list(rows)
    used, unused = _usable(listed, judge, gold, threshold)
    by_task: dict[str, list[_Used]] = {}
    for one in used:
        by_task.setdefault(one.task, []).append(one)
    clusters = [_counts(group) for group in by_task.values()]
    sums = total(clusters) if clusters else (0.0, 0.0, 0.0, 0.0)
    tp, fp, fn, tn = (int(value) for value in sums)
    figures: dict[str, Interval | None] = {
        "agreement": rate_of([(c[0] + c[3], sum(c)) for c in clusters], confidence),
        "kappa": chance_figure(clusters, kappa, confidence),
        "ac1": chance_figure(clusters, ac1, confidence),
        "false_pass": rate_of([(c[1], c[1] + c[3]) for c in clusters], confidence),
        "false_fail": rate_of([(c[2], c[0] + c[2]) for c in clusters], confidence),
        "length_effect": _length_effect(by_task, confidence),
        "self_consistency": _self_consistency(used, judge, confidence),
    }
    missing = _missing(tp + fn, fp + tn, len(by_task), min_per_class, min_tasks)
    if unused["no label"] == len(listed) and listed and not callable(gold):
        missing.insert(0, _whose(listed, gold))
    faults: dict[str, str] = {}
    if len(by_task) >= min_tasks and (tp + fp == 0 or fn + tn == 0):
        faults["constant"] = f"the judge says {'pass' if tp + fp else 'fail'} to all {len(used)} rows"
    elif not missing:
        faults |= _chance_fault(figures["kappa"], chance_kappa)
    faults |= _length_fault(figures["length_effect"], length_effect)
    if (consistent := figures["self_consistency"]) is not None and consistent.high < consistency_floor:
        faults["inconsistent"] = f"its own votes on one row agree in {consistent} of pairs"
    flips = None if pairs is None else pairs.position_flips
    if flips is not None and flips.low > flip_ceiling:
        faults["seat"] = f"{flips} of its verdicts on pairs follow the seat"
    elif flips is not None and flips.high > flip_ceiling:
        missing.append(f"pairs: {flips.high:.2f} of the verdicts may follow the seat, above {flip_ceiling:g}")
    verdict, short = _certify(figures, missing, faults, kappa_floor, error_ceiling)
    return TrustReport(
        verdict=verdict,
        faults=faults,
        missing=(*missing, *short),
        confusion={"tp": tp, "fp": fp, "fn": fn, "tn": tn},
        rows=len(used),
        tasks=len(by_task),
        unused=unused,
        position_flips=flips,
        slices=_by_slice(used, slices, confidence),
        halves=_halves(used, confidence),
        **figures,
    )


def _usable(
    rows: Iterable[Mapping[str, Any]], judge: str | None, gold: Gold, threshold: float | None
) -> tuple[list[_Used], dict[str, int]]:
    used: list[_Used] = []
    unused = {"no label": 0, "not scored": 0}
    for row in rows:
        verdict = verdict_by(row, judge)
        reward = None if verdict is None else verdict.get("reward")
        right = gold_of(row, gold)
        if right is None:
            unused["no label"] += 1
        elif reward is None or verdict is None:
            unused["not scored"] += 1
        else:
            limit = threshold if threshold is not None else verdict.get("threshold", 1.0)
            length = math.log2(1 + len(reply_text(row) or ""))
            used.append(_Used(task_key(row), reward >= limit - 1e-9, right >= limit - 1e-9, length, row))
    return used, unused


def _counts(group: Sequence[_Used]) -> Sums:
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for one in group:
        cells[one.judged, one.gold] += 1
    return tuple(float(cells[key]) for key in ((True, True), (True, False), (False, True), (False, False)))


def _moments(group: Sequence[_Used]) -> Sums:
    """Per label: rows, sums of verdict, length, length squared, and their product."""
    sums = [0.0] * 10
    for one in group:
        base = 5 if one.gold else 0
        for i, value in enumerate((1.0, one.judged, one.length, one.length**2, one.judged * one.length)):
            sums[base + i] += value
    return tuple(sums)


def _within_correlation(sums: Sums) -> float | None:
    """Correlation of verdict and length among rows with the same label."""
    both = length = verdict = 0.0
    for n, j, x, xx, jx in (sums[:5], sums[5:]):
        if n > 0:
            both += jx - j * x / n
            length += xx - x * x / n
            verdict += j - j * j / n
    return both / math.sqrt(length * verdict) if length > 1e-9 and verdict > 1e-9 else None


def _length_effect(by_task: Mapping[str, Sequence[_Used]], confidence: float) -> Interval | None:
    clusters = [_moments(group) for group in by_task.values()]
    rows = sum(len(group) for group in by_task.values())
    if len(clusters) < 2:
        return None
    return figure_of(clusters, _within_correlation, confidence, rows=rows, bounds=(-1.0, 1.0))


def _self_consistency(used: Sequence[_Used], judge: str | None, confidence: float) -> Interval | None:
    """Pairs of votes on one row that agree: of several votes in one verdict, or of repeated verdicts."""
    pairs: list[tuple[str, bool]] = []
    for one in used:
        verdict = verdict_by(one.row, judge) or {}
        votes = (verdict.get("evidence") or {}).get("votes")
        if not isinstance(votes, list) or len(votes) < 2:
            scorer = verdict.get("scorer") or {}
            same = [j for j in one.row.get("judgments") or () if (j.get("scorer") or {}) == scorer and scorer]
            votes = [v.get("reward") for v in (verdict, *(j for j in same if j is not verdict))]
            votes = [vote for vote in votes if vote is not None]
        pairs += [(one.task, a == b) for i, a in enumerate(votes) for b in votes[i + 1 :]]
    return clustered_rate(pairs, confidence) if pairs else None


def _by_slice(used: Sequence[_Used], slices: Sequence[str], confidence: float) -> dict[str, Interval]:
    found: dict[str, list[tuple[str, bool]]] = {}
    for one in used:
        for path in slices:
            value: Any = one.row
            for part in path.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            found.setdefault(f"{path}={value}", []).append((one.task, one.judged == one.gold))
    rates = {name: clustered_rate(pairs, confidence) for name, pairs in sorted(found.items())}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _halves(used: Sequence[_Used], confidence: float) -> dict[str, Interval]:
    halves: dict[str, list[tuple[str, bool]]] = {"first": [], "second": []}
    side: dict[str, str] = {}
    for one in used:
        if one.task not in side:
            side[one.task] = "first" if int(content_id("half", one.task)[-1], 16) < 8 else "second"
        halves[side[one.task]].append((one.task, one.judged == one.gold))
    rates = {name: clustered_rate(pairs, confidence) for name, pairs in halves.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _missing(passing: int, failing: int, tasks: int, min_per_class: int, min_tasks: int) -> list[str]:
    short = []
    for name, count in (("passing", passing), ("failing", failing)):
        if count < min_per_class:
            short.append(f"{min_per_class - count} more rows labelled as {name} (there are {count})")
    if tasks < min_tasks:
        short.append(f"{min_tasks - tasks} more tasks (there are {tasks})")
    return short


def _whose(rows: Sequence[Mapping[str, Any]], gold: str | None) -> str:
    """Say whose labels were asked for, and whose there are."""
    scorers = ((j.get("scorer") or {}).get("id") for row in rows for j in row.get("judgments") or ())
    there = sorted({name for name in scorers if isinstance(name, str)})
    asked = "people" if gold is None else repr(gold)
    if not there:
        return f"labels of {asked}: the rows have none; attach_labels(rows, ...) puts them there"
    return f"labels of {asked}: the rows have those of {', '.join(map(repr, there))}; pass gold={there[0]!r}"


def _chance_fault(agreed: Interval | None, chance_kappa: float) -> dict[str, str]:
    if agreed is None or (agreed.low > 0 and agreed.value >= chance_kappa):
        return {}
    return {
        "random": f"kappa {agreed.value:.2f} [{agreed.low:.2f}..{agreed.high:.2f}]: little or nothing beyond chance"
    }


def _length_fault(effect: Interval | None, ceiling: float) -> dict[str, str]:
    if effect is None or effect.low <= 0 <= effect.high or abs(effect.value) < ceiling:
        return {}
    longer = "longer" if effect.value > 0 else "shorter"
    return {"length": f"among rows with one label it prefers the {longer} (correlation {effect.value:.2f})"}


def _certify(
    figures: Mapping[str, Interval | None],
    missing: Sequence[str],
    faults: Mapping[str, str],
    kappa_floor: float,
    error_ceiling: float,
) -> tuple[Trust, list[str]]:
    if faults:
        return "not trusted", []
    if missing:
        return "cannot tell", []
    agreed, passes, fails = (figures[name] for name in ("kappa", "false_pass", "false_fail"))
    if agreed is None or passes is None or fails is None:
        return "cannot tell", ["kappa does not exist for these labels"]
    if agreed.high < kappa_floor or passes.low > error_ceiling or fails.low > error_ceiling:
        return "not trusted", []
    short = []
    if agreed.low < kappa_floor:
        short.append(f"labels: kappa may be as low as {agreed.low:.2f}, below {kappa_floor:g}")
    for name, rate in (("false pass", passes), ("false fail", fails)):
        if rate.high > error_ceiling:
            short.append(f"labels: the {name} rate may be as high as {rate.high:.2f}, above {error_ceiling:g}")
    return ("cannot tell", short) if short else ("trusted", [])
