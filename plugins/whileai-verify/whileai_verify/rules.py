"""Rules on the text: FormatTags, and RuleChecks, which fails closed.

An unknown check, a check without its value and an empty list of checks are never satisfied: the first two are errors
when the verifier is made (or an `error` on the row when they come from it), the last is "nothing to check", not scored.

Example:
    >>> RuleChecks([{"id": "max_words", "value": 3}])({"final_text": "one two"})["reward"]
    1.0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.protocols import Example
from whileai_verify.extract import find_json
from whileai_verify.rowview import (
    MISSING,
    Verdict,
    check_options,
    not_scored,
    raw_reply_of,
    reference_of,
    reply_of,
    verdict,
)

__all__ = ["CHECKS", "FormatTags", "RuleChecks"]

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def _words(text: str) -> int:
    return len(_WORD.findall(text))


def _sentences(text: str) -> int:
    return len([s for s in re.split(r"[.!?]+(?:\s|$)", text) if s.strip()])


def _paragraphs(text: str) -> int:
    return len([p for p in re.split(r"\n\s*\n", text) if p.strip()])


def _bullets(text: str) -> int:
    return len(re.findall(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S", text, re.M))


def _has(text: str, wanted: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(wanted.casefold())}(?!\w)", text.casefold()) is not None


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


# id -> (type of the value, check). Every number is a whole number of at least 0, every text is not empty.
CHECKS: dict[str, tuple[str, Callable[[str, Any], bool]]] = {
    "min_words": ("int", lambda t, v: _words(t) >= v),
    "max_words": ("int", lambda t, v: _words(t) <= v),
    "min_chars": ("int", lambda t, v: len(t.strip()) >= v),
    "max_chars": ("int", lambda t, v: len(t.strip()) <= v),
    "min_sentences": ("int", lambda t, v: _sentences(t) >= v),
    "max_sentences": ("int", lambda t, v: _sentences(t) <= v),
    "paragraphs": ("int", lambda t, v: _paragraphs(t) == v),
    "bullets": ("int", lambda t, v: _bullets(t) == v),
    "keywords_all": ("texts", lambda t, v: all(_has(t, w) for w in _list(v))),
    "keywords_any": ("texts", lambda t, v: any(_has(t, w) for w in _list(v))),
    "keywords_none": ("texts", lambda t, v: not any(_has(t, w) for w in _list(v))),
    "starts_with": ("text", lambda t, v: t.strip().startswith(v)),
    "ends_with": ("text", lambda t, v: t.strip().endswith(v)),
    "lowercase": ("none", lambda t, v: t == t.lower()),
    "uppercase": ("none", lambda t, v: t == t.upper()),
    "no_commas": ("none", lambda t, v: "," not in t),
    "json": ("none", lambda t, v: not find_json(t).problem),
    "no_markdown": ("none", lambda t, v: not re.search(r"```|\*\*|^#{1,6} |^\s*[-*] ", t, re.M)),
}


def _check_one(check: Any) -> tuple[str, Any]:
    """Return `(id, value)` of a declared check, or raise `ParameterError`."""
    if not isinstance(check, Mapping) or not isinstance(check.get("id"), str):
        raise ParameterError("a check is {'id': ..., 'value': ...}", why=f"got {type(check).__name__}")
    name, value = check["id"], check.get("value")
    if name not in CHECKS:
        unknown_name("check", name, CHECKS)
    extra = set(check) - {"id", "value"}
    if extra:
        raise ParameterError(
            f"check {name!r} has unknown keys: {', '.join(sorted(map(str, extra)))}", fix="use id and value"
        )
    kind = CHECKS[name][0]
    texts = value if isinstance(value, list | tuple) else [value]
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool) and value >= 0,
        "text": isinstance(value, str) and bool(value.strip()),
        "texts": bool(texts) and all(isinstance(t, str) and t.strip() for t in texts),
        "none": value in (None, True),
    }[kind]
    if not fits:
        raise ParameterError(f"check {name!r} cannot use value {value!r:.80}", why=f"it needs {kind}")
    return name, value


class RuleChecks:
    """Declared checks on the text of the reply; every declared check counts, also one that is declared twice.

    Args:
        checks: A list of `{"id", "value"}`; `None` reads them from `checks_field`. The ids are the keys of `CHECKS`.
        score: `all` (1 when every check holds) or `fraction` (the share that holds).
        checks_field: Dotted field of the row with the checks.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "one two", "privileged": {"checks": [{"id": "max_words", "value": 3}]}}, 1.0),
        Example({"final_text": "one two", "privileged": {"checks": [{"id": "max_words", "value": 1}]}}, 0.0),
        Example({"final_text": "", "privileged": {"checks": [{"id": "max_words", "value": 3}]}}, 0.0),
        Example({"final_text": "one two", "privileged": {"checks": []}}, None),
    )

    def __init__(
        self,
        checks: Sequence[Mapping[str, Any]] | None = None,
        *,
        score: Literal["all", "fraction"] = "all",
        checks_field: str = "privileged.checks",
        threshold: float = 1.0,
    ) -> None:
        check_options(score=(score, ("all", "fraction")))
        self.checks = None if checks is None else [_check_one(c) for c in checks]
        self.score, self.checks_field, self.threshold = score, checks_field, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        checks = self.checks
        if checks is None:
            declared = reference_of(row, self.checks_field)
            if declared is MISSING:
                return not_scored("missing", f"the row has no {self.checks_field}")
            try:
                checks = [_check_one(c) for c in declared]
            except (ParameterError, TypeError) as error:
                return not_scored("error", error.what if isinstance(error, ParameterError) else "checks are a list")
        if not checks:
            return not_scored("missing", "nothing to check")
        said = reply_of(row)
        if not said.strip():
            return verdict(0, "the reply is empty", passed=[False] * len(checks))
        passed = [CHECKS[name][1](said, value) for name, value in checks]
        share = sum(passed) / len(passed)
        failed = [name for (name, _), ok in zip(checks, passed, strict=True) if not ok]
        reason = "every check holds" if not failed else f"fails {', '.join(failed)}"
        reward = share if self.score == "fraction" else float(all(passed))
        return verdict(reward, reason, passed=passed, fraction=share)


class FormatTags:
    """1 when the reply is these tags, each opened and closed once, in order, side by side, none of them empty.

    The whole final text is read, reasoning block included.

    Args:
        tags: Names in order, for example `("think", "answer")`.
        outside: Whether text may stand before, between and after the tags.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example({"final_text": "<think>a</think><answer>b</answer>"}, 1.0),
        Example({"final_text": "<think>a</tool><answer>b</answer>"}, 0.0),
        Example({"final_text": ""}, 0.0),
    )

    def __init__(
        self, tags: Sequence[str] = ("think", "answer"), *, outside: bool = False, threshold: float = 1.0
    ) -> None:
        if isinstance(tags, str) or not tags or not all(re.fullmatch(r"[A-Za-z_][\w-]*", t) for t in tags):
            raise ParameterError(
                "tags needs at least one tag name",
                why="a format of nothing would always hold",
                fix="('think', 'answer')",
            )
        if len(set(tags)) != len(tags):
            raise ParameterError("a tag name is listed twice", why="each tag stands once")
        self.tags, self.outside, self.threshold = tuple(tags), outside, threshold

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        text = raw_reply_of(row)
        names = "|".join(map(re.escape, self.tags))
        found = [(m[1] == "/", m[2], m.start(), m.end()) for m in re.finditer(rf"<(/?)({names})>", text)]
        wanted = [(closing, tag) for tag in self.tags for closing in (False, True)]
        if [(closing, tag) for closing, tag, _, _ in found] != wanted:
            return verdict(0, "the tags are not opened and closed once each, in order")
        inner = [text[found[i][3] : found[i + 1][2]] for i in range(0, len(found), 2)]
        if not all(part.strip() for part in inner):
            return verdict(0, "a tag is empty")
        gaps = [text[: found[0][2]], text[found[-1][3] :]]
        gaps += [text[found[i][3] : found[i + 1][2]] for i in range(1, len(found) - 1, 2)]
        if not self.outside and any(gap.strip() for gap in gaps):
            return verdict(0, "text stands outside of the tags")
        if any(re.search(r"</?[A-Za-z_][\w-]*>", gap) for gap in gaps):
            return verdict(0, "another tag stands between the tags")
        return verdict(1, "the tags are as declared")
