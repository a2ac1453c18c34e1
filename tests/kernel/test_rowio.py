"""Every line of the table in `rowio`: what is written, what is read back, what is refused and how it is named."""

from __future__ import annotations

import gzip
import json
import math
import os
import stat
from collections import OrderedDict, defaultdict
from enum import IntEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import RowError, SchemaVersionError
from whileai_kernel.rowio import (
    MIGRATIONS,
    atomic_file,
    check_json,
    dumps,
    dumps_row,
    loads,
    migrate,
    read_rows,
    write_rows,
)
from whileai_kernel.rows import SCHEMA_VERSION

BASE = {"schema_version": 1, "task_id": "t"}


def written(tmp_path: Path, *rows: dict, name: str = "rows.jsonl") -> bytes:
    write_rows(tmp_path / name, rows)
    return (tmp_path / name).read_bytes()


def reread(tmp_path: Path, *rows: dict, name: str = "rows.jsonl") -> list[dict]:
    written(tmp_path, *rows, name=name)
    return list(read_rows(tmp_path / name))


# --- text ---


def test_line_separators_are_escaped_and_come_back(tmp_path):
    rows = [{"t": "a\u2028b"}, {"t": "c\u0085d"}, {"t": "e\u2029\u000bf\fg"}]
    raw = written(tmp_path, *rows)
    for bad in (b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85"):
        assert bad not in raw
    assert len(raw.decode("utf-8").splitlines()) == 3
    assert [r["t"] for r in read_rows(tmp_path / "rows.jsonl")] == [r["t"] for r in rows]


def test_separators_in_keys_are_escaped_too(tmp_path):
    assert reread(tmp_path, {"a\u2028\u0085b": 1})[0]["a\u2028\u0085b"] == 1
    assert dumps({"\u2029": 1}) == '{"\\u2029":1}'


def test_raw_separators_of_foreign_files_are_inside_the_row(tmp_path):
    path = tmp_path / "foreign.jsonl"
    path.write_bytes('{"t": "a\u2028b\u0085"}\n{"t": "c"}\n'.encode())
    assert [r["t"] for r in read_rows(path)] == ["a\u2028b\u0085", "c"]


@pytest.mark.parametrize("lone", ["\ud83d", "\ude00", "a\ud83d", "\ude00\ud83d", "\ud83d\\ude00"])
def test_lone_surrogate_comes_back_as_itself(tmp_path, lone):
    row = {**BASE, "prompt": lone, lone: {"deep": [lone]}}
    raw = written(tmp_path, row)
    raw.decode("utf-8")
    assert list(read_rows(tmp_path / "rows.jsonl")) == [row]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"prompt": "x\ud83d\ude00"}, "prompt"),
        ({"a": [{"b": "\ud83d\ude00"}]}, "a[0].b"),
        ({"a": {"\ud83d\ude00": 1}}, "a"),
    ],
)
def test_surrogate_pair_is_refused(row, field):
    with pytest.raises(RowError, match="surrogate pair") as caught:
        dumps_row(row, 7)
    assert (caught.value.row, caught.value.field) == (7, field)


def test_surrogates_side_by_side_in_two_texts_are_no_pair():
    value = ["\ud83d", "\ude00", {"\ud83d": "\ude00"}]
    assert loads(dumps(value)) == value


def test_emoji_and_every_plane_stay_raw_utf8(tmp_path):
    text = "é 介绍 🤗 ✓ \U0010ffff"
    assert text.encode() in written(tmp_path, {"t": text})
    assert reread(tmp_path, {"t": text})[0]["t"] == text


def test_ten_megabytes_of_text(tmp_path):
    text = 'ab\u2028\n"\\é' * (10_000_000 // 7)
    assert reread(tmp_path, {"t": text})[0]["t"] == text


def test_line_ends_blank_lines_and_byte_order_mark(tmp_path):
    path = tmp_path / "crlf.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"t": 1}\r\n{"t": 2}\r\n\r\n  \n{"t": 3}')
    assert [r["t"] for r in read_rows(path)] == [1, 2, 3]


def test_byte_order_mark_in_the_middle_is_no_json():
    with pytest.raises(RowError, match="line 2"):
        list(read_rows(['{"t": 1}', '\ufeff{"t": 2}']))


def test_written_rows_end_with_one_line_feed(tmp_path):
    raw = written(tmp_path, {"a": 1}, {"b": "x\r\ny"})
    assert raw.count(b"\n") == 2 and raw.endswith(b"\n") and b"\r" not in raw


# --- numbers ---


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_not_finite_is_refused_with_its_place(number):
    with pytest.raises(RowError, match="not a JSON number") as caught:
        dumps_row({**BASE, "usage": {"a": [1, {"b": number}]}}, 3)
    assert (caught.value.row, caught.value.field) == (3, "usage.a[1].b")
    assert str(caught.value).startswith("row 3 field usage.a[1].b: ")


OVERFLOWS = ["1e999", "-1e999", "1E+999", "1e0999", "1" + "0" * 400 + ".0", "1" + "0" * 250 + "e99", "9" * 299 + "e10"]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", *OVERFLOWS])
def test_not_finite_in_a_file_is_refused(text):
    with pytest.raises(ValueError):
        loads(f'{{"a": [{text}]}}')
    with pytest.raises(RowError, match=r"<lines> line 1: "):
        list(read_rows([f'{{"a": {text}}}']))


@pytest.mark.parametrize("number", [1.7976931348623157e308, 5e-324, -0.0, 1e22, 0.1 + 0.2, 1e-400])
def test_floats_come_back_bit_for_bit(number):
    back = loads(dumps([number]))[0]
    assert back == number and math.copysign(1, back) == math.copysign(1, number)


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64 - 1, -(2**64), 10**4299])
def test_integers_beyond_64_bits_are_exact(tmp_path, number):
    back = reread(tmp_path, {"n": number})[0]["n"]
    assert back == number and type(back) is int


def test_integers_beyond_pythons_limit_are_refused():
    with pytest.raises(RowError, match="more digits than Python writes") as caught:
        dumps_row({"n": [10**5000]}, 0)
    assert caught.value.field == "n[0]"
    with pytest.raises(RowError, match="line 1"):
        list(read_rows(['{"n": ' + "9" * 5000 + "}"]))


# --- shapes ---


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize("key", [1, 1.5, True, None, (1, 2), Level.LOW, b"k"])
@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: {"a": d}, lambda d: {"a": [0, (d,)]}, lambda d: {"a": OrderedDict(b=d)}]
)
def test_keys_that_are_not_text_are_refused(key, wrap):
    with pytest.raises(RowError, match="is not text"):
        dumps_row(wrap({"ok": 1, key: 2}))


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), 1j, Path("x"), range(3)])
def test_objects_that_are_not_json_are_refused(value):
    with pytest.raises(RowError, match="is not a JSON value") as caught:
        dumps_row({"a": {"b": [None, value]}}, 2)
    assert (caught.value.row, caught.value.field) == (2, "a.b[1]")


def test_the_first_of_two_faults_is_named():
    with pytest.raises(RowError) as caught:
        dumps_row({"a": [1, {"b": math.nan}], "c": object()})
    assert caught.value.field == "a[1].b"


def test_tuples_are_arrays_and_dict_kinds_are_objects():
    assert dumps({"a": (1, (2,))}) == '{"a":[1,[2]]}'
    assert dumps(OrderedDict(a=defaultdict(int, b=1))) == '{"a":{"b":1}}'
    assert dumps([Level.LOW]) == "[1]"


@pytest.mark.parametrize("value", [3, "x", None, True, 1.5, [], {}, ()])
def test_dumps_takes_any_json_value(value):
    assert json.loads(dumps(value)) == (list(value) if isinstance(value, tuple) else value)


def cycles():
    a: dict = {}
    a["self"] = a
    b: list = []
    b.append(b)
    c: dict = {"x": [{"y": ()}]}
    c["x"][0]["y"] = (c,)
    return [a, {"l": b}, c]


@pytest.mark.parametrize("which", range(3))
def test_cycles_are_refused(which):
    with pytest.raises(RowError, match="contains itself"):
        dumps_row(cycles()[which], 0)


def test_shared_parts_are_no_cycle():
    part = {"a": [1]}
    assert loads(dumps([part, part, {"b": part}])) == [part, part, {"b": part}]


def test_deep_nesting_is_refused_on_both_sides():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RowError):
        dumps_row({"a": deep})
    with pytest.raises(RowError, match="line 1"):
        list(read_rows(['{"a":' + "[" * 100_000 + "]" * 100_000 + "}"]))
    unwind(deep)


def unwind(deep: list) -> None:
    while deep:
        deep = deep.pop()


def test_moderate_nesting_is_kept():
    deep: list = []
    for _ in range(400):
        deep = [deep]
    assert loads(dumps(deep)) == deep


@pytest.mark.parametrize("row", [None, [], "text", 3])
def test_a_row_is_a_mapping(row):
    with pytest.raises(RowError, match="must be a mapping"):
        dumps_row(row, 5)


def test_check_json_agrees_with_dumps():
    check_json({"a": [1, "x", None, (True, 2.5)]})
    with pytest.raises(RowError) as caught:
        check_json([object()], "rows[3].usage")
    assert caught.value.field == "rows[3].usage[0]"


# --- versions and unknown keys ---


def test_unknown_keys_and_their_order_survive(tmp_path):
    row = {"schema_version": 1, "zeta": {"y": 1, "x": [None]}, "task_id": "t", "alpha": ""}
    assert list(reread(tmp_path, row)[0].items()) == list(row.items())


def test_a_row_without_a_version_is_current(tmp_path):
    assert dumps_row({"a": 1}) == '{"schema_version":1,"a":1}'
    assert list(read_rows(['{"a": 1}'])) == [{"a": 1}]


def test_a_newer_version_names_the_upgrade():
    with pytest.raises(SchemaVersionError, match="pip install -U whileai-kernel") as caught:
        list(read_rows(['{"schema_version": 1}', '{"schema_version": 2}']))
    assert "<lines> line 2" in str(caught.value) and "newer" in caught.value.why


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", True, None, [1]])
def test_what_is_no_version_is_refused(version):
    with pytest.raises(SchemaVersionError, match="is no version"):
        list(read_rows([json.dumps({"schema_version": version})]))


def test_older_versions_are_migrated_step_by_step():
    chain = {
        1: lambda row: {**row, "b": row["a"] + 1},
        2: lambda row: {k: v for k, v in row.items() if k != "a"},
    }
    assert migrate({"schema_version": 1, "a": 1, "x": 0}, version=3, migrations=chain) == {
        "schema_version": 3,
        "b": 2,
        "x": 0,
    }
    assert migrate({"schema_version": 2, "a": 1}, version=3, migrations=chain) == {"schema_version": 3}
    same = {"schema_version": 3, "a": 1}
    assert migrate(same, version=3, migrations=chain) is same


def test_every_older_version_has_a_migration():
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))


# --- problems ---


BAD_LINES = [
    "{not json",
    "[1, 2]",
    '"text"',
    "7",
    "null",
    '{"a": 1}{"b": 2}',
    '{"a": NaN}',
    '{"schema_version": 9}',
    "{'a': 1}",
]


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_raises_or_costs_itself_alone(tmp_path, bad):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"t": 1}}\n\n{bad}\n{{"t": 2}}\n', encoding="utf-8", newline="\n")
    with pytest.raises(RowError) as caught:
        list(read_rows(path))
    assert f"{path} line 3: " in str(caught.value)
    problems: list = []
    assert [r["t"] for r in read_rows(path, problems.append)] == [1, 2]
    assert [(p.path, p.where) for p in problems] == [(str(path), "line 3")]
    assert problems[0].message


def test_bytes_that_are_not_utf8_cost_their_line_alone(tmp_path):
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"t": 1}\n{"t": "caf\xe9"}\n{"t": 3}\n')
    with pytest.raises(RowError, match=r"line 2: .*utf-8"):
        list(read_rows(path))
    problems: list = []
    assert [r["t"] for r in read_rows(path, problems.append)] == [1, 3]
    assert [p.where for p in problems] == ["line 2"]


def test_reading_is_lazy():
    def lines():
        yield '{"t": 1}'
        raise AssertionError("read too far")

    assert next(iter(read_rows(lines())))["t"] == 1


def test_a_missing_file_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_rows(tmp_path / "nothing.jsonl"))


# --- files ---


def test_gz_is_deterministic_and_read_by_content(tmp_path):
    rows = [{"t": "x" * 1000, "n": i} for i in range(50)]
    first = written(tmp_path, *rows, name="a.jsonl.gz")
    second = written(tmp_path, *rows, name="b.jsonl.gz")
    assert first == second and first[:2] == b"\x1f\x8b"
    assert gzip.decompress(first) == written(tmp_path, *rows)
    (tmp_path / "c.jsonl").write_bytes(first)
    assert list(read_rows(tmp_path / "c.jsonl")) == list(read_rows(tmp_path / "rows.jsonl"))


def test_a_cut_gz_gives_its_rows_and_then_the_fault(tmp_path):
    import random

    noise = random.Random(0)
    rows = [{"t": noise.random(), "u": noise.random()} for _ in range(5000)]
    raw = written(tmp_path, *rows, name="a.jsonl.gz")
    (tmp_path / "a.jsonl.gz").write_bytes(raw[: len(raw) // 2])
    problems: list = []
    got = list(read_rows(tmp_path / "a.jsonl.gz", problems.append))
    assert got == [{"schema_version": 1, **r} for r in rows[: len(got)]] and len(got) > 1000
    assert problems
    with pytest.raises(RowError, match=r"a\.jsonl\.gz"):
        list(read_rows(tmp_path / "a.jsonl.gz"))


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"t": "old"}])
    before = path.read_bytes()

    def rows():
        yield {"t": "new"}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(path, rows())
    with pytest.raises(RowError) as caught:
        write_rows(path, [{"t": 1}, {"t": math.nan}])
    assert (caught.value.row, caught.value.field) == (1, "t")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("name", ["new.jsonl", "new.jsonl.gz"])
def test_a_write_that_fails_makes_no_file(tmp_path, name):
    with pytest.raises(RowError):
        write_rows(tmp_path / name, [{"t": object()}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="POSIX limits")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(child, tmp_path):
    program = """
import json, os, resource, signal
from whileai_kernel.rowio import write_rows
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
os.chdir(%r)
write_rows("rows.jsonl", [{"t": "old"}])
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
try:
    write_rows("rows.jsonl", ({"t": "x" * 1000} for _ in range(10_000)))
except OSError as err:
    print(json.dumps([err.errno is not None, os.listdir(), open("rows.jsonl", encoding="utf-8").read()]))
"""
    assert child(program % str(tmp_path)).answer == [True, ["rows.jsonl"], '{"schema_version":1,"t":"old"}\n']


def test_overwrite_false_keeps_the_file_and_reads_no_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert write_rows(path, [{"t": 1}], overwrite=False) == 1

    def rows():
        raise AssertionError("a row was asked for")
        yield {}

    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_rows(path, rows(), overwrite=False)
    assert [r["t"] for r in read_rows(path)] == [1]


def test_folders_are_made_and_the_count_is_returned(tmp_path):
    path = tmp_path / "a" / "b" / "rows.jsonl"
    assert write_rows(path, ({"t": i} for i in range(3))) == 3
    assert write_rows(path, []) == 0 and path.read_bytes() == b""
    assert list(read_rows(path)) == []


def test_long_file_names_work(tmp_path):
    path = tmp_path / ("é" * 100 + ".jsonl")
    assert write_rows(path, [{"t": 1}]) == 1
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_permissions_follow_the_umask_and_the_old_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    old = os.umask(0o027)
    try:
        write_rows(path, [{"t": 1}])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_rows(path, [{"t": 2}])
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege")
def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    write_rows(real, [{"t": 1}])
    link.symlink_to(real)
    write_rows(link, [{"t": 2}])
    assert link.is_symlink() and [r["t"] for r in read_rows(real)] == [2]


def test_atomic_file_shows_nothing_before_its_end(tmp_path):
    path = tmp_path / "x.bin"
    with atomic_file(path) as out:
        out.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc"


def test_the_platform_encoding_does_not_matter(child, tmp_path):
    program = """
import json, sys
from whileai_kernel.rowio import read_rows, write_rows
text = "\\u00e9 \\u4ecb\\u7ecd \\U0001f917 \\u2713"
write_rows(sys.argv[0] and %r, [{"t": text}])
print(json.dumps([next(read_rows(%r))["t"] == text, sys.flags.utf8_mode]))
"""
    path = str(tmp_path / "x.jsonl")
    for locale in ("C", "POSIX", "en_US.ISO-8859-1"):
        done = child(program % (path, path), LC_ALL=locale, LANG=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert done.answer == [True, 0]


# --- properties ---


def json_values(max_leaves: int = 25) -> st.SearchStrategy:
    text = st.text(st.characters(), max_size=12) | st.text(
        st.sampled_from('a\u0085\u2028\u2029\ud83d\n"\\\x0b\x7f'), max_size=6
    )
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.integers(min_value=-(10**400), max_value=10**400)
        | st.floats(allow_nan=False, allow_infinity=False)
        | text
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=max_leaves,
    )


def same(a: object, b: object) -> bool:
    """Equal in type and value, so that 1, 1.0 and True differ."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


@given(json_values())
def test_any_json_value_comes_back_the_same_or_is_refused(value):
    line = dumps(value)
    assert len(line.splitlines()) <= 1
    assert same(loads(line), value)
    assert dumps(loads(line)) == line


@given(st.lists(st.dictionaries(st.text(max_size=5), json_values(6), max_size=4), max_size=4))
def test_write_read_write_is_byte_stable(tmp_path_factory, rows):
    for row in rows:
        row.pop("schema_version", None)
    folder = tmp_path_factory.mktemp("stable")
    assert write_rows(folder / "a", rows) == len(rows)
    assert write_rows(folder / "b", read_rows(folder / "a")) == len(rows)
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


@given(json_values(10))
def test_what_dumps_takes_check_json_takes(value):
    check_json(value)


@given(
    st.recursive(
        json_values(4) | st.floats() | st.binary(max_size=3),
        lambda i: st.lists(i, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), i, max_size=3),
    )
)
def test_dumps_and_check_json_refuse_the_same(value):
    try:
        dumps(value)
    except RowError:
        with pytest.raises(RowError):
            check_json(value)
    else:
        check_json(value)
