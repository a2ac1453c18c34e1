"""Do the intervals and tests of whileai-measure hold what they claim? A simulation study with a known truth.

    python tests/bench/measure_calibration.py intervals --metric pass@1   (one of four; two to four minutes each)
    python tests/bench/measure_calibration.py compare                     (about two minutes)
    python tests/bench/measure_calibration.py intervals --metric fraction --trials 500 --cells   (every cell, smaller)

The constants behind the default are options, to see what another value does:

    python tests/bench/measure_calibration.py intervals --metric fraction --rollouts 8 --tasks 5 8 --freedom-power 2
    python tests/bench/measure_calibration.py intervals --metric pass@1 --rollouts 1 --tasks 8 --freedom-gain 1e9
    python tests/bench/measure_calibration.py intervals --metric pass^4 --rollouts 8 --tasks 10 200 --model-share 0

Intervals: every kind in every cell of difficulty x tasks x rollouts x metric. The default is held to two criteria: no
cell under 93 % coverage, and a mean width of at most 1.15 x that of the narrowest other kind that reaches 93 % in the
cell. Beside the seven difficulties of the criteria stand eight others, on which nothing was chosen: they show what the
default, and what a narrower kind, is worth elsewhere. The bootstrap kinds run on one set of resamples per cell, as
matrix products; a test of the plugin checks that they are those of `mean_interval`.

Compare: false alarms under the null at every size from the smallest accepted, power against the best tests known for
the design.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import comb, ndtr, ndtri, stdtrit

from whileai_measure.defaults import FREEDOM_GAIN, FREEDOM_POWER, MODEL_SHARE, SMALL_TASKS
from whileai_measure.design import limits
from whileai_measure.intervals import effective_wilson

LEAST, RATIO = 0.93, 1.15
TASKS, ROLLOUTS, CHECKS = (3, 5, 8, 10, 20, 50, 200), (1, 4, 8), 5
METRICS = ("pass@1", "pass^4", "pass@4", "fraction")
OTHERS = ("t", "logit", "percentile", "bca", "studentised")
Arrays = dict[str, tuple[Any, Any]]


def beta(a: float, b: float) -> Callable[..., Any]:
    return lambda rng, shape: rng.beta(a, b, shape)


DIFFICULTY: dict[str, Callable[..., Any]] = {
    "Beta(2,2)": beta(2, 2),
    "Beta(.5,.5)": beta(0.5, 0.5),
    "Beta(8,2)": beta(8, 2),
    "Beta(1,9)": beta(1, 9),
    "two-point .1/.9": lambda rng, shape: np.where(rng.random(shape) < 0.5, 0.1, 0.9),
    "constant .95": lambda rng, shape: np.full(shape, 0.95),
    "constant .5": lambda rng, shape: np.full(shape, 0.5),
}
ELSEWHERE: dict[str, Callable[..., Any]] = {
    "Beta(1,3)": beta(1, 3),
    "Beta(.2,.2)": beta(0.2, 0.2),
    "Beta(5,5)": beta(5, 5),
    "constant .8": lambda rng, shape: np.full(shape, 0.8),
    "constant .99": lambda rng, shape: np.full(shape, 0.99),
    "half .3, half 1": lambda rng, shape: np.where(rng.random(shape) < 0.5, 0.3, 1.0),
    "20 % 0, 80 % .9": lambda rng, shape: np.where(rng.random(shape) < 0.2, 0.0, 0.9),
    "10 % .1, 90 % .97": lambda rng, shape: np.where(rng.random(shape) < 0.1, 0.1, 0.97),
}
PARAMETERS = {"Beta(2,2)": (2, 2), "Beta(.5,.5)": (0.5, 0.5), "Beta(8,2)": (8, 2), "Beta(1,9)": (1, 9)}
PARAMETERS |= {"Beta(1,3)": (1, 3), "Beta(.2,.2)": (0.2, 0.2), "Beta(5,5)": (5, 5)}
POINTS = {"two-point .1/.9": (0.1, 0.9), "constant .95": (0.95,), "constant .5": (0.5,), "constant .8": (0.8,)}
POINTS |= {"constant .99": (0.99,), "half .3, half 1": (0.3, 1.0), "20 % 0, 80 % .9": (0.0, *[0.9] * 4)}
POINTS["10 % .1, 90 % .97"] = (0.1, *[0.97] * 9)
Table = dict[tuple[str, int, int], dict[str, dict[str, tuple[float, float]]]]


def truth(difficulty: str, metric: str) -> float:
    """Return the true mean over tasks, in closed form."""
    if difficulty in PARAMETERS:
        a, b = PARAMETERS[difficulty]
        up = float(np.prod([(a + i) / (a + b + i) for i in range(4)]))
        down = float(np.prod([(b + i) / (a + b + i) for i in range(4)]))
        return {"pass@1": a / (a + b), "fraction": a / (a + b), "pass^4": up, "pass@4": 1 - down}[metric]
    p = np.array(POINTS[difficulty])
    return float(np.mean({"pass^4": p**4, "pass@4": 1 - (1 - p) ** 4}.get(metric, p)))


def sample(rng: Any, metric: str, p: Any, k: int) -> tuple[Any, Any, Any, float | None]:
    """Return task values, ceiling of the effective size, expected variance and rollouts, per trial."""
    trials, tasks = p.shape
    if metric == "fraction":  # a reward is the share of five checks that pass
        y = rng.binomial(CHECKS, np.repeat(p[:, :, None], k, axis=2)) / CHECKS
        x, total = y.mean(axis=2), y.reshape(trials, -1).var(axis=1)
        m = x.mean(axis=1)
        top = np.where(total > 0, m * (1 - m) * tasks * k / np.maximum(total, 1e-300), tasks * k)
        return x, np.minimum(top, tasks * k) if tasks < SMALL_TASKS.value else top, 0.0, tasks * k
    c = rng.binomial(k, p)
    share = c / k
    if metric == "pass@1":
        return share, np.full(trials, float(tasks * k)), 0.0, tasks * k
    x = comb(c, 4) / comb(k, 4) if metric == "pass^4" else 1 - comb(k - c, 4) / comb(k, 4)
    which = "hat" if metric == "pass^4" else "at"
    top, expected = limits([k], [tasks], 4, which, mean=x.mean(1), rate=share.mean(1), spread=share.var(1, ddof=1))
    return x, top, expected, None


@dataclass(frozen=True)
class Constants:
    """The constants behind the default interval."""

    model_share: float = MODEL_SHARE.value
    freedom_power: float = FREEDOM_POWER.value
    freedom_gain: float = FREEDOM_GAIN.value


def default(x: Any, ceiling: Any, expected: Any, using: Constants = Constants()) -> tuple[Any, Any]:
    """Return the default interval of each trial."""
    tasks = x.shape[1]
    seen = x.var(axis=1, ddof=1) / tasks
    seen = np.where(seen < 1e-15, 0.0, seen)
    variance = seen + using.model_share * np.maximum(0.0, expected - seen)
    low, high, _ = effective_wilson(
        x.mean(axis=1),
        variance,
        tasks,
        ceiling=ceiling,
        freedom_power=using.freedom_power,
        freedom_most=using.freedom_gain,
    )
    return low, high


def others(x: Any, wilson: tuple[Any, Any], draws: int, rng: Any) -> Arrays:
    """Return the other kinds of each trial; where nothing varies they are the default, as in `mean_interval`."""
    tasks = x.shape[1]
    m, se = x.mean(axis=1), x.std(axis=1, ddof=1) / np.sqrt(tasks)
    flat = se < 1e-9
    q = stdtrit(tasks - 1, 0.975)
    out = {"t": (m - q * se, m + q * se)}
    with np.errstate(all="ignore"):
        centre, half = np.log(m / (1 - m)), q * se / (m * (1 - m))
        out["logit"] = (1 / (1 + np.exp(half - centre)), 1 / (1 + np.exp(-half - centre)))
        weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=draws) / tasks
        means, squares = x @ weights.T, x**2 @ weights.T
        order = np.sort(means, axis=1)

        def at(level: Any) -> Any:
            rank = np.clip(np.floor(level * draws).astype(int), 0, draws - 1)
            return order[np.arange(len(m)), rank]

        ones, seen = np.ones(len(m)), m[:, None]
        out["percentile"] = (at(0.025 * ones), at(0.975 * ones))
        below = ((means < seen - 1e-12).mean(1) + (means <= seen + 1e-12).mean(1)) / 2
        z0 = ndtri(np.clip(below, 1 / draws, 1 - 1 / draws))
        d = x - seen
        accel = np.nan_to_num((d**3).sum(1) / (6 * (d**2).sum(1) ** 1.5))
        z = z0 + ndtri(0.025), z0 + ndtri(0.975)
        out["bca"] = (at(ndtr(z0 + z[0] / (1 - accel * z[0]))), at(ndtr(z0 + z[1] / (1 - accel * z[1]))))
        error = np.sqrt(np.maximum(squares - means**2, 0) / (tasks - 1))
        shift = means - seen
        t = np.where(error > 1e-9, shift / error, np.where(np.abs(shift) < 1e-9, 0.0, np.sign(shift) * np.inf))
        last, first = int(0.975 * draws), int(0.025 * draws)
        t = np.partition(t, (first, last), axis=1)
        out["studentised"] = (m - t[:, last] * se, m - t[:, first] * se)
    clean = {}
    for name, (low, high) in out.items():
        low, high = np.where(flat, wilson[0], low), np.where(flat, wilson[1], high)
        clean[name] = (np.clip(low, 0, m), np.clip(high, m, 1))
    return clean


def distinct(x: Any) -> tuple[Any, Any]:
    """Return the distinct samples, tasks in sorted order, and which of them each trial is."""
    ordered = np.sort(np.round(x, 9), axis=1)
    _, first, which = np.unique(ordered, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


def cell(
    metric: str, k: int, tasks: int, name: str, trials: int, draws: int, using: Constants
) -> dict[str, tuple[float, float]]:
    """Return coverage and mean width of every kind in one cell."""
    rng = np.random.default_rng([len(metric), k, tasks, *name.encode()])
    x, ceiling, expected, _ = sample(rng, metric, {**DIFFICULTY, **ELSEWHERE}[name](rng, (trials, tasks)), k)
    low, high = default(x, ceiling, expected, using)
    first, which = distinct(x)
    parts = [others(x[i], (low[i], high[i]), draws, rng) for i in np.array_split(first, -(-len(first) // 2000))]
    kinds: Arrays = {"wilson": (low, high)}
    for kind in OTHERS:
        a, b = (np.concatenate([part[kind][side] for part in parts]) for side in (0, 1))
        kinds[kind] = a[which], b[which]
    true = truth(name, metric)
    return {
        kind: (float(np.mean((a <= true + 1e-9) & (b >= true - 1e-9))), float(np.mean(b - a)))
        for kind, (a, b) in kinds.items()
    }


def intervals(args: argparse.Namespace) -> None:
    """Print the study of the intervals as Markdown."""
    began, trials = time.perf_counter(), args.trials or 8000
    using = Constants(args.model_share, args.freedom_power, args.freedom_gain)
    table: Table = defaultdict(dict)
    for metric in args.metric:
        for k in args.rollouts:
            if metric in ("pass^4", "pass@4") and k < 4:
                continue
            for tasks in args.tasks:
                for name in (*DIFFICULTY, *ELSEWHERE):
                    table[metric, k, tasks][name] = cell(metric, k, tasks, name, trials, args.draws, using)
    print_lowest(table)
    print_widths(table, args.cells)
    print_elsewhere(table)
    spent = time.perf_counter() - began
    print(f"\n{', '.join(args.metric)}: {trials} trials a cell, {args.draws} resamples, {spent:.0f} s.")


def lowest(by: Any, kind: str, names: Any) -> float:
    return min(by[name][kind][0] for name in names)


def print_lowest(table: Table) -> None:
    print("#### Lowest coverage over the seven difficulties\n")
    print("| metric | k | tasks | wilson (default) | " + " | ".join(OTHERS) + " |")
    print("| --- | --- | --- | --- |" + " --- |" * len(OTHERS))
    under = []
    for (metric, k, tasks), by in table.items():
        low = {kind: lowest(by, kind, DIFFICULTY) for kind in ("wilson", *OTHERS)}
        rest = " | ".join(f"{low[o]:.3f}" for o in OTHERS)
        print(f"| {metric} | {k} | {tasks} | **{low['wilson']:.3f}** | {rest} |")
        under += [(metric, k, tasks, d, by[d]["wilson"][0]) for d in DIFFICULTY if by[d]["wilson"][0] < LEAST]
    count = len(table) * len(DIFFICULTY)
    print(f"\nCells of the default under {LEAST:.0%}: {len(under)} of {count}. {under or ''}")


def print_widths(table: Table, cells: bool) -> None:
    wide: list[str] = []
    reached = uniformly = free = 0
    for (metric, k, tasks), by in table.items():
        holds = [o for o in OTHERS if lowest(by, o, DIFFICULTY) >= LEAST]
        for difficulty in DIFFICULTY:
            kinds = by[difficulty]
            ok = {o: kinds[o][1] for o in OTHERS if kinds[o][0] >= LEAST}
            if cells:
                print(metric, k, tasks, difficulty, {n: (round(c, 3), round(w, 4)) for n, (c, w) in kinds.items()})
            if not ok:
                continue
            reached += 1
            best = min(ok, key=lambda o: ok[o])
            coverage, width = kinds["wilson"]
            if width > RATIO * ok[best]:
                here, anywhere = lowest(by, best, DIFFICULTY), lowest(by, best, by)
                free += anywhere >= LEAST
                wide.append(
                    f"| {metric} | {k} | {tasks} | {difficulty} | {coverage:.3f} | {width:.3f} | {best} | "
                    f"{ok[best]:.3f} | {width / ok[best]:.2f} | {here:.3f} | {anywhere:.3f} |"
                )
            if any(width > RATIO * kinds[o][1] for o in holds):
                uniformly += 1
    print(f"\n#### Where the default is over {RATIO} x as wide as the narrowest kind that reaches {LEAST:.0%} there\n")
    print(
        f"{len(wide)} of {reached} cells. Against kinds that reach {LEAST:.0%} at all seven difficulties of the same "
        f"metric, k and tasks: {uniformly} cells. The last columns are the lowest coverage of the narrower kind over "
        f"the seven, and over all fifteen difficulties; over all it stays at {LEAST:.0%} in {free} of these cells.\n"
    )
    head = "| metric | k | tasks | difficulty | coverage | width | narrower kind | its width | ratio | lowest, seven"
    print(f"{head} | lowest, fifteen |\n|" + " --- |" * 11)
    print("\n".join(wide))


def print_elsewhere(table: Table) -> None:
    print("\n#### Where nothing was chosen: coverage of the default at eight other difficulties\n")
    print("| metric | k | tasks | " + " | ".join(ELSEWHERE) + " |\n|" + " --- |" * (3 + len(ELSEWHERE)))
    for (metric, k, tasks), by in table.items():
        cells = " | ".join(f"{by[name]['wilson'][0]:.3f}" for name in ELSEWHERE)
        print(f"| {metric} | {k} | {tasks} | {cells} |")


def rejects(d: Any, draws: int = 4999, exact: int = 10) -> float:
    """Return how often the sign-flip test of `compare` rejects, over trials, shape (trials, tasks).

    The same test as `sign_flips`, written for many trials at once: one set of sign patterns, as a matrix product.
    """
    tasks = d.shape[1]
    if tasks <= exact:
        patterns = 1.0 - 2.0 * ((np.arange(2**tasks)[:, None] >> np.arange(tasks)) & 1)
    else:
        patterns = 1.0 - 2.0 * np.random.default_rng(tasks).integers(0, 2, (draws, tasks))
    own = 1 if tasks <= exact else 0  # enumerated, the observed pattern is among them; drawn, the +1 stands for it
    sums, seen = patterns @ d.T, d.sum(axis=1)
    tied = np.abs(sums - seen) < 1e-9
    half = (tied.sum(axis=0) - own + 1) // 2
    up = (1 + ((sums > seen) & ~tied).sum(axis=0) + half) / (len(patterns) + 1 - own)
    down = (1 + ((sums < seen) & ~tied).sum(axis=0) + half) / (len(patterns) + 1 - own)
    return float(np.mean(2 * np.minimum(up, down) <= 0.05 + 1e-12))


def rivals(d: Any, a: Any, b: Any, k: int) -> dict[str, float]:
    """Return the rejection rates of the other tests of the design."""
    tasks = d.shape[1]
    with np.errstate(all="ignore"):
        t = d.mean(1) / (d.std(1, ddof=1) / np.sqrt(tasks))
        out = {"paired t": float(np.mean(np.nan_to_num(np.abs(t)) > stdtrit(tasks - 1, 0.975)))}
        n = a + b
        z = np.abs((b - n / 2).sum(1)) / np.sqrt((n * (2 * k - n) / (4 * (2 * k - 1))).sum(1))
        out["stratified (CMH)"] = float(np.mean(np.nan_to_num(z) > 1.959964))
    if k == 1:
        won, lost = (d > 0).sum(1), (d < 0).sum(1)
        few, m = np.minimum(won, lost), won + lost
        mid = np.where(won == lost, 1.0, 2 * stats.binom.cdf(few, m, 0.5) - stats.binom.pmf(few, m, 0.5))
        out["McNemar mid-p"] = float(np.mean(mid <= 0.05))
    return out


def comparison(trials: int) -> None:
    """Print the study of the comparison as Markdown."""
    began = time.perf_counter()
    names = ("Beta(2,2)", "Beta(.5,.5)", "Beta(1,9)", "constant .5")
    print("#### False alarms of `compare` under the null (at most 0.05)\n")
    print("| tasks | k | " + " | ".join(names) + " |\n| --- | --- |" + " --- |" * len(names))
    for tasks in (6, 7, 8, 10, 15, 20, 30, 60, 200):
        for k in (1, 4, 8):
            row = []
            for index, name in enumerate(names):
                rng = np.random.default_rng([9, tasks, k, index])
                p = DIFFICULTY[name](rng, (trials, tasks))
                row.append(rejects((rng.binomial(k, p) - rng.binomial(k, p)) / k))
            print(f"| {tasks} | {k} | " + " | ".join(f"{r:.3f}" for r in row) + " |")
    print("\n#### Power of `compare` beside other tests\n")
    print(
        "| effect | tasks | k | difficulty | compare | paired t | stratified (CMH) | McNemar mid-p | behind the best |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for effect in (0.10, 0.16):
        for tasks in (30, 60, 200):
            for k in (1, 4):
                for index, name in enumerate(("Beta(2,2)", "Beta(.5,.5)", "constant .5")):
                    draw = DIFFICULTY[name]

                    def rates(rng: Any, shape: Any, draw: Any = draw, effect: float = effect) -> Any:
                        p = draw(rng, shape) * (1 - effect)
                        return p, p + effect

                    blocks = max(1, 200 // tasks)  # small sets are cheap: more trials where the tests differ most
                    own, rest = rejected(rates, blocks, trials, tasks, k, [11, index, int(effect * 100)])
                    print(f"| {effect:+.2f} | {tasks} | {k} | {name} | {power_cells(own, rest)} |")
    print("\n#### False alarms where single tasks change and the mean does not\n")
    print("Rates from .2 to .8; half of the tasks gain .2, half lose it. 4 rollouts.\n")
    print("| tasks | compare | paired t | stratified (CMH) |\n| --- | --- | --- | --- |")
    for tasks in (10, 30, 60, 200):

        def mixed(rng: Any, shape: Any) -> Any:
            p = rng.beta(2, 2, shape) * 0.6 + 0.2
            return p, p + np.where(rng.random(shape) < 0.5, 0.2, -0.2)

        own, rest = rejected(mixed, max(1, 200 // tasks), trials, tasks, 4, [13])
        print(f"| {tasks} | {own:.3f} | {rest['paired t']:.3f} | {rest['stratified (CMH)']:.3f} |")
    print(
        f"\n{trials} trials a cell under the null, {trials} x 200 / tasks for power, 4,999 sign patterns, "
        f"{time.perf_counter() - began:.0f} s."
    )


def rejected(
    rates: Callable[..., Any], blocks: int, trials: int, tasks: int, k: int, seed: list[int]
) -> tuple[float, dict[str, float]]:
    """Return the rejection rates of `compare` and of the other tests."""
    own, rest = [], []
    for block in range(blocks):
        rng = np.random.default_rng([*seed, tasks, k, block])
        p, q = rates(rng, (trials, tasks))
        a, b = rng.binomial(k, p), rng.binomial(k, q)
        own.append(rejects((b - a) / k))
        rest.append(rivals((b - a) / k, a, b, k))
    return float(np.mean(own)), {name: float(np.mean([r[name] for r in rest])) for name in rest[0]}


def power_cells(own: float, rest: dict[str, float]) -> str:
    names = ("paired t", "stratified (CMH)", "McNemar mid-p")
    cells = " | ".join(f"{rest[name]:.3f}" if name in rest else "" for name in names)
    return f"{own:.3f} | {cells} | {max(rest.values()) - own:+.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", default="both", choices=("intervals", "compare", "both"))
    parser.add_argument("--metric", nargs="+", default=METRICS, choices=METRICS, help="metrics of the intervals")
    parser.add_argument("--tasks", nargs="+", type=int, default=TASKS, help="numbers of tasks of the intervals")
    parser.add_argument("--rollouts", nargs="+", type=int, default=ROLLOUTS, help="rollouts per task of the intervals")
    parser.add_argument("--model-share", type=float, default=MODEL_SHARE.value, help="as in mean_interval")
    parser.add_argument("--freedom-power", type=float, default=FREEDOM_POWER.value, help="as in mean_interval")
    parser.add_argument("--freedom-gain", type=float, default=FREEDOM_GAIN.value, help="freedom_most of mean_interval")
    parser.add_argument("--trials", type=int, default=None, help="simulated evaluations a cell")
    parser.add_argument("--draws", type=int, default=999, help="bootstrap resamples")
    parser.add_argument("--cells", action="store_true", help="print every cell")
    args = parser.parse_args()
    if args.study in ("intervals", "both"):
        intervals(args)
    if args.study in ("compare", "both"):
        comparison(args.trials or 3000)


if __name__ == "__main__":
    main()
