r"""Text verifiers: ExactMatch, Includes, Regex.

Normalisation is stated, never silent: Unicode NFKC, case folding and white space by default, each an argument.
NFKC maps look-alikes to one form (full-width letters, ligatures) and also `x²` to `x2`; turn it off where that
matters. Meaning is not compared here; that is a judge's work.

Example:
    >>> ExactMatch()({"final_text": " paris\n", "privileged": {"reference": "Paris"}})["reward"]
    1.0
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.defaults import DEADLINE_S, REGEX_INLINE_STEPS
from whileai_verify.extract import code_blocks, marked_answer, strip_decoration
from whileai_verify.pool import WorkError, WorkTimeoutError, shared_pool
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

__all__ = ["ExactMatch", "Includes", "Regex", "normalise"]

AnswerFrom = Literal["whole", "marked", "code"]


def normalise(
    text: str,
    *,
    nfkc: bool = True,
    ignore_case: bool = True,
    ignore_space: bool = True,
    ignore_punctuation: bool = False,
) -> str:
    """Return a text in the form in which it is compared.

    Args:
        text: Any text.
        nfkc: Unicode NFKC.
        ignore_case: Unicode case folding.
        ignore_space: Runs of white space become one space, the ends are trimmed.
        ignore_punctuation: Remove every character of a Unicode punctuation category.
    """
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    if ignore_case:
        text = text.casefold()
        if nfkc:
            text = unicodedata.normalize("NFKC", text)
    if ignore_punctuation:
        text = "".join(c for c in text if not unicodedata.category(c).startswith("P"))
    if ignore_space:
        text = " ".join(text.split())
    return text


def answer_text(reply: str, answer: str) -> str:
    """Return the part of a reply that is compared: `whole`, the `marked` answer, or the last `code` block."""
    if answer == "marked":
        marked = marked_answer(reply)
        return strip_decoration(marked.value) if marked else reply
    if answer == "code":
        blocks = code_blocks(reply)
        return blocks[-1].code if blocks else ""
    return reply


def _texts(value: Any) -> list[str] | None:
    """Return a reference as a list of accepted texts, or `None` when it is something else."""
    values = value if isinstance(value, list | tuple) else [value]
    out = []
    for item in values:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            return None
        out.append(str(item))
    return out


class ExactMatch:
    """1 when the reply equals the reference, or one of a list of references, after normalisation.

    Args:
        reference: Dotted field that holds the reference: a text, or a list of texts that are all right.
        answer: What is compared: the `whole` reply, its `marked` answer (the whole where nothing is marked), or its
            last `code` block.
        nfkc: Compare in Unicode NFKC.
        ignore_case: Compare without case.
        ignore_space: Treat runs of white space as one space.
        ignore_punctuation: Drop punctuation.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": " PARIS ", "privileged": {"reference": "Paris"}}, 1.0),
        Example({"final_text": "Paris, France", "privileged": {"reference": "Paris"}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "Paris"}}, 0.0),
        Example({"final_text": "Paris"}, None),
    )

    def __init__(
        self,
        *,
        reference: str = "privileged.reference",
        answer: AnswerFrom = "whole",
        nfkc: bool = True,
        ignore_case: bool = True,
        ignore_space: bool = True,
        ignore_punctuation: bool = False,
        threshold: float = 1.0,
    ) -> None:
        check_options(answer=(answer, ("whole", "marked", "code")))
        self.reference, self.answer, self.threshold = reference, answer, threshold
        self.form = {
            "nfkc": nfkc,
            "ignore_case": ignore_case,
            "ignore_space": ignore_space,
            "ignore_punctuation": ignore_punctuation,
        }

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        gold = reference_of(row, self.reference)
        if gold is MISSING:
            return no_reference(self.reference)
        texts = _texts(gold)
        if not texts:
            return not_scored("error", f"{self.reference} is not a text or a list of texts")
        said = normalise(answer_text(reply_of(row), self.answer), **self.form)
        if not said.strip():
            return verdict(0, "the reply is empty")
        right = any(said == normalise(t, **self.form) for t in texts)
        return verdict(right, "equals the reference" if right else "differs from the reference")


class Includes:
    """1 when the reply contains any of some texts, all of them, or none of them.

    Args:
        texts: The texts; `None` reads them from the reference field.
        mode: `any`, `all` or `none`. With `none` an empty reply is still 0: silence shows nothing.
        words: Match whole words only, so that `7` is not found in `17`.
        reference: Dotted field that holds a text or a list of texts.
        nfkc: Compare in Unicode NFKC.
        ignore_case: Compare without case.
        ignore_space: Treat runs of white space as one space.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "It is 7.", "privileged": {"reference": "7"}}, 1.0),
        Example({"final_text": "It is 17.", "privileged": {"reference": "7"}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "7"}}, 0.0),
        Example({"final_text": "7"}, None),
    )

    def __init__(
        self,
        texts: Sequence[str] | None = None,
        *,
        mode: Literal["any", "all", "none"] = "any",
        words: bool = True,
        reference: str = "privileged.reference",
        nfkc: bool = True,
        ignore_case: bool = True,
        ignore_space: bool = True,
        threshold: float = 1.0,
    ) -> None:
        check_options(mode=(mode, ("any", "all", "none")))
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of texts", fix=f"pass texts=[{texts!r}]")
        if texts is not None and (not texts or not all(isinstance(t, str) and t.strip() for t in texts)):
            raise ParameterError(
                "texts needs at least one text, and none of them empty", why="nothing to look for would always hold"
            )
        self.texts, self.mode, self.words, self.reference = texts, mode, words, reference
        self.threshold = threshold
        self.form = {"nfkc": nfkc, "ignore_case": ignore_case, "ignore_space": ignore_space}

    def _has(self, said: str, text: str) -> bool:
        wanted = normalise(text, **self.form)
        at = said.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            before = at == 0 or not (said[at - 1].isalnum() and wanted[0].isalnum())
            after = end == len(said) or not (said[end].isalnum() and wanted[-1].isalnum())
            if not self.words or (before and after):
                return True
            at = said.find(wanted, at + 1)
        return False

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        texts: Sequence[str] | None = self.texts
        if texts is None:
            gold = reference_of(row, self.reference)
            if gold is MISSING:
                return no_reference(self.reference)
            texts = _texts(gold)
            if not texts or not all(t.strip() for t in texts):
                return not_scored("error", f"{self.reference} is not a text or a list of texts")
        said = normalise(reply_of(row), **self.form)
        if not said.strip():
            return verdict(0, "the reply is empty")
        hits = [self._has(said, t) for t in texts]
        right = {"any": any(hits), "all": all(hits), "none": not any(hits)}[self.mode]
        return verdict(
            right, f"{sum(hits)} of {len(hits)} texts found, mode {self.mode}", found=sum(hits), of=len(hits)
        )


class Regex:
    """1 when a pattern matches the reply.

    A pattern whose worst case is cheap on this reply runs in place; every other one runs in a worker process with a
    deadline, so `(a+)+$` cannot hang a run.

    Args:
        pattern: A Python regular expression; `None` reads it from the reference field.
        match: `search` (anywhere) or `full` (the whole reply).
        ignore_case: Compile with `re.IGNORECASE`.
        answer: As in `ExactMatch`.
        reference: Dotted field that holds the pattern when none is given.
        deadline: Seconds after which matching is ended and the row is not scored.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "order A-1207", "privileged": {"reference": r"\b[A-Z]-\d{4}\b"}}, 1.0),
        Example({"final_text": "order A-12", "privileged": {"reference": r"\b[A-Z]-\d{4}\b"}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "a*"}}, 0.0),
    )

    def __init__(
        self,
        pattern: str | None = None,
        *,
        match: Literal["search", "full"] = "search",
        ignore_case: bool = False,
        answer: AnswerFrom = "whole",
        reference: str = "privileged.reference",
        deadline: float = DEADLINE_S.value,
        inline_steps: int = REGEX_INLINE_STEPS.value,
        threshold: float = 1.0,
    ) -> None:
        check_options(match=(match, ("search", "full")), answer=(answer, ("whole", "marked", "code")))
        self.flags = int(re.IGNORECASE) if ignore_case else 0
        if pattern is not None:
            try:
                re.compile(pattern, self.flags)
            except re.error as error:
                raise ParameterError(
                    f"not a regular expression: {error}", fix="see the docs of Python's re module"
                ) from None
        self.pattern, self.match, self.answer, self.reference = pattern, match, answer, reference
        self.deadline, self.inline_steps, self.threshold = deadline, inline_steps, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        pattern = self.pattern
        if pattern is None:
            pattern = reference_of(row, self.reference)
            if pattern is MISSING:
                return no_reference(self.reference)
        try:
            compiled = re.compile(pattern, self.flags)
        except (re.error, TypeError, RecursionError, OverflowError):
            return not_scored("error", f"{self.reference} is not a regular expression")
        said = answer_text(reply_of(row), self.answer)
        if not said.strip():
            return verdict(0, "the reply is empty")
        if worst_case_steps(pattern, len(said)) <= self.inline_steps:
            found = compiled.search(said) if self.match == "search" else compiled.fullmatch(said)
            right = found is not None
        else:
            try:
                right = bool(
                    shared_pool("whileai_verify.work_regex", 1).call(
                        [pattern, self.flags, self.match, said], self.deadline
                    )
                )
            except WorkTimeoutError:
                return not_scored("timeout", f"the pattern did not end within {self.deadline:g} s")
            except WorkError as error:
                return not_scored("error", error.what)
        return verdict(right, "the pattern matches" if right else "the pattern does not match")


def worst_case_steps(pattern: str, length: int) -> float:
    """Return an upper bound of the matching steps of a pattern on a text: `length` to the power of its open repeats.

    A repeat inside a repeat counts as unbounded, and so does a backreference. The bound is coarse on purpose.
    """
    unescaped = re.sub(r"\\.", "", pattern, flags=re.S)
    if re.search(r"\\[1-9]|\(\?P=", pattern):
        return float("inf")
    no_class = re.sub(r"\[\^?\]?[^\]]*\]", "c", unescaped)
    repeats = len(re.findall(r"[*+]|\{\d*,\d*\}|\{\d{2,}\}", no_class))
    if re.search(r"\)(?:[*+?]|\{)", no_class) and (repeats > 1 or "|" in no_class):
        return float("inf")
    alternatives = 1 + no_class.count("|") + no_class.count("?")
    return float(max(1, length)) ** min(repeats + 1, 6) * alternatives
