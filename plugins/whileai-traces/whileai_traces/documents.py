"""Records of a file that is no JSON Lines, a piece of the file at a time.

One array (its elements are the records, unless they are the messages of one conversation), one object, or objects
one after the other. An array is decoded element by element, so that memory holds one element and one piece of text.
A damaged element is reported with its line; reading goes on where the next element opens as the others did.

Example:
    >>> import io, pathlib
    >>> problems = []
    >>> found = document_records(pathlib.Path("x"), io.BytesIO(b'[{"a": 1}, {"a": tru}, {"a": 3}]'), problems.append)
    >>> list(found), [p.where for p in problems]
    ([('item 1', {'a': 1}), ('item 3', {'a': 3})], ['item 2 (line 1)'])
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from whileai_kernel.protocols import ReadProblem
from whileai_traces.defaults import READ_BYTES
from whileai_traces.jsontext import DECODER, STRING_END, STRUCTURE

__all__ = ["document_records"]

OnProblem = Callable[[ReadProblem], None]
_SPACE = re.compile(r"[ \t\r\n]*")
_OPENING = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_NEAR_END = 16
"""Characters before the end of the text read so far in which a fault can be the end of that text and not a fault."""


class _Text:
    """The text of a file, read a piece at a time; what lies before `at` is forgotten."""

    def __init__(self, path: Path, stream: IO[bytes], on_problem: OnProblem, size: int) -> None:
        self.path, self.stream, self.on_problem, self.size = path, stream, on_problem, size
        first = stream.read(size)
        self.encoding = "utf-16" if first[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        self.decoder = codecs.getincrementaldecoder(self.encoding)()
        self.read, self.text, self.at, self.line = 0, "", 0, 1
        self.done = False
        self._feed(first)

    def _feed(self, raw: bytes) -> None:
        self.done = not raw
        state = self.decoder.getstate()
        try:
            self.text += self.decoder.decode(raw, self.done)
        except UnicodeDecodeError as err:
            place = self.read - len(state[0]) + err.start
            message = f"is not UTF-8: {err.reason}; the bytes were replaced"
            self.on_problem(ReadProblem(str(self.path), f"byte {place}", message))
            self.decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
            self.decoder.setstate(state)
            self.text += self.decoder.decode(raw, self.done)
        self.read += len(raw)

    def more(self, everything: bool = False) -> bool:
        """Read on, twice as much as is not used yet, and say whether there was anything."""
        if self.done:
            return False
        self.text, self.at = self.text[self.at :], 0
        self._feed(self.stream.read(-1 if everything else max(self.size, len(self.text))))
        return not self.done

    def skip(self, also: str = "") -> tuple[str, str]:
        """Pass blank space, and return it with the character that follows (empty at the end of the file)."""
        passed = ""
        while True:
            end = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
            passed += self.text[self.at : end]
            self.advance(end)
            if self.at < len(self.text):
                if self.text[self.at] not in also:
                    return passed, self.text[self.at]
                self.advance(self.at + 1)
            elif not self.more():
                return passed, ""

    def advance(self, to: int) -> None:
        """Pass text, counting its lines."""
        self.line += self.text.count("\n", self.at, to)
        self.at = to
        if to > self.size:
            self.text, self.at = self.text[to:], 0

    def followed(self, value: Any, end: int) -> bool:
        """Say whether a value is whole: what was read so far may end within a number, or right behind the value."""
        if self.done:
            return True
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.text[end : end + 1] in (",", "]", "}", " ", "\t", "\r", "\n")
        return _SPACE.match(self.text, end).end() < len(self.text)  # type: ignore[union-attr]


def document_records(
    path: Path, stream: IO[bytes], on_problem: OnProblem, *, size: int = READ_BYTES.value
) -> Iterator[tuple[str, Any]]:
    """Yield `(where, record)` for each record of a file that is one array, one object, or several objects.

    Args:
        path: The file, for the reports.
        stream: Its bytes, decompressed.
        on_problem: Receives a `ReadProblem` per damaged record.
        size: Bytes read at a time.
    """
    text = _Text(path, stream, on_problem, size)
    if text.skip()[1] != "[":
        yield from _objects(text)
        return
    held: list[tuple[str, Any]] | None = []
    for where, item in _elements(text):
        if held is not None and _is_message(item):
            held.append((where, item))
            continue
        if held is not None:
            yield from held
            held = None
        yield where, item
    if held:
        yield "document", [item for _, item in held]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "messages" not in value


def _elements(text: _Text) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the array that begins here."""
    text.advance(text.at + 1)
    number, opening = 0, ""
    while True:
        between, char = text.skip(also=",")
        if char in ("", "]"):
            break
        number += 1
        line = text.line
        try:
            value, opening = _element(text, between, opening)
        except (ValueError, RecursionError) as err:
            where = f"item {number} (line {line})"
            text.on_problem(ReadProblem(str(text.path), where, f"is not JSON: {err}"))
            if text.done and text.at >= len(text.text):
                return
        else:
            yield f"item {number}", value
    where = f"line {text.line}"
    if not char:
        text.on_problem(ReadProblem(str(text.path), where, "the array is not closed: the file is cut off"))
        return
    text.advance(text.at + 1)
    if text.skip()[1]:
        text.on_problem(ReadProblem(str(text.path), where, "text follows the array, and was not read"))


def _element(text: _Text, between: str, known: str) -> tuple[Any, str]:
    """Return the element that begins here and how it opens, and pass it.

    Raises:
        ValueError: It is damaged; what can be told to belong to it is passed.
    """
    while True:
        try:
            value, end = DECODER.raw_decode(text.text, text.at)
        except (ValueError, RecursionError) as err:
            if _may_be_cut(text, err) and not text.done:
                text.more()
                continue
            _pass_damaged(text, between, known or _opening(text))
            raise
        if text.followed(value, end):
            opening = _opening(text) or known
            text.advance(end)
            return value, opening
        text.more()


def _opening(text: _Text) -> str:
    match = _OPENING.match(text.text, text.at)
    return match.group() if match else ""


def _pass_damaged(text: _Text, between: str, opening: str) -> None:
    """Pass a damaged element: to where another one opens like the others, or to its own end, whichever comes first.

    Brackets alone cannot be trusted where a quote is missing, so an end by brackets counts only when an element or
    the end of the file follows it.
    """
    blank = re.escape(between) if "\n" in between else r"\s*"
    following = re.compile(rf",(?={blank}{re.escape(opening)})") if opening else None
    while True:
        found = following.search(text.text, text.at + 1) if following else None
        limit = found.start() if found else len(text.text)
        closed = _closing(text.text, text.at, limit)
        if closed is not None and not _continues(text, closed, "{" if opening else ""):
            closed = None
        if closed is not None or found:
            text.advance(max(limit if closed is None else closed, text.at + 1))
            return
        if not text.more():
            text.advance(len(text.text))
            return


def _continues(text: _Text, closed: int, begins: str) -> bool:
    """Say whether what follows the end of an element is another element, or after a bracket nothing."""
    end = _SPACE.match(text.text, closed + 1).end()  # type: ignore[union-attr]
    if text.text[closed] == "]":
        return text.done and end >= len(text.text)
    if text.text[closed] != "," or not text.text.startswith(begins, end):
        return False
    try:
        DECODER.raw_decode(text.text, end)
    except (ValueError, RecursionError) as err:
        return not text.done and _may_be_cut(text, err)
    return True


def _may_be_cut(text: _Text, err: Exception) -> bool:
    """Say whether a fault can be the end of the text read so far."""
    if isinstance(err, RecursionError):
        return False
    fault = getattr(err, "pos", 0)
    return fault >= len(text.text) - _NEAR_END or str(err).startswith("Unterminated string")


def _closing(text: str, begin: int, limit: int) -> int | None:
    """Return where the element that begins at `begin` ends by its brackets, or `None` where it does not before `limit`.

    The end is the comma behind it or the bracket that closes the array.
    """
    depth, position = 0, begin
    while (match := STRUCTURE.search(text, position, limit)) is not None:
        char, position = match.group(), match.end()
        if char == '"':
            end = STRING_END.match(text, position)
            if end is None:
                return None
            position = end.end()
        elif char in "{[":
            depth += 1
        elif char == "," and depth == 0:
            return match.start()
        elif char in "}]":
            depth -= 1
            if depth < 0:
                return match.start()
    return None


def _objects(text: _Text) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file that is one value, or several one after the other."""
    first = True
    while True:
        if not text.skip(also=",")[1]:
            return
        line = text.line
        try:
            value, end = DECODER.raw_decode(text.text, text.at)
        except (ValueError, RecursionError) as err:
            if text.more(everything=True):
                continue
            text.on_problem(ReadProblem(str(text.path), f"line {line}", f"is not JSON: {err}"))
            _pass_object(text)
            first = False
            continue
        if not text.followed(value, end):
            text.more()
            continue
        text.advance(end)
        alone = first and not text.skip(also=",")[1]
        first = False
        yield "document" if alone else f"line {line}", value


def _pass_object(text: _Text) -> None:
    """Pass a damaged object: to the next line that closes one at its beginning, or that opens one."""
    closed = text.text.find("\n}", text.at)
    if closed >= 0:
        text.advance(closed + 2)
        return
    following = re.compile(r"\n\s*(?=\{)").search(text.text, text.at + 1)
    text.advance(following.end() if following else len(text.text))
