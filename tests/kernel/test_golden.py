"""Rows as released versions wrote them: they load, keep every byte, and their ids are what they were."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from whileai_kernel.messages import tool_calls, validate_messages
from whileai_kernel.models import from_row, to_row
from whileai_kernel.rowio import dumps_row, read_rows, write_rows
from whileai_kernel.rows import KEY_ORDER, SCHEMA_VERSION, STATUSES, passed, task_key, truncated

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FILES = sorted(GOLDEN.glob("v*/*.jsonl"))
V1 = GOLDEN / "v1"


def sha(prefix: str, *parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return f"{prefix}_{hashlib.sha256(text.encode('ascii')).hexdigest()[:20]}"


def golden(name: str) -> list[dict]:
    return list(read_rows(V1 / f"{name}.jsonl"))


def test_there_are_files_of_every_version():
    assert {path.parent.name for path in FILES} == {f"v{n}" for n in range(1, SCHEMA_VERSION + 1)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_file_loads_as_the_current_version(path):
    rows = list(read_rows(path))
    assert rows
    for row in rows:
        assert row["schema_version"] == SCHEMA_VERSION
        from_row(row)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob(f"v{SCHEMA_VERSION}/*.jsonl")), ids=lambda p: p.stem)
def test_files_of_this_version_keep_every_byte(path, tmp_path):
    write_rows(tmp_path / "again.jsonl", read_rows(path))
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    for line in lines:
        row = json.loads(line)
        parts = from_row(row)
        again = to_row(
            parts.task, parts.rollout, parts.judgment, parts.markers, judgments=parts.judgments, extra=parts.extra
        )
        assert dumps_row(again) == line


@pytest.mark.parametrize("path", sorted(V1.glob("*.jsonl")), ids=lambda p: p.stem)
def test_ids_are_what_they_were(path):
    for row in read_rows(path):
        if row["task_id"] != "every-status":
            assert row["task_id"] == sha("task", row["prompt"])
        parts = (row["task_id"], row["index"], row.get("policy", {}), row.get("messages", []), row["final_text"])
        assert row["rollout_id"] == sha("rollout", *parts)


def test_literal_ids():
    assert golden("minimal")[0]["task_id"] == "task_9fe940407c9c124858be"
    assert [row["rollout_id"] for row in golden("minimal")] == MINIMAL_ROLLOUTS
    assert (golden("full")[0]["task_id"], golden("full")[0]["rollout_id"]) == FULL


def test_the_full_row_has_every_key_and_foreign_ones():
    (row,) = golden("full")
    assert list(row) == [*KEY_ORDER, "acme_ticket", "note"]
    assert row["acme_ticket"]["id"] == 2**64 + 1
    parts = from_row(row)
    assert parts.extra == {"acme_ticket": row["acme_ticket"], "note": "kept as it is"}
    assert parts.judgment.scorer is not None and parts.judgment.scorer.params == {"casefold": True, "strip": None}
    assert [j.status for j in parts.judgments] == ["timeout", "ok"]
    assert passed(row) is True and passed(row, 1.0) is False


def test_the_minimal_rows():
    first, second = golden("minimal")
    assert task_key(first) == task_key(second) == first["task_id"]
    assert (passed(first), passed(second)) == (None, True)


def test_the_tool_conversations():
    whole, cut = golden("tools")
    calls = tool_calls(whole["messages"])
    assert [(c.name, c.arguments, c.result) for c in calls] == [
        ("get_order", {"order_id": "A-17"}, "one"),
        ("get_order", {"order_id": "B-2"}, "two"),
        ("get_order", None, "not found"),
    ]
    assert [p.code for p in validate_messages(whole["messages"])] == ["arguments_not_json"]
    assert validate_messages(cut["messages"], ends_on_call=cut["finish_reason"] == "tool_calls") == []
    assert truncated(cut) is True


def test_not_scored_is_never_zero():
    rows = golden("not_scored")
    assert [row["status"] for row in rows] == [*STATUSES, "missing"]
    assert [row["reward"] for row in rows] == [0.0, *[None] * 6]
    assert [passed(row) for row in rows] == [False, *[None] * 6]


def test_text_in_every_script():
    texts = [row["prompt"] for row in golden("unicode")]
    assert texts == UNICODE
    raw = (V1 / "unicode.jsonl").read_bytes()
    assert len(raw.decode("utf-8").splitlines()) == len(texts)


UNICODE = [
    "é 介绍 🤗 ✓",
    "a\u2028b\u2029c\u0085d\x0be\x0cf",
    "lone \ud83d and \ude00",
    'quote " back \\ slash / tab\t nul \x00 del \x7f',
    "line\r\nends\r",
    "\u200fمرحبا\u200f e\u0301 \ufeff",
]
MINIMAL_ROLLOUTS = ["rollout_ad60a1f8eb180f5caec1", "rollout_22acc2b07ffb078af21e"]
FULL = ("task_286959ff821147fab793", "rollout_115bc1ea9202a3d22ef5")
