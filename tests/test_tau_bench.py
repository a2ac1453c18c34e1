"""Recorded runs of a real agent, end to end: read, measure, select, export; from Python and from the shell.

The file is tau-bench's own record of an airline agent; the numbers are those of its published table.
"""

from __future__ import annotations

import json
import re

import pytest

PUBLISHED = {1: 0.420, 2: 0.273, 3: 0.220, 4: 0.200}


@pytest.fixture(scope="module")
def recorded(shared_data):
    return shared_data / "tau_bench_airline_gpt4o.json"


@pytest.fixture(scope="module")
def data(recorded):
    import whileai as wai

    return wai.read(recorded)


def test_two_hundred_rows_in_fifty_tasks(data, recorded):
    raw = json.loads(recorded.read_text(encoding="utf-8"))
    rows = list(data)
    assert len(rows) == len(raw) == 200
    assert len({row["task_id"] for row in rows}) == 50
    assert sorted(row["reward"] for row in rows) == sorted(float(record["reward"]) for record in raw)
    assert all(row["status"] == "ok" for row in rows)


def test_messages_are_whole_and_calls_are_paired(data, recorded):
    from whileai_kernel.messages import tool_calls, validate_messages

    raw = json.loads(recorded.read_text(encoding="utf-8"))
    calls = [call for row in data for call in tool_calls(row["messages"])]
    made = sum(len(message.get("tool_calls") or []) for record in raw for message in record["traj"])
    answered = sum(message["role"] == "tool" for record in raw for message in record["traj"])
    assert len(calls) == made
    assert sum(call.result is not None for call in calls) == answered
    assert all(not validate_messages(row["messages"], ends_on_call=True) for row in data)


def test_published_table_with_intervals(data):
    import whileai as wai

    report = wai.pass_at(data)
    shown = str(report)
    for k in (1, 4):
        name = "pass@1" if k == 1 else f"pass^{k}"
        found = re.search(re.escape(name) + r" (\d\.\d+) \[(\d\.\d+)\.\.(\d\.\d+)\]", shown)
        assert found, shown
        value, low, high = map(float, found.groups())
        assert abs(value - PUBLISHED[k]) < 0.006
        assert low < PUBLISHED[k] < high
    for k, value in PUBLISHED.items():
        assert f"{value:.2f}" in str(wai.pass_at(data, k=k))


def test_same_from_the_shell(data, recorded, python, tmp_path):
    import whileai as wai

    assert str(wai.pass_at(data)) in python.wai("pass-at", recorded, cwd=tmp_path).stdout


def test_selection_and_export(data, tmp_path):
    import whileai as wai

    rows = wai.select(data, mode="rl")
    assert 0 < len(rows) < 200
    mixed = {row["task_id"] for row in rows}
    for task in mixed:
        assert len({row["reward"] for row in data if row["task_id"] == task}) == 2, "a task without a signal was kept"
    rows.export(tmp_path / "train.jsonl")
    text = (tmp_path / "train.jsonl").read_text(encoding="utf-8")
    assert text
    assert "privileged" not in text


def test_convert_and_export_from_the_shell(recorded, python, tmp_path):
    python.wai("convert", recorded, "rows.jsonl", cwd=tmp_path)
    python.wai("export", "rows.jsonl", "--out", "train.jsonl", cwd=tmp_path)
    assert len((tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 200
    assert (tmp_path / "train.jsonl").stat().st_size > 0
