"""Selection for supervised fine-tuning: rejection sampling within each task.

Keeps the best completions of each task among those that pass, one per behaviour, and says in how many tasks there
was anything to choose. `take="random"` is the control arm: the same number of rows per task, drawn without looking
at the reward, so that what selection adds can be measured.

Example:
    >>> rows = [{"task_id": "t", "rollout_id": str(i), "prompt": "q", "final_text": "a" * (i + 1), "reward": i > 0,
    ...          "status": "ok", "markers": {}} for i in range(4)]
    >>> rows = [{**r, "reward": float(r["reward"])} for r in rows]
    >>> [e.reason for e in select_sft(rows).ledger]
    ['below_threshold', 'not_best', 'kept', 'not_best']
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.protocols import Selected
from whileai_kernel.rows import passed
from whileai_select._eligible import Screen, screen_rows
from whileai_select._ledger import Book
from whileai_select._report import calibration, summary_line
from whileai_select._rows import draw, read_all, reply_length, signature, task_keys
from whileai_select.defaults import SEED, SFT_K

__all__ = ["select_sft"]

Row = Mapping[str, Any]
TAKES = ("best", "random")
TIES = ("median", "shortest", "longest", "random")


def select_sft(
    rows: Iterable[Row] | str | Path,
    *,
    k: int = SFT_K.value,
    take: str = "best",
    tie: str = "median",
    min_reward: float | None = None,
    distinct: bool = True,
    truncated: str = "drop",
    failed: str = "drop",
    leaks: str = "drop",
    junk: str = "drop",
    size: int | None = None,
    seed: int = SEED.value,
) -> Selected:
    """Keep the best completions of each task.

    Args:
        rows: Rows, a dataset, or the path of a JSONL file.
        k: Most completions per task.
        take: `"best"` by reward, or `"random"`: the control arm, drawn from every usable row whatever its reward.
        tie: Among equal rewards: `"median"` prefers the reply whose length is nearest the task's median length (so
            that selection does not teach length), `"shortest"`, `"longest"`, or `"random"`.
        min_reward: Lowest reward that may be kept; by default a row must pass its own threshold. Ignored by
            `take="random"`.
        distinct: Keep at most one row per behaviour (same tool calls with same arguments, else same text).
        truncated: `"drop"` or `"keep"` replies that were cut, by finish reason.
        failed: `"drop"` or `"keep"` runs that broke.
        leaks: `"drop"` or `"keep"` rows that quote their private reference.
        junk: `"drop"` or `"keep"` rows without visible text or tool call.
        size: Most rows to keep, whole tasks, drawn by a hash of the task. `None` keeps all.
        seed: Seed of every draw.

    Returns:
        `Selected`: kept rows in input order, one ledger entry per input row, and the report. `no_choice` counts
        tasks in which all usable rows had one reward, so that the reward chose nothing.

    Raises:
        ParameterError: An argument has an unknown or impossible value.
        RowError: A row has no task, or a reward that is neither `None` nor a number in [0, 1].
    """
    if take not in TAKES:
        unknown_name("take", take, TAKES)
    if tie not in TIES:
        unknown_name("tie", tie, TIES)
    for noun, value in (("truncated", truncated), ("failed", failed)):
        if value not in ("drop", "keep"):
            unknown_name(f"choice for {noun}", value, ("drop", "keep"))
    if k < 1:
        raise ParameterError(f"k must be at least 1, not {k}", fix="pass k=1")
    if size is not None and size < 0:
        raise ParameterError(f"size must be None or at least 0, not {size}", fix="pass size=1000")
    found = read_all(rows)
    keys = task_keys(found)
    book = Book(found, keys)
    out, rewards, notes = screen_rows(book, Screen(failed, truncated, "drop", leaks, junk))
    groups: dict[str, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        groups[key].append(position)
    no_choice = 0
    for key, members in groups.items():
        usable = [i for i in members if book.alive(i)]
        no_choice += bool(usable) and len({rewards[i] for i in usable}) == 1
        if take == "best":
            usable = _above(usable, out, rewards, min_reward, book)
        ranked = _ranked(usable, out, rewards, take, tie, seed, key)
        _keep_first(ranked, out, k, distinct, "not_best" if take == "best" else "not_drawn", book)
    if size is not None:
        _cut(book, groups, size, seed)
    kept = book.kept()
    report: dict[str, Any] = {
        "mode": "sft",
        "rows": len(found),
        "kept": len(kept),
        "tasks": len(groups),
        "kept_tasks": len({keys[i] for i in kept}),
        "dropped": book.dropped(),
        "take": take,
        "k": k,
        "tie": tie,
        "no_choice": no_choice,
        "mean_length": _mean([reply_length(r) for r in out]),
        "mean_length_kept": _mean([reply_length(out[i]) for i in kept]),
        "notes": notes,
        "calibration": calibration(found, kept, take, "reward"),
    }
    report["summary"] = summary_line("sft", report)
    return Selected(rows=[out[i] for i in kept], ledger=book.entries(), report=report)


def _above(
    usable: Sequence[int],
    out: Sequence[Row],
    rewards: Sequence[float | None],
    min_reward: float | None,
    book: Book,
) -> list[int]:
    good = []
    for i in usable:
        reward = rewards[i]
        enough = bool(passed(out[i])) if min_reward is None else reward is not None and reward >= min_reward
        if enough:
            good.append(i)
        else:
            book.drop(i, "below_threshold")
    return good


def _ranked(
    usable: Sequence[int],
    out: Sequence[Row],
    rewards: Sequence[float | None],
    take: str,
    tie: str,
    seed: int,
    key: str,
) -> list[int]:
    """Return positions, best first; the last resort is a hash of the rollout, never the input order."""
    if not usable:
        return []
    lengths = {i: reply_length(out[i]) for i in usable}
    middle = median_low(lengths.values())

    def rank(i: int) -> tuple[float, float, float, int]:
        chance = draw(seed, key, str(out[i].get("rollout_id", i)))
        if take == "random":
            return (0.0, 0.0, chance, i)
        by_length = {
            "median": abs(lengths[i] - middle),
            "shortest": lengths[i],
            "longest": -lengths[i],
            "random": 0,
        }[tie]
        return (-(rewards[i] or 0.0), float(by_length), chance, i)

    return sorted(usable, key=rank)


def _keep_first(ranked: Sequence[int], out: Sequence[Row], k: int, distinct: bool, reason: str, book: Book) -> None:
    taken = 0
    seen: set[str] = set()
    for i in ranked:
        mark = signature(out[i]) if distinct else ""
        if distinct and mark in seen and taken < k:
            book.drop(i, "same_behaviour")
        elif taken >= k:
            book.drop(i, reason)
        else:
            seen.add(mark)
            taken += 1


def _cut(book: Book, groups: Mapping[str, list[int]], size: int, seed: int) -> None:
    total, full = 0, False
    for key in sorted(groups, key=lambda name: draw(seed, "size", name)):
        members = [i for i in groups[key] if book.alive(i)]
        full = full or total + len(members) > size
        if full:
            for i in members:
                book.drop(i, "over_target")
        else:
            total += len(members)


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None
