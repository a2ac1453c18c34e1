"""What a run was asked for and what happened: coverage, shares, faults, failures, groups.

`data.report` prints as a table and becomes a plain dict. It counts; it draws no conclusion from rewards.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Share", "SimulationReport", "Tally", "usage_of", "used"]


_MOST_USED = 1e15
"""Tokens or US dollars that no rollout takes: a usage that says more says nothing."""


@dataclass(frozen=True, slots=True)
class Share:
    """One value of an axis: how often it was asked for and how often it came, as shares of all tasks."""

    axis: str
    value: str
    asked: float
    got: float
    count: int
    within: bool


@dataclass(slots=True)
class Tally:
    """Counts of a run, added to row by row, so that rows need not be kept."""

    rows: int = 0
    failed: int = 0
    truncated: int = 0
    tasks: int = 0
    # Plain dicts where every row counts: a Counter's default costs a call of Python.
    axes: dict[str, dict[Any, int]] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    seeded: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    tools: dict[str, int] = field(default_factory=dict)
    tokens: float = 0.0
    usd: float = 0.0
    user_failed: int = 0

    def add(self, row: Mapping[str, Any], first: bool) -> None:
        """Count one row; `first` says that it is the first of its task."""
        self.rows += 1
        if first:
            self.tasks += 1
            for axis, value in row.get("axes", {}).items():
                counts = self.axes.get(axis)
                if counts is None:
                    counts = self.axes[axis] = {}
                counts[value] = counts.get(value, 0) + 1
        for fault in row["world"].get("faults") or ():
            planned, kind = self.planned, fault["kind"]
            planned[kind] = planned.get(kind, 0) + 1
        if row["faults_fired"]:
            fired = self.fired
            for kind in {fault["kind"] for fault in row["faults_fired"]}:
                fired[kind] = fired.get(kind, 0) + 1
        for label in row.get("seeded") or ():
            self.seeded[label] = self.seeded.get(label, 0) + 1
        ended, tools = self.ended, self.tools
        how = row.get("ended_by", "agent")
        ended[how] = ended.get(how, 0) + 1
        for call in row["world_log"]["calls"]:
            if call["effect"] != "found":
                name = call["tool"]
                tools[name] = tools.get(name, 0) + 1
        if row["outcome"] == "failed":
            self.failed += 1
            error = row.get("error") or {}
            self.user_failed += error.get("by") == "user"
            self.reasons[f"{error.get('type', 'error')}: {str(error.get('message', ''))[:80]}"] += 1
        elif row["outcome"] == "truncated":
            self.truncated += 1
        if row.get("usage") or row.get("user"):
            tokens, usd = usage_of(row)
            self.tokens += tokens
            self.usd += usd


def usage_of(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the tokens and the US dollars that a row reports, of agent and user; what is not reported counts 0."""
    tokens, usd = _used(row.get("usage") or {})
    user = row.get("user")
    if isinstance(user, Mapping) and user.get("usage"):
        more, further = _used(user["usage"])
        return tokens + more, usd + further
    return tokens, usd


def used(usage: Mapping[str, Any], *names: str) -> float:
    """Return the first of the numbers that a usage holds under these names, or 0.

    What an agent says may be anything: less than nothing would pay for what others used.
    """
    for name in names:
        value = usage.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_USED:
            return float(value)
    return 0.0


def _used(usage: Mapping[str, Any]) -> tuple[float, float]:
    sent, received = used(usage, "prompt_tokens", "input_tokens"), used(usage, "completion_tokens", "output_tokens")
    return used(usage, "total_tokens") or sent + received, used(usage, "cost_usd", "usd", "cost")


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """Figures of a run.

    Attributes:
        tasks: Number of tasks.
        rows: Number of rollouts.
        failed: Rollouts that failed, with their reasons in `reasons`.
        truncated: Rollouts cut by a limit.
        pairs: `planned`, `covered` and the first `missing` combinations of axis values.
        shares: Asked and got share of each value of each axis.
        faults: Per kind: rollouts in which it was planned and in which it fired.
        groups: What the repeat policy decided: tasks by state, and rollouts saved.
        seeded: Planted behaviours.
        ended_by: What ended the conversations.
        calls: Tool calls by tool.
        wording: Near-duplicates and leaks that were reworded.
        reasons: Failures by reason.
        stopped: Why the run ended early, or `None`.
        tolerance: Allowed distance of a share from what was asked.
        tokens: Tokens that the rows report, of agents and simulated users.
        usd: US dollars that the rows report.
        user_failed: Rollouts that failed because the simulated user did; part of `failed`.
        sides: What each side used: `{agent, user, writer, judge: {model, requests, prompt_tokens, ...}}`; a side
            whose cost is unknown has no `cost_usd`.
        writer: Of a model writer: asks `written` by it, worded `offline` instead, `requests` and `reasons`.
        estimate: What was announced before the first request, when a side is a model.
    """

    tasks: int
    rows: int
    failed: int
    truncated: int
    pairs: Mapping[str, Any]
    shares: Sequence[Share]
    faults: Mapping[str, Mapping[str, int]]
    groups: Mapping[str, int]
    seeded: Mapping[str, int]
    ended_by: Mapping[str, int]
    calls: Mapping[str, int]
    wording: Mapping[str, int]
    reasons: Mapping[str, int]
    stopped: str | None
    tolerance: float
    tokens: float
    usd: float
    user_failed: int = 0
    sides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    writer: Mapping[str, Any] = field(default_factory=dict)
    estimate: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        out = {name: getattr(self, name) for name in self.__slots__ if name not in ("shares",)}
        out = {k: dict(v) if isinstance(v, Mapping) else v for k, v in out.items()}
        out["shares"] = [
            {"axis": s.axis, "value": s.value, "asked": s.asked, "got": s.got, "count": s.count, "within": s.within}
            for s in self.shares
        ]
        return out

    def one_line(self) -> str:
        """Return the run in one line."""
        pairs = f"pairs {self.pairs['covered']}/{self.pairs['planned']}" if self.pairs.get("planned") else "no grid"
        tail = f", stopped: {self.stopped}" if self.stopped else ""
        return (
            f"{self.tasks} tasks, {self.rows} rollouts, {self.failed} failed, {self.truncated} truncated, {pairs}{tail}"
        )

    def __str__(self) -> str:
        lines = [self.one_line()]
        fault = ", ".join(f"{k} {v['fired']}/{v['planned']}" for k, v in self.faults.items())
        lines.append(f"faults fired/planned: {fault or 'none planned'}")
        groups = ", ".join(f"{k} {v}" for k, v in self.groups.items())
        lines.append(f"groups: {groups or 'none'}")
        if self.seeded:
            lines.append("seeded: " + ", ".join(f"{k} {v}" for k, v in self.seeded.items()))
        if any(self.wording.values()):
            lines.append("wording: " + ", ".join(f"{k} {v}" for k, v in self.wording.items()))
        if set(self.ended_by) - {"agent"}:
            lines.append(
                "ended by: " + ", ".join(f"{k} {v} ({v / max(1, self.rows):.0%})" for k, v in self.ended_by.items())
            )
        if self.writer:
            lines.append(f"writer: {self.writer['written']} asks written, {self.writer['offline']} worded offline")
        for side, used in self.sides.items():
            lines.append(f"{side}: {_usage(used)}")
        for axis in dict.fromkeys(s.axis for s in self.shares):
            own = [s for s in self.shares if s.axis == axis]
            shown = own if len(own) <= 12 else sorted(own, key=lambda s: -s.count)[:12]
            cells = ", ".join(f"{s.value} {s.got:.0%} ({s.asked:.0%}){'' if s.within else ' !'}" for s in shown)
            more = f", and {len(own) - len(shown)} more" if len(own) > len(shown) else ""
            lines.append(f"{axis}, got (asked): {cells}{more}")
        off = sum(not s.within for s in self.shares)
        if self.shares:
            lines.append(
                f"{off} of {len(self.shares)} shares are further than {self.tolerance:.0%} from what was asked"
            )
        for reason, count in list(self.reasons.items())[:5]:
            lines.append(f"failed {count} x {reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _usage(used: Mapping[str, Any]) -> str:
    cost = f"${used['cost_usd']:.4f}" if "cost_usd" in used else "cost unknown"
    who = f"{used['model']}, " if used.get("model") else ""
    tokens = f"{used['prompt_tokens']:,} + {used['completion_tokens']:,} tokens"
    return f"{who}{used['requests']:,} requests, {tokens}, {cost}"


def make_report(
    tally: Tally,
    *,
    asked: Mapping[str, Mapping[Any, float]],
    pairs: Mapping[str, Any],
    groups: Mapping[str, int],
    wording: Mapping[str, int],
    stopped: str | None,
    tolerance: float,
    sides: Mapping[str, Mapping[str, Any]] | None = None,
    writer: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
) -> SimulationReport:
    """Put the counts of a run beside what was asked for."""
    shares = []
    for axis, wanted_all in asked.items():
        # `none` follows from the tool and is not asked for by itself.
        wanted = {v: s for v, s in wanted_all.items() if v != "none" or axis == "tool"}
        whole = sum(wanted.values()) or 1.0
        counts = tally.axes.get(axis, {})
        total = sum(counts.get(v, 0) for v in wanted) or 1
        for value, weight in wanted.items():
            share = weight / whole
            got = counts.get(value, 0) / total
            # One task is the least that a share can move by.
            near = abs(got - share) <= max(tolerance, 1.0 / total) + 1e-12
            shares.append(Share(axis, str(value), share, got, counts.get(value, 0), near))
    kinds = sorted({*tally.planned, *tally.fired})
    return SimulationReport(
        tasks=tally.tasks,
        rows=tally.rows,
        failed=tally.failed,
        truncated=tally.truncated,
        pairs=pairs,
        shares=tuple(shares),
        faults={k: {"planned": tally.planned.get(k, 0), "fired": tally.fired.get(k, 0)} for k in kinds},
        groups=dict(groups),
        seeded=dict(sorted(tally.seeded.items())),
        ended_by=dict(sorted(tally.ended.items())),
        calls=dict(sorted(tally.tools.items(), key=lambda item: -item[1])),
        wording=dict(wording),
        reasons=dict(tally.reasons.most_common()),
        stopped=stopped,
        tolerance=tolerance,
        tokens=tally.tokens,
        usd=round(tally.usd, 6),
        user_failed=tally.user_failed,
        sides=dict(sides or {}),
        writer=dict(writer or {}),
        estimate=estimate,
    )
