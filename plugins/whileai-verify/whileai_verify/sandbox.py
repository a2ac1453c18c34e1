"""Run a candidate in isolation: the local backend of the kind `sandboxes`, and what a backend has to do.

A backend is a class with `run(job) -> SandboxResult`. A job is one of three: a *program* (files, standard input),
*calls* of a function with plain values, or *tests* (a test program in a second sandbox, apart from the candidate).
The local backend keeps one sandbox server (see `jail`) that forks an isolated process in milliseconds; values come back
as data and are compared by the caller.

Example:
    >>> job = SandboxJob(files={"solution.py": "print(input())"}, main="solution.py", stdin=b"hi")
    >>> LocalSandbox().run(job).stdout
    b'hi\\n'
"""

from __future__ import annotations

import array
import atexit
import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_verify.defaults import (
    CODE_CPU_S,
    CODE_DISK_MB,
    CODE_FILE_MB,
    CODE_MEMORY_MB,
    CODE_OUTPUT_KB,
    CODE_PROCESSES,
    CODE_TIME_S,
    CODE_VALUE_KB,
    START_S,
)
from whileai_verify.frames import FrameTooLargeError, LateError, read_frame, write_frame
from whileai_verify.isolation import LEVELS
from whileai_verify.wire import CannotCrossError, decode, encode

__all__ = ["LEVELS", "Limits", "LocalSandbox", "SandboxError", "SandboxJob", "SandboxResult", "strongest_level"]

_BOOT = "import sys,json;sys.path[:]=json.loads(sys.argv[1]);from whileai_verify.jail import main;main(*sys.argv[2:])"
_ENDED = ("time", "output", "memory")  # what the monitor ends a candidate for
GRACE_S = 5.0  # seconds beyond a job's own limit before its report is given up


class SandboxError(WhileaiError):
    """The sandbox itself failed; this says nothing about the candidate."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate may use.

    Attributes:
        time_s: Wall-clock seconds.
        cpu_s: CPU seconds of a process.
        memory_mb: Address space of a process, and memory of all its processes together, in MiB.
        processes: Processes and threads alive.
        output_kb: KiB of standard output; more ends the candidate.
        file_mb: MiB of one file.
        disk_mb: MiB of its directory.
        value_kb: KiB of one value that comes back.
    """

    time_s: float = CODE_TIME_S.value
    cpu_s: int = CODE_CPU_S.value
    memory_mb: int = CODE_MEMORY_MB.value
    processes: int = CODE_PROCESSES.value
    output_kb: int = CODE_OUTPUT_KB.value
    file_mb: int = CODE_FILE_MB.value
    disk_mb: int = CODE_DISK_MB.value
    value_kb: int = CODE_VALUE_KB.value

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name} must be above 0", why=f"it is {getattr(self, name)!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class SandboxJob:
    """One thing to run.

    Attributes:
        files: Relative path to text; they are written into the candidate's directory.
        main: The file that is run or imported.
        stdin: Input of a program; not `None` makes the job a program.
        calls: `(function, args, kwargs)` to call one after the other; not empty makes the job calls.
        tests: Source of a test program; not empty makes the job tests.
        entry_point: Name of the function or class under test.
        trusted: Source by the task, whose other definitions the tests use in place of the candidate's.
        limits: What the candidate may use.
        level: Isolation that is required at least; `None` takes the strongest that this machine has.
    """

    files: dict[str, str]
    main: str
    stdin: bytes | None = None
    calls: Sequence[tuple[str, Sequence[Any], dict[str, Any]]] = ()
    tests: str = ""
    entry_point: str | None = None
    trusted: str = ""
    limits: Limits = field(default_factory=Limits)
    level: str | None = None


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a job gave.

    Attributes:
        level: Isolation that held.
        layers: Its layers by name.
        stopped: Why the candidate was ended: `time`, `output`, `memory`, `gone` (its process ended early), or `""`.
        exit: Exit code of the candidate's process, negative for a signal, `None` when unknown.
        stdout: What a program printed.
        values: Of calls: `("value", value)` or `("raised", type name)` each; shorter than the calls when stopped.
        results: Of tests: name to problem, `""` for a test that passed.
        problem: What went wrong in words, `""` otherwise.
        harness: The problem is of the tests, not of the candidate.
    """

    level: str
    layers: tuple[str, ...]
    stopped: str = ""
    exit: int | None = None
    stdout: bytes = b""
    values: tuple[tuple[Literal["value", "raised"], Any], ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    harness: bool = False


class _Server:
    """A sandbox server process of this interpreter: with namespaces, or plain for the weaker levels."""

    def __init__(self, kind: str) -> None:
        self.root = tempfile.mkdtemp(prefix="whileai-root-")
        ours, theirs = socket.socketpair()
        path = json.dumps([p for p in sys.path if p])
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, path, str(theirs.fileno()), kind, self.root],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=env,
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        self.socket, self.lock = ours, threading.Lock()
        ours.settimeout(START_S.value)
        try:
            started = ours.recv(256)
        except OSError:
            started = b""
        ours.settimeout(None)
        if started != b"ready":
            self.close()
            raise SandboxError("the sandbox server did not start", why=started.decode("utf-8", "replace") or "it ended")

    def launch(self, fds: Sequence[int]) -> None:
        """Ask for a new job process that gets these descriptors."""
        with self.lock:
            self.socket.sendmsg([b"j"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])

    def close(self) -> None:
        self.socket.close()
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)


_SERVERS: dict[str, _Server] = {}
_LOCK = threading.Lock()


def _server(level: str) -> _Server:
    kind = "namespaces" if level == "namespaces" else "plain"
    with _LOCK:
        server = _SERVERS.get(kind)
        if server is None or server.process.poll() is not None:
            if not hasattr(os, "fork"):
                raise SandboxError(
                    "code cannot be run on this system", why="it has no fork", fix="use a remote sandbox"
                )
            server = _SERVERS[kind] = _Server(kind)
        return server


def _close() -> None:
    for server in _SERVERS.values():
        server.close()
    _SERVERS.clear()


def _forget() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    _SERVERS.clear()
    _LEVEL.clear()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

_LEVEL: list[str] = []


def strongest_level() -> str:
    """Return the strongest isolation level that works on this machine, found by trying (once per process)."""
    if not _LEVEL:
        for level in LEVELS:
            job = SandboxJob({"solution.py": "print('ok')"}, "solution.py", stdin=b"", level=level)
            try:
                if _program(job, level).stdout == b"ok\n":
                    _LEVEL.append(level)
                    break
            except SandboxError:
                continue
        else:
            raise SandboxError("no sandbox works on this machine", fix="run on Linux, or use a remote sandbox")
    return _LEVEL[0]


def require_level(level: str | None) -> str:
    """Return the level to use: the strongest, which has to be at least the one that is asked for.

    Raises:
        SandboxError: The machine does not have it.
    """
    best = strongest_level()
    if level is not None and LEVELS.index(best) > LEVELS.index(level):
        raise SandboxError(
            f"isolation {level!r} is required and this machine has {best!r}",
            why="user namespaces, seccomp or Landlock are not permitted here",
            fix=f"run where they are, or ask for isolation={best!r}",
        )
    return best


class _Running:
    """One job process: its control socket, and its directory where it has no private root."""

    def __init__(self, role: str, job: SandboxJob, level: str, peer: socket.socket | None) -> None:
        server = _server(level)
        self.control, inner = socket.socketpair()
        self.work: str | None = None
        self.until = time.monotonic() + job.limits.time_s + GRACE_S
        if level != "namespaces":
            self.work = tempfile.mkdtemp(prefix="whileai-work-")
        message: dict[str, Any] = {
            "role": role,
            "level": level,
            "work": self.work,
            "limits": job.limits.to_dict(),
            "files": job.files if role != "tester" else {},
            "main": job.main,
            "stdin": base64.b64encode(job.stdin or b"").decode(),
        }
        if role == "tester":
            message |= {
                "tests": job.tests,
                "source": job.files[job.main],
                "entry_point": job.entry_point,
                "trusted": job.trusted,
                "limit": job.limits.value_kb << 10,
            }
        try:
            server.launch([inner.fileno(), *([peer.fileno()] if peer is not None else [])])
            inner.close()
            write_frame(self.control.fileno(), json.dumps(message).encode())
        except OSError as error:
            self.close()
            raise SandboxError(f"the sandbox server is gone: {error}") from None

    def report(self) -> dict[str, Any]:
        """Wait for the monitor's report.

        Raises:
            SandboxError: There is none, or the isolation could not be set up.
        """
        try:
            frame = read_frame(self.control.fileno(), self.until)
        except (LateError, OSError):
            frame = None
        if frame is None:
            raise SandboxError("the sandbox gave no report")
        report: dict[str, Any] = json.loads(frame)
        if report["failed"]:
            raise SandboxError(f"the isolation could not be set up: {', '.join(report['failed'])}")
        return report

    def close(self) -> None:
        self.control.close()
        if self.work is not None:
            shutil.rmtree(self.work, ignore_errors=True)


def _program(job: SandboxJob, level: str) -> SandboxResult:
    running = _Running("program", job, level, None)
    try:
        report = running.report()
    finally:
        running.close()
    return SandboxResult(
        level, tuple(report["layers"]), report["stopped"], report["exit"], base64.b64decode(report["stdout"])
    )


def _finish(running: _Running, level: str, stopped: str, problem: str, values: Sequence[Any]) -> SandboxResult:
    """End a candidate whose calls are done, and take its layers from the report."""
    with contextlib.suppress(OSError):
        running.control.shutdown(socket.SHUT_WR)
    report = running.report()
    if report["stopped"] in _ENDED:
        stopped = report["stopped"]
    return SandboxResult(level, tuple(report["layers"]), stopped, report["exit"], values=tuple(values), problem=problem)


def _calls(job: SandboxJob, level: str) -> SandboxResult:
    ours, theirs = socket.socketpair()
    running = _Running("candidate", job, level, theirs)
    theirs.close()
    until = running.until - GRACE_S
    limit = job.limits.value_kb << 10
    values: list[tuple[Literal["value", "raised"], Any]] = []
    stopped = problem = ""
    try:
        first = _message(ours, until, limit)
        if first.get("loaded") is not True:
            problem, stopped = f"the code does not load: {str(first.get('error', ''))[:200]}", "gone"
        for name, args, kwargs in job.calls if not stopped else ():
            values.append(_call(ours, name, args, kwargs, until, limit))
    except LateError:
        stopped = "time"
    except (OSError, FrameTooLargeError, EOFError) as error:
        stopped = "gone"
        problem = "a value is too large" if isinstance(error, FrameTooLargeError) else "the process ended early"
    finally:
        ours.close()
    try:
        return _finish(running, level, stopped, problem, values)
    finally:
        running.close()


def _message(link: socket.socket, until: float, limit: int) -> dict[str, Any]:
    frame = read_frame(link.fileno(), until, limit)
    if frame is None:
        raise EOFError
    try:
        message = json.loads(frame)
    except (ValueError, RecursionError):
        raise EOFError from None
    if not isinstance(message, dict):
        raise EOFError
    return message


def _call(
    link: socket.socket, name: str, args: Sequence[Any], kwargs: dict[str, Any], until: float, limit: int
) -> tuple[Literal["value", "raised"], Any]:
    """Call a function of the candidate by name and return its value or the name of what it raised."""
    write_frame(link.fileno(), json.dumps({"op": "name", "name": name}).encode())
    found = _message(link, until, limit).get("value")
    if not isinstance(found, dict) or not isinstance(found.get("o"), int):
        return "raised", "NameError"
    request = {
        "op": "call",
        "on": found["o"],
        "args": [encode(a) for a in args],
        "kwargs": {k: encode(v) for k, v in kwargs.items()},
    }
    write_frame(link.fileno(), json.dumps(request).encode())
    message = _message(link, until, limit)
    value = message.get("value")
    if isinstance(value, dict) and value.get("kind") == "coroutine" and isinstance(value.get("o"), int):
        write_frame(link.fileno(), json.dumps({"op": "await", "on": value["o"]}).encode())
        message = _message(link, until, limit)
    if "raised" in message or "callback" in message:
        raised = message.get("raised")
        return "raised", str(raised.get("type"))[:100] if isinstance(raised, dict) else "RuntimeError"
    try:
        return "value", decode(message.get("value"))
    except CannotCrossError as error:
        return "raised", f"not plain data: {error}"


def _tests(job: SandboxJob, level: str) -> SandboxResult:
    ours, theirs = socket.socketpair()
    candidate = _Running("candidate", job, level, theirs)
    tester: _Running | None = None
    try:
        tester = _Running("tester", job, level, ours)
        ours.close()
        theirs.close()
        report = tester.report()
        answer = report["answer"]
        with contextlib.suppress(OSError):
            candidate.control.shutdown(socket.SHUT_WR)
        try:
            own = candidate.report()
        except SandboxError:
            own = {"layers": report["layers"], "stopped": "", "exit": None}
    finally:
        ours.close()
        theirs.close()
        candidate.close()
        if tester is not None:
            tester.close()
    stopped = report["stopped"] or (own["stopped"] if own["stopped"] in _ENDED else "")
    layers = tuple(own["layers"])
    if answer is None:
        problem = "" if stopped else "the tests' process ended early"
        return SandboxResult(level, layers, stopped or "gone", own["exit"], problem=problem)
    if "error" in answer:
        return SandboxResult(level, layers, stopped, own["exit"], problem=answer["error"], harness=True)
    results = dict(answer.get("results") or {})
    if "gone" in answer:
        return SandboxResult(level, layers, stopped or "gone", own["exit"], results=results, problem=answer["gone"])
    return SandboxResult(level, layers, stopped, own["exit"], results=results)


class LocalSandbox:
    """The sandbox of this machine.

    Args:
        workers: Jobs at once; by default twice the number of processors.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._free = threading.BoundedSemaphore(workers or 2 * (os.cpu_count() or 1))

    def run(self, job: SandboxJob) -> SandboxResult:
        """Run one job to its end.

        Args:
            job: What to run.

        Raises:
            SandboxError: The sandbox failed, or the required level is not there.
        """
        level = require_level(job.level)
        with self._free:
            if job.tests:
                return _tests(job, level)
            return _calls(job, level) if job.calls else _program(job, level)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
