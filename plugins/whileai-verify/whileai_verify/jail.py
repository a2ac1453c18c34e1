"""The sandbox server: a clean interpreter that forks one isolated child for each job.

The parent passes a socket for each job; the server itself never reads a job, so nothing of one candidate is left in it
for the next. Each job has two processes: a *monitor*, outside of the candidate's process namespace, which holds the
deadline, reads the output and writes the report, and the *inner* process, which runs the code. The monitor kills
everything at the end. Run as `main(socket_fd)`.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from whileai_verify import isolation, usage
from whileai_verify.frames import LateError, read_frame, write_frame

__all__ = ["main"]

_PRELOAD = (  # what most candidates import, so that they do not wait for it
    *("ast", "asyncio", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "heapq", "importlib.util", "inspect", "io", "itertools", "json", "math", "operator"),
    *("random", "re", "resource", "shutil", "statistics", "string", "tempfile", "textwrap", "traceback", "types"),
    *("typing", "unittest"),
)


def main(fd: str, kind: str, root: str) -> None:
    """Serve jobs from the parent's socket until it closes.

    Args:
        fd: Number of the socket.
        kind: `namespaces`, or `plain` for the weaker levels.
        root: An empty directory for the private root.
    """
    server = socket.socket(fileno=int(fd))
    for name in _PRELOAD:
        __import__(name)
    import whileai_verify.candidate
    import whileai_verify.tester  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    usage.open_proc()
    gc.freeze()  # children share these pages instead of copying them
    layers: list[str] = []
    if kind == "namespaces":
        try:
            layers = isolation.enter_namespaces(root)
        except OSError as error:
            server.send(f"no: {error}".encode()[:200])
            return
    server.send(b"ready")
    slot = 0
    while True:
        data, fds = _receive(server)
        if not data:
            return
        slot = (slot + 1) % 20_000
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                server.close()
                _guarded(
                    fds[0], fds[1] if len(fds) > 1 else -1, 200_000 + slot + 20_000 * (os.getppid() % 1_000), layers
                )
                code = 0
            finally:
                os._exit(code)
        for each in fds:
            os.close(each)


def _receive(server: socket.socket) -> tuple[bytes, list[int]]:
    fds = array.array("i")
    data, ancillary, _, _ = server.recvmsg(16, socket.CMSG_LEN(2 * fds.itemsize))
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return data, list(fds)


def _guarded(control: int, peer: int, uid: int, layers: list[str]) -> None:
    """Run a job and report a sandbox that could not be set up."""
    try:
        _job(control, peer, uid, layers)
    except OSError as error:
        final = {"layers": [], "failed": [str(error)], "stopped": "", "exit": None, "stdout": "", "answer": None}
        with contextlib.suppress(OSError):
            write_frame(control, json.dumps(final).encode())


def _job(control: int, peer: int, uid: int, layers: list[str]) -> None:
    """Read one job from its control socket, run it in isolation, and report."""
    frame = read_frame(control)
    if frame is None:
        return
    job: dict[str, Any] = json.loads(frame)
    until = time.monotonic() + job["limits"]["time_s"]
    isolation.become_subreaper()
    if job["level"] == "namespaces":
        isolation.private_directory(job["limits"]["disk_mb"], uid)
        layers = [*layers, "process"]
    if usage.memory_kib([os.getpid()], 0):
        layers = [*layers, "memory"]
    out_read, out_write = os.pipe()
    report_read, report_write = os.pipe()
    layer_read, layer_write = os.pipe()
    inner = os.fork()
    if inner == 0:
        code = 1
        try:
            for fd in (out_read, report_read, layer_read):
                os.close(fd)
            _inner(job, control, peer, uid, out_write, report_write, layer_write)
            code = 0
        except OSError as error:  # before any code of the candidate: the layer descriptor is closed later
            with contextlib.suppress(OSError):
                write_frame(layer_write, json.dumps({"failed": [str(error)]}).encode())
        finally:
            os._exit(code)
    for fd in (out_write, report_write, layer_write, *([peer] if peer >= 0 else [])):
        os.close(fd)
    _monitor(job, control, inner, until, out_read, report_read, layer_read, layers)


_REQUIRED: dict[str, set[str]] = {"namespaces": {"seccomp"}, "landlock": {"seccomp", "landlock"}, "process": set()}


def _leave_root(work: str, uid: int) -> None:
    """Become an unprivileged user: limits on processes do not hold for root, and its files are in reach.

    Raises:
        OSError: That user could not read the interpreter, so code cannot be run at this level.
    """
    os.chown(work, uid, uid)
    isolation.drop_user(uid)
    if not os.access(os.__file__, os.R_OK):
        raise OSError("as root, this level needs an interpreter that other users can read")


def _inner(job: dict[str, Any], control: int, peer: int, uid: int, out: int, report: int, layer: int) -> None:
    """Finish the isolation, then run the role of the job; never returns to the server's code."""
    level, role = job["level"], job["role"]
    limits = job["limits"]
    os.setsid()
    layers: list[str] = []
    if level == "namespaces":
        if isolation.mount_proc():
            layers.append("proc")
        isolation.drop_user(uid)
        layers += ["uid"] if os.getuid() == uid else []
    else:
        isolation.die_with_parent()
        os.chdir(job["work"])
        if os.getuid() == 0:
            _leave_root(job["work"], uid)
    os.dup2(os.open(os.devnull, os.O_RDONLY) if role != "program" else _stdin(job, control), 0)
    os.dup2(out, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    keep = {0, 1, 2, layer}
    if role == "candidate":
        keep.add(peer)
    elif role == "tester":
        keep |= {peer, report}
    isolation.close_fds(keep)
    isolation.drop_capabilities()
    isolation.limit_resources(limits)
    layers.append("rlimits")
    work = str(Path.cwd())
    layers += isolation.enter_files_and_calls(level, work, ["/proc"] if level == "namespaces" else [])
    missing = _REQUIRED[level] - set(layers)
    if missing:
        write_frame(layer, json.dumps({"failed": sorted(missing)}).encode())
        return
    write_frame(layer, json.dumps(layers).encode())
    os.close(layer)
    os.environ.clear()
    os.environ.update(
        {"PATH": "/usr/bin:/bin", "HOME": work, "TMPDIR": work, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a thread for each processor would count as processes
    )
    sys.argv = ["solution.py"]
    import tempfile

    tempfile.tempdir = None
    if role == "tester":
        from whileai_verify import tester

        tester.main(peer, report, job)
    from whileai_verify import candidate

    if role == "program":
        candidate.run_program(job["files"], job["main"])
    candidate.serve(peer, job["files"], job["main"])


def _stdin(job: dict[str, Any], control: int) -> int:
    """Return a descriptor from which the program reads its input: an unlinked memory file."""
    data = base64.b64decode(job["stdin"])
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin")
    else:
        import tempfile

        with tempfile.TemporaryFile() as handle:
            fd = os.dup(handle.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


_LOOK_S = 0.05  # seconds between two looks at the memory of the candidate's processes


def _over(limit: int) -> bool:
    """Return whether the candidate's processes together use more than `limit` KiB; one alone has a limit of its own."""
    pids = usage.processes_below(os.getpid())
    return len(pids) > 1 and usage.memory_kib(pids, limit) > limit


def _monitor(
    job: dict[str, Any], control: int, inner: int, until: float, out: int, report: int, layer: int, layers: list[str]
) -> None:
    """Watch the inner process until it ends, its time is over, or the parent goes; kill everything; report."""
    limit = job["limits"]["output_kb"] << 10
    memory = job["limits"]["memory_mb"] << 10
    output, reason = bytearray(), ""
    answer: bytes | None = None
    told: Any = None
    poll = select.poll()
    # Hang-up of the parent, or of its writing half: it is gone, or it has what it wants.
    poll.register(control, getattr(select, "POLLRDHUP", 0))
    for fd in (out, report, layer):
        poll.register(fd, select.POLLIN)
    pidfd = os.pidfd_open(inner) if hasattr(os, "pidfd_open") else -1
    if pidfd >= 0:
        poll.register(pidfd, select.POLLIN)
    status: int | None = None
    look = time.monotonic() + _LOOK_S
    while status is None:
        left = until - time.monotonic()
        if left <= 0:
            reason = "time"
            break
        events = poll.poll(min(left, _LOOK_S if pidfd >= 0 else 0.02) * 1000)
        if time.monotonic() >= look:
            look = time.monotonic() + _LOOK_S
            reason = "memory" if _over(memory) else ""
        for fd, _ in events:
            if fd == control:
                reason = "abandoned"
            elif fd == pidfd:
                continue
            elif fd == out:
                part = os.read(out, 65_536)
                output += part
                if not part:
                    poll.unregister(out)
                if len(output) > limit:
                    reason = "output"
            elif fd == layer:
                frame = read_frame(layer)
                told = json.loads(frame) if frame else None
                poll.unregister(layer)
            elif fd == report:
                answer = read_frame(report, limit=1 << 24)
                poll.unregister(report)
        if reason:
            break
        if answer is not None:
            break
        done, code = os.waitpid(inner, os.WNOHANG)
        if done:
            status = code
    with contextlib.suppress(OSError):
        os.killpg(inner, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(inner, signal.SIGKILL)
    if status is None:
        _, status = os.waitpid(inner, 0)
    if job["level"] != "namespaces":
        _kill_descendants()
    if not reason:
        _drain(out, output, limit)
        if len(output) > limit:
            reason = "output"
    if told is None:
        frame = read_frame(layer, time.monotonic() + 1.0)
        told = json.loads(frame) if frame else None
    if answer is None and not reason:  # it may have answered and ended between two looks
        with contextlib.suppress(LateError):
            answer = read_frame(report, time.monotonic() + 1.0, limit=1 << 24)
    final = {
        "layers": layers + told if isinstance(told, list) else layers,
        "failed": told.get("failed") if isinstance(told, dict) else (None if told else ["start"]),
        "stopped": reason,
        "exit": os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status,
        "stdout": base64.b64encode(bytes(output[:limit])).decode(),
        "answer": json.loads(answer) if answer else None,
    }
    with contextlib.suppress(OSError):
        write_frame(control, json.dumps(final).encode())


def _drain(out: int, output: bytearray, limit: int) -> None:
    """Read what is left in the output pipe; the writers are dead, or are killed with the namespace."""
    os.set_blocking(out, False)
    while len(output) <= limit:
        try:
            part = os.read(out, 65_536)
        except BlockingIOError:
            return
        if not part:
            return
        output += part


def _kill_descendants() -> None:
    """Kill what the inner process left behind, where there is no process namespace to do it.

    The monitor is a subreaper, so orphans become its children.
    """
    for _ in range(50):
        children = usage.children(os.getpid())
        if not children:
            return
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
