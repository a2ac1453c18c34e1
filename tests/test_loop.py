"""The program of the README as written: in a script, with any hash seed, in a running loop, in a notebook."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

LINE = re.compile(
    r"pass@1 \d\.\d\d \[\d\.\d\d\.\.\d\.\d\d\] \| pass\^4 \d\.\d\d \[\d\.\d\d\.\.\d\.\d\d\] \| "
    r"pass@4 \d\.\d\d \[\d\.\d\d\.\.\d\.\d\d\] \| headroom \d\.\d\d \(16 tasks, k=4\)"
)
# What the tests look at after the program has run; `data`, `scored` and `rows` are its own variables.
LOOK = """
import collections as _c, hashlib as _h, json as _j
_sizes = _c.Counter(row["task_id"] for row in data)
print(_j.dumps({
    "tasks": len(_sizes), "sizes": sorted(set(_sizes.values())), "rows": len(data),
    "graded": len(scored), "selected": len(rows), "ids": [row["rollout_id"] for row in data],
    "file": _h.sha256(open("train.jsonl", "rb").read()).hexdigest(),
}))
"""


def outcome(printed: str) -> tuple[str, dict]:
    """The line that the program prints, and what the tests looked at."""
    line, look = printed.strip().splitlines()
    return line, json.loads(look)


@pytest.fixture(scope="module")
def expected(python, loop_program, tmp_path_factory):
    """What the program does in a script; every other way to run it must do the same."""
    return outcome(python.run("-c", loop_program + LOOK, cwd=tmp_path_factory.mktemp("script")).stdout)


def test_program_does_what_the_issue_says(expected):
    line, look = expected
    assert LINE.fullmatch(line)
    assert (look["tasks"], look["sizes"], look["rows"], look["graded"]) == (16, [4], 64, 64)
    assert 0 < look["selected"] <= 64


@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_same_under_every_hash_seed(python, loop_program, expected, tmp_path, seed):
    printed = python.run("-c", loop_program + LOOK, cwd=tmp_path, PYTHONHASHSEED=seed).stdout
    assert outcome(printed) == expected


def test_budget_of_64_rollouts_gives_the_same(python, loop_program, expected, tmp_path):
    program = loop_program.replace("situations=16", "budget=64")
    assert program != loop_program
    assert outcome(python.run("-c", program + LOOK, cwd=tmp_path).stdout) == expected


def test_old_import_path_works_too(python, loop_program, expected, tmp_path):
    program = loop_program.replace("import whileai as wai", "import whileai.simulations as wai")
    assert outcome(python.run("-c", program + LOOK, cwd=tmp_path).stdout) == expected


def test_runs_inside_a_running_event_loop(loop_program, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        exec(compile(loop_program + LOOK, "loop.py", "exec"), {"__name__": "__main__"})

    asyncio.run(main())
    assert outcome(capsys.readouterr().out) == expected


def test_runs_in_a_notebook_cell(loop_program, expected, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        nbformat.v4.new_code_cell(loop_program),
        nbformat.v4.new_code_cell(LOOK),
        nbformat.v4.new_code_cell("scored"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(
        notebook, kernel_name="python3", timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells[:2] for output in cell.outputs]
    printed = [output.text for output in outputs if output.output_type == "stream" and output.name == "stdout"]
    assert outcome("".join(printed)) == expected
    assert not [output for output in outputs if output.output_type == "error"]
    (shown,) = notebook.cells[2].outputs
    assert shown.output_type == "execute_result"


def test_readme_shows_what_it_prints(root, expected):
    assert f"```text\n{expected[0]}\n```" in (root / "README.md").read_text(encoding="utf-8")
