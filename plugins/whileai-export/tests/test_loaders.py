"""What `datasets` of the installed version makes of every target, kind and file, loaded without further words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")
pytest.importorskip("pyarrow")

from whileai_export import export  # noqa: E402
from whileai_export.reading import read_records  # noqa: E402

pytestmark = pytest.mark.integration

TARGETS = ("chat", "openai", "trl", "anthropic", "sharegpt")
KINDS = ("sft", "preference", "prompts", "rewarded", "eval")
READS_JSON = tuple(int(n) for n in datasets.__version__.split(".")[:2]) >= (4, 7)
"""Whether the installed version can hold free-form JSON; before, it merges objects with differing keys."""


def tool(name: str, key: str, default: Any) -> dict[str, Any]:
    properties = {key: {"type": "string", "default": default}}
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": properties}},
    }


def row(task: str, name: str, tools: list[Any], arguments: Any, reward: float, text: str, answer: str) -> Any:
    def call(call_id: str, value: Any) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(value)}}

    calls = [call("a", arguments), call("b", {})]
    chat = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": f"on 2024-01-0{task}, {task}?"},
        {"role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "007"},
        {"role": "tool", "tool_call_id": "b", "content": "true"},
        {"role": "assistant", "content": text},
    ]  # fmt: skip
    return {
        "task_id": task, "rollout_id": f"{task}{text}", "prompt": "q", "reward": reward, "status": "ok",
        "tools": tools, "messages": chat, "answer": answer,
    }  # fmt: skip


def nasty_rows() -> list[dict[str, Any]]:
    """Return rows whose tools, arguments and columns a loader that guesses would merge or re-read."""
    first, second = [tool("f", "city", "007"), tool("h", "day", None)], [tool("g", "id", 5)]
    mixed, other = {"zip": "01234", "none": None}, {"zip": 94110, "deep": {"x": [1, "2"]}}
    return [
        row("1", "f", first, mixed, 1.0, "a", "007"),
        row("1", "f", first, mixed, 0.0, "b", "007"),
        row("2", "g", second, other, 1.0, "c", "8"),
        row("2", "g", second, other, 0.25, "d", "8"),
        {"task_id": "3", "prompt": "no tools", "final_text": "x", "reward": 0.0, "status": "ok"},
        {"task_id": "3", "prompt": "no tools", "final_text": "y", "reward": 1.0, "status": "ok"},
    ]


def shown(value: Any) -> Any:
    """Return a value in which floats are rounded: the JSON loader of `datasets` 5.2 keeps ten digits."""
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shown(v) for v in value]
    return round(value, 9) if isinstance(value, float) else value


def without_null_columns(records: Any) -> list[dict[str, Any]]:
    return [{k: shown(v) for k, v in dict(r).items() if v is not None} for r in records]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def loaded(path: Path) -> list[dict[str, Any]]:
    if path.is_dir():
        return without_null_columns(datasets.load_dataset(str(path), split="train"))
    form = "parquet" if path.suffix == ".parquet" else "json"
    return without_null_columns(datasets.load_dataset(form, data_files=[str(path)], split="train"))


@pytest.mark.skipif(not READS_JSON, reason="datasets before 4.7 cannot hold free-form JSON")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["jsonl", "parquet", "folder", "parquet-folder"])
def test_every_kind_is_loaded_as_it_was_written(tmp_path: Path, target: str, form: str) -> None:
    for kind in KINDS:
        path = tmp_path / (kind if form.endswith("folder") else f"{kind}.{form}")
        file = "parquet" if form.startswith("parquet") else "jsonl"
        export(nasty_rows(), path, to=target, kind=kind, file=file, columns=["answer"])
        assert loaded(path) == without_null_columns(read_records(path)), kind


@pytest.mark.parametrize("target", ["chat", "sharegpt"])
def test_every_version_reads_tools_and_calls_of_chat_files_as_meant(tmp_path: Path, target: str) -> None:
    """Older loaders give a message the keys of the others, with null; nothing else of it is changed."""
    for kind in KINDS:
        path = tmp_path / f"{kind}.jsonl"
        export(nasty_rows(), path, to=target, kind=kind, columns=["answer"])
        expected = without_null_columns(read_records(path))
        found = loaded(path)
        assert without_nulls(found) == without_nulls(expected), kind
        assert [r.get("tools") for r in found] == [r.get("tools") for r in expected]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["jsonl", "parquet", "folder", "parquet-folder"])
def test_every_version_loads_free_form_columns_as_text(tmp_path: Path, target: str, form: str) -> None:
    for kind in KINDS:
        path = tmp_path / (kind if form.endswith("folder") else f"{kind}.{form}")
        file = "parquet" if form.startswith("parquet") else "jsonl"
        report = export(nasty_rows(), path, to=target, kind=kind, file=file, columns=["answer"], as_text=True)
        assert report.details["needs"] == "datasets"
        assert loaded(path) == without_null_columns(read_records(path)), kind


def test_the_manifest_says_which_loader_the_files_need(tmp_path: Path) -> None:
    assert export(nasty_rows(), tmp_path / "a", to="trl").details["needs"] == "datasets>=4.7"
    assert "as_text=True" in (tmp_path / "a" / "README.md").read_text(encoding="utf-8")
    export(nasty_rows(), tmp_path / "b", to="trl", as_text=True)
    assert "as_text=True" not in (tmp_path / "b" / "README.md").read_text(encoding="utf-8")
