"""Disjoint (better, worse) pairs of one task: as many as there can be, then the closest lengths; exact.

Every row may stand on either side, so the candidate pairs are the edges of a general graph. The assignment of all rows
to all rows (Kuhn 1955) solves its relaxation, in which a pair may count half; where the assignment falls apart into
pairs and even cycles, which is the common case, that is the optimum (Balinski 1965). An odd cycle is left to a
branch-and-bound solver (HiGHS through scipy). It knows lengths and rewards, nothing about rows.

Example:
    >>> match([1.0, 0.5, 0.0], [40, 41, 80], ["q"] * 3, ["x", "y", "z"], list("abc"), margin=0.5, max_ratio=1.5, seed=0)
    [(0, 1)]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from whileai_select._rows import draw

F64 = NDArray[np.float64]

__all__ = ["match"]

ROUNDING = 1e-12
"""Slack of a reward difference: 0.8 - 0.3 is a margin of 0.5."""


def match(
    scores: Sequence[float],
    lengths: Sequence[int],
    asks: Sequence[str],
    replies: Sequence[str],
    names: Sequence[str],
    *,
    margin: float,
    max_ratio: float | None,
    seed: int,
) -> list[tuple[int, int]]:
    """Return disjoint (better, worse) pairs, closest lengths first.

    Args:
        scores: Reward of each row.
        lengths: Length of each row in characters.
        asks: What each row answers; only equal ones pair.
        replies: What each row says; equal ones do not pair.
        names: Name of each row, which with the seed decides between equally good matchings.
        margin: Least reward difference of a pair.
        max_ratio: Most that one side may be longer than the other; `None` for any.
        seed: Seed.
    """
    score = np.asarray(scores, np.float64)
    if len(score) < 2 or float(score.max() - score.min()) < margin - ROUNDING:
        return []
    log_length = np.log1p(np.asarray(lengths, np.float64))
    cost = np.abs(log_length[:, None] - log_length[None, :])
    bar = math.inf if max_ratio is None else math.log(max_ratio) + 1e-12
    _, ask = np.unique(np.asarray(asks), return_inverse=True)
    _, reply = np.unique(np.asarray(replies), return_inverse=True)
    gap = np.abs(score[:, None] - score[None, :]) >= margin - ROUNDING
    open_pair = gap & (cost <= bar) & (ask[:, None] == ask[None, :]) & (reply[:, None] != reply[None, :])
    np.fill_diagonal(open_pair, False)
    if not open_pair.any():
        return []
    edges = np.argwhere(np.triu(open_pair))
    price = np.full(cost.shape, np.inf)
    for i, j in edges.tolist():
        price[i, j] = price[j, i] = cost[i, j] + 1e-9 * draw(seed, *sorted((names[i], names[j])))
    pairs = _assigned(price, edges)
    best = [(i, j) if score[i] > score[j] else (j, i) for i, j in pairs]
    return sorted(best, key=lambda pair: (float(cost[pair]), pair))


def _assigned(price: F64, edges: NDArray[np.int64]) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    # Leaving a row out costs more than all pairs together, so the number of pairs comes first.
    alone = 1.0 + float(price[edges[:, 0], edges[:, 1]].sum())
    table = price.copy()
    np.fill_diagonal(table, alone)
    _, partner = linear_sum_assignment(table)
    pairs: list[tuple[int, int]] = []
    for cycle in _cycles(partner.tolist()):
        if len(cycle) % 2 and len(cycle) > 1:
            return _branch_and_bound(price, edges, alone)
        pairs += zip(cycle[::2], cycle[1::2], strict=False)
    return pairs


def _cycles(partner: Sequence[int]) -> Iterator[list[int]]:
    seen: set[int] = set()
    for start in range(len(partner)):
        cycle = []
        while start not in seen:
            seen.add(start)
            cycle.append(start)
            start = partner[start]
        if cycle:
            yield cycle


def _branch_and_bound(price: F64, edges: NDArray[np.int64], alone: float) -> list[tuple[int, int]]:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix

    n = len(edges)
    ones = csr_matrix((np.ones(2 * n), (edges.T.ravel(), np.tile(np.arange(n), 2))), shape=(len(price), n))
    found = milp(
        price[edges[:, 0], edges[:, 1]] - 2 * alone,
        constraints=LinearConstraint(ones, ub=1),
        integrality=np.ones(n, np.int64),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise RuntimeError(f"the matching of {len(price)} rows was not solved: {found.message}")
    return [(int(i), int(j)) for i, j in edges[found.x > 0.5].tolist()]
