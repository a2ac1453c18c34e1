r"""Read a text that is one number, as an exact fraction with its percent sign and unit.

Example:
    >>> read_number(r"$1\frac{1}{2}$").value
    Fraction(3, 2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from whileai_verify.defaults import MAX_EXPONENT, MAX_NUMBER_CHARS
from whileai_verify.extract import strip_decoration

__all__ = ["CURRENCY", "DECIMAL", "DIGITS", "SCALE_WORD", "Number", "read_number"]


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
    rf"|\d{{1,3}}(?:{_SPACES}\d{{3}})+(?!\d)|\d{{1,3}}(?:['’]\d{{3}})+(?!\d)"
)
DIGITS = rf"(?:{_GROUPED}|\d+)"
DECIMAL = rf"(?:{DIGITS}(?:\.\d*)?|\.\d+)"
_REPEAT = r"(?P<ri>\d+)\.(?P<rf>\d*)(?:\\overline\{(?P<ra>\d+)\}|\((?P<rb>\d+)\)|\\dot\{(?P<rc>\d)\})"
_EXPONENT = r"\{?\s*(?P<exp>[+-]?\d{1,6})\s*\}?"
_SCIENTIFIC = (
    rf"(?P<mantissa>{DECIMAL})(?:[eE](?P<e>[+-]?\d{{1,6}})"
    rf"|\s*(?:\\times|\\cdot|×|·|\*|x|X)\s*10\s*(?:\^|\*\*)\s*{_EXPONENT})"
)
_POWER = r"(?P<ten>10)\s*(?:\^|\*\*)\s*\{?\s*(?P<pow>[+-]?\d{1,6})\s*\}?"
_FRAC = (
    rf"(?:(?P<whole>\d+)\s*(?:\s|(?=\\)))?(?:(?P<num>{DECIMAL})\s*/\s*(?P<den>{DECIMAL})"
    rf"|\\[dtc]?frac\s*\{{\s*(?P<num2>-?{DECIMAL})\s*\}}\s*\{{\s*(?P<den2>{DECIMAL})\s*\}}"
    r"|\\[dtc]?frac\s*(?P<num3>\d)\s*(?P<den3>\d))"
)
_NUMBER = re.compile(rf"(?:{_REPEAT}|{_FRAC}|{_SCIENTIFIC}|{_POWER}|(?P<plain>{DECIMAL}))")
_LEAD = re.compile(
    r"^(?:(?:[A-Za-z]\w{0,20}\s*)?(?:=|≈|\\approx)\s*|(?:approximately|approx\.?|about|roughly|exactly|precisely)\s+)",
    re.I,
)
_SIGN = r"[+\-−–]?"
CURRENCY = "$€£¥₹"
_SCALE = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
SCALE_WORD = re.compile(r"^\s*(hundred|thousand|million|billion|trillion)\b", re.I)
_PERCENT = re.compile(r"^\s*(?:\\?%|percent\b|per cent\b|％)", re.I)
_UNIT_WORD = r"[A-Za-zµμΩ°℃℉€£¥$](?:[^\W\d]|[./ ²³·*-]|\^\{?-?\d\}?)*"
# One letter is a variable (5x) or a constant (2e, 3i, 5π), not a unit, unless units use it (5m, 5 g).
_LETTER_UNIT = r"[mgshldLCFKVAWJNT°Ωµμ℃℉€£¥$](?![^\W\d])"
_UNIT = re.compile(
    r"^\s*(?:\\?[°'\"]|\^\\circ|\^\{\\circ\}|\\(?:text|mathrm|mbox)\s*\{[^{}\d]*\}"
    rf"|(?={_LETTER_UNIT}|[^\W\d]{{2}}){_UNIT_WORD})(?:\^\{{?-?\d\}}?)?\s*$"
)


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(rf"[,_{{}}'’]|{_SPACES}", "", text).rstrip(".") or "0")


def _endless(digits: str) -> Fraction | None:
    """Return the value of `0.1666` with an ellipsis behind it: its last digits repeat; `None` where none do."""
    m = re.fullmatch(r"(\d+)\.(\d*?)(\d{1,3}?)(\3+)", digits)
    if m is None or len(m[3] + m[4]) < 3:
        return None
    return Fraction(int(m[1] + m[2] + m[3]) - int(m[1] + m[2]), (10 ** len(m[3]) - 1) * 10 ** len(m[2]))


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
    sign = re.match(rf"({_SIGN})\s*([{CURRENCY}]?)\s*({_SIGN})", text)
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
    if rest.startswith(("...", "…")) and match["plain"] and "." in match["plain"]:
        goes_on = _endless(match["plain"])  # digits that go on are another number than those that are written
        if goes_on is None:
            return None
        value, rest = (-goes_on if value < 0 else goes_on), rest.lstrip(".…")
    scale = SCALE_WORD.match(rest)
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
