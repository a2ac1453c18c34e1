"""The kernel's list of what the project's plugins offer is what they register."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_known_names_are_complete() -> None:
    spec = importlib.util.spec_from_file_location("known_script", ROOT / "scripts" / "known.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.known() == json.loads(script.FILE.read_text(encoding="utf-8")), "run: python scripts/known.py"
