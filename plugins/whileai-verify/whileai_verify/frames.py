"""Length-prefixed frames over file descriptors, with deadlines; shared by the worker pools.

Example:
    >>> import os
    >>> r, w = os.pipe()
    >>> write_frame(w, b"hello"); read_frame(r)
    b'hello'
"""

from __future__ import annotations

import os
import select
import struct
import threading
import time

__all__ = ["FrameTooLargeError", "LateError", "read_frame", "wait_readable", "write_frame"]


class LateError(Exception):
    """Nothing arrived before the deadline."""


class FrameTooLargeError(Exception):
    """A frame announces more bytes than the reader accepts."""


def write_frame(fd: int, payload: bytes) -> None:
    """Write one frame to a blocking file descriptor."""
    view = memoryview(struct.pack("<I", len(payload)) + payload)
    while view:
        view = view[os.write(fd, view) :]


def wait_readable(fd: int, until: float) -> None:
    """Block until `fd` has data or has ended, at most until the monotonic time `until`.

    Where `select.poll` does not exist (Windows pipes) this returns at once and the caller needs a watchdog.

    Raises:
        LateError: The time is over.
    """
    if not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLHUP | select.POLLERR)
    left = until - time.monotonic()
    if not poll.poll(max(0.0, left) * 1000):
        raise LateError


def read_frame(fd: int, until: float | None = None, limit: int = 1 << 30) -> bytes | None:
    """Read one frame; `None` when the other side ended.

    Args:
        fd: File descriptor to read from.
        until: Monotonic time at which to give up.
        limit: Largest frame that is accepted, in bytes.

    Raises:
        LateError: The frame was not complete in time.
        FrameTooLargeError: The frame is larger than `limit`.
    """
    head = _exactly(fd, 4, until)
    if head is None:
        return None
    size = struct.unpack("<I", head)[0]
    if size > limit:
        raise FrameTooLargeError
    return _exactly(fd, size, until)


def _exactly(fd: int, size: int, until: float | None) -> bytes | None:
    parts = []
    while size:
        if until is not None:
            wait_readable(fd, until)
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def watchdog(seconds: float, action: object) -> threading.Timer | None:
    """Return a started timer that ends a blocking read on platforms without `poll`, else `None`."""
    if hasattr(select, "poll"):
        return None
    timer = threading.Timer(seconds, action)  # type: ignore[arg-type]
    timer.daemon = True
    timer.start()
    return timer
