"""From conversations to rows: one row per conversation, written whenever it grows.

The row has what the model was asked and what it answered, exactly: messages, tools, usage, log-probabilities, sampling.
`conversation` says where it belongs: the rollout, the row that it branched off, how many requests it took. Headers are
never recorded, and neither are parts of a request that are none of these. A bearer token that a program repeats in its
messages is removed there too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from whileai_agents.ask import Ask
from whileai_agents.conversations import Conversation
from whileai_agents.rowfile import RowFile
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import Completion
from whileai_kernel.rows import LENGTH_REASONS, SCHEMA_VERSION, ordered

__all__ = ["Recorder", "add_usage", "note", "redact", "row_of", "usage_of"]

Row = dict[str, Any]
_TASK_KEYS = ("axes", "world", "split", "lineage")


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Return a value without any of the secrets, at any depth."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[key]")
        return value
    if isinstance(value, Mapping):
        return {redact(k, secrets): redact(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [redact(v, secrets) for v in value]
    return value


def usage_of(completion: Completion) -> dict[str, Any]:
    """Return the usage of one reply: tokens as the server counts them, requests made, cost when it is known."""
    usage: dict[str, Any] = {**completion.usage, "requests": completion.attempts}
    if completion.cost_usd is not None:
        usage["cost_usd"] = completion.cost_usd
    return usage


def add_usage(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up usages; a cost that is unknown for one reply is unknown for all."""
    parts = list(usages)
    total: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    if any("cost_usd" not in part for part in parts):
        total.pop("cost_usd", None)
    return total


def sampled(conversation: Conversation) -> list[dict[str, Any]] | dict[str, Any] | None:
    """Return log-probabilities and token ids per reply that came with any, with the position of its message.

    A conversation of one reply has the one mapping, where exporters look for token ids.
    """
    out = []
    for place, reply in conversation.replies:
        part = {
            "logprobs": reply.logprobs,
            "prompt_token_ids": None if reply.prompt_ids is None else list(reply.prompt_ids),
            "completion_token_ids": None if reply.completion_ids is None else list(reply.completion_ids),
        }
        if any(value is not None for value in part.values()):
            out.append({"message": place, **{k: v for k, v in part.items() if v is not None}})
    if not out:
        return None
    return out[0] if len(conversation.replies) == 1 else out


def row_of(conversation: Conversation, head: Mapping[str, Any], task: Mapping[str, Any]) -> Row:
    """Return the row of a conversation as it stands.

    Args:
        conversation: The conversation; `extra` holds its tools and sampling.
        head: Identity: `task_id`, `rollout_id`, `index`, `prompt`, `policy`, `conversation`, `faults_fired`.
        task: The task, whose public parts stand on the row.
    """
    messages = [dict(m) for m in conversation.messages]
    last = conversation.replies[-1][1] if conversation.replies else None
    finish = last.finish_reason if last is not None and conversation.error is None else None
    outcome = "completed"
    if conversation.error is not None:
        outcome = "failed"
    elif finish in LENGTH_REASONS:
        outcome = "truncated"
    replied = conversation.replies and conversation.replies[-1][0] == len(messages) - 1
    row: Row = {
        "schema_version": SCHEMA_VERSION,
        "final_text": text_of(messages[-1].get("content")) if replied else None,
        "reward": None,
        "status": "missing",
        "markers": {},
        **{key: task[key] for key in _TASK_KEYS if task.get(key) is not None},
        **head,
        "messages": messages,
        "finish_reason": finish,
        "outcome": outcome,
    }
    system = next((m for m in messages if m.get("role") in ("system", "developer")), None)
    if system is not None:
        row["system_prompt"] = text_of(system.get("content"))
    if conversation.extra.get("tools"):
        row["tools"] = list(conversation.extra["tools"].values())
    if conversation.error is not None:
        row["error"] = conversation.error
    own = conversation.replies[conversation.shared_replies :]
    usage = add_usage(usage_of(reply) for _, reply in own)
    if usage:
        row["usage"] = usage
    tokens = sampled(conversation)
    if tokens:
        row["logprobs"] = tokens
    return ordered(row)


def note(conversation: Conversation, ask: Ask, tools: Iterable[Mapping[str, Any]]) -> None:
    """Keep the tools and the sampling of a request with its conversation."""
    known: dict[str, Any] = conversation.extra.setdefault("tools", {})
    known.update({tool["function"]["name"]: dict(tool) for tool in tools})
    conversation.extra.setdefault("sampling", dict(ask.sampling))


class Recorder:
    """Rows of a proxy, in memory or in a file.

    Args:
        file: Where they go; `None` keeps them in memory.
    """

    def __init__(self, file: RowFile | None = None) -> None:
        self.file = file
        # The conversation is kept with its row, so that its id stays its own.
        self._rows: dict[int, tuple[Conversation, Row]] = {}
        self._tasks = dict(file.tasks) if file is not None else {}
        self._lock = threading.Lock()

    def next_index(self, task_id: str) -> int:
        """Return the number of the next rollout of a task."""
        with self._lock:
            index = self._tasks.get(task_id, 0)
            self._tasks[task_id] = index + 1
            return index

    def put(self, conversation: Conversation, row: Row) -> None:
        """Write the row of a conversation, in place of its earlier version."""
        with self._lock:
            if self.file is not None:
                conversation.extra["place"] = self.file.put(row, conversation.extra.get("place"))
            else:
                self._rows[id(conversation)] = (conversation, row)

    def rows(self) -> list[Row]:
        """Return the rows so far, in the order in which their conversations began (in a file: grew last)."""
        with self._lock:
            return list(self.file.read()) if self.file is not None else [row for _, row in self._rows.values()]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self.file is not None:
                self.file.close()
