"""The sign-flip test of paired differences, and the interval that agrees with it.

Under the null hypothesis each paired difference could as well have the other sign. The test asks how often the sum of
randomly signed differences is at least as far from zero as the one observed. All sign patterns are enumerated while
there are few; otherwise they are drawn, with the +1 correction, so that the test never rejects too often.

The interval inverts the same test for a shift of all differences: a shift is kept when the test of the shifted
differences does not reject. Flipping a subset S turns `sum(e * (d - s)) >= sum(d - s)` into `mean(d over S) <= s`, so
the limits are order statistics of the means over subsets, and they exclude zero exactly when the test rejects.

Example:
    >>> flip = sign_flip([0.25, 0.5, 0.0, 0.25, 0.75, 0.25, 0.5, 0.25])
    >>> flip.p_value, flip.exact, flip.interval(0.95)
    (0.015625, True, (0.16666666666666666, 0.5))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whileai_measure.defaults import EXACT_TASKS, PERMUTATION_DRAWS, SEED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["SignFlip", "least_tasks", "sign_flip", "sign_flips"]

TIE = 1e-12  # means this close to zero are zero: differences of thirds do not cancel exactly in float64
GROUPS = 64  # with at most this many distinct differences, subsets are drawn as counts per value


@dataclass(frozen=True)
class SignFlip:
    """A sign-flip test: its p-value and the means over subsets that its intervals come from.

    Attributes:
        p_value: Two-sided p-value.
        exact: All sign patterns were enumerated.
        patterns: Sign patterns that the p-value rests on.
        low_means: Sorted means over subsets, the empty subset as -inf.
        high_means: The same with the empty subset as +inf.
    """

    p_value: float
    exact: bool
    patterns: int
    low_means: Floats
    high_means: Floats

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the shifts that the test at level `1 - confidence` does not reject; infinite where none is."""
        rank = int((1.0 - confidence) / 2.0 * self.patterns + 1e-9)  # means at or below a shift that still reject it
        if rank >= len(self.low_means):
            return -float("inf"), float("inf")
        return float(self.low_means[rank]), float(self.high_means[len(self.high_means) - 1 - rank])


def least_tasks(confidence: float) -> int:
    """Return the fewest paired tasks at which the two-sided test can reject: 6 at 0.95."""
    n = 1
    while 2.0**-n > (1.0 - confidence) / 2.0 + 1e-12:
        n += 1
    return n


def sign_flip(
    deltas: Any,
    *,
    draws: int = PERMUTATION_DRAWS.value,
    exact_tasks: int = EXACT_TASKS.value,
    seed: int = SEED.value,
) -> SignFlip:
    """Return the sign-flip test of paired differences, shape (tasks,).

    Args:
        deltas: Paired differences, without NaN.
        draws: Sign patterns drawn where they are not enumerated.
        exact_tasks: Up to this many tasks all patterns are enumerated.
        seed: Seed of the draws.

    Source: Fisher 1935, section 21 (test); Hartigan 1969 (subset means); Davison and Hinkley 1997, section 4.2.5.
    """
    import numpy as np

    return sign_flips(np.asarray(deltas, dtype=np.float64)[:, None], draws=draws, exact_tasks=exact_tasks, seed=seed)[0]


def sign_flips(
    deltas: Floats,
    *,
    draws: int = PERMUTATION_DRAWS.value,
    exact_tasks: int = EXACT_TASKS.value,
    seed: int = SEED.value,
) -> list[SignFlip]:
    """Return one test per column of differences, shape (tasks, metrics); all columns share the drawn patterns."""
    import numpy as np

    tasks, metrics = deltas.shape
    deltas = np.sort(deltas, axis=0)  # the answer must not depend on the order of the file
    if tasks == 0:
        empty = np.zeros(0)
        return [SignFlip(1.0, True, 1, empty, empty) for _ in range(metrics)]
    if tasks <= exact_tasks:
        return [_from_subsets(*_every_subset(deltas[:, j]), exact=True) for j in range(metrics)]
    out: list[SignFlip | None] = [None] * metrics
    many = []
    for j in range(metrics):
        values, counts = np.unique(deltas[:, j], return_counts=True)
        if len(values) <= GROUPS:
            rng = np.random.default_rng([seed, j])
            chosen = rng.binomial(counts[None, :], 0.5, size=(draws, len(values)))
            out[j] = _from_subsets(chosen @ values, chosen.sum(axis=1), exact=False)
        else:
            many.append(j)
    if many:
        sums, sizes = _drawn_subsets(deltas[:, many], draws, seed)
        for at, j in enumerate(many):
            out[j] = _from_subsets(sums[:, at], sizes, exact=False)
    return [flip for flip in out if flip is not None]


def _every_subset(d: Floats) -> tuple[Floats, Any]:
    """Return sum and size of each of the 2^n subsets."""
    import numpy as np

    sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    for value in d:
        sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + 1])
    return sums, sizes


def _drawn_subsets(deltas: Floats, draws: int, seed: int) -> tuple[Floats, Any]:
    """Return sums, shape (draws, metrics), and sizes, shape (draws,), of random subsets of the tasks.

    Every other subset is the complement of the one before: with a pattern its negative belongs to the reference set, so
    the test stays exact, at half the price.
    """
    import numpy as np

    tasks, metrics = deltas.shape
    half = -(-draws // 2)
    rng = np.random.default_rng([seed, 0xF11F])
    sums, sizes = np.empty((2 * half, metrics)), np.empty(2 * half, dtype=np.int64)
    row = -(-tasks // 8)
    step = max(1, 1_000_000 // tasks)  # one block of bits stays in the cache
    with_ones = np.column_stack([deltas, np.ones(tasks)])
    for start in range(0, half, step):
        count = min(step, half - start)
        raw = np.frombuffer(rng.bytes(count * row), dtype=np.uint8).reshape(count, row)
        bits = np.unpackbits(raw, axis=1, count=tasks).astype(np.float64)
        block = bits @ with_ones
        sums[start : start + count] = block[:, :-1]
        sizes[start : start + count] = np.rint(block[:, -1]).astype(np.int64)
    sums[half:], sizes[half:] = deltas.sum(axis=0) - sums[:half], tasks - sizes[:half]
    sums, sizes = sums[:draws], sizes[:draws]
    return sums, sizes


def _from_subsets(sums: Floats, sizes: Any, *, exact: bool) -> SignFlip:
    import numpy as np

    filled = sizes > 0
    means = sums[filled] / sizes[filled]
    tied = np.flatnonzero(np.abs(means) < TIE)
    # Half of the tied patterns count on either side (mid-p, Lancaster 1961): differences of a few rollouts lie on a
    # coarse grid, and full ties would cost several points of power. The observed pattern always counts in full.
    half = len(tied) // 2
    means[tied[:half]], means[tied[half : 2 * half]], means[tied[2 * half :]] = -TIE, TIE, 0.0
    means.sort()
    empty = len(sizes) - len(means)
    low, high = np.full(empty, -np.inf), np.full(empty, np.inf)
    low_means, high_means = np.concatenate([low, means]), np.concatenate([means, high])
    # Enumerated, the identity (empty subset) is among the patterns; drawn, it is the one that the +1 adds.
    extra = 0 if exact else 1
    total = len(sizes) + extra
    up = (extra + empty + int(np.searchsorted(means, 0.0, side="right"))) / total
    down = (extra + empty + len(means) - int(np.searchsorted(means, 0.0, side="left"))) / total
    if extra:
        low_means, high_means = np.concatenate([[-np.inf], low_means]), np.concatenate([high_means, [np.inf]])
    return SignFlip(min(1.0, 2.0 * min(up, down)), exact, total, low_means, high_means)
