"""How fast whileai-measure answers, and how it grows: pass_at, compare, reading from JSON lines.

    python tests/bench/measure_speed.py            (sizes up to 1,000,000 rows; about two minutes)
    python tests/bench/measure_speed.py --small    (a tenth of it)

Beside it stands the plain Python loop that a reader would write for pass@1 alone, without any interval. CPU seconds are
of one thread (the BLAS threads are set to one); peak memory is that of the process so far.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whileai_kernel.rowio import read_rows, write_rows
from whileai_measure import compare, extract, pass_at
from whileai_measure.columns import FIELDS
from whileai_measure.lines import columns_of

Row = dict[str, Any]


def rows(tasks: int, k: int, markers: int = 0, seed: int = 0) -> Iterator[Row]:
    """Yield rows as an engine would write them, without messages."""
    rng = np.random.default_rng([seed, tasks, k])
    rate = rng.beta(2, 2, tasks)
    passes = (rng.random((tasks, k)) < rate[:, None]).astype(float).tolist()
    for i, group in enumerate(passes):
        values = rng.random((k, markers)).tolist()
        for j, reward in enumerate(group):
            yield {
                "schema_version": 1,
                "task_id": f"task_{i}",
                "rollout_id": f"rollout_{seed}_{i}_{j}",
                "index": j,
                "prompt": f"prompt {i}",
                "final_text": "done",
                "reward": reward,
                "status": "ok",
                "markers": {f"m{m}": v for m, v in enumerate(values[j])},
                "threshold": 1.0,
                "scorer": {"id": "verify/exact", "version": "1", "kind": "rule"},
                "finish_reason": "stop",
                "outcome": "completed",
            }


def plain(data: list[Row]) -> float:
    """Return pass@1 as a loop would."""
    groups: dict[str, list[float]] = defaultdict(list)
    for row in data:
        groups[row["task_id"]].append(float(row["reward"] >= row["threshold"]))
    return sum(sum(g) / len(g) for g in groups.values()) / len(groups)


def read_alone(path: Path) -> int:
    """Read the columns of pass_at from a file and count its rows."""
    return sum(len(block["task_id"]) for block in columns_of(path, FIELDS, print))


def best(call: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Return the smallest wall and CPU seconds of a few runs."""
    out = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        out.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(w for w, _ in out), min(c for _, c in out)


def peak() -> float:
    """Return the peak memory of the process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def line(what: str, size: str, wall: float, cpu: float, note: str = "") -> None:
    """Print one line of the table."""
    print(f"| {what} | {size} | {wall:.3f} | {cpu:.3f} | {peak():.0f} | {note} |", flush=True)


def in_memory(scale: int) -> None:
    """Measure pass_at on rows in memory."""
    for tasks in (1_000, 10_000, 100_000):
        size = f"{tasks // scale} x 8"
        data = list(rows(tasks // scale, 8))
        loop, loop_cpu = best(lambda data=data: plain(data))
        line("plain loop, pass@1 only", size, loop, loop_cpu)
        only, only_cpu = best(lambda data=data: extract(data))
        line("extract", size, only, only_cpu)
        wall, cpu = best(lambda data=data: pass_at(data))
        line("pass_at, default intervals", size, wall, cpu, f"{min(only_cpu / cpu, 1):.0%} of it extraction")


def two_sides(scale: int) -> None:
    """Measure compare with ten markers."""
    for tasks in (1_000, 10_000, 30_000):
        before, after = list(rows(tasks // scale, 4, 10, 1)), list(rows(tasks // scale, 4, 10, 2))
        wall, cpu = best(lambda a=before, b=after: compare(a, b))
        line("compare, 10 markers", f"{tasks // scale} x 4", wall, cpu)


def files(scale: int) -> None:
    """Measure files of JSON lines: reading alone, and with the statistics, with either parser."""
    with tempfile.TemporaryDirectory() as folder:
        for tasks in (2_500, 25_000, 250_000):
            path, count = Path(folder) / "rows.jsonl", tasks // scale
            write_rows(path, rows(count, 4))
            size = f"{count * 4} rows of JSON lines"
            wall, cpu = best(lambda path=path: sum(1 for _ in read_rows(path)), 1)
            line("the kernel's read_rows alone", size, wall, cpu)
            for parser in ("orjson", "json"):
                if parser == "json":
                    sys.modules["orjson"] = None  # type: ignore[assignment]  # as where it is not installed
                elif importlib.util.find_spec(parser) is None:
                    continue
                wall, cpu = best(lambda path=path: read_alone(path), 1)
                line(f"reading columns alone, {parser}", size, wall, cpu)
                total, total_cpu = best(lambda path=path: pass_at(path), 1)
                line(f"pass_at(path), {parser}", size, total, total_cpu, f"{min(cpu / total_cpu, 1):.0%} of it reading")
                sys.modules.pop("orjson", None)


PARTS = {"memory": in_memory, "compare": two_sides, "files": files}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--part", choices=PARTS, help="one part, in this process")
    args = parser.parse_args()
    if args.part:
        PARTS[args.part](10 if args.small else 1)
        return
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, numpy {np.__version__}\n")
    print("| call | size | wall s | CPU s | peak MB | note |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # read when numpy loads
    for part in PARTS:  # each in a process of its own, so that its peak memory is its own
        command = [sys.executable, __file__, "--part", part, *(["--small"] if args.small else [])]
        subprocess.run(command, env={**os.environ, **one}, check=True)


if __name__ == "__main__":
    main()
