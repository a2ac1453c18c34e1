"""Within-task association of many features with a target, against a permutation floor.

The statistic of a feature is `x . y` with `y` centred within tasks, over its exact standard deviation under
permutation of `y` within tasks. Because `y` is centred, `x` need not be, so sparse columns stay sparse. All
permutations go through one sparse product. A feature's p value is weighted by its share of the error budget, and the
floor is the distribution of the smallest weighted p value over the permutations (Westfall and Young 1993, minP).

It knows nothing about rows; see `scan` for the meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_ndtr

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Association:
    """Result for every feature.

    Attributes:
        z: Standardised association.
        r: Within-task correlation.
        adjusted: Family-wise adjusted p value.
        spread: Within-task sum of squares of the feature.
        slope: Change of the target per unit of the feature, within tasks.
    """

    z: F64
    r: F64
    adjusted: F64
    spread: F64
    slope: F64


def centred(y: F64, group: I64) -> F64:
    """Return `y` minus its task mean."""
    counts = np.bincount(group)
    return np.asarray(y - (np.bincount(group, weights=y) / np.maximum(counts, 1))[group])


def group_spread(x: sparse.csr_matrix, group: I64) -> sparse.csr_matrix:
    """Return tasks x features: the within-task sum of squares of each feature."""
    n_groups = int(group.max()) + 1
    member = sparse.csr_matrix((np.ones(len(group)), (group, np.arange(len(group)))), shape=(n_groups, len(group)))
    sizes = np.bincount(group).astype(np.float64)
    sums = sparse.csr_matrix(member @ x)
    squares = sparse.csr_matrix(member @ x.multiply(x))
    return sparse.csr_matrix(squares - sparse.diags(1.0 / sizes) @ sums.multiply(sums))


def associate(
    x: sparse.csr_matrix,
    y: F64,
    group: I64,
    *,
    weights: F64,
    both: NDArray[np.bool_],
    permutations: int,
    seed: int,
    block: int = 64,
) -> Association:
    """Associate each column of `x` with `y` within tasks.

    Args:
        x: Rows x features.
        y: One target per row.
        group: Task of each row, 0..n-1, every task with at least two rows.
        weights: Share of the error budget of each feature; they sum to at most 1.
        both: Whether a feature is tested in both directions; otherwise only a positive association counts.
        permutations: Number of permutations.
        seed: Seed of the permutations.
        block: Permutations that go through one product (memory, not results).
    """
    yc = centred(y, group)
    sizes = np.bincount(group).astype(np.float64)
    spread_y = np.bincount(group, weights=yc * yc)
    spread_x = group_spread(x, group)
    variance = np.asarray(spread_x.T @ (spread_y / np.maximum(sizes - 1, 1))).ravel()
    total_x = np.asarray(spread_x.sum(axis=0)).ravel()
    total_y = float(spread_y.sum())
    usable = variance > 1e-12 * max(1.0, total_y)
    scale = np.where(usable, np.sqrt(np.where(usable, variance, 1.0)), np.inf)
    xt = sparse.csr_matrix(x.T)
    cross = np.asarray(xt @ yc).ravel()
    z = cross / scale
    log_weight = np.log(np.maximum(weights, 1e-300))
    observed = _log_p(z, both) - log_weight
    smallest = np.empty(permutations)
    rng = np.random.default_rng(seed)
    order = np.argsort(group, kind="stable")
    for start in range(0, permutations, block):
        count = min(block, permutations - start)
        shuffled = np.empty((len(yc), count))
        for column in range(count):
            # Rows of one task stay together, in random order within it.
            keys = group[order] + rng.random(len(order))
            shuffled[order, column] = yc[order][np.argsort(keys, kind="stable")]
        table = np.asarray(xt @ shuffled) / scale[:, None]
        scores = _log_p(table, both[:, None]) - log_weight[:, None]
        smallest[start : start + count] = scores.min(axis=0) if len(scores) else np.inf
    ordered = np.sort(smallest)
    beaten = np.searchsorted(ordered, observed + 1e-9, side="right")
    adjusted = np.where(usable, (1 + beaten) / (permutations + 1), 1.0)
    safe = np.where(total_x > 0, total_x, 1.0)
    return Association(
        z=z,
        r=np.asarray(cross / np.sqrt(safe * max(total_y, 1e-300))),
        adjusted=np.asarray(adjusted),
        spread=np.asarray(total_x, np.float64),
        slope=np.asarray(cross / safe),
    )


def _log_p(z: F64, both: NDArray[np.bool_]) -> F64:
    one = log_ndtr(-np.where(both, np.abs(z), z))
    return np.asarray(np.where(both, np.minimum(one + np.log(2.0), 0.0), one))


def slope_interval(x: F64, y: F64, group: I64, confidence: float) -> tuple[float, float, float]:
    """Return the within-task slope and its cluster-robust interval (Liang and Zeger 1986; t with tasks - 1).

    Args:
        x: One feature, one value per row.
        y: The target.
        group: Task of each row.
        confidence: Level of the interval.
    """
    from scipy.stats import t

    xc, yc = centred(x, group), centred(y, group)
    own = np.bincount(group, weights=xc * xc)
    cross = np.bincount(group, weights=xc * yc)
    total = float(own.sum())
    informative = int((own > 1e-12).sum())
    if total <= 0 or informative < 2:
        return 0.0, float("-inf"), float("inf")
    slope = float(cross.sum() / total)
    error = float(np.sqrt(((cross - slope * own) ** 2).sum() * informative / (informative - 1)) / total)
    half = float(t.ppf(0.5 + confidence / 2, informative - 1)) * error
    return slope, slope - half, slope + half
