"""Is a row fit to be written: its conversation, its reasoning, its parts, and what it gives away.

`prepare` turns a row into the conversation that leaves, or into the reason why it does not. Rules that need the
whole set (findings of other plugins) run before, in the writer.

Example:
    >>> row = {"prompt": "2+2?", "final_text": "4", "privileged": {"reference": "4"}}
    >>> [m["role"] for m in prepare(row).messages]
    ['user', 'assistant']
    >>> prepare({"prompt": "2+2?", "final_text": None}).dropped
    'no reply'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_export.defaults import QUOTE_CHARS, QUOTE_NEARNESS, QUOTE_WORDS
from whileai_kernel.errors import RowError, unknown_name
from whileai_kernel.messages import (
    normalise_messages,
    split_reasoning,
    text_of,
    tool_calls,
    validate_messages,
    with_unique_ids,
)
from whileai_kernel.rows import task_key

__all__ = ["REASONING", "Prepared", "conversation_of", "misfit", "prepare", "quotes_privileged"]

REASONING = ("keep", "strip", "inline")
MEDIA = ("drop", "keep")
BAD_ARGUMENTS = ("flag", "drop")
ENDS_ON_CALL = ("tool_calls", "tool_call", "tool_use", "tool")
ANSWERS = ("reference", "actions", "outputs", "expected", "answer", "answers", "solution", "tests")
"""Private fields whose text a right reply may well contain; they count as quoted only beside a give-away."""

_GIVE_AWAY = re.compile(
    r"answer key|hint (?:said|says|was|is|given)|(?:reference|gold|expected|hidden|private|privileged|confidential)"
    r" (?:answer|solution|reply|response|result|value|note|context|reference|information)|grading rubric|the rubric"
    r"|(?:according to|from|in) the (?:reference|key|rubric|hint)|\breference:|internal reference|ground truth",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row's conversation ready to be encoded, or the reason why the row is left out.

    Attributes:
        messages: Messages in the one model, call ids unique in the conversation.
        dropped: Reason why the row is left out; empty when it is not.
        flags: Sentences about the row that do not leave it out, for example arguments that are not JSON.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    dropped: str = ""
    flags: tuple[str, ...] = ()


def conversation_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row's messages; a row without any gets them from its prompt and final text.

    A system prompt that the messages lack is put in front.

    Raises:
        RowError: The messages cannot be read.
    """
    messages = normalise_messages(row.get("messages") or ())
    if not messages:
        prompt = row.get("prompt")
        messages = (
            normalise_messages(prompt) if isinstance(prompt, list) else [{"role": "user", "content": prompt or ""}]
        )
        if row.get("final_text") is not None:
            messages.append({"role": "assistant", "content": row["final_text"]})
    system = row.get("system_prompt")
    if system and not any(m["role"] in ("system", "developer") for m in messages):
        messages.insert(0, {"role": "system", "content": system})
    return messages


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_tool(value: Any) -> bool:
    function = value.get("function", value) if isinstance(value, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


_SHAPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "reward": ("a number from 0 to 1", lambda v: _is_number(v) and 0 <= v <= 1),
    "threshold": ("a number", _is_number),
    "status": ("text", lambda v: isinstance(v, str)),
    "rollout_id": ("text", lambda v: isinstance(v, str | int)),
    "split": ("text", lambda v: isinstance(v, str)),
    "tools": ("a list of tool schemas", lambda v: isinstance(v, list | tuple) and all(map(_is_tool, v))),
    "messages": ("a list of messages", lambda v: isinstance(v, list | tuple)),
    "seeded": ("a list", lambda v: isinstance(v, list | tuple)),
    **dict.fromkeys(
        ("privileged", "lineage", "world", "policy", "scorer"), ("an object", lambda v: isinstance(v, Mapping))
    ),
}


def misfit(row: Any) -> str:
    """Return why something cannot be a row of an export at all (a field of the wrong type), or nothing."""
    if not isinstance(row, Mapping):
        return "is no row"
    for name, (wanted, fits) in _SHAPES.items():
        value = row.get(name)
        if value is not None and not fits(value):
            return f"{name} is not {wanted}"
    try:
        task_key(row)
    except RowError as err:
        return err.what.removeprefix("field task_id: ")
    return ""


def prepare(
    row: Mapping[str, Any],
    *,
    reasoning: str = "keep",
    media: str = "drop",
    bad_arguments: str = "flag",
    empty: str = "drop",
    allow: Collection[str] = (),
) -> Prepared:
    """Return what of a row can be written.

    Args:
        row: A flat row.
        reasoning: `keep` it where it is, `strip` it, or write it `inline` as a block before the text.
        media: `drop` rows with parts other than text, or `keep` the parts.
        bad_arguments: `flag` calls whose arguments are not JSON and keep their text, or `drop` the row.
        empty: `drop` rows with an assistant turn that says and calls nothing, or `keep` them.
        allow: Names of rules that do not leave a row out (`quotes_privileged`).

    Raises:
        ParameterError: A word is unknown.
    """
    if reasoning not in REASONING:
        unknown_name("reasoning", reasoning, REASONING)
    if media not in MEDIA:
        unknown_name("media", media, MEDIA)
    if bad_arguments not in BAD_ARGUMENTS:
        unknown_name("bad_arguments", bad_arguments, BAD_ARGUMENTS)
    try:
        return _prepared(row, reasoning, media, bad_arguments, empty, allow)
    except (RowError, TypeError, AttributeError, KeyError) as err:
        what = err.what.split(": ")[-1] if isinstance(err, RowError) else f"{type(err).__name__}: {err}"
        return Prepared(dropped=f"messages cannot be read ({what})"[:200])


def _prepared(
    row: Mapping[str, Any], reasoning: str, media: str, bad_arguments: str, empty: str, allow: Collection[str]
) -> Prepared:
    messages = conversation_of(row)
    if not any(m["role"] == "assistant" for m in messages):
        return Prepared(dropped="no reply")
    if "quotes_privileged" not in allow and quotes_privileged(row, messages):
        return Prepared(dropped="quotes privileged context")
    if media == "drop" and any(m.get("content_parts") for m in messages):
        return Prepared(dropped="has parts other than text")
    found = []
    if any(m.get("tool_calls") or m["role"] == "tool" for m in messages):  # nothing to pair in other conversations
        messages = with_unique_ids(messages)
        found = validate_messages(messages, ends_on_call=row.get("finish_reason") in ENDS_ON_CALL)
    stopping = [p for p in found if p.code != "arguments_not_json"]
    if stopping:
        return Prepared(dropped=stopping[0].code.replace("_", " "))
    flags = tuple(str(p) for p in found)
    if flags and bad_arguments == "drop":
        return Prepared(dropped="arguments are not JSON", flags=flags)
    if empty == "drop" and any(
        not m.get("content") and not m.get("tool_calls") for m in messages if m["role"] == "assistant"
    ):
        return Prepared(dropped="an empty assistant turn")
    treated = [_reasoning(m, reasoning) for m in messages]
    if any(m is None for m in treated):
        return Prepared(dropped="reasoning without a reply")
    return Prepared([m for m in treated if m is not None], flags=flags)


def _reasoning(message: dict[str, Any], mode: str) -> dict[str, Any] | None:
    if message["role"] != "assistant" or mode == "keep":
        return message
    text = text_of(message.get("content"))
    if mode == "inline":
        thought = message.get("reasoning_content")
        if not thought:
            return message
        out = {k: v for k, v in message.items() if k != "reasoning_content"}
        return {**out, "content": f"<think>\n{thought}\n</think>\n\n{text}"}
    thought, spoken = split_reasoning(text)
    if spoken is None or (not spoken and thought is not None and not message.get("tool_calls")):
        return None
    return {
        **{k: v for k, v in message.items() if k != "reasoning_content"},
        "content": spoken if thought is not None else text,
    }


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, path)
    elif isinstance(value, str) and value.strip():
        yield path, value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, str(value)


def quotes_privileged(
    row: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    *,
    min_chars: int = QUOTE_CHARS.value,
    min_words: int = QUOTE_WORDS.value,
    nearness: int = QUOTE_NEARNESS.value,
) -> str | None:
    """Return the private field that the agent quotes without having seen it, or `None`.

    Prose (hints, rubrics, hidden goals) is quoted when the agent repeats it word for word and nobody said it before
    in the conversation. A reference answer is what a right reply contains, so it counts only beside words that
    give its source away ("the answer key says ...").

    Args:
        row: A flat row; a row whose seeded behaviours name a leak counts as well.
        messages: Its conversation.
        min_chars: Shortest prose that counts, in characters.
        min_words: Shortest prose that counts, in words.
        nearness: Characters around a reference in which a give-away counts.
    """
    if any("leak" in str(label).lower() for label in row.get("seeded") or ()):
        return "reference"
    private = row.get("privileged")
    if not private:
        return None
    said = [
        text_of(m.get("content")) + " " + str(m.get("reasoning_content") or "")
        for m in messages
        if m["role"] == "assistant"
    ]
    if any(m.get("tool_calls") for m in messages):
        said += [c.arguments_text for c in tool_calls(messages)]
    spoken = _one_space("\n".join(said))
    seen = _one_space("\n".join(text_of(m.get("content")) for m in messages if m["role"] != "assistant"))
    for path, raw in _texts(private):
        text = _one_space(raw)
        if text not in spoken:
            continue
        if path and path[0] in ANSWERS:
            if _given_away(text, spoken, nearness):
                return ".".join(path)
        elif len(text) >= min_chars and len(text.split()) >= min_words and text not in seen:
            return ".".join(path)
    return None


def _given_away(text: str, spoken: str, nearness: int) -> bool:
    for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", spoken):
        if _GIVE_AWAY.search(spoken[max(0, match.start() - nearness) : match.end() + nearness]):
            return True
    return False
