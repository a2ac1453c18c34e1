"""How often the intervals of `judge_trust` and `corrected_pass_rate` hold the truth, on simulated judges.

Tasks differ in difficulty and the judge differs between tasks (both Beta), so rows of one task are alike. Run:
``python tests/bench/judge_trust_coverage.py [REPEATS]``. Nominal coverage is 0.95.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from whileai_judge.confusion import ac1, agreement, false_fail, false_pass, kappa
from whileai_judge.trust import judge_trust

FIGURES = {"agreement": agreement, "kappa": kappa, "ac1": ac1, "false_pass": false_pass, "false_fail": false_fail}


def simulate(
    rng: random.Random, tasks: int, rollouts: int, sens: float, spec: float, rate: float
) -> list[dict[str, Any]]:
    """Rows with a gold label and a judge's verdict; intraclass correlation 0.3 in gold, 0.1 in the judge's errors."""
    rows = []
    for task in range(tasks):
        p = rng.betavariate(rate * 7 / 3, (1 - rate) * 7 / 3)
        hit = rng.betavariate(sens * 9, (1 - sens) * 9)
        reject = rng.betavariate(spec * 9, (1 - spec) * 9)
        for rollout in range(rollouts):
            gold = rng.random() < p
            judged = rng.random() < (hit if gold else 1 - reject)
            rows.append({"task_id": f"t{task}", "index": rollout, "reward": float(judged), "gold": float(gold)})
    return rows


def truth(sens: float, spec: float, rate: float) -> dict[str, float]:
    cells = (rate * sens, (1 - rate) * (1 - spec), rate * (1 - sens), (1 - rate) * spec)
    return {name: figure(cells) or 0.0 for name, figure in FIGURES.items()}


def coverage(
    repeats: int, tasks: int, rollouts: int, sens: float, spec: float, rate: float, seed: int = 0
) -> dict[str, float]:
    rng = random.Random(seed)
    right = truth(sens, spec, rate)
    held = dict.fromkeys(FIGURES, 0)
    given = dict.fromkeys(FIGURES, 0)
    for _ in range(repeats):
        report = judge_trust(simulate(rng, tasks, rollouts, sens, spec, rate), gold=lambda row: row["gold"])
        for name in FIGURES:
            interval = getattr(report, name)
            if interval is not None:
                given[name] += 1
                held[name] += interval.low <= right[name] <= interval.high
    return {name: held[name] / max(1, given[name]) for name in FIGURES}


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{repeats} repeats\n{'tasks x rollouts, sens, spec, rate':<38}" + "".join(f"{name:>12}" for name in FIGURES))
    for tasks, rollouts, sens, spec, rate in (
        (10, 4, 0.9, 0.8, 0.5),
        (20, 4, 0.9, 0.8, 0.5),
        (40, 4, 0.9, 0.8, 0.5),
        (40, 4, 0.97, 0.95, 0.7),
        (100, 4, 0.9, 0.8, 0.5),
        (100, 1, 0.85, 0.85, 0.3),
        (30, 10, 0.6, 0.55, 0.5),
    ):
        started = time.perf_counter()
        found = coverage(repeats, tasks, rollouts, sens, spec, rate)
        name = f"{tasks} x {rollouts}, {sens}, {spec}, {rate}"
        seconds = time.perf_counter() - started
        print(f"{name:<38}" + "".join(f"{found[f]:>12.3f}" for f in FIGURES) + f"  ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
