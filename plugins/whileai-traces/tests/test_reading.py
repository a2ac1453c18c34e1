"""Files, compression, damage, detection and the front door, without any particular format."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel import make
from whileai_kernel.errors import ParameterError, RowError, SchemaVersionError, UnknownNameError
from whileai_kernel.rowio import write_rows
from whileai_kernel.rows import make_rows
from whileai_traces import detect, iter_rows, read
from whileai_traces.documents import document_records
from whileai_traces.files import first_records, json_records, read_head

CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


def collect(path: Path) -> tuple[list[tuple[str, object]], list[str]]:
    problems: list[str] = []
    found = list(json_records(path, lambda p: problems.append(f"{p.where}: {p.message}")))
    return found, problems


def test_a_damaged_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n\n\xff\xfe{}\n{"a": 4}\r\n')
    found, problems = collect(path)
    assert found == [("line 1", {"a": 1}), ("line 5", {"a": 4})]
    assert [p.split(":")[0] for p in problems] == ["line 2", "line 4"]


def test_a_damaged_first_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"a": oops}\n{"a": 2}\n', encoding="utf-8")
    found, problems = collect(path)
    assert [r for _, r in found] == [{"a": 2}]
    assert problems[0].startswith("line 1: is not JSON")


@pytest.mark.parametrize("text", ["a\u2028b", "c\u0085d", "e\u2029\x0bf\x0cg"])
def test_line_separators_inside_strings_do_not_split_records(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"t": text}, ensure_ascii=False) + "\n" + '{"t": "c"}\n', encoding="utf-8", newline="\n")
    found, problems = collect(path)
    assert [r for _, r in found] == [{"t": text}, {"t": "c"}]
    assert not problems


def test_crlf_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"t": 1}\r\n{"t": 2}\r\n\n')
    assert [r for _, r in collect(path)[0]] == [{"t": 1}, {"t": 2}]


def test_an_array_with_a_damaged_element_gives_the_others_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text('[\n{"a": "x,]}"},\n{"a": tru},\n{"a": 3}\n]', encoding="utf-8")
    found, problems = collect(path)
    assert [r for _, r in found] == [{"a": "x,]}"}, {"a": 3}]
    assert problems[0].startswith("item 2 (line 3)")


def test_an_array_that_is_cut_off_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text('[{"a": 1}, {"a": {"b": [1, 2]}}, {"a": "cut', encoding="utf-8")
    found, problems = collect(path)
    assert [r for _, r in found] == [{"a": 1}, {"a": {"b": [1, 2]}}]
    assert len(problems) == 1


def test_indented_objects_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text("\n".join(json.dumps({"n": n, "x": {"y": n}}, indent=4) for n in range(3)), encoding="utf-8")
    assert [r["n"] for _, r in collect(path)[0]] == [0, 1, 2]  # type: ignore[index]


def test_nan_is_kept_as_text_and_is_no_reward(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({**CHAT, "reward": float("nan")}) + "\n" + json.dumps(CHAT), encoding="utf-8")
    rows = read(path)
    assert (rows[0]["reward"], rows[0]["status"], rows[0]["evidence"]["recorded"]) == (None, "invalid", "NaN")


@given(st.lists(st.dictionaries(st.text(max_size=4), st.integers() | st.text() | st.none(), max_size=3), min_size=1))
def test_records_of_an_array_are_the_same_whether_read_whole_or_split(records: list[dict[str, object]]) -> None:
    text = json.dumps(records, ensure_ascii=False)
    assert (
        first_records(text.encode("utf-8", errors="surrogatepass"), limit=len(records)) == records
        or "\ud800" <= max(text) <= "\udfff"
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def parsed(raw: bytes, size: int) -> tuple[list[object], list[str]]:
    problems: list[str] = []
    found = document_records(
        Path("x"), io.BytesIO(raw), lambda p: problems.append(f"{p.where}: {p.message}"), size=size
    )
    return [record for _, record in found], problems


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 0, 2]), st.integers(1, 40), st.booleans())
def test_an_array_is_the_same_however_much_is_read_at_a_time(
    records: list[object], indent: int | None, size: int, ascii_only: bool
) -> None:
    text = json.dumps(records, indent=indent, ensure_ascii=ascii_only)
    found, problems = parsed(text.encode("utf-8", errors="replace"), size)
    whole = json.loads(text.encode("utf-8", errors="replace"))
    is_chat = bool(whole) and all(isinstance(r, dict) and isinstance(r.get("role"), str) for r in whole)
    assert found == ([whole] if is_chat else whole)
    assert problems == []
    several = [{"first": 1}, *whole]
    assert parsed(" ".join(map(json.dumps, several)).encode(), size) == (several, [])


DAMAGE = {
    "a word": (r"true", "tru"),
    "a missing quote": (r'"text": "', '"text": '),
    "a quote too many": (r'"text": "', '"text": ""'),
    "a missing bracket": (r"\}(\s*)\](\s*)\}", r"\1]\2}"),
    "a bracket too many": (r"\}(\s*)\]", r"}}\1]"),
    "a missing comma": (r',(\s*)"done"', r'\1"done"'),
    "a line break in a string": (r'"text": "', '"text": "a\nb'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [7, 100, 1 << 20])
def test_a_damaged_element_of_an_array_costs_that_element_alone(
    damage: tuple[str, str], indent: int | None, size: int
) -> None:
    records = [
        {"id": n, "text": f"a, ]}} {n}", "done": True, "inner": [{"id": "x", "deep": [{"text": "y"}]}]}
        for n in range(7)
    ]
    pieces = [json.dumps(r, indent=indent) for r in records]
    for place in (0, 3, 6):
        broken = re.sub(damage[0], damage[1], pieces[place], count=1)
        with pytest.raises(ValueError, match="line"):
            json.loads(broken)
        found, problems = parsed(f"[{', '.join([*pieces[:place], broken, *pieces[place + 1 :]])}]".encode(), size)
        assert found == records[:place] + records[place + 1 :], (place, problems)
        assert len(problems) == 1
        assert problems[0].startswith(f"item {place + 1} (line ")


def test_memory_holds_a_piece_of_an_array_and_not_the_array(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "runs.json"
    for indent in (None, 1):
        with path.open("w", encoding="utf-8") as out:
            record = json.dumps({**CHAT, "pad": "x" * 5000}, indent=indent)
            out.write("[" + ",".join([record] * 2000) + "]")
        assert path.stat().st_size > 10_000_000
        tracemalloc.start()
        count = sum(1 for _ in json_records(path, print))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 2000
        # one line of the whole file is looked at to tell JSON Lines from an array, and freed before reading
        assert peak < 26_000_000 if indent is None else peak < 6_000_000


def test_text_after_an_array_and_an_array_that_is_not_closed_are_reported() -> None:
    assert parsed(b'[{"a": 1}] {"b": 2}', 4)[1] == ["line 1: text follows the array, and was not read"]
    assert parsed(b'[{"a": 1},\n', 4) == ([{"a": 1}], ["line 2: the array is not closed: the file is cut off"])
    assert parsed(b'[{"a": 1}}, {"a": 2}]', 4)[0] == [{"a": 1}, {"a": 2}]
    found, problems = parsed(b'[{"a": "\xff"}, {"a": "\xc3\xa9"}]', 3)
    assert found == [{"a": "\ufffd"}, {"a": "\u00e9"}]
    assert problems == ["byte 8: is not UTF-8: invalid start byte; the bytes were replaced"]
    assert parsed('[{"a": "\u00e9"}]'.encode("utf-16"), 3) == ([{"a": "\u00e9"}], [])
    assert parsed(("[" * 100_000).encode(), 1 << 20)[0] == []


def test_gzip_and_zstd_are_known_by_content(tmp_path: Path) -> None:
    raw = (json.dumps(CHAT) + "\n").encode() * 3
    plain, packed = tmp_path / "a.jsonl", tmp_path / "no-suffix"
    plain.write_bytes(raw)
    packed.write_bytes(gzip.compress(raw))
    assert read(packed).rows == [{**r, "lineage": {**r["lineage"], "file": "no-suffix"}} for r in read(plain).rows]
    assert make("sources", "traces/chat").sniff(packed, packed.read_bytes()) == make("sources", "traces/chat").sniff(
        plain, raw
    )
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "c.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(raw))
    assert len(read(tmp_path / "c.jsonl.zst")) == 3
    assert read_head(tmp_path / "c.jsonl.zst", 5) == raw[:5]
    half = raw.index(b"\n") + 1  # a file that was appended to has a frame for each part
    frames = [zstandard.ZstdCompressor().compress(part) for part in (raw[:half], raw[half:])]
    (tmp_path / "d.jsonl.zst").write_bytes(b"".join(frames))
    assert len(read(tmp_path / "d.jsonl.zst")) == 3


def test_unknown_content_says_what_was_tried_and_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"colour": "red"}\n{"colour": "blue"}\n', encoding="utf-8")
    with pytest.raises(RowError) as err:
        read(path)
    assert "traces/tau_bench" in str(err.value)
    assert "colour" in str(err.value)
    assert "format=" in str(err.value)


def test_an_unknown_format_and_a_missing_file_say_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    with pytest.raises(UnknownNameError, match="tau_bench"):
        read(path, format="tau-bench")
    with pytest.raises(ParameterError, match="no file"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(ParameterError, match="no file matches"):
        read(str(tmp_path / "absent-*.jsonl"))


def test_folders_and_patterns_and_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.jsonl", "deep/b.jsonl"):
        (tmp_path / name).write_text(json.dumps(CHAT) + "\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    data = read(tmp_path)
    assert len(data) == 2
    assert [f["path"] for f in data.provenance["files"]] == ["a.jsonl", "b.jsonl"]
    assert any("notes.txt" in w for w in data.warnings)
    assert len(read(str(tmp_path / "**" / "*.jsonl"))) == 2


def test_rollouts_of_one_task_in_two_files_are_numbered_on(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text((json.dumps({**CHAT, "task_id": "t"}) + "\n") * 2, encoding="utf-8")
    assert [(r["task_id"], r["index"]) for r in read(tmp_path)] == [("t", 0), ("t", 1), ("t", 2), ("t", 3)]


def test_the_same_id_for_two_tasks_in_two_files_is_kept_apart(tmp_path: Path) -> None:
    for name in ("airline", "retail"):
        run = {
            "task_id": 0,
            "reward": 1.0,
            "traj": [{"role": "user", "content": name}],
            "info": {"task": {"instruction": name}},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps([run]), encoding="utf-8")
    data = read(tmp_path)
    assert [r["task_id"] for r in data] == ["0", "retail/0"]
    assert any("retail.json" in w for w in data.warnings)


def test_a_file_of_refused_records_is_an_error_not_an_empty_set(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"messages": [{"role": "martian", "content": "x"}]}\n' * 2, encoding="utf-8")
    with pytest.raises(RowError, match="not one row"):
        read(path, format="chat")


def test_rows_keep_unknown_keys_and_are_read_from_every_shape(tmp_path: Path) -> None:
    rows = make_rows(["a", "a", "b"], ["x", "y", "z"], [1, 0, None])
    rows[0]["mine"] = {"deep": [1, "\u2028"]}
    path = tmp_path / "rows.jsonl"
    write_rows(path, rows)
    assert detect(path).format == "traces/rows"
    assert read(path).rows == rows
    assert read(rows).rows == rows
    assert list(iter_rows(path)) == rows


def test_a_newer_schema_version_is_reported_with_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"schema_version": 99, "task_id": "t", "prompt": "p", "final_text": "x", "reward": 1, "markers": {}}\n',
        encoding="utf-8",
    )
    with pytest.raises(SchemaVersionError) as err:
        read(path)
    assert "pip install -U whileai-kernel" in str(err.value)


def test_records_at_hand_are_detected_too() -> None:
    data = read([CHAT, CHAT])
    assert [r["index"] for r in data] == [0, 1]
    assert data.provenance["files"][0]["format"] == "traces/chat"


def test_reading_does_not_depend_on_the_platform_encoding(tmp_path: Path) -> None:
    text = "\u00e9 \u4ecb\u7ecd \U0001f917 \u2713"
    path = tmp_path / "runs.jsonl"
    record = {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}]}
    path.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    code = f"from whileai_traces import read; print(ascii(read({str(path)!r})[0]['prompt']))"
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ascii(text)


def test_importing_the_package_and_its_light_module_loads_nothing_heavy() -> None:
    code = (
        "import sys, whileai_traces, whileai_traces.plugin\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'pydantic', 'numpy', 'pyarrow', 'zstandard'}))\n"
        "print('whileai_traces.reading' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["[]", "False"]
