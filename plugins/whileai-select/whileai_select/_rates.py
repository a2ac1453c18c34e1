"""Rates of tasks and what a few rollouts can say about them.

A group of `k` rollouts measures a rate in steps of 1/k, with a wide interval. This module has that interval
(Wilson), the shrunken estimate (beta prior fitted to all tasks), and the probability that the true rate lies in a
band. Needs scipy for the fit and the beta distribution.

Example:
    >>> low, high = wilson(1, 4)
    >>> round(low, 2), round(high, 2)
    (0.05, 0.7)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from whileai_select.defaults import CONFIDENCE

__all__ = ["BetaPrior", "fit_prior", "resolution", "wilson"]


def wilson(successes: float, n: float, confidence: float = CONFIDENCE.value) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (Wilson 1927); `(0, 1)` when there is no trial."""
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def resolution(k: int, band: tuple[float, float], confidence: float = CONFIDENCE.value) -> str:
    """Return the sentence that says what a group of `k` rollouts can show about a band."""
    if k < 1:
        return "no rollouts: no rate"
    inside = [c for c in range(k + 1) if band[0] <= c / k <= band[1]]
    if not inside:
        return f"k={k}: no measured rate can fall in [{band[0]:g}, {band[1]:g}]"
    rates = ", ".join(f"{c / k:.3g}" for c in inside[:7]) + (", .." if len(inside) > 7 else "")
    low, high = wilson(inside[0], k, confidence)
    certain = [
        c for c in range(k + 1) if wilson(c, k, confidence)[0] >= band[0] and wilson(c, k, confidence)[1] <= band[1]
    ]
    verdict = (
        f"no rate can be shown to lie inside at {confidence:.0%}"
        if not certain
        else f"{certain[0]} to {certain[-1]} passes show it at {confidence:.0%}"
    )
    return (
        f"k={k}: rates in the band are {rates}; {inside[0]} of {k} passing is compatible with "
        f"[{low:.2f}, {high:.2f}], so {verdict}"
    )


@dataclass(frozen=True)
class BetaPrior:
    """Beta distribution of true task rates, fitted to all tasks.

    Attributes:
        a: First shape, above 0.
        b: Second shape, above 0.
    """

    a: float
    b: float

    def mean(self, successes: float, n: float) -> float:
        """Return the shrunken (posterior mean) rate of a task."""
        return (self.a + successes) / (self.a + self.b + n)

    def inside(self, successes: float, n: float, band: tuple[float, float]) -> float:
        """Return the posterior probability that the true rate lies in the band."""
        from scipy.special import betainc

        a, b = self.a + successes, self.b + n - successes
        return float(betainc(a, b, band[1]) - betainc(a, b, band[0]))


def fit_prior(counts: Mapping[tuple[float, float], int]) -> BetaPrior:
    """Fit a beta prior to `{(successes, n): number of tasks}` by its posterior mode.

    Beta-binomial likelihood over all tasks with the hyper-prior of Gelman et al., Bayesian Data Analysis (3rd ed.,
    section 5.3): uniform on the mean and on size ** -0.5, so that a few equal rates do not run to certainty. The
    size is kept between 0.02 and 1e4. Successes may be sums of fractional rewards (a quasi-likelihood then).

    Args:
        counts: Tasks by their successes and rollouts. Tasks without rollouts are ignored.
    """
    from scipy.optimize import minimize
    from scipy.special import betaln

    seen = Counter({key: m for key, m in counts.items() if key[1] > 0})
    if not seen:
        return BetaPrior(1.0, 1.0)
    total = sum(m * n for (_, n), m in seen.items())
    mean = min(max(sum(m * c for (c, _), m in seen.items()) / total, 1e-3), 1 - 1e-3)
    low, high = math.log(0.02), math.log(1e4)

    def loss(point: Any) -> Any:
        share = 1 / (1 + math.exp(-min(max(point[0], -12.0), 12.0)))
        size = math.exp(min(max(point[1], low), high))
        a, b = share * size, (1 - share) * size
        away = max(0.0, point[1] - high) + max(0.0, low - point[1])
        prior = math.log(share * (1 - share)) - 0.5 * math.log(size)
        return away - prior - sum(m * float(betaln(a + c, b + n - c) - betaln(a, b)) for (c, n), m in seen.items())

    start = [math.log(mean / (1 - mean)), math.log(2.0)]
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6, "maxiter": 400})
    share = 1 / (1 + math.exp(-min(max(float(found.x[0]), -12.0), 12.0)))
    size = math.exp(min(max(float(found.x[1]), low), high))
    return BetaPrior(share * size, (1 - share) * size)
