"""`docs/how-to/first-plugin.md`, followed to the letter: its files, their length, its conformance run."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

# A file of the page: its path in bold, a sentence about it, then a fenced block with its content.
FILE = re.compile(r"^\*\*`(?P<path>[^`]+)`\*\*:(?:(?!```).)*```(?:toml|python)\n(?P<text>.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def files():
    from pathlib import Path

    page = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "first-plugin.md"
    return {match["path"]: match["text"] for match in FILE.finditer(page.read_text(encoding="utf-8"))}


def test_under_forty_lines_of_code(files):
    assert len(files) == 3
    lines = [line for text in files.values() for line in text.splitlines() if line.strip()]
    assert len(lines) < 40


@pytest.mark.isolated
def test_conformance_run_is_green(files, wheels, make_environment, tmp_path):
    (tmp_path / "acme-graders" / "acme_graders").mkdir(parents=True)
    (tmp_path / "acme-graders" / "acme_graders" / "__init__.py").touch()
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=tmp_path / "acme-graders", check=True, capture_output=True)
    ours = [wheels["whileai-kernel"], wheels["whileai-cli"]]
    python = make_environment(tmp_path / "env", [*ours, *tmp_path.glob("acme_graders-*.whl")])
    printed = python.wai("plugins", "check", "acme-graders", cwd=tmp_path).stdout
    assert re.search(r"conforms: [1-9]\d* passed", printed)
    use = "from whileai_kernel import make; print(make('verifiers', 'mentions')({row}))"
    row = {"final_text": "Paris, of course", "privileged": {"reference": "paris"}}
    assert "'reward': 1.0" in python.run("-c", use.replace("{row}", repr(row)), cwd=tmp_path).stdout
