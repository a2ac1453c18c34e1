"""Columns from rows: everything that the statistics read is extracted once, as arrays.

Accepts rows in memory, an iterator, a path to a file, or a pandas, polars or Arrow table (recognised by its type, so
that no such library is imported). Reads in blocks, so that a file of any length costs the columns and one block.
Nothing is repaired in silence: what cannot be read raises a `RowError` with the row and the field, what is left out
is counted.

Example:
    >>> table = extract([{"task_id": "a", "reward": 1.0}, {"task_id": "a", "reward": None}])
    >>> table.tasks, table.reward.tolist(), table.not_scored
    (('a',), [1.0, nan], {'missing': 1})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from whileai_kernel.defaults import PASS_TOLERANCE, THRESHOLD
from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.rows import LENGTH_REASONS, STATUSES, task_key
from whileai_measure.blocks import Block, RowsLike, blocks, in_unit, numbers, row_stream, safe

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

__all__ = ["Columns", "Label", "RowsLike", "extract", "row_stream", "safe"]

FIELDS = ("task_id", "rollout_id", "prompt", "reward", "status", "threshold", "finish_reason", "outcome")
Label = str | Callable[[Mapping[str, Any]], Any] | Mapping[str, Any]
"""How a row gets a label: a dotted field (`"axes.channel"`), a function of the row, or a mapping from task ids."""


@dataclass(frozen=True)
class Columns:
    """What the statistics read. N is the number of rows kept, T the number of tasks.

    Attributes:
        tasks: Task ids in order of first appearance, length T.
        code: Task of each row, shape (N,).
        reward: Shape (N,); NaN is not scored.
        passed: Shape (N,); 1, 0, or NaN for not scored.
        read: Rows read, with those that were left out.
        not_scored: Rows without a reward, by status.
        truncated: Rows cut by a length limit, shape (N,).
        failed: Rows whose run failed, shape (N,).
        repeats: Rows left out because their rollout_id was read before.
        booleans: Rewards given as true or false.
        contradictions: Rows with a reward beside a status that says not scored; they count as not scored.
        unread: Records of the file that could not be read as rows, one sentence each.
        markers: Values by name, each of shape (N,), NaN where absent; empty unless asked for.
        labels: One label per row, by the name asked for.
        scorers: Rows by `(scorer id, version, threshold)`; empty unless asked for.
        prompts: Hash of the prompt of each task; empty unless asked for.
    """

    tasks: tuple[str, ...]
    code: Ints
    reward: Floats
    passed: Floats
    read: int
    not_scored: dict[str, int]
    truncated: Bools
    failed: Bools
    repeats: int = 0
    booleans: int = 0
    contradictions: int = 0
    unread: tuple[str, ...] = ()
    markers: dict[str, Floats] = field(default_factory=dict)
    labels: dict[str, list[Any]] = field(default_factory=dict)
    scorers: dict[tuple[str, str, float], int] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=dict)

    @property
    def scored(self) -> Bools:
        """Which rows have a reward, shape (N,)."""
        import numpy as np

        return ~np.isnan(self.reward)

    def left_out(self) -> list[str]:
        """Return one sentence for each kind of row that is left out or read in another way than written."""
        notes = []
        if self.unread:
            many = len(self.unread) > 1
            records = f"{len(self.unread)} {'records' if many else 'record'} of the file could not be read"
            notes.append(f"{records} and {'are' if many else 'is'} left out, the first: {self.unread[0]}")
        if self.not_scored:
            by_status = ", ".join(f"{count} {status}" for status, count in self.not_scored.items())
            notes.append(
                f"{sum(self.not_scored.values())} of {self.read} rows not scored ({by_status}) and not counted"
            )
        if self.contradictions:
            notes.append(f"{self.contradictions} rows have a reward beside a status that says not scored: not scored")
        if self.repeats:
            notes.append(f"{self.repeats} rows repeat a rollout_id and are left out")
        if self.booleans:
            notes.append(f"{self.booleans} rewards are booleans, read as 1 and 0")
        return notes

    def counts(self, mask: Bools | None = None) -> tuple[Ints, Ints, Floats]:
        """Return scored rollouts, passes and mean reward per task, each of shape (T,); NaN mean where none."""
        import numpy as np

        keep = self.scored if mask is None else self.scored & mask
        total, code = len(self.tasks), self.code[keep]
        n = np.bincount(code, minlength=total)
        c = np.rint(np.bincount(code, weights=self.passed[keep], minlength=total)).astype(np.int64)
        return n, c, self.task_means(self.reward, mask)

    def task_means(self, values: Floats, mask: Bools | None = None) -> Floats:
        """Return the mean of present values per task, shape (T,); NaN where a task has none."""
        import numpy as np

        keep = ~np.isnan(values) if mask is None else ~np.isnan(values) & mask
        code = self.code[keep]
        n = np.bincount(code, minlength=len(self.tasks))
        total = np.bincount(code, weights=values[keep], minlength=len(self.tasks))
        with np.errstate(invalid="ignore"):
            return np.where(n > 0, total / np.maximum(n, 1), np.nan)

    def task_labels(self, name: str, what: str) -> list[Any]:
        """Return one label per task, length T.

        Raises:
            ParameterError: The rows of a task disagree.
        """
        out: dict[int, Any] = {}
        for code, label in zip(self.code.tolist(), self.labels[name], strict=True):
            if out.setdefault(code, label) != label:
                raise ParameterError(
                    f"task {safe(self.tasks[code])} has more than one {what}: {safe(out[code])} and {safe(label)}",
                    why=f"a {what} belongs to a task, not to a rollout",
                    fix=f"give every row of a task the same {what}",
                )
        return [out.get(i) for i in range(len(self.tasks))]


def extract(
    source: RowsLike,
    *,
    threshold: float | None = None,
    markers: bool = False,
    context: bool = False,
    labels: Mapping[str, Label] | None = None,
) -> Columns:
    """Extract the columns that the statistics read.

    Args:
        source: Rows, an iterator of rows, a path, or a pandas, polars or Arrow table.
        threshold: Reward from which a rollout passes, instead of the row's own (default 1.0).
        markers: Extract markers too.
        context: Extract scorers and prompts too, for a comparison.
        labels: Labels to extract, by name.

    Raises:
        RowError: A row or a field cannot be read; names both.
        ParameterError: The source is none of the accepted kinds.
    """
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and 0.0 <= threshold <= 1.0):
        raise ParameterError(f"threshold must be a number in [0, 1], not {threshold!r}", fix="pass threshold=1.0")
    if isinstance(source, Columns):
        missing = [name for name in labels or () if name not in source.labels]
        if missing or threshold is not None:
            what = f"the label {missing[0]}" if missing else "another threshold"
            raise ParameterError(
                f"columns that were extracted without {what} cannot have it now",
                fix="pass the rows, or extract them again",
            )
        return source
    unread: list[str] = []
    reader = _Reader(threshold, markers, context, labels or {})
    for block in blocks(source, unread, reader.fields()):
        reader.add(block)
    return replace(reader.finish(), unread=tuple(unread))


class _Reader:
    """Accumulates blocks; see `extract`."""

    def __init__(self, threshold: float | None, markers: bool, context: bool, labels: Mapping[str, Label]) -> None:
        self.threshold, self.want_markers, self.context, self.label_of = threshold, markers, context, labels
        self.index: dict[str, int] = {}
        self.parts: dict[str, list[Any]] = {k: [] for k in ("code", "reward", "limit", "cut", "failed", "rid", "none")}
        self.markers: dict[str, list[tuple[int, Any]]] = {}
        self.labels: dict[str, list[Any]] = {name: [] for name in labels}
        self.scorers: Counter[tuple[str, str, float]] = Counter()
        self.prompts: dict[str, int] = {}
        self.statuses: list[str] = []
        self.read = self.booleans = self.contradictions = 0

    def fields(self) -> list[str] | None:
        """Return the top-level fields that are read; `None` where a label is a function of the whole row."""
        if any(callable(label) for label in self.label_of.values()):
            return None
        heads = [label.partition(".")[0] for label in self.label_of.values() if isinstance(label, str)]
        more = [*(["markers"] if self.want_markers else []), *(["scorer"] if self.context else []), *heads]
        return list(dict.fromkeys([*FIELDS, *more]))

    def add(self, block: Block) -> None:
        import numpy as np

        start, ids = block.start, self._task_ids(block)
        index = self.index
        for task in dict.fromkeys(ids):
            index.setdefault(task, len(index))
        code = np.fromiter(map(index.__getitem__, ids), np.int64, block.size)
        reward, nan, booleans = numbers(block.get("reward"), "reward", start)
        reward = in_unit(reward, "reward", start)
        status = self._status(block, reward, nan)
        limit = self._limits(block)
        cut, failed = self._endings(block)
        rid = self._rollout_hashes(block, ids)
        for name, values in zip(self.parts, (code, reward, limit, cut, failed, rid, status), strict=True):
            self.parts[name].append(values)
        if self.want_markers:
            self._add_markers(block)
        for name, label in self.label_of.items():
            self.labels[name] += self._label(block, label, ids)
        if self.context:
            self._add_context(block, limit, ids)
        self.read += block.size
        self.booleans += booleans

    def _task_ids(self, block: Block) -> list[str]:
        ids = block.get("task_id")
        if set(map(type, ids)) == {str} and all(ids):
            return ids
        prompts, out = block.get("prompt"), []
        for i, (task_id, prompt) in enumerate(zip(ids, prompts, strict=True)):
            if hasattr(task_id, "item") and not isinstance(task_id, str):
                task_id = task_id.item()  # a scalar of numpy
            try:
                out.append(task_key({"task_id": task_id, "prompt": prompt}))
            except RowError as err:
                raise RowError(
                    err.what.partition(": ")[2] or err.what, err.why, err.fix, row=block.start + i, field="task_id"
                ) from None
        return out

    def _rollout_hashes(self, block: Block, ids: list[str]) -> Ints:
        """Return a hash of task and rollout id per row, 0 where the row has no rollout_id."""
        import numpy as np

        given = block.get("rollout_id")
        kinds = set(map(type, given))
        for kind in kinds - {str, int, type(None)}:
            bad = next(i for i, v in enumerate(given) if type(v) is kind)
            raise RowError(
                f"rollout_id must be text, not {kind.__name__}",
                fix="leave it out or give text",
                row=block.start + bad,
                field="rollout_id",
            )
        if kinds <= {type(None)}:
            return np.zeros(block.size, dtype=np.int64)
        out = np.fromiter(map(hash, zip(ids, given, strict=True)), np.int64, block.size)
        if type(None) in kinds:
            out[[i for i, v in enumerate(given) if v is None]] = 0
        return out

    def _status(self, block: Block, reward: Floats, nan: Bools) -> Any:
        """Return per row an index into STATUSES (0 is ok); sets rewards beside another status to NaN."""
        import numpy as np

        rank = {s: i for i, s in enumerate(STATUSES)}
        given = block.get("status")
        try:
            kinds = set(given)
        except TypeError:
            kinds = {object}
        if kinds <= {"ok", None}:
            status = np.zeros(block.size, dtype=np.int64)
        elif kinds <= {*STATUSES, None}:
            status = np.fromiter((rank.get(s, 0) for s in given), np.int64, block.size)
        else:
            bad = next(i for i, s in enumerate(given) if not (s is None or (isinstance(s, str) and s in rank)))
            raise RowError(
                f"unknown status {safe(given[bad])}",
                why="the status says whether the reward may be used",
                fix=f"use one of {', '.join(STATUSES)}",
                row=block.start + bad,
                field="status",
            )
        scored = ~np.isnan(reward)
        both = scored & (status != 0)
        self.contradictions += int(both.sum())
        reward[both] = np.nan
        missing = ~scored & (status == 0)
        status[missing] = np.where(nan[missing], rank["invalid"], rank["missing"])
        return status

    def _limits(self, block: Block) -> Floats:
        import numpy as np

        if self.threshold is not None:
            return np.full(block.size, self.threshold)
        given = block.get("threshold")
        if set(map(type, given)) == {type(None)}:
            return np.full(block.size, THRESHOLD.value)
        limit, _, _ = numbers(given, "threshold", block.start)
        limit = in_unit(limit, "threshold", block.start)
        return np.where(np.isnan(limit), THRESHOLD.value, limit)

    def _endings(self, block: Block) -> tuple[Bools, Bools]:
        import numpy as np

        finish, outcome = block.get("finish_reason"), block.get("outcome")
        cut = np.zeros(block.size, dtype=bool)
        failed = np.zeros(block.size, dtype=bool)
        for reason in LENGTH_REASONS:
            if reason in finish:
                cut |= np.fromiter((f == reason for f in finish), bool, block.size)
        if "truncated" in outcome:
            cut |= np.fromiter((o == "truncated" for o in outcome), bool, block.size)
        if "failed" in outcome:
            failed = np.fromiter((o == "failed" for o in outcome), bool, block.size)
        return cut, failed

    def _add_markers(self, block: Block) -> None:
        rows = block.get("markers")
        for kind in set(map(type, rows)):
            if kind is not type(None) and not issubclass(kind, Mapping):
                bad = next(i for i, marks in enumerate(rows) if type(marks) is kind)
                raise RowError(
                    f"markers must be a mapping, not {kind.__name__}",
                    fix='use {"name": value}',
                    row=block.start + bad,
                    field="markers",
                )
        for name in dict.fromkeys(chain.from_iterable(marks for marks in rows if marks is not None)):
            try:
                values = list(map(itemgetter(name), rows))
            except (KeyError, TypeError):
                values = [None if marks is None else marks.get(name) for marks in rows]
            self._add_marker(str(name), values, block.start)
        flat = {} if block.table is None else {k: v for k, v in block.table.items() if k.startswith("markers.")}
        for key, values in flat.items():
            self._add_marker(key.removeprefix("markers."), values, block.start)

    def _add_marker(self, name: str, values: list[Any], start: int) -> None:
        shown = f"markers.{safe(name)}"
        column, _, _ = numbers(values, shown, start)
        self.markers.setdefault(name, []).append((self.read, in_unit(column, shown, start)))

    def _label(self, block: Block, label: Label, ids: list[str]) -> list[Any]:
        if isinstance(label, str):
            values = block.path(label)
        elif isinstance(label, Mapping):
            values = [label.get(t) for t in ids]
        else:
            values = block.apply(label)
        return [v if isinstance(v, str | int | float | bool | None) else repr(v) for v in values]

    def _add_context(self, block: Block, limit: Floats, ids: list[str]) -> None:
        scorers = [s if type(s) is dict or isinstance(s, Mapping) else {} for s in block.get("scorer")]
        names = [str(s.get("id") or "") for s in scorers]
        versions = [str(s.get("version") or "") for s in scorers]
        self.scorers.update(zip(names, versions, limit.tolist(), strict=True))
        for task, prompt in zip(ids, block.get("prompt"), strict=True):
            if prompt is not None and task not in self.prompts:
                self.prompts[task] = hash(prompt if isinstance(prompt, str) else repr(prompt))

    def finish(self) -> Columns:
        """Join the blocks and leave out rows whose rollout was read before."""
        import numpy as np

        empty: dict[str, Any] = {"code": np.int64, "rid": np.int64, "none": np.int64, "cut": bool, "failed": bool}
        whole = {
            name: np.concatenate(parts) if parts else np.zeros(0, dtype=empty.get(name, np.float64))
            for name, parts in self.parts.items()
        }
        markers = {}
        for name, parts in self.markers.items():
            column = np.full(self.read, np.nan)
            for at, values in parts:
                column[at : at + len(values)] = values
            markers[name] = column
        keep = self._first(whole)
        reward, limit, status = whole["reward"][keep], whole["limit"][keep], whole["none"][keep]
        passed = np.where(np.isnan(reward), np.nan, (reward >= limit - PASS_TOLERANCE.value).astype(np.float64))
        counts = np.bincount(status, minlength=len(STATUSES))
        all_kept = len(keep) == self.read
        return Columns(
            tasks=tuple(self.index),
            code=whole["code"][keep],
            reward=reward,
            passed=passed,
            read=self.read,
            not_scored={s: int(n) for s, n in zip(STATUSES[1:], counts[1:], strict=True) if n},
            truncated=whole["cut"][keep],
            failed=whole["failed"][keep],
            repeats=self.read - len(keep),
            booleans=self.booleans,
            contradictions=self.contradictions,
            markers={name: values[keep] for name, values in markers.items()},
            labels={n: v if all_kept else [v[i] for i in keep.tolist()] for n, v in self.labels.items()},
            scorers=dict(self.scorers),
            prompts=self.prompts,
        )

    def _first(self, whole: Mapping[str, Any]) -> Ints:
        import numpy as np

        rid = whole["rid"]
        named = np.flatnonzero(rid)
        _, first, group = np.unique(rid[named], return_index=True, return_inverse=True)
        if len(first) == len(named):
            return np.arange(len(rid))
        earlier = named[first[group]]
        reward = whole["reward"]
        clash = ~((reward[named] == reward[earlier]) | (np.isnan(reward[named]) & np.isnan(reward[earlier])))
        if clash.any():
            i, j = int(named[np.argmax(clash)]), int(earlier[np.argmax(clash)])
            raise RowError(
                f"the rollout of row {j} appears again with another reward ({reward[j]:g} and {reward[i]:g})",
                why="one rollout has one reward; two verdicts on it are one row with judgments",
                fix="remove the stale rows, or give each rollout its own rollout_id",
                row=i,
                field="rollout_id",
            )
        drop = named[earlier != named]
        return np.delete(np.arange(len(rid)), drop)
