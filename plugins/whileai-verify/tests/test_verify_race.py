"""A report that is written just before its process ends is read, however the two are seen."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
import types

from whileai_verify import jail
from whileai_verify.frames import read_frame, write_frame


def test_an_answer_that_comes_with_the_end_is_not_lost(monkeypatch) -> None:
    """The monitor wakes for another event, and finds the process ended before it has looked at the report."""
    control, parent = socket.socketpair()
    out_read, out_write = os.pipe()
    report_read, report_write = os.pipe()
    layer_read, layer_write = os.pipe()
    inner = os.fork()
    if inner == 0:
        os.setsid()
        write_frame(layer_write, json.dumps(["here"]).encode())
        write_frame(report_write, json.dumps({"results": {"t": ""}}).encode())
        os._exit(0)
    for fd in (out_write, report_write, layer_write):
        os.close(fd)
    os.waitid(os.P_PID, inner, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has looked yet

    class OneEvent:
        """A poll that shows the first event only, as when the others come a moment later."""

        def __init__(self) -> None:
            self.fds: list[int] = []

        def register(self, fd: int, mask: int = 0) -> None:
            self.fds.append(fd)

        def unregister(self, fd: int) -> None:
            self.fds.remove(fd)

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            return [(layer_read, 1)] if layer_read in self.fds else []

    monkeypatch.setattr(jail, "select", types.SimpleNamespace(poll=OneEvent, POLLIN=1))
    job = {"level": "namespaces", "role": "tester", "limits": {"output_kb": 64, "memory_mb": 64}}
    jail._monitor(job, control.fileno(), inner, time.monotonic() + 10, out_read, report_read, layer_read, [])
    final = json.loads(read_frame(parent.fileno()) or b"{}")
    assert final["answer"] == {"results": {"t": ""}}
    assert (final["stopped"], final["exit"], base64.b64decode(final["stdout"])) == ("", 0, b"")
