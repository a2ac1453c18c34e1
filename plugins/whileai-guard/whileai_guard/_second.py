"""The second opinion of a scan: does a held-out verifier or judge pay for the same feature?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_guard._design import Design
from whileai_guard._permute import Association, associate, slope_intervals
from whileai_kernel.errors import ParameterError

Row = Mapping[str, Any]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Gold = str | Callable[[Row], Any] | Sequence[float | None]


@dataclass(frozen=True)
class Second:
    """A second opinion on the rows of a scan.

    Attributes:
        rows: Rows of the scan that it covers.
        gold: Its rewards of these.
        group: Tasks of these, renumbered.
        contrast: Association of the features with reward minus second opinion.
    """

    rows: I64
    gold: F64
    group: I64
    contrast: Association

    def beyond(self, shown: F64, columns: Sequence[int], slopes: F64, alpha: float) -> tuple[list[bool | None], F64]:
        """Return for each shown feature whether the reward pays for it beyond the second opinion, and what that pays.

        `True` when the difference is beyond its own floor, `False` when the second opinion pays for the feature too
        (its interval leaves out 0 on the same side), `None` when neither can be said.

        Args:
            shown: Rows of the scan x shown features.
            columns: Column of each shown feature.
            slopes: What the reward pays for each.
            alpha: Level of the floor and, as 1 - alpha, of the interval.
        """
        effect, low, high = slope_intervals(shown[self.rows], self.gold, self.group, 1 - alpha)
        out: list[bool | None] = []
        for at, (column, slope) in enumerate(zip(columns, slopes.tolist(), strict=True)):
            more = self.contrast.adjusted[column] <= alpha and self.contrast.slope[column] * slope > 0
            agrees = low[at] > 0 if slope > 0 else high[at] < 0
            out.append(True if more else False if agrees else None)
        return out, effect


def second_opinion(
    gold: Gold,
    rows: Sequence[Row],
    usable: I64,
    y: F64,
    group: I64,
    design: Design,
    least: int,
    permutations: int,
    seed: int,
) -> Second:
    """Return the second opinion on the rows of a scan.

    Args:
        gold: Scorer id, function, or numbers.
        rows: All rows that were given.
        usable: Places of the scanned rows among them.
        y: Rewards of the scanned rows.
        group: Tasks of the scanned rows.
        design: Features of the scanned rows.
        least: Tasks with two covered rows that it needs.
        permutations: Permutations.
        seed: Their seed.

    Raises:
        ParameterError: It does not fit the rows, or covers too few of them.
    """
    second = _values(gold, rows)[usable]
    have = np.flatnonzero(np.isfinite(second))
    covered = int((np.bincount(group[have]) >= 2).sum()) if len(have) else 0
    if covered < least:
        raise ParameterError(
            f"the second opinion covers {covered} tasks with different rewards, and {least} are needed",
            why=f"it has a value on {len(have)} of the {len(second)} rows that count, and a task needs two",
            fix="score more rows with it, or leave gold out",
        )
    _, part = np.unique(group[have], return_inverse=True)
    part = part.astype(np.int64)
    contrast = associate(
        design.matrix[have],
        y[have] - second[have],
        part,
        up=design.up,
        down=design.down,
        permutations=permutations,
        seed=seed,
    )
    return Second(have, second[have], part, contrast)


def _values(gold: Gold, rows: Sequence[Row]) -> F64:
    values: list[Any]
    if isinstance(gold, str):
        values = [
            next(
                (
                    j.get("reward")
                    for j in reversed(row.get("judgments") or ())
                    if (j.get("scorer") or {}).get("id") == gold
                ),
                None,
            )
            for row in rows
        ]
        if all(v is None for v in values):
            known = sorted({str((j.get("scorer") or {}).get("id")) for r in rows for j in r.get("judgments") or ()})
            raise ParameterError(
                f"no row has a judgment by {gold!r}", why=f"scorers found: {', '.join(known) or 'none'}"
            )
    elif callable(gold):
        values = [gold(row) for row in rows]
        values = [v.get("reward", v.get("value")) if isinstance(v, Mapping) else v for v in values]
    else:
        values = list(gold)
        if len(values) != len(rows):
            raise ParameterError(f"gold has {len(values)} values for {len(rows)} rows", fix="pass one per row, or None")
    return np.array([np.nan if v is None else float(v) for v in values], np.float64)
