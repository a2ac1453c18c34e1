"""Is the verifier itself right? `audit` compares it with a second opinion, `null_agents` pays agents that do nothing.

Example:
    >>> rows = [{"task_id": str(i), "prompt": "2+2", "privileged": {"reference": "4"}} for i in range(3)]
    >>> null_agents(lambda row: "4" in row["prompt"] + row["final_text"], rows).flagged
    ('constant',)
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.rows import task_key
from whileai_verify.batch import judge_row
from whileai_verify.combine import resolve_part
from whileai_verify.defaults import NULL_AGENT_LIMIT, ROW_THREADS, TIE_CONFIDENCE

__all__ = ["Audit", "NullAgents", "Rate", "audit", "null_agents"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with an interval over tasks.

    Attributes:
        share: Estimate, `None` without rows.
        low: Lower end of the interval.
        high: Upper end of the interval.
        rows: Rows it rests on.
        tasks: Tasks they belong to.
    """

    share: float | None
    low: float
    high: float
    rows: int
    tasks: int

    def __str__(self) -> str:
        if self.share is None:
            return "n/a (0 rows)"
        return f"{self.share:.3f} [{self.low:.3f}..{self.high:.3f}] ({self.rows} rows, {self.tasks} tasks)"

    def to_dict(self) -> dict[str, Any]:
        """Return the rate as plain values."""
        return {"share": self.share, "low": self.low, "high": self.high, "rows": self.rows, "tasks": self.tasks}


def _rate(hits: Sequence[tuple[str, bool]], confidence: float) -> Rate:
    """Return a Wilson interval at the effective sample size of rows clustered by task.

    The effective size is the number of rows over the design effect, the ratio of the variance of the mean with rows
    clustered by task to that with independent rows (Kish 1965, Survey Sampling, section 8.2), at most the number of
    rows and at least the number of tasks when rows within a task agree.
    """
    n = len(hits)
    if not n:
        return Rate(None, 0.0, 1.0, 0, 0)
    share = sum(h for _, h in hits) / n
    sums: dict[str, float] = {}
    for task, hit in hits:
        sums[task] = sums.get(task, 0.0) + (hit - share)
    tasks = len(sums)
    independent = share * (1 - share) / n
    clustered = sum(s * s for s in sums.values()) / n**2 * (tasks / max(1, tasks - 1))
    effect = max(1.0, clustered / independent) if independent > 0 else n / tasks
    size = n / effect
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return Rate(share, max(0.0, centre - half), min(1.0, centre + half), n, tasks)


@dataclass(frozen=True, slots=True)
class Audit:
    """How a verifier compares with a second opinion that is taken as right.

    Attributes:
        false_negative: Share of the rows that the second opinion passes which the verifier fails.
        false_positive: Share of the rows that the second opinion fails which the verifier passes.
        agreement: Share of the rows scored by both on which they agree.
        rows: Rows given.
        only_first: Rows that the verifier alone scored.
        only_second: Rows that the second opinion alone scored.
        neither: Rows that nobody scored.
        disagreements: Of each disagreement: position, ids, both rewards and both reasons.
    """

    false_negative: Rate
    false_positive: Rate
    agreement: Rate
    rows: int
    only_first: int
    only_second: int
    neither: int
    disagreements: tuple[dict[str, Any], ...] = field(repr=False)

    def __str__(self) -> str:
        return (
            f"agreement {self.agreement} | false negatives {self.false_negative}"
            f" | false positives {self.false_positive}"
            f" | {len(self.disagreements)} disagreements, {self.only_first + self.only_second + self.neither} of"
            f" {self.rows} rows not scored by both"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values."""
        return {
            "false_negative": self.false_negative.to_dict(),
            "false_positive": self.false_positive.to_dict(),
            "agreement": self.agreement.to_dict(),
            "rows": self.rows,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "neither": self.neither,
            "disagreements": list(self.disagreements),
        }

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td>{html.escape(str(d['task_id']))}</td><td>{d['first']}</td><td>{d['second']}</td>"
            f"<td>{html.escape(str(d['first_reason']))}</td></tr>"
            for d in self.disagreements[:50]
        )
        return f"<p>{html.escape(str(self))}</p><table><tr><th>task<th>first<th>second<th>reason</tr>{lines}</table>"


def _pass(row: Row) -> bool | None:
    reward = row.get("reward")
    threshold = row.get("threshold")
    return None if reward is None else reward >= (1.0 if threshold is None else float(threshold)) - 1e-9


def audit(
    verifier: Any,
    rows: Iterable[Row],
    second: Any,
    *,
    confidence: float = TIE_CONFIDENCE.value,
    threads: int = ROW_THREADS.value,
) -> Audit:
    """Compare a verifier with a second opinion on the same rows.

    Args:
        verifier: The verifier to check, or its registered name.
        rows: Rows to grade.
        second: What is taken as right: a verifier, a registered name, or `"recorded"` for the reward on the row (a
            person's label, or a benchmark's mark).
        confidence: Of the intervals.
        threads: Rows graded at once.
    """
    from whileai_verify.batch import verify_rows

    given = list(rows)
    first_rows = verify_rows(given, verifier, threads=threads)
    second_rows: Sequence[Row] = given if second == "recorded" else verify_rows(given, second, threads=threads)
    pairs: list[tuple[str, bool, bool]] = []
    counts: Counter[str] = Counter()
    different: list[dict[str, Any]] = []
    for position, (row, a, b) in enumerate(zip(given, first_rows, second_rows, strict=True)):
        x, y = _pass(a), _pass(b)
        if x is None or y is None:
            counts["neither" if x is None and y is None else "only_second" if x is None else "only_first"] += 1
            continue
        task = task_key(row)
        pairs.append((task, x, y))
        if x != y:
            different.append(
                {
                    "position": position,
                    "task_id": task,
                    "rollout_id": row.get("rollout_id"),
                    "first": a["reward"],
                    "second": b["reward"],
                    "first_reason": a.get("reason"),
                    "second_reason": b.get("reason"),
                }
            )
    return Audit(
        false_negative=_rate([(t, not x) for t, x, y in pairs if y], confidence),
        false_positive=_rate([(t, x) for t, x, y in pairs if not y], confidence),
        agreement=_rate([(t, x == y) for t, x, y in pairs], confidence),
        rows=len(given),
        only_first=counts["only_first"],
        only_second=counts["only_second"],
        neither=counts["neither"],
        disagreements=tuple(different),
    )


FILLER = "Let me think about this step by step. There are several things to consider here."
REFUSAL = "I'm sorry, but I can't help with that."
ASK_BACK = "Could you please provide more details?"


@dataclass(frozen=True, slots=True)
class NullAgents:
    """What agents that do nothing earn from a verifier.

    Attributes:
        mean: Agent name to its mean reward over tasks (`None` when nothing was scored).
        scored: Agent name to the number of tasks that were scored.
        paid: Agent name to the ids of the tasks on which it passed.
        tasks: Tasks given.
        limit: Mean reward above which an agent flags the verifier.
    """

    mean: dict[str, float | None]
    scored: dict[str, int]
    paid: dict[str, tuple[str, ...]]
    tasks: int
    limit: float

    @property
    def flagged(self) -> tuple[str, ...]:
        """Agents that are paid more than the limit."""
        return tuple(n for n, m in self.mean.items() if m is not None and m > self.limit)

    def __str__(self) -> str:
        shown = ", ".join(f"{n} {'n/a' if m is None else f'{m:.2f}'}" for n, m in self.mean.items())
        verdict = (
            f"pays agents that do nothing: {', '.join(self.flagged)}" if self.flagged else "pays nobody for nothing"
        )
        return f"{verdict} | {shown} ({self.tasks} tasks)"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "mean": dict(self.mean),
            "scored": dict(self.scored),
            "paid": {k: list(v) for k, v in self.paid.items()},
            "tasks": self.tasks,
            "limit": self.limit,
            "flagged": list(self.flagged),
        }

    def _repr_html_(self) -> str:
        lines = "".join(f"<tr><td>{html.escape(n)}</td><td>{m}</td></tr>" for n, m in self.mean.items())
        return f"<p>{html.escape(str(self))}</p><table><tr><th>agent<th>mean reward</tr>{lines}</table>"


def _most_common_reference(tasks: Sequence[Row]) -> str:
    answers = Counter(
        str((t.get("privileged") or {}).get("reference"))
        for t in tasks
        if isinstance((t.get("privileged") or {}).get("reference"), str | int | float)
    )
    return answers.most_common(1)[0][0] if answers else "yes"


def null_agents(
    verifier: Any,
    tasks: Iterable[Row],
    *,
    agents: Mapping[str, Callable[[Row], str]] | None = None,
    limit: float = NULL_AGENT_LIMIT.value,
) -> NullAgents:
    """Score agents that do nothing useful and flag a verifier that pays them.

    Empty, refusing, echoing the prompt, always giving the most common right answer, filler, and asking back. The
    constant agent is flagged only where the tasks have more than one right answer and it wins more than the share of
    tasks that have this answer, or where a verifier without references pays it.

    Args:
        verifier: A verifier or its registered name.
        tasks: Rows or tasks with `prompt` and `privileged`; the first row of each task is used, and what its rollout
            said is thrown away.
        agents: Further agents: name to a function of the task that returns the reply.
        limit: Mean reward above which an agent flags the verifier.

    Raises:
        ParameterError: There are no tasks.
    """
    by_task: dict[str, Row] = {}
    for row in tasks:
        by_task.setdefault(task_key(row), row)
    given = list(by_task.values())
    if not given:
        raise ParameterError("there are no tasks", why="nothing can be said about a verifier without a task")
    part = resolve_part(verifier)
    constant = _most_common_reference(given)
    talk: dict[str, Callable[[Row], str]] = {
        "empty": lambda t: "",
        "refuse": lambda t: REFUSAL,
        "echo": lambda t: _prompt_text(t.get("prompt")),
        "constant": lambda t: constant,
        "filler": lambda t: FILLER,
        "ask_back": lambda t: ASK_BACK,
        **(agents or {}),
    }
    mean: dict[str, float | None] = {}
    scored: dict[str, int] = {}
    paid: dict[str, tuple[str, ...]] = {}
    for name, agent in talk.items():
        rows = [judge_row(part, _silent(task, agent(task))) for task in given]
        own = {task_key(t) for t in given if str((t.get("privileged") or {}).get("reference")) == constant}
        if name == "constant":  # it is right where it is the answer; what counts is what it earns elsewhere
            rows = [r for r in rows if task_key(r) not in own] or ([] if own else rows)
        rewards = [r["reward"] for r in rows if r["reward"] is not None]
        mean[name] = sum(rewards) / len(rewards) if rewards else None
        scored[name] = len(rewards)
        paid[name] = tuple(task_key(r) for r in rows if _pass(r))
    return NullAgents(mean, scored, paid, len(given), limit)


def _prompt_text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    from whileai_kernel.messages import text_of

    return "\n".join(text_of(m.get("content")) for m in prompt or [] if isinstance(m, Mapping))


def _silent(task: Row, reply: str) -> dict[str, Any]:
    """Return a row of an agent that only said `reply`; the world is as it was at the start."""
    row = {k: v for k, v in task.items() if k not in ("reward", "status", "judgments", "evidence", "seeded")}
    prompt = task.get("prompt") or ""
    asked = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    row["messages"] = [*asked, {"role": "assistant", "content": reply}]
    row["final_text"] = reply
    world, private = task.get("world"), task.get("privileged")
    if isinstance(world, Mapping) and isinstance(private, Mapping) and "initial_state" in private:
        row["world"] = {**world, "state": private["initial_state"]}
    return row
