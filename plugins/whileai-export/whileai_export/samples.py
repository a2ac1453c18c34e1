"""Rows become samples: which messages, which of them are trained, what is prompt and what is completion.

A sample is still in the kernel's message model and knows no target. Kinds: `sft` (one conversation, or with
`unroll` one assistant turn with what it saw), `preference` (two replies to one history), `prompts` (what the agent
is asked, once per task), `rewarded` (a conversation with its reward and the figures of its group), `eval` (tasks to
run again, with what was measured).

Example:
    >>> chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
    ...         {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]
    >>> [(len(s.messages), s.trained) for s in conversation_samples({}, chat, train="all", unroll=True)]
    [(2, (1,)), (4, (3,))]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.messages import trained_turns
from whileai_kernel.rows import group_by_task, passed

__all__ = ["KINDS", "Sample", "conversation_samples", "group_figures", "pair_samples", "prompt_of", "rank_pair"]

KINDS = ("sft", "preference", "prompts", "rewarded", "eval")


@dataclass(frozen=True, slots=True)
class Sample:
    """One record to be, in the kernel's message model.

    Attributes:
        row: The row that it came from (for pairs the chosen one).
        messages: The conversation; for pairs the shared history.
        trained: Positions in `messages` that the loss covers.
        start: Position where the completion begins, when the target splits prompt and completion; `None` when
            the conversation is one piece.
        chosen: Better continuation of a pair.
        rejected: Worse continuation of a pair.
        other: The row of the worse continuation.
        figures: Figures of the group or of the task.
    """

    row: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    trained: tuple[int, ...] = ()
    start: int | None = None
    chosen: Sequence[Mapping[str, Any]] = ()
    rejected: Sequence[Mapping[str, Any]] = ()
    other: Mapping[str, Any] | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


def prompt_of(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages before the first reply: what an on-policy trainer starts from."""
    end = next((i for i, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
    return list(messages[:end])


def conversation_samples(
    row: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    *,
    train: Any = "all",
    unroll: bool = False,
    figures: Mapping[str, Any] | None = None,
) -> list[Sample]:
    """Return the samples of one conversation; none when nothing of it is to be trained.

    Args:
        row: The row.
        messages: Its conversation.
        train: As `whileai_kernel.messages.trained_turns`.
        unroll: One sample per trained turn, each with the messages that the turn saw.
        figures: Figures of the row's group.

    Raises:
        ParameterError: `train` is unknown or names a message that is not the assistant's.
    """
    trained = tuple(trained_turns(messages, train))
    if not trained:
        return []
    if unroll:
        return [Sample(row, list(messages[: t + 1]), (t,), t, figures=figures or {}) for t in trained]
    kept = messages[: trained[-1] + 1] if train != "all" else messages
    return [Sample(row, list(kept), trained, _start(kept, trained), figures=figures or {})]


def _start(messages: Sequence[Mapping[str, Any]], trained: Sequence[int]) -> int | None:
    """Return where a completion begins whose assistant turns are exactly the trained ones, if there is such a place."""
    turns = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    return trained[0] if list(trained) == turns[-len(trained) :] else None


def group_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the figures of each task's group, over all its rows before any is left out.

    `size` counts rollouts, `scored` those with a reward, `mean` and `std` are over the scored ones. `std` divides by
    n - 1, as torch.std does and so the trainers' advantages; it is `None` below two scored rollouts.
    """
    out: dict[str, dict[str, Any]] = {}
    for task, members in group_by_task(rows).items():
        rewards = [float(r["reward"]) for r in members if r.get("reward") is not None]
        out[task] = {
            "id": task,
            "size": len(members),
            "scored": len(rewards),
            "mean": math.fsum(rewards) / len(rewards) if rewards else None,
            "std": _std(rewards) if len(rewards) > 1 else None,
        }
    return out


def _std(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Say whether two messages are the same turn; call ids are names and do not count."""

    def bare(m: Mapping[str, Any]) -> Any:
        calls = [(c["function"].get("name"), c["function"].get("arguments")) for c in m.get("tool_calls") or ()]
        return m["role"], m.get("content"), m.get("reasoning_content"), calls

    return bool(bare(a) == bare(b))


def pair_samples(
    chosen: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]],
    rejected: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]],
    *,
    pairs: str = "turn",
) -> Sample | str:
    """Return the pair of two conversations of one task, or the reason why they make none.

    A preference trainer covers every token of both continuations, tool results included. So by default the pair is
    cut at the first turn in which the two differ: the history is shared, and each side is one assistant turn.

    Args:
        chosen: Row and conversation of the better rollout.
        rejected: Row and conversation of the worse one.
        pairs: `turn` as above, or `whole`: everything after the shared history.
    """
    good, bad = chosen[1], rejected[1]
    at = 0
    while at < min(len(good), len(bad)) and _same(good[at], bad[at]):
        at += 1
    if at >= len(good) or at >= len(bad):
        return "the two replies do not differ"
    if good[at]["role"] != "assistant" or bad[at]["role"] != "assistant":
        return "the histories differ before the replies"
    end = at + 1 if pairs == "turn" else None
    return Sample(
        chosen[0], list(good[:at]), start=at, chosen=list(good[at:end]), rejected=list(bad[at:end]), other=rejected[0]
    )


def rank_pair(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the best and the worst scored row of a task, or `None` when no two rewards differ.

    The best must pass where any row does; of equals the first wins, so the choice does not depend on anything else.
    """
    scored = [r for r in rows if r.get("reward") is not None]
    if not scored:
        return None
    best = max(scored, key=lambda r: (bool(passed(r)), r["reward"]))
    worst = min(scored, key=lambda r: (bool(passed(r)), r["reward"]))
    return (best, worst) if best["reward"] != worst["reward"] else None


def iter_pairs(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Mapping[str, Any], Mapping[str, Any]] | None]]:
    """Yield each task with the pair that its rows make."""
    for task, members in group_by_task(rows).items():
        yield task, rank_pair(members)
