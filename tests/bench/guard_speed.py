"""How long decontamination, the scan and selection take as the data grows, on one core.

Run: ``python tests/bench/guard_speed.py [TRAIN_TEXTS ...]``. Texts have 200 words of a Zipf vocabulary; 1 % of the
training texts hold an evaluation text. CPU seconds are of this process, wall seconds of the clock on the wall.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from whileai_guard import decontaminate, hack_scan
from whileai_select import select

WORDS = np.array([f"w{i}x" for i in range(30_000)])
CUMULATED = np.cumsum(1 / np.arange(1, 30_001))
CUMULATED /= CUMULATED[-1]


def texts(rng: np.random.Generator, n: int, words: int = 200) -> list[str]:
    picked = np.minimum(np.searchsorted(CUMULATED, rng.random((n, words))), 29_999)
    return [" ".join(WORDS[line]) for line in picked]


def timed(label: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    out = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = f"cpu {time.process_time() - cpu:7.2f} s  wall {time.perf_counter() - wall:7.2f} s"
    print(f"{label:44} {spent}  peak {peak:6.0f} MiB", flush=True)
    return out


def graded(rng: np.random.Generator, n: int, k: int = 8) -> list[dict[str, Any]]:
    said = texts(rng, n, 60)
    return [
        {"task_id": f"t{i // k}", "rollout_id": f"r{i}", "index": i % k, "prompt": f"ask {i // k}",
         "final_text": said[i], "reward": float(rng.random() < 0.5), "status": "ok", "markers": {},
         "finish_reason": "stop"}
        for i in range(n)
    ]  # fmt: skip


def decontamination(rng: np.random.Generator, size: int, evals: list[str]) -> None:
    train = texts(rng, size)
    for i in range(size // 100):
        train[i * 100] = f"{train[i * 100][:300]} {evals[i % 5000]}"
    report = timed(f"decontaminate {size} x {len(evals)} texts", lambda: decontaminate(train, evals))
    assert len(report.flagged) == size // 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as out:
            for i, text in enumerate(train):
                out.write(json.dumps({"schema_version": 1, "task_id": f"t{i}", "prompt": text}) + "\n")
        report = timed(f"decontaminate {size} rows from a file", lambda: decontaminate(path, evals))
        assert len(report.flagged) == size // 100


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]] or [12_500, 25_000, 50_000]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    rng = np.random.default_rng(0)
    evals = texts(rng, 5_000)
    for size in sizes:
        decontamination(rng, size, evals)
    for size in sizes:
        rows = graded(rng, size)
        timed(f"hack_scan {size} rows, 399 permutations", lambda rows=rows: hack_scan(rows))
        timed(f"select rl {size} rows", lambda rows=rows: select(rows))


if __name__ == "__main__":
    main()
