"""Covering arrays: the fewest situations in which every pair (or triple) of axis values occurs.

The array is built parameter by parameter (IPO: Lei and Tai 1998; IPOG for strength above 2: Lei et al. 2007):
start with all combinations of the largest axes, extend every row by the value that covers most, add rows for
what is left. Constraints are pairs of values that exclude each other; a row that would hold one is never made,
and combinations that no valid row can hold are reported as infeasible, not as missing.

An own builder, because the maintained libraries that are correct were measured at 24 to 42 s for 50 x 100 values
with four small axes (covertable 3.2, both criteria); this one needs about half a second. covertable is the oracle
of the tests at small sizes.

Example:
    >>> array = covering_array({"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]})
    >>> len(array.rows), array.planned, array.covered
    (6, 16, 16)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from operator import itemgetter
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_simulate.draw import Draw

__all__ = [
    "Coverage",
    "CoverageCount",
    "CoveringArray",
    "Forbidden",
    "count_coverage",
    "covering_array",
    "most_covering_first",
]

Forbidden = tuple[str, Any, str, Any]
"""`(axis, value, other axis, other value)`: the two values never stand in one row."""

Cell = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CoveringArray:
    """Rows that cover every feasible combination of `strength` values.

    Attributes:
        rows: One mapping of axis to value per row.
        strength: 2 covers pairs, 3 triples.
        planned: Number of combinations that a valid row can hold.
        covered: Number of them that `rows` hold.
        infeasible: Number of combinations that the constraints exclude.
    """

    rows: list[dict[str, Any]]
    strength: int
    planned: int
    covered: int
    infeasible: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many combinations some rows cover, and which feasible ones are missing."""

    planned: int
    covered: int
    missing: list[tuple[tuple[str, Any], ...]]

    @property
    def share(self) -> float:
        """Covered share of the planned combinations, 1.0 when there are none."""
        return self.covered / self.planned if self.planned else 1.0


class _Model:
    """Axes as integers, with the exclusions of each value."""

    def __init__(self, axes: Mapping[str, Sequence[Any]], forbidden: Sequence[Forbidden]) -> None:
        # Largest axis first: the array starts with the product of the largest ones.
        self.names = sorted(axes, key=lambda name: (-len(axes[name]), list(axes).index(name)))
        self.values = [list(axes[name]) for name in self.names]
        self.sizes = [len(v) for v in self.values]
        index = [{_key(v): i for i, v in enumerate(vals)} for vals in self.values]
        at = {name: i for i, name in enumerate(self.names)}
        self.excluded: set[tuple[int, int, int, int]] = set()
        for a, va, b, vb in forbidden:
            if a not in at or b not in at:
                continue
            i, j = index[at[a]].get(_key(va)), index[at[b]].get(_key(vb))
            if i is not None and j is not None:
                self.excluded |= {(at[a], i, at[b], j), (at[b], j, at[a], i)}
        self.constrained = sorted({a for a, *_ in self.excluded})
        self._solvable: bool | None = None
        self._feasible: dict[tuple[Cell, Cell], bool] = {}
        self.barred: dict[tuple[int, int], dict[int, set[int]]] = {}
        for axis, value, other, bad in self.excluded:
            self.barred.setdefault((axis, value), {}).setdefault(other, set()).add(bad)

    @property
    def solvable(self) -> bool:
        """Whether any valid row exists; values that exclude nothing can stand in one then."""
        if self._solvable is None:
            self._solvable = self._search([-1] * len(self.sizes), list(self.constrained), None)
        return self._solvable

    def fits(self, row: Sequence[int], axis: int, value: int) -> bool:
        """Whether `value` can stand at `axis` beside what the row already holds (-1 is open)."""
        barred = self.barred.get((axis, value))
        if barred is None:
            return True
        for other, bad in barred.items():  # noqa: SIM110 - a generator costs half of the build
            if row[other] in bad:
                return False
        return True

    def complete(self, row: list[int], prefer: Callable[[int, int], float] | None = None) -> list[int] | None:
        """Fill the open cells so that no exclusion is broken, or return `None` when that cannot be."""
        todo = [a for a in self.constrained if row[a] < 0]
        if not self._search(row, todo, prefer):
            return None
        for axis, value in enumerate(row):
            if value < 0:
                row[axis] = max(range(self.sizes[axis]), key=lambda v: prefer(axis, v)) if prefer else 0
        return row

    def _search(self, row: list[int], todo: list[int], prefer: Callable[[int, int], float] | None) -> bool:
        if not todo:
            return True
        axis, rest = todo[0], todo[1:]
        order = range(self.sizes[axis])
        for value in sorted(order, key=lambda v: -prefer(axis, v)) if prefer else order:
            if self.fits(row, axis, value):
                row[axis] = value
                if self._search(row, rest, prefer):
                    return True
                row[axis] = -1
        return False

    def feasible(self, axes: Cell, values: Cell) -> bool:
        """Whether some valid row holds these values; remembered, since arrays are built, counted and reported."""
        known = self._feasible.get((axes, values))
        if known is None:
            known = self._feasible[axes, values] = self._is_feasible(axes, values)
        return known

    def _is_feasible(self, axes: Cell, values: Cell) -> bool:
        row = [-1] * len(self.sizes)
        for axis, value in zip(axes, values, strict=True):
            if not self.fits(row, axis, value):
                return False
            row[axis] = value
        if not any(pair in self.barred for pair in zip(axes, values, strict=True)):
            return self.solvable
        return self._search(row, [a for a in self.constrained if row[a] < 0], None)


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | type(None)) else repr(value)


_MODELS: dict[Any, _Model] = {}
_LOOK_EVERY = 64  # rows between two looks at whether all is covered
_MODELS_KEPT = 8  # models of recent axes: one run builds, counts and reports on the same ones


def _model(axes: Mapping[str, Sequence[Any]], forbidden: Sequence[Forbidden]) -> _Model:
    """Return the model of the axes, the same one while they are the same."""
    key = (
        tuple((name, tuple(map(_key, values))) for name, values in axes.items()),
        tuple((a, _key(va), b, _key(vb)) for a, va, b, vb in forbidden),
    )
    found = _MODELS.get(key)
    if found is None:
        while len(_MODELS) >= _MODELS_KEPT:
            _MODELS.pop(next(iter(_MODELS)), None)
        found = _MODELS[key] = _Model(axes, forbidden)
    return found


def covering_array(
    axes: Mapping[str, Sequence[Any]],
    *,
    strength: int = 2,
    forbidden: Sequence[Forbidden] = (),
    weights: Mapping[str, Mapping[Any, float]] | None = None,
    seed: int = 0,
) -> CoveringArray:
    """Build a covering array.

    Args:
        axes: Values of each axis.
        strength: 2 (pairs) or 3 (triples); 1 covers single values.
        forbidden: Pairs of values that exclude each other.
        weights: Wanted relative shares by axis and value; cells that coverage leaves open are filled towards them.
        seed: Decides between values that cover equally much.

    Raises:
        ParameterError: An axis is empty or repeats a value, the strength is not 1 to 3, or no valid row exists.
    """
    if strength not in (1, 2, 3):
        raise ParameterError(f"strength must be 1, 2 or 3, not {strength!r}", fix="pass strength=2")
    for name, values in axes.items():
        keys = [_key(v) for v in values]
        if not keys or len(set(keys)) != len(keys):
            raise ParameterError(
                f"axis {name!r} is {'empty' if not keys else 'listing a value twice'}",
                fix=f"give {name} distinct values",
            )
    if not axes:
        return CoveringArray([], strength, 0, 0, 0)
    model = _model(axes, forbidden)
    if model.complete([-1] * len(model.sizes)) is None:
        raise ParameterError(
            "no situation satisfies the constraints", why=f"{len(forbidden)} exclusions", fix="drop one of them"
        )
    strength = min(strength, len(model.sizes))
    wanted = [
        [float((weights or {}).get(n, {}).get(v, 1.0)) for v in vals]
        for n, vals in zip(model.names, model.values, strict=True)
    ]
    table, planned, infeasible = _build(model, strength, wanted, seed)
    rows = [{model.names[a]: model.values[a][v] for a, v in enumerate(row)} for row in table]
    ordered = [{name: row[name] for name in axes} for row in rows]
    return CoveringArray(ordered, strength, planned, planned, infeasible)


def _build(model: _Model, strength: int, wanted: list[list[float]], seed: int) -> tuple[list[list[int]], int, int]:
    """Return the completed table, the number of feasible combinations and that of infeasible ones."""
    n = len(model.sizes)
    infeasible = 0
    table: list[list[int]] = []
    planned = 0
    first = tuple(range(strength))
    for cell in product(*(range(model.sizes[a]) for a in first)):
        if model.feasible(first, cell):
            table.append([*cell, *([-1] * (n - strength))])
            planned += 1
        else:
            infeasible += 1
    for axis in range(strength, n):
        left: dict[Cell, set[Cell]] = {}
        for others in combinations(range(axis), strength - 1):
            cells = left[others] = set()
            for cell in product(*(range(model.sizes[a]) for a in others), range(model.sizes[axis])):
                if model.feasible((*others, axis), cell):
                    cells.add(cell)
                else:
                    infeasible += 1
            planned += len(cells)
        _extend(model, table, axis, left, seed)
        _grow(model, table, axis, left)
    _fill(model, table, wanted, seed)
    return table, planned, infeasible


def _fill(model: _Model, table: list[list[int]], wanted: list[list[float]], seed: int) -> None:
    """Fill what coverage left open towards the wanted shares, with noise so that axes do not move in step."""
    used = [[0] * size for size in model.sizes]
    for row in table:
        for axis, value in enumerate(row):
            if value >= 0:
                used[axis][value] += 1
    least = [[max(w, 1e-6) for w in by_value] for by_value in wanted]
    draw = Draw(seed, "fill")
    for row in table:
        if -1 not in row:
            continue
        open_axes = [a for a, v in enumerate(row) if v < 0]
        wish = {
            a: [-(n + 1) * (0.7 + 0.6 * draw.random()) / w for n, w in zip(used[a], least[a], strict=True)]
            for a in open_axes
        }

        def prefer(a: int, v: int, wish: dict[int, list[float]] = wish) -> float:
            return wish[a][v]

        model.complete(row, prefer)
        for axis in open_axes:
            used[axis][row[axis]] += 1


def _extend(model: _Model, table: list[list[int]], axis: int, left: dict[Cell, set[Cell]], seed: int) -> None:
    """Horizontal growth: give each row the value of the new axis that covers most; leave it open when none does."""
    size = model.sizes[axis]
    used = [0] * size
    draw = Draw(seed, "extend", axis)
    constrained = axis in model.constrained
    for row in table:
        heads = [(tuple([row[a] for a in others]), cells) for others, cells in left.items()]
        heads = [(head, cells) for head, cells in heads if cells and -1 not in head]
        best, best_gain = -1, 0
        shift = draw.below(size)  # ties in changing order, so that axes do not move in step
        for value in [*range(shift, size), *range(shift)]:
            gain = sum([(*head, value) in cells for head, cells in heads])
            if gain and (gain > best_gain or (gain == best_gain and used[value] + 1 < used[best])):
                if constrained and not _open_to(model, row, axis, value):
                    continue
                best, best_gain = value, gain
        if best >= 0:
            row[axis] = best
            used[best] += 1
            for head, cells in heads:
                cells.discard((*head, best))


def _open_to(model: _Model, row: list[int], axis: int, value: int) -> bool:
    if not model.fits(row, axis, value):
        return False
    trial = row.copy()
    trial[axis] = value
    return model._search(trial, [a for a in model.constrained if trial[a] < 0], None)


def _grow(model: _Model, table: list[list[int]], axis: int, left: dict[Cell, set[Cell]]) -> None:
    """Vertical growth: place what is still uncovered into open cells, else into new rows."""
    open_rows = [row for row in table if -1 in row[: axis + 1]]
    for others, cells in left.items():
        wanted = (*others, axis)
        for cell in sorted(cells):
            for row in open_rows:
                if all(row[a] in (-1, v) for a, v in zip(wanted, cell, strict=True)):
                    trial = row.copy()
                    for a, v in zip(wanted, cell, strict=True):
                        trial[a] = v
                    if _valid(model, trial):
                        row[:] = trial
                        break
            else:
                row = [-1] * len(model.sizes)
                for a, v in zip(wanted, cell, strict=True):
                    row[a] = v
                table.append(row)
                open_rows.append(row)
            if -1 not in row[: axis + 1]:
                open_rows = [r for r in open_rows if r is not row]
        cells.clear()


def _valid(model: _Model, row: list[int]) -> bool:
    if any(row[a] >= 0 and not model.fits(row, a, row[a]) for a in model.constrained):
        return False
    return model._search(row.copy(), [a for a in model.constrained if row[a] < 0], None)


class CoverageCount:
    """Counts the combinations that rows cover, row by row, so that rows need not be kept.

    Args:
        axes: Values of each axis.
        strength: 2 for pairs, 3 for triples.
        forbidden: As in `covering_array`.
        planned: Number of feasible combinations, where every row is known to keep the constraints: once all are
            covered, further rows need no look.
    """

    def __init__(
        self,
        axes: Mapping[str, Sequence[Any]],
        *,
        strength: int = 2,
        forbidden: Sequence[Forbidden] = (),
        planned: int | None = None,
    ) -> None:
        self._planned, self._full, self._rows = planned, False, 0
        self._model = _model(axes, forbidden)
        self._at = [(n, {_key(v): i for i, v in enumerate(vals)}) for n, vals in self._named()]
        groups = combinations(range(len(self._at)), min(strength, len(self._at))) if self._at else ()
        self._seen: dict[Cell, set[Any]] = {group: set() for group in groups}
        self._adders = [(itemgetter(*group), seen.add) for group, seen in self._seen.items()]

    def _named(self) -> list[tuple[str, list[Any]]]:
        return list(zip(self._model.names, self._model.values, strict=True))

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a mapping of axis to value; values outside the axes cover nothing."""
        if self._full:
            return
        self._rows += 1
        try:
            cell = [at[row[name]] for name, at in self._at]
        except (KeyError, TypeError):  # an axis is missing, or its value is an object that `_key` names
            cell = [at.get(_key(row.get(name)), -1) for name, at in self._at]
        for part, add in self._adders:
            add(part(cell))
        if self._planned is not None and self._rows % _LOOK_EVERY == 0:
            self._full = sum(map(len, self._seen.values())) >= self._planned

    def result(self) -> Coverage:
        """Return what is covered so far, and the feasible combinations that are missing."""
        model = self._model
        planned = covered = 0
        missing: list[tuple[tuple[str, Any], ...]] = []
        for wanted, seen in self._seen.items():
            for cell in product(*(range(model.sizes[a]) for a in wanted)):
                if not model.feasible(wanted, cell):
                    continue
                planned += 1
                if (cell if len(cell) > 1 else cell[0]) in seen:
                    covered += 1
                else:
                    named = zip(wanted, cell, strict=True)
                    missing.append(tuple((model.names[a], model.values[a][v]) for a, v in named))
        return Coverage(planned, covered, missing)


def count_coverage(
    rows: Iterable[Mapping[str, Any]],
    axes: Mapping[str, Sequence[Any]],
    *,
    strength: int = 2,
    forbidden: Sequence[Forbidden] = (),
) -> Coverage:
    """Count the combinations that `rows` cover, and list the feasible ones that they do not.

    Args:
        rows: Mappings of axis to value; values outside `axes` cover nothing.
        axes: Values of each axis.
        strength: 2 for pairs, 3 for triples.
        forbidden: As in `covering_array`.
    """
    count = CoverageCount(axes, strength=strength, forbidden=forbidden)
    for row in rows:
        count.add(row)
    return count.result()


def most_covering_first(
    rows: Sequence[dict[str, Any]], count: int, prefer: Callable[[dict[str, Any]], float] | None = None
) -> list[dict[str, Any]]:
    """Order `rows` so that the first `count` cover the most pairs (lazy greedy); the rest keep their order.

    Args:
        rows: Rows of an array.
        count: How many to choose.
        prefer: Breaks ties: the row with the larger value comes first.
    """
    if count >= len(rows):
        return list(rows)
    names = list(rows[0]) if rows else []
    axis_pairs = list(combinations(range(len(names)), 2))
    keyed = []
    for row in rows:
        values = [_key(row[name]) for name in names]
        keyed.append([(a, b, values[a], values[b]) for a, b in axis_pairs])
    # Lazy greedy: gains only shrink, so a stale best is re-counted and put back (Minoux 1978). Among rows that cover
    # equally many pairs come those with values that no row has yet: each clause of a policy before one comes twice.
    import heapq

    covered: set[tuple[int, int, Any, Any]] = set()
    met: set[tuple[int, Any]] = set()
    single = [[(a, _key(row[name])) for a, name in enumerate(names)] for row in rows]
    full = (-len(axis_pairs), -len(names))
    heap = [(full, -(prefer(row) if prefer else 0.0), i) for i, row in enumerate(rows)]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        gain, tie, i = heapq.heappop(heap)
        now = -sum([pair not in covered for pair in keyed[i]]), -sum([value not in met for value in single[i]])
        if now != gain and heap and (now, tie, i) > heap[0]:
            heapq.heappush(heap, (now, tie, i))
            continue
        chosen.append(i)
        covered.update(keyed[i])
        met.update(single[i])
    rest = set(range(len(rows))) - set(chosen)
    return [rows[i] for i in chosen] + [rows[i] for i in sorted(rest)]
