"""What each target reads: the record of a sample, its columns, and the switch that enforces what is trained.

A target is data (`Target`) and one function per kind of record. The columns are the same whatever the rows hold,
so that the first row of a file never decides how the others are read.

Example:
    >>> sorted(TARGETS)
    ['anthropic', 'chat', 'openai', 'sharegpt', 'trl']
    >>> TARGETS["trl"].columns("preference")
    {'prompt': 'messages', 'chosen': 'messages', 'rejected': 'messages', 'tools': 'text'}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_export.encoders import ENCODERS, TRAINED, encode_tools, finish
from whileai_export.samples import Sample
from whileai_kernel.rows import strip_privileged, task_key

__all__ = ["TARGETS", "Record", "Target"]

Record = dict[str, Any]
Columns = dict[str, str]
"""Column to type: `messages` (a list of free-form objects), `json` (any JSON), `text`, `float`, `int`, `ints`."""

FIGURES: Columns = {
    "group_id": "text",
    "group_size": "int",
    "group_scored": "int",
    "group_mean": "float",
    "group_std": "float",
}
REWARDED: Columns = {
    "reward": "float",
    "threshold": "float",
    **FIGURES,
    "logprobs": "text",
    "completion_token_ids": "ints",
    "completion_mask": "ints",
}
MEASURED: Columns = {"n": "int", "scored": "int", "mean_reward": "float", "pass_rate": "float", "split": "text"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a target reads.

    Attributes:
        name: Name of the exporter.
        encoding: Name of the encoder.
        mask: How the target learns what is trained: `weight` per message, `split` into prompt and completion,
            `history` (a switch that masks all but the last turn), or `none`.
        shapes: Kind to the columns of its record, in order.
        meta: Further columns of `sft` records.
        reasoning: Default treatment of reasoning.
        optional: Columns that are left out of a JSONL record in which they are empty.
    """

    name: str
    encoding: str
    mask: str
    shapes: Mapping[str, Columns]
    meta: Columns = field(default_factory=dict)
    reasoning: str = "keep"
    optional: tuple[str, ...] = ()

    def columns(self, kind: str) -> Columns:
        """Return the columns of a kind's records with their types, in order."""
        return {**self.shapes[kind], **(self.meta if kind == "sft" else {})}

    def record(self, sample: Sample, kind: str, *, weights: bool = False) -> Record:
        """Return the record of a sample, without anything private.

        Args:
            sample: What is written.
            kind: The kind of record.
            weights: Say per assistant message whether it is trained (for targets that read a weight).
        """
        parts = _parts(self, sample, kind, weights)
        out: Record = {}
        for column in self.columns(kind):
            value = parts[column]() if callable(parts.get(column)) else _value(column, sample)
            if value in (None, [], "") and column in self.optional:
                continue
            out[column] = value
        return out


def _marked(messages: Sequence[Mapping[str, Any]], trained: Sequence[int], offset: int = 0) -> list[dict[str, Any]]:
    return [
        {**m, TRAINED: i + offset in trained} if m["role"] == "assistant" else dict(m) for i, m in enumerate(messages)
    ]


def _encoded(
    target: Target, messages: Sequence[Mapping[str, Any]], sample: Sample, weights: bool, offset: int = 0
) -> list[dict[str, Any]]:
    out = ENCODERS[target.encoding](_marked(messages, sample.trained, offset))
    if weights and target.mask == "weight":
        out = [{**m, "weight": int(m[TRAINED])} if TRAINED in m else m for m in out]
    return finish(out)


def _tools(target: Target, sample: Sample) -> Any:
    tools = encode_tools(sample.row.get("tools") or (), target.encoding)
    if target.columns("sft").get("tools") == "text":
        return json.dumps(tools, ensure_ascii=False) if tools else None
    return tools


def _system(target: Target, messages: Sequence[Mapping[str, Any]]) -> str | None:
    if target.encoding != "anthropic":
        return None
    return (
        "\n\n".join(
            str(m["content"]) for m in ENCODERS["anthropic"](messages) if m["role"] == "system" and m["content"]
        )
        or None
    )


def _parts(target: Target, sample: Sample, kind: str, weights: bool) -> dict[str, Callable[[], Any]]:
    start = sample.start if sample.start is not None else len(sample.messages)

    def enc(messages: Sequence[Mapping[str, Any]], offset: int = 0) -> list[dict[str, Any]]:
        coded = _encoded(target, messages, sample, weights, offset)
        return [m for m in coded if m.get("role") != "system"] if target.encoding == "anthropic" else coded

    parts: dict[str, Callable[[], Any]] = {
        "messages": lambda: enc(sample.messages),
        "conversations": lambda: enc(sample.messages),
        "prompt": lambda: enc(sample.messages[:start]),
        "completion": lambda: enc(sample.messages[start:], start),
        "chosen": lambda: enc(sample.chosen),
        "rejected": lambda: enc(sample.rejected),
        "preferred_output": lambda: enc(sample.chosen),
        "non_preferred_output": lambda: enc(sample.rejected),
        "input": lambda: {"messages": enc(sample.messages), **({"tools": t} if (t := _tools(target, sample)) else {})},
        "tools": lambda: _tools(target, sample),
        "system": lambda: _system(target, sample.messages),
    }
    if target.name == "sharegpt" and kind == "preference":
        parts["chosen"] = lambda: enc(sample.chosen)[-1]
        parts["rejected"] = lambda: enc(sample.rejected)[-1]
    return parts


def _value(column: str, sample: Sample) -> Any:
    row, figures = sample.row, sample.figures
    if column == "task_id":
        return task_key(row)
    if column == "rollout_id":
        return str(row.get("rollout_id") or "")
    if column in ("reward", "threshold"):
        value = row.get(column)
        return float(value) if value is not None else None
    if column == "status":
        return row.get("status") or ("missing" if row.get("reward") is None else "ok")
    if column == "group":
        return dict(figures) if figures else None
    if column.startswith("group_"):
        return figures.get(column.removeprefix("group_"))
    if column == "logprobs":
        value = row.get("logprobs")
        return json.dumps(strip_privileged(value), ensure_ascii=False) if value is not None else None
    if column == "completion_token_ids":
        return token_ids(row)
    if column == "completion_mask":
        ids = token_ids(row)
        return [1] * len(ids) if ids else None
    if column in MEASURED:
        return figures.get(column)
    return None


def token_ids(row: Mapping[str, Any]) -> list[int] | None:
    """Return the token ids that the server sampled, where the row carries them."""
    places = [row, row.get("logprobs") or {}]
    for place in places:
        if isinstance(place, Mapping):
            for key in ("completion_token_ids", "token_ids"):
                ids = place.get(key)
                if isinstance(ids, list) and ids and all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
                    return list(ids)
    return None


_CHAT_META: Columns = {"task_id": "text", "rollout_id": "text", "reward": "float", "status": "text", "group": "json"}
_EVAL: Columns = {"task_id": "text", **MEASURED}


def _chat_shapes(tools: str) -> dict[str, Columns]:
    """Return the shapes of OpenAI chat records.

    Args:
        tools: `text` for trainers that load with `datasets`: they decode JSON text, and no loader of any version
            merges the schemas of differing tools. `messages` for the platform, which reads a list only.
    """
    return {
        "sft": {"messages": "messages", "tools": tools},
        "preference": {"input": "json", "preferred_output": "messages", "non_preferred_output": "messages"},
        "prompts": {"messages": "messages", "tools": tools, "task_id": "text"},
        "rewarded": {"messages": "messages", "tools": tools, "task_id": "text", "rollout_id": "text", **REWARDED},
        "eval": {"messages": "messages", "tools": tools, **_EVAL},
    }


TARGETS: dict[str, Target] = {
    "chat": Target("chat", "openai", "weight", _chat_shapes("text"), meta=_CHAT_META, optional=("tools", "group")),
    "openai": Target("openai", "openai", "weight", _chat_shapes("messages"), reasoning="strip", optional=("tools",)),
    "trl": Target(
        "trl",
        "hf",
        "split",
        {
            "sft": {"messages": "messages", "tools": "text"},
            "completion": {"prompt": "messages", "completion": "messages", "tools": "text"},
            "preference": {"prompt": "messages", "chosen": "messages", "rejected": "messages", "tools": "text"},
            "prompts": {"prompt": "messages", "tools": "text", "task_id": "text"},
            "rewarded": {
                "prompt": "messages",
                "completion": "messages",
                "tools": "text",
                "task_id": "text",
                "rollout_id": "text",
                **REWARDED,
            },
            "eval": {"prompt": "messages", "tools": "text", **_EVAL},
        },
    ),
    "anthropic": Target(
        "anthropic",
        "anthropic",
        "none",
        {
            "sft": {"system": "text", "messages": "messages", "tools": "messages"},
            "preference": {
                "system": "text",
                "messages": "messages",
                "chosen": "messages",
                "rejected": "messages",
                "tools": "messages",
            },
            "prompts": {"system": "text", "messages": "messages", "tools": "messages", "task_id": "text"},
            "rewarded": {
                "system": "text",
                "messages": "messages",
                "tools": "messages",
                "task_id": "text",
                "rollout_id": "text",
                **REWARDED,
            },
            "eval": {"system": "text", "messages": "messages", "tools": "messages", **_EVAL},
        },
        optional=("system", "tools"),
    ),
    "sharegpt": Target(
        "sharegpt",
        "sharegpt",
        "history",
        {
            "sft": {"conversations": "messages", "tools": "text"},
            "preference": {"conversations": "messages", "chosen": "json", "rejected": "json", "tools": "text"},
            "prompts": {"conversations": "messages", "tools": "text", "task_id": "text"},
            "rewarded": {
                "conversations": "messages",
                "tools": "text",
                "task_id": "text",
                "rollout_id": "text",
                **REWARDED,
            },
            "eval": {"conversations": "messages", "tools": "text", **_EVAL},
        },
        optional=("tools",),
    ),
}
