"""The flat row: one rollout of one task with the verdict on it, as a JSON-serialisable mapping.

This module has what every reader of rows needs and no dependency at all: the key order, the statuses, ids that
are content hashes, the grouping rule, the removal of private data, and rows from prompts and completions that
somebody already has. The typed objects that a row is the projection of are in `models`; files are in `rowio`.

Example:
    >>> rows = make_rows(["2+2?", "3+3?"], ["4", "7"], [1, 0])
    >>> [(r["task_id"] == task_key(r), r["reward"], r["status"]) for r in rows]
    [(True, 1.0, 'ok'), (True, 0.0, 'ok')]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.defaults import PASS_TOLERANCE, THRESHOLD
from whileai_kernel.encoding import prepared
from whileai_kernel.errors import ParameterError, RowError

__all__ = [
    "KEY_ORDER",
    "LENGTH_REASONS",
    "OUTCOMES",
    "SCHEMA_VERSION",
    "STATUSES",
    "Row",
    "content_id",
    "group_by_task",
    "make_rows",
    "ordered",
    "passed",
    "strip_privileged",
    "task_key",
    "truncated",
]

Row = dict[str, Any]
"""A flat row. Keys are those of `KEY_ORDER`; others are kept as they are."""

SCHEMA_VERSION = 1
"""Version written on every row. Rows of older versions are migrated by `rowio`; newer ones are refused."""

STATUSES = ("ok", "missing", "invalid", "error", "timeout", "abstained")
"""Why a row has its reward (`ok`) or has none: everything but `ok` is *not scored*, and never 0."""

OUTCOMES = ("completed", "truncated", "failed")
"""How the run of a rollout ended, apart from its verdict."""

LENGTH_REASONS = ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length")
"""Finish reasons of the providers that mean: cut by a length limit."""

KEY_ORDER = (
    "schema_version", "task_id", "rollout_id", "index", "prompt", "final_text", "reward", "status", "markers",
    "threshold", "reason", "scorer", "evidence", "judgments", "marker_evidence",
    "system_prompt", "tools", "axes", "world", "split", "lineage",
    "policy", "messages", "finish_reason", "outcome", "error", "usage", "logprobs", "faults_fired", "seeded",
    "privileged",
)  # fmt: skip
"""Order in which the kernel writes the keys of a row; unknown keys follow in their own order."""

_canonical = prepared(json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False))
_RANK = {key: i for i, key in enumerate(KEY_ORDER)}


def ordered(row: Mapping[str, Any]) -> Row:
    """Return a copy with the keys in `KEY_ORDER`; unknown keys keep their order, after the known ones."""
    return dict(sorted(row.items(), key=lambda kv: _RANK.get(kv[0], len(_RANK))))


def content_id(prefix: str, *parts: Any) -> str:
    """Return `prefix_<20 hex digits>`, the SHA-256 of the parts as canonical JSON.

    The same parts give the same id on every Python version and machine: keys are sorted, text is escaped to
    ASCII, floats are written by `repr` (the shortest text that reads back as the same value). 80 bits make a
    clash among a million ids less likely than 1e-12.

    Args:
        prefix: What the id names, for example `"task"`.
        parts: JSON-serialisable values. An `int` and an equal `float` differ (1 is not 1.0).

    Raises:
        RowError: A part cannot be written as JSON.
    """
    try:
        text = _canonical(parts)
    except (TypeError, ValueError, RecursionError) as err:
        raise RowError(
            f"cannot make a {prefix} id: {err}", why="ids are hashes of JSON content", fix="use JSON values only"
        ) from err
    return f"{prefix}_{hashlib.sha256(text.encode('ascii')).hexdigest()[:20]}"


def task_key(row: Mapping[str, Any]) -> str:
    """Return the task that a row belongs to: its `task_id`, else the hash of its prompt.

    Raises:
        RowError: The row has neither a usable `task_id` nor a prompt.
    """
    task_id = row.get("task_id")
    if isinstance(task_id, str) and task_id:
        return task_id
    if isinstance(task_id, int) and not isinstance(task_id, bool):
        return str(task_id)
    if task_id not in (None, ""):
        raise RowError(f"task_id must be text, not {task_id!r:.80}", fix="give each row a task_id", field="task_id")
    prompt = row.get("prompt")
    if isinstance(prompt, str | list) and prompt:
        return content_id("task", prompt)
    raise RowError(
        "the row has no task_id and no prompt",
        why="rows are grouped by task",
        fix="give each row a task_id, or its prompt",
        field="task_id",
    )


def group_by_task(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group rows by `task_key`, tasks in order of first appearance, rows in their own order.

    Raises:
        RowError: A row has neither task_id nor prompt; the error names its position.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for position, row in enumerate(rows):
        try:
            key = task_key(row)
        except RowError as err:
            raise err.at(row=position) from None
        groups.setdefault(key, []).append(row)
    return groups


def passed(
    row: Mapping[str, Any], threshold: float | None = None, tolerance: float = PASS_TOLERANCE.value
) -> bool | None:
    """Return whether a row passes: `reward >= threshold`, or `None` when it is not scored.

    Args:
        row: A row with `reward` in [0, 1] or `None`.
        threshold: Overrides the row's own `threshold` (default 1.0).
        tolerance: Slack below the threshold that still passes.
    """
    reward = row.get("reward")
    if reward is None:
        return None
    limit = row.get("threshold") if threshold is None else threshold
    if limit is None:
        limit = THRESHOLD.value
    return bool(reward >= limit - tolerance)


def truncated(row: Mapping[str, Any]) -> bool | None:
    """Return whether the rollout was cut by a length limit, or `None` when nothing says so either way.

    The provider's finish reason decides; the text never does (other models end with other tokens, and a code
    fence or a signature is no cut).
    """
    finish = row.get("finish_reason")
    if finish in LENGTH_REASONS or row.get("outcome") == "truncated":
        return True
    return None if finish is None else False


def strip_privileged(value: Any) -> Any:
    """Return a copy of `value` without any key `privileged`, at any depth.

    Everything that leaves for training goes through this one function.
    """
    if isinstance(value, Mapping):
        return {k: strip_privileged(v) for k, v in value.items() if k != "privileged"}
    if isinstance(value, list | tuple):
        return [strip_privileged(v) for v in value]
    return value


def _column(name: str, values: Iterable[Any] | None, n: int | None = None) -> Sequence[Any]:
    if values is None:
        return [None] * (n or 0)
    if isinstance(values, str | bytes | Mapping):
        raise ParameterError(
            f"{name} must be a list with one entry per prompt, not {type(values).__name__}", fix=f"pass {name}=[...]"
        )
    column = list(values)
    if n is not None and len(column) != n:
        raise ParameterError(
            f"{name} has {len(column)} entries for {n} prompts",
            why="prompts, completions and every other column are read side by side",
            fix=f"pass one entry of {name} per prompt (None where there is none)",
        )
    return column


def make_rows(
    prompts: Iterable[Any],
    completions: Iterable[Any],
    reward: Iterable[Any] | None = None,
    *,
    references: Iterable[Any] | None = None,
    task_ids: Iterable[str | None] | None = None,
    markers: Iterable[Mapping[str, Any] | None] | None = None,
    finish_reasons: Iterable[str | None] | None = None,
    system_prompt: str | None = None,
    tools: Iterable[Any] | None = None,
    threshold: float = THRESHOLD.value,
) -> list[Row]:
    """Make rows from prompts and completions that already exist.

    Args:
        prompts: One prompt per rollout: text, or a list of chat messages. Repeat a prompt to give a task
            several rollouts.
        completions: One completion per prompt: text, or a list of chat messages.
        reward: One verdict per prompt: anything that `verdicts.to_judgment` reads. `None` is not scored.
        references: Private reference answers, kept under `privileged.reference`.
        task_ids: Task of each rollout; by default the hash of its prompt.
        markers: One mapping of marker values per prompt.
        finish_reasons: Why each completion ended, for example `"length"`; `None` is unknown.
        system_prompt: System prompt of every row.
        tools: Tools of every row: anything that `tools.as_tool` reads.
        threshold: Reward from which a rollout passes.

    Returns:
        Rows in the given order, with `index` counted within each task.

    Raises:
        ParameterError: Columns differ in length, or a prompt or completion is neither text nor messages.
    """
    from whileai_kernel.messages import final_text_of, normalise_messages, text_of
    from whileai_kernel.tools import as_tools
    from whileai_kernel.verdicts import to_judgment

    prompt_list = _column("prompts", prompts)
    n = len(prompt_list)
    columns = zip(
        _column("completions", completions, n),
        _column("reward", reward, n),
        _column("references", references, n),
        _column("task_ids", task_ids, n),
        _column("markers", markers, n),
        _column("finish_reasons", finish_reasons, n),
        strict=True,
    )
    tool_dicts = [tool.to_openai() for tool in as_tools(tools or ())]
    seen: dict[str, int] = {}
    out: list[Row] = []
    for position, (prompt, (completion, verdict, reference, task_id, marks, finish)) in enumerate(
        zip(prompt_list, columns, strict=True)
    ):
        head = _as_messages(prompt, "user", position, "prompts")
        tail = _as_messages(completion, "assistant", position, "completions")
        if system_prompt is not None and not (head and head[0].get("role") in ("system", "developer")):
            head = [{"role": "system", "content": system_prompt}, *head]
        messages = normalise_messages([*head, *tail])
        ask = next((text_of(m.get("content")) for m in reversed(head) if m.get("role") == "user"), "")
        judgment, extra_markers = to_judgment(verdict, threshold=threshold)
        checked, given_markers = to_judgment({"reward": None, "markers": marks})
        if checked.evidence:
            problem = next(iter(checked.evidence.values()))
            raise RowError(f"markers are not names with values in [0, 1]: {problem}", row=position, field="markers")
        key = str(task_id) if task_id is not None else content_id("task", prompt)
        index = seen[key] = seen.get(key, -1) + 1
        row: Row = {
            "schema_version": SCHEMA_VERSION,
            "task_id": key,
            "rollout_id": content_id("rollout", key, index, messages),
            "index": index,
            "prompt": prompt if isinstance(prompt, str) else ask,
            "final_text": completion if isinstance(completion, str) else final_text_of(tail),
            **judgment.columns(),
            "markers": {**extra_markers, **given_markers},
            "messages": messages,
            "finish_reason": finish,
            "outcome": "truncated" if finish in LENGTH_REASONS else "completed",
        }
        if system_prompt is not None:
            row["system_prompt"] = system_prompt
        if tool_dicts:
            row["tools"] = tool_dicts
        if reference is not None:
            row["privileged"] = {"reference": reference}
        out.append(ordered(row))
    return out


def _as_messages(value: Any, role: str, position: int, column: str) -> list[Row]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, list | tuple) and all(isinstance(m, Mapping) for m in value):
        return [dict(m) for m in value]
    raise RowError(
        f"{column} must hold text or a list of chat messages, not {type(value).__name__}",
        fix=f"pass a string, or [{{'role': {role!r}, 'content': '...'}}]",
        row=position,
        field=column,
    )
