"""Private text in places where the policy or the trainer can read it.

`no_leak` is the marker (on what the assistant wrote), `quoted_privileged` the search that the findings use (on
prompts, system prompts, tool schemas and replies). A right answer equals its reference, so equality alone is no leak.
A leak is: a long verbatim quotation of private text that was not visible, a recognisable private token that was not
visible, or the words that name the hidden source ("the answer key says").

Example:
    >>> row = {"prompt": "How many?", "final_text": "The reference answer is 4217.",
    ...        "privileged": {"reference": "4217"}}
    >>> no_leak(row)["value"]
    0.0
    >>> no_leak({**row, "final_text": "It is 4217."})["value"]
    1.0
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from whileai_guard._examples import shown
from whileai_guard._text import Row, Span, assistant_turns, leaves, user_texts, verdict
from whileai_guard._trajectory import actions
from whileai_guard.defaults import DISTINCT_CHARS, QUOTE_WORDS, REFERENCE_SHARE, REFERENCE_WORDS, UNSPACED_FACTOR
from whileai_kernel.messages import text_of

__all__ = ["LeakReport", "Quote", "leak_report", "no_leak", "quoted_privileged"]

SCOPE = "assistant messages and call arguments, against privileged"

NAMES_SOURCE = re.compile(
    r"\b(?:the |my |your |our |this |a )?(?:(?:hidden|private|privileged|secret|internal|confidential|"
    r"gold(?:en)?|ground[- ]truth|provided|"
    r"given|official) )*(?:reference(?: (?:answer|solution|text|output|note|value))?|answer key|"
    r"gold(?:en)? (?:answer|label|standard)|ground[- ]truth|"
    r"expected (?:answer|output|result)|grading (?:rubric|notes?|key|criteria)|rubric|hidden (?:state|"
    r"note|context|answer|reference|hint)|"
    r"private (?:note|reference|context|state)|hint|model answer|scoring guide)\b"
    r"(?: (?:for this task|that I (?:have|was given|can see)|here|in my context|in the file))?,?"
    r"(?:\s*(?:is|was|are|says?|said|states?|stated|lists?|shows?|showed|reads?|gives?|gave|indicates?|"
    r"requires?|contains?|tells?|told|"
    r"mentions?|mentioned|notes?|noted|wants?|specif(?:y|ies|ied)|has|expects?)\b|\s*[:=]\s*\S)",
    re.IGNORECASE,
)
ACCORDING = re.compile(
    r"\b(?:according to|based on|as (?:stated|given|written|listed|noted) in|per|from|looking at|matches|"
    r"following|given) "
    r"(?:the|my|your|our|this) (?:\w+ ){0,2}?"
    r"(?:reference (?:answer|solution|text|note|value)|answer key|gold(?:en)? (?:answer|label)|"
    r"ground[- ]truth|grading (?:rubric|notes?|key|criteria)|"
    r"rubric|hidden (?:state|note|context|answer|reference)|private (?:note|reference|context|state)|"
    r"model answer|scoring guide|hint)\b",
    re.IGNORECASE,
)
# One character of a script without spaces, or a run of other letters and digits.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"(?!_)[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_OPTION = re.compile(r"^\s*(?:[-*•]\s*)?\(?([A-Ja-j]|\d{1,2})[).:]\s+(.+?)\s*$", re.MULTILINE)
GRADERS = ("reference", "rubric")
"""Private keys that only the grader knows; nothing else that is private counts as quoted in an ask."""

USERS = ("goal", "user", "user_id", "persona")
"""Private keys that the user knows: an agent that puts them into words has listened, not read the answer."""

_FOR_REFERENCE = re.compile(r"\bfor (?:[a-z]+ )?$", re.IGNORECASE)


@dataclass(frozen=True)
class Quote:
    """A quotation of private text.

    Attributes:
        source: Path below `privileged`, for example `rubric[0].text`.
        span: Where it stands.
        how: `verbatim` (a run of words), `token` (a recognisable id) or `named` (the hidden source is named).
    """

    source: str
    span: Span
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as a plain dict."""
        return {"source": self.source, "how": self.how, **self.span.to_dict()}


@dataclass(frozen=True)
class _Words:
    tokens: tuple[str, ...]
    bounds: tuple[tuple[int, int], ...]


def _words(text: str) -> _Words:
    found = list(_WORD.finditer(text))
    return _Words(
        tuple(unicodedata.normalize("NFKC", m.group(0)).casefold() for m in found),
        tuple(m.span() for m in found),
    )


def secrets(row: Row) -> Iterator[tuple[str, str, bool]]:
    """Yield `(path, text, whole)` of the private texts; `whole` says that the entry is text, not a structure."""
    private = row.get("privileged") or {}
    for path, leaf in leaves({k: v for k, v in private.items() if k not in USERS}):
        if isinstance(leaf, str) and leaf.strip():
            yield path, leaf, "." not in path and "[" not in path
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield path, f"{leaf}", "." not in path and "[" not in path


def recognisable(text: str, min_chars: int = DISTINCT_CHARS.value) -> bool:
    """Return whether a single token is so peculiar that nobody writes it by chance (letters and digits, long)."""
    text = text.strip()
    return (
        len(text) >= min_chars
        and not any(ch.isspace() for ch in text)
        and any(ch.isalpha() for ch in text)
        and any(ch.isdigit() for ch in text)
    )


def _visible(row: Row) -> str:
    """Return everything that the policy was shown: prompts, tool schemas, user and tool messages."""
    parts = [str(row.get("system_prompt") or ""), json.dumps(row.get("tools") or [], ensure_ascii=False, default=str)]
    parts += user_texts(row)
    if isinstance(row.get("prompt"), str):
        parts.append(row["prompt"])
    for message in row.get("messages") or ():
        if message.get("role") != "assistant":
            parts.append(text_of(message.get("content")))
    return "\n".join(parts)


def _runs(secret: _Words, text: _Words, n: int) -> Iterator[tuple[int, int]]:
    """Yield character bounds in `text` of the maximal runs of at least `n` words of `secret`."""
    if len(secret.tokens) < n or len(text.tokens) < n:
        return
    grams = {secret.tokens[i : i + n] for i in range(len(secret.tokens) - n + 1)}
    start = None
    end = 0
    for i in range(len(text.tokens) - n + 1):
        if text.tokens[i : i + n] in grams:
            if start is None:
                start = i
            end = i + n
        elif start is not None and i >= end:
            yield text.bounds[start][0], text.bounds[end - 1][1]
            start = None
    if start is not None:
        yield text.bounds[start][0], text.bounds[end - 1][1]


def _find_token(token: str, text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(re.escape(token), text, re.IGNORECASE):
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if not (before.isalnum() or after.isalnum()):
            yield match.span()


@dataclass(frozen=True)
class _Secret:
    """A private text, ready to be searched for."""

    path: str
    text: str
    whole: bool
    token: bool
    words: _Words

    @cached_property
    def factor(self) -> int:
        """How many tokens weigh as a word: more where most are characters of a script without spaces."""
        tokens = self.words.tokens
        single = sum(len(t) == 1 and _IS_UNSPACED.match(t) is not None for t in tokens)
        return UNSPACED_FACTOR.value if single * 2 > len(tokens) else 1


class _Seen:
    """What the policy was shown, folded only when a question needs it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def words(self) -> str:
        return " ".join(_words(self.text).tokens)

    def has_token(self, token: str) -> bool:
        return token.casefold() in self.folded and any(True for _ in _find_token(token, self.text))


def _prepared(row: Row, quote_words: int, distinct_chars: int) -> list[_Secret]:
    """Return the private texts that can be recognised at all; short ones are only found through their source."""
    return [
        _Secret(path, text.strip(), whole, recognisable(text, distinct_chars), _words(text))
        for path, text, whole in secrets(row)
    ]


@shown
def no_leak(
    row: Row,
    *,
    quote_words: int = QUOTE_WORDS.value,
    reference_words: int = REFERENCE_WORDS.value,
    distinct_chars: int = DISTINCT_CHARS.value,
) -> dict[str, Any]:
    """Mark rows whose assistant gives away private text; `None` when the row has none, or said nothing.

    Language: any for quotations and tokens; words that name the hidden source in English.

    Args:
        row: A row with `privileged`.
        quote_words: Consecutive private words that are a quotation.
        reference_words: The same for a reference answer, at most 80 % of it: a reply that repeats the gold solution
            almost word for word is a leak, one that arrives at it in other words is none.
        distinct_chars: Length from which a private token with letters and digits is recognisable.
    """
    private = _prepared(row, quote_words, distinct_chars)
    places = [(t.where, t.raw, t.offset) for t in assistant_turns(row)]
    places += [(f"messages[{a.turn}].tool_calls", a.arguments_text, 0) for a in actions(row)]
    if not private or not places:
        return verdict(None, scope=SCOPE)
    seen = _Seen(_visible(row))
    quotes = [
        quote
        for where, text, offset in places
        for quote in _quotes(private, where, text, offset, seen, (quote_words, reference_words), structured_ids=True)
    ]
    spans = [q.span for q in quotes]
    return verdict(0.0 if quotes else 1.0, spans, scope=SCOPE, how=sorted({q.how for q in quotes}))


def _needed(secret: _Secret, quote_words: int, reference_words: int) -> int:
    """Return how many words in a row are a quotation.

    Two right derivations of one answer share clauses, so a long reference must be quoted at greater length than a
    rubric or a hidden state, which nobody arrives at by working.
    """
    least = quote_words * secret.factor
    if not secret.path.startswith("reference"):
        return least
    return max(least, min(reference_words * secret.factor, math.ceil(REFERENCE_SHARE.value * len(secret.words.tokens))))


def _quotes(
    private: Sequence[_Secret],
    where: str,
    text: str,
    offset: int,
    seen: _Seen,
    lengths: tuple[int, int],
    *,
    structured_ids: bool,
) -> Iterator[Quote]:
    folded = text.casefold()
    words: _Words | None = None
    for secret in private:
        if secret.token:
            if secret.text.casefold() not in folded or not (secret.whole or structured_ids):
                continue
            if not seen.has_token(secret.text):
                for start, end in _find_token(secret.text, text):
                    yield Quote(secret.path, Span(where, start + offset, end + offset, text[start:end]), "token")
        elif len(secret.words.tokens) >= lengths[0] * secret.factor:
            words = words or _words(text)
            for start, end in _runs(secret.words, words, _needed(secret, *lengths)):
                if " ".join(_words(text[start:end]).tokens) not in seen.words:
                    yield Quote(secret.path, Span(where, start + offset, end + offset, text[start:end]), "verbatim")
    for pattern in (NAMES_SOURCE, ACCORDING):
        for match in pattern.finditer(text):
            if _FOR_REFERENCE.search(text, max(0, match.start() - 40), match.start()):
                continue  # "for your reference: ..."
            if match.group(0).casefold() not in seen.folded and not _public_source(match.group(0), seen.text):
                start, end = match.span()
                yield Quote("", Span(where, start + offset, end + offset, match.group(0)), "named")


def _public_source(phrase: str, visible: str) -> bool:
    """Return whether the named source is something that the user or a tool brought up (a rubric to write, a hint)."""
    nouns = re.findall(
        r"rubric|hint|reference|answer key|ground[- ]truth|model answer|expected|scoring guide|hidden|private|gold",
        phrase,
        re.IGNORECASE,
    )
    return any(re.search(rf"\b{re.escape(noun)}", visible, re.IGNORECASE) for noun in nouns)


def quoted_privileged(
    row: Row,
    *,
    quote_words: int = QUOTE_WORDS.value,
    reference_words: int = REFERENCE_WORDS.value,
    distinct_chars: int = DISTINCT_CHARS.value,
) -> list[Quote]:
    """Find private text in everything that leaves with a row: prompts, tool schemas, and the assistant's messages.

    Short references (a number, a name) stand in prompts by nature and are not searched there; nor is the right one
    of listed answer options.

    Args:
        row: A row.
        quote_words: Consecutive private words that are a quotation.
        reference_words: The same for a reference answer, at most 80 % of it: a reply that repeats the gold solution
            almost word for word is a leak, one that arrives at it in other words is none.
        distinct_chars: Length from which a private token with letters and digits is recognisable.
    """
    private = _prepared(row, quote_words, distinct_chars)
    if not private:
        return []
    found: list[Quote] = []
    graders = [s for s in private if re.split(r"[.\[]", s.path, maxsplit=1)[0] in GRADERS]
    nothing = _Seen("")
    for where, text in _inputs(row):
        options = {m.group(2).casefold() for m in _OPTION.finditer(text)}
        hidden = [s for s in graders if s.text.casefold() not in options] if len(options) > 1 else graders
        found += [
            q
            for q in _quotes(hidden, where, text, 0, nothing, (quote_words, reference_words), structured_ids=False)
            if q.how != "named"
        ]
    seen = _Seen(_visible(row))
    for turn in assistant_turns(row):
        found += _quotes(
            private, turn.where, turn.raw, turn.offset, seen, (quote_words, reference_words), structured_ids=True
        )
    return found


def _inputs(row: Row) -> Iterator[tuple[str, str]]:
    for key in ("system_prompt", "prompt"):
        if isinstance(row.get(key), str):
            yield key, row[key]
    if row.get("tools"):
        yield "tools", json.dumps(row["tools"], ensure_ascii=False, default=str)
    for index, message in enumerate(row.get("messages") or ()):
        if message.get("role") in ("system", "developer", "user"):
            text = text_of(message.get("content"))
            if text != row.get("prompt") and text != row.get("system_prompt"):
                yield f"messages[{index}].content", text


@dataclass(frozen=True)
class LeakReport:
    """Private text that rows give away, and evaluation tasks that training shares.

    Attributes:
        quotes: `(position, rollout id, quote)` of every quotation of private text.
        rows: Positions of rows with a quotation.
        n_rows: Rows looked at.
        n_private: Rows that have private text at all.
        shared_tasks: Task ids that stand in both sets.
        shared_templates: `(training position, evaluation position)` of prompts that differ in numbers and names only.
        not_checked: What could not be looked at.
    """

    quotes: tuple[tuple[int, str, Quote], ...]
    rows: tuple[int, ...]
    n_rows: int
    n_private: int
    shared_tasks: tuple[str, ...] = ()
    shared_templates: tuple[tuple[int, int], ...] = ()
    not_checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = Counter(q.span.where.split("[")[0] for _, _, q in self.quotes)
        places = ", ".join(f"{name} {n}" for name, n in where.most_common()) or "nowhere"
        return (
            f"leaks: {len(self.rows)} of {self.n_private} rows with private text quote it ({places}) | "
            f"shared with evaluation: {len(self.shared_tasks)} tasks, {len(self.shared_templates)} templates | "
            f"not checked: {'; '.join(self.not_checked) or 'nothing'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "n_rows": self.n_rows,
            "n_private": self.n_private,
            "rows": list(self.rows),
            "quotes": [{"position": p, "rollout_id": r, **q.to_dict()} for p, r, q in self.quotes],
            "shared_tasks": list(self.shared_tasks),
            "shared_templates": [list(pair) for pair in self.shared_templates],
            "not_checked": list(self.not_checked),
        }

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td>{p}</td><td>{escape(q.source)}</td><td>{escape(q.span.where)}</td><td>{q.how}</td>"
            f"<td>{escape(q.span.text[:200])}</td></tr>"
            for p, _, q in self.quotes[:50]
        )
        return (
            f"<p>{escape(str(self))}</p><table><tr><th>row</th><th>source</th><th>where</th><th>how</th><th>text</th>"
            f"</tr>{lines}</table>"
        )


def leak_report(
    rows: Iterable[Row],
    against: Iterable[Row] | None = None,
    *,
    quote_words: int = QUOTE_WORDS.value,
    reference_words: int = REFERENCE_WORDS.value,
    distinct_chars: int = DISTINCT_CHARS.value,
) -> LeakReport:
    """Report private text quoted in prompts, tools and replies, and evaluation tasks inside the training rows.

    Args:
        rows: Training rows.
        against: Evaluation rows; `None` skips the comparison by task and template.
        quote_words: Consecutive private words that are a quotation.
        reference_words: The same for a reference answer, at most 80 % of it: a reply that repeats the gold solution
            almost word for word is a leak, one that arrives at it in other words is none.
        distinct_chars: Length from which a private token with letters and digits is recognisable.
    """
    from whileai_guard.splits import template_key

    found = list(getattr(rows, "rows", rows))
    quotes: list[tuple[int, str, Quote]] = []
    private = 0
    for position, row in enumerate(found):
        if row.get("privileged"):
            private += 1
            for quote in quoted_privileged(
                row, quote_words=quote_words, reference_words=reference_words, distinct_chars=distinct_chars
            ):
                quotes.append((position, str(row.get("rollout_id") or ""), quote))
    missing = []
    if private < len(found):
        missing.append(f"{len(found) - private} rows have no private text")
    tasks: tuple[str, ...] = ()
    templates: tuple[tuple[int, int], ...] = ()
    if against is None:
        missing.append("no evaluation rows were given")
    else:
        evals = list(getattr(against, "rows", against))
        own = {str(r["task_id"]) for r in evals if r.get("task_id")}
        tasks = tuple(sorted({str(r["task_id"]) for r in found if r.get("task_id")} & own))
        first: dict[str, int] = {}
        for position, key in enumerate(template_key([_text(r.get("prompt")) for r in evals])):
            first.setdefault(key, position)
        first.pop("", None)
        keys = template_key([_text(r.get("prompt")) for r in found])
        templates = tuple((position, first[key]) for position, key in enumerate(keys) if key in first)
    return LeakReport(
        quotes=tuple(quotes),
        rows=tuple(sorted({position for position, _, _ in quotes})),
        n_rows=len(found),
        n_private=private,
        shared_tasks=tasks,
        shared_templates=templates,
        not_checked=tuple(missing),
    )


def _text(prompt: Any) -> str:
    if isinstance(prompt, list):
        return "\n".join(text_of(m.get("content")) for m in prompt)
    return prompt if isinstance(prompt, str) else ""
