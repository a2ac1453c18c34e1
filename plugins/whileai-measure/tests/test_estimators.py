"""pass@k and pass^k against enumeration of all draws, and the published checks."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_measure import pass_at_k, pass_hat_k


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 2), (4, 1, 2), (4, 3, 2), (6, 0, 3), (6, 6, 3), (7, 4, 7), (1, 1, 1)])
def test_both_equal_the_enumeration_of_every_draw_of_k(n: int, c: int, k: int) -> None:
    outcomes = [1] * c + [0] * (n - c)
    draws = list(combinations(outcomes, k))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)
    assert pass_hat_k([n], [c], k)[0] == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)


@given(st.integers(1, 400), st.data())
def test_both_equal_the_ratio_of_exact_binomial_coefficients(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(1 - comb(n - c, k) / comb(n, k), abs=1e-9)
    assert pass_hat_k([n], [c], k)[0] == pytest.approx(comb(c, k) / comb(n, k), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("counts", "k", "expected"),
    [
        ([(5, 0)], 5, 0.0),
        ([(5, 1)], 5, 1.0),
        ([(150, 1)], 1, 1 / 150),
        ([(10, 3)], 5, 11 / 12),
        ([(4, 0), (4, 4), (4, 1)], 1, 5 / 12),
        ([(5, 2)], 2, 0.7),
        ([(4, 3)], 2, 1.0),
    ],
)
def test_pass_at_k_of_reported_inputs(counts: list[tuple[int, int]], k: int, expected: float) -> None:
    n, c = zip(*counts, strict=True)
    assert pass_at_k(n, c, k).mean() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "c", "expected"), [(5, 2, 0.1), (4, 1, 0.0), (4, 3, 0.5)])
def test_pass_hat_k_is_not_the_plug_in_power(n: int, c: int, expected: float) -> None:
    assert pass_hat_k([n], [c], 2)[0] == pytest.approx(expected, abs=1e-12)
    assert pass_hat_k([n], [c], 2)[0] != pytest.approx((c / n) ** 2, abs=1e-6)


def test_more_draws_than_rollouts_has_no_value() -> None:
    assert np.isnan(pass_at_k([3, 3], [0, 1], 7)).all()
    assert np.isnan(pass_hat_k([3, 3], [0, 1], 7)).all()


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_k_must_be_a_count(k: object) -> None:
    with pytest.raises(ParameterError, match="k must be"):
        pass_at_k([4], [1], k)  # type: ignore[arg-type]


def test_fractions_and_swapped_counts_are_refused() -> None:
    with pytest.raises(ParameterError, match="whole numbers"):
        pass_at_k([2], [1.2], 1)
    with pytest.raises(ParameterError, match="between 0"):
        pass_at_k([2], [3], 1)


def test_mean_over_draws_is_unbiased_for_the_power() -> None:
    p, n, k = 0.6, 6, 3
    weight = np.array([comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])
    counts = np.arange(n + 1)
    assert weight @ pass_hat_k(np.full(n + 1, n), counts, k) == pytest.approx(p**k, abs=1e-12)
    assert weight @ pass_at_k(np.full(n + 1, n), counts, k) == pytest.approx(1 - (1 - p) ** k, abs=1e-12)
