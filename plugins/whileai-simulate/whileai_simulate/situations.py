"""From axes to tasks: which situations a run holds, in which order, and their asks without near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        self._asked = {axis: axes.asked(axis) for axis in axes.values}
        self._wanted = {
            axis: (list(asked), list(asked.values()), range(len(asked))) for axis, asked in self._asked.items()
        }
        # By axis and number of the value: the axes and numbers that cannot stand beside it.
        at = self._at = {axis: {v: i for i, v in enumerate(values)} for axis, values in axes.values.items()}
        self._excluded: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for a, va, b, vb in axes.forbidden:
            if va in at.get(a, ()) and vb in at.get(b, ()):
                one, two = (a, at[a][va]), (b, at[b][vb])
                self._excluded.setdefault(one, []).append(two)
                self._excluded.setdefault(two, []).append(one)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = self.array.rows
        if self.count < len(rows):
            rows = self._few_off_topic(rows)
            rows = most_covering_first(rows, self.count, self._liking)[: self.count]
        else:
            rows = Draw(self.seed, "order").shuffled(rows)
        counts = {axis: [0] * len(values) for axis, values in self.axes.values.items()}
        for row in rows:
            for axis, value in row.items():
                counts[axis][self._at[axis][value]] += 1
            yield row
        draw = Draw(self.seed, "fill")
        for n in range(len(rows), self.count):
            row = self._fill(counts, n, draw)
            for axis, value in row.items():
                counts[axis][self._at[axis][value]] += 1
            yield row

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

    def _fill(self, counts: dict[str, list[int]], n: int, draw: Draw) -> dict[str, Any]:
        """Draw a row whose values are those most behind their wanted share, with some noise."""
        scale = n + 2
        for _ in range(50):
            row: dict[str, Any] = {}
            barred: dict[str, set[int]] = {}
            for axis, (values, shares, everything) in self._wanted.items():
                got = counts[axis]
                open_ones: Sequence[int] = everything
                if axis in barred:
                    open_ones = [i for i in open_ones if i not in barred[axis]]
                    if not open_ones:
                        break
                    shares, got = [shares[i] for i in open_ones], [got[i] for i in open_ones]
                # The square keeps what is far behind ahead of what is nearly there, and 0.02 keeps all possible.
                weights = [
                    (b * b if (b := a * scale - c) > 0 else 0.0) + 0.02 * a for a, c in zip(shares, got, strict=True)
                ]
                if sum(weights) <= 0:
                    weights = [1.0] * len(weights)
                chosen = draw.weighted(open_ones, weights)
                row[axis] = values[chosen]
                for other, number in self._excluded.get((axis, chosen), ()):
                    barred.setdefault(other, set()).add(number)
            else:
                return row
        return dict(draw.choice(self.array.rows))


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
