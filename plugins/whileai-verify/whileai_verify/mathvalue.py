"""Values of expressions: trees become sympy objects, and are compared exactly, to 50 digits, or at random points.

Runs only in a worker process.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped,import-not-found,unused-ignore]
import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]

from whileai_verify.mathparse import CannotReadError

__all__ = ["CONSTANT_DIGITS", "Options", "number_of", "same", "same_function", "to_sympy", "value_at"]

Tree = tuple[Any, ...]
_BIG = 100_000  # exponents and factorial arguments above this are not evaluated
_POINTS = 6
_EQUAL_DIGITS = 25
CONSTANT_DIGITS = 50


class _TooBigError(CannotReadError):
    """A number that is too large to evaluate."""


class Options:
    """What the caller asked for."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.rel_tol: float = options["rel_tol"]
        self.digits: int = options["digits"]
        self.units: str = options["units"]
        self.percent: str = options["percent"]


def to_sympy(tree: Tree) -> Any:
    """Return a sympy expression for a tree; `pm` is expanded before."""
    head = tree[0]
    if head == "num":
        return sympy.Rational(Fraction(tree[1]).numerator, Fraction(tree[1]).denominator)
    if head == "sym":
        return sympy.Symbol(tree[1])
    if head == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "oo": sympy.oo}[tree[1]]
    if head == "neg":
        return -to_sympy(tree[1])
    if head in ("add", "mul", "div"):
        a, b = to_sympy(tree[1]), to_sympy(tree[2])
        if head == "add":
            return a + b
        if head == "mul":
            return a * b
        if b == 0:
            raise CannotReadError("a division by zero")
        return a / b
    if head == "pow":
        return _power(to_sympy(tree[1]), to_sympy(tree[2]))
    if head == "fn" and tree[1] == "det":
        return sympy.Matrix([[to_sympy(cell) for cell in row[1:]] for row in tree[2:]]).det()
    if head == "fn":
        return _function(tree[1], [to_sympy(t) for t in tree[2:]])
    raise CannotReadError(f"{head} in an expression")


def _power(base: Any, exponent: Any) -> Any:
    if exponent.is_number and exponent.is_extended_real and abs(sympy.N(exponent, 5)) > _BIG:
        raise _TooBigError("an exponent above 100000")
    if base.is_Rational and exponent.is_Rational and base != 0:
        digits = max(len(str(abs(base.p))), len(str(base.q))) * abs(float(exponent))
        if digits > _BIG:
            raise _TooBigError("a power above 100000 digits")
    if base == 0 and exponent.is_number and exponent.is_negative:
        raise CannotReadError("a division by zero")
    return sympy.Pow(base, exponent)


_LOG_BASE = sympy.Symbol("base of log", positive=True)


def _function(name: str, args: list[Any]) -> Any:
    one = {
        "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan, "cot": sympy.cot, "sec": sympy.sec, "csc": sympy.csc,
        "asin": sympy.asin, "acos": sympy.acos, "atan": sympy.atan, "sinh": sympy.sinh, "cosh": sympy.cosh,
        "tanh": sympy.tanh, "ln": sympy.log, "exp": sympy.exp, "abs": sympy.Abs, "floor": sympy.floor,
        "ceil": sympy.ceiling, "cbrt": sympy.cbrt, "sqrt": sympy.sqrt,
    }  # fmt: skip
    if name in one and len(args) == 1:
        return one[name](args[0])
    if name == "log" and len(args) == 1:
        return sympy.log(args[0]) / sympy.log(_LOG_BASE)  # whether log means base 10 or e is not known
    if name == "lg" and len(args) == 1:
        return sympy.log(args[0]) / sympy.log(10)
    if name == "logb" and len(args) == 2:
        return sympy.log(args[0]) / sympy.log(args[1])
    if name == "root" and len(args) == 2:
        if args[0].is_negative and args[1].is_Integer and args[1] % 2 == 1:
            return -_power(-args[0], 1 / args[1])
        return _power(args[0], 1 / args[1])
    if name == "factorial" and len(args) == 1:
        if args[0].is_number and not (args[0].is_Integer and 0 <= args[0] <= 5_000):
            raise _TooBigError("a factorial that is not evaluated")
        return sympy.factorial(args[0])
    if name == "binomial" and len(args) == 2:
        if any(a.is_number and abs(a) > 5_000 for a in args):
            raise _TooBigError("a binomial that is not evaluated")
        return sympy.binomial(args[0], args[1])
    if name in ("gcd", "lcm") and len(args) >= 2 and all(a.is_Integer for a in args):
        return (sympy.gcd if name == "gcd" else sympy.lcm)(args)
    if name in ("max", "min") and args:
        return (sympy.Max if name == "max" else sympy.Min)(*args)
    raise CannotReadError(f"the function {name} with {len(args)} arguments")


def _decimals(tree: Tree) -> list[tuple[str, int]]:
    """Return every decimal literal of a tree with the number of its decimals."""
    if tree[0] == "num":
        return [] if tree[2] is None else [(tree[1], tree[2])]
    return [d for part in tree[1:] if isinstance(part, tuple) for d in _decimals(part)]


def same(a: Tree, b: Tree, opt: Options, factor: Any = None) -> bool:
    """Return whether two expressions have the same value."""
    if a == b and factor is None:
        return True
    try:
        x, y = to_sympy(a), to_sympy(b)
    except _TooBigError:
        return False
    if factor is not None:
        x, y = x * factor[0], y * factor[1]
    if x == y:
        return x is not sympy.nan
    for special in (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan):
        if special in (x, y):
            return False
    inexact = bool(_decimals(a) or _decimals(b))
    if not (x.free_symbols or y.free_symbols):
        return _same_constant(a, b, x, y, opt, inexact)
    return same_function(x, y, opt.rel_tol if inexact else 0.0)


def _same_constant(a: Tree, b: Tree, x: Any, y: Any, opt: Options, inexact: bool) -> bool:
    if x.is_Rational and y.is_Rational:
        if not inexact:
            return False
        return _close(Fraction(x.p, x.q), Fraction(y.p, y.q), a, b, opt)
    u, v = number_of(x), number_of(y)
    if u is None or v is None:
        return False
    with mpmath.workdps(CONSTANT_DIGITS + 10):
        size, gap = max(abs(u), abs(v)), abs(u - v)
        if gap <= size * mpmath.mpf(10) ** -CONSTANT_DIGITS or size < mpmath.mpf(10) ** -(CONSTANT_DIGITS + 150):
            return True
        if not inexact:
            return False
        if gap <= size * mpmath.mpf(opt.rel_tol):
            return True
        return _rounds(a, v, opt.digits) or _rounds(b, u, opt.digits)


def number_of(x: Any) -> Any:
    """Return the value of a constant as an mpmath number with 60 digits, or `None`."""
    value = sympy.N(x, CONSTANT_DIGITS + 10, maxn=400)
    re, im = value.as_real_imag()
    if not (re.is_Number and im.is_Number):
        return None
    with mpmath.workdps(CONSTANT_DIGITS + 10):
        return mpmath.mpc(mpmath.mpf(str(re)), mpmath.mpf(str(im)))


def _terminates(q: int) -> bool:
    for p in (2, 5):
        while q % p == 0:
            q //= p
    return q == 1


def _close(x: Fraction, y: Fraction, a: Tree, b: Tree, opt: Options) -> bool:
    """Compare rationals of which one is written as a decimal: 0.333333 is 1/3 to its digits, 0.33 is not."""
    if x.denominator == 1 and y.denominator == 1:
        return False
    gap, size = abs(x - y), max(abs(x), abs(y))
    if gap <= size * Fraction(min(opt.rel_tol, 1.0)) and opt.rel_tol > 1e-9:
        return True
    for tree, other in ((a, y), (b, x)):
        if not _terminates(other.denominator) and _rounds(
            tree, mpmath.mpf(other.numerator) / other.denominator, opt.digits
        ):
            return True
    return gap <= size * Fraction(1, 10**12)


def _rounds(tree: Tree, value: Any, digits: int) -> bool:
    """Return whether a plain decimal literal with enough digits is the value, rounded or cut to its last digit."""
    sign = 1
    while tree[0] == "neg":
        tree, sign = tree[1], -sign
    if tree[0] != "num" or tree[2] is None:
        return False
    literal = Fraction(tree[1]) * sign
    significant = len(str(abs(literal.numerator * 10 ** tree[2] // literal.denominator)).lstrip("0"))
    if significant < digits:
        return False
    with mpmath.workdps(CONSTANT_DIGITS + 10):
        written = mpmath.mpf(literal.numerator) / literal.denominator
        gap, step = abs(written - value), mpmath.mpf(10) ** -tree[2]
        return bool(gap <= step / 2 or (gap < step and abs(written) < abs(value)))


def same_function(x: Any, y: Any, rel_tol: float) -> bool:
    """Compare expressions with variables at random points, fixed by the expressions themselves."""
    symbols = sorted(x.free_symbols | y.free_symbols, key=str)
    if x.free_symbols != y.free_symbols and not _vanishes(x, y):
        return False
    draw = random.Random(20_240_611)
    compared = 0
    for attempt in range(8 * _POINTS):
        point = {s: _draw(s, draw, attempt) for s in symbols}
        u, v = value_at(x, point), value_at(y, point)
        if u is None and v is None:
            continue
        if u is None or v is None:
            return False
        with mpmath.workdps(40):
            size = max(abs(u), abs(v))
            limit = size * max(mpmath.mpf(10) ** -_EQUAL_DIGITS, mpmath.mpf(rel_tol)) + mpmath.mpf(10) ** -60
            if abs(u - v) > limit:
                return False
        compared += 1
        if compared >= _POINTS:
            return True
    return False


def _vanishes(x: Any, y: Any) -> bool:
    """Return whether the symbols that stand on one side only cancel there (`x - x + 2`)."""
    a, b = sympy.simplify(x), sympy.simplify(y)
    return bool(a.free_symbols == b.free_symbols)


def _draw(symbol: Any, draw: random.Random, attempt: int) -> Any:
    """Return a point: positive, negative, and complex values take turns."""
    size = sympy.Rational(draw.randint(11, 399), 97)
    if symbol.is_positive or attempt % 3 == 0:
        return size
    if attempt % 3 == 1:
        return -size
    return size + sympy.I * sympy.Rational(draw.randint(11, 199), 89)


def value_at(x: Any, point: dict[Any, Any]) -> Any:
    """Return the value of an expression at a point to 40 digits, or `None` where it has none."""
    value = sympy.N(x.subs(point), 40, maxn=200)
    re, im = value.as_real_imag()
    if not (re.is_Number and im.is_Number and re.is_finite and im.is_finite):
        return None
    with mpmath.workdps(40):
        return mpmath.mpc(mpmath.mpf(str(re)), mpmath.mpf(str(im)))
