"""The process behind `pool.Pool`: a supervisor that imports once, and an evaluator that it forks and kills.

Run as `main(module, memory_mb)` with frames on standard input and output. Not imported by the parent.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from whileai_verify.frames import LateError, read_frame, write_frame

Work = Callable[[Any], Any]


def main(module: str, memory_mb: str) -> None:
    """Serve requests until standard input ends."""
    inlet, outlet = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # a library that prints must not write into the frames
    try:
        work: Work = importlib.import_module(module).work
    except Exception as error:  # noqa: BLE001 - reported to the parent, which raises it
        write_frame(outlet, json.dumps({"fatal": f"{type(error).__name__}: {error}"}).encode())
        return
    write_frame(outlet, b'{"ready": 1}')
    evaluator: Evaluator | None = None
    while (frame := read_frame(inlet)) is not None:
        if not hasattr(os, "fork"):
            write_frame(outlet, evaluate(work, frame))
            continue
        if evaluator is None:
            evaluator = Evaluator(work, int(memory_mb), (inlet, outlet))
        answer = evaluator.ask(frame)
        if answer is None or b'"error"' in answer[:9] or b'"late"' in answer[:8]:
            evaluator.end()  # its state is not to be trusted after a failure
            evaluator = None
        write_frame(outlet, answer if answer is not None else b'{"error": "the evaluation died"}')
    if evaluator is not None:
        evaluator.end()


def evaluate(work: Work, frame: bytes) -> bytes:
    """Run one request and return the frame of its answer."""
    try:
        result = work(json.loads(frame)[1])
        return json.dumps({"result": result}).encode()
    except MemoryError:
        return b'{"error": "out of memory"}'
    except RecursionError:
        return b'{"error": "nested too deeply"}'
    except Exception as error:  # noqa: BLE001 - reported to the parent, which raises it
        return json.dumps({"error": f"{type(error).__name__}: {str(error)[:200]}"}).encode()


class Evaluator:
    """A forked child that evaluates requests one after the other."""

    def __init__(self, work: Work, memory_mb: int, close: tuple[int, ...]) -> None:
        request, self.to_child = os.pipe()
        self.from_child, response = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                for fd in (*close, self.to_child, self.from_child):
                    os.close(fd)
                _limit(memory_mb)
                while (frame := read_frame(request)) is not None:
                    write_frame(response, evaluate(work, frame))
                code = 0
            finally:
                os._exit(code)
        os.close(request)
        os.close(response)

    def ask(self, frame: bytes) -> bytes | None:
        """Return the answer, `{"late": 1}` at the deadline, or `None` when the child died."""
        deadline = json.loads(frame)[0]
        try:
            write_frame(self.to_child, frame)
            return read_frame(self.from_child, time.monotonic() + deadline)
        except LateError:
            return b'{"late": 1}'
        except OSError:
            return None

    def end(self) -> None:
        """Kill the child and release its pipes."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)
        os.close(self.to_child)
        os.close(self.from_child)


def _limit(memory_mb: int) -> None:
    import resource

    size = memory_mb << 20
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 3_000))
