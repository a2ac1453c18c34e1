"""Flat rows to JSONL and back: rows/s, MB/s and peak memory, beside plain json and orjson.

Run: ``python tests/bench/rowio_speed.py [ROWS]`` (default 1,000,000). Every measurement is a process of its own, so
that its peak memory is its own; the figures depend on the machine, the growth of memory and time with n must not.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def flat_rows(n: int) -> Iterator[Row]:
    """Rows of the usual size (about 470 bytes), one at a time."""
    for i in range(n):
        yield {
            "schema_version": 1,
            "task_id": f"task_{i // 4:020x}",
            "rollout_id": f"rollout_{i:020x}",
            "index": i % 4,
            "prompt": f"Order {i} has not arrived. Where is it, and when can I expect it at my door?",
            "final_text": f"Order {i} left the warehouse this morning – it should be with you in two days. Sorry!",
            "reward": (i % 5) / 4,
            "status": "ok",
            "markers": {"concise": 1.0, "no_hedge": 0.5},
            "threshold": 1.0,
            "scorer": {"id": "verify/exact_match", "version": "1.0.0", "kind": "rule"},
            "finish_reason": "stop",
            "outcome": "completed",
        }


def ours() -> tuple[Callable[[Path, Iterable[Row]], Any], Callable[[Path], Iterable[Row]]]:
    from whileai_kernel.rowio import read_rows, write_rows

    return write_rows, read_rows


def plain_json() -> tuple[Callable[[Path, Iterable[Row]], Any], Callable[[Path], Iterable[Row]]]:
    def write(path: Path, rows: Iterable[Row]) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as out:
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def read(path: Path) -> Iterator[Row]:
        with path.open(encoding="utf-8", newline="\n") as lines:
            yield from map(json.loads, lines)

    return write, read


def with_orjson() -> tuple[Callable[[Path, Iterable[Row]], Any], Callable[[Path], Iterable[Row]]]:
    import orjson

    def write(path: Path, rows: Iterable[Row]) -> None:
        with path.open("wb") as out:
            for row in rows:
                out.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    def read(path: Path) -> Iterator[Row]:
        with path.open("rb") as lines:
            yield from map(orjson.loads, lines)

    return write, read


LIBRARIES = {"whileai": ours, "json": plain_json, "orjson": with_orjson}


def peak_mb() -> float:
    """Peak resident memory of this process in MB, or NaN where the system does not say."""
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def measure(library: str, direction: str, n: int, path: Path) -> dict[str, float]:
    """Write or read `n` rows and say what it took."""
    write, read = LIBRARIES[library]()
    begin, cpu = time.perf_counter(), time.process_time()
    if direction == "write":
        write(path, flat_rows(n))
    else:
        assert sum(1 for _ in read(path)) == n
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "peak": peak_mb(), "mb": path.stat().st_size / 1e6}


def generating(n: int) -> float:
    """CPU seconds that making the rows takes, which every writer pays."""
    cpu = time.process_time()
    for _ in flat_rows(n):
        pass
    return time.process_time() - cpu


def in_a_process(library: str, direction: str, n: int, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", library, direction, str(n), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main(n: int) -> None:
    libraries = [name for name in LIBRARIES if name != "orjson" or importlib.util.find_spec("orjson")]
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    print(f"{n:,} rows; making them costs {generating(min(n, 100_000)) / min(n, 100_000) * 1e6:.1f} us of CPU per row")
    print(f"{'':8} {'':5} {'rows':>9} {'rows/s':>9} {'MB/s':>6} {'CPU us/row':>10} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for library in libraries:
            path = Path(folder) / f"{library}.jsonl"
            for size in sorted({n // 100, n // 10, n}) if library == "whileai" else [n]:
                for direction in ("write", "read"):
                    got = in_a_process(library, direction, size, path)
                    speed = f"{size / got['wall']:9,.0f} {got['mb'] / got['wall']:6.0f} {got['cpu'] / size * 1e6:10.1f}"
                    print(f"{library:8} {direction:5} {size:9,} {speed} {got['peak']:8.0f}", flush=True)
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        library, direction, size, where = sys.argv[2:]
        print(json.dumps(measure(library, direction, int(size), Path(where))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
