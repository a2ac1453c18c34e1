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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.defaults import ABS_TOL, FLOAT_NOISE, MAX_EXPONENT, MAX_NUMBER_CHARS, REL_TOL
from whileai_verify.doubt import doubtful, open_box
from whileai_verify.extract import marked_answer, strip_decoration
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


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written.

    Attributes:
        value: Exact value; a percent sign is not applied to it.
        percent: Whether a percent sign follows.
        unit: The unit text that follows or the currency sign that leads, `""` when there is none.
    """

    value: Fraction
    percent: bool = False
    unit: str = ""


_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SPACES = r"(?:\\[,;:! ]|~|[ \u00a0\u2009\u202f])"
_GROUPED = (
    r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:\{,\}\d{3})+(?!\d)|\d{1,3}(?:_\d{3})+(?!\d)"
    rf"|\d{{1,3}}(?:{_SPACES}\d{{3}})+(?!\d)"
)
_DIGITS = rf"(?:{_GROUPED}|\d+)"
_DECIMAL = rf"(?:{_DIGITS}(?:\.\d*)?|\.\d+)"
_REPEAT = r"(?P<ri>\d+)\.(?P<rf>\d*)(?:\\overline\{(?P<ra>\d+)\}|\((?P<rb>\d+)\)|\\dot\{(?P<rc>\d)\})"
_EXPONENT = r"\{?\s*(?P<exp>[+-]?\d{1,6})\s*\}?"
_SCIENTIFIC = (
    rf"(?P<mantissa>{_DECIMAL})(?:[eE](?P<e>[+-]?\d{{1,6}})"
    rf"|\s*(?:\\times|\\cdot|×|·|\*|x|X)\s*10\s*(?:\^|\*\*)\s*{_EXPONENT})"
)
_POWER = r"(?P<ten>10)\s*(?:\^|\*\*)\s*\{?\s*(?P<pow>[+-]?\d{1,6})\s*\}?"
_FRAC = (
    rf"(?:(?P<whole>\d+)\s*(?:\s|(?=\\)))?(?:(?P<num>{_DECIMAL})\s*/\s*(?P<den>{_DECIMAL})"
    rf"|\\[dtc]?frac\s*\{{\s*(?P<num2>-?{_DECIMAL})\s*\}}\s*\{{\s*(?P<den2>{_DECIMAL})\s*\}}"
    r"|\\[dtc]?frac\s*(?P<num3>\d)\s*(?P<den3>\d))"
)
_NUMBER = re.compile(rf"(?:{_REPEAT}|{_FRAC}|{_SCIENTIFIC}|{_POWER}|(?P<plain>{_DECIMAL}))")
_LEAD = re.compile(
    r"^(?:(?:[A-Za-z]\w{0,20}\s*)?(?:=|≈|\\approx)\s*|(?:approximately|approx\.?|about|roughly|exactly|precisely)\s+)",
    re.I,
)
_SIGN = r"[+\-−–]?"
_CURRENCY = "$€£¥₹"
_SCALE = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALE_WORD = re.compile(r"^\s*(hundred|thousand|million|billion|trillion)\b", re.I)
_PERCENT = re.compile(r"^\s*(?:\\?%|percent\b|per cent\b|％)", re.I)
_UNIT_WORD = r"[A-Za-zµμΩ°℃℉€£¥$](?:[^\W\d]|[./ ²³·*-]|\^\{?-?\d\}?)*"
# One letter glued to the digits is a variable (5x) or a constant (2e, 3i), not a unit, unless units use it (5m, 5g).
_UNIT = re.compile(
    r"^\s*(?:\\?[°'\"]|\^\\circ|\^\{\\circ\}|\\(?:text|mathrm|mbox)\s*\{[^{}\d]*\}"
    rf"|(?:(?<=\s)|(?![xyznie](?![A-Za-z]))){_UNIT_WORD})(?:\^\{{?-?\d\}}?)?\s*$"
)


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(rf"[,_{{}}]|{_SPACES}", "", text).rstrip(".") or "0")


def _power_of_ten(exponent: str) -> Fraction | None:
    n = int(exponent)
    return None if abs(n) > MAX_EXPONENT.value else Fraction(10) ** n


def _value(m: re.Match[str]) -> Fraction | None:
    """Return the unsigned value of a match of `_NUMBER`, or `None` when it has none (division by zero, too large)."""
    repeat = m["ra"] or m["rb"] or m["rc"]
    if repeat:
        head = m["rf"] or ""
        whole = Fraction(int(m["ri"] + head + repeat) - int(m["ri"] + head), (10 ** len(repeat) - 1) * 10 ** len(head))
        return whole
    num = m["num"] or m["num2"] or m["num3"]
    if num is not None:
        den = _decimal(m["den"] or m["den2"] or m["den3"])
        if den == 0:
            return None
        top = -_decimal(num[1:]) if num.startswith("-") else _decimal(num)
        if m["whole"] is not None:
            return None if top < 0 or top >= den else int(m["whole"]) + top / den
        return top / den
    if m["mantissa"] is not None:
        scale = _power_of_ten(m["e"] or m["exp"])
        return None if scale is None else _decimal(m["mantissa"]) * scale
    if m["ten"] is not None:
        return _power_of_ten(m["pow"])
    return _decimal(m["plain"])


def _prepare(text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        return ""
    text = strip_decoration(text)
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)", lambda m: "^{" + m.group().translate(_SUPER) + "}", text)
    text = re.sub(r"(\d?)([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])", lambda m: (m[1] + " " if m[1] else "") + _VULGAR[m[2]], text)
    text = text.replace("⁄", "/").replace("\\left", "").replace("\\right", "").replace("\\$", "$").replace("\\!", "")
    text = re.sub(r"[０-９]", lambda m: chr(ord(m.group()) - 0xFEE0), text)
    if text[:1] == "(" and text[-1:] == ")" and text.count("(") == 1:
        text = text[1:-1]
    if text[:1] == "{" and text[-1:] == "}" and text.count("{") == 1:
        text = text[1:-1]
    return text.strip()


_USUAL = re.compile(r"\s*([-+]?(?:\d{1,30}|\d{1,3}(?:,\d{3}){1,9})(?:\.\d{1,30})?)\s*")  # most answers, read at once


def read_number(text: str, *, decimal_comma: bool = False, max_chars: int = MAX_NUMBER_CHARS.value) -> Number | None:
    """Read a text that is one number, with an optional percent sign or unit, or return `None`.

    Args:
        text: A short text; decoration is removed first.
        decimal_comma: Read `1.234,5` as 1234.5.
        max_chars: Longer texts are not read.
    """
    plain = _USUAL.fullmatch(text)
    if plain is not None and not decimal_comma:
        digits = plain[1].replace(",", "")
        return Number(Fraction(digits) if "." in digits else Fraction(int(digits)))
    text = _prepare(text, max_chars)
    text = _LEAD.sub("", text, count=1)
    if decimal_comma:
        text = re.sub(r"(?<=\d)[.,](?=\d)", lambda m: "," if m.group() == "." else ".", text)
    sign = re.match(rf"({_SIGN})\s*([{_CURRENCY}]?)\s*({_SIGN})", text)
    if sign is None or (sign[1] and sign[3]):
        return None
    match = _NUMBER.match(text, sign.end())
    if match is None:
        return None
    value = _value(match)
    if value is None:
        return None
    if (sign[1] or sign[3]) in ("-", "−", "–"):
        value = -value
    rest = text[match.end() :]
    scale = _SCALE_WORD.match(rest)
    if scale:
        value *= 10 ** _SCALE[scale[1].lower()]
        rest = rest[scale.end() :]
    percent = _PERCENT.match(rest)
    if percent:
        rest = rest[percent.end() :]
    unit = sign[2]
    if rest.strip(" ."):
        if percent or not _UNIT.match(rest) or re.match(r"\s*(?:or|and|to|e|x|i|pi)\b", rest, re.I):
            return None
        unit = rest.strip()
    return Number(value, bool(percent), unit)


# A number inside prose: not glued to letters, digits or an operator of a larger token.
_TOKEN = re.compile(
    rf"(?<![\w.,^])(?:(?<![\d)\]\w]\s)(?<![\d)\]])[-−–])?(?:[{_CURRENCY}]\s?)?(?:(?<=[{_CURRENCY}])[-−–])?"
    rf"(?:\d+\s+\d+/\d+|{_DIGITS}\s?/\s?{_DIGITS}|(?:{_DECIMAL})(?:[eE][+-]?\d{{1,6}})?)(?:\s?(?:\\?%|percent\b))?"
)
_HEDGE = re.compile(
    r"^[\s*_$`\"')]*(?:,\s*)?(?:or|or maybe|or perhaps|maybe|and|and/or|to|,|&|/|-|–)[\s*_$`\"'(]*"
    r"(?:[A-Za-z]\s{0,3}=[\s$]{0,4})?$",
    re.I,
)
_GLUED = re.compile(r"[A-Za-z_°\\^]")
_TAIL = 20_000


def last_number(text: str) -> str | None:
    """Return the last number that stands in prose, or `None` when there is none or when it is one of two offered."""
    text = text[-_TAIL:]
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return None
    last = tokens[-1]
    if doubtful(text, last.start(), last.end()):
        return None
    if len(tokens) > 1 and _HEDGE.match(text[tokens[-2].end() : last.start()]):
        return None
    follow = text[last.end() :]
    if last.group().startswith("$") and follow.startswith("$"):
        return last.group()[1:]  # a LaTeX formula, not a sum of money
    glued = _GLUED.match(follow)
    scale = _SCALE_WORD.match(follow)
    tail = scale.group() if scale else re.match(r"[A-Za-z_°\\^]\w*", follow).group() if glued else ""  # type: ignore[union-attr]
    return last.group().rstrip(".,") + tail


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
