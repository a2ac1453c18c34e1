"""Krippendorff's alpha: any number of raters, missing ratings, nominal, ordinal or interval labels.

Example:
    >>> print(krippendorff_alpha([[1, 1, 0, 1, 0, 0, 1, 0, 1, None], [1, 1, 0, 1, 0, 1, 1, 0, 1, 0]]))
    0.78 [-0.09..0.99]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_measure.chance import cluster_codes, design_effect, posterior_interval
from whileai_measure.defaults import BOOTSTRAP_DRAWS, CONFIDENCE, SEED
from whileai_measure.intervals import Estimate, check_confidence

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["absent", "krippendorff_alpha"]

LEVELS = ("nominal", "ordinal", "interval")


def absent(label: Any) -> bool:
    """Return whether a label is missing: `None` or NaN."""
    return label is None or (isinstance(label, float) and label != label)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Any]],
    *,
    level: str = "nominal",
    clusters: Sequence[Any] | None = None,
    confidence: float = CONFIDENCE.value,
    draws: int = BOOTSTRAP_DRAWS.value,
    seed: int = SEED.value,
) -> Estimate:
    """Return Krippendorff's alpha of any number of raters, with missing values.

    Args:
        ratings: One sequence per rater, one entry per item; `None` or NaN is missing.
        level: `nominal`, `ordinal` (by rank) or `interval` (by value).
        clusters: One label per item; items with one label (rollouts of one task) are one independent unit.
        confidence: Level of the interval (see `chance`).
        draws: Draws behind the interval.
        seed: Seed of the draws.

    Returns:
        Alpha; without value where fewer than two items have two ratings, or all ratings are equal.

    Raises:
        ParameterError: Raters differ in length, or the level is unknown.

    Source: Krippendorff 2004, section 11.3 (coincidence matrix and metrics).
    """
    import numpy as np

    if level not in LEVELS:
        unknown_name("level", level, LEVELS)
    check_confidence(confidence)
    counts, values, kept = _counts(ratings)
    if level == "interval" and any(isinstance(v, str) for v in values):
        raise ParameterError("level interval needs numbers", fix="use level='nominal' for names")
    codes = cluster_codes(clusters, len(kept))[kept]
    items, units = len(counts), len(np.unique(codes))
    none = Estimate(None, None, None, items, units, None, "posterior", confidence)
    if items < 2:
        return none
    patterns, which, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    q, per = len(values), patterns.sum(axis=1)
    # Coincidences of one item: pairs of ratings, each item weighted by 1 / (ratings - 1).
    pairs = (patterns[:, :, None] * patterns[:, None, :] - np.einsum("iv,vw->ivw", patterns, np.eye(q))) / (
        per[:, None, None] - 1
    )
    total = float(times @ per)

    def alpha(o: Floats, correction: float = 1.0) -> Floats:
        return _alpha(o, values, level, correction)

    value = float(alpha(np.tensordot(times, pairs, axes=1)[None] / total, total / (total - 1))[0])
    if value != value:
        return none
    # The prior is spread over items with one rating of each of two labels: for two raters, the cells of their table.
    cell = np.zeros((q * q, q, q))
    for i, (v, w) in enumerate(np.ndindex(q, q)):
        cell[i, v, w] += 1.0
        cell[i, w, v] += 1.0
    every = np.concatenate([pairs, cell])
    prior = np.concatenate([np.zeros(len(patterns)), np.full(q * q, 1.0 / q**2)])
    low, high = posterior_interval(
        np.concatenate([times, np.zeros(q * q)]),
        prior,
        lambda w: alpha(np.tensordot(w, every, axes=1)),
        value,
        units=units,
        effect=design_effect(_influence(pairs, times, alpha)[which], codes),
        confidence=confidence,
        draws=draws,
        seed=seed,
    )
    return Estimate(value, low, min(high, 1.0), items, units, None, "posterior", confidence)


def _counts(ratings: Sequence[Sequence[Any]]) -> tuple[Floats, list[Any], Any]:
    """Return how often each item has each label, the labels, and which items have two ratings or more."""
    import numpy as np

    rows = [list(r) for r in ratings]
    if len({len(r) for r in rows}) > 1 or len(rows) < 2:
        raise ParameterError("alpha needs two raters or more, each with one entry per item", fix="pass equal lists")
    values = sorted({v for r in rows for v in r if not absent(v)}, key=lambda v: (isinstance(v, str), v))
    place = {v: i for i, v in enumerate(values)}
    counts = np.zeros((len(rows[0]), max(len(values), 1)))
    for r in rows:
        for item, v in enumerate(r):
            if not absent(v):
                counts[item, place[v]] += 1
    kept = counts.sum(axis=1) >= 2
    return counts[kept], values, kept


def _alpha(o: Floats, values: Sequence[Any], level: str, correction: float) -> Floats:
    """Return alpha of coincidence matrices, shape (..., labels, labels); `correction` is n / (n - 1) of n ratings."""
    import numpy as np

    marginal = o.sum(axis=-1)
    whole = marginal.sum(axis=-1)[..., None]
    marginal = marginal / np.maximum(whole, 1e-300)
    if level == "nominal":
        distance = 1.0 - np.eye(o.shape[-1])
    else:
        at = np.array(values, dtype=np.float64) if level == "interval" else np.cumsum(marginal, -1) - marginal / 2
        distance = np.square(at[..., :, None] - at[..., None, :])
    expected = np.einsum("...v,...w->...vw", marginal, marginal) * distance
    bottom = expected.sum(axis=(-2, -1)) * correction
    top = (o / np.maximum(whole[..., None], 1e-300) * distance).sum(axis=(-2, -1))
    return np.where(bottom > 1e-12, 1.0 - top / np.maximum(bottom, 1e-300), np.nan)


def _influence(pairs: Floats, times: Any, alpha: Any) -> Floats:
    """Return the influence of one item of each pattern, by a small change of its weight."""
    import numpy as np

    base, step = np.tensordot(times, pairs, axes=1), 1e-5
    out: Floats = (alpha(base + step * pairs) - alpha(base[None])) / step
    return out
