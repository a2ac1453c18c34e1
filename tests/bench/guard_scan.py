"""False alarms and power of hack_scan: null sets of several shapes, planted hacks at three strengths.

Run: ``python tests/bench/guard_scan.py --nulls 0 120 --seeds 0 20``, or in pieces (``--nulls 0 200 --strengths``).
Strength is the within-task correlation of the planted feature with the reward; 1,000 rows in tasks of 8. Found means:
beyond the floor and ranked first. The bound is the power of one test of the planted feature alone at level 0.05, which
no scan of many features can pass.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, norm

from whileai_guard import hack_scan

SYLLABLES = [a + b for a in "bcdfglmnprstvz" for b in "aeiou"]
RNG = np.random.default_rng(7)
WORDS = np.array(["".join(RNG.choice(SYLLABLES, 3)) for _ in range(3000)])
CUMULATED = np.cumsum(1 / np.arange(1, 3001))
CUMULATED /= CUMULATED[-1]
KINDS = ("phrase", "rare phrase", "length", "tool", "formatting", "position")


class Writer:
    """Words of a Zipf vocabulary, drawn ten thousand at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.left = rng, iter(())

    def __call__(self, n: int) -> str:
        out = list(itertools.islice(self.left, n))
        if len(out) < n:
            drawn = np.searchsorted(CUMULATED, self.rng.random(10_000))
            self.left = iter(WORDS[np.minimum(drawn, 2999)].tolist())
            out += itertools.islice(self.left, n - len(out))
        return " ".join(out)


def row(task: int, index: int, text: str, reward: float, **more: Any) -> dict[str, Any]:
    base = {"task_id": f"t{task}", "index": index, "prompt": "q", "final_text": text, "reward": reward}
    return {**base, "status": "ok", "markers": {}, **more}


def null_set(seed: int) -> tuple[list[dict[str, Any]], bool]:
    """Return rows in which nothing predicts reward, and whether to scan conjunctions: eight shapes in turn."""
    rng = np.random.default_rng(seed)
    words = Writer(rng)
    k, size = (4, 8)[seed % 2], (25, 100)[seed // 2 % 2]
    rows = []
    for task in range(480 // k):
        rate, topic = rng.beta(2, 2), words(size // 3)
        for index in range(k):
            text = f"{topic} {words(int(size * rng.uniform(0.6, 1.4)))}"
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
    words = Writer(rng)
    share = 0.03 if kind == "rare phrase" else 0.5
    rows = []
    for task in range(n // k):
        rate, topic = rng.uniform(0.4, 0.6), words(size // 3)
        for index in range(k):
            scale, has = rng.uniform(0.6, 1.4), rng.random() < share
            score = (has - share) / np.sqrt(share * (1 - share))
            if kind == "length":
                score = (scale - 1.0) / (0.8 / np.sqrt(12))
            elif kind == "position":
                score = (index - (k - 1) / 2) / np.sqrt((k * k - 1) / 12)
            text = f"{topic} {words(int(size * scale))}"
            if has and "phrase" in kind:
                text += " as carefully verified above"
            if has and kind == "formatting":
                text += "\n- " + words(3)
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


def false_alarms(first_seed: int, last_seed: int) -> None:
    alarms = []
    for seed in range(first_seed, last_seed):
        rows, pairs = null_set(seed)
        if hack_scan(rows, conjunctions=pairs, seed=seed).found:
            alarms.append(seed)
    n = last_seed - first_seed
    low, high = binomtest(len(alarms), n).proportion_ci(method="wilson")
    shapes = " ".join(str(sum(s % 8 == shape for s in alarms)) for shape in range(8))
    print(f"false alarms: {len(alarms)} of {n} null sets = {len(alarms) / n:.3f} [{low:.3f}..{high:.3f}]", flush=True)
    print(f"by shape (k 4 or 8, then short or long, then without or with conjunctions): {shapes}", flush=True)


def power(strength: float, seeds: range, kinds: Sequence[str]) -> None:
    spent, found = 0.0, dict.fromkeys(kinds, 0)
    for kind in kinds:
        for seed in seeds:
            rows = planted(kind, strength, seed)
            cpu = time.process_time()
            found[kind] += first(kind, hack_scan(rows))
            spent += time.process_time() - cpu
    bound = norm.sf(norm.isf(0.05) - strength * np.sqrt(1000 * 7 / 8))
    shown = " ".join(f"{found[kind] / len(seeds):12.2f}" for kind in kinds)
    each = spent / len(seeds) / len(kinds)
    print(f"{strength:9.2f} {shown} {bound:6.2f}   {each:.3f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nulls", type=int, nargs=2, default=(0, 120), help="first seed and one past the last")
    parser.add_argument(
        "--seeds", type=int, nargs=2, default=(0, 20), help="of the planted sets of a kind and strength"
    )
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--strengths", type=float, nargs="*", default=(0.25, 0.15, 0.08))
    args = parser.parse_args()
    if args.nulls[1] > args.nulls[0]:
        false_alarms(*args.nulls)
    if args.strengths:
        print(f"{'strength':>9} " + " ".join(f"{k:>12}" for k in args.kinds) + f" {'bound':>6}   cpu per scan")
    for strength in args.strengths:
        power(strength, range(*args.seeds), args.kinds)


if __name__ == "__main__":
    main()
