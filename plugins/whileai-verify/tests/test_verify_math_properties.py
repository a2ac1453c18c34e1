"""MathEqual against an independent oracle: random expressions evaluated with Python's own complex numbers."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from whileai_verify import MathEqual

pytest.importorskip("math_verify")

Value = Callable[[complex], complex]


@dataclass(frozen=True)
class Expr:
    """An expression written twice, with its value as a function of x and whether it is bare."""

    latex: str
    plain: str
    value: Value


def number(n: int) -> Expr:
    return Expr(str(n), str(n), lambda x: complex(n))


X = Expr("x", "x", lambda x: x)


def plus(a: Expr, b: Expr) -> Expr:
    return Expr(f"{a.latex}+{b.latex}", f"({a.plain} + {b.plain})", lambda x: a.value(x) + b.value(x))


def times(a: Expr, b: Expr) -> Expr:
    latex = rf"\left({a.latex}\right)\left({b.latex}\right)"
    return Expr(latex, f"({a.plain})*({b.plain})", lambda x: a.value(x) * b.value(x))


def over(a: Expr, b: Expr) -> Expr:
    return Expr(rf"\frac{{{a.latex}}}{{{b.latex}}}", f"({a.plain})/({b.plain})", lambda x: a.value(x) / b.value(x))


def squared(a: Expr) -> Expr:
    return Expr(rf"\left({a.latex}\right)^{{2}}", f"({a.plain})^2", lambda x: a.value(x) ** 2)


def rooted(a: Expr) -> Expr:
    return Expr(rf"\sqrt{{{a.latex}}}", f"sqrt({a.plain})", lambda x: cmath.sqrt(a.value(x)))


def sine(a: Expr) -> Expr:
    return Expr(rf"\sin\left({a.latex}\right)", f"sin({a.plain})", lambda x: cmath.sin(a.value(x)))


def expressions(leaves: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.recursive(
        leaves,
        lambda e: st.one_of(
            st.builds(plus, e, e), st.builds(times, e, e), st.builds(over, e, e), st.builds(squared, e),
            st.builds(rooted, e), st.builds(sine, e),
        ),
        max_leaves=6,
    )  # fmt: skip


POINTS = (0.7 + 0j, 1.9 + 0j, -1.3 + 0j, 0.4 + 0.9j)
VERIFIER = MathEqual(deadline=20.0)


def values(e: Expr) -> list[complex] | None:
    try:
        found = [e.value(p) for p in POINTS]
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return found if all(math.isfinite(abs(v)) and abs(v) < 1e9 for v in found) else None


with_x = expressions(st.one_of(st.integers(1, 9).map(number), st.just(X)))
constants = expressions(st.integers(1, 9).map(number))


@given(st.one_of(with_x, constants))
@settings(max_examples=60, deadline=None)
def test_latex_and_plain_say_the_same(e: Expr) -> None:
    assume(values(e) is not None)
    assert VERIFIER.equal(e.latex, e.plain)["reward"] == 1.0, (e.latex, e.plain)


@given(st.one_of(st.tuples(with_x, with_x), st.tuples(constants, constants)))
@settings(max_examples=80, deadline=None)
def test_expressions_of_different_value_are_not_equal(pair: tuple[Expr, Expr]) -> None:
    a, b = pair
    u, v = values(a), values(b)
    assume(u is not None and v is not None)
    assert u is not None
    assert v is not None
    assume(any(abs(p - q) > 1e-6 * (1 + abs(p)) for p, q in zip(u, v, strict=True)))
    got = VERIFIER.equal(a.latex, b.plain)
    assert got["reward"] == 0.0, (a.latex, b.plain, got)
    assert VERIFIER.equal(b.plain, a.latex)["reward"] == 0.0


@given(st.fractions(max_denominator=999), st.fractions(max_denominator=999))
@settings(max_examples=60, deadline=None)
def test_rationals_are_exact(a: Fraction, b: Fraction) -> None:
    gold = rf"\frac{{{a.numerator}}}{{{a.denominator}}}"
    assert VERIFIER.equal(gold, f"{b.numerator}/{b.denominator}")["reward"] == float(a == b)
    assert VERIFIER.equal(gold, f"{3 * a.numerator}/{3 * a.denominator}")["reward"] == 1.0


@given(st.text(alphabet="0123456789+-*/^(){}[]\\frac sqrtxpi=<>,.|!_&$% ", max_size=40))
@settings(max_examples=150, deadline=None)
def test_junk_never_equals_a_number_it_is_not(text: str) -> None:
    got = VERIFIER.equal("987654321", text)
    assert got["reward"] in (0.0, None) or "987654321" in text or "9" in text
    assert VERIFIER.equal("987654321", "987654321")["reward"] == 1.0


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_sets_have_no_order_and_tuples_have(items: list[int], draw: object) -> None:
    other = sorted(items, reverse=True)
    bag, same = ", ".join(map(str, items)), ", ".join(map(str, other))
    assert VERIFIER.equal(rf"\{{{bag}\}}", rf"\{{{same}\}}")["reward"] == 1.0
    assert VERIFIER.equal(f"({bag})", f"({same})")["reward"] == float(items == other)
    assert VERIFIER.equal(rf"\{{{bag}\}}", rf"\{{{bag}, 99\}}")["reward"] == 0.0
