"""`audit_user`: which failures are the simulated user's and not the agent's, by stated rules and by a judge if given.

Rules look at what was said and at what the row says of how the talk ended; `user_faults.FAULTS` states them. A model
that judges is asked about every failed row in addition, and its findings are marked as its own. The share of failures
with a decisive fault of the user is reported with an interval over tasks, as failures of one task are not independent.
It says which failures are suspect; it does not say that the agent would have succeeded.

Example:
    >>> talk = [{"role": "user", "content": "Cancel order A-17."},
    ...         {"role": "assistant", "content": "Shall I cancel A-17? (yes/no)"},
    ...         {"role": "user", "content": "Yes, please. ###STOP###"}]
    >>> print(audit_user([{"task_id": "t", "prompt": "Cancel order A-17.", "messages": talk, "reward": 0.0}]).line)
    1 of 1 failures have a fault of the simulated user (1.00 [0.00..1.00], 1 task): left_agreeing 1
"""

from __future__ import annotations

import asyncio
import html
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from whileai_kernel.errors import ParameterError, UnknownNameError, WhileaiError
from whileai_kernel.messages import spoken_text, text_of
from whileai_kernel.registry import make, resolve
from whileai_kernel.rows import passed, task_key
from whileai_simulate.briefs import brief_of
from whileai_simulate.defaults import AUDIT_EXAMPLES, CONFIDENCE, USER_MAX_TOKENS, WRITER_CONCURRENCY
from whileai_simulate.prompts import audit_messages
from whileai_simulate.replies import read_object, said
from whileai_simulate.user_faults import DECISIVE, FAULTS, UserFault, user_faults
from whileai_simulate.waiting import wait

__all__ = ["RowAudit", "UserAudit", "audit_user"]


@dataclass(frozen=True, slots=True)
class RowAudit:
    """What was found on one row.

    Attributes:
        position: Place of the row in the input.
        task_id: Its task.
        rollout_id: Its id.
        failed: Whether the row is a failure: graded below its threshold, or the rollout failed.
        ended_by: How the talk ended.
        faults: Faults of its user.
    """

    position: int
    task_id: str
    rollout_id: str
    failed: bool
    ended_by: str
    faults: tuple[UserFault, ...]

    @property
    def decisive(self) -> bool:
        """Whether a fault is one that can cost the agent its success."""
        return any(f.kind in DECISIVE for f in self.faults)


@dataclass(frozen=True)
class UserAudit:
    """The audit of the simulated users of a set of rows.

    Attributes:
        rows: Rows read.
        talks: Rows with a user who answers, or whose user failed.
        failures: Of these, failures.
        unscored: Of these, rows without a verdict that did not fail by themselves; no part of the share.
        blamed: Failures with a decisive fault of the user.
        share: `blamed` among failures, as the mean over tasks; `None` without failures.
        low: Lower end of its interval.
        high: Upper end of its interval.
        tasks: Tasks with a failure.
        confidence: Level of the interval.
        interval_by: What worked the interval out.
        faults: Rows by fault, in all talks.
        in_failures: Rows by fault, in failures.
        passed_with_fault: Rows that pass although the user has a decisive fault.
        ended_by: Talks by how they ended.
        judge: Id of the model that judged as well, or `None`.
        judge_unread: Rows that it gave no readable answer on.
        found: Rows with faults.
    """

    rows: int
    talks: int
    failures: int
    unscored: int
    blamed: int
    share: float | None
    low: float | None
    high: float | None
    tasks: int
    confidence: float
    interval_by: str
    faults: Mapping[str, int]
    in_failures: Mapping[str, int]
    passed_with_fault: int
    ended_by: Mapping[str, int]
    judge: str | None = None
    judge_unread: int = 0
    found: tuple[RowAudit, ...] = field(default=(), repr=False)

    @property
    def line(self) -> str:
        """The audit on one line."""
        if not self.talks:
            return f"no row of {self.rows} has a simulated user who answers: nothing to audit"
        if self.share is None:
            return f"no failures among {self.talks} talks; faults in {sum(bool(r.faults) for r in self.found)} talks"
        kinds = ", ".join(f"{k} {n}" for k, n in self.in_failures.items()) or "none"
        tasks = f"{self.tasks} task{'s' if self.tasks != 1 else ''}"
        span = f"{self.share:.2f} [{self.low:.2f}..{self.high:.2f}], {tasks}"
        return f"{self.blamed} of {self.failures} failures have a fault of the simulated user ({span}): {kinds}"

    def __str__(self) -> str:
        lines = [self.line]
        if self.ended_by:
            lines.append("ended by: " + ", ".join(f"{k} {n / self.talks:.0%}" for k, n in self.ended_by.items()))
        if self.unscored:
            lines.append(f"{self.unscored} talks are not scored and are no part of the share")
        if self.passed_with_fault:
            lines.append(f"{self.passed_with_fault} talks pass although their user has a decisive fault")
        if self.judge:
            unread = f"; {self.judge_unread} answers could not be read" if self.judge_unread else ""
            lines.append(f"judged as well by {self.judge}{unread}")
        if self.faults:
            width = max(len(k) for k in self.faults)
            lines.append(f"{'fault':<{width}}  talks  failures  rule")
            for kind, n in self.faults.items():
                mark = "" if kind in DECISIVE else " (not decisive)"
                lines.append(f"{kind:<{width}}  {n:>5}  {self.in_failures.get(kind, 0):>8}  {FAULTS[kind]}{mark}")
        for kind in self.faults:
            for row, fault in self.examples(kind, AUDIT_EXAMPLES.value):
                text = f": {fault.text[:100]!r}" if fault.text else ""
                lines.append(f"  {kind}, row {row.position}, message {fault.turn} ({fault.by}): {fault.why}{text}")
        return "\n".join(lines)

    def examples(self, kind: str, n: int = AUDIT_EXAMPLES.value) -> list[tuple[RowAudit, UserFault]]:
        """Return up to `n` rows with a fault of a kind, failures first."""
        hits = [(r, f) for r in self.found for f in r.faults if f.kind == kind]
        return sorted(hits, key=lambda hit: (not hit[0].failed, hit[0].position))[:n]

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values."""
        names = [n for n in self.__dataclass_fields__ if n != "found"]
        out = {n: dict(v) if isinstance(v := getattr(self, n), Mapping) else v for n in names}
        out["found"] = [
            {
                "position": r.position,
                "task_id": r.task_id,
                "rollout_id": r.rollout_id,
                "failed": r.failed,
                "ended_by": r.ended_by,
                "faults": [f.to_dict() for f in r.faults],
            }
            for r in self.found
        ]
        return out

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def audit_user(
    rows: Iterable[Mapping[str, Any]],
    *,
    judge: Any = None,
    confidence: float = CONFIDENCE.value,
    concurrency: int = WRITER_CONCURRENCY.value,
) -> UserAudit:
    """Return which failures are the simulated user's own.

    Args:
        rows: Graded rows. Of rows of another tool, the brief of the user is read from `privileged["user"]`
            (`goal`, `facts`, `excludes`, `persona`, `agree`) where it is given.
        judge: A model, or its spec, that is asked about every failed talk as well.
        confidence: Level of the interval.
        concurrency: Requests of the judge in flight at once.

    Returns:
        The audit. The interval is over tasks: that of the statistic `measure/pass_at` where it is installed, else a
        Wilson interval at the effective sample size with a t quantile.

    Raises:
        ParameterError: An argument is out of range.
        WhileaiError: The judge failed at every row.
    """
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, not {confidence!r}", fix="pass confidence=0.95")
    kept: list[tuple[RowAudit, Mapping[str, Any]]] = []
    count = unscored = 0
    for position, row in enumerate(rows):
        count += 1
        if not _is_talk(row):
            continue
        failed = _failed(row)
        unscored += failed is None
        audit = RowAudit(
            position, str(task_key(row)), str(row.get("rollout_id") or ""), failed is True,
            str(row.get("ended_by") or "unknown"), tuple(user_faults(row)),
        )  # fmt: skip
        kept.append((audit, row))
    unread = 0
    model = _model(judge)
    if model is not None:
        kept, unread = _judged(kept, model, concurrency)
    return _report(count, unscored, kept, model, unread, confidence)


def _is_talk(row: Mapping[str, Any]) -> bool:
    users = sum(m.get("role") == "user" for m in row.get("messages") or ())
    return users > 1 or isinstance(row.get("user"), Mapping) or (row.get("error") or {}).get("by") == "user"


def _failed(row: Mapping[str, Any]) -> bool | None:
    """Return whether a row is a failure; `None` when nobody has said."""
    if row.get("outcome") == "failed":
        return True
    return None if row.get("reward") is None else not passed(row)


def _report(
    count: int,
    unscored: int,
    kept: Sequence[tuple[RowAudit, Mapping[str, Any]]],
    model: Any,
    unread: int,
    confidence: float,
) -> UserAudit:
    audits = [audit for audit, _ in kept]
    failures = [a for a in audits if a.failed]
    shares: dict[str, list[float]] = {}
    for audit in failures:
        shares.setdefault(audit.task_id, []).append(float(audit.decisive))
    share, low, high, by = _interval(shares, confidence)

    def counted(some: Sequence[RowAudit]) -> dict[str, int]:
        counts = Counter(kind for a in some for kind in {f.kind for f in a.faults})
        return {kind: counts[kind] for kind in FAULTS if counts[kind]}

    scored = {a.position for a, row in kept if _failed(row) is False}
    return UserAudit(
        rows=count,
        talks=len(audits),
        failures=len(failures),
        unscored=unscored,
        blamed=sum(a.decisive for a in failures),
        share=share,
        low=low,
        high=high,
        tasks=len(shares),
        confidence=confidence,
        interval_by=by,
        faults=counted(audits),
        in_failures=counted(failures),
        passed_with_fault=sum(a.decisive and a.position in scored for a in audits),
        ended_by=dict(Counter(a.ended_by for a in audits).most_common()),
        judge=None if model is None else str(model.id),
        judge_unread=unread,
        found=tuple(a for a in audits if a.faults),
    )


# -- the interval ---------------------------------------------------------------------------------------------


def _interval(
    shares: Mapping[str, Sequence[float]], confidence: float
) -> tuple[float | None, float | None, float | None, str]:
    if not shares:
        return None, None, None, "none"
    try:
        pass_at = make("statistics", "measure/pass_at")
    except (UnknownNameError, ImportError):
        mean, low, high = wilson_over_tasks([sum(s) / len(s) for s in shares.values()], confidence)
        return mean, low, high, "wilson at the effective sample size, t quantile"
    rows = [{"task_id": t, "reward": value} for t, values in shares.items() for value in values]
    rate = pass_at(rows, k=1, confidence=confidence).pass_1
    return float(rate.value), float(rate.low), float(rate.high), "measure/pass_at"


def wilson_over_tasks(values: Sequence[float], confidence: float = CONFIDENCE.value) -> tuple[float, float, float]:
    """Return mean, low and high of the mean of shares, one per task.

    The effective size is `mean (1 - mean) / variance of the mean`, at least the number of tasks; the quantile is that
    of t at one less than the tasks.

    Source: Wilson 1927; Korn and Graubard 1998 (effective sample size, t quantile).
    """
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, 0.0, 1.0
    variance = sum((v - mean) ** 2 for v in values) / (n - 1) / n
    size = max(float(n), mean * (1 - mean) / variance) if variance > 0 else float(n)
    q2 = _t_quantile(n - 1, 0.5 + confidence / 2) ** 2
    centre = (mean + q2 / (2 * size)) / (1 + q2 / size)
    half = math.sqrt(q2) / (1 + q2 / size) * math.sqrt(mean * (1 - mean) / size + q2 / (4 * size * size))
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return mean, 0.0 if mean <= 0 else low, 1.0 if mean >= 1 else high


def _t_quantile(df: int, p: float) -> float:
    """Return the quantile of Student's t at `p` > 0.5, by bisection of its exact distribution for whole `df`.

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """

    def inside(t: float) -> float:
        angle = math.atan(t / math.sqrt(df))
        cos2 = math.cos(angle) ** 2
        term, total = 1.0, 0.0
        if df % 2:
            for k in range(1, (df - 1) // 2 + 1):
                total += term
                term *= cos2 * 2 * k / (2 * k + 1)
            return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
        for k in range(1, df // 2 + 1):
            total += term
            term *= cos2 * (2 * k - 1) / (2 * k)
        return math.sin(angle) * total

    if df > 1000:
        return NormalDist().inv_cdf(p)
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < 2 * p - 1 else (low, middle)
    return (low + high) / 2


# -- the judge ------------------------------------------------------------------------------------------------


def _model(judge: Any) -> Any:
    if judge is None:
        return None
    model = resolve("models", judge)
    if not callable(getattr(model, "complete", None)):
        raise ParameterError(f"{judge!r:.60} is no model", fix="pass judge='openai:<model>', or a model")
    return model


def _judged(
    kept: list[tuple[RowAudit, Mapping[str, Any]]], model: Any, concurrency: int
) -> tuple[list[tuple[RowAudit, Mapping[str, Any]]], int]:
    """Ask the judge about every failed talk; return the audits with its findings, and how many it left unread."""
    errors: list[Exception] = []

    async def one(gate: asyncio.Semaphore, row: Mapping[str, Any]) -> list[UserFault] | None:
        async with gate:
            try:
                reply = await model.complete(_question(row), (), {"max_tokens": USER_MAX_TOKENS.value})
                return _read(said(reply), row, str(model.id))
            except Exception as err:  # noqa: BLE001 - counted, and raised when nothing at all could be judged
                errors.append(err)
                return None

    async def all_of_them() -> list[list[UserFault] | None]:
        gate = asyncio.Semaphore(concurrency)
        try:
            return await asyncio.gather(*(one(gate, row) for audit, row in kept if audit.failed))
        finally:
            if callable(close := getattr(model, "aclose", None)):
                await close()

    answers = iter(wait(all_of_them()))
    out, unread, asked = [], 0, 0
    for audit, row in kept:
        if audit.failed:
            asked += 1
            found = next(answers)
            unread += found is None
            known = {(f.kind, f.turn) for f in audit.faults}
            new = [f for f in found or () if (f.kind, f.turn) not in known]
            audit = RowAudit(
                audit.position, audit.task_id, audit.rollout_id, True, audit.ended_by, (*audit.faults, *new)
            )  # fmt: skip
        out.append((audit, row))
    if asked and len(errors) == asked:
        first = errors[0]
        raise WhileaiError(
            f"the judge {model.id} failed at every one of {asked} talks",
            why=first.what if isinstance(first, WhileaiError) else f"{type(first).__name__}: {first}",
            fix="correct the judge, or leave judge= out: the rules need no model",
        )
    return out, unread


def _question(row: Mapping[str, Any]) -> list[dict[str, str]]:
    lines = []
    for n, message in enumerate(row.get("messages") or ()):
        text = text_of(message.get("content"))
        if message.get("role") == "user":
            lines.append(f"[{n}] USER: {text}")
        elif message.get("role") == "assistant" and spoken_text(text).strip():
            lines.append(f"[{n}] ASSISTANT: {spoken_text(text)}")
    lines.append(f"[end] ended by: {row.get('ended_by') or 'unknown'}")
    return audit_messages(
        brief_of(row, strict=False), "\n".join(lines), {k: v for k, v in FAULTS.items() if k != "error"}
    )


def _read(text: str, row: Mapping[str, Any], judge: str) -> list[UserFault]:
    value = read_object(text, "faults")
    if value is None or not isinstance(value["faults"], list):
        raise WhileaiError("the judge's answer holds no list of faults")
    messages = list(row.get("messages") or ())
    found = []
    for item in value["faults"]:
        kind = item.get("fault") if isinstance(item, Mapping) else None
        if kind not in FAULTS:
            continue
        turn = item.get("turn")
        turn = (
            turn
            if isinstance(turn, int) and not isinstance(turn, bool) and 0 <= turn < len(messages)
            else len(messages)
        )
        said_text = text_of(messages[turn].get("content")) if turn < len(messages) else ""
        found.append(UserFault(str(kind), turn, str(item.get("why") or "")[:200], said_text[:200], judge))
    return found
