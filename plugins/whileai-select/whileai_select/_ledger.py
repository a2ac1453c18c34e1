"""The ledger of a selection: one fate per row, and the sums that must hold.

Example:
    >>> book = Book([{"rollout_id": "a"}, {"rollout_id": "b"}], ["t", "t"])
    >>> book.drop(1, "truncated")
    >>> book.dropped()
    {'truncated': 1}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.protocols import LedgerEntry


class Book:
    """Fates of the rows of one selection, by position; the first reason given to a row stands.

    Args:
        rows: The input rows.
        keys: The task of each row.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
        self.rows, self.keys = rows, keys
        self.reasons: list[str | None] = [None] * len(rows)

    def drop(self, position: int, reason: str) -> None:
        """Drop a row for a reason; a row that is dropped already keeps its first reason."""
        if self.reasons[position] is None:
            self.reasons[position] = reason

    def alive(self, position: int) -> bool:
        """Return whether the row is still kept."""
        return self.reasons[position] is None

    def kept(self) -> list[int]:
        """Return the positions of the kept rows, ascending."""
        return [i for i, reason in enumerate(self.reasons) if reason is None]

    def dropped(self) -> dict[str, int]:
        """Return how many rows each reason dropped, most frequent first."""
        counts = Counter(reason for reason in self.reasons if reason is not None)
        return dict(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0])))

    def entries(self) -> list[LedgerEntry]:
        """Return one ledger entry per input row, in input order."""
        return [
            LedgerEntry(
                rollout_id=str(row.get("rollout_id", "")),
                task_id=key,
                position=i,
                kept=reason is None,
                reason="kept" if reason is None else reason,
            )
            for i, (row, key, reason) in enumerate(zip(self.rows, self.keys, self.reasons, strict=True))
        ]
