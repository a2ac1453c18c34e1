"""What the sampling of rollouts says about the variance of pass^k and pass@k, apart from the values seen.

pass^k of a hard set is carried by rare tasks, and a sample often lacks them: then the spread between the values seen is
far too small. Two models of the counts bound it: tasks of one difficulty (binomial counts) give the largest effective
sample size there can be, and the beta-binomial with the mean and the spread of the counts gives the variance to expect.

Elementwise over samples of the same design, so that a study can run it on thousands at once.

Example:
    >>> ceiling, expected = limits([4], [50], 4, "hat", mean=0.2, rate=0.42, spread=0.13)
    >>> round(float(ceiling[0])), round(float(expected[0]), 4)
    (50, 0.0027)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from whileai_measure.estimators import pass_at_k, pass_hat_k

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["limits"]


def limits(
    sizes: Sequence[int], tasks: Sequence[int], k: int, which: str, *, mean: Any, rate: Any, spread: Any
) -> tuple[Floats, Floats]:
    """Return the largest effective sample size and the expected variance of the mean, elementwise over samples.

    Args:
        sizes: Distinct numbers of rollouts per task.
        tasks: Tasks of each size.
        k: Rollouts drawn.
        which: `"hat"` for pass^k, `"at"` for pass@k.
        mean: Estimate of pass^k or pass@k.
        rate: Share of rollouts that pass.
        spread: Variance of the share of passes between tasks.

    Returns:
        Ceiling (the number of tasks where nothing can be said) and expected variance (0 there).

    Source: law of total variance; beta-binomial by moments, Skellam 1948.
    """
    import numpy as np
    from scipy.special import betaln, gammaln

    m, r, s = (np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (mean, rate, spread))
    total = float(sum(tasks))
    known = (m > 0) & (m < 1) & (r > 0) & (r < 1)
    m, r = np.where(known, m, 0.5), np.where(known, r, 0.5)
    p = m ** (1.0 / k) if which == "hat" else 1.0 - (1.0 - m) ** (1.0 / k)
    usual = total / sum(t / n for n, t in zip(sizes, tasks, strict=True))
    within = r * (1 - r)
    rho = np.clip((s / within * usual - 1.0) / max(usual - 1.0, 1e-9), 1e-4, 0.999)
    strength = 1.0 / rho - 1.0
    a, b = r * strength, (1.0 - r) * strength
    single, model = np.zeros(len(m)), np.zeros(len(m))
    for n, t in zip(sizes, tasks, strict=True):
        x = np.arange(n + 1.0)
        whole, count = np.full(n + 1, n), np.arange(n + 1)
        h = pass_hat_k(whole, count, k) if which == "hat" else pass_at_k(whole, count, k)
        choose = gammaln(n + 1.0) - gammaln(x + 1) - gammaln(n - x + 1)
        one = np.exp(choose + x * np.log(p)[:, None] + (n - x) * np.log1p(-p)[:, None])
        many = np.exp(choose + betaln(x + a[:, None], n - x + b[:, None]) - betaln(a, b)[:, None])
        single += t * (one @ h**2 - (one @ h) ** 2)
        model += t * (many @ h**2 - (many @ h) ** 2)
    with np.errstate(divide="ignore"):
        ceiling = np.where(known & (single > 0), m * (1 - m) * total**2 / single, total)
    return ceiling, np.where(known, model / total**2, 0.0)
