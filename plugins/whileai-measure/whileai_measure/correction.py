"""A pass rate seen through an imperfect judge, corrected for its known errors.

A judge that passes 10 % of the wrong answers makes a policy with a true rate of 0 look like 0.10. With its sensitivity
and specificity, measured on labelled items, the true rate and an interval that carries all three uncertainties follow.

Example:
    >>> print(rogan_gladen(0.60, 200, sensitivity=(90, 100), specificity=(85, 100)))
    corrected 0.60 [0.49..0.71] (observed 0.60, sensitivity 0.90, specificity 0.85)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_measure.defaults import CONFIDENCE
from whileai_measure.intervals import Estimate, check_confidence

__all__ = ["CorrectedRate", "rogan_gladen"]


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A corrected pass rate.

    Attributes:
        value: The corrected rate, held within [0, 1].
        low: Lower bound.
        high: Upper bound.
        observed: The rate that the judge reported.
        sensitivity: Share of true passes that the judge passes.
        specificity: Share of true fails that the judge fails.
        confidence: Level.
        notes: What a reader must know.
    """

    value: float
    low: float
    high: float
    observed: float
    sensitivity: float
    specificity: float
    confidence: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = (
            f"corrected {self.value:.2f} [{self.low:.2f}..{self.high:.2f}] (observed {self.observed:.2f}, "
            f"sensitivity {self.sensitivity:.2f}, specificity {self.specificity:.2f})"
        )
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"notes": list(self.notes)}


def rogan_gladen(
    observed: float | Estimate,
    n: float | None = None,
    *,
    sensitivity: tuple[float, float],
    specificity: tuple[float, float],
    confidence: float = CONFIDENCE.value,
) -> CorrectedRate:
    """Return the pass rate corrected for a judge with measured errors.

    Args:
        observed: Pass rate that the judge reported, or an `Estimate` of it, whose effective sample size is used.
        n: Items (effective sample size) that a plain rate rests on.
        sensitivity: `(true passes that the judge passed, true passes labelled)`, at their effective size where the
            labelled rollouts come in tasks.
        specificity: `(true fails that the judge failed, true fails labelled)`.
        confidence: Level.

    Raises:
        ParameterError: Counts are impossible, or the judge is no better than chance: then nothing can be corrected.

    Source: Rogan and Gladen 1978 (estimate); Lang and Reiczigel 2014, section 2.2 (interval).
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + check_confidence(confidence) / 2))
    if isinstance(observed, Estimate):
        if observed.value is None or observed.effective is None:
            raise ParameterError("the estimate has no value or no effective size", fix="use the wilson interval")
        rate, size = observed.value, observed.effective
    else:
        if n is None:
            raise ParameterError("a plain rate needs the number of items it rests on", fix="pass n=")
        rate, size = float(observed), float(n)
    if not 0.0 <= rate <= 1.0 or size <= 0:
        raise ParameterError(f"a rate lies in [0, 1] and rests on items: {rate!r} of {size!r}")
    (hit, pos), (right, neg) = sensitivity, specificity
    for name, (a, b) in (("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0 <= a <= b or b < 1:
            raise ParameterError(f"{name} must be (right, labelled) with 0 <= right <= labelled, not {(a, b)!r}")
    se, sp = hit / pos, right / neg
    if se + sp <= 1.0:
        raise ParameterError(
            f"sensitivity {se:.2f} and specificity {sp:.2f} do not add up to more than 1",
            why="such a judge says nothing about the truth, so nothing can be corrected",
            fix="use another judge",
        )
    value = (rate + sp - 1) / (se + sp - 1)
    n1, p1 = size + z * z, (size * rate + z * z / 2) / (size + z * z)
    n_se, n_sp = pos + 2, neg + 2
    se1, sp1 = (hit + 1) / n_se, (right + 1) / n_sp
    youden = se1 + sp1 - 1
    centre = (p1 + sp1 - 1) / youden
    tilt = 2 * z * z * (centre * se1 * (1 - se1) / n_se - (1 - centre) * sp1 * (1 - sp1) / n_sp)
    spread = p1 * (1 - p1) / n1 + centre**2 * se1 * (1 - se1) / n_se + (1 - centre) ** 2 * sp1 * (1 - sp1) / n_sp
    half = z * spread**0.5 / abs(youden)
    low, high = (min(max(x, 0.0), 1.0) for x in (centre + tilt - half, centre + tilt + half))
    inside = min(max(value, 0.0), 1.0)
    notes = []
    if value != inside:
        notes.append(f"the correction gives {value:.3f}, outside [0, 1]: the judge's error rates do not fit these rows")
    if youden <= 0:
        low, high = 0.0, 1.0
        notes.append("too few labelled items to tell the judge from chance: the interval is all of [0, 1]")
    return CorrectedRate(inside, min(low, inside), max(high, inside), rate, se, sp, confidence, tuple(notes))
