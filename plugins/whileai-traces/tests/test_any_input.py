"""Whatever a record holds, a source yields rows or reports a problem; it never raises and never makes unusable rows."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whileai_kernel import entries, make
from whileai_kernel.rowio import dumps_row
from whileai_traces.formats.examples import examples_of

NAMES = sorted(e.name for e in entries("sources") if e.plugin.name == "traces")
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.just("[{"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a record."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            found += places(inner, (*path, n))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    out = copy.deepcopy(value)
    node = out
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = new
    return out


def first_record(name: str) -> Any:
    text = examples_of(name)[0].content.decode()
    return json.loads(text if name == "inspect" else text.split("\n")[0])


def check(name: str, record: Any) -> None:
    """Read a record twice in one file: whatever it holds, each row is usable."""
    problems: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_text(json.dumps(record) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
        source = make("sources", f"traces/{name}")
        assert 0.0 <= source.sniff(path, path.read_bytes()) <= 1.0
        rows = list(source.read(path, on_problem=problems.append))
    for row in rows:
        dumps_row(row)
        assert row.get("reward") is None or row.get("status", "ok") == "ok" or name == "rows"
        assert isinstance(row.get("task_id", ""), str | int) or name == "rows"


@pytest.mark.parametrize("name", NAMES)
def test_each_value_of_a_record_replaced_by_a_value_of_another_type(name: str) -> None:
    """What a random draw may miss: every place of the record, once with each of these."""
    record = first_record(name)
    for path in places(record):
        for value in (False, 0, "", [], {}, [False]):
            check(name, replaced(record, path, value))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_record_with_junk_anywhere_is_read_or_reported(name: str, data: st.DataObject) -> None:
    record = first_record(name)
    for _ in range(data.draw(st.integers(1, 2))):
        record = replaced(record, data.draw(st.sampled_from(places(record))), data.draw(JUNK))
    check(name, record)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(junk=st.lists(JUNK, min_size=1, max_size=3))
def test_records_that_are_not_of_the_format_are_reported(name: str, junk: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_text("".join(json.dumps(j) + "\n" for j in junk), encoding="utf-8")
        source = make("sources", f"traces/{name}")
        assert 0.0 <= source.sniff(path, path.read_bytes()) <= 1.0
        list(source.read(path, on_problem=lambda p: None))
