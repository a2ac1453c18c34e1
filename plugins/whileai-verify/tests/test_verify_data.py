"""Recorded marks and problems of others: GSM8K solutions and HumanEval."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from whileai_verify import CodeExec, MathEqual, Numeric


def shared(name: str) -> Path:
    """Return a file of the shared data, or skip."""
    roots = [Path(os.environ["WHILEAI_SHARED"])] if "WHILEAI_SHARED" in os.environ else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        for path in (root / "data" / name, root / name):
            if path.exists():
                return path
    pytest.skip(f"{name} is not here: set WHILEAI_SHARED to the folder that holds data/{name}")


def gsm8k() -> Iterator[tuple[dict[str, Any], bool]]:
    with shared("gsm8k_model_solutions.jsonl").open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            gold = record["ground_truth"].split("A:")[-1].strip()
            for value in record.values():
                if isinstance(value, dict):
                    row = {"final_text": value["solution"], "privileged": {"reference": gold}}
                    yield row, value["is_correct"]


@pytest.mark.parametrize("name", ["numeric", "math"])
def test_gsm8k_marks(name: str) -> None:
    if name == "math":
        pytest.importorskip("math_verify")
    verifier = Numeric() if name == "numeric" else MathEqual()
    pairs = list(gsm8k())
    assert len(pairs) == 5_276
    wrong = [row for row, mark in pairs if (verifier(row)["reward"] == 1.0) is not mark]
    assert wrong == []


def test_humaneval() -> None:
    with gzip.open(shared("HumanEval.jsonl.gz"), "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    assert len(problems) == 164
    verifier = CodeExec(prefix="prompt")

    def run(body: str) -> list[float | None]:
        rows = [
            {
                "prompt": p["prompt"],
                "final_text": p["canonical_solution"] if body == "reference" else body,
                "privileged": {"tests": p["test"], "entry_point": p["entry_point"]},
            }
            for p in problems
        ]
        with ThreadPoolExecutor(4) as pool:
            return [v["reward"] for v in pool.map(verifier, rows)]

    assert run("reference") == [1.0] * 164
    assert run("    pass\n") == [0.0] * 164
    assert run("    return 123456789\n") == [0.0] * 164
