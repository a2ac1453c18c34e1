"""The estimators of one task: pass@k and pass^k from n rollouts of which c passed.

Both draw k of the n rollouts without replacement, so they are unbiased for every k <= n and do not exist for
k > n. The plug-in forms 1 - (1 - c/n)^k and (c/n)^k are biased and are not offered.

Example:
    >>> pass_at_k([5], [2], 2), pass_hat_k([5], [2], 2)
    (array([0.7]), array([0.1]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["pass_at_k", "pass_hat_k"]


def pass_at_k(n: Sequence[int] | Any, c: Sequence[int] | Any, k: int) -> Floats:
    """Return the chance that at least one of k rollouts passes, per task: 1 - C(n-c, k) / C(n, k).

    Args:
        n: Scored rollouts per task, shape (tasks,).
        c: Passed rollouts per task, shape (tasks,), 0 <= c <= n.
        k: Rollouts drawn, at least 1.

    Returns:
        Shape (tasks,); NaN where n < k: the value does not exist there.

    Raises:
        ParameterError: k < 1, or a count is negative or above n.

    Source: Chen et al. 2021, section 2.1.
    """
    import numpy as np

    n_, c_ = _counts(n, c, k)
    return np.where(n_ < k, np.nan, 1.0 - _ratio(n_ - c_, n_, k))


def pass_hat_k(n: Sequence[int] | Any, c: Sequence[int] | Any, k: int) -> Floats:
    """Return the chance that all of k rollouts pass (pass^k), per task: C(c, k) / C(n, k).

    Args:
        n: Scored rollouts per task, shape (tasks,).
        c: Passed rollouts per task, shape (tasks,), 0 <= c <= n.
        k: Rollouts drawn, at least 1.

    Returns:
        Shape (tasks,); NaN where n < k: the value does not exist there.

    Raises:
        ParameterError: k < 1, or a count is negative or above n.

    Source: Yao et al. 2024 (tau-bench), section 3.
    """
    import numpy as np

    n_, c_ = _counts(n, c, k)
    return np.where(n_ < k, np.nan, _ratio(c_, n_, k))


def _counts(n: Any, c: Any, k: int) -> tuple[Any, Any]:
    import numpy as np

    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"k must be a whole number from 1, not {k!r}", fix="pass k=1 or more")
    n_, c_ = np.atleast_1d(np.asarray(n)), np.atleast_1d(np.asarray(c))
    if n_.dtype.kind not in "iu" or c_.dtype.kind not in "iu":
        raise ParameterError(
            "n and c are counts per task: whole numbers",
            why="a pass is a statement about one rollout; fractions of rewards are not passes",
            fix="count the rollouts whose reward reaches the threshold",
        )
    if np.any(c_ < 0) or np.any(c_ > n_):
        raise ParameterError(
            "passes must lie between 0 and the number of rollouts", fix="check the order: n first, then c"
        )
    return n_.astype(np.float64), c_.astype(np.float64)


def _ratio(top: Any, bottom: Any, k: int) -> Any:
    """Return C(top, k) / C(bottom, k) as a product, exact for small k and without overflow for large counts."""
    import numpy as np

    out = np.ones(np.broadcast(top, bottom).shape)
    for i in range(k):
        with np.errstate(divide="ignore", invalid="ignore"):
            out *= np.maximum(top - i, 0.0) / np.where(bottom - i > 0, bottom - i, np.nan)
    return out
