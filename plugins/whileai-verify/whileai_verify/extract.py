r"""Find the answer in a reply: marked answers, boxes, code blocks, JSON inside prose, decoration.

One rule for everything: an explicit marker wins over position, and the last marker wins over earlier ones. Markers
are the last complete `\boxed{...}`, `####`, `<answer>...</answer>`, "Answer:" and "final answer is" (strong), then
"the answer is" and a line that starts with `A:` (weak; they count only where no strong marker stands). All scans are
linear in the text.
What a number or a formula is, is not decided here.

Example:
    >>> marked_answer(r"First \boxed{18}, but a row was missed: \boxed{24}.").value
    '24'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_verify.defaults import MAX_JSON_SCAN
from whileai_verify.doubt import second_thought

__all__ = [
    "CodeBlock",
    "FoundJSON",
    "Marked",
    "boxes",
    "code_blocks",
    "find_json",
    "loads_strict",
    "marked_answer",
    "marked_answers",
    "strip_decoration",
]


@dataclass(frozen=True, slots=True)
class Marked:
    """An answer that the reply marks as such.

    Attributes:
        value: The text of the answer, as written.
        marker: `box`, `hash`, `tag`, `phrase`, `label` or `custom`.
        start: Offset of the marker in the text.
        strong: Whether the marker outranks the weak ones.
    """

    value: str
    marker: str
    start: int
    strong: bool


_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s{0,8}")
_BRACE = re.compile(r"\\.|[{}]", re.S)


def _matching_braces(text: str) -> dict[int, int]:
    """Map the offset of each opening brace to that of its closing brace; unclosed ones are absent."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for token in _BRACE.finditer(text):
        if token.group() == "{":
            stack.append(token.start())
        elif token.group() == "}" and stack:
            pairs[stack.pop()] = token.start()
    return pairs


def boxes(text: str) -> list[Marked]:
    r"""Return every complete `\boxed{...}` or `\fbox{...}`, in order; `\boxed 5` counts too.

    A box inside a box is part of the outer one. A box that is never closed is no box.
    """
    if "\\boxed" not in text and "\\fbox" not in text:
        return []
    pairs = _matching_braces(text)
    found: list[Marked] = []
    inside_until = -1
    for token in _BOX.finditer(text):
        if token.start() < inside_until:
            continue
        begin = token.end()
        if begin < len(text) and text[begin] == "{":
            end = pairs.get(begin)
            if end is not None:
                found.append(Marked(text[begin + 1 : end].strip(), "box", token.start(), True))
                inside_until = end
        else:
            bare = re.compile(r"[^\s{}$\\.,;]{1,64}").match(text, begin)
            if bare and token.end() > token.start():
                found.append(Marked(bare.group(), "box", token.start(), True))
    return found


_BETWEEN = re.compile(r"[\s$,;&()\[\]\\]*(?:(?:and/or|and|or)\b)?[\s$,;&()\[\]\\]*", re.I)
_GAP = 40


def _side_by_side(text: str, found: list[Marked]) -> list[Marked]:
    r"""Join boxes with nothing between them but a comma, "and" or "or": they are one answer, `3, 4`."""
    joined: list[Marked] = []
    last_end = -1
    for box in found:
        at = text.find(box.value, box.start)
        end = at + len(box.value) + 1
        if joined and box.start - last_end <= _GAP and _BETWEEN.fullmatch(text, last_end, box.start):
            before = joined.pop()
            same = box.value in before.value.split(", ")
            box = Marked(before.value if same else f"{before.value}, {box.value}", "box", before.start, True)
        joined.append(box)
        last_end = end
    return joined


_TAG = re.compile(r"<answer>([^<]{0,10000}(?:<(?!/?answer>)[^<]{0,10000}){0,50})</answer>", re.I)
_HASH = re.compile(r"####[ \t]*([^\n]*)")
_EMPHASIS = r"[ \t*_`]{0,12}"
_FILLER = r"(?:(?:therefore|thus|then|so|simply|just|hence|indeed)\b[ \t,]{0,3})?"
_PHRASE = re.compile(
    r"\b(?P<final>final[ \t]{1,4})?answer\b"
    + _EMPHASIS
    + r"(?:(?P<colon>[:：=])|is\b)"
    + _EMPHASIS
    + _FILLER
    + r"(?:[:：=]|is\b[ \t]{0,3}:?)?"
    + _EMPHASIS,
    re.I,
)
_LABEL = re.compile(r"^[ \t>*_]{0,8}A(?P<ns>ns\.?)?[*_]{0,2}[ \t]{0,2}[:：][ \t*_]{0,8}", re.M)
# "5!" is a factorial and "5?" a doubt, so these end a sentence only after a word.
_SENTENCE_END = re.compile(r"(?:\.|(?<![\d)}$])[!?])[\"'*_)]{0,3}(?=\s|$)|\n")
_CLAUSE_END = re.compile(r",\s(?=[A-Za-z]{2,})|;\s|\s[-–—]{1,2}\s(?=[A-Za-z]{2,})|\s(?=(?:because|since|as|which)\b)")


def _after(text: str, at: int) -> str:
    """Return the rest of the line after a marker, or the next line that is not empty."""
    end = text.find("\n", at)
    line = text[at : len(text) if end < 0 else end]
    if line.strip(" \t*_`"):
        return line
    rest = text[at : at + 20_000].lstrip(" \t*_`\r\n")
    return rest.split("\n", 1)[0]


def _unpaired(value: str) -> str:
    """Remove emphasis at the end whose beginning belongs to the marker: `**Answer: 73**`."""
    for mark in ("**", "__", "`", "*"):
        if value.endswith(mark) and value.count(mark) % 2:
            value = value[: -len(mark)].rstrip()
    return value


def _clause(value: str) -> str:
    """Cut a value that prose follows at the end of its sentence or clause, outside of brackets and mathematics."""
    if value.lstrip().startswith(("$", "\\(", "\\[", "`")):
        return _math_span(value)
    for end in (_SENTENCE_END, _CLAUSE_END):
        for cut in end.finditer(value):
            head = value[: cut.start()]
            if all(head.count(a) <= head.count(b) for a, b in ("()", "[]", "{}")) and head.count("$") % 2 == 0:
                value = head
                break
    return value.strip()


_SPANS = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"), ("`", "`"))


def _math_span(value: str) -> str:
    """Return a leading `$...$`, `\\(...\\)` or backtick span when nothing but prose follows it."""
    value = value.strip()
    for left, right in _SPANS:
        if value.startswith(left):
            end = value.find(right, len(left))
            if end > 0:
                tail = value[end + len(right) :]
                if not re.search(r"[$\d\\]", tail) and not re.match(r"\s*(?:or|and|,)\b", tail, re.I):
                    return value[: end + len(right)]
                break
    return value


def marked_answers(text: str, markers: Sequence[str] | None = None) -> list[Marked]:
    """Return every marked answer in the order of the text.

    Args:
        text: What the model said.
        markers: Your own markers instead of the built-in ones: literal texts, each followed by the answer up to the
            end of its line.
    """
    found: list[Marked] = []
    if markers is not None:
        for marker in markers:
            for token in re.finditer(re.escape(marker), text):
                found.append(Marked(_after(text, token.end()).strip(), "custom", token.start(), True))
        return sorted(found, key=lambda m: m.start)
    found += _side_by_side(text, boxes(text))
    box_starts = {m.start for m in found}
    for token in _TAG.finditer(text) if "</answer>" in text.casefold() else ():
        if not any(token.start() < b < token.end() for b in box_starts):  # a box inside is the answer
            found.append(Marked(token.group(1).strip(), "tag", token.start(), True))
    for token in _HASH.finditer(text) if "####" in text else ():
        found.append(Marked(token.group(1).strip(), "hash", token.start(), True))
    for token in _PHRASE.finditer(text) if "answer" in text.casefold() else ():
        strong = bool(token["final"] or token["colon"])
        line = _after(text, token.end())
        value = _unpaired(_clause(line))
        if second_thought(line[line.find(value) + len(value) :]):
            value = line.strip()
        at = token.start()
        if any(b in box_starts for b in range(token.end(), token.end() + 12)):
            continue  # the box that follows is the answer
        found.append(Marked(value, "phrase", at, strong))
    for token in _LABEL.finditer(text):
        kind = "phrase" if token["ns"] else "label"
        found.append(Marked(_unpaired(_after(text, token.end()).strip()), kind, token.start(), False))
    return sorted(found, key=lambda m: m.start)


def marked_answer(
    text: str, markers: Sequence[str] | None = None, *, usable: Callable[[str], bool] | None = None
) -> Marked | None:
    """Return the marked answer that counts: the last strong marker, else the last weak one, else `None`.

    Args:
        text: What the model said.
        markers: As in `marked_answers`.
        usable: Which values can be an answer at all (for example: those with a digit); others are passed over, so
            that "the answer is clear" after a box does not hide the box. Every value that is not empty by default.
    """
    found = [m for m in marked_answers(text, markers) if m.value and (usable is None or usable(m.value))]
    for strong in (True, False):
        for marked in reversed(found):
            if marked.strong is strong:
                return marked
    return None


_WRAP = re.compile(
    r"\s*(?:"
    r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf|mbox|emph|rm|bf)\s*\{(?P<tex>[^{}]*)\}"
    r"|\*\*(?P<bold>[^*]+)\*\*|__(?P<under>[^_]+)__|\*(?P<star>[^*]+)\*|_(?P<one>[^_]+)_"
    r"|\$\$(?P<display>[^$]+)\$\$|\$(?P<inline>[^$]+)\$"
    r"|\\\((?P<paren>.+?)\\\)|\\\[(?P<bracket>.+?)\\\]"
    r"|`+(?P<code>[^`]+)`+"
    r")\s*",
    re.S,
)


def strip_decoration(text: str, *, quotes: bool = False) -> str:
    r"""Remove markdown and LaTeX decoration around a short answer, and one trailing full stop.

    `**$\text{B}$**.` becomes `B`. Only what wraps the whole text is removed.

    Args:
        text: A short answer.
        quotes: Also remove a pair of quotation marks around the whole.
    """
    text = text.strip()
    for _ in range(12):
        before = text
        if text.endswith((".", "。", ";", ",")) and not text.endswith("..."):
            text = text[:-1].rstrip()
        if text.startswith("\\boxed") or text.startswith("\\fbox"):
            inner = boxes(text)
            if len(inner) == 1 and text.rstrip().endswith("}"):
                text = inner[0].value
        wrapped = _WRAP.fullmatch(text) if len(text) < 100_000 else None
        if wrapped:
            text = next(g for g in wrapped.groups() if g is not None).strip()
        for left, right in (("\\left(", "\\right)"), ("\\displaystyle", ""), ("\\!", ""), ("\\,", "")):
            if right == "" and text.startswith(left):
                text = text[len(left) :].strip()
        if (
            quotes
            and len(text) > 1
            and (text[0], text[-1]) in {('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("«", "»")}
        ):
            text = text[1:-1].strip()
        if text == before:
            return text
    return text


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block.

    Attributes:
        language: First word of the info string in lower case, `""` when there is none.
        code: The text between the fences, with the fence's own indentation removed.
        closed: Whether the closing fence stands in the text.
    """

    language: str
    code: str
    closed: bool


_FENCE = re.compile(r"^(?P<indent>[ \t>]{0,12})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of a text (CommonMark fences: backticks or tildes, three or more, nested by length).

    A fence that is never closed runs to the end and is marked as not closed.
    """
    blocks: list[CodeBlock] = []
    fence, indent, language, lines = "", "", "", []  # type: ignore[var-annotated]
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not fence:
            if match:
                info = match["info"].strip().split()
                fence, indent = match["fence"], match["indent"]
                language, lines = (info[0].strip("{}.").lower() if info else ""), []
        elif (
            match and match["fence"][0] == fence[0] and len(match["fence"]) >= len(fence) and not match["info"].strip()
        ):
            blocks.append(CodeBlock(language, "\n".join(lines) + ("\n" if lines else ""), True))
            fence = ""
        else:
            lines.append(line[len(indent) :] if indent and line.startswith(indent) else line)
    if fence:
        blocks.append(CodeBlock(language, "\n".join(lines), False))
    return blocks


@dataclass(frozen=True, slots=True)
class FoundJSON:
    """The JSON of a reply.

    Attributes:
        value: The parsed value; `None` when `problem` is set.
        problem: Why there is none, `""` otherwise.
        where: `whole`, `fenced` or `prose`.
    """

    value: Any
    problem: str = ""
    where: str = ""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is too large for a double")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite)


def loads_strict(text: str) -> Any:
    """Parse one JSON text (RFC 8259) and refuse what parsers disagree on.

    Duplicate keys, NaN and infinities, numbers beyond a double, trailing text and a byte order mark are errors.

    Raises:
        ValueError: With the reason.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def find_json(text: str, where: str = "anywhere", *, max_scan: int = MAX_JSON_SCAN.value) -> FoundJSON:
    """Find the JSON that a reply gives.

    Tried in this order: the whole reply; the last fenced block that is labelled `json` (or not labelled and looks
    like JSON); the last complete object or array inside the prose. A block that claims to be JSON and is not ends
    the search: it is the answer, and it is wrong.

    Args:
        text: What the model said.
        where: `anywhere`, `whole` (nothing but the JSON) or `fenced` (a fenced block only).
        max_scan: Characters that may be read in total while searching the prose.
    """
    text = text.strip()
    if not text:
        return FoundJSON(None, "the reply is empty")
    problem = "no JSON in the reply"
    if where in ("anywhere", "whole"):
        try:
            return FoundJSON(loads_strict(text), "", "whole")
        except ValueError as error:
            problem = f"not JSON: {_short(error)}"
            if where == "whole":
                return FoundJSON(None, problem)
    blocks = [b for b in code_blocks(text) if b.language in ("json", "jsonc", "json5", "") and b.closed]
    blocks = [b for b in blocks if b.language or b.code.lstrip()[:1] in tuple("{[")]
    if blocks:
        try:
            return FoundJSON(loads_strict(blocks[-1].code.strip()), "", "fenced")
        except ValueError as error:
            return FoundJSON(None, f"the fenced block is not JSON: {_short(error)}", "fenced")
    if where == "fenced":
        return FoundJSON(None, "no fenced JSON block in the reply")
    return _json_in_prose(text, problem, max_scan)


def _short(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:160]


# An opening bracket that JSON may follow: a key or the end of an object, a value or the end of a list.
_OPEN = re.compile(r'\{(?=\s{0,200}["}])|\[(?=\s{0,200}[\[{"\d\-tfn\]])')
_MAX_FAILED = 500  # starts that turn out not to be JSON, before the search gives up: each costs a pass over the text
_SPAN = 2_000_000
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.S)


def _bracket_end(text: str, start: int) -> int | None:
    """Return the offset after the bracket that closes the one at `start`, texts skipped, or `None`."""
    depth = 0
    for token in _BRACKET.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    return None


def _json_in_prose(text: str, problem: str, budget: int) -> FoundJSON:
    """Return the last complete object or array that stands in the text, reading at most `budget` characters.

    What stands inside a broken object does not count, and an object that is never closed ends the search.
    """
    last: FoundJSON | None = None
    at, failed = 0, 0
    while budget > 0 and failed < _MAX_FAILED and (token := _OPEN.search(text, at)):
        start = token.start()
        try:
            value, length = _DECODER.raw_decode(text[start : start + _SPAN])
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecursionError):
                return FoundJSON(None, "not JSON: nested too deeply", "prose")
            end = _bracket_end(text, start)
            budget -= 10 * ((end or len(text)) - start)
            failed += 1
            if end is None and token.group() == "{":
                return FoundJSON(None, "not JSON: an object is not closed", "prose")
            if end is None:
                at = start + 1
                continue
            last = FoundJSON(None, f"not JSON: {_short(error)}", "prose")
            at = end
            continue
        budget -= length
        if not (isinstance(value, list) and not value):
            last = FoundJSON(value, "", "prose")
        at = start + length
    return last or FoundJSON(None, problem)
