"""Conversations as trainers and APIs keep them: OpenAI chat, Responses items, Anthropic messages, ShareGPT.

All four hold one conversation per record. Tools, a task id, a reward and a finish reason are used where a record
has them; everything else stays under the name of the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import text_of
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score, leftovers
from whileai_traces.defaults import CERTAIN, LIKELY, POSSIBLE
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping
from whileai_traces.formats.items import is_items, items_to_messages

__all__ = ["AnthropicMessages", "OpenAIChat", "ResponsesItems", "ShareGPT"]

STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "completed": "stop",
    "max_output_tokens": "length",
}
ROW_KEYS = ("task_id", "reward", "status", "threshold", "index", "rollout_id", "finish_reason", "group")
SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def _has_blocks(messages: list[Any]) -> bool:
    kinds = ("tool_use", "tool_result", "thinking", "redacted_thinking")
    return any(
        isinstance(part, Mapping) and part.get("type") in kinds
        for message in messages
        if isinstance(message, Mapping)
        for part in as_list(message.get("content"))
    )


def _scores(record: Mapping[str, Any], name: str) -> list[Score]:
    if "reward" not in record:
        return []
    threshold = record.get("threshold")
    return [
        Score(f"{name}/reward", record["reward"], threshold=threshold if isinstance(threshold, int | float) else None)
    ]


def _task_id(record: Mapping[str, Any]) -> str | None:
    value = record.get("task_id")
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


def _tools(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return as_list(value)


class OpenAIChat(JsonSource):
    """Chat JSONL: `{"messages": [...], "tools": [...]}`, bare lists of messages, and logged requests with choices."""

    name = "chat"

    def sniff_records(self, records: list[Any]) -> float:
        """Likely for records with chat messages; left to others where blocks or items are used."""
        hits = 0
        for record in records:
            messages = self._messages(record)
            if messages and all(map(_is_message, messages)) and not _has_blocks(messages):
                hits += 1
        return LIKELY.value if records and hits == len(records) else (POSSIBLE.value if hits else 0.0)

    @staticmethod
    def _messages(record: Any) -> list[Any]:
        if isinstance(record, list):
            return record
        record = as_mapping(record)
        if isinstance(record.get("messages"), list):
            return as_list(record["messages"])
        for key in ("request", "body", "input"):
            inner = as_mapping(record.get(key))
            if isinstance(inner.get("messages"), list):
                return as_list(inner["messages"])
        prompt, completion = record.get("prompt"), record.get("completion")
        if isinstance(prompt, list) and isinstance(completion, list):
            return [*prompt, *completion]
        return []

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; a logged request gives one row per choice."""
        for where, record in records:
            messages = self._messages(record)
            if not messages:
                build.problem(where, "has no chat messages")
                continue
            record = as_mapping(record)
            request = next((as_mapping(record[k]) for k in ("request", "body", "input") if k in record), record)
            response = as_mapping(record.get("response"))
            response = as_mapping(response.get("body")) or response
            choices = as_list(record.get("choices")) or as_list(response.get("choices"))
            variants = [*choices, *self._preferences(record)] or [None]
            for choice in variants:
                row = self._row(where, record, request, response, messages, choice, build)
                if row is not None:
                    yield row

    @staticmethod
    def _preferences(record: Mapping[str, Any]) -> list[dict[str, Any]]:
        pairs = (("preferred_output", "chosen"), ("non_preferred_output", "rejected"))
        return [
            {"messages": record[key], "preference": label} for key, label in pairs if isinstance(record.get(key), list)
        ]

    def _row(
        self,
        where: str,
        record: Mapping[str, Any],
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        messages: list[Any],
        choice: Any,
        build: RowBuilder,
    ) -> Row | None:
        choice = as_mapping(choice)
        tail = [choice["message"]] if choice.get("message") else as_list(choice.get("messages"))
        used = ("messages", "tools", "choices", "request", "response", "body", "input", "usage", "model", "prompt",
                "completion", "preferred_output", "non_preferred_output", *ROW_KEYS)  # fmt: skip
        rest = leftovers(record, used)
        if choice.get("preference"):
            rest["preference"] = choice["preference"]
        if isinstance(record.get("group"), Mapping):
            rest["group"] = record["group"]
        model = response.get("model") or request.get("model") or record.get("model")
        index = record.get("index")
        finish = choice.get("finish_reason") or record.get("finish_reason")
        return build.row(
            where,
            [*messages, *tail],
            task_id=_task_id(record),
            index=index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else None,
            scores=_scores(record, self.name),
            tools=_tools(record.get("tools") or request.get("tools")),
            rest=rest,
            finish_reason=finish if isinstance(finish, str) else None,
            policy={"model": model} if isinstance(model, str) else None,
            usage=dict(as_mapping(response.get("usage") or record.get("usage"))),
            logprobs=choice.get("logprobs"),
        )


class ResponsesItems(JsonSource):
    """OpenAI Responses: `{"input": ..., "output": [...]}` objects, or lists of items."""

    name = "responses"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when items of the Responses API are in a record."""
        for record in records:
            if isinstance(record, Mapping) and record.get("object") == "response":
                return CERTAIN.value
            items = record if isinstance(record, list) else self._items(as_mapping(record))
            if is_items(items):
                return CERTAIN.value - 0.05
        return 0.0

    @staticmethod
    def _items(record: Mapping[str, Any]) -> list[Any]:
        source = as_mapping(record.get("response")) or record
        request = as_mapping(record.get("request")) or record
        before = request.get("input")
        items = [{"role": "user", "content": before}] if isinstance(before, str) else list(as_list(before))
        items += as_list(source.get("output")) or as_list(record.get("items"))
        instructions = request.get("instructions") or source.get("instructions")
        if isinstance(instructions, str) and instructions:
            items.insert(0, {"role": "system", "content": instructions})
        return items

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per response, or per list of items."""
        for where, record in records:
            items = record if isinstance(record, list) else self._items(as_mapping(record))
            if not items:
                build.problem(where, "has neither input nor output items")
                continue
            messages, unknown = items_to_messages(items)
            record = as_mapping(record)
            source = as_mapping(record.get("response")) or record
            request = as_mapping(record.get("request")) or record
            status = as_mapping(source.get("incomplete_details")).get("reason") or source.get("status")
            finish = STOP_REASONS.get(str(status), str(status)) if status else None
            if finish == "stop" and messages and messages[-1].get("tool_calls"):
                finish = "tool_calls"
            used = (
                "input",
                "output",
                "items",
                "instructions",
                "tools",
                "usage",
                "model",
                "request",
                "response",
                *ROW_KEYS,
            )
            rest = leftovers(record, used)
            if unknown:
                rest["items"] = unknown
            model = source.get("model") or request.get("model")
            row = build.row(
                where,
                messages,
                task_id=_task_id(record),
                scores=_scores(record, self.name),
                tools=_tools(request.get("tools") or source.get("tools")),
                rest=rest,
                finish_reason=finish,
                policy={"model": model} if isinstance(model, str) else None,
                usage=dict(as_mapping(source.get("usage"))),
            )
            if row is not None:
                yield row


class AnthropicMessages(JsonSource):
    """Anthropic messages: a request with blocks, alone or with the response message."""

    name = "anthropic"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain where tool_use, tool_result or thinking blocks are used, or a message object is logged."""
        best = 0.0
        for record in records:
            messages = self._messages(record)
            record = as_mapping(record)
            if messages and _has_blocks(messages):
                return CERTAIN.value
            if any(as_mapping(record.get(k)).get("type") == "message" for k in ("response", "message")):
                return CERTAIN.value
            if messages and record.get("system") and all(map(_is_message, messages)):
                best = LIKELY.value + 0.1
            if any("input_schema" in as_mapping(t) for t in as_list(record.get("tools"))):
                best = max(best, LIKELY.value + 0.2)
        return best

    @staticmethod
    def _messages(record: Any) -> list[Any]:
        if isinstance(record, list):
            return record
        record = as_mapping(record)
        request = as_mapping(record.get("request")) or record
        return as_list(request.get("messages"))

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; the response message, when logged, is its last turn."""
        for where, record in records:
            messages = list(self._messages(record))
            record = as_mapping(record)
            request = as_mapping(record.get("request")) or record
            response = as_mapping(record.get("response")) or as_mapping(record.get("message"))
            if response.get("content") is not None:
                messages.append({"role": response.get("role") or "assistant", "content": response["content"]})
            if not messages:
                build.problem(where, "has no messages")
                continue
            system = request.get("system")
            if system:
                messages.insert(0, {"role": "system", "content": system})
            stop = response.get("stop_reason") or record.get("stop_reason")
            used = (
                "messages",
                "system",
                "tools",
                "request",
                "response",
                "message",
                "model",
                "usage",
                "stop_reason",
                *ROW_KEYS,
            )
            model = response.get("model") or request.get("model")
            row = build.row(
                where,
                messages,
                task_id=_task_id(record),
                scores=_scores(record, self.name),
                tools=_tools(request.get("tools")),
                rest=leftovers(record, used),
                finish_reason=STOP_REASONS.get(str(stop), str(stop)) if stop else None,
                policy={"model": model} if isinstance(model, str) else None,
                usage=dict(as_mapping(response.get("usage") or record.get("usage"))),
            )
            if row is not None:
                yield row


_CALL_TAG = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESULT_TAG = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


class ShareGPT(JsonSource):
    """ShareGPT: `{"conversations": [{"from", "value"}]}`, with calls as turns or as tagged text.

    The format has no call ids. A call and a result are paired where one pairing alone is possible (one call, or
    results that name their tool); files written by `whileai-export` carry the ids as further keys.
    """

    name = "sharegpt"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when turns have `from` and `value`."""
        for record in records:
            turns = as_list(as_mapping(record).get("conversations"))
            if turns and all(isinstance(t, Mapping) and "from" in t and "value" in t for t in turns):
                return CERTAIN.value
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation."""
        for where, record in records:
            record = as_mapping(record)
            turns = as_list(record.get("conversations"))
            messages: list[dict[str, Any]] = []
            for turn in turns:
                role = SHAREGPT_ROLES.get(str(as_mapping(turn).get("from")).lower())
                if role is None:
                    build.problem(where, f"turn from {as_mapping(turn).get('from')!r:.60} is no known speaker")
                    break
                try:
                    self._turn(as_mapping(turn), role, messages)
                except RowError as err:
                    build.problem(where, f"turn {len(messages) + 1}: {err.what}")
                    break
            else:
                if not messages:
                    build.problem(where, "has no conversations")
                    continue
                if isinstance(record.get("system"), str) and record["system"]:
                    messages.insert(0, {"role": "system", "content": record["system"]})
                row = build.row(
                    where,
                    messages,
                    task_id=_task_id(record),
                    scores=_scores(record, self.name),
                    tools=_tools(record.get("tools")),
                    rest=leftovers(record, ("conversations", "system", "tools", *ROW_KEYS)),
                )
                if row is not None:
                    yield row

    def _turn(self, turn: Mapping[str, Any], role: str, messages: list[dict[str, Any]]) -> None:
        value = text_of(turn.get("value"))
        if turn.get("from") == "function_call":
            calls = _decode_calls(value)
            _append_calls(messages, calls, "", turn.get("ids"))
        elif role == "assistant" and _CALL_TAG.search(value):
            calls = [c for text in _CALL_TAG.findall(value) for c in _decode_calls(text)]
            _append_calls(messages, calls, _CALL_TAG.sub("", value).strip(), None)
        elif role == "tool":
            texts = _RESULT_TAG.findall(value) or [value]
            for text in texts:
                message = {"role": "tool", "tool_call_id": turn.get("tool_call_id") or "", "content": text}
                messages.append({**message, "tool_call_id": message["tool_call_id"] or _by_name(messages, text)})
        else:
            message = {"role": role, "content": value}
            if turn.get("reasoning_content"):
                message["reasoning_content"] = turn["reasoning_content"]
            messages.append(message)


def _decode_calls(text: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text)
    except ValueError:
        return [{"name": "", "arguments": text}]
    calls = value if isinstance(value, list) else [value]
    return [c if isinstance(c, dict) else {"name": "", "arguments": json.dumps(c)} for c in calls]


def _append_calls(messages: list[dict[str, Any]], calls: list[dict[str, Any]], content: str, ids: Any) -> None:
    known = as_list(ids)
    turn = len(messages)
    shaped = [
        {
            "id": str(known[n] if n < len(known) else c.get("id") or f"call_{turn}_{n}"),
            "name": c.get("name"),
            "arguments": c.get("arguments"),
        }
        for n, c in enumerate(calls)
    ]
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant" and not last.get("tool_calls") and not content:
        last["tool_calls"] = shaped  # the text before a call is a turn of its own in this format, and one turn here
    else:
        messages.append({"role": "assistant", "content": content, "tool_calls": shaped})


def _by_name(messages: list[dict[str, Any]], text: str) -> str:
    """Return the id of the call that a result belongs to, where it is the only one possible; else nothing."""
    turn: dict[str, Any] = next((m for m in reversed(messages) if m["role"] == "assistant"), {})
    taken = {m.get("tool_call_id") for m in messages if m["role"] == "tool"}
    free = [c for c in turn.get("tool_calls") or () if c["id"] not in taken]
    if len(turn.get("tool_calls") or ()) == 1 and free:
        return str(free[0]["id"])
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    name = as_mapping(value).get("name")
    named = [c for c in turn.get("tool_calls") or () if c.get("name") == name]
    return str(named[0]["id"]) if len(named) == 1 and named[0] in free else ""
