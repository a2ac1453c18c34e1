"""From one round of training to the next: order tasks, retire solved ones, nest subsets, see where data saturates.

Example:
    >>> rows = [{"task_id": f"t{t}", "prompt": "q", "final_text": "a", "reward": float(i < t), "status": "ok"}
    ...         for t in range(5) for i in range(4)]
    >>> [stage.tasks for stage in curriculum(rows, stages=2, drop_dead=True).stages]
    [('t3', 't2'), ('t1',)]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Selected
from whileai_kernel.rows import passed
from whileai_select._ledger import Book
from whileai_select._rates import fit_prior, wilson
from whileai_select._report import summary_line
from whileai_select._rows import draw, read_all, task_keys
from whileai_select.defaults import CONFIDENCE, CURRICULUM_STAGES, SEED, SOLVED_RATE, TRIM_SHARES
from whileai_select.rl import select_rl

__all__ = ["Curriculum", "Saturation", "Stage", "curriculum", "fit_saturation", "next_round", "retire_solved", "trim"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Stage:
    """One stage: its tasks, easiest first, and the range of their shrunken rates."""

    tasks: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Curriculum:
    """Tasks from easy to hard.

    Attributes:
        stages: The stages, easiest first.
        dead: Tasks that are always passed or never passed, when they were left out.
    """

    stages: tuple[Stage, ...]
    dead: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = ", ".join(f"{len(s.tasks)} tasks at {s.high:.2f}..{s.low:.2f}" for s in self.stages)
        return f"curriculum: {parts} | left out {len(self.dead)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the stages as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


def _tally(rows: Sequence[Row], keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    tally: dict[str, tuple[int, int]] = {}
    for row, key in zip(rows, keys, strict=True):
        good = passed(row)
        c, n = tally.get(key, (0, 0))
        tally[key] = (c + bool(good), n + (good is not None))
    return tally


def curriculum(
    rows: Iterable[Row] | str | Path,
    *,
    stages: int = CURRICULUM_STAGES.value,
    drop_dead: bool = False,
    seed: int = SEED.value,
) -> Curriculum:
    """Order tasks from easy to hard by their shrunken pass rate, in stages of equal size.

    Args:
        rows: Graded rows.
        stages: Number of stages.
        drop_dead: Leave out tasks that are always or never passed.
        seed: Order among equal rates.

    Raises:
        ParameterError: `stages` is below 1.
    """
    if stages < 1:
        raise ParameterError(f"stages must be at least 1, not {stages}", fix="pass stages=3")
    found = read_all(rows)
    tally = _tally(found, task_keys(found))
    prior = fit_prior(Counter((float(c), float(n)) for c, n in tally.values()))
    dead = tuple(k for k, (c, n) in tally.items() if not n or c in (0, n)) if drop_dead else ()
    rate = {k: prior.mean(c, n) for k, (c, n) in tally.items() if k not in set(dead)}
    order = sorted(rate, key=lambda k: (-rate[k], draw(seed, "curriculum", k)))
    size = math.ceil(len(order) / stages) if order else 1
    cut = [tuple(order[i : i + size]) for i in range(0, len(order), size)]
    return Curriculum(tuple(Stage(part, min(rate[k] for k in part), max(rate[k] for k in part)) for part in cut), dead)


def retire_solved(
    rows: Iterable[Row] | str | Path,
    *,
    rate: float = SOLVED_RATE.value,
    confidence: float = CONFIDENCE.value,
) -> Selected:
    """Drop tasks that are solved for sure: the lower end of the rate's Wilson interval is at least `rate`.

    With few rollouts nothing is sure: 4 of 4 is compatible with a rate of 0.51.

    Args:
        rows: Graded rows.
        rate: What counts as solved.
        confidence: Level of the interval.
    """
    found = read_all(rows)
    keys = task_keys(found)
    tally = _tally(found, keys)
    book = Book(found, keys)
    solved = {k for k, (c, n) in tally.items() if n and wilson(c, n, confidence)[0] >= rate}
    for position, key in enumerate(keys):
        if key in solved:
            book.drop(position, "solved")
    return _selected("retire_solved", book, tally)


def next_round(
    rows: Iterable[Row] | str | Path,
    *,
    size: int | None = None,
    rate: float = SOLVED_RATE.value,
    confidence: float = CONFIDENCE.value,
    seed: int = SEED.value,
    **band: Any,
) -> Selected:
    """Choose the rows (and so the tasks) of the next round: solved tasks out, then the RL selection on the rest.

    Args:
        rows: Graded rows of the last round.
        size: Most rows to keep.
        rate: What counts as solved.
        confidence: Level of the interval.
        seed: Seed of the draw.
        **band: Further arguments of `select_rl`.
    """
    found = read_all(rows)
    keys = task_keys(found)
    first = retire_solved(found, rate=rate, confidence=confidence)
    open_rows = [i for i, entry in enumerate(first.ledger) if entry.kept]
    second = select_rl([found[i] for i in open_rows], size=size, seed=seed, **band)
    book = Book(found, keys)
    for entry in first.ledger:
        if not entry.kept:
            book.drop(entry.position, entry.reason)
    for place, entry in zip(open_rows, second.ledger, strict=True):
        if not entry.kept:
            book.drop(place, entry.reason)
    made = _selected("next_round", book, _tally(found, keys))
    return Selected(rows=second.rows, ledger=made.ledger, report={**second.report, **made.report})


def _selected(mode: str, book: Book, tally: Mapping[str, tuple[int, int]]) -> Selected:
    kept = book.kept()
    report: dict[str, Any] = {
        "mode": mode,
        "rows": len(book.rows),
        "kept": len(kept),
        "tasks": len(tally),
        "kept_tasks": len({book.keys[i] for i in kept}),
        "dropped": book.dropped(),
    }
    report["summary"] = summary_line(mode, report)
    return Selected(rows=[book.rows[i] for i in kept], ledger=book.entries(), report=report)


def trim(
    rows: Iterable[Row] | str | Path,
    *,
    shares: Sequence[float] = TRIM_SHARES.value,
    seed: int = SEED.value,
) -> dict[float, list[Row]]:
    """Return nested subsets of whole tasks, one per share: each is contained in the next larger one.

    Train on each, measure, and hand sizes and scores to `fit_saturation`.

    Args:
        rows: Rows.
        shares: Shares of the tasks, each in (0, 1].
        seed: Seed of the order of the tasks.

    Raises:
        ParameterError: A share is out of range.
    """
    if any(not 0.0 < s <= 1.0 for s in shares):
        raise ParameterError(f"shares must lie in (0, 1], not {list(shares)!r}", fix="pass shares=(0.25, 0.5, 1.0)")
    found = read_all(rows)
    keys = task_keys(found)
    order = sorted(set(keys), key=lambda k: (draw(seed, "trim", k), k))
    out: dict[float, list[Row]] = {}
    for share in sorted(shares):
        chosen = set(order[: max(1, round(share * len(order)))]) if order else set()
        out[share] = [row for row, key in zip(found, keys, strict=True) if key in chosen]
    return out


@dataclass(frozen=True)
class Saturation:
    """A fit of `score = limit - loss * size ** -exponent`.

    Attributes:
        limit: Score with unlimited data.
        low: Lower end of its interval.
        high: Upper end.
        exponent: How fast the rest falls.
        doubling: Expected gain from twice the largest size.
        enough: Smallest size seen from which the expected rest is below the noise; `None` when none is.
        noise: Residual standard error.
    """

    limit: float
    low: float
    high: float
    exponent: float
    doubling: float
    enough: int | None
    noise: float

    def __str__(self) -> str:
        return (
            f"saturation: limit {self.limit:.3f} [{self.low:.3f}..{self.high:.3f}] | twice the data would add "
            f"{self.doubling:+.3f} | enough: {self.enough if self.enough is not None else 'not reached'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as a plain dict."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"


def fit_saturation(
    sizes: Sequence[int], scores: Sequence[float], *, confidence: float = CONFIDENCE.value
) -> Saturation:
    """Fit a power law with a limit to scores at several sizes.

    For each exponent the other two parameters are linear, so the fit is a search over one number. The interval holds
    every limit that an F test does not refuse (profile likelihood), and is honest about being wide.

    Args:
        sizes: Sizes of the training sets, at least 4 values above 0.
        scores: One score per size.
        confidence: Level of the interval.

    Raises:
        ParameterError: Fewer than 4 different sizes, or the lists differ in length.
    """
    import numpy as np
    from scipy.stats import f

    n, y = np.asarray(sizes, np.float64), np.asarray(scores, np.float64)
    if len(n) != len(y) or len(set(n.tolist())) < 4 or (n <= 0).any():
        raise ParameterError(
            "a saturation fit needs one score for each of at least 4 different sizes above 0",
            why="it has three parameters",
            fix="measure more subsets of trim(rows)",
        )
    exponents = np.linspace(0.05, 3.0, 296)

    curves = -(n[None, :] ** -exponents[:, None])

    def fit(row: int) -> tuple[float, float, float]:
        design = np.column_stack([np.ones_like(n), curves[row]])
        (top, loss), *_ = np.linalg.lstsq(design, y, rcond=None)
        return float(((y - top - loss * curves[row]) ** 2).sum()), float(top), float(loss)

    fits = [(*fit(row), float(exponents[row])) for row in range(len(exponents))]
    rss, limit, loss, exponent = min(fits)
    freedom = max(1, len(n) - 3)
    floor = max(rss, 1e-15)
    bar = floor * (1 + float(f.ppf(confidence, 1, freedom)) / freedom)
    spread = max(float(y.max() - y.min()), 1e-6)
    grid = np.linspace(limit - 3 * spread, limit + 3 * spread, 601)
    # For a fixed limit and exponent the loss is a projection, so the whole profile is one product.
    rest_y = y[None, :] - grid[:, None]
    explained = (curves @ rest_y.T) ** 2 / (curves**2).sum(axis=1)[:, None]
    profile = ((rest_y**2).sum(axis=1)[None, :] - explained).min(axis=0)
    inside = grid[profile <= bar].tolist()
    noise = math.sqrt(rss / freedom)
    rest = {int(s): loss * s**-exponent for s in sorted(set(n.tolist()))}
    return Saturation(
        limit=limit,
        low=min([*inside, limit]),
        high=max([*inside, limit]),
        exponent=exponent,
        doubling=loss * float(n.max()) ** -exponent * (1 - 2.0**-exponent),
        enough=next((s for s, r in rest.items() if abs(r) <= noise), None),
        noise=noise,
    )
