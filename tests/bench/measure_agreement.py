"""Do the intervals of kappa, AC1 and alpha hold at few items? Exact coverage, beside the delta method.

    python tests/bench/measure_agreement.py                (10, 20, 30 and 50 items; about two minutes)
    python tests/bench/measure_agreement.py --items 20     (one of them)

Two raters see a truth of some prevalence, each with a sensitivity and a specificity. For a number of items every
two-by-two table is enumerated with its probability, so that the coverage has no simulation error but that of the
posterior draws. Where kappa or alpha does not exist (one label throughout) there is no interval: coverage is among the
tables that have one. A second part draws three raters with missing ratings.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from scipy.special import gammaln

from whileai_measure import agreement, krippendorff_alpha

LEAST = 0.93
PREVALENCE = (0.5, 0.7, 0.9, 0.95)
RATERS = {
    "both .95": (0.95, 0.95, 0.95, 0.95),
    ".9 and .8": (0.9, 0.9, 0.8, 0.8),
    "lenient": (0.98, 0.7, 0.95, 0.9),
    "both .7": (0.7, 0.7, 0.7, 0.7),
    "gold and .9": (1.0, 1.0, 0.9, 0.9),
    "both .99": (0.99, 0.99, 0.99, 0.99),
}


def shares(prevalence: float, raters: tuple[float, ...]) -> Any:
    """Return the chances of the four cells of the table."""
    p = np.zeros(4)
    for weight, one, two in ((prevalence, raters[0], raters[2]), (1 - prevalence, 1 - raters[1], 1 - raters[3])):
        p += weight * np.array([one * two, one * (1 - two), (1 - one) * two, (1 - one) * (1 - two)])
    return p


def truths(p: Any) -> dict[str, float]:
    """Return the three statistics of a table of chances, in closed form."""
    seen, first, second = p[0] + p[3], p[0] + p[1], p[0] + p[2]
    share = (first + second) / 2
    chance, same = first * second + (1 - first) * (1 - second), share**2 + (1 - share) ** 2
    return {
        "kappa": (seen - chance) / (1 - chance),
        "AC1": (seen - (1 - same)) / same,
        "alpha": (seen - same) / (1 - same),
    }


def bounds(table: Any, draws: int) -> dict[str, Any]:
    """Return the interval of each statistic of a table of counts."""
    a, b, c, d = table
    one, two = [1] * (a + b) + [0] * (c + d), [1] * a + [0] * b + [1] * c + [0] * d
    ours, delta = agreement(one, two, draws=draws), agreement(one, two, interval="delta")
    return {
        "kappa": ours.kappa,
        "AC1": ours.ac1,
        "alpha": krippendorff_alpha([one, two], draws=draws),
        "kappa, delta": delta.kappa,
        "AC1, delta": delta.ac1,
    }


def exact(items: int, draws: int, least: float) -> None:
    """Print the lowest and mean coverage over the grid for one number of items."""
    n = items
    tables = np.array([(a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a)
                       for c in range(n + 1 - a - b)])  # fmt: skip
    grid = [(prevalence, name, shares(prevalence, r)) for prevalence in PREVALENCE for name, r in RATERS.items()]
    log = gammaln(n + 1) - gammaln(tables + 1).sum(axis=1)
    chance = np.array([np.exp(log + (tables * np.log(np.maximum(p, 1e-300))).sum(axis=1)) for *_, p in grid])
    keep = chance.max(axis=0) > least
    left_out = 1 - chance[:, keep].sum(axis=1).min()
    tables, chance = tables[keep], chance[:, keep]
    intervals = [bounds(table, draws) for table in tables.tolist()]
    for statistic in ("kappa", "AC1", "alpha", "kappa, delta", "AC1, delta"):
        rows = []
        low, high = (
            np.array([np.nan if e[statistic].value is None else getattr(e[statistic], side) for e in intervals])
            for side in ("low", "high")
        )
        there = ~np.isnan(low)
        for (prevalence, name, p), weight in zip(grid, chance, strict=True):
            true = truths(p)[statistic.partition(",")[0]]
            inside = (low <= true + 1e-9) & (high >= true - 1e-9)
            whole = weight[there].sum()
            width = float(weight[there] @ (high - low)[there] / whole)
            rows.append((float(weight[there & inside].sum() / whole), width, f"{name}, prevalence {prevalence}"))
        coverage, _, where = min(rows)
        under = sum(r[0] < LEAST for r in rows)
        print(f"| {n} | {statistic} | {coverage:.3f} | {where} | {under} of {len(rows)} | "
              f"{np.mean([r[1] for r in rows]):.3f} |", flush=True)  # fmt: skip
    print(f"<!-- {len(tables)} tables; at most {left_out:.1e} of the probability left out -->")


def three(trials: int, draws: int) -> None:
    """Print the coverage of alpha of three raters, a fifth of the ratings missing, by simulation."""
    print("\n| items | prevalence | alpha of 3 raters | coverage | width |\n| --- | --- | --- | --- | --- |")
    for items in (10, 20, 50):
        for prevalence in (0.5, 0.9):
            rng = np.random.default_rng([items, int(prevalence * 10)])

            def ratings(n: int, rng: Any = rng, prevalence: float = prevalence) -> Any:
                truth = rng.random(n) < prevalence
                return np.where(rng.random((3, n)) < 0.9, truth, ~truth).astype(float)

            big = ratings(2_000_000)
            share = big.mean()
            per = big.sum(axis=0)
            disagree = float(np.mean(2 * per * (3 - per) / 6))
            true = 1 - disagree / (2 * share * (1 - share))
            hits = seen = 0
            width = 0.0
            for _ in range(trials):
                some = ratings(items)
                some[rng.random(some.shape) < 0.2] = np.nan
                got = krippendorff_alpha(some.tolist(), draws=draws)
                if got.value is not None and got.low is not None and got.high is not None:
                    seen += 1
                    hits += got.low <= true <= got.high
                    width += got.high - got.low
            print(f"| {items} | {prevalence} | {true:.2f} | {hits / seen:.3f} | {width / seen:.3f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[10, 20, 30, 50], help="numbers of items")
    parser.add_argument("--draws", type=int, default=1000, help="posterior draws of one interval")
    parser.add_argument("--least", type=float, default=1e-5, help="tables that are rarer everywhere are left out")
    parser.add_argument("--trials", type=int, default=1000, help="simulated sets of three raters")
    args = parser.parse_args()
    began = time.perf_counter()
    print("| items | statistic | lowest coverage | where | cells under 93 % | mean width |")
    print("| --- | --- | --- | --- | --- | --- |")
    for items in args.items:
        exact(items, args.draws, args.least)
    three(args.trials, args.draws)
    print(
        f"\n{args.draws} draws an interval, {args.trials} trials of three raters, {time.perf_counter() - began:.0f} s."
    )


if __name__ == "__main__":
    main()
