"""Worker side of `matheq.MathEqual`: are two answers equal as mathematics?

Runs only in a worker process, which is killed at its deadline. Two answers are equal when their structure is the same
(sets without order, sequences with order and brackets, relations up to a factor, intervals and inequalities by their
solution set) and their expressions have equal values: rationals exactly, other constants to 50 digits, expressions
with variables at random real and complex points to 30 digits. Unread sides are never equal.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import math_verify  # loaded before the first deadline runs
import mpmath  # type: ignore[import-untyped,import-not-found,unused-ignore]
import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]
from latex2sympy2_extended import latex2sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]

from whileai_verify.mathparse import CannotReadError, parse_answer
from whileai_verify.mathvalue import (
    CONSTANT_DIGITS,
    Options,
    number_of,
    same,
    same_function,
    to_sympy,
    value_at,
)
from whileai_verify.units import UNITS

Tree = tuple[Any, ...]


def work(argument: Any) -> dict[str, Any]:
    """Return `{"equal": bool}`, `{"gold": reason}` for an unreadable reference, or `{"said": reason}`.

    Args:
        argument: `[gold, said, options]`, both texts.
    """
    gold, said, options = argument
    opt = Options(options)
    try:
        a = parse_answer(gold)
        _check(a)
    except (CannotReadError, RecursionError) as error:
        return _library(gold, said, str(error), opt)
    try:
        b = parse_answer(said)
        equal = _equal(a, b, opt)
    except (CannotReadError, RecursionError) as error:
        if a[0] == "text":
            return {"said": str(error)}
        return _library(gold, said, str(error), opt, gold_read=True)
    return {"equal": equal}


def _check(tree: Tree) -> None:
    """Raise `CannotReadError` for a reference that cannot be evaluated."""
    tree = _expand(tree)
    for item in tree[1] if tree[0] in ("set", "list") else [tree]:
        if item[0] == "scalar":
            to_sympy(item[1])


def _equal(a: Tree, b: Tree, opt: Options) -> bool:
    """Return whether two answers are equal; the order of the arguments does not matter."""
    a, b = _name_first(_expand(a)), _name_first(_expand(b))
    if a[0] == "rel" and b[0] != "rel":
        return _relation_and_other(a, b, opt)
    if b[0] == "rel" and a[0] != "rel":
        return _relation_and_other(b, a, opt)
    if a[0] == "rel":
        return _relations(a, b, opt)
    if "text" in (a[0], b[0]):
        return bool(a == b)
    if a[0] == "scalar" and b[0] == "scalar":
        return _scalars(a, b, opt)
    bags = ("set", "list")
    if a[0] in bags and b[0] in bags:
        return _bags(a, b, opt)
    for one, other in ((a, b), (b, a)):
        if one[0] == "set" and len(one[1]) == 1 and other[0] == "scalar":
            return _equal(one[1][0], other, opt)
    x, y = _solution_set(a), _solution_set(b)
    if x is not None and y is not None:
        return _same_sets(x, y, opt)
    if a[0] == "seq" and b[0] == "seq":
        return (a[1], a[2], len(a[3])) == (b[1], b[2], len(b[3])) and all(
            _equal(p, q, opt) for p, q in zip(a[3], b[3], strict=True)
        )
    if a[0] == "matrix" and b[0] == "seq":
        a, b = b, a
    if a[0] == "seq" and b[0] == "matrix":
        rows = _as_matrix(a)
        return rows is not None and _equal(("matrix", rows), b, opt)
    if a[0] == "matrix" and b[0] == "matrix":
        return len(a[1]) == len(b[1]) and all(
            len(p) == len(q) and all(same(u, v, opt) for u, v in zip(p, q, strict=True))
            for p, q in zip(a[1], b[1], strict=True)
        )
    return False


def _name_first(tree: Tree) -> Tree:
    """Write `2 = x` as `x = 2`."""
    if tree[0] == "rel" and len(tree[1]) == 3:
        left, op, right = tree[1]
        if op == "=" and right[0] == "sym" and not _has_symbol(left):
            return ("rel", [right, op, left])
    return tree


def _as_matrix(seq: Tree) -> list[list[Tree]] | None:
    """Return the rows of `[[1, 2], [3, 4]]`, or `None`."""
    if seq[1] != "[" or not all(r[0] == "seq" and r[1] == "[" and all(c[0] == "scalar" for c in r[3]) for r in seq[3]):
        return None
    return [[c[1] for c in r[3]] for r in seq[3]]


def _expand(tree: Tree) -> Tree:
    """Turn an expression with a plus-minus sign into the set of its two values."""
    if tree[0] == "scalar" and _has_pm(tree[1]):
        return ("set", [("scalar", _choose(tree[1], s), tree[2], tree[3]) for s in (True, False)])
    if tree[0] == "rel" and any(_has_pm(t) for t in tree[1][::2]):
        if len(tree[1]) != 3:
            raise CannotReadError("a plus-minus sign in a chain")
        return ("list", [("rel", [_choose(tree[1][0], s), tree[1][1], _choose(tree[1][2], s)]) for s in (True, False)])
    if tree[0] in ("set", "list"):
        items: list[Tree] = []
        for item in tree[1]:
            wide = _expand(item)
            items += (
                wide[1] if wide[0] in ("set", "list") and wide is not item and item[0] in ("scalar", "rel") else [item]
            )
        return (tree[0], items)
    return tree


def _has_pm(tree: Tree) -> bool:
    return tree[0] == "pm" or any(isinstance(p, tuple) and _has_pm(p) for p in tree[1:])


def _choose(tree: Tree, plus: bool) -> Tree:
    if tree[0] == "pm":
        a, b = _choose(tree[1], plus), _choose(tree[2], plus)
        return ("add", a, b if plus == tree[3] else ("neg", b))
    return tuple(_choose(p, plus) if isinstance(p, tuple) else p for p in tree)


def _scalars(a: Tree, b: Tree, opt: Options) -> bool:
    factor = _unit_factor(a[2], b[2], opt)
    if factor is None:
        return False
    if opt.percent == "value":
        hundred = sympy.Rational(1, 100)
        scale = (hundred if a[3] else 1, hundred if b[3] else 1)
        factor = (factor[0] * scale[0], factor[1] * scale[1])
    return same(a[1], b[1], opt, None if factor == (1, 1) else factor)


def _unit_factor(a: str, b: str, opt: Options) -> Any:
    """Return the factors that bring two units to one, or `None` when they do not agree."""
    a, b = _unit(a), _unit(b)
    if a == b or opt.units == "ignore" or (opt.units == "optional" and "" in (a, b)):
        return (1, 1)
    if a not in UNITS or b not in UNITS or UNITS[a][0] != UNITS[b][0]:
        return None
    return tuple(sympy.Rational(Fraction(repr(UNITS[u][1])).limit_denominator(10**12)) for u in (a, b))


def _unit(name: str) -> str:
    return " ".join(name.split())


def _bags(a: Tree, b: Tree, opt: Options) -> bool:
    """Compare collections without order; in sets, repeated elements count once."""
    x, y = list(a[1]), list(b[1])
    if "set" in (a[0], b[0]):
        x, y = _distinct(x, opt), _distinct(y, opt)
    if len(x) != len(y):
        return False
    if _named(x) != _named(y):
        x, y = (_unnamed(x), _unnamed(y)) if not (_named(x) and _named(y)) else (x, y)
    left = list(y)
    for item in x:
        hit = next((n for n, other in enumerate(left) if _equal(item, other, opt)), None)
        if hit is None:
            return False
        del left[hit]
    return True


def _distinct(items: list[Tree], opt: Options) -> list[Tree]:
    out: list[Tree] = []
    for item in items:
        if not any(_equal(item, other, opt) for other in out):
            out.append(item)
    return out


def _named(items: list[Tree]) -> bool:
    return all(i[0] == "rel" for i in items)


def _unnamed(items: list[Tree]) -> list[Tree]:
    """Return the values of `x = 1, x = 2`; items of different names stay as they are."""
    if not _named(items) or len({i[1][0] for i in items}) != 1:
        return items
    return [_assigned(i) or i for i in items]


def _assigned(rel: Tree) -> Tree | None:
    """Return the value of `name = value` (chains of equal values too), or `None`."""
    sides, ops = rel[1][::2], rel[1][1::2]
    if any(op != "=" for op in ops) or sides[0][0] != "sym":
        return None
    return ("scalar", sides[-1], "", False)


def _consistent(values: list[Tree], opt: Options) -> bool:
    return all(same(values[0], v, opt) for v in values[1:])


def _relation_and_other(rel: Tree, other: Tree, opt: Options) -> bool:
    """Compare a relation with what is not one: `x = 2` with `2`, `2 + 2 = 4` with `4`, `x > 2` with an interval."""
    sides, ops = rel[1][::2], rel[1][1::2]
    if all(op == "=" for op in ops):
        values = sides[1:] if sides[0][0] == "sym" else sides
        if sides[0][0] != "sym" and any(_has_symbol(s) for s in sides):
            return False
        return _consistent(values, opt) and _equal(("scalar", values[-1], "", False), other, opt)
    x, y = _solution_set(rel), _solution_set(other)
    return x is not None and y is not None and _same_sets(x, y, opt)


def _has_symbol(tree: Tree) -> bool:
    return tree[0] == "sym" or any(isinstance(p, tuple) and _has_symbol(p) for p in tree[1:])


_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!=", "==": "=="}


def _relations(a: Tree, b: Tree, opt: Options) -> bool:
    p, q = _assigned(a), _assigned(b)
    if p is not None and q is not None and a[1][0] == b[1][0]:
        return all(_consistent(r[1][2::2], opt) for r in (a, b)) and _equal(p, q, opt)
    x, y = _solution_set(a), _solution_set(b)
    if x is not None and y is not None:
        return _variable(a) == _variable(b) and _same_sets(x, y, opt)
    if len(a[1]) != 3 or len(b[1]) != 3:
        return False
    return _proportional(a, b, opt)


def _proportional(a: Tree, b: Tree, opt: Options) -> bool:
    """Return whether two relations say the same: their differences of sides are a constant factor apart."""
    op, other = a[1][1], b[1][1]
    f = to_sympy(("add", a[1][0], ("neg", a[1][2])))
    g = to_sympy(("add", b[1][0], ("neg", b[1][2])))
    if f.free_symbols != g.free_symbols or not f.free_symbols:
        return False
    draw = random.Random(7)
    for _ in range(20):
        point = {s: sympy.Rational(draw.randint(101, 997), 89) for s in f.free_symbols}
        u, v = value_at(f, point), value_at(g, point)
        if u is None or v is None or abs(u) < 1e-20 or abs(v) < 1e-20:
            continue
        with mpmath.workdps(40):
            ratio = u / v
            if abs(ratio.imag) > mpmath.mpf(10) ** -30 * abs(ratio):
                return False
        factor = sympy.nsimplify(sympy.Float(str(ratio.real), 35), rational=True, tolerance=sympy.Float("1e-28"))
        wanted = other if factor > 0 else _FLIP[other]
        return bool(op == wanted and same_function(f, g * factor, 0.0))
    return False


def _variable(rel: Tree) -> str | None:
    names = {s[1] for s in rel[1][::2] if s[0] == "sym"}
    return next(iter(names)) if len(names) == 1 else None


Piece = tuple[Tree, bool, Tree, bool]  # lower end, open?, upper end, open?
_LOW, _HIGH = ("neg", ("const", "oo")), ("const", "oo")


def _solution_set(tree: Tree) -> list[Piece] | None:
    """Return the intervals of an answer that is a set of real numbers, or `None`."""
    if (
        tree[0] == "seq"
        and tree[1] != ":"
        and len(tree[3]) == 2
        and all(i[0] == "scalar" and not i[2] and not i[3] for i in tree[3])
    ):
        return [(tree[3][0][1], tree[1] == "(", tree[3][1][1], tree[2] == ")")]
    if tree[0] in ("union", "list"):
        out: list[Piece] = []
        for part in tree[1]:
            if tree[0] == "list" and part[0] != "rel":
                return None
            piece = _solution_set(part)
            if piece is None:
                return None
            out += piece
        return out
    if tree[0] == "set" and all(i[0] == "scalar" for i in tree[1]) and tree[1]:
        return [(i[1], False, i[1], False) for i in tree[1]]
    if tree[0] == "rel":
        return _inequality(tree)
    return None


def _inequality(rel: Tree) -> list[Piece] | None:
    """Return the interval of `x < 2`, `2 <= x` or `1 < x < 2` with constants as bounds, or `None`."""
    sides, ops = rel[1][::2], rel[1][1::2]
    at = [n for n, s in enumerate(sides) if s[0] == "sym"]
    if len(at) != 1 or any(_has_symbol(s) for n, s in enumerate(sides) if n != at[0]) or len(sides) > 3:
        return None
    low, low_open, high, high_open = _LOW, True, _HIGH, True
    for n, op in enumerate(ops):
        if op not in ("<", "<=", ">", ">="):
            return None
        left_of = n < at[0]  # the bound stands to the left of the variable
        bound = sides[n] if left_of else sides[n + 1]
        toward = op if not left_of else _FLIP[op]  # variable `toward` bound
        if toward in ("<", "<="):
            high, high_open = bound, toward == "<"
        else:
            low, low_open = bound, toward == ">"
    if len(sides) == 3 and (at[0] != 1 or low is _LOW or high is _HIGH):
        return None
    return [(low, low_open, high, high_open)]


def _same_sets(x: list[Piece], y: list[Piece], opt: Options) -> bool:
    if len(x) != len(y):
        return False
    left = list(y)
    for piece in x:
        hit = next((n for n, other in enumerate(left) if _same_piece(piece, other, opt)), None)
        if hit is None:
            return False
        del left[hit]
    return True


def _same_piece(a: Piece, b: Piece, opt: Options) -> bool:
    return (a[1], a[3]) == (b[1], b[3]) and same(a[0], b[0], opt) and same(a[2], b[2], opt)


# --- what the parser does not know -----------------------------------------------------------------------------------

_LIBRARY_COMMANDS = (
    "\\int",
    "\\sum",
    "\\prod",
    "\\lim",
    "\\det",
    "\\begin{vmatrix}",
    "\\frac{d",
    "\\partial",
    "\\overline",
)


def _library(gold: str, said: str, why: str, opt: Options, gold_read: bool = False) -> dict[str, Any]:
    """Ask math-verify about what this parser does not know, and believe it only where it cannot have dropped a part.

    Both texts have to be a known construct or readable here, both have to become expressions, every digit and letter
    of the text has to appear in the expression, and both directions and a numeric check have to agree.
    """
    side = "said" if gold_read else "gold"
    if not any(command in gold + said for command in _LIBRARY_COMMANDS):
        return {side: why}
    a, b = _library_parse(gold), _library_parse(said)
    if a is None:
        return {"gold": why}
    if b is None:
        return {"said": why}
    if not (math_verify.verify(a, b, timeout_seconds=None) and math_verify.verify(b, a, timeout_seconds=None)):
        return {"equal": False}
    try:
        x, y = a.doit(), b.doit()
        return {"equal": bool(_library_same(x, y))}
    except (AttributeError, TypeError, ValueError):
        return {"equal": False}


def _library_same(x: Any, y: Any) -> bool:
    if isinstance(x, sympy.MatrixBase) or isinstance(y, sympy.MatrixBase):
        return bool(x == y)
    if x.free_symbols or y.free_symbols:
        return same_function(x, y, 0.0)
    u, v = number_of(x), number_of(y)
    if u is None or v is None:
        return False
    with mpmath.workdps(60):
        return bool(abs(u - v) <= max(abs(u), abs(v)) * mpmath.mpf(10) ** -CONSTANT_DIGITS)


def _library_parse(text: str) -> Any:
    import re

    plain = text.strip().strip("$").strip()
    try:
        tree = latex2sympy(plain)
    except Exception:  # noqa: BLE001 - the library raises many types on what it cannot read; unread is never equal
        return None
    if not isinstance(tree, sympy.Basic | sympy.MatrixBase):
        return None
    shown = sympy.srepr(tree)
    bare = re.sub(r"\\[A-Za-z]+|\bd[a-z]\b", " ", plain)
    numbers = set(re.findall(r"\d+", bare)) - {"1", "0"}
    letters = set(re.findall(r"(?<![A-Za-z])[a-z](?![A-Za-z])", bare)) - {"e", "i", "d"}
    if all(n in shown for n in numbers) and all(f"'{x}'" in shown for x in letters):
        return tree
    return None
