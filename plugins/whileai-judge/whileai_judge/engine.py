"""Call one function on many rows: bounded, ordered, with deadlines that hold, from any thread.

The engine knows nothing about verdicts. It takes a callable and a list of inputs and yields one
:class:`Outcome` per input, in the order of the inputs, whatever order the calls finished in.

* A coroutine function runs on an event loop in a thread of its own, so the caller may be a script, a
  notebook cell or a coroutine. The loop lives as long as the process: a client that a judge opens once
  stays bound to a loop that is still there the second time.
* A plain function runs in worker threads that take rows until none is left: no hop between threads per row.
  It starts on one worker; more join only while calls are slow, so a fast function is not slowed by
  switching.
* A call that overstays its deadline is recorded as ``timeout`` and its thread (or task) is abandoned:
  Python has no way to end it. What cannot be held is a call that keeps the interpreter lock, such as a
  regular expression that backtracks: nothing else in the process runs until it returns, and then it is
  recorded as ``timeout``.

Not here: retries, rate limits, caching (the model's business), processes (a sandbox's business).

Example:
    >>> [outcome.value for outcome in run_calls(str.upper, ["a", "b"])]
    ['A', 'B']
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from whileai_judge.defaults import CONCURRENCY, DEADLINE_SECONDS, MAX_ABANDONED, SLOW_CALL_SECONDS, STOP_AFTER

_TICK_SECONDS = 0.02  # how often the coordinator looks at the clock; shapes no result
_GRACE_SECONDS = 0.25  # how long a cancelled coroutine may take to leave before its task is abandoned

Kind = str  # "value" | "error" | "timeout" | "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call.

    Attributes:
        kind: ``value``, ``error`` (it raised), ``timeout`` (it overstayed), ``skipped`` (never called,
            because too many calls were abandoned before it).
        value: What the call returned; ``None`` unless ``kind`` is ``value``.
        error: What it raised; ``None`` unless ``kind`` is ``error``.
        seconds: How long it ran, in seconds.
    """

    kind: Kind
    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


_HANDED_OVER = Outcome("skipped")


class AllFailed(Exception):
    """Every one of the first calls failed; the rest was not tried."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__(f"the first {len(outcomes)} calls all failed")
        self.outcomes = outcomes


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine: functions, partials, and objects with an async
    ``__call__``."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - the bound method is inspected, not called
    )


class LoopThread(threading.Thread):
    """An event loop in a daemon thread of its own."""

    def __init__(self) -> None:
        super().__init__(name="whileai-judge-loop", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.pid = os.getpid()
        self.start()

    def run(self) -> None:
        """Run the loop for as long as the process lives."""
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


# A judge may grade rows itself. Its call occupies a loop (level 0) until those are graded, so they run on the loop of
# the next level; the level travels with the context, into worker threads too.
_level: contextvars.ContextVar[int] = contextvars.ContextVar("whileai_judge_level", default=0)
_loops: dict[int, LoopThread] = {}
_loops_lock = threading.Lock()


def shared_loop() -> asyncio.AbstractEventLoop:
    """The process's loop for judges at this level of nesting, started on first use.

    Returns:
        A running loop in another thread than the caller's.
    """
    level = _level.get()
    with _loops_lock:
        while True:
            thread = _loops.get(level)
            if thread is threading.current_thread():
                level += 1  # called from the loop without its context: never wait for oneself
                continue
            if thread is None or thread.pid != os.getpid() or not thread.is_alive():
                thread = _loops[level] = LoopThread()
            return thread.loop


def _forget_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Let the next user get a fresh loop: a call blocks this one."""
    with _loops_lock:
        for level in [level for level, thread in _loops.items() if thread.loop is loop]:
            del _loops[level]


class _Slot:
    """One place for a running call: a thread, or a task on a loop."""

    __slots__ = ("current", "done", "task")

    def __init__(self) -> None:
        # (index, started) in one assignment: the coordinator must not mix two calls.
        self.current: tuple[int, float] | None = None
        self.done = False
        self.task: Future[None] | None = None  # a coroutine's, to cancel it


class _Run:
    """The state of one run: what was taken, what came back, who is working."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        concurrency: int,
        deadline: float | None,
        stop_after: int | None,
        max_abandoned: int,
        slow_call: float,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.function, self.items = function, items
        self.concurrency, self.deadline = concurrency, deadline
        self.max_abandoned, self.slow_call = max_abandoned, slow_call
        self.asynchronous = is_async(function)
        self.given_loop = loop
        self.level = _level.get()
        self.loop = loop
        self.total = len(items)
        probing = stop_after is not None and self.total > stop_after
        self.probe = stop_after if probing and stop_after is not None else 0
        self.limit = self.probe if probing else self.total  # rows beyond it are not started yet
        self.taken = 0
        self.results: dict[int, Outcome] = {}
        self.slots: list[_Slot] = []
        self.abandoned = 0
        self.stopped = False
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.wanted = concurrency if self.asynchronous else 1
        self.looked = (
            time.monotonic(),
            0,
        )  # when the pace was last looked at, and how many were settled then

    # -- workers ----

    def take(self) -> int | None:
        """The index of the next row to call, or None."""
        with self.lock:
            if self.stopped or self.taken >= self.limit:
                return None
            self.taken += 1
            return self.taken - 1

    def settle(self, index: int, outcome: Outcome) -> bool:
        """Record an outcome; the first one for a row stays. False: the row was given up and so is this
        slot."""
        return self.results.setdefault(index, outcome) is outcome

    def finished(self, value: Any, started: float) -> Outcome:
        seconds = time.monotonic() - started
        if self.deadline is not None and seconds > self.deadline:
            return Outcome("timeout", seconds=seconds)
        return Outcome("value", value, None, seconds)

    async def awaited(self, value: Awaitable[Any], started: float) -> Outcome:
        """Await a call within the deadline; whatever it raises becomes an outcome."""
        _level.set(self.level + 1)
        try:
            async with asyncio.timeout(self.deadline) as clock:
                result = await value
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # somebody ends the loop: not the judge's doing
            seconds = time.monotonic() - started
            if isinstance(error, TimeoutError) and clock.expired():
                return Outcome("timeout", seconds=seconds)
            return Outcome("error", None, error, seconds)
        return self.finished(result, started)

    def work_sync(self, slot: _Slot) -> None:
        """Take rows and call the function on them until none is left (runs in a worker thread)."""
        function, items, clock = self.function, self.items, time.monotonic
        try:
            while (index := self.take()) is not None:
                started = clock()
                slot.current = (index, started)
                try:
                    value = function(items[index])
                    if hasattr(value, "__await__"):
                        waiting = asyncio.run_coroutine_threadsafe(self.awaited(value, started), self.ready_loop())
                        outcome = waiting.result()
                    else:
                        outcome = self.finished(value, started)
                except BaseException as error:  # noqa: BLE001 - recorded; a judge may even call sys.exit
                    outcome = Outcome("error", None, error, clock() - started)
                slot.current = None
                if not self.settle(index, outcome):
                    return
        finally:
            slot.done = True
            self.wake.set()

    async def work_async(self, slot: _Slot) -> None:
        """The same for a coroutine function (runs as a task on the loop)."""
        _level.set(self.level + 1)
        try:
            while (index := self.take()) is not None:
                started = time.monotonic()
                slot.current = (index, started)
                try:
                    call = self.function(self.items[index])
                except Exception as error:  # noqa: BLE001 - recorded: the call did not get as far as a coroutine
                    outcome = Outcome("error", None, error, time.monotonic() - started)
                else:
                    outcome = await self.awaited(call, started)
                slot.current = None
                if not self.settle(index, outcome):
                    return
        finally:
            slot.done = True
            self.wake.set()

    # -- coordinator ----

    def ready_loop(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if self.loop is None:
                self.loop = shared_loop()
            return self.loop

    def fill(self) -> None:
        """Start slots until as many run as are wanted or no row is left to take."""
        self.slots = [slot for slot in self.slots if not slot.done]
        while len(self.slots) < min(self.wanted, self.concurrency) and self.taken + self.idle() < self.limit:
            slot = _Slot()
            self.slots.append(slot)
            if self.asynchronous:
                slot.task = asyncio.run_coroutine_threadsafe(self.work_async(slot), self.ready_loop())
            else:
                context = contextvars.copy_context()
                thread = threading.Thread(target=context.run, args=(self.work_sync, slot), daemon=True)
                thread.name = "whileai-judge-worker"
                thread.start()

    def idle(self) -> int:
        """Slots that were started and have not taken a row yet."""
        return sum(1 for slot in self.slots if slot.current is None and not slot.done)

    def give_up_late(self) -> None:
        """Record the calls that overstayed as timeouts and drop their slots."""
        if self.deadline is None:
            return
        now = time.monotonic()
        allowed = self.deadline + (_GRACE_SECONDS if self.asynchronous else 0.0)
        late = [slot for slot in self.slots if (current := slot.current) is not None and now - current[1] > allowed]
        for slot in late:
            current = slot.current
            if current is not None and self.settle(current[0], Outcome("timeout", seconds=now - current[1])):
                self.slots.remove(slot)
                self.abandoned += 1
        if late and self.given_loop is None and self.loop is not None and not _answers(self.loop):
            _forget_loop(self.loop)  # a coroutine blocks the loop: go on on a fresh one
            self.loop = None
        if self.abandoned >= self.max_abandoned:
            self.skip_rest()

    def skip_rest(self) -> None:
        with self.lock:
            self.stopped = True
            first = self.taken
        for index in range(first, self.total):
            self.results.setdefault(index, Outcome("skipped"))
        self.limit = self.total

    def check_probe(self) -> None:
        """Open the gate at the first call that worked; stop when every one of the first calls failed."""
        if self.limit >= self.total:
            return
        first = [self.results[index] for index in range(self.probe) if index in self.results]
        if any(outcome.kind == "value" for outcome in first):
            self.limit = self.total
        elif len(first) == self.probe:
            raise AllFailed(first)

    def grow(self, now: float) -> None:
        """Let more workers join while plain calls are slow."""
        seconds = now - self.looked[0]
        if self.wanted < self.concurrency and seconds >= _TICK_SECONDS / 2:
            done = len(self.results) - self.looked[1]
            if seconds > self.slow_call * done:
                self.wanted = self.concurrency
            self.looked = (now, len(self.results))

    def stop(self) -> None:
        """Start no further call, and cancel the coroutines in flight: nobody waits for them any more."""
        with self.lock:
            self.stopped = True
        if self.loop is None or self.loop.is_closed():
            return
        for slot in self.slots:
            if slot.task is not None:
                slot.task.cancel()


def _answers(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a loop in another thread still runs callbacks."""
    answered = threading.Event()
    loop.call_soon_threadsafe(answered.set)
    return answered.wait(_GRACE_SECONDS)


def run_calls(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    concurrency: int = CONCURRENCY.value,
    deadline: float | None = DEADLINE_SECONDS.value,
    stop_after: int | None = STOP_AFTER.value,
    max_abandoned: int = MAX_ABANDONED.value,
    slow_call: float = SLOW_CALL_SECONDS.value,
    loop: asyncio.AbstractEventLoop | None = None,
    cancel: threading.Event | None = None,
) -> Generator[Outcome, None, None]:
    """Call ``function`` on every item and yield the outcomes in the order of the items.

    Args:
        function: A plain or a coroutine function of one argument. A plain function that returns an
            awaitable is awaited too.
        items: The inputs.
        concurrency: The most calls in flight at once.
        deadline: Seconds that one call may take; ``None`` for no limit.
        stop_after: Give up when this many first calls all failed and more are left; ``None`` never gives
            up. Until one call has worked, no more than this many are started.
        max_abandoned: Give up starting calls when this many were abandoned in mid-flight.
        slow_call: Mean seconds per plain call from which more than one worker thread is used.
        loop: The loop for coroutines, running in another thread than the caller's; the process's own by
            default.
        cancel: When set, the iterator ends early and no further call is started.

    Yields:
        One outcome per item.

    Raises:
        AllFailed: The first ``stop_after`` calls all failed and more were left.
    """
    run = _Run(function, items, concurrency, deadline, stop_after, max_abandoned, slow_call, loop)
    tick = _TICK_SECONDS if deadline is None else min(_TICK_SECONDS, max(deadline / 4, 0.001))
    position = 0
    try:
        while position < run.total:
            if cancel is not None and cancel.is_set():
                return
            run.fill()
            if position not in run.results:
                run.wake.wait(tick)
                run.wake.clear()
            run.give_up_late()
            run.check_probe()
            run.grow(time.monotonic())
            while run.limit >= run.total and position in run.results:
                outcome = run.results[position]
                run.results[position] = _HANDED_OVER  # frees the value; a late finisher still finds the row settled
                yield outcome
                position += 1
    finally:
        run.stop()
