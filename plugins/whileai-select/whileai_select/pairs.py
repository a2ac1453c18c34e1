"""Preference pairs from graded rollouts: same task, same prefix, matched on length, and a report on what else differs.

Within a task, better and worse rollouts are matched so that as many pairs as possible are formed and their lengths
are as close as possible: an exact matching over all candidate pairs, not a greedy one. What stays different between
chosen and
rejected over the whole set (length, position, style) is tested and named, because a trainer learns it too.

Example:
    >>> rows = [{"task_id": "t", "rollout_id": str(i), "prompt": "q", "final_text": "abc" + "d" * i, "reward": float(i),
    ...          "status": "ok", "markers": {}} for i in range(2)]
    >>> made = build_preference_pairs(rows)
    >>> made.pairs[0]["chosen"], made.pairs[0]["rejected"]
    ([{'role': 'assistant', 'content': 'abcd'}], [{'role': 'assistant', 'content': 'abc'}])
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of
from whileai_kernel.protocols import LedgerEntry
from whileai_select._confounds import Confound, confounds
from whileai_select._eligible import Screen, screen_rows
from whileai_select._ledger import Book
from whileai_select._matching import ROUNDING, match
from whileai_select._rows import read_all, reply_length, task_keys
from whileai_select.defaults import CONFOUND_ALPHA, PAIR_LENGTH_RATIO, PAIR_MARGIN, PAIRS_PER_TASK, SEED

__all__ = ["PairSet", "build_preference_pairs"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class PairSet:
    """Preference pairs and what is known about them.

    Attributes:
        pairs: Dicts with `prompt`, `chosen`, `rejected` (chat messages), `tools`, ids, rewards, margin, lengths,
            `on_policy` (`None` when the policy is unknown).
        ledger: One entry per input row: `chosen`, `rejected`, or why it is in no pair (`tie`, `alone`,
            `no_shared_prefix`, `same_reply`, `length_differs`, `not_matched`, or the reasons of single rows).
        confounds: Tests of what else differs between chosen and rejected.
        counts: Figures of the construction.
        warnings: Sentences on what a trainer would learn by accident.
    """

    pairs: Sequence[dict[str, Any]]
    ledger: Sequence[LedgerEntry]
    confounds: tuple[Confound, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        left = ", ".join(f"{name} {n}" for name, n in self.counts.items() if name not in ("rows", "tasks") and n)
        warn = f" | warning: {'; '.join(self.warnings)}" if self.warnings else ""
        return (
            f"pairs: {len(self.pairs)} from {self.counts['rows']} rows in {self.counts['tasks']} tasks | {left}{warn}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, without the pairs, as plain values."""
        return {
            "pairs": len(self.pairs),
            "counts": dict(self.counts),
            "confounds": [c.to_dict() for c in self.confounds],
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><td>{c.name}</td><td>{c.share:.0%}</td><td>{c.p:.3g}</td><td>{'*' if c.found else ''}</td></tr>"
            for c in self.confounds
        )
        return (
            f"<p>{self}</p><table><tr><th>confound</th><th>chosen has more</th><th>p</th><th></th></tr>{lines}</table>"
        )


def build_preference_pairs(
    rows: Iterable[Row] | str | Path,
    *,
    margin: float = PAIR_MARGIN.value,
    max_length_ratio: float | None = PAIR_LENGTH_RATIO.value,
    per_task: int | None = PAIRS_PER_TASK.value,
    policy: str | None = None,
    truncated: str = "drop",
    failed: str = "drop",
    leaks: str = "drop",
    alpha: float = CONFOUND_ALPHA.value,
    seed: int = SEED.value,
) -> PairSet:
    """Build preference pairs.

    Args:
        rows: Graded rows, a dataset, or the path of a JSONL file.
        margin: Least reward difference. Smaller ones are ties and form no pair.
        max_length_ratio: Most that one side may be longer than the other; `None` turns matching on length off.
        per_task: Most pairs per task, closest lengths first; `None` takes all that can be matched.
        policy: Version (or name) of the policy that will be trained, for the `on_policy` flag.
        truncated: `"drop"` or `"keep"` cut replies. A cut reply kept is a fine way to teach shortness.
        failed: `"drop"` or `"keep"` runs that broke.
        leaks: `"drop"` or `"keep"` rows that quote their private reference.
        alpha: Family-wise error of the confound tests.
        seed: Decides between equally good matchings.

    Returns:
        `PairSet`. Every row is used at most once.

    Raises:
        ParameterError: A number is out of range.
        RowError: A row has no task or an unusable reward.
    """
    if (
        margin <= 0
        or (max_length_ratio is not None and max_length_ratio < 1)
        or (per_task is not None and per_task < 1)
    ):
        raise ParameterError(
            "margin must be above 0, max_length_ratio at least 1, per_task at least 1", fix="leave them out"
        )
    found = read_all(rows)
    keys = task_keys(found)
    book = Book(found, keys)
    out, rewards, _ = screen_rows(book, Screen(failed, truncated, "drop", leaks, "drop"))
    groups: dict[str, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        if book.alive(position):
            groups[key].append(position)
    fate: dict[int, str] = {}
    pairs = []
    for members in groups.values():
        scores = {i: rewards[i] or 0.0 for i in members}
        asks, replies = _asks_and_replies([out[i] for i in members])
        matched = match(
            [scores[i] for i in members],
            [reply_length(out[i]) for i in members],
            asks,
            replies,
            [str(out[i].get("rollout_id", i)) for i in members],
            margin=margin,
            max_ratio=max_length_ratio,
            seed=seed,
        )
        for a, b in matched[:per_task]:
            chosen, rejected = members[a], members[b]
            pair = _pair(out[chosen], out[rejected], scores[chosen], scores[rejected], policy)
            if pair is None:
                continue
            fate[chosen], fate[rejected] = "chosen", "rejected"
            pairs.append(pair)
        _explain(members, scores, asks, replies, out, fate, margin, max_length_ratio)
    tests = confounds(pairs, alpha)
    return PairSet(
        pairs=pairs,
        ledger=[
            LedgerEntry(
                position=i,
                rollout_id=str(row.get("rollout_id", "")),
                task_id=keys[i],
                kept=fate.get(i) in ("chosen", "rejected"),
                reason=book.reasons[i] or fate[i],
            )
            for i, row in enumerate(found)
        ],
        confounds=tests,
        counts={
            "rows": len(found),
            "tasks": len(set(keys)),
            **Counter(book.reasons[i] or fate[i] for i in range(len(found))),
        },
        warnings=tuple(_warnings(pairs, tests)),
    )


def _pair(better: Row, worse: Row, high: float, low: float, policy: str | None) -> dict[str, Any] | None:
    """Return the pair with its shared prefix, or `None` when the two do not share even the first ask."""
    prefix, chosen, rejected = _split(better, worse)
    if not prefix or not chosen or not rejected or chosen == rejected:
        return None
    pair: dict[str, Any] = {
        "task_id": str(better.get("task_id", "")),
        "prompt": prefix,
        "chosen": chosen,
        "rejected": rejected,
        "chosen_id": str(better.get("rollout_id", "")),
        "rejected_id": str(worse.get("rollout_id", "")),
        "chosen_reward": high,
        "rejected_reward": low,
        "margin": high - low,
        "chosen_length": _length(chosen),
        "rejected_length": _length(rejected),
        "chosen_index": better.get("index"),
        "rejected_index": worse.get("index"),
        "on_policy": _on_policy(better, worse, policy),
    }
    if better.get("tools"):
        pair["tools"] = better["tools"]
    return pair


def _messages(row: Row) -> list[dict[str, Any]]:
    if row.get("messages"):
        return [dict(m) for m in row["messages"]]
    head = [{"role": "system", "content": row["system_prompt"]}] if row.get("system_prompt") else []
    prompt = row.get("prompt")
    ask = [dict(m) for m in prompt] if isinstance(prompt, list) else [{"role": "user", "content": prompt or ""}]
    return [*head, *ask, {"role": "assistant", "content": row.get("final_text") or ""}]


def _split(better: Row, worse: Row) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the shared prefix and the two continuations; both begin with an assistant message."""
    a, b = _messages(better), _messages(worse)
    same = 0
    while same < min(len(a), len(b)) and _comparable(a[same]) == _comparable(b[same]):
        same += 1
    while same > 0 and not (
        same < len(a) and same < len(b) and a[same].get("role") == "assistant" and b[same].get("role") == "assistant"
    ):
        same -= 1
    if not any(m.get("role") == "user" for m in a[:same]):
        return [], [], []
    return a[:same], a[same:], b[same:]


def _asks_and_replies(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return what stands before the first assistant message of each row, and what stands from there on, as text.

    Two rows pair only when the first is the same and the second is not.
    """
    asks, replies = [], []
    for row in rows:
        parts = [(m.get("role"), _comparable(m)) for m in _messages(row)] if len(rows) > 1 else []
        first = next((i for i, (role, _) in enumerate(parts) if role == "assistant"), len(parts))
        asks.append(repr(parts[:first]))
        replies.append(repr(parts[first:]))
    return asks, replies


def _comparable(message: Mapping[str, Any]) -> Any:
    calls = [
        ((c.get("function") or {}).get("name"), (c.get("function") or {}).get("arguments"))
        for c in message.get("tool_calls") or ()
    ]
    return message.get("role"), text_of(message.get("content")), calls


def _length(messages: Sequence[Mapping[str, Any]]) -> int:
    return reply_length({"messages": list(messages)})


def _on_policy(better: Row, worse: Row, policy: str | None) -> bool | None:
    names = [
        {str(v) for v in (p.get("version"), p.get("name"), p.get("model")) if v}
        for p in (better.get("policy") or {}, worse.get("policy") or {})
    ]
    if not all(names):
        return None
    return names[0] == names[1] if policy is None else all(policy in n for n in names)


def _explain(
    members: Sequence[int],
    scores: Mapping[int, float],
    asks: Sequence[str],
    replies: Sequence[str],
    out: Sequence[Row],
    fate: dict[int, str],
    margin: float,
    max_ratio: float | None,
) -> None:
    """Give every row of a task that is in no pair its one reason."""
    bar = math.inf if max_ratio is None else math.log(max_ratio) + 1e-12
    lengths = [math.log1p(reply_length(out[i])) for i in members]
    for a, i in enumerate(members):
        if i in fate:
            continue
        partners = [b for b, j in enumerate(members) if b != a and abs(scores[i] - scores[j]) >= margin - ROUNDING]
        if not partners:
            fate[i] = "tie" if len(members) > 1 else "alone"
            continue
        partners = [b for b in partners if asks[b] == asks[a]]
        if not partners:
            fate[i] = "no_shared_prefix"
            continue
        partners = [b for b in partners if replies[b] != replies[a]]
        if not partners:
            fate[i] = "same_reply"
            continue
        fate[i] = "not_matched" if any(abs(lengths[b] - lengths[a]) <= bar for b in partners) else "length_differs"


def _warnings(pairs: Sequence[Mapping[str, Any]], tests: Sequence[Confound]) -> Iterable[str]:
    for test in tests:
        if test.found:
            yield f"{test.name}: chosen has more in {test.share:.0%} of {test.n} pairs that differ (p {test.p:.2g})"
    off = sum(p["on_policy"] is False for p in pairs)
    if off:
        yield f"policy: {off} of {len(pairs)} pairs were not sampled from the policy to be trained"
