"""How fast rows are exported and read back: 1,000,000 short rows to JSONL and to Parquet, rows/s and peak memory.

    python tests/bench/export_speed.py [--rows 1000000] [--only jsonl|parquet]

Each step runs in a process of its own, so that its peak memory is its own. Parquet needs pyarrow.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def make(count: int) -> list[dict[str, object]]:
    return [
        {
            "schema_version": 1,
            "task_id": f"task_{n // 4}",
            "rollout_id": f"rollout_{n}",
            "index": n % 4,
            "prompt": "What is 17 * 3?",
            "final_text": "17 * 3 = 51.",
            "reward": float(n % 2),
            "status": "ok",
            "markers": {},
            "messages": [
                {"role": "user", "content": "What is 17 * 3?"},
                {"role": "assistant", "content": "17 * 3 = 51."},
            ],
            "privileged": {"reference": "51"},
        }
        for n in range(count)
    ]


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(step: str, count: int, path: Path) -> dict[str, float]:
    """Run one step and return its figures."""
    from whileai_export import export
    from whileai_export.exporters import Chat

    if step == "write":
        rows = make(count)
        before = peak_mb()
        start, cpu = time.perf_counter(), time.process_time()
        written = export(rows, path).written
    else:
        before = peak_mb()
        start, cpu = time.perf_counter(), time.process_time()
        written = sum(1 for _ in Chat().read(path))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    assert written == count, written
    return {"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb(), "added_mb": peak_mb() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("jsonl", "parquet"))
    parser.add_argument("--one", nargs=2, metavar=("STEP", "PATH"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one[0], args.rows, Path(args.one[1]))))
        return
    kinds = [args.only] if args.only else ["jsonl", "parquet"]
    if "parquet" in kinds and importlib.util.find_spec("pyarrow") is None:
        print("parquet: skipped, pyarrow is not installed")
        kinds.remove("parquet")
    env = {**os.environ, "WHILEAI_PLUGINS": "export"}  # the checks of other plugins have benches of their own
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            path = Path(folder) / f"rows.{kind}"
            for step in ("write", "read"):
                command = [sys.executable, __file__, "--rows", str(args.rows), "--one", step, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
                figures = json.loads(done.stdout)
                size = path.stat().st_size / 1e6
                print(
                    f"{kind:8} {step:5} {args.rows:>9,} rows  {figures['seconds']:7.1f} s, CPU {figures['cpu']:.1f} s  "
                    f"{args.rows / figures['cpu']:>9,.0f} rows and {size / figures['cpu']:.1f} MB per CPU second  "
                    f"peak {figures['peak_mb']:,.0f} MB (of it {figures['added_mb']:,.0f} MB in this step)"
                )


if __name__ == "__main__":
    main()
