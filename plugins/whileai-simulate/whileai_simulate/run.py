"""`simulate`: an agent through many situations, to rows.

This module reads the call, wires the parts together and holds no algorithm of its own: situations come from
`situations`, rollouts from `rollout`, running from `engine`, repeats from `policies`, the disk from `journal`.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.lifecycle import Stage, stage
from whileai_simulate import defaults as d
from whileai_simulate.ahead import Ahead
from whileai_simulate.call import Call
from whileai_simulate.ending import SimulatedDataset, finish, finished_before
from whileai_simulate.engine import run_jobs
from whileai_simulate.journal import Journal
from whileai_simulate.landing import AgentFailedError, Landing, UserFailedError
from whileai_simulate.options import Budget, Options, check_unknown
from whileai_simulate.rollout import Job, Stage1, TaskSlot
from whileai_simulate.sides import announce, metered_agent, metered_judge, metered_writer, model_of
from whileai_simulate.stopping import HALT, Halt
from whileai_simulate.world import World
from whileai_simulate.written import kept_path, write_ahead

__all__ = ["AgentFailedError", "SimulatedDataset", "UserFailedError", "asimulate", "simulate"]

Progress = Callable[[int, int], Any]


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
    user: Any = None,
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
        simulator: Who words the asks: `False` for the offline writer, a model (an object, or a spec such as
            `openai:<model>`), a writer or its name, or `True` for the model that plays the user.
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
        judge: Grades each row as it lands: a callable, verifier or judge, its name, or a model or its spec, which
            then judges by the private reference.
        user: Who answers the agent: `"none"` (a single ask), `"scripted"` (offline), a model or its spec, a
            `ModelUser`, or an object with `start(task, seed, patience)`.
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
        UserFailedError: The simulated user fails on every rollout.
        JournalError: The journal belongs to another call or process, or the disk is full.
    """
    check_unknown(unknown, simulate)
    call = {k: v for k, v in locals().items() if k != "unknown"}
    read = Call(call)
    with stage("simulate", agent=read.agent.name, situations=read.count, repeats=read.repeats.k, seed=seed) as st:
        return _run(read, st)


async def asimulate(agent: Any, **arguments: Any) -> SimulatedDataset:
    """Do as `simulate` without blocking the running event loop; the arguments are the same.

    When it is cancelled the agent is asked no more, what is in flight is given up, and the journal is left so that the
    same call goes on.
    """
    halt = Halt()
    before = HALT.set(halt)
    run = asyncio.ensure_future(asyncio.to_thread(lambda: simulate(agent, **arguments)))  # takes the context along
    HALT.reset(before)
    try:
        return await asyncio.shield(run)
    except asyncio.CancelledError:
        halt("cancelled")
        await asyncio.wait([run])
        if not run.cancelled():
            run.exception()  # heard here, so that the loop does not report it as never retrieved
        raise


def _run(call: Call, st: Stage) -> SimulatedDataset:
    """Run a call: open its journal, take its rollouts in, and end it."""
    from whileai_simulate.progress import make_progress

    output = Path(call.arguments["output"]) if call.arguments["output"] is not None else None
    journal = _open_journal(call, output)
    planned = call.count * call.repeats.first() * call.runs
    progress = make_progress(call.arguments["progress"], planned)
    try:
        landing = Landing(call, st, journal, progress, planned)
        if journal is not None and journal.finished is not None:
            if output is not None and output.exists():
                return finished_before(landing, output)
            journal.restart()  # the rows are gone
        return finish(landing, _rounds(call, landing), output)
    finally:
        progress.close()
        if journal is not None:
            journal.close()


def _open_journal(call: Call, output: Path | None) -> Journal | None:
    given = call.arguments["checkpoint"]
    if given is not None:
        path = Path(given)
    elif output is not None:
        path = output.with_name(output.name + ".journal")
    elif not call.options.collect:
        raise ParameterError("collect=False needs output=", why="the rows must go somewhere")
    else:
        return None
    if output is not None and output.exists() and not call.options.overwrite and not path.exists():
        raise ParameterError(
            f"{output.name} exists", why="it is another run, or not a run at all",
            fix="give another output=, or pass options={'overwrite': True}",
        )  # fmt: skip
    shared = {"system_prompt": call.setting.system_prompt, "tools": call.setting.tools}
    shared = {} if call.arguments["tasks"] is not None else {k: v for k, v in shared.items() if v is not None}
    if call.options.overwrite:
        Journal.forget(path)
    journal = Journal(path, call.fingerprint(), call.description(), shared, call.width)
    if journal.recovered_bytes:
        call.warnings.append(f"{path.name}: a torn last line of {journal.recovered_bytes} bytes was cut off")
    return journal


def _shared(call: Call) -> Stage1:
    from whileai_simulate.grading import grade_row, is_async

    agent, judge = metered_agent(call.agent, call.ledger), metered_judge(call.judge, call.ledger)
    user = None if call.user is None else call.user.metered(call.ledger)
    seed = call.arguments["seed"]
    grade = None if judge is None else functools.partial(grade_row, judge=judge)
    models = [m for m in (model_of(agent.fn), model_of(judge), user and model_of(user.player)) if m is not None]
    return Stage1(
        agent, call.setting.domain, seed, call.tools, call.execute(),
        call.options.max_turns, call.arguments["deadline_s"],
        None if user is None else user.maker(seed, call.options.patience), call.runs, grade,
        call.options.world or World, call.options.faults,
        (user is not None and user.waits) or is_async(judge), is_async(judge), models,
    )  # fmt: skip


def _rounds(call: Call, landing: Landing) -> str | None:
    """Run all rounds of the repeat policy; return why the run ended early, or `None`."""
    announce(call)
    shared = _shared(call)
    writer = metered_writer(call.source.writer, call.ledger)
    kept = kept_path(landing.journal.path) if landing.journal is not None else None
    stopped = write_ahead(call.source, writer, kept, call.fingerprint)
    if stopped is not None:
        return stopped
    slots: list[TaskSlot] = []
    k, graded, first = call.repeats.k, call.repeats.graded, call.repeats.first()

    concurrency = call.arguments["concurrency"]

    def run(jobs: Iterable[Job]) -> str | None:
        ahead = Ahead(jobs, room=concurrency)
        return run_jobs(
            landing.affordable(ahead), shared, landing.deliver, concurrency=concurrency, make_ahead=ahead.make,
            until=landing.until, over=landing.over,
        )  # fmt: skip

    def opening() -> Iterator[Job]:
        for slot in call.source:
            landing.ids.append(slot.task["task_id"])
            if graded:
                slots.append(slot)
            for n in range(call.runs):
                for i in range(first):
                    yield Job(slot, n * k + i, n)

    stopped = run(opening())
    while stopped is None and graded:
        further: list[Job] = []
        for slot in slots:
            for n, rewards in enumerate(landing.rewards(slot.position)):
                done = len(rewards)
                further += [Job(slot, n * k + done + i, n) for i in range(call.repeats.more(rewards))]
        if not further:
            break
        landing.planned += len(further)
        stopped = run(further)
    return stopped
