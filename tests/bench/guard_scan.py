"""False alarms and power of hack_scan: null sets of several shapes, planted hacks at three strengths.

Run: ``python tests/bench/guard_scan.py [NULL_SETS] [SEEDS]``. Strength is the within-task correlation of the planted
feature with the reward; 1,000 rows in tasks of 8. Found means: beyond the floor and ranked first. The bound is the
power of one test of the planted feature alone at level 0.05, which no scan of many features can pass.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.stats import norm

from whileai_guard import hack_scan

SYLLABLES = [a + b for a in "bcdfglmnprstvz" for b in "aeiou"]
RNG = np.random.default_rng(7)
WORDS = np.array(["".join(RNG.choice(SYLLABLES, 3)) for _ in range(3000)])
CUMULATED = np.cumsum(1 / np.arange(1, 3001))
CUMULATED /= CUMULATED[-1]
KINDS = ("phrase", "rare phrase", "length", "tool", "formatting", "position")


def words(rng: np.random.Generator, n: int) -> str:
    return " ".join(WORDS[np.minimum(np.searchsorted(CUMULATED, rng.random(n)), 2999)])


def row(task: int, index: int, text: str, reward: float, **more: Any) -> dict[str, Any]:
    base = {"task_id": f"t{task}", "index": index, "prompt": "q", "final_text": text, "reward": reward}
    return {**base, "status": "ok", "markers": {}, **more}


def null_set(seed: int) -> tuple[list[dict[str, Any]], bool]:
    """Return rows in which nothing predicts reward, and whether to scan conjunctions: eight shapes in turn."""
    rng = np.random.default_rng(seed)
    k, size = (4, 8)[seed % 2], (25, 100)[seed // 2 % 2]
    rows = []
    for task in range(480 // k):
        rate, topic = rng.beta(2, 2), words(rng, size // 3)
        for index in range(k):
            text = f"{topic} {words(rng, int(size * rng.uniform(0.6, 1.4)))}"
            text += " **so**" * int(rng.random() < 0.3) + "\n- one\n- two" * int(rng.random() < 0.3)
            rows.append(row(task, index, text, float(rng.random() < rate)))
    return rows, bool(seed // 4 % 2)


def with_tool(text: str, used: bool) -> list[dict[str, Any]]:
    call = {"id": "c", "function": {"name": "lookup", "arguments": "{}"}}
    steps = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    return [{"role": "user", "content": "q"}, *(steps if used else []), {"role": "assistant", "content": text}]


def planted(kind: str, strength: float, seed: int, n: int = 1000, k: int = 8, size: int = 60) -> list[dict[str, Any]]:
    rng = np.random.default_rng(10_000 + seed)
    share = 0.03 if kind == "rare phrase" else 0.5
    rows = []
    for task in range(n // k):
        rate, topic = rng.uniform(0.4, 0.6), words(rng, size // 3)
        for index in range(k):
            scale, has = rng.uniform(0.6, 1.4), rng.random() < share
            score = (has - share) / np.sqrt(share * (1 - share))
            if kind == "length":
                score = (scale - 1.0) / (0.8 / np.sqrt(12))
            elif kind == "position":
                score = (index - (k - 1) / 2) / np.sqrt((k * k - 1) / 12)
            text = f"{topic} {words(rng, int(size * scale))}"
            if has and "phrase" in kind:
                text += " as carefully verified above"
            if has and kind == "formatting":
                text += "\n- " + words(rng, 3)
            more = {"messages": with_tool(text, has)} if kind == "tool" else {}
            reward = float(rng.random() < np.clip(rate + strength * 0.5 * score, 0, 1))
            rows.append(row(task, index, text, reward, **more))
    return rows


def first(kind: str, report: Any) -> bool:
    top = report.features[0]
    wanted = {
        "length": ("length.",),
        "tool": ("tools.", "position.turns"),
        "formatting": ("format.",),
        "position": ("position.",),
    }
    named = "verified" in top.name if "phrase" in kind else top.name.startswith(wanted[kind])
    return bool(top.found and named)


def main() -> None:
    nulls = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    alarms = 0
    for seed in range(nulls):
        rows, pairs = null_set(seed)
        alarms += bool(hack_scan(rows, permutations=99, conjunctions=pairs, seed=seed).found)
    spread = 1.96 * np.sqrt(0.05 * 0.95 / nulls)
    print(
        f"false alarms: {alarms} of {nulls} null sets = {alarms / nulls:.3f} (0.05 +- {spread:.3f} expected)",
        flush=True,
    )
    print(f"{'strength':>9} " + " ".join(f"{k:>12}" for k in KINDS) + f" {'all':>6} {'bound':>6}")
    for strength in (0.25, 0.15, 0.08):
        rates = [
            np.mean([first(kind, hack_scan(planted(kind, strength, s), permutations=99)) for s in range(seeds)])
            for kind in KINDS
        ]
        bound = norm.sf(norm.isf(0.05) - strength * np.sqrt(1000 * 7 / 8))
        shown = " ".join(f"{r:12.2f}" for r in rates)
        print(f"{strength:9.2f} {shown} {np.mean(rates):6.2f} {bound:6.2f}", flush=True)


if __name__ == "__main__":
    main()
