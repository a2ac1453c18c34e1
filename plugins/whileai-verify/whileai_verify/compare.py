"""Compare values as data: JSON-like values, types strict, numbers with tolerance, declared lists without order.

`10` equals `10.0`; `True` is not `1`; `"10"` is not `10`. A difference is reported as a path and a kind, without the
expected value, so that it can stand in a reason.

Example:
    >>> first_difference({"pay": [1, 2]}, {"pay": [2, 1]}, unordered=("pay",)) is None
    True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["first_difference", "same_number", "same_value", "without_expected"]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_number(a: float, b: float, rel_tol: float = 0.0, abs_tol: float = 0.0) -> bool:
    """Return whether two numbers are equal within a tolerance on the size of `b`; NaN equals NaN, nothing else.

    With no tolerance two integers, and an integer and a float, are compared exactly, of any size.
    """
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if a == b:
        return True
    if rel_tol == 0.0 and abs_tol == 0.0:
        return False
    try:
        return math.isclose(b, a, rel_tol=rel_tol, abs_tol=abs_tol) and abs(a - b) <= max(rel_tol * abs(b), abs_tol)
    except OverflowError:
        return False


def first_difference(
    actual: Any,
    expected: Any,
    *,
    unordered: Iterable[str] = (),
    rel_tol: float = 0.0,
    abs_tol: float = 0.0,
    subset: bool = False,
) -> str | None:
    """Return where two JSON-like values first differ (`orders[0].status: another value`), or `None`.

    Args:
        actual: What is there.
        expected: What should be there.
        unordered: Paths of lists whose order does not matter; positions are written `[]`, and a bare key matches
            at every depth.
        rel_tol: Relative tolerance of numbers.
        abs_tol: Absolute tolerance of numbers.
        subset: Keys of `actual` that `expected` lacks do not count.
    """
    return _diff(actual, expected, "", frozenset(unordered), rel_tol, abs_tol, subset, 0)


def without_expected(difference: str) -> str:
    """Return a difference for a reason: the name of a key that only the expected value has is left out."""
    path, _, kind = difference.rpartition(": ")
    if kind != "missing":
        return difference
    return f"{path.rpartition('.')[0] or '(root)'}: lacks a key"


def same_value(actual: Any, expected: Any, *, rel_tol: float = 0.0, abs_tol: float = 0.0) -> bool:
    """Return whether two JSON-like values are equal."""
    return first_difference(actual, expected, rel_tol=rel_tol, abs_tol=abs_tol) is None


_MAX_DEPTH = 200


def _diff(
    a: Any, b: Any, path: str, unordered: frozenset[str], rel: float, absolute: float, subset: bool, depth: int
) -> str | None:
    here = path or "(root)"
    if depth > _MAX_DEPTH:
        return f"{here}: nested deeper than {_MAX_DEPTH}"
    if _number(a) and _number(b):
        return None if same_number(a, b, rel, absolute) else f"{here}: another number"
    if isinstance(b, Mapping):
        if not isinstance(a, Mapping):
            return f"{here}: {_kind(a)} instead of an object"
        for key in b:
            at = f"{path}.{key}" if path else str(key)
            if key not in a:
                return f"{at}: missing"
            found = _diff(a[key], b[key], at, unordered, rel, absolute, subset, depth + 1)
            if found:
                return found
        extra = [k for k in a if k not in b]
        return None if subset or not extra else f"{f'{path}.' if path else ''}{extra[0]}: not expected"
    if isinstance(b, list | tuple):
        if not isinstance(a, list | tuple):
            return f"{here}: {_kind(a)} instead of a list"
        if len(a) != len(b):
            return f"{here}: {len(a)} items instead of another number"
        if _is_unordered(path, unordered):
            return _diff_unordered(list(a), list(b), path, unordered, rel, absolute, subset, depth)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            found = _diff(x, y, f"{path}[{i}]", unordered, rel, absolute, subset, depth + 1)
            if found:
                return found
        return None
    if type(a) is not type(b):
        return f"{here}: {_kind(a)} instead of {_kind(b)}"
    return None if a == b else f"{here}: another value"


def _diff_unordered(
    a: list[Any],
    b: list[Any],
    path: str,
    unordered: frozenset[str],
    rel: float,
    absolute: float,
    subset: bool,
    depth: int,
) -> str | None:
    """Match each expected item with an item of its own (augmenting paths, so tolerance cannot strand one)."""
    fits = [
        [j for j, x in enumerate(a) if _diff(x, y, f"{path}[]", unordered, rel, absolute, subset, depth + 1) is None]
        for y in b
    ]
    owner: dict[int, int] = {}
    for i in range(len(b)):
        if not _augment(i, fits, owner):
            return f"{path or '(root)'}: the items differ (order does not count)"
    return None


def _augment(start: int, fits: list[list[int]], owner: dict[int, int]) -> bool:
    """Give expected item `start` an actual item, moving others along an alternating path (breadth first)."""
    parent: dict[int, int] = {}
    queue = [start]
    while queue:
        i = queue.pop(0)
        for j in fits[i]:
            if j in parent:
                continue
            parent[j] = i
            if j not in owner:
                while True:
                    i = parent[j]
                    previous = next((k for k, v in owner.items() if v == i), None)
                    owner[j] = i
                    if previous is None or i == start:
                        return True
                    del owner[previous]
                    owner[j] = i
                    j = previous
            else:
                queue.append(owner[j])
    return False


def _is_unordered(path: str, unordered: frozenset[str]) -> bool:
    if not unordered:
        return False
    import re

    plain = re.sub(r"\[\d*\]", "[]", path)
    return plain in unordered or plain.rsplit(".", 1)[-1] in unordered


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if _number(value):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
