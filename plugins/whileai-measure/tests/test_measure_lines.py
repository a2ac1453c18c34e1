"""The fast way through JSON lines gives what the kernel's reader gives: rows, errors, line numbers, notes."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import RowError
from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rowio import read_rows
from whileai_measure import extract, pass_at
from whileai_measure import lines as lines_module
from whileai_measure.lines import columns_of

FIELDS = ["task_id", "reward", "extra"]
ODD = [
    b"",
    b"   \t",
    b"{broken",
    b"[1, 2]",
    b"null",
    b'{"task_id": "a", "reward": NaN}',
    b'{"task_id": "a", "reward": 1e999}',
    b'{"task_id": "a", "reward": 1, "extra": Infinity}',
    b'{"task_id": "\\ud83d", "reward": 1}',
    b'{"task_id": "a\xff", "reward": 1}',
    b'{"task_id": "a\x01", "reward": 1}',
    b'\xef\xbb\xbf{"task_id": "mark", "reward": 0}',
    b'{"task_id": "old", "schema_version": 0}',
    b'{"task_id": "new", "schema_version": 99}',
    b'{"task_id": "true", "schema_version": true}',
    b'{"task_id": "float", "schema_version": 1.0}',
    b'{"task_id": 123456789012345678901234567890, "reward": 1}',
    b'{"task_id": "big", "extra": {"deep": [123456789012345678901234567890]}}',
    b'{"task_id": "huge", "extra": 1' + b"0" * 400 + b"}",
    b'{"task_id": "digits", "extra": 1' + b"0" * 5000 + b"}",
    b'{"task_id": "small", "reward": 0.0012345678901234567}',
    b'{"task_id": "twice", "task_id": "last", "reward": 1}',
    b'{"task_id": "sep\xe2\x80\xa8line", "reward": 1}\r',
    b'{"reward": 1}',
    b'{"task_id": "deep", "extra": ' + b"[" * 1200 + b"]" * 1200 + b"}",
]
GOOD = b'{"schema_version": 1, "task_id": "t", "reward": 0.5, "extra": {"x": [1, 2.5, "\xc3\xa9"]}}'


@pytest.fixture(params=["orjson", "json"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "orjson":
        pytest.importorskip("orjson")
    else:
        monkeypatch.setitem(sys.modules, "orjson", None)
    return str(request.param)


def by_kernel(path: Path) -> tuple[list[tuple], list[ReadProblem]]:
    problems: list[ReadProblem] = []
    return [tuple(row.get(f) for f in FIELDS) for row in read_rows(path, problems.append)], problems


def by_columns(path: Path) -> tuple[list[tuple], list[ReadProblem]]:
    problems: list[ReadProblem] = []
    blocks = list(columns_of(path, FIELDS, problems.append))
    return [row for block in blocks for row in zip(*(block[f] for f in FIELDS), strict=True)], problems


def same(path: Path) -> None:
    want, got = by_kernel(path), by_columns(path)
    assert [list(map(repr, row)) for row in got[0]] == [list(map(repr, row)) for row in want[0]]
    assert got[1] == want[1]


@pytest.mark.parametrize("line", ODD, ids=lambda v: ascii(v[:40]))
@pytest.mark.parametrize("place", ["first", "middle", "alone"])
def test_each_odd_line_reads_as_by_the_kernel(parser: str, line: bytes, place: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    around = {"first": [line, GOOD], "middle": [GOOD, line, GOOD], "alone": [line]}[place]
    path.write_bytes(b"\n".join(around))
    same(path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.sampled_from([*ODD[:-1], *[GOOD] * 20]), max_size=40), chunk=st.sampled_from([1, 200, 1 << 16])
)
def test_any_file_reads_as_by_the_kernel(
    parser: str, lines: list[bytes], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "CHUNK", chunk)
        patch.setattr(lines_module, "ROWS", 7)
        same(path)


def write(path: Path, rows: list[dict]) -> Path:
    text = "".join(json.dumps({"schema_version": 1, **row}) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


ROWS = [
    {
        "task_id": f"t{i}",
        "rollout_id": f"t{i}-{j}",
        "reward": [0.0, 1.0, 0.5, None][(i + j) % 4],
        "axes": {"channel": "ab"[i % 2]},
        "markers": {"m": 0.25, "n": 1.0},
        "scorer": {"id": "verify/exact"},
        "finish_reason": "length" if j else "stop",
        "final_text": "x" * 50,
    }
    for i in range(30)
    for j in range(2)
]


@pytest.mark.parametrize("packed", [False, True])
def test_columns_of_a_file_are_those_of_its_rows(parser: str, packed: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    if packed:
        path = tmp_path / "rows.jsonl.gz"
        path.write_bytes(gzip.compress((tmp_path / "rows.jsonl").read_bytes()))
    labels = {"by": "axes.channel", "map": {"t1": "x"}}
    for options in ({}, {"markers": True, "context": True, "labels": labels}, {"labels": {"f": lambda r: r["index"]}}):
        if "f" in options.get("labels", {}):
            options["labels"] = {"f": lambda row: row["final_text"][:1]}  # a function sees the whole row
        want, got = extract(ROWS, **options), extract(path, **options)
        for name in ("tasks", "not_scored", "labels", "scorers", "prompts", "read"):
            assert getattr(got, name) == getattr(want, name), name
        assert got.code.tolist() == want.code.tolist() and got.truncated.tolist() == want.truncated.tolist()
        assert list(map(repr, got.reward.tolist())) == list(map(repr, want.reward.tolist()))
        assert {n: v.tolist() for n, v in got.markers.items()} == {n: v.tolist() for n, v in want.markers.items()}
    assert str(pass_at(path, by="axes.channel")) == str(pass_at(ROWS, by="axes.channel"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reward": "1.0"}, "reward"),
        ({"reward": 10**400}, "reward"),
        ({"task_id": ["t"]}, "task_id"),
        ({"rollout_id": 1.5}, "rollout_id"),
        ({"status": "okay"}, "status"),
        ({"threshold": 10**30}, "threshold"),
    ],
)
def test_a_bad_field_is_the_same_error_from_a_file(parser: str, change: dict, field: str, tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[0], "rollout_id": "last", **change}]
    with pytest.raises(RowError) as want:
        extract(rows)
    with pytest.raises(RowError) as got:
        extract(write(tmp_path / "rows.jsonl", rows))
    assert str(got.value) == str(want.value)
    assert (got.value.row, got.value.field) == (60, field)


def test_a_block_ends_by_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [{"task_id": "t", "extra": "y" * 5000} for _ in range(100)])
    monkeypatch.setattr(lines_module, "CHUNK", 1000)
    monkeypatch.setattr(lines_module, "BYTES", 20_000)
    sizes = [len(block["task_id"]) for block in columns_of(path, FIELDS, print)]
    assert sum(sizes) == 100 and max(sizes) <= 5
