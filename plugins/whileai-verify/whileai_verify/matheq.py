r"""MathEqual: the answer is mathematically the reference.

Plain numbers are compared here, exactly. Everything else is read by a strict parser and compared by value in a worker
process with a deadline; math-verify reads what the parser does not know (integrals, sums, limits, determinants).

What is equal: the same value in another notation (`\frac{\pi}{2}`, `pi/2`), collections without order (`{1, 2}` and
`2, 1`), `x = 2` and `2`, an inequality and its interval, equations up to a factor, decimals with at least six digits
that round to the value. What is not: a hedge (`2 or 3` for `2`), an interval with another bracket, a list for a
pair, different units, a decimal with too few digits, `\log` for `\ln`, anything that is not read as a whole. The
comparison is symmetric.

Example:
    >>> row = {"final_text": "so \\boxed{\\frac{2}{4}}", "privileged": {"reference": "1/2"}}
    >>> MathEqual()(row)["reward"]
    1.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.defaults import DEADLINE_S, MATH_DIGITS, MATH_REL_TOL, MAX_MATH_CHARS, WORKERS
from whileai_verify.doubt import doubtful, open_box
from whileai_verify.extract import boxes, marked_answers, strip_decoration
from whileai_verify.mathparse import CannotReadError, parse_answer
from whileai_verify.numbertext import read_number
from whileai_verify.pool import WorkError, WorkTimeoutError, shared_pool
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

__all__ = ["MathEqual", "math_answer"]

_MODULE = "whileai_verify.work_math"
_MATHS = re.compile(r"[\d\\$=<>^√π∞½¼¾]")
_SPAN = re.compile(r"\$\$([^$]+)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.S)

_JOINED = re.compile(r"\s*(?:,|;|,?\s*(?:and|or|and/or)|\\text\{ ?(?:and|or) ?\})\s*", re.I)


def _usable(marker: str, value: str) -> bool:
    """Return whether a marked value can be an answer at all; prose after "the answer is" is passed over."""
    return marker == "box" or bool(_MATHS.search(value)) or len(value.split()) <= 3


def _reads(text: str) -> bool:
    """Return whether a text as a whole is mathematics, or one answer in words."""
    try:
        parse_answer(text)
    except (CannotReadError, RecursionError):
        return False
    return True


_REJECTS = re.compile(r"\b(?:reject|discard|ignor|exclud|extraneous|not|without)", re.I)


def _rejected(text: str, at: int) -> bool:
    """Return whether a formula stands in an aside that sets it apart: `$x=3$ (rejecting $x=-1$)`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    aside = line[line.rfind("(") :] if "(" in line else ""
    return bool(aside) and ")" not in aside and _REJECTS.search(aside) is not None


def math_answer(reply: str) -> str | None:
    """Return the answer of a reply: the last marked one, else the reply when it is nothing else, else its last formula.

    Formulas that only a comma, "and" or "or" parts are one answer together: `$x=1$ and $x=2$` is a list.

    Returns:
        The answer as written, or `None` when the reply has none.
    """
    found = [m for m in marked_answers(reply) if m.value and _usable(m.marker, m.value)]
    for strong in (True, False):
        chosen = [m for m in found if m.strong is strong]
        if chosen:
            return chosen[-1].value
    text = reply.strip()
    if "\n" not in text and len(text) <= 200 and _reads(text):
        return text
    if open_box(text):
        return None
    tail = text[-20_000:]
    spans = [m for m in _SPAN.finditer(tail) if not _rejected(tail, m.start())]
    if spans and doubtful(tail, spans[-1].start(), spans[-1].end()):
        return None
    if not spans:
        return last_number(text) or (text if len(text) <= 200 else None)
    said = [next(g for g in spans[-1].groups() if g)]
    for earlier, later in zip(reversed(spans[:-1]), reversed(spans), strict=False):
        if not _JOINED.fullmatch(tail[earlier.end() : later.start()]):
            break
        said.insert(0, next(g for g in earlier.groups() if g))
    return ", ".join(said)


class MathEqual:
    """1 when the answer of the reply equals the reference as mathematics.

    Args:
        reference: Dotted field with the reference: a text (LaTeX or plain, boxed or not), a number, or a list of texts
            that are all right.
        rel_tol: Relative tolerance where one side is written as a decimal.
        digits: Significant digits that a decimal needs to stand for a value which no decimal equals (1/3, pi).
        units: `optional` (a unit on one side only does not count, two have to agree), `same`, or `ignore`.
        percent: `value` (50 % is 0.5), or `ignore`.
        deadline: Seconds for one evaluation.
        on_timeout: An evaluation that was ended is `not_scored` (status `timeout`), or `fail` (reward 0).
        workers: Worker processes of the pool, shared by all verifiers with the same number.
        max_chars: Longer answers are not read and get 0.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": r"so \boxed{\frac{2}{7}}", "privileged": {"reference": r"\frac{2}{7}"}}, 1.0),
        Example({"final_text": r"\boxed{1 \text{ or } 2}", "privileged": {"reference": "2"}}, 0.0),
        Example({"final_text": "The answer is $1+\\frac{1}{e}$", "privileged": {"reference": "$1-\\frac{1}{e}$"}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "2"}}, 0.0),
        Example({"final_text": "2"}, None),
    )

    def __init__(
        self,
        *,
        reference: str = "privileged.reference",
        rel_tol: float = MATH_REL_TOL.value,
        digits: int = MATH_DIGITS.value,
        units: Literal["optional", "same", "ignore"] = "optional",
        percent: Literal["value", "ignore"] = "value",
        deadline: float = DEADLINE_S.value,
        on_timeout: Literal["not_scored", "fail"] = "not_scored",
        workers: int = WORKERS.value,
        max_chars: int = MAX_MATH_CHARS.value,
        threshold: float = 1.0,
    ) -> None:
        check_options(
            units=(units, ("optional", "same", "ignore")),
            percent=(percent, ("value", "ignore")),
            on_timeout=(on_timeout, ("not_scored", "fail")),
        )
        if not 0 <= rel_tol < 1:
            raise ParameterError("rel_tol must be in [0, 1)", why=f"it is {rel_tol!r}")
        if deadline <= 0 or workers < 1 or digits < 1:
            raise ParameterError("deadline, workers and digits must be above 0")
        _need_library()
        self.reference, self.deadline, self.on_timeout, self.workers = reference, deadline, on_timeout, workers
        self.options = {"rel_tol": rel_tol, "digits": digits, "units": units, "percent": percent}
        self.percent, self.units, self.max_chars, self.threshold = percent, units, max_chars, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        gold = reference_of(row, self.reference)
        if gold is MISSING:
            return no_reference(self.reference)
        golds = _golds(gold)
        if not golds:
            return not_scored("error", f"{self.reference} is not a text, a number, or a list of them")
        reply = reply_of(row)
        if not reply.strip():
            return verdict(0, "the reply is empty")
        said = math_answer(reply)
        if not said:
            return verdict(0, "the reply states no answer")
        if len(said) > self.max_chars:
            return verdict(0, f"the answer is longer than {self.max_chars} characters")
        results = [self._compare(g, said) for g in golds]
        best = next((r for r in results if r["reward"] == 1.0), None)
        if best is None:
            best = next((r for r in results if r["reward"] is None), results[0])
        return {**best, "answer": said[:200]}

    def equal(self, gold: str, said: str) -> Verdict:
        """Return the verdict on two answers, without looking for them in a reply."""
        return self._compare(gold, said)

    def _compare(self, gold: str, said: str) -> Verdict:
        quick = self._numbers(gold, said)
        if quick is not None:
            return verdict(quick, "equal numbers" if quick else "different numbers")
        if _written(gold) == _written(said) != "":
            return verdict(1, "the same text")
        try:
            result = shared_pool(_MODULE, self.workers).call([gold, said, self.options], self.deadline)
        except WorkTimeoutError:
            if self.on_timeout == "fail":
                return verdict(0, f"the evaluation was ended after {self.deadline:g} s")
            return not_scored("timeout", f"the evaluation was ended after {self.deadline:g} s")
        except WorkError as error:
            return not_scored("error", error.what)
        if "gold" in result:
            return not_scored("error", "the reference cannot be read as mathematics")
        if "said" in result:
            return verdict(0, f"the answer cannot be read as mathematics: {result['said']}"[:200])
        return verdict(result["equal"], "equal" if result["equal"] else "not equal")

    def _numbers(self, gold: str, said: str) -> bool | None:
        """Decide two plain numbers without a worker, or return `None`."""
        if not (_PLAIN.fullmatch(gold.strip().strip("$")) and _PLAIN.fullmatch(said.strip().strip("$*"))):
            return None
        a, b = read_number(gold), read_number(said)
        if a is None or b is None or a.unit or b.unit or a.percent or b.percent:
            return None
        if a.value == b.value:
            return True
        return False if a.value.denominator == 1 and b.value.denominator == 1 else None


def _written(text: str) -> str:
    """Return an answer without decoration and spaces between tokens: the same text is the same answer, read or not."""
    return re.sub(r"(?<![A-Za-z\d])\s+|\s+(?![A-Za-z\d])", "", strip_decoration(text))


_PLAIN = re.compile(r"\s*[-+−]?\d[\d,]*(?:\.\d+)?\s*")


def _golds(gold: Any) -> list[str]:
    out = []
    for item in gold if isinstance(gold, list | tuple) else [gold]:
        if isinstance(item, bool) or not isinstance(item, str | int | float) or not str(item).strip():
            return []
        text = str(item)
        box = boxes(text)
        if box:
            text = box[-1].value
        elif len(text) > 60 and (marked := [m for m in marked_answers(text) if m.strong and m.value]):
            text = marked[-1].value
        out.append(text)
    return out


def _need_library() -> None:
    import importlib.util

    for name in ("sympy", "math_verify"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def warm(workers: int = WORKERS.value) -> None:
    """Start one worker now, so that the first row does not wait for it."""
    shared_pool(_MODULE, workers).call(
        ["1/2", "0.5", {"rel_tol": 0.0, "digits": 6, "units": "same", "percent": "value"}], 60.0
    )


def equal_pairs(pairs: Sequence[tuple[str, str]], verifier: MathEqual | None = None) -> list[float | None]:
    """Return the rewards of pairs of answers `(gold, said)`."""
    check = verifier or MathEqual()
    return [check.equal(gold, said)["reward"] for gold, said in pairs]
