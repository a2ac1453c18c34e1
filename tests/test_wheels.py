"""Wheels of all distributions: they build, hold what they should, pass their tests alone and run the loop."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.isolated

HEAVY = {"trl", "transformers", "datasets", "lm-eval", "inspect-ai", "torch"}  # gigabytes, of which most is torch


def test_wheel_holds_its_package_and_nothing_else(distribution, wheels):
    with zipfile.ZipFile(wheels[distribution.name]) as wheel:
        names = wheel.namelist()
        tops = {name.split("/")[0] for name in names if ".dist-info" not in name.split("/")[0]}
        metadata = next(wheel.read(name).decode("utf-8") for name in names if name.endswith(".dist-info/METADATA"))
    package = distribution.package
    assert tops == {package.name}
    assert f"{package.name}/py.typed" in names
    modules = {path.relative_to(distribution.folder).as_posix() for path in package.rglob("*.py")}
    assert modules == {name for name in names if name.endswith(".py")}
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata


def test_loop_runs_from_wheels_alone(from_wheels, loop_program, tmp_path):
    (tmp_path / "loop.py").write_text(loop_program, encoding="utf-8")
    printed = from_wheels.run("loop.py", cwd=tmp_path).stdout
    assert printed.startswith("pass@1 ")
    assert printed.count("\n") == 1
    assert (tmp_path / "train.jsonl").stat().st_size > 0
    origin = from_wheels.run("-c", "import whileai; print(whileai.__file__)", cwd=tmp_path).stdout
    assert origin.startswith(str(from_wheels.executable.parent.parent))


def test_demo_runs_from_wheels_alone(from_wheels, tmp_path):
    assert "pass@1 " in from_wheels.wai("demo", cwd=tmp_path).stdout


@pytest.fixture
def room():
    """A folder outside of /tmp that others can read: sandboxed code is another user, with a /tmp of its own."""
    parent = Path("/var/tmp")
    with tempfile.TemporaryDirectory(prefix="whileai-", dir=parent if parent.is_dir() else None) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_plugin_passes_its_own_tests_alone(plugin, wheels_for, make_environment, room, tmp_path):
    extra = plugin.project.get("optional-dependencies", {}).get("test", [])
    if not os.environ.get("WHILEAI_HEAVY_TESTS"):  # without them the tests that need them skip, and say so
        extra = [text for text in extra if re.split(r"[\s\[<>=!~;]", text, maxsplit=1)[0] not in HEAVY]
    python = make_environment(room / "env", [*wheels_for(plugin.name), "pytest", "hypothesis", *extra])
    origin = python.run("-c", f"import {plugin.package.name} as p; print(p.__file__)", cwd=tmp_path).stdout
    assert origin.startswith(str(room)), f"tested is {origin}, not the wheel"
    shared = {"WHILEAI_SHARED": os.environ["WHILEAI_SHARED"]} if "WHILEAI_SHARED" in os.environ else {}
    # The same examples as in `make test`, so that a run can be repeated.
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", plugin.folder / "tests"]
    python.run(*tests, cwd=tmp_path, **shared)
