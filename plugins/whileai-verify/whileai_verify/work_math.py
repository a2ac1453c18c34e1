"""Worker side of `matheq.MathEqual`: are two answers equal as mathematics?

Runs only in a worker process, which is killed at its deadline. Two answers are equal when their structure is the same
(sets without order, sequences with order and brackets, relations up to a factor, intervals and inequalities by their
solution set) and their expressions have equal values: rationals exactly, other constants to 50 digits, expressions
with variables at random real and complex points to 30 digits. Unread sides are never equal.
"""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped,import-not-found,unused-ignore]
import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]

from whileai_verify.mathlibrary import by_library
from whileai_verify.mathparse import CannotReadError, parse_answer
from whileai_verify.mathsets import flip, has_symbol, pieces, same_sets, variable
from whileai_verify.mathvalue import Options, same, same_function, to_sympy, value_at
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
        return by_library(gold, said, str(error))
    try:
        b = parse_answer(said)
        a, b = _with_letter_unit(a, b, gold), _with_letter_unit(b, a, said)
        equal = _equal(a, b, opt)
    except (CannotReadError, RecursionError) as error:
        if a[0] == "text":
            return {"said": str(error)}
        return by_library(gold, said, str(error), gold_read=True)
    return {"equal": equal}


def _check(tree: Tree) -> None:
    """Raise `CannotReadError` for a reference that cannot be evaluated."""
    tree = _expand(tree)
    head = tree[0]
    if head == "scalar":
        to_sympy(tree[1])
    elif head == "rel":
        for side in tree[1][::2]:
            to_sympy(side)
    elif head == "matrix":
        for cell in (c for row in tree[1] for c in row):
            to_sympy(cell)
    elif head == "seq":
        for item in tree[3]:
            _check(item)
    elif head in ("set", "list", "union", "meet"):
        for item in tree[1]:
            _check(item)


_LETTER_UNIT = re.compile(r"(.*[\d}).])\s*(?:\\[ ,]|~)?\s*(m|g|s|h|l|L|m/s|(?:m|s)\^\{?[23]\}?)\s*")


def _with_letter_unit(tree: Tree, other: Tree, text: str) -> Tree:
    """Read `5000 g` as grams where the other answer has a unit of the same dimension; elsewhere `g` is a variable."""
    if tree[0] != "scalar" or tree[2] or other[0] != "scalar" or other[2] not in UNITS:
        return tree
    m = _LETTER_UNIT.fullmatch(text.strip().strip("$").strip())
    unit = "" if m is None else re.sub(r"[{}]", "", m[2]).lower()
    if m is None or unit not in UNITS or UNITS[unit][0] != UNITS[other[2]][0]:
        return tree
    number = parse_answer(m[1])
    return ("scalar", number[1], unit, False) if number[0] == "scalar" and not number[2] else tree


def _equal(a: Tree, b: Tree, opt: Options) -> bool:
    """Return whether two answers are equal; the order of the arguments does not matter."""
    a, b = _name_first(_expand(a)), _name_first(_expand(b))
    if "text" in (a[0], b[0]) or "mod" in (a[0], b[0]):
        return a[0] == b[0] and (_congruent(a, b, opt) if a[0] == "mod" else bool(a == b))
    if "named" in (a[0], b[0]):
        return _named_tuples(a, b, opt) if a[0] == "named" else _named_tuples(b, a, opt)
    if a[0] == "rel" and b[0] != "rel":
        return _relation_and_other(a, b, opt)
    if b[0] == "rel" and a[0] != "rel":
        return _relation_and_other(b, a, opt)
    if a[0] == "rel":
        return _relations(a, b, opt)
    if a[0] == "scalar" and b[0] == "scalar":
        return _scalars(a, b, opt)
    if "matrix" in (a[0], b[0]):
        return _matrices(a, b, opt) if a[0] == "matrix" else _matrices(b, a, opt)
    bags = ("set", "list")
    if a[0] in bags and b[0] in bags:
        return _bags(a, b, opt)
    if _sets(a, b, opt):
        return True
    for one, other in ((a, b), (b, a)):
        if one[0] == "set" and len(one[1]) == 1 and other[0] == "scalar":
            return _equal(one[1][0], other, opt)
        if one[0] == "list" and other[0] == "seq" and other[1:3] == ("(", ")"):
            return _assignments(one) is not None and _named_tuples(_assignments(one) or one, other, opt)
        if one[0] == "meet" and other[0] in (*bags, "meet"):
            return _bags(("list", one[1]), ("list", other[1]), opt) if variable(one) is None else False
    if a[0] == "seq" and b[0] == "seq":
        if a[1] == b[1] == ":":
            return _proportion(a, b, opt)
        return (a[1], a[2], len(a[3])) == (b[1], b[2], len(b[3])) and all(
            _equal(p, q, opt) for p, q in zip(a[3], b[3], strict=True)
        )
    return False


def _sets(a: Tree, b: Tree, opt: Options) -> bool:
    """Return whether both answers are sets of real numbers, about the same variable if they name one, and equal."""
    x, y = pieces(a), pieces(b)
    if x is None or y is None:
        return False
    named = [variable(t) for t in (a, b) if t[0] in ("rel", "list", "meet")]
    return len(set(named)) <= 1 and same_sets(x, y, opt)


def _proportion(a: Tree, b: Tree, opt: Options) -> bool:
    """Compare ratios: `6:8` is `3:4`."""
    p, q = a[3], b[3]
    if len(p) != len(q) or not all(i[0] == "scalar" and not i[2] and not i[3] for i in [*p, *q]):
        return False
    pairs = [(i, j) for i in range(len(p)) for j in range(i)]
    zero = ("num", "0", None)
    if all(same(i[1], zero, opt) for i in p) or all(same(i[1], zero, opt) for i in q):
        return False
    return all(same(("mul", p[i][1], q[j][1]), ("mul", p[j][1], q[i][1]), opt) for i, j in pairs)


def _congruent(a: Tree, b: Tree, opt: Options) -> bool:
    """Compare `x = 3 (mod 7)` with `x = 10 (mod 7)`."""
    if not (same(a[1], b[1], opt) and same(a[3], b[3], opt)):
        return False
    difference = to_sympy(("div", ("add", a[2], ("neg", b[2])), a[3]))
    return bool(difference.is_Integer)


def _assignments(tree: Tree) -> Tree | None:
    """Return `x = 1, y = 2` as names with a tuple, for letters that follow each other in the alphabet, or `None`."""
    if not all(i[0] == "rel" and len(i[1]) == 3 and _assigned(i) is not None for i in tree[1]):
        return None
    items = sorted(tree[1], key=lambda i: str(i[1][0][1]))
    letters = [i[1][0][1] for i in items]
    if any(len(n) != 1 for n in letters) or [ord(n) for n in letters] != list(
        range(ord(letters[0]), ord(letters[0]) + len(letters))
    ):
        return None
    return ("named", [i[1][0] for i in items], ("seq", "(", ")", [_assigned(i) for i in items]))


def _named_tuples(a: Tree, b: Tree, opt: Options) -> bool:
    """Compare `(x, y) = (1, 2)` with another such answer, with the tuple alone, or with `x = 1, y = 2`."""
    if b[0] == "list":
        if not all(i[0] == "rel" and _assigned(i) is not None for i in b[1]):
            return False
        b = ("named", [i[1][0] for i in b[1]], ("seq", "(", ")", [_assigned(i) for i in b[1]]))
    if b[0] != "named":
        return b[0] in ("seq", "matrix") and _equal(a[2], b, opt)
    left, right = dict(zip(a[1], a[2][3], strict=True)), dict(zip(b[1], b[2][3], strict=True))
    if len(left) != len(a[1]) or len(right) != len(b[1]) or left.keys() != right.keys():
        return False
    return all(_equal(value, right[name], opt) for name, value in left.items())


def _matrices(a: Tree, b: Tree, opt: Options) -> bool:
    """Compare a matrix with another, with `[[1, 2], [3, 4]]`, or a column with the tuple of its entries."""
    rows: Any = b[1] if b[0] == "matrix" else None
    if b[0] == "seq" and b[1] == "[":
        rows = _as_matrix(b)
    elif b[0] == "seq" and b[1:3] == ("(", ")") and all(i[0] == "scalar" and not i[2] and not i[3] for i in b[3]):
        rows = [[i[1]] for i in b[3]]
    return (
        rows is not None
        and len(a[1]) == len(rows)
        and all(
            len(p) == len(q) and all(same(u, v, opt) for u, v in zip(p, q, strict=True))
            for p, q in zip(a[1], rows, strict=True)
        )
    )


def _name_first(tree: Tree) -> Tree:
    """Write `2 = x` as `x = 2`."""
    if tree[0] == "rel" and len(tree[1]) == 3:
        left, op, right = tree[1]
        if op == "=" and right[0] == "sym" and not has_symbol(left):
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
        if sides[0][0] != "sym" and any(has_symbol(s) for s in sides):
            return False
        return _consistent(values, opt) and _equal(("scalar", values[-1], "", False), other, opt)
    return _sets(rel, other, opt)


def _relations(a: Tree, b: Tree, opt: Options) -> bool:
    p, q = _assigned(a), _assigned(b)
    if p is not None and q is not None and a[1][0] == b[1][0]:
        return all(_consistent(r[1][2::2], opt) for r in (a, b)) and _equal(p, q, opt)
    if pieces(a) is not None and pieces(b) is not None:
        return _sets(a, b, opt)
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
        wanted = other if ratio.real > 0 else flip(other)
        return bool(op == wanted and same_function(f * g.subs(point), g * f.subs(point), 0.0))
    return False
