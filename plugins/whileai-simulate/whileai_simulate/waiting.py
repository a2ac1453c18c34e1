"""Waiting for an awaitable from a thread that may or may not have a running loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

__all__ = ["wait"]


def wait(value: Awaitable[Any]) -> Any:
    """Return the result of an awaitable, run on a loop of its own in a thread of its own."""
    box: list[Any] = []

    async def run() -> Any:
        return await value

    def work() -> None:
        try:
            box.append((True, asyncio.run(run())))
        except Exception as err:  # noqa: BLE001 - raised again in the caller's thread
            box.append((False, err))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    good, result = box[0]
    if not good:
        raise result
    return result
