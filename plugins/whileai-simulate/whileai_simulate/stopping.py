"""What ends a run early, in a module of its own, so that everything may raise it."""

from __future__ import annotations

__all__ = ["Stop"]


class Stop(Exception):
    """Raised by a delivery, by the jobs, or by a ledger, to end the run early with what has landed.

    Its text is the reason. A rollout in which it is raised has not happened: it gives no row.
    """
