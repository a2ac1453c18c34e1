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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whileai_kernel.defaults import PASS_TOLERANCE, REWARD_TOLERANCE, THRESHOLD
from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.rows import LENGTH_REASONS, STATUSES, task_key

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

__all__ = ["Columns", "Label", "RowsLike", "extract", "row_stream", "safe"]

RowsLike = Iterable[Mapping[str, Any]] | str | Path | Any
"""Rows, an iterator of rows, a path, or a pandas, polars or Arrow table."""

Label = str | Callable[[Mapping[str, Any]], Any] | Mapping[str, Any]
"""How a row gets a label: a dotted field (`"axes.channel"`), a function of the row, or a mapping from task ids."""

BLOCK = 50_000  # rows held at once while reading a stream; only speed and memory depend on it
FRAMES = {"pandas", "polars", "pyarrow"}


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
            records = f"{len(self.unread)} record{'s' if len(self.unread) > 1 else ''}"
            notes.append(f"{records} of the file could not be read and are left out, the first: {self.unread[0]}")
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


def safe(value: Any, limit: int = 60) -> str:
    """Return short printable text for a name: quoted only by its own marks, odd characters escaped."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(ch if ch.isprintable() and not 0xD800 <= ord(ch) < 0xE000 else ascii(ch)[1:-1] for ch in text)


class _Block:
    """Some rows as lists by field."""

    def __init__(self, rows: Sequence[Any] | None, table: Mapping[str, list[Any]] | None, start: int) -> None:
        self.rows, self.table, self.start, self.plain = rows, table, start, False
        if rows is not None:
            kinds = set(map(type, rows))
            self.plain = kinds <= {dict}
            for kind in kinds:
                if not issubclass(kind, Mapping):
                    bad = next(i for i, row in enumerate(rows) if type(row) is kind)
                    raise RowError(
                        f"a row must be a mapping, not {kind.__name__}",
                        fix="pass dicts with task_id and reward, or use make_rows for prompts and completions",
                        row=start + bad,
                    )
            self.size = len(rows)
        else:
            assert table is not None
            self.size = len(next(iter(table.values()), []))

    def get(self, name: str) -> list[Any]:
        if self.rows is None:
            assert self.table is not None
            return self.table.get(name) or [None] * self.size
        if self.plain:
            try:
                return list(map(itemgetter(name), self.rows))  # three times as fast as .get, where no row lacks it
            except KeyError:
                return [row.get(name) for row in self.rows]
        return [row.get(name) for row in self.rows]

    def path(self, dotted: str) -> list[Any]:
        if self.table is not None and dotted in self.table:
            return self.table[dotted]
        head, *rest = dotted.split(".")
        values = self.get(dotted) if not rest else self.get(head)
        for part in rest:
            values = [v.get(part) if isinstance(v, Mapping) else None for v in values]
        return values

    def apply(self, label: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
        if self.rows is not None:
            return [label(row) for row in self.rows]
        assert self.table is not None
        names = list(self.table)
        return [label(dict(zip(names, values, strict=True))) for values in zip(*self.table.values(), strict=True)]


def _blocks(source: RowsLike, unread: list[str] | None = None) -> Iterator[_Block]:
    if isinstance(source, str | Path):
        from whileai_measure.files import read_file

        source = read_file(Path(source), unread)
    top = type(source).__module__.partition(".")[0]
    if top in FRAMES and hasattr(source, "columns"):
        yield _Block(None, _frame(source, top), 0)
        return
    if isinstance(source, Mapping | bytes) or not isinstance(source, Iterable):
        raise ParameterError(
            f"rows must be a list, an iterator, a path or a table, not {type(source).__name__}",
            fix="pass a list of row dicts" if not isinstance(source, Mapping) else "wrap the single row in a list",
        )
    if isinstance(source, list | tuple):
        for start in range(0, len(source), BLOCK):
            yield _Block(source[start : start + BLOCK] if len(source) > BLOCK else source, None, start)
        return
    stream, start = iter(source), 0
    while block := list(islice(stream, BLOCK)):
        yield _Block(block, None, start)
        start += len(block)


def row_stream(source: RowsLike) -> Iterator[Mapping[str, Any]]:
    """Yield whole rows of any accepted source, for calls that read more than columns.

    Raises:
        RowError: A row is no mapping.
        ParameterError: The source is none of the accepted kinds.
    """
    for block in _blocks(source):
        if block.rows is not None:
            yield from block.rows
        elif block.table:
            names = list(block.table)
            yield from (dict(zip(names, cells, strict=True)) for cells in zip(*block.table.values(), strict=True))


def _frame(source: Any, top: str) -> dict[str, list[Any]]:
    if top == "polars":
        if type(source).__name__ == "LazyFrame":
            raise ParameterError("a LazyFrame has no rows yet", fix="call .collect() first")
        return {str(name): source[name].to_list() for name in source.columns}
    if top == "pyarrow":
        return {str(name): source.column(name).to_pylist() for name in source.column_names}
    out = {}
    for name in source.columns:
        column = source[name]
        out[str(name)] = column.astype(object).where(column.notna(), None).tolist()
    return out


def _numbers(values: list[Any], name: str, start: int) -> tuple[Floats, Bools, int]:
    """Return values as floats (None and NaN become NaN), which were NaN, and how many were booleans."""
    import numpy as np

    kinds = set(map(type, values))
    if kinds <= {float, int, type(None)}:
        try:
            out = np.array(values, dtype=np.float64)
        except OverflowError:
            kinds.add(object)  # an integer beyond float64: the loop below names its row
        else:
            nan = np.isnan(out)
            if type(None) in kinds:
                nan &= np.fromiter((v is not None for v in values), bool, len(values))
            return out, nan, 0
    booleans = 0
    out = np.full(len(values), np.nan)
    nan = np.zeros(len(values), dtype=bool)
    for i, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, bool | np.bool_):
            booleans += 1
        elif not isinstance(value, float | int | np.floating | np.integer):
            looks = isinstance(value, str) and _looks_like_number(value)
            raise RowError(
                f"{name} must be a number or null, not {type(value).__name__} {safe(value, 40)}",
                why="text is never read as a number: the writer may have meant something else" if looks else "",
                fix=f"convert the column once, for example float(row[{name!r}])"
                if looks
                else "use null for not scored",
                row=start + i,
                field=name,
            )
        try:
            out[i] = float(value)
        except OverflowError:
            out[i] = np.inf
        nan[i] = out[i] != out[i]
    return out, nan, booleans


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _in_unit(values: Floats, name: str, start: int) -> Floats:
    import numpy as np

    slack = REWARD_TOLERANCE.value
    bad = (values < -slack) | (values > 1.0 + slack)
    if bad.any():
        i = int(np.argmax(bad))
        raise RowError(
            f"{name} must lie in [0, 1], not {values[i]:g}",
            why="every estimator and interval here is for bounded values",
            fix="rescale the values (x - low) / (high - low), or use null for not scored",
            row=start + i,
            field=name,
        )
    return np.clip(values, 0.0, 1.0)


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
    for block in _blocks(source, unread):
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

    def add(self, block: _Block) -> None:
        import numpy as np

        start, ids = block.start, self._task_ids(block)
        index = self.index
        for task in dict.fromkeys(ids):
            index.setdefault(task, len(index))
        code = np.fromiter(map(index.__getitem__, ids), np.int64, block.size)
        reward, nan, booleans = _numbers(block.get("reward"), "reward", start)
        reward = _in_unit(reward, "reward", start)
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

    def _task_ids(self, block: _Block) -> list[str]:
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

    def _rollout_hashes(self, block: _Block, ids: list[str]) -> Ints:
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

    def _status(self, block: _Block, reward: Floats, nan: Bools) -> Any:
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

    def _limits(self, block: _Block) -> Floats:
        import numpy as np

        if self.threshold is not None:
            return np.full(block.size, self.threshold)
        given = block.get("threshold")
        if set(map(type, given)) == {type(None)}:
            return np.full(block.size, THRESHOLD.value)
        limit, _, _ = _numbers(given, "threshold", block.start)
        limit = _in_unit(limit, "threshold", block.start)
        return np.where(np.isnan(limit), THRESHOLD.value, limit)

    def _endings(self, block: _Block) -> tuple[Bools, Bools]:
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

    def _add_markers(self, block: _Block) -> None:
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
        numbers, _, _ = _numbers(values, shown, start)
        self.markers.setdefault(name, []).append((self.read, _in_unit(numbers, shown, start)))

    def _label(self, block: _Block, label: Label, ids: list[str]) -> list[Any]:
        if isinstance(label, str):
            values = block.path(label)
        elif isinstance(label, Mapping):
            values = [label.get(t) for t in ids]
        else:
            values = block.apply(label)
        return [v if isinstance(v, str | int | float | bool | None) else repr(v) for v in values]

    def _add_context(self, block: _Block, limit: Floats, ids: list[str]) -> None:
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
