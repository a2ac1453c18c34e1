r"""Does a reply stand by what it states? A question, a negation, a guess or a refusal is no answer.

Asked only where nothing marks the answer and its place in the prose decides, and about what follows a marked answer in
its line. Words are looked for right beside the statement, so that "12 of them are not red" stays an answer.

Example:
    >>> doubtful("Is it 12?", 6, 8), doubtful("It is 12.", 6, 8)
    (True, False)
"""

from __future__ import annotations

import re

__all__ = ["doubtful", "open_box", "second_thought"]

_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|maybe|perhaps|possibly|probably|either|unlikely|anything but)|n['’]t"
    r"|\b(?:could|might|may|would|cannot|can) be|\b(?:not sure|unsure)\s(?:if|whether|that)?\s?(?:it is|it's)?)"
    r"(?:\s+(?:be|equal|equals|to|is|it|the|a|an|about|around|exactly|just|simply|something|like|answer|number|value)){0,4}"
    r"[\s:=*_$`\"'(\\\[]*(?:[A-Za-z]\s{0,2}=\s{0,2})?$",
    re.I,
)
_AFTER = re.compile(
    r"^[*_$`\"')\\\]\s]{0,8}(?:\.\s{0,2})?(?:\?|(?:is|was|seems|looks|would be|must be|cannot be|can't be)\s"
    r"(?:definitely\s|clearly\s|also\s)?(?:wrong|incorrect|false|not\b|impossible|a guess))",
    re.I,
)
_REFUSAL = re.compile(
    r"\b(?:i|we)\s(?:cannot|can['’]?t|can not|could not|couldn['’]t|am unable|are unable|do not know|don['’]t know"
    r"|give up|am not sure|['’]?m not sure|am not certain|have no idea)\b|\bi['’]m not sure\b|\bno idea\b",
    re.I,
)
_SECOND = re.compile(r"^[\s.!?,;*_`)$]{0,8}(?:or|maybe|perhaps|possibly|alternatively|but it could|unless)\b", re.I)


def doubtful(text: str, start: int, end: int) -> bool:
    """Return whether the statement at `text[start:end]` is asked, denied, guessed or followed by a refusal."""
    before = re.split(r"[.!?]\s|\n", text[max(0, start - 200) : start])[-1]
    after = text[end : end + 2_000]
    return bool(_BEFORE.search(before) or _AFTER.match(after) or _REFUSAL.search(after))


def second_thought(rest: str) -> bool:
    """Return whether the text after an answer takes it back or offers another: `12. Or maybe 13.`"""
    return bool(_SECOND.match(rest) and re.search(r"\d|\$", rest[:200]))


def open_box(text: str) -> bool:
    r"""Return whether a reply ends inside a box that was never closed: what it holds may be cut short."""
    at = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if at < 0:
        return False
    tail = text[at:]
    return tail.count("{") - tail.count("\\{") > tail.count("}") - tail.count("\\}")
