"""What markers read: the assistant's words with places, quotes and code masked, sentences, spans.

Masking replaces characters by spaces of the same number, so that a span found in the masked text is a span of the
original. Text that the assistant quotes (a customer's words, code, a block quote) is not the assistant's own.

Example:
    >>> mask_quoted('He wrote "I am sorry" twice.').split()
    ['He', 'wrote', '"', '"', 'twice.']
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from whileai_guard.defaults import LATIN_SHARE, MARKER_SPANS, SENTENCE_CHARS
from whileai_kernel.messages import spoken_text, text_of

Row = Mapping[str, Any]

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_DOUBLE = re.compile(r'"([^"\n]{2,400})"|“([^”\n]{2,400})”|«([^»\n]{2,400})»|「([^」\n]{2,400})」')
_SINGLE = re.compile(r"(?:(?<=\s)|(?<=^)|(?<=[(:,]))['‘]([^'’\n]{3,300}(?:['’]\w[^'’\n]*)*)['’](?=[\s.,;:!?)]|$)")
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)]*\s+|\n+|(?<=[。！？])")


@dataclass(frozen=True)
class Span:
    """A piece of text in a row.

    Attributes:
        where: Field, for example `messages[3].content` or `final_text`.
        start: First character, 0-based.
        end: One past the last character.
        text: The characters themselves.
    """

    where: str
    start: int
    end: int
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the span as a plain dict."""
        return {"where": self.where, "start": self.start, "end": self.end, "text": self.text}


@dataclass(frozen=True)
class Turn:
    """One stretch of assistant text.

    Attributes:
        where: Field of the row.
        index: Position of the message, or the number of messages for a row without messages.
        raw: The text.
        offset: Where `raw` begins in the field (a reasoning block before it is not part of the turn).
    """

    where: str
    index: int
    raw: str
    offset: int = 0

    @cached_property
    def own(self) -> str:
        """The text with quotes and code masked."""
        return mask_quoted(self.raw)

    @cached_property
    def _sentences(self) -> tuple[list[int], list[int]]:
        bounds = list(sentences(self.own))
        return [s for s, _ in bounds], [e for _, e in bounds]

    def sentence(self, position: int) -> tuple[int, int]:
        """Return the bounds of the sentence that holds a position, or of the whole text when none does."""
        starts, ends = self._sentences
        at = bisect_right(starts, position) - 1
        if at >= 0 and position < max(ends[at], starts[at] + 1):
            return starts[at], ends[at]
        return 0, min(len(self.own), SENTENCE_CHARS.value)

    def with_next(self, position: int) -> str:
        """Return the sentence that holds a position together with the one after it."""
        begin, stop = self.sentence(position)
        starts, ends = self._sentences
        at = bisect_left(starts, stop)
        return self.own[begin:stop] + (" " + self.own[starts[at] : ends[at]] if at < len(starts) else "")

    def span(self, start: int, end: int) -> Span:
        """Return a span of this turn, in coordinates of the field."""
        return Span(self.where, start + self.offset, end + self.offset, self.raw[start:end])


def _blank(match: re.Match[str]) -> str:
    text = match.group(0)
    return text[0] + " " * (len(text) - 2) + text[-1] if len(text) > 1 else " "


def mask_code(text: str) -> str:
    """Replace fenced and inline code by spaces."""
    text = _FENCE.sub(lambda m: " " * len(m.group(0)), text)
    return _INLINE_CODE.sub(_blank, text)


def mask_quoted(text: str) -> str:
    """Replace code, block quotes and quoted passages by spaces, keeping every other position."""
    text = mask_code(text)
    text = _BLOCK_QUOTE.sub(lambda m: " " * len(m.group(0)), text)
    text = _DOUBLE.sub(_blank, text)
    return _SINGLE.sub(_blank, text)


def assistant_turns(row: Row) -> list[Turn]:
    """Return what the assistant said, turn by turn; reasoning blocks are not said.

    A row without messages has one turn, its `final_text`.
    """
    turns = []
    messages = row.get("messages") or []
    for index, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        full = text_of(message.get("content"))
        said = spoken_text(full)
        if said.strip():
            turns.append(Turn(f"messages[{index}].content", index, said, max(0, full.rfind(said))))
    if not messages and isinstance(row.get("final_text"), str):
        full = row["final_text"]
        said = spoken_text(full)
        if said.strip():
            turns.append(Turn("final_text", 0, said, max(0, full.rfind(said))))
    return turns


def in_english(turns: Iterable[Turn]) -> bool:
    """Return whether phrases in English can be looked for at all: at least half of the letters are Latin.

    Other languages in Latin letters are not told apart, and a text without letters has nothing to misread.
    """
    letters = latin = 0
    for turn in turns:
        if turn.raw.isascii():
            count = sum(map(str.isalpha, turn.raw))
            letters, latin = letters + count, latin + count
        else:
            found = [ch for ch in turn.raw if ch.isalpha()]
            letters += len(found)
            latin += sum(ch < "\u0250" or "\u1e00" <= ch <= "\u1eff" or "\uff21" <= ch <= "\uff5a" for ch in found)
    return latin >= LATIN_SHARE.value * letters


def user_texts(row: Row, before: int | None = None) -> list[str]:
    """Return the texts of the user, optionally only those before a message position; at least the prompt."""
    texts = [text_of(m.get("content")) for m in (row.get("messages") or [])[:before] if m.get("role") == "user"]
    if not texts:
        prompt = row.get("prompt")
        texts = [prompt] if isinstance(prompt, str) else []
    return texts


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield `(start, end)` of the sentences and lines of a text."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if text[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


def verdict(
    value: float | None, spans: Iterable[Span] = (), *, scope: str, language: str = "en", **more: Any
) -> dict[str, Any]:
    """Return a marker's answer: the value, and evidence with spans, scope and language (`en`, or `any` for calls)."""
    found = list(spans)
    shown = [s.to_dict() for s in found[: MARKER_SPANS.value]]
    evidence: dict[str, Any] = {"language": language, "scope": scope, "spans": shown, **more}
    if len(found) > len(shown):
        evidence["more_spans"] = len(found) - len(shown)
    return {"value": value, "evidence": evidence}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield `(path, leaf)` of nested lists and mappings."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{position}]")
    else:
        yield path, value
