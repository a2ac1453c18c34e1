"""How much the grading pipeline costs per row, beside a bare loop and beside a hop between threads per row.

Run: ``python tests/bench/judge_speed.py [ROWS]``. Figures depend on the machine; the ratio to the hop matters.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from whileai_judge import grade
from whileai_judge.engine import run_calls

Row = dict[str, Any]


def flat_rows(n: int) -> list[Row]:
    return [
        {
            "schema_version": 1,
            "task_id": f"t{i // 4}",
            "rollout_id": f"r{i}",
            "index": i % 4,
            "prompt": "Where is my order?",
            "final_text": "It has shipped.",
            "reward": None,
            "status": "missing",
            "markers": {},
        }
        for i in range(n)
    ]


def plain(row: Row) -> bool:
    return row["index"] == 0


def as_dict(row: Row) -> Row:
    return {"reward": float(row["index"] == 0), "reason": "by index"}


async def coroutine(row: Row) -> bool:
    return row["index"] == 0


def bare_loop(rows: list[Row]) -> list[Row]:
    return [{**row, "reward": float(plain(row)), "status": "ok"} for row in rows]


def hop_per_row(rows: list[Row]) -> list[bool]:
    """What an event loop does that sends every plain call to a pool of threads."""

    async def work() -> list[bool]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(8) as pool:
            return [await loop.run_in_executor(pool, plain, row) for row in rows]

    return asyncio.run(work())


def timed(work: Callable[[list[Row]], Any], rows: list[Row], repeats: int = 3) -> float:
    """Median seconds of ``repeats`` runs."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work(rows)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rows = flat_rows(n)
    cases: list[tuple[str, Callable[[list[Row]], Any]]] = [
        ("bare loop, shallow copy", bare_loop),
        ("engine alone, plain function", lambda rows: list(run_calls(plain, rows))),
        ("grade, plain function, bool", lambda rows: grade(rows, plain)),
        ("grade, plain function, dict", lambda rows: grade(rows, as_dict)),
        ("grade, coroutine, bool", lambda rows: grade(rows, coroutine)),
        ("one hop to a thread per row", hop_per_row),
    ]
    print(f"{n} rows, median of 3\n{'case':<32}{'seconds':>9}{'us/row':>9}{'rows/s':>11}")
    for name, work in cases:
        seconds = timed(work, rows)
        print(f"{name:<32}{seconds:>9.2f}{seconds / n * 1e6:>9.1f}{n / seconds:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
