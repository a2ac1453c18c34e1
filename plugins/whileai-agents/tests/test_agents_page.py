"""The page "Connect your agent" beside the real libraries: no block of it is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "connect-your-agent.md"
RUNNER = ROOT / "tests" / "programs" / "run_page.py"


@pytest.mark.integration
def test_every_block_runs_beside_the_frameworks(tmp_path: Path) -> None:
    for module in ("whileai", "agents", "pydantic_ai", "langgraph", "langchain_openai", "mcp"):
        pytest.importorskip(module)
    if not PAGE.is_file():
        pytest.skip("not in a checkout: the page is not here")
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(PAGE)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "skipped" not in done.stdout
