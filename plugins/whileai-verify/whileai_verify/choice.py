r"""MultipleChoice: exactly one option is chosen, and it is the right one.

The letter is read with its decoration removed (`**B**`, `$B$`, `(B).`, `\boxed{B}`, `option B`, `B) Paris`), and the
text of an option is accepted in place of its letter. Two different letters in the answer are no choice at all. What
is not a marked answer counts only when the whole reply, or its last line, is nothing but a choice.

Example:
    >>> MultipleChoice()({"final_text": "**ANSWER:** **B**", "privileged": {"reference": "B"}})["reward"]
    1.0
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.extract import marked_answers, strip_decoration
from whileai_verify.rowview import MISSING, Verdict, lookup, no_reference, not_scored, reference_of, reply_of, verdict
from whileai_verify.text import normalise

__all__ = ["MultipleChoice", "read_choice"]

_LEAD = re.compile(
    r"^(?:the\s+)?(?:correct\s+|right\s+|best\s+|only\s+)?(?:option|choice|letter|answer)?\s*(?:is\b|[:：])?\s*"
    r"(?:(?:definitely|clearly|certainly|obviously|surely|simply|indeed|clear)\b[\s:,]*)?(?:option|choice|letter)?\s*",
    re.I,
)
_STATED = re.compile(
    r"^(?:i(?:['’]d|['’]ll| would| will)?\s+(?:choose|pick|select|go with|answer)|my\s+(?:choice|pick)\s+is"
    r"|it(?:['’]s| is)|it\s+must\s+be"
    r"|i\s+(?:think|believe)\s+(?:it(?:['’]s| is)|the\s+answer\s+is))\s+(?:(?:option|choice|letter)\s+)?"
    r"(?=[*(\[\"'`]{0,3}[A-Za-z][*)\]\"'`.]{0,4}(?:\s|$))",
    re.I,
)
_CONFIRMED = re.compile(
    r"\s+(?:is|must be)\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:answer|option|choice|one))?\s*[.!]?\s*", re.I
)
_LETTER = re.compile(
    r"^[(\[{]?\s*(?P<letter>[A-Za-z])\s*(?P<close>[)\]}]?)(?P<rest>$|(?:[\s.:,;)\]?(–—/&|+→=]|-(?=\s)).*|\*.*)", re.S
)
_USUAL = re.compile(r"[(\[]?([A-Za-z])[)\]]?[.:]?")  # most answers, read at once
_REFUSED = re.compile(r"\s*(?:\?|(?:is|was|seems)\s+(?:wrong|incorrect|false|not)\b|(?:can|could|may|might)\b)", re.I)
_OTHERS = re.compile(r"(?<![A-Za-z'’])([A-Z])(?![A-Za-z'’])")
_SENTENCE = re.compile(r"[.;!?]\s+|\bbut\b|\n")
_DISMISSED = re.compile(
    r"\b(?:wrong|incorrect|false|not|cannot|instead of|rather than|unlike|eliminat\w*|ruled? out|fails?|excluded"
    r"|invalid|impossible|because|since|as|given|due to|while|whereas)\b|n['’]t\b",
    re.I,
)
_CHANGED = re.compile(
    r"\b(?:or|actually|wait|no|correction|alternatively|maybe|perhaps|possibly|also|both|sorry|rather it|should be"
    r"|could be|might be)\b(?!\s+than)",
    re.I,
)


def _in_doubt(rest: str, chosen: str, letters: Sequence[str]) -> bool:
    """Return whether the text after a letter takes it back, or offers another letter that it does not dismiss."""
    rest = rest[:400]
    if _REFUSED.match(rest) or re.match(r"\s*[,(]?\s*(?:and/or|or|maybe|perhaps|unless)\b", rest, re.I):
        return True
    for clause in _SENTENCE.split(rest):
        for m in _OTHERS.finditer(clause):
            article = (
                m[1] in "AI" and re.match(r"\s+[a-z]", clause[m.end() :]) and not _DISMISSED.search(clause[: m.start()])
            )
            if m[1] == chosen or m[1] not in letters or (article and m.start() > 0):
                continue
            if not _DISMISSED.search(clause) or _CHANGED.search(clause):
                return True
    return bool(re.match(r"[\s.,;:–—-]*(?:actually|wait|no\s|no,|correction|alternatively|sorry)\b", rest, re.I))


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    """Return the letter of the option that a text is, `None` for none, or where two options read the same."""
    by_text = {normalise(strip_decoration(v)): k for k, v in options.items()}
    return by_text.get(normalise(text)) if len(by_text) == len(options) else None


def read_choice(text: str, letters: Sequence[str], options: Mapping[str, str], *, alone: bool = False) -> str | None:
    """Return the letter that a short answer chooses, or `None` when it chooses none, or more than one.

    Args:
        text: The marked answer, or a line.
        letters: The letters that exist, upper case.
        options: Letter to option text, possibly empty.
        alone: The text is not marked as an answer, so words after the letter need a bracket, colon or stop between.
    """
    plain = strip_decoration(unicodedata.normalize("NFKC", text), quotes=True)
    usual = None if options else _USUAL.fullmatch(plain)
    if usual and usual[1].upper() in letters:
        return usual[1].upper()
    named = _by_text(plain, options)
    if named and not (len(plain) == 1 and plain.upper() in letters):
        return named
    after = re.fullmatch(r"(.+?)\s*[(\[]([A-Z])[)\]]\.?", plain)
    if after and _by_text(after[1], options) == after[2]:
        return after[2]
    plain = re.sub(r"[*_`]{1,3}|\$|\\(?:text|mathrm|mathbf|textbf)\s*(?=\{)", "", plain).strip()
    plain = _STATED.sub("", plain, count=1) if alone else plain
    plain = (_LEAD.sub("", plain, count=1).strip() or plain).strip("\"'“”")
    match = _LETTER.match(re.sub(r"^\{(.{1,3})\}", r"(\1)", plain))
    if not match:
        return _by_text(plain, options)
    letter, rest = match["letter"], re.sub(r"\\(?:text|quad|,|;| )|[{}]", " ", match["rest"])
    bare = rest.strip(" .)]:*")
    parted = bool(match["close"]) or re.match(r"[)\].:]|\s?[–—-]\s", rest) is not None
    if alone and _CONFIRMED.fullmatch(rest):
        return letter.upper() if letter.upper() in letters else None
    if bare and not parted and (alone or letter.islower()):
        return None  # an ordinary word such as "a"
    if letter.upper() not in letters or _in_doubt(rest, letter.upper(), letters):
        return None
    if letter.upper() in "AI" and re.match(r"\s+[a-z]", rest) and not options:
        return None  # "A good question": an article, not a choice
    if options and bare:
        said = normalise(re.sub(r"^[\s).:\]–—-]+", "", rest).strip(" .*"))
        named = next((k for k, v in options.items() if normalise(strip_decoration(v)) == said), None)
        if named and named != letter.upper():
            return None  # the letter of one option with the text of another
    return letter.upper()


def _contradicted(
    reply: str, value: str, start: int, chosen: str, options: Mapping[str, str], letters: Sequence[str]
) -> bool:
    """Return whether the line takes the choice back: `B. Rome` where B is Paris, `B? No`, `B. Actually C.`"""
    line = reply[start:].lstrip().split("\n", 1)[0]
    after = line[line.find(value) + len(value) :] if value in line else ""
    if not after.strip("}*_$). "):
        return False
    if _in_doubt(after.lstrip("}*_$) "), chosen, letters):
        return True
    rest = re.sub(r"^[\s).:\]*–—-]+", "", after)
    said = normalise(re.split(r"[.;]\s|[.;]?$", rest, maxsplit=1)[0].strip(" .*"))
    return bool(said) and any(k != chosen and normalise(strip_decoration(v)) == said for k, v in options.items())


class MultipleChoice:
    """1 when the reply chooses exactly one option, and that is the reference.

    Args:
        options: Texts of the options in order, or letter to text; `None` reads `options_field`, and without it any
            letter A to Z is an option.
        options_field: Dotted field with the options of the task.
        reference: Dotted field with the right letter, the text of the right option, or its position (an int, 0-based).
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "ANSWER: (B).", "privileged": {"reference": "B"}}, 1.0),
        Example({"final_text": "ANSWER: BC", "privileged": {"reference": "B"}}, 0.0),
        Example({"final_text": "ANSWER: Because", "privileged": {"reference": "B"}}, 0.0),
        Example({"final_text": "", "privileged": {"reference": "B"}}, 0.0),
        Example({"final_text": "B"}, None),
    )

    def __init__(
        self,
        options: Sequence[str] | Mapping[str, str] | None = None,
        *,
        options_field: str = "privileged.options",
        reference: str = "privileged.reference",
        threshold: float = 1.0,
    ) -> None:
        if options is not None and (isinstance(options, str) or not options):
            raise ParameterError(
                "options must be a list of texts, or letter to text", fix="pass options=['Paris', 'Rome']"
            )
        self.options, self.options_field, self.reference = options, options_field, reference
        self.threshold = threshold

    def _options(self, row: Mapping[str, Any]) -> dict[str, str] | None:
        found = self.options if self.options is not None else lookup(row, self.options_field)
        if found is MISSING or found is None:
            return {}
        if isinstance(found, Mapping):
            return {str(k).strip().upper(): str(v) for k, v in found.items()}
        if isinstance(found, list | tuple) and 0 < len(found) <= 26:
            return {chr(65 + i): str(v) for i, v in enumerate(found)}
        return None

    def _gold(self, gold: Any, options: dict[str, str]) -> str | None:
        if isinstance(gold, int) and not isinstance(gold, bool):
            letter = chr(65 + gold) if 0 <= gold < 26 else ""
            return letter if letter in options else None
        if not isinstance(gold, str):
            return None
        plain = strip_decoration(gold).strip("()[]. ")
        if len(plain) == 1 and plain.isalpha() and (not options or plain.upper() in options):
            return plain.upper()
        by_text = [k for k, v in options.items() if normalise(v) == normalise(gold)]
        return by_text[0] if len(by_text) == 1 else None

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        gold = reference_of(row, self.reference)
        if gold is MISSING:
            return no_reference(self.reference)
        options = self._options(row)
        right = None if options is None else self._gold(gold, options)
        if options is None or right is None:
            return not_scored("error", f"{self.reference} is not one of the options")
        letters = list(options) or [chr(c) for c in range(65, 91)]
        reply = reply_of(row).strip()
        if not reply:
            return verdict(0, "the reply is empty")
        marked = [m for m in marked_answers(reply) if m.value]
        strong = [m for m in marked if m.strong] or marked
        strong = [m for m in strong if m.marker != "label"]
        if strong:
            chosen = read_choice(strong[-1].value, letters, options)
            if chosen is None and strong[-1].marker == "phrase" and len(strong) > 1 and not strong[-1].strong:
                chosen = read_choice(strong[-2].value, letters, options)
            if chosen is not None and _contradicted(
                reply, strong[-1].value, strong[-1].start, chosen, options, letters
            ):
                chosen = None
        else:
            chosen = read_choice(reply, letters, options, alone=True) if len(reply) < 2_000 else None
            if chosen is None and "\n" in reply:
                chosen = read_choice(reply.rsplit("\n", 1)[1], letters, options, alone=True)
        if chosen is None:
            return verdict(0, "the reply does not choose exactly one option", chosen=None)
        return verdict(chosen == right, "the right option" if chosen == right else "another option", chosen=chosen)
