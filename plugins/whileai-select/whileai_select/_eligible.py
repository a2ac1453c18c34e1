"""Which single rows can be used at all: failed, truncated, not scored, leaked, empty, copied.

Shared by the selectors. One row gets at most one reason, in this order: failed, truncated, not_scored, leak,
junk, duplicate; the cause comes before its effect (a failed run is usually also not scored).

Example:
    >>> from whileai_select._ledger import Book
    >>> book = Book([{"outcome": "failed", "reward": None}], ["t"])
    >>> _ = screen_rows(book, Screen())
    >>> book.reasons
    ['failed']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_select._leaks import LeakTest
from whileai_select._ledger import Book
from whileai_select._rows import completeness, copy_key, is_junk, reward_of
from whileai_select.defaults import PENALTY_REWARD

Row = Mapping[str, Any]

SCREEN_CHOICES: dict[str, tuple[str, ...]] = {
    "failed": ("drop", "keep", "penalise"),
    "truncated": ("drop", "keep", "penalise"),
    "unscored": ("drop", "keep"),
    "leaks": ("drop", "keep"),
    "junk": ("drop", "keep"),
    "duplicates": ("keep", "drop"),
    "partial": ("keep", "drop"),
}


@dataclass(frozen=True)
class Screen:
    """What to do with each kind of unusable row; see `select_rl` for the choices."""

    failed: str = "drop"
    truncated: str = "drop"
    unscored: str = "drop"
    leaks: str = "drop"
    junk: str = "drop"
    duplicates: str = "keep"
    penalty: float = PENALTY_REWARD.value

    def __post_init__(self) -> None:
        for name in ("failed", "truncated", "unscored", "leaks", "junk", "duplicates"):
            value = getattr(self, name)
            if value not in SCREEN_CHOICES[name]:
                unknown_name(f"choice for {name}", value, SCREEN_CHOICES[name])
        if not 0.0 <= self.penalty <= 1.0:
            raise ParameterError(f"penalty must lie in [0, 1], not {self.penalty!r}", fix="pass penalty=0.0")


def screen_rows(book: Book, screen: Screen) -> tuple[list[Row], list[float | None], list[str]]:
    """Drop unusable rows in the book and return rows (penalties applied), rewards and notes.

    Raises:
        RowError: A reward is neither `None` nor a number in [0, 1].
    """
    rows: list[Row] = list(book.rows)
    rewards: list[float | None] = []
    leak_test = LeakTest() if screen.leaks == "drop" else None
    seen: set[tuple[str, str]] = set()
    unknown = 0
    for position, row in enumerate(rows):
        reward = reward_of(row, position)
        state = completeness(row)
        unknown += state == "unknown"
        choice = {"failed": screen.failed, "truncated": screen.truncated}.get(state, "keep")
        if choice == "drop":
            book.drop(position, state)
        elif choice == "penalise":
            rows[position], reward = _penalised(row, state, screen.penalty), screen.penalty
        rewards.append(reward)
        if reward is None and screen.unscored == "drop":
            book.drop(position, "not_scored")
        if leak_test is not None and leak_test(row):
            book.drop(position, "leak")
        if screen.junk == "drop" and is_junk(row):
            book.drop(position, "junk")
        if screen.duplicates == "drop" and book.alive(position):
            key = (book.keys[position], copy_key(row))
            if key in seen:
                book.drop(position, "duplicate")
            seen.add(key)
    return rows, rewards, _notes(book, unknown)


def _penalised(row: Row, state: str, penalty: float) -> dict[str, Any]:
    """Return the row with the penalty as its verdict and the old verdict in `judgments`."""
    keys = ("reward", "status", "reason", "scorer", "evidence", "threshold")
    old = {k: row[k] for k in keys if k in row}
    return {
        **row,
        "reward": penalty,
        "status": "ok",
        "reason": f"{state}: penalised by selection",
        "scorer": {"id": f"select/{state}_penalty", "version": "1", "kind": "rule", "params": {"reward": penalty}},
        "judgments": [*(row.get("judgments") or []), old],
    }


def _notes(book: Book, unknown: int) -> list[str]:
    notes = []
    if unknown:
        notes.append(
            f"{unknown} of {len(book.rows)} rows do not say why the reply ended (finish_reason); "
            "they are taken as complete"
        )
    cut = sum(reason == "truncated" for reason in book.reasons)
    if cut and cut * 2 >= len(book.rows):
        notes.append(f"{cut} of {len(book.rows)} rows were cut at the length limit: raise it before reading the rates")
    ids = [str(row.get("rollout_id")) for row in book.rows if row.get("rollout_id")]
    if len(ids) != len(set(ids)):
        notes.append(f"{len(ids) - len(set(ids))} rows repeat a rollout_id: was a file read twice?")
    return notes
