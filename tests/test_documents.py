"""Every Python block of every README and page of the documentation runs, in a folder of its own.

A page is one program: its blocks run top to bottom in one namespace. What is not meant to run is fenced as
`text` or `console`. A block with `>>>` prompts is checked as a doctest.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RUNNER = Path(__file__).resolve().parent / "programs" / "run_page.py"
BLOCK = re.compile(r"^```python\s*$", re.MULTILINE)


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("contrib/*/README.md")]
    found += [path for path in ROOT.glob("docs/**/*.md") if not {"_build", "generated"} & set(path.parts)]
    return sorted(path for path in found if BLOCK.search(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_run(page, python, tmp_path):
    python.run(RUNNER, page, cwd=tmp_path)


def test_a_block_that_fails_is_seen(python, tmp_path):
    (tmp_path / "page.md").write_text(
        "# A page\n\n```python\nx = 1\n```\n\ntext\n\n```python\nassert x == 2\n```\n", encoding="utf-8"
    )
    done = python.run(RUNNER, tmp_path / "page.md", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert 'page.md", line 10' in done.stderr


def test_a_wrong_doctest_is_seen(python, tmp_path):
    (tmp_path / "page.md").write_text("```python\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    assert python.run(RUNNER, tmp_path / "page.md", cwd=tmp_path, check=False).returncode == 1
