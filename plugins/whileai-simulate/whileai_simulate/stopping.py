"""What ends a run early, in a module of its own, so that everything may raise it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["HALT", "Halt", "Stop"]


class Stop(Exception):
    """Raised by a delivery, by the jobs, or by a ledger, to end the run early with what has landed.

    Its text is the reason. A rollout in which it is raised has not happened: it gives no row.
    """


class Halt:
    """Ends a run from another thread: no further rollout begins, and those in flight are given up.

    Example:
        >>> halt, heard = Halt(), []
        >>> with halt.told(heard.append):
        ...     halt("cancelled")
        >>> halt.reason, heard
        ('cancelled', ['cancelled'])
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str], None]] = []

    def __call__(self, reason: str) -> None:
        """End the run for a reason; the first one counts."""
        with self._lock:
            self.reason = self.reason or reason
            listeners = list(self._listeners)
        for listener in listeners:
            listener(self.reason)

    @contextmanager
    def told(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Have `listener` called with the reason while the block runs, at once if there is one already."""
        with self._lock:
            self._listeners.append(listener)
            known = self.reason
        if known is not None:
            listener(known)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


HALT: ContextVar[Halt | None] = ContextVar("whileai_halt", default=None)
"""The halt of the run that is made in this context."""
