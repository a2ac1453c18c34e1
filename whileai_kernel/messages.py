"""One message model: the OpenAI chat shape, as plain dicts.

A message is `{"role", "content", "tool_calls": [{"id", "type": "function", "function": {"name", "arguments"}}],
"tool_call_id", "reasoning_content"}` where `arguments` is the JSON text that the model wrote. This module brings
other shapes to it (content parts, Anthropic blocks, flat calls), pairs calls with results by id within the turn,
says what is wrong with a conversation, and decides which turns are trained. It does not render templates and
does not write any target's format.

Example:
    >>> call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}}
    >>> chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [call]},
    ...         {"role": "tool", "tool_call_id": "a", "content": "one"}, {"role": "assistant", "content": "ok"}]
    >>> [(c.name, c.arguments, c.result) for c in tool_calls(chat)]
    [('get', {'k': 1}, 'one')]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rowio import dumps, loads

__all__ = [
    "CallRecord",
    "Message",
    "MessageProblem",
    "Train",
    "check_messages",
    "final_text_of",
    "normalise_messages",
    "parse_arguments",
    "split_reasoning",
    "spoken_text",
    "steps",
    "text_of",
    "tool_calls",
    "trained_turns",
    "validate_messages",
    "with_unique_ids",
]

Message = dict[str, Any]
Pairs = dict[int, int]
ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text")
REASONING_PARTS = ("thinking", "reasoning", "redacted_thinking")
CALL_PARTS = ("tool_use", "tool_call", "function_call")
Train = Literal["all", "last", "final"]

# A block opens at the start of the text or of a line, so that prose which names the tag is not a block.
_OPEN = re.compile(r"(?:^|\n)[ \t]*<(think|thinking|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)


class MessageProblem(NamedTuple):
    """What is wrong with a conversation: the position of the message, a stable code and one sentence."""

    turn: int
    code: str
    message: str

    def __str__(self) -> str:
        return f"messages[{self.turn}]: {self.message}"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One tool call with the result that belongs to it.

    Attributes:
        turn: Position of the assistant message.
        position: Position of the call within that message.
        id: Call id as recorded; empty when there is none.
        name: Tool name.
        arguments_text: The text that the model wrote.
        arguments: The decoded object, or `None` when the text is not a JSON object.
        result: Text of the result, or `None` when there is none (or when pairing would be a guess).
        result_turn: Position of the tool message, or `None`.
    """

    turn: int
    position: int
    id: str
    name: str
    arguments_text: str
    arguments: dict[str, Any] | None
    result: str | None = None
    result_turn: int | None = None


def text_of(content: Any) -> str:
    """Return the text of a message's content: text, `None`, or a list of parts (images and calls have none).

    A value that is neither, such as a tool result given as an object, is written as JSON.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if _are_parts(content):
        return "".join(map(_text_of_part, content))
    if isinstance(content, list | tuple | Mapping):
        return _text_of_part(content) if _are_parts([content]) else dumps(content)
    raise RowError(
        f"content must be text or a list of parts, not {type(content).__name__}",
        fix="use a string or [{'type': 'text', 'text': ...}]",
        field="content",
    )


def _are_parts(content: Any) -> bool:
    return isinstance(content, list | tuple) and all(
        isinstance(part, str) or (isinstance(part, Mapping) and ("type" in part or "text" in part)) for part in content
    )


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text", part.get("content", "")) if part.get("type", "text") in TEXT_PARTS else ""
    return str((text.get("value") if isinstance(text, Mapping) else text) or "")


def split_reasoning(text: str) -> tuple[str | None, str | None]:
    """Split a reply into its reasoning and what was said.

    What follows the last closed block was said. A block that opens (at the start of the text or of a line) and
    never closes means that nothing was said yet.

    Returns:
        `(reasoning, spoken)`; `reasoning` is `None` when there is no block, `spoken` is `None` when the last
        block is unfinished.
    """
    closes = list(_CLOSE.finditer(text))
    end = closes[-1].end() if closes else 0
    rest = text[end:]
    opened = _OPEN.search(rest)
    if opened is not None:
        return _CLOSE.sub("", _OPEN.sub("\n", text)).strip(), None
    if not closes:
        return None, text
    head = text[: closes[-1].start()]
    return _CLOSE.sub("", _OPEN.sub("\n", head)).strip(), rest.lstrip()


def spoken_text(text: str | None) -> str:
    """Return what was said: the text after the last closed reasoning block, `""` when a block is unfinished."""
    return split_reasoning(text or "")[1] or ""


def parse_arguments(value: Any) -> dict[str, Any] | None:
    """Decode the arguments of a call to an object, or return `None` when they are not one.

    Empty text is the empty object. Text that was encoded twice is decoded twice; never more.
    """
    for _ in range(2):
        if isinstance(value, Mapping):
            return dict(value)
        if value is None or (isinstance(value, str) and not value.strip()):
            return {}
        if not isinstance(value, str):
            return None
        try:
            value = loads(value)
        except ValueError:
            return None
    return dict(value) if isinstance(value, Mapping) else None


def _call(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise RowError(f"a tool call must be a mapping, not {type(raw).__name__}", fix="use the OpenAI shape")
    inner = raw.get("function")
    source: Mapping[str, Any] = inner if isinstance(inner, Mapping) else raw
    name = inner if isinstance(inner, str) else source.get("name")
    arguments = source.get("arguments", source.get("input", source.get("args", "")))
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as err:
            raise RowError(f"arguments of a call to {name!r:.60} are not JSON: {err}", fix="use JSON values") from None
    call: dict[str, Any] = {
        "id": str(raw.get("id") or raw.get("call_id") or raw.get("tool_call_id") or ""),
        "type": "function",
        "function": {"name": name if isinstance(name, str) else "", "arguments": arguments},
    }
    if isinstance(inner, Mapping):
        call.update({k: v for k, v in raw.items() if k not in call})
        call["function"].update({k: v for k, v in inner.items() if k not in call["function"]})
    return call


def _normalised(raw: Any) -> Iterator[Message]:
    if not isinstance(raw, Mapping):
        raise RowError(
            f"a message must be a mapping, not {type(raw).__name__}", fix="use {'role': ..., 'content': ...}"
        )
    message = dict(raw)
    if message.get("role") == "function":
        message["role"] = "tool"
    if message.get("tool_call_id") is not None:
        message["tool_call_id"] = str(message["tool_call_id"])
    legacy = message.pop("function_call", None)
    calls = message.pop("tool_calls", None) or ([{"function": legacy}] if isinstance(legacy, Mapping) else [])
    if not isinstance(calls, list | tuple):
        raise RowError(f"tool_calls must be a list, not {type(calls).__name__}", fix="use [...]", field="tool_calls")
    calls = [_call(c) for c in calls]
    parts: Any = [message["content"]] if isinstance(message.get("content"), Mapping) else message.get("content")
    message["content"] = text_of(message.get("content"))
    if _are_parts(parts):
        mappings = [p for p in parts if isinstance(p, Mapping)]
        results = [p for p in mappings if p.get("type") == "tool_result"]
        for part in results:
            result = {"role": "tool", "tool_call_id": part.get("tool_use_id") or part.get("id") or ""}
            failed = {"is_error": True} if part.get("is_error") else {}
            yield from _normalised({**result, "content": part.get("content"), **failed})
        if results and len(results) == len(parts):
            return
        # Some tools write a call twice: as a part and as a call.
        known_ids = {c["id"] for c in calls} - {""}
        found = [_call(p) for p in mappings if p.get("type") in CALL_PARTS]
        calls += [c for c in found if c["id"] not in known_ids]
        thoughts = [str(p.get("thinking") or p.get("text") or "") for p in mappings if p.get("type") in REASONING_PARTS]
        if any(thoughts) and not message.get("reasoning_content"):
            message["reasoning_content"] = "\n".join(t for t in thoughts if t)
        known = (*TEXT_PARTS, *CALL_PARTS, *REASONING_PARTS, "tool_result")
        if any(p.get("type", "text") not in known for p in mappings):
            message["content_parts"] = list(parts)
    if calls:
        message["tool_calls"] = calls
    yield message


def normalise_messages(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Bring messages to the one model; nothing is guessed and nothing that was said is lost.

    Content parts become text (parts other than text, calls and reasoning are kept under `content_parts`),
    Anthropic `tool_use` and `tool_result` blocks become calls and tool messages, flat and legacy calls become
    nested ones, argument objects become JSON text.

    Raises:
        RowError: A message is not a mapping, or its role, content or calls cannot be read.
    """
    out: list[Message] = []
    for turn, raw in enumerate(messages):
        try:
            made = list(_normalised(raw))
            check_messages(made)
        except RowError as err:
            inside = (err.field or "").partition("].")[2] or err.field or ""
            raise err.at(field=f"messages[{turn}]{'.' if inside else ''}{inside}") from None
        out += made
    return out


def check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what is not a message at all: a wrong role, content that is not text.

    Raises:
        RowError: Names the position and the field.
    """
    for turn, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ROLES:
            raise RowError(
                f"role {role!r:.60} is not a chat role",
                why=f"roles are {', '.join(ROLES)}",
                fix="map other names before, or read the file with wai.read",
                field=f"messages[{turn}].role",
            )
        if not isinstance(message.get("content", ""), str | list | None):
            raise RowError("content must be text", fix="use a string", field=f"messages[{turn}].content")


def _calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(message.get("tool_calls") or ())


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, list[Mapping[str, Any]], list[int], Pairs]]:
    """Yield each assistant turn that calls tools: its position, its calls, the positions of the tool messages right
    after it, and which call (by number) has which of them."""
    for turn, message in enumerate(messages):
        if message.get("role") == "assistant" and _calls_of(message):
            end = turn + 1
            while end < len(messages) and messages[end].get("role") == "tool":
                end += 1
            calls = _calls_of(message)
            results = list(range(turn + 1, end))
            yield turn, calls, results, _pair(calls, [(i, messages[i].get("tool_call_id") or "") for i in results])


def _pair(calls: Sequence[Mapping[str, Any]], results: list[tuple[int, str]]) -> Pairs:
    """Pair calls with results of one turn by id; without ids only when exactly one pairing is possible."""
    ids = [c.get("id") or "" for c in calls]
    pairs: Pairs = {}
    for n, call_id in enumerate(ids):
        match = [result for result in results if result[1] == call_id]
        if call_id and ids.count(call_id) == 1 and len(match) == 1:
            pairs[n] = match[0][0]
            results.remove(match[0])
    waiting = [n for n in range(len(ids)) if n not in pairs]
    if len(waiting) == 1 and len(results) == 1 and not (results[0][1] and ids[waiting[0]]):
        pairs[waiting[0]] = results[0][0]
    return pairs


def tool_calls(messages: Sequence[Mapping[str, Any]]) -> list[CallRecord]:
    """List every tool call in order, each with its result.

    Results are paired by id within the turn, so ids may repeat across turns. A missing id is recovered only
    when one pairing alone is possible; otherwise `result` stays `None` and `validate_messages` says so.
    """
    records: list[CallRecord] = []
    for turn, calls, _, pairs in _turns(messages):
        for n, call in enumerate(calls):
            function = call.get("function") or {}
            text = function.get("arguments")
            at = pairs.get(n)
            records.append(
                CallRecord(
                    turn=turn,
                    position=n,
                    id=call.get("id") or "",
                    name=function.get("name") or "",
                    arguments_text=text if isinstance(text, str) else json.dumps(text, ensure_ascii=False),
                    arguments=parse_arguments(text),
                    result=None if at is None else text_of(messages[at].get("content")),
                    result_turn=at,
                )
            )
    return records


def validate_messages(messages: Sequence[Mapping[str, Any]], *, ends_on_call: bool = False) -> list[MessageProblem]:
    """Say what is wrong with a conversation; an empty list means that every target can read it.

    Each call has exactly one result directly after its turn, each result has its call, arguments are a JSON
    object, and at least one turn is the assistant's.

    Args:
        messages: Messages in the one model.
        ends_on_call: The row says that it ended on a call (`finish_reason` is `tool_calls`), so the calls of
            the last message may have no result.
    """
    problems: list[MessageProblem] = []
    claimed: set[int] = set()
    for turn, calls, results, pairs in _turns(messages):
        claimed.update(pairs.values())
        ids = [c.get("id") or "" for c in calls]
        open_end = ends_on_call and turn == len(messages) - 1
        nameless = any(i not in pairs.values() and not messages[i].get("tool_call_id") for i in results)
        for n, call in enumerate(calls):
            label = ids[n] or f"{n} (no id)"
            function = call.get("function") or {}
            found = {
                "call_without_name": not function.get("name") and f"call {label} names no tool",
                "arguments_not_json": parse_arguments(function.get("arguments")) is None
                and f"arguments of call {label} are not a JSON object",
            }
            if ids[n] and ids.count(ids[n]) > 1:
                found["duplicate_call_id"] = f"call id {label} repeats in the turn"
            elif n not in pairs and nameless:
                found["ambiguous_result"] = f"call {label}: results without id, pairing is a guess"
            elif n not in pairs and not open_end:
                found["call_without_result"] = f"call {label} has no result"
            problems += [MessageProblem(turn, code, text) for code, text in found.items() if text]
    for turn, message in enumerate(messages):
        if message.get("role") == "tool" and turn not in claimed:
            label = message.get("tool_call_id") or "(no id)"
            problems.append(MessageProblem(turn, "result_without_call", f"result {label} has no call"))
    if not any(m.get("role") == "assistant" for m in messages):
        problems.append(MessageProblem(max(len(messages) - 1, 0), "no_assistant", "no turn is the assistant's"))
    return sorted(problems)


def with_unique_ids(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return messages in which every call id is unique in the conversation; results follow their calls.

    The first call with an id keeps it. A repeated or missing one becomes `call_<turn>_<position>`.
    """
    out = [dict(m) for m in messages]
    taken = {c.get("id") for m in messages for c in _calls_of(m)} | {m.get("tool_call_id") for m in messages}
    used: set[str] = set()
    for turn, calls, _, pairs in _turns(messages):
        out[turn]["tool_calls"] = [dict(c) for c in calls]
        for n, call in enumerate(out[turn]["tool_calls"]):
            call_id = call.get("id") or ""
            if not call_id or call_id in used:
                call_id = f"call_{turn}_{n}"
                while call_id in taken:
                    call_id += "_"
                taken.add(call_id)
            used.add(call_id)
            call["id"] = call_id
            if n in pairs:
                out[pairs[n]]["tool_call_id"] = call_id
    return out


def steps(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation as steps for people: `{"type": "message"|"tool_call", ...}`; a view, not a format."""
    by_turn: dict[int, list[CallRecord]] = {}
    for record in tool_calls(messages):
        by_turn.setdefault(record.turn, []).append(record)
    out: list[dict[str, Any]] = []
    for turn, message in enumerate(messages):
        if message.get("role") == "tool":
            continue
        text = text_of(message.get("content"))
        if text or turn not in by_turn:
            out.append({"type": "message", "role": message.get("role"), "text": text})
        for call in by_turn.get(turn, ()):
            arguments = call.arguments if call.arguments is not None else call.arguments_text
            out.append({"type": "tool_call", "name": call.name, "arguments": arguments, "result": call.result})
    return out


def final_text_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the text of the last assistant message, or `None` when no assistant spoke."""
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return text_of(message.get("content"))
    return None


def trained_turns(messages: Sequence[Mapping[str, Any]], train: Train | Sequence[int] = "all") -> list[int]:
    """Return the positions of the assistant messages that the loss covers.

    Args:
        messages: Messages in the one model.
        train: `"all"` assistant turns; `"last"`: the last one; `"final"`: the last one when it is an answer
            (no tool call in it); or the positions themselves.

    Raises:
        ParameterError: The word is unknown, or a position is not an assistant message.
    """
    turns = [i for i, m in enumerate(messages) if m.get("role") == "assistant"]
    if isinstance(train, str):
        if train == "all":
            return turns
        if train == "last":
            return turns[-1:]
        if train == "final":
            return [i for i in turns[-1:] if not _calls_of(messages[i])]
        unknown_name("train", train, ("all", "last", "final"))
    chosen = sorted(set(train))
    wrong = [i for i in chosen if i not in turns]
    if wrong:
        raise ParameterError(
            f"train={list(train)!r} names messages that are not the assistant's: {wrong}",
            why=f"assistant messages are at {turns}",
            fix="choose from those positions",
        )
    return chosen
