"""The engine: runs rollouts with bounded concurrency, deadlines and budgets, whatever the agent is.

Scripted agents run in place. Coroutine agents run on an event loop in a thread of its own, so that a running loop (a
notebook) is no obstacle; blocking agents run on daemon threads, and one that hangs is given up with its deadline and
replaced. The engine knows nothing of tasks, files or statistics: it takes jobs and hands back rows as they land.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import functools
import gc
import inspect
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from whileai_kernel.errors import WhileaiError
from whileai_simulate.returns import Conversation, failed
from whileai_simulate.rollout import Job, Rollout, Stage1
from whileai_simulate.stopping import HALT, Stop
from whileai_simulate.waiting import wait
from whileai_simulate.world import World

__all__ = ["WAIT", "run_jobs"]

WAIT: Any = object()
"""Yielded by the jobs in place of one: nothing can start before something lands."""

T = TypeVar("T")
Deliver = Callable[[Job, dict[str, Any]], None]
_GRACE_S = 5.0
_REST_S = 0.0003
_YOUNG_OF_OURS, _YOUNG_ALONE, _YOUNG_BESIDE_AGENTS = 1_000_000, 100_000, 20_000


def run_jobs(
    jobs: Iterable[Job],
    shared: Stage1,
    deliver: Deliver,
    *,
    concurrency: int,
    make_ahead: Callable[[], bool] | None = None,
    until: float | None = None,
    over: str = "",
) -> str | None:
    """Run the jobs; `deliver(job, row)` is called once per finished rollout, in the order of landing.

    Args:
        jobs: Jobs, taken one by one as there is room.
        shared: Agent, tools and limits.
        deliver: Called from one thread at a time; may raise `Stop`.
        concurrency: Rollouts in flight at once.
        make_ahead: Called while nothing else is to be done: makes one more job that will be needed, and returns
            whether it did.
        until: When to give up what is in flight, on the clock of `time.monotonic`, or `None`. An agent that runs in
            place cannot be given up; it ends with the rollout that it is at.
        over: The reason that the run ends for then.

    Returns:
        The reason why the run ended early, or `None`.
    """
    if shared.agent.inline and not shared.waits:
        ours = shared.agent.trusted and shared.grade is None and not shared.execute and shared.make_world is World
        with _fewer_collections(_YOUNG_OF_OURS if ours else _YOUNG_ALONE, older=False):
            return _run_inline(jobs, shared, deliver)
    with _fewer_collections(_YOUNG_BESIDE_AGENTS, older=True):
        return _Loop(jobs, shared, deliver, concurrency, make_ahead or (lambda: False), until, over).run()


@contextlib.contextmanager
def _fewer_collections(young: int, *, older: bool) -> Iterator[None]:
    """Let the cycle collector look less often: rows are trees, and it took 40 % of the time.

    Where nothing runs but what is ours, which makes no cycles, it hardly looks at all.

    Args:
        young: New objects from which it looks.
        older: Look at older objects too, as agents of others may leave cycles. Without it a cycle is found while it
            is new, and one that outlives its first look waits for the end of the run.
    """
    wish = young, older
    with _COLLECTIONS:
        if not _wishes:
            _before[:] = gc.get_threshold()
        _wishes.append(wish)
        _set_collections()
    try:
        yield
    finally:
        with _COLLECTIONS:
            _wishes.remove(wish)
            _set_collections()


_COLLECTIONS = threading.Lock()
_wishes: list[tuple[int, bool]] = []
_before: list[int] = []


def _set_collections() -> None:
    """Do as the most careful of the runs that go on side by side wants it, or as it was when none does."""
    young, middle, old = _before
    if _wishes:
        # 0 is a collector that is switched off, and it stays so.
        young = young and max(young, min(wish[0] for wish in _wishes))
        middle = middle if any(wish[1] for wish in _wishes) else max(middle, 10_000)
    gc.set_threshold(young, middle, old)


def _run_inline(jobs: Iterable[Job], shared: Stage1, deliver: Deliver) -> str | None:
    try:
        limit = None if shared.agent.trusted else shared.deadline_s  # ours do not wait
        for job in jobs:
            rollout = Rollout(shared, job)
            begin = 0.0 if limit is None else time.monotonic()
            try:
                end = rollout.run_sync(rollout.ask)
            except (KeyboardInterrupt, Stop):
                raise
            except BaseException as err:  # noqa: BLE001 - whatever the agent raises is the rollout's failure
                end = _failure(rollout, err)
            if limit is not None and time.monotonic() - begin > limit:
                end = _timed_out(rollout, limit)
            row = rollout.row(end)
            if shared.grade is not None and inspect.isawaitable(graded := shared.grade(row)):
                wait(graded)
            deliver(job, row)
    except Stop as stop:
        return str(stop)
    except KeyboardInterrupt:
        return "interrupted"
    return None


def _failure(rollout: Rollout, err: BaseException) -> Conversation:
    text = err.what if isinstance(err, WhileaiError) else str(err)
    end = failed(rollout.opening(), type(err).__name__, text)
    if getattr(err, "permanent", False) is True and end.error is not None:
        end.error["permanent"] = True  # a wrong key, a model that does not exist: no other rollout can fare better
    return end


def _timed_out(rollout: Rollout, seconds: float | None) -> Conversation:
    if not rollout.at_user:
        return failed(rollout.opening(), "DeadlineError", f"no reply within {seconds:g} s", "deadline")
    text = f"the simulated user had not answered when the {seconds:g} s of the rollout were over"
    end = failed(rollout.opening(), "DeadlineError", text, "deadline")
    end.error = {**(end.error or {}), "by": "user"}
    return end


class _Threads:
    """Daemon threads for what blocks, as many as there are rollouts in flight; a lost one is replaced.

    The pools of the standard library wait for their threads at the end, so one call that hangs would hang the program.
    """

    def __init__(self, most: int) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._most = most
        self.count = 0

    def grow(self) -> None:
        self.count += 1
        # `Thread.start` waits until the thread runs: for a first wave of 32 that is longer than making its tasks.
        _thread.start_new_thread(self._serve, ())

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises, without blocking the loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

        def serve() -> None:
            outcome: tuple[T | None, BaseException | None]
            try:
                outcome = work(), None
            except BaseException as err:  # noqa: BLE001 - raised again where it is waited for
                outcome = None, err
            _settle(loop, future, outcome)

        if self.count < self._most:
            self.grow()
        self._work.put(serve)
        try:
            value, err = await future
        except asyncio.CancelledError:
            self.grow()  # the thread is lost to what hangs
            raise
        if err is not None:
            raise err
        return cast(T, value)

    def close(self) -> None:
        for _ in range(self.count):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def _settle(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], outcome: tuple[Any, Any]) -> None:
    """Settle a future of the loop from another thread; what nobody waits for any more is dropped."""

    def settle() -> None:
        if not future.done():
            future.set_result(outcome)
        elif inspect.iscoroutine(outcome[0]):
            outcome[0].close()  # an answer that was to be awaited

    # The loop may close in between: then the run is over and nobody waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)


class _Loop:
    """One run on an event loop of its own."""

    def __init__(
        self,
        jobs: Iterable[Job],
        shared: Stage1,
        deliver: Deliver,
        concurrency: int,
        make_ahead: Callable[[], bool],
        until: float | None,
        over: str,
    ) -> None:
        self.jobs: Iterator[Job] = iter(jobs)
        self.shared, self.deliver, self.concurrency = shared, deliver, concurrency
        self.make_ahead, self.until, self.over = make_ahead, until, over
        self.threads = _Threads(concurrency)
        self.stopped: str | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()
        self.beat = time.monotonic()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.abandoned = self.given_up = False

    def run(self) -> str | None:
        thread = threading.Thread(target=self._thread, daemon=True, name="wai-engine")
        halt = HALT.get()
        with contextlib.nullcontext() if halt is None else halt.told(self._interrupt):
            thread.start()
            try:
                while not self.done.wait(0.25):
                    self._watch()
                    if self.abandoned:
                        break
            except KeyboardInterrupt:
                self._interrupt("interrupted")
                self.done.wait(_GRACE_S)
        self.threads.close()
        if self.error is not None:
            raise self.error
        return self.stopped

    def _watch(self) -> None:
        """Give up a loop that a coroutine blocks for longer than its deadline: nothing else can end it."""
        limit, now = self.shared.deadline_s, time.monotonic()
        if self.until is not None and now > self.until + _GRACE_S and now - self.beat > _GRACE_S:
            self.abandoned, self.stopped = True, self.stopped or self.over
        if limit is not None and self.shared.agent.is_async and now - self.beat > limit + _GRACE_S:
            self.abandoned = True
            seconds = limit + _GRACE_S
            self.stopped = f"the agent blocks the event loop ({seconds:g} s); let it await, or make it a plain function"

    def _interrupt(self, reason: str) -> None:
        """End the run: no further rollout begins, and none of those in flight lands."""
        self.stopped, self.given_up = self.stopped or reason, True
        loop = self.loop
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(lambda: [t.cancel() for t in asyncio.all_tasks(loop)])

    def _thread(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            self.stopped = self.stopped or "interrupted"
        except BaseException as err:  # noqa: BLE001 - handed to the caller's thread, which raises it
            self.error = err
        finally:
            self.done.set()

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.landed, self.taken = asyncio.Event(), asyncio.Event()
        workers = [asyncio.ensure_future(self._worker()) for _ in range(self.concurrency)]
        beside = [asyncio.ensure_future(work()) for work in (self._heart, self._prepare)]
        if self.until is not None:
            self.loop.call_later(max(0.0, self.until - time.monotonic()), self._interrupt, self.over)
        if self.given_up:
            self._interrupt(self.stopped or "")  # asked for before there was a loop to tell
        try:
            await asyncio.gather(*workers)
        finally:
            for task in beside:
                task.cancel()
            for worker in workers:
                worker.cancel()
            for model in self.shared.models:
                if callable(close := getattr(model, "aclose", None)):
                    await close()  # connections belong to this loop, which ends here

    async def _heart(self) -> None:
        while True:
            self.beat = time.monotonic()
            await asyncio.sleep(0.2)

    async def _prepare(self) -> None:
        """Make jobs ahead, one at a time: what lands in between is served first."""
        # Threads that come back get the interpreter only when the loop rests: it would not let go for 5 ms otherwise.
        rest = 0.0 if self.shared.agent.is_async else _REST_S
        while True:
            self.taken.clear()
            while self.make_ahead():
                await asyncio.sleep(rest)
            await self.taken.wait()

    async def _worker(self) -> None:
        while self.stopped is None and not self.abandoned:
            landed = self.landed
            try:
                job = next(self.jobs, None)
            except Stop as stop:
                self.stopped = self.stopped or str(stop)
                return
            if job is None:
                return
            if job is WAIT:
                await landed.wait()
                continue
            self.taken.set()
            rollout = Rollout(self.shared, job)
            rollout.world.off_loop = self.threads.run
            try:
                end = await self._drive(rollout)
                row = rollout.row(end)
                grade = self.shared.grade
                if grade is not None:
                    later = self.shared.grade_waits
                    graded = grade(row) if later else await self.threads.run(functools.partial(grade, row))
                    if inspect.isawaitable(graded):
                        await graded
                if self.given_up or self.abandoned:
                    return  # it swallowed its cancellation
                self.deliver(job, row)
            except Stop as stop:
                self.stopped = self.stopped or str(stop)
                return
            finally:
                self.landed.set()
                self.landed = asyncio.Event()

    async def _drive(self, rollout: Rollout) -> Conversation:
        limit, begin = self.shared.deadline_s, time.monotonic()
        drive = self._drive_async if self.shared.agent.is_async else self._drive_thread
        try:
            async with asyncio.timeout(limit) as deadline:
                end = await drive(rollout)
        except TimeoutError as err:
            if not deadline.expired():  # the agent's own: a request of its timed out
                return _failure(rollout, err)
            rollout.world.close()
            return _timed_out(rollout, limit)
        except (KeyboardInterrupt, Stop):
            raise
        except BaseException as err:  # whatever the agent raises is the rollout's failure
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # the engine's own: the run ends
            return _failure(rollout, err)
        if limit is not None and time.monotonic() - begin > limit:
            # It blocked the loop, or swallowed its cancellation: late is late, also where the clock was not heard.
            rollout.world.close()
            return _timed_out(rollout, limit)
        return end

    async def _drive_async(self, rollout: Rollout) -> Conversation:
        steps = rollout.conversation()
        messages = next(steps)
        while True:
            value = rollout.ask(messages)
            raw = await value if inspect.isawaitable(value) else value
            try:
                messages = steps.send(raw)
            except StopIteration as stop:
                end: Conversation = stop.value
                return end

    async def _drive_thread(self, rollout: Rollout) -> Conversation:
        """Run the conversation on a thread; an agent that returns an awaitable has it awaited on the loop."""
        loop = asyncio.get_running_loop()

        def ask(messages: list[dict[str, Any]]) -> Any:
            value = rollout.ask(messages)
            if inspect.isawaitable(value):
                return asyncio.run_coroutine_threadsafe(_await(value), loop).result()
            return value

        def work() -> Conversation:
            try:
                return rollout.run_sync(ask)
            except Stop:
                raise
            except BaseException as err:  # noqa: BLE001 - SystemExit in an agent is its failure too
                return _failure(rollout, err)

        return await self.threads.run(work)


async def _await(value: Any) -> Any:
    return await value
