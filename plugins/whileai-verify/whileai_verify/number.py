r"""Numbers: read what is written as an exact fraction, then compare with stated tolerances.

Read: signs (also `−`), thousands separators (`1,000`, `1{,}000`, `1_000`, `1 000`), decimals, scientific notation
(`1e3`, `1.5 \times 10^{3}`, `10⁶`), fractions and mixed numbers (`3/4`, `\frac{3}{4}`, `1 1/2`, `½`), repeating
decimals (`0.\overline{3}`, `0.(3)`), percent, scale words (`2 million`), and units, which are removed only when asked.
A range, a list or a hedge (`3 or 4`) is not a number. Digits are never rounded: 0.33 is not 1/3.

Example:
    >>> read_number(r"$1\frac{1}{2}$").value
    Fraction(3, 2)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.defaults import ABS_TOL, FLOAT_NOISE, MAX_NUMBER_CHARS, REL_TOL
from whileai_verify.doubt import open_box
from whileai_verify.extract import marked_answer
from whileai_verify.numbertext import Number, read_number
from whileai_verify.prose import last_number
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    check_options,
    no_reference,
    not_scored,
    reference_of,
    reply_of,
    verdict,
)

__all__ = ["Number", "Numeric", "read_number"]


class Numeric:
    """1 when the number that the reply states equals the reference.

    The answer is the last marked answer with a digit in it (see `extract`); a reply without a marker is read for its
    last number. A marked answer has to be a number and nothing else.

    Args:
        rel_tol: Relative tolerance, on the size of the reference.
        abs_tol: Absolute tolerance, in the reference's unit. The larger of the two counts.
        units: `False`: a unit or a currency sign has to be the reference's own. `True`: units are removed on both
            sides. A list: these units are removed.
        percent: `value`: 50 % is 0.5. `ignore`: the sign is removed on both sides, so 50 % is 50.
        find: `last` (a marked answer, else the last number), or `marked` (marked answers only).
        decimal_comma: Replies write `1.234,5`; references keep the decimal point.
        markers: Your own markers in place of the built-in ones.
        reference: Dotted field with a number, a text with a number, or a list of those that are all right.
        float_noise: Relative difference that is rounding when one side is not an integer.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "6*9=54\n#### 54", "privileged": {"reference": "54"}}, 1.0),
        Example({"final_text": "It is 4218.", "privileged": {"reference": 4217}}, 0.0),
        Example({"final_text": "The answer is 3 or 4", "privileged": {"reference": 4}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "54"}}, 0.0),
        Example({"final_text": "54"}, None),
    )

    def __init__(
        self,
        *,
        rel_tol: float = REL_TOL.value,
        abs_tol: float = ABS_TOL.value,
        units: bool | Sequence[str] = False,
        percent: Literal["value", "ignore"] = "value",
        find: Literal["last", "marked"] = "last",
        decimal_comma: bool = False,
        markers: Sequence[str] | None = None,
        reference: str = "privileged.reference",
        float_noise: float = FLOAT_NOISE.value,
        threshold: float = 1.0,
    ) -> None:
        check_options(percent=(percent, ("value", "ignore")), find=(find, ("last", "marked")))
        for name, tol in (("rel_tol", rel_tol), ("abs_tol", abs_tol), ("float_noise", float_noise)):
            if not 0 <= tol < float("inf"):
                raise ParameterError(f"{name} must be a finite number of at least 0", why=f"it is {tol!r}")
        self.rel_tol, self.abs_tol, self.float_noise = Fraction(rel_tol), Fraction(abs_tol), Fraction(float_noise)
        self.units = units if isinstance(units, bool) else tuple(u.casefold() for u in units)
        self.percent, self.find, self.decimal_comma = percent, find, decimal_comma
        self.markers, self.reference, self.threshold = markers, reference, threshold

    def _gold(self, gold: Any) -> list[Number] | None:
        out: list[Number] = []
        for item in gold if isinstance(gold, list | tuple) else [gold]:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                return None
            try:
                number = (
                    read_number(_gold_answer(item))
                    if isinstance(item, str)
                    else Number(Fraction(repr(item)) if isinstance(item, float) else Fraction(item))
                )
            except (ValueError, OverflowError):
                return None
            if number is None:
                return None
            out.append(number)
        return out or None

    def _answer(self, reply: str) -> str | None:
        marked = marked_answer(reply, self.markers, usable=lambda v: bool(re.search(r"\d|[½⅓⅔¼¾⅕-⅞]", v)))
        if marked is not None:
            return marked.value
        if self.find == "marked":
            return None
        if len(reply) <= MAX_NUMBER_CHARS.value and read_number(reply, decimal_comma=self.decimal_comma):
            return reply
        return None if open_box(reply) else last_number(reply)

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        gold = reference_of(row, self.reference)
        if gold is MISSING:
            return no_reference(self.reference)
        wanted = self._gold(gold)
        if wanted is None:
            return not_scored("error", f"{self.reference} is not a number")
        reply = reply_of(row)
        if not reply.strip():
            return verdict(0, "the reply is empty")
        answer = self._answer(reply)
        if answer is None:
            return verdict(0, "the reply states no number, or offers two")
        said = read_number(answer, decimal_comma=self.decimal_comma)
        if said is None:
            return verdict(0, "the stated answer is not one number", answer=answer[:100])
        right = any(self._same(said, number) for number in wanted)
        reason = "equals the reference" if right else "differs from the reference"
        if not right and said.unit and self.units is False:
            reason += " (the answer carries a unit; units=True removes units)"
        return verdict(right, reason, answer=answer[:100])

    def _same(self, said: Number, gold: Number) -> bool:
        if not self._same_unit(said.unit, gold.unit):
            return False
        a, b = said.value, gold.value
        if self.percent == "value":
            a, b = (a / 100 if said.percent else a), (b / 100 if gold.percent else b)
        if a == b:
            return True
        slack = max(self.abs_tol, self.rel_tol * abs(b))
        if a.denominator != 1 or b.denominator != 1:
            slack = max(slack, self.float_noise * abs(b))
        return abs(a - b) <= slack

    def _same_unit(self, said: str, gold: str) -> bool:
        if self.units is True:
            return True
        drop = () if self.units is False else self.units
        a, b = _plain_unit(said), _plain_unit(gold)
        return a == b or (("" if a in drop else a) == ("" if b in drop else b))


def _plain_unit(unit: str) -> str:
    unit = re.sub(r"\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}", r"\1", unit)
    return " ".join(unit.replace("\\", "").split()).strip(" .").casefold()


def _gold_answer(text: str) -> str:
    """Return the number of a reference that is a worked solution (`#### 54`, `A: 54`), else the text itself."""
    if len(text) < 40 and read_number(text):
        return text
    marked = marked_answer(text, usable=lambda v: bool(re.search(r"\d", v)))
    return marked.value if marked else text
