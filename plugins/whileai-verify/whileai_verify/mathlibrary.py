"""What the parser of answers does not know (integrals, sums, limits): read by math-verify, believed with care.

Runs only in a worker.
"""

from __future__ import annotations

import re
from typing import Any

import math_verify  # loaded before the first deadline runs
import mpmath  # type: ignore[import-untyped,import-not-found,unused-ignore]
import sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]
from latex2sympy2_extended import latex2sympy  # type: ignore[import-untyped,import-not-found,unused-ignore]

from whileai_verify.mathvalue import CONSTANT_DIGITS, number_of, same_function

__all__ = ["by_library"]

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


def by_library(gold: str, said: str, why: str, gold_read: bool = False) -> dict[str, Any]:
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
    plain = re.sub(r"\\[,;:!]", " ", text.strip().strip("$").strip())
    plain = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", plain)
    plain = re.sub(r"\\[dt]?frac\s*(\d)\s*(?=\{)", r"\\frac{\1}", plain)
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
