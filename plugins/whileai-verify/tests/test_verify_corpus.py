"""The corpora: every pair and program gets its right verdict; no false positive and no false negative."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from whileai_verify import SQL, CodeExec, JSONField, JSONSchema, JSONValid, MathEqual, MultipleChoice, Numeric

CORPUS = Path(__file__).parent / "corpus"


def load(name: str) -> list[dict[str, Any]]:
    with (CORPUS / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def report(wrong: list[tuple[dict[str, Any], Any]]) -> str:
    return "\n".join(f"{e['id']}: expected {e['expect']}, got {r}" for e, r in wrong)


@pytest.mark.parametrize(
    ("name", "least"),
    [("math", 1_000), ("reply", 100), ("number", 400), ("choice", 300), ("json", 250), ("sql", 60), ("code", 320)],
)
def test_size_and_sources(name: str, least: int) -> None:
    entries = load(name)
    assert len(entries) >= least
    assert len({e["id"] for e in entries}) == len(entries)
    assert all(e["source"] for e in entries)
    verdicts = Counter(e["expect"] for e in entries)
    assert min(verdicts[0.0], verdicts[1.0]) >= len(entries) // 5


def test_math_both_directions() -> None:
    pytest.importorskip("math_verify")
    verifier = MathEqual()
    entries = load("math")

    def run(e: dict[str, Any]) -> tuple[Any, Any]:
        return verifier.equal(e["gold"], e["said"])["reward"], verifier.equal(e["said"], e["gold"])["reward"]

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(run, entries))
    wrong = [(e, r) for e, (r, _) in zip(entries, got, strict=True) if r != e["expect"]]
    assert not wrong, report(wrong)
    one_way = [(e, r) for e, r in zip(entries, got, strict=True) if (r[0] == 1.0) != (r[1] == 1.0)]
    assert not one_way, report(one_way)


def test_mathematics_in_whole_replies() -> None:
    pytest.importorskip("math_verify")
    verifier = MathEqual()
    entries = load("reply")

    def run(e: dict[str, Any]) -> Any:
        return verifier({"final_text": e["reply"], "privileged": {"reference": e["gold"]}})

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(run, entries))
    wrong = [(e, r) for e, r in zip(entries, got, strict=True) if r["reward"] != e["expect"]]
    assert not wrong, report(wrong)


def test_sql() -> None:
    verifier = SQL(deadline=3.0)
    wrong = []
    for e in load("sql"):
        private = {"reference": e["gold"], "database": {"script": e["script"]}}
        got = verifier({"final_text": e["reply"], "privileged": private})
        if got["reward"] != e["expect"]:
            wrong.append((e, got))
    assert not wrong, report(wrong)


def test_number() -> None:
    wrong = []
    for e in load("number"):
        row = {"final_text": e["reply"], "privileged": {"reference": e["gold"]}}
        got = Numeric(**e.get("params", {}))(row)
        if got["reward"] != e["expect"]:
            wrong.append((e, got))
    assert not wrong, report(wrong)


def test_choice() -> None:
    wrong = []
    for e in load("choice"):
        row = {"final_text": e["reply"], "privileged": {"reference": e["gold"]}}
        got = MultipleChoice(e.get("options"))(row)
        if got["reward"] != e["expect"]:
            wrong.append((e, got))
    assert not wrong, report(wrong)


@pytest.mark.parametrize("check", ["valid", "field", "schema"])
def test_json(check: str) -> None:
    if check == "schema":
        pytest.importorskip("jsonschema")
        pytest.importorskip("rfc3339_validator")
    wrong = []
    for e in load("json"):
        if e["check"] != check:
            continue
        params = e.get("params", {})
        verifier = (
            {"valid": JSONValid, "field": JSONField}[check](**params) if check != "schema" else JSONSchema(e["schema"])
        )
        got = verifier({"final_text": e["reply"], "privileged": {"reference": e.get("gold")}})
        if got["reward"] != e["expect"]:
            wrong.append((e, got))
    assert not wrong, report(wrong)


def run_code(entry: dict[str, Any], isolation: str | None = None) -> Any:
    limits = {"time_s": entry.get("time_s", 20)} | ({"memory_mb": entry["memory_mb"]} if "memory_mb" in entry else {})
    verifier = CodeExec(limits=limits, isolation=isolation)
    private = {k: entry[k] for k in ("tests", "cases", "entry_point") if k in entry}
    return verifier({"final_text": entry["reply"], "privileged": private})


@pytest.mark.parametrize("kind", ["honest", "wrong", "attack", "unsupported"])
def test_code(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHILEAI_TEST_SECRET", "secret")
    entries = [e for e in load("code") if e["kind"] == kind]
    if find_spec("numpy") is None:
        entries = [e for e in entries if "numpy" not in e.get("tests", "")]
    if kind == "attack":  # the two that only end at their deadline are given a short one
        entries = [{"time_s": 5, **e} for e in entries]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(run_code, entries))
    wrong = [(e, r) for e, r in zip(entries, got, strict=True) if r["reward"] != e["expect"]]
    assert not wrong, report(wrong)
    if kind == "unsupported":
        assert all("border" in r["reason"] for r in got), [r["reason"] for r in got]
    assert all(r["isolation"] for e, r in zip(entries, got, strict=True) if "isolation" in r)
