"""What becomes of rollouts as they land: journal, counts, budgets, verdicts, and when to call an agent off.

What is kept per rollout is eight bytes (its reward), and per task the ten bytes of its id and one that says that it has
begun, so that a run that streams to a file can be as long as the disk is large. Rows themselves are kept only when the
caller wants them.
"""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from whileai_kernel.errors import WhileaiError
from whileai_kernel.lifecycle import Stage, emit_row, emit_row_failed
from whileai_simulate.call import Call
from whileai_simulate.covering import CoverageCount
from whileai_simulate.engine import WAIT
from whileai_simulate.journal import Journal, JournalError
from whileai_simulate.progress import Progress
from whileai_simulate.report import Tally, usage_of
from whileai_simulate.rollout import Job
from whileai_simulate.stopping import HALT, Stop

__all__ = ["AgentFailedError", "Landing", "UserFailedError"]

_ID = re.compile("task_[0-9a-f]{20}")
_NOT_LANDED = -1.0
"""Stands in the table of rewards where no rollout has landed; a reward is in [0, 1], or NaN when it is not scored."""


class AgentFailedError(WhileaiError, RuntimeError):
    """The agent failed on every rollout so far, so the run was called off."""


class UserFailedError(WhileaiError, RuntimeError):
    """The simulated user failed on every rollout so far, so the run was called off; the agent is not to blame."""


class TaskIds(Sequence[str]):
    """Ids of tasks in ten bytes each: `task_` and 20 hex digits are taken apart; ids of another look are kept as text.

    Example:
        >>> ids = TaskIds()
        >>> ids.append("task_00112233445566778899"), ids.append("mine"), list(ids)
        (None, None, ['task_00112233445566778899', 'mine'])
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._others: dict[int, str] = {}

    def append(self, task_id: str) -> None:
        """Add an id at the end."""
        if _ID.fullmatch(task_id):
            self._digests += bytes.fromhex(task_id[5:])
        else:
            self._others[len(self)] = task_id
            self._digests += bytes(10)

    def __len__(self) -> int:
        return len(self._digests) // 10

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        other = self._others.get(at) if self._others else None
        return other or "task_" + self._digests[10 * at : 10 * at + 10].hex()


class Landing:
    """The landed part of a run.

    Args:
        call: The call.
        stage: Stage of the run, for observers.
        journal: Where finished rollouts go at once, or `None`.
        progress: Where counts go.
        planned: Rollouts planned so far.

    Attributes:
        until: When the seconds of the budget are over, on the clock of `time.monotonic`, or `None`; what is in flight
            then is given up.
        over: The reason that it ends for then.
    """

    def __init__(self, call: Call, stage: Stage, journal: Journal | None, progress: Progress, planned: int) -> None:
        self.call, self.stage, self.journal, self.progress, self.planned = call, stage, journal, progress, planned
        self.tally = Tally()
        self.ids = TaskIds()
        self.kept: dict[tuple[int, int], dict[str, Any]] = {}
        axes = call.setting.axes
        # Rows of the grid keep the constraints; a given task need not.
        feasible = None if call.source.fixed else call.grid.array.planned
        self.coverage = CoverageCount(
            axes.values, strength=call.options.strength, forbidden=axes.forbidden, planned=feasible
        )
        self._width = call.width
        self._rewards, self._begun = array("d"), bytearray()
        self._started = self._inflight = 0
        self._most_tokens = call.options.rollout_tokens or 0.0
        self._most_usd = call.options.rollout_usd or 0.0
        self._first_failure: dict[str, Any] | None = None
        budget = call.budget
        self.until = None if budget.seconds is None else time.monotonic() + budget.seconds
        self.over = "" if budget.seconds is None else f"budget of {budget.seconds:g} s"
        self._meters = budget.tokens is not None or budget.usd is not None

    # -- before a rollout -----------------------------------------------------------------------------------

    def affordable(self, jobs: Iterator[Job]) -> Iterator[Job]:
        """Pass jobs on while every budget still holds one more, and skip those that the journal has."""
        budget, journal, halt = self.call.budget, self.journal, HALT.get()
        for job in jobs:
            if halt is not None and halt.reason is not None:
                raise Stop(halt.reason)
            if journal is not None and journal.has(*job.key):
                self._recall(job)
                continue
            if budget.rollouts is not None and self._started >= budget.rollouts:
                raise Stop(f"budget of {budget.rollouts} rollouts")
            if self.until is not None and time.monotonic() >= self.until:
                raise Stop(self.over)
            while self._meters and not self._room():
                yield WAIT  # what is in flight may turn out to take less
            self._started += 1
            self._inflight += 1
            yield job

    def _room(self) -> bool:
        """Whether one more rollout surely stays within tokens and money; raises `Stop` when it never will."""
        spent_so_far = self.call.ledger.spent
        for limit, spent, most, unit in (
            (self.call.budget.tokens, spent_so_far("tokens"), self._most_tokens, "tokens"),
            (self.call.budget.usd, spent_so_far("usd"), self._most_usd, "usd"),
        ):
            if limit is None:
                continue
            if not self._inflight and (spent >= limit or spent + most > limit + 1e-12):
                raise Stop(f"budget of {limit:g} {unit}: {spent:g} spent, one rollout takes up to {most:g}")
            # Before the first has landed its cost is unknown, so nothing runs beside it.
            if self._inflight and (most == 0 or spent + (self._inflight + 1) * most > limit + 1e-12):
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
        self._started += 1
        self.count(job.slot.position, job.index, row, recalled=True)

    # -- after a rollout ------------------------------------------------------------------------------------

    def deliver(self, job: Job, row: dict[str, Any]) -> None:
        """Take in a finished rollout: to the disk, to the counts, to the observers.

        Raises:
            JournalError: It cannot be written.
            AgentFailedError: The agent has failed on everything so far.
        """
        self._inflight -= 1
        if self.journal is not None:
            self.journal.add(job.slot.position, job.index, row)
        self.count(job.slot.position, job.index, row)
        if row["outcome"] == "failed":
            error = row.get("error") or {}
            self._first_failure = self._first_failure or error
            emit_row_failed(row, self.stage, RuntimeError(f"{error.get('type')}: {error.get('message')}"))
        emit_row(row, self.stage)
        limit = self.call.options.give_up_after
        if limit and self.tally.failed == self.tally.rows:
            hopeless = bool((row.get("error") or {}).get("permanent"))
            if hopeless or self.tally.rows >= min(limit, self.planned):
                self._call_off()

    def _call_off(self) -> None:
        error = self._first_failure or {}
        if error.get("by") == "user":
            raise UserFailedError(
                f"the simulated user failed on all of the first {self.tally.rows} rollouts",
                why=f"the first one: {error.get('type')}: {error.get('message')}",
                fix="correct the user's model, or pass user='scripted'",
            )
        raise AgentFailedError(
            f"agent {self.call.agent.name} failed on all of the first {self.tally.rows} rollouts",
            why=f"the first one: {error.get('type')}: {error.get('message')}",
            fix="correct the agent, or pass options={'give_up_after': 0} to go on",
        )

    def count(self, position: int, index: int, row: dict[str, Any], *, recalled: bool = False) -> None:
        """Count a row of the run, whether it landed now or in an earlier process (`recalled`)."""
        rewards, width = self._rewards, self._width
        begin = position * width
        missing = begin + width - len(rewards)
        if missing > 0:
            rewards.extend([_NOT_LANDED] * missing)
            self._begun.extend(bytes(missing // width))
        first = not self._begun[position]
        self._begun[position] = 1
        reward = row["reward"]
        rewards[begin + index] = math.nan if reward is None else reward
        self.tally.add(row, first)
        if "usage" in row or "user" in row:
            self.call.ledger.add_row(row, recalled=recalled)
        if first:
            self.coverage.add(row.get("axes") or {})
        if self._meters:
            tokens, usd = usage_of(row)
            self._most_tokens, self._most_usd = max(self._most_tokens, tokens), max(self._most_usd, usd)
        if self.call.options.collect:
            self.kept[position, index] = row
        self.progress.update(self.tally.rows, self.planned)

    # -- what landed ----------------------------------------------------------------------------------------

    def rewards(self, position: int) -> list[list[float | None]]:
        """Return the rewards of a task, by run, in the order of its rollouts; `None` is not scored."""
        begin, k, isnan = position * self._width, self.call.repeats.k, math.isnan
        mine = self._rewards[begin : begin + self._width]
        return [
            [None if isnan(r) else r for r in mine[n : n + k] if r != _NOT_LANDED] for n in range(0, self._width, k)
        ]

    def landed(self) -> Iterator[int]:
        """Return the positions of the tasks of which a rollout has landed."""
        return (position for position, begun in enumerate(self._begun) if begun)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows that are kept, in the order of tasks and rollouts."""
        return [self.kept[key] for key in sorted(self.kept)]


class Groups(Mapping[str, dict[str, Any]]):
    """What the repeat policy decided, by task: `{"state", "rollouts", "saved"}`; a few small numbers per task."""

    STATES = ("probing", "mixed", "stopped", "complete")

    def __init__(self, landing: Landing, finished: bool) -> None:
        repeats, runs = landing.call.repeats, landing.call.runs
        self._limit = (1 if repeats.policy == "none" else repeats.k) * runs if finished else 0
        self._ids, self._positions = landing.ids, array("q")
        self._state, self._rollouts = array("b"), array("q")
        for position in landing.landed():
            by_run = landing.rewards(position)
            state = self._of_runs([repeats.state(rewards, finished) for rewards in by_run])
            self._positions.append(position)
            self._state.append(self.STATES.index(state))
            self._rollouts.append(sum(map(len, by_run)))

    @staticmethod
    def _of_runs(states: list[str]) -> str:
        """Return the state of a task from those of its runs: one mixed group makes it mixed."""
        return next(state for state in ("mixed", "probing", "stopped", "complete") if state in states)

    @cached_property
    def _at(self) -> dict[str, int]:
        """Place of each task, made when one is looked up: it is the largest part."""
        return {self._ids[position]: n for n, position in enumerate(self._positions)}

    def __getitem__(self, task_id: str) -> dict[str, Any]:
        at = self._at[task_id]
        rollouts = self._rollouts[at]
        saved = self._limit - rollouts if self._limit else 0
        return {"state": self.STATES[self._state[at]], "rollouts": rollouts, "saved": saved}

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def __repr__(self) -> str:
        return f"Groups({dict(self)})"

    def counts(self) -> dict[str, int]:
        """Return the number of tasks by state, and the rollouts that the policy saved."""
        found = {name: self._state.count(n) for n, name in enumerate(self.STATES)}
        saved = self._limit * len(self._rollouts) - sum(self._rollouts) if self._limit else 0
        return {**{k: v for k, v in found.items() if v}, "saved": saved}
