"""Checks for the kinds that look at many rows: statistics, selectors, exporters, sources."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whileai_kernel.errors import WhileaiError
from whileai_kernel.protocols import FileExample, ReadProblem
from whileai_kernel.rowio import dumps_row, loads
from whileai_kernel.rows import Row
from whileai_kernel.testing.kit import Check, Subject
from whileai_kernel.testing.parts import GOLD, reference_rows

__all__ = ["EXPORTER_CHECKS", "SELECTOR_CHECKS", "SOURCE_CHECKS", "STATISTIC_CHECKS"]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# --- statistics ---


def _report(subject: Subject, rows: Any) -> dict[str, Any]:
    report: dict[str, Any] = subject.component(rows).to_dict()
    return report


def reports_as_plain_values(subject: Subject) -> None:
    """A report that is not JSON cannot be stored beside the run that it describes."""
    report = subject.component(reference_rows())
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report).strip() and "\n" not in str(report).split("\n\n")[0][:1], "the report does not print itself"


def reads_an_iterator(subject: Subject) -> None:
    """A statistic that needs a list in memory cannot read a file of a million rows."""
    rows = reference_rows()
    assert _report(subject, iter(rows)) == _report(subject, rows), "an iterator gives another report than a list"


def ignores_the_order_of_rows(subject: Subject) -> None:
    """A number that changes with the order of the file is not a number."""
    rows = reference_rows()
    turned = sorted(rows, key=lambda row: row["task_id"]), sorted(rows, key=lambda row: -row["index"])
    for other in turned:
        assert _close(_report(subject, other), _report(subject, rows)), "another order gives another report"


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))
    return bool(a == b)


def does_not_count_unscored_as_zero(subject: Subject) -> None:
    """Not scored is not wrong; booked as 0 it understates the agent."""
    rows = reference_rows(repeats=4)
    lost = [{**r, "reward": None, "status": "error"} if r["index"] == 1 else r for r in rows]
    zero = [{**r, "reward": 0.0, "status": "ok"} if r["index"] == 1 else r for r in rows]
    assert _report(subject, lost) != _report(subject, zero), "a not-scored row and a reward of 0 give one report"


def says_when_there_is_nothing(subject: Subject) -> None:
    """A number invented for no rows is believed by somebody."""
    try:
        report = _report(subject, [])
    except WhileaiError:
        return
    text = json.dumps(report)
    assert "NaN" not in text and _nothing(report), f"no rows gave {text[:200]}"


def _nothing(value: Any) -> bool:
    """Return whether a report says somewhere that there was nothing: a count of 0, or a null."""
    if isinstance(value, dict):
        return any(_nothing(v) for v in value.values())
    if isinstance(value, list):
        return any(_nothing(v) for v in value)
    return value is None or (type(value) is int and value == 0)


def statistics_leave_rows_alone(subject: Subject) -> None:
    """A component that changes the rows changes what every later one sees."""
    rows = reference_rows()
    before = copy.deepcopy(rows)
    subject.component(rows)
    assert rows == before, "the rows were changed"


STATISTIC_CHECKS: tuple[Check, ...] = (
    reports_as_plain_values,
    reads_an_iterator,
    ignores_the_order_of_rows,
    does_not_count_unscored_as_zero,
    says_when_there_is_nothing,
    statistics_leave_rows_alone,
)


# --- selectors ---


def accounts_for_every_row(subject: Subject) -> None:
    """A row that leaves without a reason is a row that nobody can ask about."""
    rows = reference_rows()
    chosen = subject.component(rows)
    ledger = list(chosen.ledger)
    assert [e.position for e in ledger] == list(range(len(rows))), "the ledger has not one entry per row, in order"
    assert sum(e.kept for e in ledger) == len(chosen.rows), "the ledger keeps another number of rows than the selection"
    assert all(e.reason for e in ledger if not e.kept), "a dropped row has no reason"
    for entry in ledger:
        row = rows[entry.position]
        assert entry.task_id == row["task_id"] and entry.rollout_id == row["rollout_id"], (
            f"entry {entry} is another row"
        )


def keeps_rows_as_they_are(subject: Subject) -> None:
    """A selection that edits rows is not a selection."""
    rows = reference_rows()
    before = copy.deepcopy(rows)
    chosen = subject.component(rows)
    kept = [rows[e.position] for e in chosen.ledger if e.kept]
    assert rows == before, "the input was changed"
    key = str
    assert sorted(map(key, kept)) == sorted(map(key, chosen.rows)), "kept rows differ from the input rows"


def keeps_no_unscored_row(subject: Subject) -> None:
    """A row without a verdict teaches whatever the default reward is."""
    chosen = subject.component(reference_rows())
    bad = [row["rollout_id"] for row in chosen.rows if row.get("reward") is None]
    assert not bad, f"kept rows that are not scored: {bad}"


def selects_the_same_twice(subject: Subject) -> None:
    """A selection that cannot be repeated cannot be explained."""
    first, second = subject.component(reference_rows()), subject.component(iter(reference_rows()))
    assert list(first.rows) == list(second.rows) and list(first.ledger) == list(second.ledger), "two runs differ"


def selects_from_nothing(subject: Subject) -> None:
    """No rows is an ordinary input, at the end of a curriculum for example."""
    chosen = subject.component([])
    assert not list(chosen.rows) and not list(chosen.ledger), "rows were made up"


SELECTOR_CHECKS: tuple[Check, ...] = (
    accounts_for_every_row,
    keeps_rows_as_they_are,
    keeps_no_unscored_row,
    selects_the_same_twice,
    selects_from_nothing,
)


# --- exporters ---


def _export(subject: Subject, rows: Any, path: Path, **options: Any) -> Any:
    return subject.component.export(rows, path, **options)


def _bytes(path: Path) -> bytes:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()) if path.exists() else []
    return b"\n".join(p.read_bytes() for p in files)


def _exportable() -> list[Row]:
    return [row for row in reference_rows() if row["status"] == "ok" and row.get("outcome") == "completed"]


def never_writes_private_data(subject: Subject) -> None:
    """A reference answer in the training file is learned by heart."""
    rows = _exportable()
    for row in rows:
        row["lineage"] = {"deep": [{"privileged": {"note": f"{GOLD}-deep"}}]}
        row["reason"] = f"expected {GOLD}-reason"
        row["evidence"] = {"expected": f"{GOLD}-evidence"}
    with _folder() as folder:
        _export(subject, rows, folder / "out.jsonl")
        assert GOLD.encode() not in _bytes(folder), "private text is in the file"


def accounts_for_what_it_leaves_out(subject: Subject) -> None:
    """A row that does not arrive in the file and is not counted is lost."""
    rows = _exportable()
    with _folder() as folder:
        report = _export(subject, rows, folder / "out.jsonl")
        assert report.written > 0, f"nothing was written: {report}"
        if "aggregates" not in (subject.attribute("capabilities") or ()):
            total = report.written + sum(report.dropped.values())
            assert total == len(rows), f"{len(rows)} rows in, {total} accounted for"


def does_not_overwrite_by_itself(subject: Subject) -> None:
    """A file that is replaced without being asked about was somebody's run."""
    rows = _exportable()
    with _folder() as folder:
        path = folder / "out.jsonl"
        path.write_text("somebody's file\n", encoding="utf-8")
        try:
            _export(subject, rows, path)
        except Exception as err:  # noqa: BLE001 - any refusal will do; what matters is the file
            del err
        assert path.read_text(encoding="utf-8") == "somebody's file\n", "the file was replaced"
        _export(subject, rows, path, overwrite=True)
        assert path.read_bytes() != b"somebody's file\n", "overwrite=True did not replace it"


def is_all_or_nothing(subject: Subject) -> None:
    """Half a file looks like a whole one to a trainer."""

    def broken() -> Iterator[Row]:
        yield from _exportable()[:3]
        raise OSError("the source broke off")

    with _folder() as folder:
        try:
            _export(subject, broken(), folder / "out.jsonl")
        except OSError:
            left = [p.name for p in folder.rglob("*")]
            assert not left, f"left behind: {left}"
            return
        raise AssertionError("the error of the source was swallowed")


def writes_the_same_bytes_twice(subject: Subject) -> None:
    """A file that differs between equal runs cannot be compared by hash."""
    with _folder() as folder:
        _export(subject, _exportable(), folder / "a.jsonl")
        _export(subject, iter(_exportable()), folder / "b.jsonl")
        assert (folder / "a.jsonl").is_file() == (folder / "b.jsonl").is_file(), "one is a file and one is not"
        if (folder / "a.jsonl").is_file():
            assert _bytes(folder / "a.jsonl") == _bytes(folder / "b.jsonl"), "two exports of the same rows differ"


def survives_a_round_trip(subject: Subject) -> str | None:
    """What a trainer reads back must be what was said."""
    rows = _exportable()
    with _folder() as folder:
        path = folder / "out.jsonl"
        report = _export(subject, rows, path)
        if hasattr(subject.component, "read"):
            back = list(subject.component.read(path))
        elif path.is_file():
            # str.splitlines also cuts at U+2028 and U+0085: the trap that escaped separators close
            back = [loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        else:
            return "does not apply: it writes a folder and has no read()"
        assert len(back) == report.written, f"wrote {report.written} records, {len(back)} read back"
        text = json.dumps(back, ensure_ascii=False)
        for word in ("Where is order A-0?", "has shipped", "get_order"):
            assert word in text, f"{word!r} is not in the file"
    return None


EXPORTER_CHECKS: tuple[Check, ...] = (
    never_writes_private_data,
    accounts_for_what_it_leaves_out,
    does_not_overwrite_by_itself,
    is_all_or_nothing,
    writes_the_same_bytes_twice,
    survives_a_round_trip,
)


# --- sources ---

_FOREIGN = {
    "empty.jsonl": b"",
    "prose.txt": b"Dear reader, this is a letter and nothing else.\n",
    "noise.bin": bytes(range(256)) * 8,
    "numbers.csv": b"a,b,c\n1,2,3\n4,5,6\n",
    "other.json": b'{"widgets": [{"w": 1}, {"w": 2}]}\n',
}


def _read(subject: Subject, path: Path) -> tuple[list[Row], list[ReadProblem]]:
    problems: list[ReadProblem] = []
    return list(subject.component.read(path, on_problem=problems.append)), problems


@contextmanager
def _example_files(subject: Subject) -> Iterator[list[tuple[FileExample, Path]]]:
    with _folder() as folder:
        out = []
        for n, example in enumerate(subject.examples()):
            path = folder / str(n) / example.name
            path.parent.mkdir()
            path.write_bytes(example.content)
            out.append((example, path))
        yield out


def knows_its_own_files(subject: Subject) -> None:
    """A file that nobody recognises has to be named by hand."""
    with _example_files(subject) as files:
        for example, path in files:
            sure = subject.component.sniff(path, example.content[:65536])
            assert 0.5 <= sure <= 1.0, f"{example.name}: sure to {sure}, expected at least 0.5"


def leaves_other_files_alone(subject: Subject) -> None:
    """A source that claims foreign files makes rows out of nothing."""
    with _folder() as folder:
        for name, content in _FOREIGN.items():
            path = folder / name
            path.write_bytes(content)
            sure = subject.component.sniff(path, content)
            assert 0.0 <= sure < 0.5, f"{name}: sure to {sure}, expected under 0.5"


def reads_every_record(subject: Subject) -> None:
    """A record that is skipped without a word biases every number that follows."""
    with _example_files(subject) as files:
        for example, path in files:
            rows, problems = _read(subject, path)
            assert not problems, f"{example.name}: {problems[0]}"
            assert len(rows) == example.rows, f"{example.name}: {len(rows)} rows, expected {example.rows}"


def makes_usable_rows(subject: Subject) -> None:
    """Rows that cannot be written, grouped or told apart cannot be used."""
    with _example_files(subject) as files:
        for example, path in files:
            rows, _ = _read(subject, path)
            for row in rows:
                dumps_row(row)
                assert isinstance(row.get("task_id"), str) and row["task_id"], f"{example.name}: a row has no task_id"
                assert row.get("status") == "ok" or row.get("reward") is None, "a reward without status ok"
            ids = [row.get("rollout_id") for row in rows]
            assert len(set(ids)) == len(ids), f"{example.name}: rollout ids repeat"


def reads_the_same_twice(subject: Subject) -> None:
    """Ids that change between readings pair nothing with nothing."""
    with _example_files(subject) as files:
        for example, path in files:
            assert _read(subject, path) == _read(subject, path), f"{example.name}: two readings differ"


def loses_only_the_broken_record(subject: Subject) -> str | None:
    """One bad record must cost that record alone."""
    checked = 0
    with _example_files(subject) as files:
        for example, path in files:
            lines = example.content.splitlines(keepends=True)
            if len(lines) < 2 or not all(line.lstrip().startswith(b"{") for line in lines):
                continue
            path.write_bytes(b"".join([lines[0], b'{"broken": \n', *lines[1:]]))
            rows, problems = _read(subject, path)
            checked += 1
            assert len(rows) == example.rows, f"{example.name}: {len(rows)} of {example.rows} rows survived"
            assert problems, f"{example.name}: the broken line was not reported"
    return None if checked else "does not apply: no example is a file of JSON lines"


def says_when_a_file_is_missing(subject: Subject) -> None:
    """An empty result for a mistyped path looks like an empty run."""
    with _folder() as folder:
        try:
            rows, _ = _read(subject, folder / "nobody.jsonl")
        except (OSError, WhileaiError):
            return
        raise AssertionError(f"a missing file gave {len(rows)} rows and no error")


SOURCE_CHECKS: tuple[Check, ...] = (
    knows_its_own_files,
    leaves_other_files_alone,
    reads_every_record,
    makes_usable_rows,
    reads_the_same_twice,
    loses_only_the_broken_record,
    says_when_a_file_is_missing,
)
