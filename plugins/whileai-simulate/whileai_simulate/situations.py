"""From axes to tasks: which situations a run holds, in which order, and their asks without near-duplicates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from whileai_kernel.errors import RowError, WhileaiError
from whileai_kernel.protocols import WriteRequest
from whileai_simulate.axes import NO_TOOL, Axes
from whileai_simulate.covering import CoveringArray, covering_array, most_covering_first
from whileai_simulate.dedup import NearDuplicates
from whileai_simulate.defaults import REWORDINGS
from whileai_simulate.draw import Draw
from whileai_simulate.rollout import TaskSlot
from whileai_simulate.scenes import Setting, build_scene
from whileai_simulate.writer import OfflineWriter, task_of, word_scene

__all__ = ["Grid", "TaskSource"]

_CHUNK = 64
_STALE = 7
"""Rows for which the shares so far are taken as they were; fewer among the first 448 rows, where each counts."""
_TRIES = 50


class Grid:
    """The situations of a run as axis values: the covering array first, then draws towards the wanted shares.

    Args:
        axes: The axes.
        count: Number of situations.
        strength: Strength of the array.
        seed: Seed of the draws.
    """

    def __init__(self, axes: Axes, count: int, strength: int, seed: int) -> None:
        self.axes, self.count, self.seed = axes, count, seed
        self.array: CoveringArray = covering_array(
            axes.values, strength=strength, forbidden=axes.forbidden, weights=axes.weights, seed=seed
        )
        self._names, self._values = list(axes.values), [list(values) for values in axes.values.values()]
        self._asked = {axis: axes.asked(axis) for axis in self._names}
        self._shares = [list(asked.values()) for asked in self._asked.values()]
        self._at = [{v: i for i, v in enumerate(values)} for values in self._values]
        bars: list[list[dict[int, int]]] = [[{} for _ in values] for values in self._values]
        for a, va, b, vb in axes.forbidden:
            if va in axes.values.get(a, ()) and vb in axes.values.get(b, ()):
                one, two = self._names.index(a), self._names.index(b)
                i, j = self._at[one][va], self._at[two][vb]
                bars[one][i][two] = bars[one][i].get(two, 0) | 1 << j
                bars[two][j][one] = bars[two][j].get(one, 0) | 1 << i
        # By axis and value: the later axes that it bars values of, and which, as bits.
        self._bars = [
            [[(other, bits) for other, bits in barred.items() if other > axis] for barred in by_value]
            for axis, by_value in enumerate(bars)
        ]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = self.array.rows
        if self.count < len(rows):
            rows = self._few_off_topic(rows)
            rows = most_covering_first(rows, self.count, self._liking)[: self.count]
        else:
            rows = Draw(self.seed, "order").shuffled(rows)
        counts = [[0] * len(values) for values in self._values]
        for row in rows:
            for at, got, value in zip(self._at, counts, row.values(), strict=True):
                got[at[value]] += 1
            yield row
        draw = Draw(self.seed, "fill")
        marks: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
        until = 0
        for n in range(len(rows), self.count):
            if n >= until:
                marks, until = {}, n + 1 + min(_STALE, n // 64)
            numbers = self._fill(counts, n, draw, marks)
            for got, number in zip(counts, numbers, strict=True):
                got[number] += 1
            yield {axis: values[i] for axis, values, i in zip(self._names, self._values, numbers, strict=True)}

    def _few_off_topic(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keep no more asks without a tool than the wanted share allows, when there is no room for all rows."""
        room = max(1, round(self._asked.get("tool", {}).get(NO_TOOL, 1.0) * self.count))
        plain = [r for r in rows if r.get("tool") == NO_TOOL]
        if len(rows) - len(plain) + min(room, len(plain)) < self.count or len(plain) <= room:
            return rows
        dropped = [id(r) for r in plain[room:]]
        return [r for r in rows if id(r) not in dropped]

    def _liking(self, row: dict[str, Any]) -> float:
        return sum(self._asked[axis][value] for axis, value in row.items())

    def _fill(
        self, counts: list[list[int]], n: int, draw: Draw, marks: dict[tuple[int, int], tuple[list[int], list[float]]]
    ) -> list[int]:
        """Draw the numbers of values that are most behind their wanted share, with some noise.

        Args:
            counts: By axis, how often each value came so far.
            n: Rows so far.
            draw: Where the noise comes from.
            marks: By axis and barred values: the open ones and their summed weights, once they were needed.
        """
        for _ in range(_TRIES):
            row: list[int] = []
            barred = [0] * len(counts)
            for axis, bars in enumerate(self._bars):
                key = axis, barred[axis]
                known = marks.get(key)
                if known is None:
                    known = marks[key] = self._behind(axis, barred[axis], counts[axis], n + 2)
                numbers, sums = known
                if not numbers:
                    break
                chosen = numbers[bisect_right(sums, draw.random() * sums[-1])]
                row.append(chosen)
                for other, bits in bars[chosen]:
                    barred[other] |= bits
            else:
                return row
        return [at[value] for at, value in zip(self._at, draw.choice(self.array.rows).values(), strict=True)]

    def _behind(self, axis: int, barred: int, got: list[int], scale: int) -> tuple[list[int], list[float]]:
        """Return the values of an axis that are not barred, and the running sums of their weights."""
        numbers = [i for i in range(len(got)) if not barred >> i & 1]
        shares = self._shares[axis]
        # The square keeps what is far behind ahead of what is nearly there, and 0.02 keeps all possible.
        behind = [max(0.0, shares[i] * scale - got[i]) for i in numbers]
        weights = [b * b + 0.02 * shares[i] for i, b in zip(numbers, behind, strict=True)]
        return numbers, list(accumulate(weights if sum(weights) > 0 else [1.0] * len(weights)))


@dataclass(slots=True)
class TaskSource:
    """Makes tasks one by one, and counts what it dropped.

    Attributes:
        setting: What the scenes share.
        grid: The situations.
        writer: The writer; the offline one is called directly.
        near: Near-duplicate filter.
        fixed: Tasks that come first (asks that must run, replayed tasks).
        reworded: Wordings that were dropped as near-duplicates or leaks.
        kept_duplicates: Near-duplicates that were kept because no other wording was found.
        leaks: Wordings that shared text with a trace.
        written: Tasks of the grid that were written before the run, see `written.write_ahead`.
    """

    setting: Setting
    grid: Any
    writer: Any
    near: NearDuplicates
    fixed: Sequence[dict[str, Any]] = ()
    leak_check: Any = None
    reworded: int = 0
    kept_duplicates: int = 0
    leaks: int = 0
    rewordings: int = REWORDINGS.value
    written: list[dict[str, Any]] | None = None

    def __iter__(self) -> Iterator[TaskSlot]:
        position = 0
        for task in self.fixed:
            self.near.add(task["prompt"])
            yield TaskSlot(position, task)
            position += 1
        if self.written is not None:
            for n, task in enumerate(self.written):
                yield TaskSlot(position + n, task)
            return
        for chunk in _chunks(self.grid, _CHUNK):
            for task in self.write(chunk, position):
                yield TaskSlot(position, task)
                position += 1

    def write(self, rows: list[dict[str, Any]], first: int) -> Iterator[dict[str, Any]]:
        """Yield the tasks of situations, the first of which has the place `first` in the run."""
        if isinstance(self.writer, OfflineWriter):
            for n, axes in enumerate(rows):
                yield self._offline(axes, first + n)
            return
        scenes = [build_scene(self.setting, axes, first + n) for n, axes in enumerate(rows)]
        drafts = [task_of(self.setting, s, word_scene(self.setting, s, first + n)) for n, s in enumerate(scenes)]
        request = WriteRequest(
            situations=[{**axes, "scene": s, "draft": d} for axes, s, d in zip(rows, scenes, drafts, strict=True)],
            tools=[t.tool for t in self.setting.domain.tools.values()],
            system_prompt=self.setting.system_prompt,
            seed=self.setting.seed,
            options={
                "setting": self.setting,
                "first": first,
                "near": self.near,
                "leak_check": self.leak_check,
                "fallback": self._offline,
            },
        )
        written = list(self.writer.write(request))
        if len(written) != len(rows):
            raise RowError(
                f"the writer returned {len(written)} tasks for {len(rows)} situations",
                why="one task per situation, in order",
                fix="correct the writer",
            )
        for draft, task in zip(drafts, written, strict=True):
            merged = {**draft, **{k: v for k, v in task.items() if v not in (None, {}, [], ())}}
            if not getattr(self.writer, "ahead", False) and not self.near.add(merged["prompt"]):
                self.kept_duplicates += 1
                self.near.note(merged["prompt"])
            yield merged

    def _offline(self, axes: Mapping[str, Any], position: int) -> dict[str, Any]:
        wording: tuple[Any, str] | None = None
        for attempt in range(self.rewordings):
            scene = build_scene(self.setting, axes, position, attempt)
            prompt = word_scene(self.setting, scene, position, attempt)
            if self.leak_check is not None and self.leak_check.of_frames(prompt):
                self.leaks += 1
                continue
            if self.near.add(prompt):
                break
            self.reworded += 1
            wording = scene, prompt
        else:
            if wording is None:
                raise WhileaiError(
                    f"no wording of situation {position} is free of text from the traces",
                    why=f"{self.rewordings} wordings share a run of words with them",
                    fix="pass options={'leak_ngram': 12}, or fewer traces",
                )
            self.kept_duplicates += 1
            scene, prompt = wording
            self.near.note(prompt)
        return task_of(self.setting, scene, prompt)


def _chunks(rows: Any, size: int) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
