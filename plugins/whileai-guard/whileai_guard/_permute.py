"""Within-task association of many features with a target, against a permutation floor.

The statistic of a feature is `x . y` with `y` centred within tasks, over its exact standard deviation under
permutation of `y` within tasks. Because `y` is centred, `x` need not be, so sparse columns stay sparse. All
permutations go through one sparse product. A feature's p value is divided by its share of the error budget, and the
floor is the distribution of the smallest weighted p value over the permutations, step by step without the features
that are already beyond it (Westfall and Young 1993, step-down minP; weights as in Genovese, Roeder and Wasserman
2006). Shares may depend on the features in any way, never on the target.

It knows nothing about rows; see `scan` for the meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_ndtr, stdtrit

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

FAR = 1.0
"""Standardised associations below this count as p = 1: no floor lies there, and most of the time would go into them."""


@dataclass(frozen=True)
class Association:
    """Result for every feature.

    Attributes:
        z: Standardised association.
        r: Within-task correlation.
        adjusted: Family-wise adjusted p value, one standard error of the permutations above its estimate.
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


def _sums(x: sparse.csr_matrix, group: I64) -> tuple[sparse.csr_matrix, F64]:
    """Return tasks x features sums and the size of each task."""
    n_groups = int(group.max()) + 1
    member = sparse.csr_matrix((np.ones(len(group)), (group, np.arange(len(group)))), shape=(n_groups, len(group)))
    return sparse.csr_matrix(member @ x), np.bincount(group).astype(np.float64)


def total_spread(x: sparse.csr_matrix, group: I64, weights: F64 | None = None) -> F64:
    """Return the within-task sum of squares of each feature, tasks weighted.

    Args:
        x: Rows x features.
        group: Task of each row.
        weights: Weight of each task; `None` for equal ones.
    """
    sums, sizes = _sums(x, group)
    own = np.ones(len(sizes)) if weights is None else weights
    squares = x.copy()
    squares.data = squares.data**2
    sums.data **= 2
    return np.asarray(squares.T @ own[group] - sums.T @ (own / sizes)).ravel()


def shared_variance(x: sparse.csr_matrix, group: I64) -> F64:
    """Return the squared within-task correlation of all pairs of features."""
    sums, sizes = _sums(x, group)
    cross = np.asarray((x.T @ x - sums.T @ sparse.diags(1.0 / sizes) @ sums).todense(), np.float64)
    scale = np.sqrt(np.maximum(np.diag(cross), 1e-300))
    return np.asarray(np.minimum((cross / scale / scale[:, None]) ** 2, 1.0))


def associate(
    x: sparse.csr_matrix,
    y: F64,
    group: I64,
    *,
    up: F64,
    down: F64,
    permutations: int,
    seed: int,
    block: int = 64,
) -> Association:
    """Associate each column of `x` with `y` within tasks.

    Args:
        x: Rows x features.
        y: One target per row.
        group: Task of each row, 0..n-1, every task with at least two rows.
        up: Share of the error budget of each feature for a positive association; relative, 0 leaves it untested.
        down: The same for a negative association.
        permutations: Number of permutations.
        seed: Seed of the permutations.
        block: Permutations that go through one product (memory, not results).
    """
    yc = centred(y, group)
    sizes = np.bincount(group).astype(np.float64)
    spread_y = np.bincount(group, weights=yc * yc)
    total_x, total_y = total_spread(x, group), float(spread_y.sum())
    variance = total_spread(x, group, spread_y / np.maximum(sizes - 1, 1))
    usable = variance > 1e-12 * max(1.0, total_y)
    scale = np.where(usable, np.sqrt(np.where(usable, variance, 1.0)), np.inf)
    xt = sparse.csr_matrix(x.T)
    cross = np.asarray(xt @ yc).ravel()
    z = cross / scale
    safe = np.where(total_x > 0, total_x, 1.0)
    sides = [
        (sign, at, np.log(share[at])) for sign, share in ((1.0, up), (-1.0, down)) for at in [np.flatnonzero(share)]
    ]
    observed = _score(z[:, None], sides)[:, 0]
    beaten = _step_down(xt, yc, group, scale, observed, sides, permutations, seed, block)
    # One standard error of the count is added: permutations are a sample, and their luck must not raise an alarm.
    upper = np.minimum((1 + beaten + np.sqrt(beaten)) / (permutations + 1), 1.0)
    return Association(
        z=z,
        r=np.asarray(cross / np.sqrt(safe * max(total_y, 1e-300))),
        adjusted=np.asarray(np.where(usable, upper, 1.0)),
        spread=np.asarray(total_x, np.float64),
        slope=np.asarray(cross / safe),
    )


Sides = list[tuple[float, I64, F64]]


def _score(z: F64, sides: Sides) -> F64:
    """Return the log of p over its share of the budget, the smaller of the two directions (0 at most)."""
    out = np.zeros(z.shape)
    for sign, rows, log_share in sides:
        part = z if len(rows) == len(z) and sign > 0 else sign * z[rows]
        feature, column = np.nonzero(part > FAR)
        score = log_ndtr(-part[feature, column]) - log_share[feature]
        at = rows[feature]
        out[at, column] = np.minimum(out[at, column], score)
    return out


def _step_down(
    xt: sparse.csr_matrix,
    yc: F64,
    group: I64,
    scale: F64,
    observed: F64,
    sides: Sides,
    permutations: int,
    seed: int,
    block: int,
) -> F64:
    """Return for each feature how many permutations have a smaller score among it and all weaker features."""
    weakest_first = np.argsort(-observed, kind="stable")
    bar = observed[weakest_first][:, None] + 1e-9
    beaten = np.zeros(len(observed))
    rng = np.random.default_rng(seed)
    for start in range(0, permutations if len(observed) else 0, block):
        shuffled = _shuffles(yc, group, min(block, permutations - start), rng)
        scores = _score(np.asarray(xt @ shuffled) / scale[:, None], sides)[weakest_first]
        beaten += (np.minimum.accumulate(scores, axis=0) <= bar).sum(axis=1)
    # A feature is beyond the floor only when all stronger ones are.
    steps = np.maximum.accumulate(beaten[::-1])[::-1]
    out = np.empty(len(observed))
    out[weakest_first] = steps
    return out


def _shuffles(yc: F64, group: I64, count: int, rng: np.random.Generator) -> F64:
    """Return rows x count: `yc` in random order within each task, tasks of one size at a time."""
    sizes = np.bincount(group)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(sizes) - sizes
    out = np.empty((len(yc), count))
    for size in np.unique(sizes[sizes > 0]).tolist():
        places = order[starts[sizes == size][:, None] + np.arange(size)]
        drawn = np.tile(yc[places], (count, 1, 1))
        rng.permuted(drawn, axis=2, out=drawn)
        out[places.ravel()] = drawn.reshape(count, -1).T
    return out


def slope_intervals(x: F64, y: F64, group: I64, confidence: float) -> tuple[F64, F64, F64]:
    """Return the within-task slopes and their cluster-robust intervals (Liang and Zeger 1986; t with tasks - 1).

    Args:
        x: Rows x features, dense.
        y: The target.
        group: Task of each row.
        confidence: Level of the intervals.
    """
    sizes = np.bincount(group).astype(np.float64)
    order = np.argsort(group, kind="stable")
    heads = np.cumsum(sizes).astype(np.int64) - sizes.astype(np.int64)
    x, y, group = x[order], y[order], group[order]
    xc = x - (np.add.reduceat(x, heads, axis=0) / sizes[:, None])[group]
    yc = centred(y, group)
    own = np.add.reduceat(xc * xc, heads, axis=0)
    cross = np.add.reduceat(xc * yc[:, None], heads, axis=0)
    total = own.sum(axis=0)
    informative = (own > 1e-12).sum(axis=0).astype(np.float64)
    good = (total > 0) & (informative >= 2)
    safe = np.where(good, total, 1.0)
    slope = np.where(good, cross.sum(axis=0) / safe, 0.0)
    share = np.where(good, informative / np.maximum(informative - 1, 1), 1.0)
    error = np.sqrt(((cross - slope * own) ** 2).sum(axis=0) * share) / safe
    half = np.where(good, stdtrit(np.maximum(informative - 1, 1), 0.5 + confidence / 2) * error, np.inf)
    return slope, slope - half, slope + half
