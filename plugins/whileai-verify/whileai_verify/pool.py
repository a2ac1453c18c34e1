"""A pool of worker processes that evaluate untrusted data under a deadline.

Work that does not end is ended: each worker is a supervisor process that has imported the libraries once and forks
an evaluator; when an evaluation is late the evaluator is killed and forked again in milliseconds, so a pathological
input costs one deadline and no worker. The pool may be called from any thread, inside a running event loop (it
blocks the caller for at most the deadline), and after a fork. It uses no signals and no alarm in the calling process.
Where `fork` does not exist the supervisor evaluates in place and is replaced when it is late.

The worker code is ours; only the data is untrusted, and it crosses as JSON. Model-written *programs* do not run here.

Example:
    >>> pool = Pool("whileai_verify.work_regex", workers=1)
    >>> pool.call(["a+b", 0, "search", "aaab"], deadline=5.0)
    True
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

from whileai_kernel.errors import DeadlineError, WhileaiError
from whileai_verify.defaults import START_S, WORKER_MEMORY_MB, WORKERS
from whileai_verify.frames import LateError, read_frame, watchdog, write_frame

__all__ = ["Pool", "WorkError", "WorkTimeoutError", "shared_pool"]

GRACE_S = 2.0  # seconds that the supervisor has beyond the deadline to answer that it ended the evaluation
_BOOT = "import sys,json;sys.path[:]=json.loads(sys.argv[1]);from whileai_verify.worker import main;main(*sys.argv[2:])"


class WorkError(WhileaiError):
    """The evaluation failed: it raised, it died, or it used more memory than it may."""


class WorkTimeoutError(DeadlineError):
    """The evaluation was ended at its deadline."""


class _Worker:
    """One supervisor process; used by one thread at a time."""

    def __init__(self, module: str, memory_mb: int) -> None:
        path = json.dumps([p for p in sys.path if p])
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, path, module, str(memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        answer = self.exchange(None, START_S.value)
        if answer is None or "ready" not in answer:
            self.close()
            why = "it did not start" if answer is None else str(answer.get("fatal"))
            raise WorkError(f"the worker for {module} could not start", why=why)

    def exchange(self, payload: bytes | None, timeout: float) -> dict[str, Any] | None:
        """Send a frame (or only wait for one) and return the answer; `None` when late or dead."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        timer = watchdog(timeout, self.kill)
        try:
            if payload is not None:
                write_frame(self.process.stdin.fileno(), payload)
            frame = read_frame(self.process.stdout.fileno(), time.monotonic() + timeout)
        except (OSError, LateError):
            return None
        finally:
            if timer is not None:
                timer.cancel()
        if frame is None:
            return None
        answer: dict[str, Any] = json.loads(frame)
        return answer

    def kill(self) -> None:
        """End the supervisor and its evaluator."""
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def close(self) -> None:
        """End the worker and release its pipes."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()

    def forget(self) -> None:
        """Close our copies of the pipes without touching the process: it belongs to the parent of this fork."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.returncode = 0


class Pool:
    """Worker processes for one module that has a function `work(argument) -> JSON value`.

    Args:
        module: Dotted name of the module that the worker imports.
        workers: Processes at most; they start when they are first needed.
        memory_mb: Address space of an evaluation in MiB (where the platform can limit it).
    """

    def __init__(self, module: str, *, workers: int = WORKERS.value, memory_mb: int = WORKER_MEMORY_MB.value) -> None:
        self.module, self.workers, self.memory_mb = module, workers, memory_mb
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._free = threading.Semaphore(self.workers)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []

    def call(self, argument: Any, deadline: float) -> Any:
        """Evaluate one argument and return the result.

        Args:
            argument: JSON value that `work` takes.
            deadline: Seconds for the evaluation, not counting the wait for a free worker or its first start.

        Raises:
            WorkTimeoutError: It was ended at the deadline; the pool is usable.
            WorkError: It raised or died; the pool is usable.
        """
        payload = json.dumps([deadline, argument]).encode("utf-8", "surrogatepass")
        with self._free:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None or worker.process.poll() is not None:
                worker = _Worker(self.module, self.memory_mb)
            healthy = False
            try:
                answer = worker.exchange(payload, deadline + GRACE_S)
                healthy = answer is not None
            finally:
                if healthy:
                    with self._lock:
                        self._idle.append(worker)
                else:
                    worker.close()
        if answer is None or "late" in answer:
            raise WorkTimeoutError(f"the evaluation was ended after {deadline:g} s")
        if "error" in answer:
            raise WorkError(f"the evaluation failed: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End every idle worker; the pool can be used again afterwards."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def _after_fork(self) -> None:
        for worker in self._idle:
            worker.forget()
        self._reset()


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
_SHARED: dict[tuple[str, int], Pool] = {}
_SHARED_LOCK = threading.Lock()


def shared_pool(module: str, workers: int = WORKERS.value) -> Pool:
    """Return the process-wide pool for a module, so that verifiers made twice do not start workers twice."""
    with _SHARED_LOCK:
        key = (module, workers)
        if key not in _SHARED:
            _SHARED[key] = Pool(module, workers=workers)
        return _SHARED[key]


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


def _after_fork() -> None:
    global _SHARED_LOCK
    _SHARED_LOCK = threading.Lock()
    for pool in list(_POOLS):
        pool._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
