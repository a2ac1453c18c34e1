"""Two verdicts per row, the judge's and the right one, as sums over tasks and the figures that they give.

Positive is "passed". Sums of one task are ``(tp, fp, fn, tn)``: the judge passed a row that passes, passed one that
fails, failed one that passes, failed one that fails.

Example:
    >>> round(kappa((40, 10, 10, 40)), 3), round(ac1((40, 10, 10, 40)), 3)
    (0.6, 0.6)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from whileai_judge.intervals import Figure, Interval, Sums, jackknife, rate_of, t_quantile, total


def agreement(sums: Sums) -> float | None:
    """Share of rows on which both say the same."""
    n = sum(sums[:4])
    return (sums[0] + sums[3]) / n if n > 0 else None


def false_pass(sums: Sums) -> float | None:
    """Share of failing rows that the judge passes."""
    fails = sums[1] + sums[3]
    return sums[1] / fails if fails > 0 else None


def false_fail(sums: Sums) -> float | None:
    """Share of passing rows that the judge fails."""
    passes = sums[0] + sums[2]
    return sums[2] / passes if passes > 0 else None


def kappa(sums: Sums) -> float | None:
    """Cohen's kappa (Cohen 1960): agreement beyond what the two rates of passing give by chance."""
    n = sum(sums[:4])
    if n <= 0:
        return None
    judged, gold = (sums[0] + sums[1]) / n, (sums[0] + sums[2]) / n
    chance = judged * gold + (1 - judged) * (1 - gold)
    return _beyond((sums[0] + sums[3]) / n, chance)


def ac1(sums: Sums) -> float | None:
    """Gwet's AC1 (Gwet 2008): like kappa, and steady where nearly every row passes or fails."""
    n = sum(sums[:4])
    if n <= 0:
        return None
    mean = (2 * sums[0] + sums[1] + sums[2]) / (2 * n)
    return _beyond((sums[0] + sums[3]) / n, 2 * mean * (1 - mean))


def _beyond(observed: float, chance: float) -> float | None:
    return (observed - chance) / (1 - chance) if chance < 1 - 1e-12 else None


def chance_figure(clusters: Sequence[Sums], figure: Figure, confidence: float) -> Interval | None:
    """Kappa or AC1 with an interval over tasks.

    The jackknife error is used on Fisher's scale (atanh), which keeps the interval in [-1, 1] and lets it be longer
    below a high value than above it. Without any disagreement, or any spread, its lower end is the value at the lower
    end of the agreement's Wilson interval: perfect agreement on few tasks is not certainty.
    """
    sums = total(clusters)
    estimate = jackknife(clusters, figure)
    if estimate is None:
        return None
    value, error = estimate
    rows, tasks = int(sum(sums[:4])), len(clusters)
    quantile = t_quantile(confidence, tasks - 1)
    inside = min(max(value, -0.999), 0.999)
    half = quantile * error / (1 - inside * inside)
    low, high = math.tanh(math.atanh(inside) - half), math.tanh(math.atanh(inside) + half)
    agreed = rate_of([(one[0] + one[3], sum(one[:4])) for one in clusters], confidence)
    if agreed is not None and (abs(value) >= 0.999 or error == 0):
        observed = agreement(sums) or 0.0
        chance = (observed - value) / (1 - value) if value < 1 else _chance_at_one(sums)
        low, high = _beyond(agreed.low, chance) or 0.0, _beyond(agreed.high, chance) or 1.0
    return Interval(value, max(-1.0, min(low, value)), min(1.0, max(high, value)), rows, tasks)


def _chance_at_one(sums: Sums) -> float:
    passed = (sums[0] + sums[1]) / sum(sums[:4])
    return passed * passed + (1 - passed) * (1 - passed)
