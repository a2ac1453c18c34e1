r"""Answers that are sets of real numbers: intervals, unions, inequalities, excluded points. Runs only in a worker.

`pieces` reads an answer as intervals; `same_sets` brings both to the same form (sorted, merged, without overlaps) where
every end is a number, so that `[1,2]\cup[2,3]` is `[1,3]`, and compares them end by end where an end is a symbol.
"""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped,import-not-found,unused-ignore]
import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]

from whileai_verify.mathparse import CannotReadError
from whileai_verify.mathvalue import Options, number_of, same, to_sympy

__all__ = ["Piece", "flip", "has_symbol", "pieces", "same_sets", "variable"]

Tree = tuple[Any, ...]
Piece = tuple[Tree, bool, Tree, bool]  # lower end, open?, upper end, open?
_LOW, _HIGH = ("neg", ("const", "oo")), ("const", "oo")
_EVERYTHING: list[Piece] = [(_LOW, True, _HIGH, True)]
_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!=", "==": "=="}


def flip(op: str) -> str:
    """Return a relation with its sides exchanged."""
    return _FLIP[op]


def has_symbol(tree: Tree) -> bool:
    """Return whether a name stands in an expression."""
    return tree[0] == "sym" or any(isinstance(p, tuple) and has_symbol(p) for p in tree[1:])


def variable(tree: Tree) -> str | None:
    """Return the one variable that the relations of an answer are about, or `None`."""
    names: set[str] = set()
    for rel in tree[1] if tree[0] in ("list", "meet") else [tree]:
        for side in rel[1][::2]:
            names |= _names(side)
    return next(iter(names)) if len(names) == 1 else None


def _names(tree: Tree) -> set[str]:
    if tree[0] == "sym":
        return {tree[1]}
    return {name for part in tree[1:] if isinstance(part, tuple) for name in _names(part)}


def pieces(tree: Tree) -> list[Piece] | None:
    """Return the intervals of an answer that is a set of real numbers, or `None`."""
    head = tree[0]
    if head == "seq":
        return _interval(tree)
    if head == "union":
        parts = [pieces(p) for p in tree[1]]
        return None if any(p is None for p in parts) else [piece for p in parts for piece in p or []]
    if head == "without":
        return _without(tree)
    if head in ("list", "meet"):
        return _relations(tree)
    if head == "set" and tree[1] and all(i[0] == "scalar" for i in tree[1]):
        return [(i[1], False, i[1], False) for i in tree[1]]
    return _inequality(tree) if head == "rel" else None


def _interval(tree: Tree) -> list[Piece] | None:
    """Return the interval of `[1, 2)`; `None` for a pair that cannot be one, such as `(2, 1)`."""
    if tree[1] == ":" or len(tree[3]) != 2 or not all(i[0] == "scalar" and not i[2] and not i[3] for i in tree[3]):
        return None
    low, high = tree[3][0][1], tree[3][1][1]
    a, b = _place(low), _place(high)
    if a is not None and b is not None and not (a < b or (a == b and (tree[1], tree[2]) == ("[", "]"))):
        return None
    return [(low, tree[1] == "(", high, tree[2] == ")")]


def _without(tree: Tree) -> list[Piece] | None:
    whole, part = pieces(tree[1]), tree[2]
    if whole is None or part[0] != "set" or not all(i[0] == "scalar" for i in part[1]):
        return None
    for item in part[1]:
        rest = _meet(whole, _except(item[1]))
        if rest is None:
            return None
        whole = rest
    return whole


def _except(point: Tree) -> list[Piece]:
    return [(_LOW, True, point, True), (point, True, _HIGH, True)]


def _relations(tree: Tree) -> list[Piece] | None:
    """Return the set of joined relations on one variable: all hold (`meet`), or one of them does (`list`)."""
    if not all(i[0] == "rel" for i in tree[1]) or variable(tree) is None:
        return None
    found = [_inequality(i) for i in tree[1]]
    if any(f is None for f in found):
        return None
    together = tree[0] == "meet" or all(i[1][1] == "!=" for i in tree[1])
    out: list[Piece] | None = list(found[0] or [])
    for more in found[1:]:
        out = _meet(out or [], more or []) if together else [*(out or []), *(more or [])]
        if out is None:
            return None
    return out


def _inequality(rel: Tree) -> list[Piece] | None:
    """Return the set of `x < 2`, `2 <= x`, `1 < x < 2` or `x != 2` with constants as bounds, or `None`."""
    sides, ops = rel[1][::2], rel[1][1::2]
    if len(sides) == 2 and "abs" in (sides[0][1], sides[1][1]):
        return _distance(sides, ops[0])
    at = [n for n, s in enumerate(sides) if s[0] == "sym"]
    if len(at) != 1 or any(has_symbol(s) for n, s in enumerate(sides) if n != at[0]) or len(sides) > 3:
        return None
    if ops == ["!="]:
        return _except(sides[1 - at[0]])
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


def _distance(sides: list[Tree], op: str) -> list[Piece] | None:
    """Return the set of `|x| < 2` or `|x - 1| >= 2` with a positive number as bound, or `None`."""
    if sides[0][1] != "abs":
        sides, op = sides[::-1], _FLIP[op]
    inner, bound = sides[0][2], sides[1]
    size = _place(bound)
    centre: Tree | None = ("num", "0", None) if inner[0] == "sym" else None
    if inner[0] == "add" and inner[1][0] == "sym" and not has_symbol(inner[2]):
        centre = ("neg", inner[2])
    if centre is None or size is None or size <= 0 or op not in ("<", "<=", ">", ">="):
        return None
    low, high = ("add", centre, ("neg", bound)), ("add", centre, bound)
    if op in ("<", "<="):
        return [(low, op == "<", high, op == "<")]
    return [(_LOW, True, low, op == ">"), (high, op == ">", _HIGH, True)]


def _place(tree: Tree) -> Any:
    """Return where an end stands on the line as an mpmath number, or `None` for what is no real number."""
    try:
        value = to_sympy(tree)
    except CannotReadError:
        return None
    if value in (sympy.oo, -sympy.oo):
        return mpmath.inf if value == sympy.oo else -mpmath.inf
    if value.free_symbols:
        return None
    number = number_of(value)
    return None if number is None or number.imag != 0 else number.real


def _order(tree: Tree) -> Any:
    place = _place(tree)
    if place is None:
        raise CannotReadError("an end that is no number")
    return place


def _nonempty(piece: Piece) -> bool:
    low, high = _order(piece[0]), _order(piece[2])
    return bool(low < high or (low == high and not piece[1] and not piece[3]))


def _meet(x: list[Piece], y: list[Piece]) -> list[Piece] | None:
    """Return the intersection, or `None` where an end is no number."""
    out: list[Piece] = []
    try:
        for a in x:
            for b in y:
                low = max((a[0], a[1]), (b[0], b[1]), key=lambda e: (_order(e[0]), e[1]))
                high = min((a[2], a[3]), (b[2], b[3]), key=lambda e: (_order(e[0]), not e[1]))
                piece = (low[0], low[1], high[0], high[1])
                if _nonempty(piece):
                    out.append(piece)
    except CannotReadError:
        return None
    return out


def _merged(x: list[Piece]) -> list[Piece] | None:
    """Return sorted pieces of which no two touch, or `None` where an end is no number."""
    try:
        ordered = sorted((p for p in x if _nonempty(p)), key=lambda p: (_order(p[0]), p[1]))
        out: list[Piece] = []
        for piece in ordered:
            if out:
                low, low_open, high, high_open = out[-1]
                end, start = _order(high), _order(piece[0])
                if start < end or (start == end and not (high_open and piece[1])):
                    far = max((high, high_open), (piece[2], piece[3]), key=lambda e: (_order(e[0]), not e[1]))
                    out[-1] = (low, low_open, far[0], far[1])
                    continue
            out.append(piece)
    except CannotReadError:
        return None
    return out


def same_sets(x: list[Piece], y: list[Piece], opt: Options) -> bool:
    """Return whether two lists of intervals are the same set."""
    a, b = _merged(x), _merged(y)
    if a is not None and b is not None:
        return len(a) == len(b) and all(_same_piece(p, q, opt) for p, q in zip(a, b, strict=True))
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
