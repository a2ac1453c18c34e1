"""Model calls of a trace become conversations: a call whose history another call continues is part of that one.

Every tool records each model call with the whole history it was sent, so the last call of an agent holds the full
conversation, and a trace with sub-agents holds several. `maximal` keeps the calls that no later call continues.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import normalise_messages, parse_arguments
from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score

__all__ = ["ModelCall", "decoded", "emit", "maximal", "unflatten"]


@dataclass(slots=True)
class ModelCall:
    """One recorded call of a model: what it was sent and what it answered.

    Attributes:
        where: Place in the file.
        group: Trace that it belongs to; calls of different traces never continue each other.
        order: Sorts the calls of a trace in time.
        history: Messages sent, in any shape that the kernel normalises.
        replies: Messages answered, one per choice; each makes a conversation.
        columns: Other keys of the row (`tools`, `policy`, `usage`, `finish_reason`, ...).
        scores: Recorded scores.
        rest: What was not understood.
    """

    where: str
    group: str
    order: str
    history: list[Mapping[str, Any]]
    replies: list[Mapping[str, Any]]
    columns: dict[str, Any] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)
    rest: dict[str, Any] = field(default_factory=dict)


def decoded(value: Any) -> Any:
    """Return JSON text decoded, and anything else (text that is no JSON included) as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{", '"'):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _signature(messages: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]] | None:
    """Return what two records of the same message share, whatever shape they were recorded in."""
    try:
        chat = normalise_messages(messages)
    except RowError:
        return None
    out: list[tuple[Any, ...]] = []
    for m in chat:
        if m["role"] in ("system", "developer"):
            continue  # recorded with the first call by some tools, and with every call or apart by others
        calls = tuple(
            (c["function"].get("name"), json.dumps(parse_arguments(c["function"].get("arguments")), sort_keys=True))
            for c in m.get("tool_calls") or ()
        )
        out.append((m["role"], (m.get("content") or "").strip(), calls))
    return out


def maximal(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """Return the calls that no later call of their trace continues, in order.

    A call continues another when its history begins with the other's history and answer.
    """
    groups: dict[str, list[ModelCall]] = {}
    for call in calls:
        groups.setdefault(call.group, []).append(call)
    out: list[ModelCall] = []
    for members in groups.values():
        members.sort(key=lambda c: c.order)
        sent = [_signature(c.history) for c in members]
        for n, call in enumerate(members):
            whole = [_signature([*call.history, reply]) for reply in call.replies[:1]]
            full = whole[0] if whole else sent[n]
            if full is None or not any(
                s is not None and len(s) >= len(full) and s[: len(full)] == full for s in sent[n + 1 :]
            ):
                out.append(call)
    return out


def emit(calls: Iterable[ModelCall], build: RowBuilder) -> Iterator[Row]:
    """Yield one row per answer of each call that no other continues."""
    for call in maximal(calls):
        columns = dict(call.columns)
        finishes = columns.pop("finish_reasons", [])
        for n, reply in enumerate(call.replies or [None]):  # type: ignore[list-item]
            finish = finishes[n] if n < len(finishes) else None
            row = build.row(
                call.where,
                [*call.history, *([reply] if reply is not None else [])],
                scores=call.scores,
                rest=call.rest,
                finish_reason=finish if isinstance(finish, str) else None,
                **columns,
            )
            if row is not None:
                row["lineage"]["trace"] = call.group
                yield row


def unflatten(attributes: Mapping[str, Any], prefix: str) -> Any:
    """Return the nested value of flattened keys: `p.0.role`, `p.1.role` becomes a list of objects.

    Args:
        attributes: Attributes of a span.
        prefix: Common beginning of the keys, without the dot behind it.

    Returns:
        The value, or `None` when no key begins so. A plain value under `prefix` itself is returned decoded.
    """
    if prefix in attributes:
        return decoded(attributes[prefix])
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(f"{prefix}."):
            continue
        parts = key[len(prefix) + 1 :].split(".")
        node = tree
        for part in parts[:-1]:
            following = node.setdefault(part, {})
            if not isinstance(following, dict):
                following = node[part] = {"": following}
            node = following
        node[parts[-1]] = value
    return _listed(tree) if tree else None


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(k.isdigit() for k in node):
        return [_listed(node[k]) for k in sorted(node, key=int)]
    return {k: _listed(v) for k, v in node.items()}
