"""`simulate`: an agent through many situations, to rows.

This module reads the call, wires the parts together and holds no algorithm of its own: situations come from
`situations`, rollouts from `rollout`, running from `engine`, repeats from `policies`, the disk from `journal`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.lifecycle import Stage, emit_row, emit_row_failed, stage
from whileai_kernel.registry import resolve
from whileai_kernel.rows import content_id
from whileai_kernel.tools import Tool, as_tools
from whileai_simulate import defaults as d
from whileai_simulate.covering import count_coverage
from whileai_simulate.dedup import NearDuplicates
from whileai_simulate.engine import WAIT, Stop, run_jobs
from whileai_simulate.identity import agent_identity, make_agent, make_writer, plain_options
from whileai_simulate.journal import Journal, JournalError
from whileai_simulate.options import Budget, Options, check_unknown, make_budget, make_options, preset
from whileai_simulate.policies import Repeats
from whileai_simulate.report import SimulationReport, Tally, group_counts, make_report, usage_of
from whileai_simulate.rollout import Job, Stage1, TaskSlot
from whileai_simulate.setting import make_setting
from whileai_simulate.situations import Grid, TaskSource
from whileai_simulate.world import World
from whileai_simulate.writer import OfflineWriter

__all__ = ["AgentFailedError", "SimulatedDataset", "asimulate", "simulate"]

VERSION = "1.0.0"
Progress = Callable[[int, int], Any]


class AgentFailedError(WhileaiError, RuntimeError):
    """The agent failed on every rollout so far, so the run was called off."""


class SimulatedDataset(Dataset):
    """Rows of a simulation, with the report of the run and what the repeat policy decided.

    Attributes:
        report: Figures of the run; print it.
        groups: Per task: `{"state", "rollouts", "saved"}`.
    """

    report: SimulationReport
    groups: dict[str, dict[str, Any]]


def simulate(
    agent: Any,
    *,
    tools: Iterable[Any] = (),
    system_prompt: str | None = None,
    simulator: bool | str | Any = False,
    mode: str | None = None,
    situations: int | None = None,
    repeats: int | None = None,
    repeat_policy: str | None = None,
    runs: int = 1,
    budget: int | Mapping[str, float] | Budget | None = None,
    seed: int = 0,
    axes: Mapping[str, Sequence[Any] | None] | None = None,
    seeds: Sequence[str | Mapping[str, Any]] = (),
    tasks: Iterable[Any] | None = None,
    traces: Iterable[Mapping[str, Any]] | None = None,
    judge: Any = None,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    concurrency: int = d.CONCURRENCY.value,
    deadline_s: float | None = d.DEADLINE_S.value,
    progress: bool | Progress | None = None,
    options: Options | Mapping[str, Any] | None = None,
    **unknown: Any,
) -> SimulatedDataset:
    """Simulate an agent through many situations and return one row per rollout.

    Args:
        agent: A callable (`f(message)`, `f(messages)`, `f(messages, tools)`, each with `context` if it wants one; sync
            or async), a registered name, `"file.py:function"` or `"package.module:attribute"`.
        tools: Tools of the agent: functions, `Tool`s or schemas.
        system_prompt: The policy; its clauses are an axis.
        simulator: `False` for the offline writer, or the name of a registered writer (or a writer).
        mode: Preset of repeats and policy: `explore`, `sft`, `rl`, `adaptive`.
        situations: Number of tasks; by default what the budget allows, else 16.
        repeats: Rollouts per task (k).
        repeat_policy: `fixed`, `none`, `successive` or `adaptive`; the last two need `judge`.
        runs: Repeats of the whole evaluation on the same tasks, for the noise floor.
        budget: Rollouts, or a mapping of `rollouts`, `seconds`, `tokens`, `usd`; a run stops before it exceeds one.
        seed: The same seed and call give the same rows.
        axes: Axes to pin (`{"stance": ["hurried"]}`), drop (`None`) or add.
        seeds: Asks that must run: texts, or mappings with `prompt` and optionally `axes`. They count as situations.
        tasks: Rows or tasks of an earlier run to replay with their worlds, instead of new situations.
        traces: Rows of a deployed agent: what fails there is asked for more often; their text never enters.
        judge: Grades each row as it lands: a callable, verifier or judge, or its name.
        output: JSONL file for the rows. Finished rollouts are on disk at once, and the same call resumes.
        checkpoint: Journal file; by default beside `output`.
        concurrency: Rollouts in flight at once; never changes the rows.
        deadline_s: Seconds that one rollout may take; `None` for no limit.
        progress: `None` shows a bar on a terminal, `False` never, a callable gets `(done, planned)`.
        options: Advanced knobs, see `Options`.
        unknown: No further argument exists; the error names the nearest one.

    Returns:
        The rows in the order of tasks and rollouts, with `report`, `groups`, `provenance` and `warnings`.

    Raises:
        ParameterError: An argument is unknown, missing or out of range.
        AgentFailedError: The agent fails on every rollout.
        JournalError: The journal belongs to another call or process, or the disk is full.
    """
    check_unknown(unknown, simulate)
    call = {k: v for k, v in locals().items() if k != "unknown"}
    run = _Run(**call)
    with stage("simulate", agent=run.agent.name, situations=run.count, repeats=run.repeats.k, seed=seed) as st:
        return run.execute(st)


async def asimulate(agent: Any, **arguments: Any) -> SimulatedDataset:
    """Do as `simulate` without blocking the running event loop; the arguments are the same."""
    return await asyncio.to_thread(lambda: simulate(agent, **arguments))


class _Run:
    """One call of `simulate`: its checked arguments and its state."""

    def __init__(self, **call: Any) -> None:
        self.call = call
        self.options = make_options(call["options"])
        prompt = call["system_prompt"]
        if prompt is not None and not isinstance(prompt, str):
            raise ParameterError(
                f"system_prompt must be text, not {type(prompt).__name__}", fix="pass the text of the policy"
            )
        self.budget = make_budget(call["budget"])
        chosen = preset(call["mode"])
        policy = call["repeat_policy"] or chosen["repeat_policy"]
        k = call["repeats"] if call["repeats"] is not None else chosen["repeats"]
        self.repeats = Repeats(policy, 1 if policy == "none" else k, floor=self.options.adaptive_floor)
        self.agent = make_agent(call["agent"], self.options)
        self.judge = resolve("judges", call["judge"]) if isinstance(call["judge"], str) else call["judge"]
        if self.repeats.graded and self.judge is None:
            raise ParameterError(
                f"repeat_policy {policy!r} needs judge=", why="it decides by verdicts", fix="pass judge=..., or 'fixed'"
            )
        for name, low in (("runs", 1), ("concurrency", 1)):
            if isinstance(call[name], bool) or not isinstance(call[name], int) or call[name] < low:
                raise ParameterError(f"{name} must be a whole number from {low}, not {call[name]!r}")
        self.warnings: list[str] = []
        self._prepare_tasks()
        self.tally = Tally()
        self.rewards: dict[int, list[tuple[int, float | None]]] = {}
        self.kept: dict[tuple[int, int], dict[str, Any]] = {}
        self.journal: Journal | None = None
        self.started = 0
        self.inflight = 0
        self.most_tokens = self.options.rollout_tokens or 0.0
        self.most_usd = self.options.rollout_usd or 0.0
        self.first_failure: dict[str, Any] | None = None
        self.slots: dict[int, str] = {}
        self.begin = time.monotonic()

    # -- tasks ----------------------------------------------------------------------------------------------

    def _prepare_tasks(self) -> None:
        from whileai_simulate.replay import read_tasks, seed_tasks
        from whileai_simulate.traces import LeakCheck, aim

        call = self.call
        replay = read_tasks(call["tasks"]) if call["tasks"] is not None else None
        tools: list[Tool] = as_tools(call["tools"])
        if replay and not tools:
            tools = as_tools(replay[0].get("tools") or ())
        weights = {k: dict(v) for k, v in self.options.weights.items()}
        traces = list(call["traces"]) if call["traces"] is not None else []
        if traces:
            weights, notes = aim(traces, tools, weights)
            self.warnings += notes
        self.tools = tools
        self.setting = make_setting(
            tools,
            call["system_prompt"],
            seed=call["seed"],
            locale=self.options.locale,
            axes=call["axes"],
            weights=weights,
            off_topic=self.options.off_topic,
            forbidden=self.options.forbidden,
            faults=self.options.faults,
        )
        fixed = replay if replay is not None else seed_tasks(self.setting, list(call["seeds"]))
        self.count = self._count(replay, len(fixed))
        self.grid = Grid(self.setting.axes, self.count - len(fixed), self.options.strength, call["seed"])
        writer = call["simulator"]
        self.source = TaskSource(
            self.setting,
            self.grid,
            OfflineWriter(self.options.locale) if writer is False or writer is None else make_writer(writer),
            NearDuplicates(self.options.near_duplicate),
            fixed,
            LeakCheck(traces, self.options.leak_ngram) if traces else None,
        )

    def _count(self, replay: list[dict[str, Any]] | None, fixed: int) -> int:
        """Return the number of tasks from situations, budget and what must run."""
        wanted: int | None = self.call["situations"]
        each: int = self.repeats.k * self.call["runs"]
        if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1):
            raise ParameterError(f"situations must be a whole number from 1, not {wanted!r}", fix="pass situations=16")
        limit = self.budget.rollouts
        affordable = None if limit is None else limit // each
        if affordable == 0:
            raise ParameterError(
                f"a budget of {limit} rollouts is less than one task",
                why=f"a task takes {each} rollouts (repeats x runs)",
                fix=f"pass budget={each} or more, or fewer repeats",
            )
        if replay is not None:
            if wanted not in (None, len(replay)):
                raise ParameterError("tasks= says how many situations there are", fix="leave situations out")
            return len(replay)
        if wanted is None:
            wanted = affordable if affordable is not None else max(d.SITUATIONS.value, fixed)
        if fixed > wanted or (affordable is not None and fixed > affordable):
            room = wanted if affordable is None else min(wanted, affordable)
            raise ParameterError(
                f"{fixed} seeds must run, and there is room for {room} tasks",
                why="each seed takes one situation",
                fix=f"pass situations={fixed} (and a budget of {fixed * each} rollouts)",
            )
        if affordable is not None and affordable < wanted:
            self.warnings.append(f"the budget of {limit} rollouts allows {affordable} of {wanted} situations")
            wanted = affordable
        return wanted

    # -- running --------------------------------------------------------------------------------------------

    def execute(self, st: Stage) -> SimulatedDataset:
        from whileai_simulate.grading import grade_row
        from whileai_simulate.progress import make_progress
        from whileai_simulate.users import make_user

        self.st = st
        self.planned = self.count * self.repeats.first() * self.call["runs"]
        output = Path(self.call["output"]) if self.call["output"] is not None else None
        self._open_journal(output)
        self.progress = make_progress(self.call["progress"], self.planned)
        own = self.options.execute
        execute = (
            {t.name: t.fn for t in self.tools if t.fn is not None and not t.is_stub} if own is True else dict(own or {})
        )
        user = (
            (lambda task, index: make_user(task, index, self.options.patience))
            if self.options.user == "scripted"
            else None
        )
        self.shared = Stage1(
            self.agent, self.setting.domain, self.call["seed"], self.tools, execute,
            self.options.max_turns, self.call["deadline_s"], user, self.call["runs"],
            None if self.judge is None else functools.partial(grade_row, judge=self.judge),
            self.options.world or World,
            self.options.faults,
        )  # fmt: skip
        stopped: str | None = None
        try:
            stopped = self._rounds()
            return self._finish(stopped, output)
        except BaseException:
            if self.journal is not None:
                self.journal.close()
            raise
        finally:
            self.progress.close()

    def _rounds(self) -> str | None:
        slots: list[TaskSlot] = []
        graded = self.repeats.graded
        first = self.repeats.first()

        def opening() -> Iterator[Job]:
            for slot in self.source:
                self.slots[slot.position] = slot.task["task_id"]
                if graded:
                    slots.append(slot)
                for run in range(self.call["runs"]):
                    for i in range(first):
                        yield Job(slot, run * self.repeats.k + i, run)

        stopped = self._run(opening())
        while stopped is None and graded:
            further: list[Job] = []
            for slot in slots:
                for run in range(self.call["runs"]):
                    mine = [r for i, r in sorted(self.rewards.get(slot.position, ())) if i // self.repeats.k == run]
                    further += [
                        Job(slot, run * self.repeats.k + len(mine) + n, run) for n in range(self.repeats.more(mine))
                    ]
            if not further:
                break
            self.planned += len(further)
            stopped = self._run(iter(further))
        return stopped

    def _run(self, jobs: Iterator[Job]) -> str | None:
        return run_jobs(self._affordable(jobs), self.shared, self._deliver, concurrency=self.call["concurrency"])

    def _affordable(self, jobs: Iterator[Job]) -> Iterator[Job]:
        """Pass jobs on while every budget still holds one more, and skip those that the journal has."""
        budget, journal = self.budget, self.journal
        for job in jobs:
            if journal is not None and job.key in journal.done:
                self._recall(job)
                continue
            if budget.rollouts is not None and self.started >= budget.rollouts:
                raise Stop(f"budget of {budget.rollouts} rollouts")
            if budget.seconds is not None and time.monotonic() - self.begin >= budget.seconds:
                raise Stop(f"budget of {budget.seconds:g} s")
            while not self._room():
                yield WAIT  # what is in flight may turn out to take less
            self.started += 1
            self.inflight += 1
            yield job

    def _room(self) -> bool:
        """Whether one more rollout surely stays within tokens and money; raises `Stop` when it never will."""
        for limit, spent, most, unit in (
            (self.budget.tokens, self.tally.tokens, self.most_tokens, "tokens"),
            (self.budget.usd, self.tally.usd, self.most_usd, "usd"),
        ):
            if limit is None:
                continue
            if not self.inflight and (spent >= limit or spent + most > limit + 1e-12):
                raise Stop(f"budget of {limit:g} {unit}: {spent:g} spent, one rollout takes up to {most:g}")
            # Before the first has landed its cost is unknown, so nothing runs beside it.
            if self.inflight and (most == 0 or spent + (self.inflight + 1) * most > limit + 1e-12):
                return False
        return True

    def _recall(self, job: Job) -> None:
        assert self.journal is not None
        row = next(self.journal.rows_at([job.key]))
        if row["task_id"] != job.slot.task["task_id"]:
            raise JournalError(
                f"{self.journal.path.name} holds another task at {job.slot.position}",
                why="the tasks of the call changed",
                fix="give another output= or checkpoint=",
            )  # fmt: skip
        self.started += 1
        self._count_in(job, row)

    def _deliver(self, job: Job, row: dict[str, Any]) -> None:
        self.inflight -= 1
        if self.journal is not None:
            self.journal.add(job.slot.position, job.index, row)
        self._count_in(job, row)
        if row["outcome"] == "failed":
            self.first_failure = self.first_failure or row.get("error")
            error = row.get("error") or {}
            emit_row_failed(row, self.st, RuntimeError(f"{error.get('type')}: {error.get('message')}"))
        emit_row(row, self.st)
        limit = self.options.give_up_after
        if limit and self.tally.failed == self.tally.rows:
            hopeless = bool((row.get("error") or {}).get("permanent"))
            if hopeless or self.tally.rows >= min(limit, self.planned):
                self._call_off()

    def _call_off(self) -> None:
        error = self.first_failure or {}
        raise AgentFailedError(
            f"agent {self.agent.name} failed on all of the first {self.tally.rows} rollouts",
            why=f"the first one: {error.get('type')}: {error.get('message')}",
            fix="correct the agent, or pass options={'give_up_after': 0} to go on",
        )

    def _count_in(self, job: Job, row: dict[str, Any]) -> None:
        self.tally.add(row)
        if self.budget.tokens is not None or self.budget.usd is not None:
            tokens, usd = usage_of(row)
            self.most_tokens, self.most_usd = max(self.most_tokens, tokens), max(self.most_usd, usd)
        self.rewards.setdefault(job.slot.position, []).append((job.index, row.get("reward")))
        if self.options.collect:
            self.kept[job.key] = row
        self.progress.update(self.tally.rows, self.planned)

    # -- the end --------------------------------------------------------------------------------------------

    def _open_journal(self, output: Path | None) -> None:
        path = self.call["checkpoint"]
        if path is None and output is not None:
            path = output.with_name(output.name + ".journal")
        if path is None:
            if not self.options.collect:
                raise ParameterError("collect=False needs output=", why="the rows must go somewhere")
            return
        path = Path(path)
        if output is not None and output.exists() and not path.exists() and not self.options.overwrite:
            raise ParameterError(
                f"{output.name} exists", why="it is a finished run, or not a run at all",
                fix="give another output=, or pass options={'overwrite': True}",
            )  # fmt: skip
        shared = {"system_prompt": self.setting.system_prompt, "tools": self.setting.tools}
        if self.call["tasks"] is not None:
            shared = {}
        shared = {k: v for k, v in shared.items() if v is not None}
        self.journal = Journal(path, self._fingerprint(), self._description(), shared)
        if self.journal.recovered_bytes:
            self.warnings.append(f"{path.name}: a torn last line of {self.journal.recovered_bytes} bytes was cut off")

    def _description(self) -> dict[str, Any]:
        """Return the arguments that shape rows, as plain values."""
        call = self.call
        return {
            "version": VERSION,
            "agent": agent_identity(call["agent"], self.agent),
            "judge": None if self.judge is None else agent_identity(self.judge, None),
            "tools": content_id("tools", self.setting.tools),
            "system_prompt": content_id("prompt", call["system_prompt"]),
            "simulator": str(call["simulator"])
            if isinstance(call["simulator"], str | bool)
            else type(call["simulator"]).__name__,
            "situations": self.count,
            "repeats": self.repeats.k,
            "repeat_policy": self.repeats.policy,
            "runs": call["runs"],
            "seed": call["seed"],
            "axes": {k: None if v is None else [str(x) for x in v] for k, v in (call["axes"] or {}).items()},
            "budget": asdict(self.budget),
            "tasks": content_id("tasks", [t["task_id"] for t in self.source.fixed]),
            "traces": call["traces"] is not None,
            "options": plain_options(self.options),
        }

    def _fingerprint(self) -> str:
        return content_id("call", self._description())

    def _finish(self, stopped: str | None, output: Path | None) -> SimulatedDataset:
        from whileai_kernel.rowio import write_rows

        if stopped:
            self.warnings.append(f"stopped early: {stopped}; {self.tally.rows} of {self.planned} rollouts landed")
        report = self._report(stopped)
        if report.truncated:
            share = report.truncated / report.rows
            self.warnings.append(
                f"{report.truncated} of {report.rows} rollouts ({share:.0%}) were cut by a length or turn limit: "
                "a reward of a cut reply says nothing about the agent"
            )
        if report.failed:
            first = next(iter(report.reasons), "")
            self.warnings.append(f"{report.failed} of {report.rows} rollouts failed, most often: {first}")
        rows = [self.kept[key] for key in sorted(self.kept)]
        if self.journal is not None:
            keep = stopped is not None or self.call["checkpoint"] is not None or output is None
            if output is not None and stopped is None:
                write_rows(output, self.journal.rows())
            self.journal.close(remove=not keep)
        provenance = {
            "stage": "simulate",
            "plugin": "whileai-simulate",
            **self._description(),
            "rules": {r.value: r.text for r in self.setting.rules.values()},
            "report": report.to_dict(),
            "rows": self.tally.rows,
        }
        data = SimulatedDataset(rows, provenance=provenance, warnings=self.warnings)
        data.report = report
        data.groups = self.groups
        return data

    def _report(self, stopped: str | None) -> SimulationReport:
        axes = self.setting.axes
        ran = len(self.rewards)
        chosen = [c for c in self.source.chosen[:ran] if c]
        coverage = count_coverage(chosen, axes.values, strength=self.options.strength, forbidden=axes.forbidden)
        new = self.count - len(self.source.fixed)
        pairs = {
            "planned": coverage.planned if new else 0,
            "covered": coverage.covered if new else 0,
            "missing_count": len(coverage.missing) if new else 0,
            "missing": [list(map(list, cell)) for cell in coverage.missing[:50]] if new else [],
            "array_rows": len(self.grid.array.rows),
            "infeasible": self.grid.array.infeasible,
        }
        self.groups = {}
        saved_all = 0
        limit = 1 if self.repeats.policy == "none" else self.repeats.k
        for position, pairs_of in sorted(self.rewards.items()):
            rewards = [r for _, r in sorted(pairs_of)]
            state = self.repeats.state(rewards, stopped is None) if self.call["runs"] == 1 else "complete"
            saved = limit * self.call["runs"] - len(rewards) if stopped is None else 0
            saved_all += saved
            self.groups[self.slots.get(position, str(position))] = {
                "state": state,
                "rollouts": len(rewards),
                "saved": saved,
            }
        source = self.source
        if source.kept_duplicates:
            self.warnings.append(f"{source.kept_duplicates} near-duplicate asks were kept: no other wording was found")
        return make_report(
            self.tally,
            asked={axis: axes.asked(axis) for axis in axes.values if axis != "policy_rule"} if new else {},
            pairs=pairs,
            groups=group_counts((str(g["state"]) for g in self.groups.values()), saved_all),
            wording={"reworded": source.reworded, "kept_duplicates": source.kept_duplicates, "leaks": source.leaks},
            stopped=stopped,
            tolerance=self.options.share_tolerance
            if new >= 2 * len(self.grid.array.rows)
            else 3 * self.options.share_tolerance,
        )
