"""How long decontamination, the scan and selection take as the data grows, on one core.

Run: ``python tests/bench/guard_speed.py PART [SIZE ...]``, PART one of decontaminate, file, scan, select. Texts have
200 words of a Zipf vocabulary (replies 60); 1 % of the training texts hold an evaluation text. CPU seconds are of this
process, wall seconds of the clock on the wall; the peak is of the process so far, inputs included, so that the memory
of one size is seen by running it alone.
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
from whileai_select import build_preference_pairs, publish_gate, select

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


def write_train(path: Path, rng: np.random.Generator, size: int, evals: list[str]) -> None:
    """Write training rows without holding them; every hundredth holds an evaluation text."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for start in range(0, size, 5_000):
            for i, text in enumerate(texts(rng, min(5_000, size - start)), start):
                held = f"{text[:300]} {evals[i % 5000]}" if i % 100 == 0 else text
                out.write(json.dumps({"schema_version": 1, "task_id": f"t{i}", "prompt": held}) + "\n")


def decontamination(rng: np.random.Generator, size: int) -> None:
    evals = texts(rng, 5_000)
    train = texts(rng, size)
    for i in range(0, size, 100):
        train[i] = f"{train[i][:300]} {evals[i % 5000]}"
    report = timed(f"decontaminate {size} x {len(evals)} texts", lambda: decontaminate(train, evals))
    assert len(report.flagged) == size // 100


def from_file(rng: np.random.Generator, size: int) -> None:
    evals = texts(rng, 5_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        timed(f"(writing {size} rows)", lambda: write_train(path, rng, size, evals))
        report = timed(f"decontaminate {size} rows from a file", lambda: decontaminate(path, evals))
        assert len(report.flagged) == size // 100


def scan(rng: np.random.Generator, size: int) -> None:
    rows = graded(rng, size)
    timed(f"hack_scan {size} rows, 399 permutations", lambda: hack_scan(rows))


def selection(rng: np.random.Generator, size: int) -> None:
    rows = graded(rng, size)
    kept = timed(f"select rl {size} rows", lambda: select(rows))
    timed(f"select sft {size} rows", lambda: select(rows, mode="sft"))
    pairs = timed(f"preference pairs {size} rows", lambda: build_preference_pairs(rows))
    timed(f"gate rl {size} rows, no scan", lambda: publish_gate(kept.rows, purpose="rl", scan=False))
    timed(f"gate preference {len(pairs.pairs)} pairs", lambda: publish_gate(pairs.pairs, purpose="preference"))


PARTS = {"decontaminate": decontamination, "file": from_file, "scan": scan, "select": selection}


def main() -> None:
    part, *given = sys.argv[1:] or ["decontaminate"]
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    for size in [int(a) for a in given] or [5_000, 50_000]:
        PARTS[part](np.random.default_rng(0), size)


if __name__ == "__main__":
    main()
