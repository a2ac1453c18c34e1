"""Intervals of chance-corrected agreement (kappa, AC1, alpha) that hold for a few items too.

Such a statistic is a function of the shares of a table, and at 20 items most of the cells that matter are empty, so the
delta method claims too much. Here the shares are drawn from their Dirichlet posterior under two priors, one that adds
next to nothing and Jeffreys', and the interval is the hull of both: the first holds where agreement is all but perfect,
the second where a cell is empty by luck. The counts are scaled down for the few units by a t quantile, and for items
that come in clusters by their design effect, as in the Wilson interval of a rate.

Example:
    >>> import numpy as np
    >>> accuracy = lambda shares: shares[:, 0] + shares[:, 3]
    >>> low, high = posterior_interval([9, 1, 0, 10], [0.25] * 4, accuracy, 0.95, units=20)
    >>> round(low, 1), round(high, 1)
    (0.8, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError
from whileai_measure.defaults import BOOTSTRAP_DRAWS, CONFIDENCE, PRIOR_JEFFREYS, PRIOR_SLIGHT, SEED
from whileai_measure.intervals import t_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

__all__ = ["cluster_codes", "design_effect", "posterior_interval"]


def posterior_interval(
    counts: Any,
    prior: Any,
    statistic: Callable[[Floats], Floats],
    value: float,
    *,
    units: int,
    effect: float = 1.0,
    confidence: float = CONFIDENCE.value,
    draws: int = BOOTSTRAP_DRAWS.value,
    seed: int = SEED.value,
    slight: float = PRIOR_SLIGHT.value,
    jeffreys: float = PRIOR_JEFFREYS.value,
) -> tuple[float, float]:
    """Return the interval of a statistic of shares.

    Args:
        counts: Items per cell, shape (cells,).
        prior: Share of the prior mass on each cell, shape (cells,), sum 1.
        statistic: From shares, shape (draws, cells), to values, shape (draws,); NaN where it does not exist.
        value: The estimate, which the interval holds.
        units: Independent units: items, or clusters of them. With one, the interval is as wide as the priors are.
        effect: Design effect, at least 1: by how much clustering raises the variance.
        confidence: Level.
        draws: Draws from each posterior.
        seed: Seed of the draws.
        slight: Mass of the first prior, in items.
        jeffreys: Mass of the second.

    Source: Walley 1996 (the hull over priors); Jeffreys 1946 (half a count in each of four cells).
    """
    import numpy as np
    from scipy.special import ndtri

    given, share = np.asarray(counts, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    q = t_quantile(units, confidence)
    scale = float(np.square(ndtri(0.5 + confidence / 2.0) / q)) / effect
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    rng = np.random.default_rng(seed)
    low = high = value
    for mass in (slight, jeffreys):
        weights = rng.standard_gamma(given * scale + share * mass, size=(draws, len(given)))
        drawn = statistic(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn):
            bounds = np.quantile(drawn, tails)
            low, high = min(low, float(bounds[0])), max(high, float(bounds[1]))
    return low, high


def cluster_codes(clusters: Sequence[Any] | None, items: int) -> Ints:
    """Return one number per item: its cluster, or its own where there are none.

    Raises:
        ParameterError: There is not one label per item.
    """
    import numpy as np

    if clusters is None:
        return np.arange(items)
    labels = list(clusters)
    if len(labels) != items:
        raise ParameterError(f"{len(labels)} clusters for {items} items", fix="give one cluster per item")
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)


def design_effect(influence: Floats, codes: Ints) -> float:
    """Return by how much clusters raise the variance of a statistic over that of independent items, at least 1.

    Where the influences say nothing (no item disagrees), items of a cluster are taken to repeat each other.

    Args:
        influence: Influence of each item on the statistic, shape (items,).
        codes: Cluster of each item, shape (items,).

    Source: linearisation by clusters, Cochran 1977, section 3.12.
    """
    import numpy as np

    codes = np.unique(codes, return_inverse=True)[1]
    items, units = len(codes), int(codes.max()) + 1 if len(codes) else 0
    if units == items or items < 2:
        return 1.0
    centred = influence - influence.mean()
    alone = float(centred @ centred) * items / (items - 1)
    if units < 2 or alone <= 1e-18:
        return items / max(units, 1)
    sums = np.bincount(codes, weights=centred)
    return max(1.0, float(sums @ sums) * units / (units - 1) / alone)
