"""`scripts/dev.py`: the logic behind the Makefile, without making an environment."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys

import pytest


@pytest.fixture
def dev(root):
    spec = importlib.util.spec_from_file_location("dev_script", root / "scripts" / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_starts_under_an_old_python(root):
    source = (root / "scripts" / "dev.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    imports = {
        alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imports <= set(sys.stdlib_module_names)


def test_an_old_python_looks_for_a_newer_one(dev, monkeypatch):
    monkeypatch.setattr(dev.sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(dev.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(dev, "interpreter_of", lambda name: "/bin/found" if name == "python3.12" else None)
    assert dev.newest_interpreter() == "/bin/found"


def test_without_a_newer_one_it_says_what_to_do(dev, monkeypatch):
    monkeypatch.setattr(dev.sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(dev.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or later") as stop:
        dev.newest_interpreter()
    assert "make test PYTHON=" in str(stop.value)


def test_interpreter_of_asks_the_interpreter(dev):
    assert dev.interpreter_of(sys.executable) == sys.executable
    assert dev.interpreter_of("/nonexistent/python3") is None


def test_the_demo_installs_the_distributions_and_no_tools(dev):
    words = dev.requirements("demo")
    assert words[:2] == ["-e", "."]
    assert "./plugins/whileai" in words
    assert not [word for word in words if "pytest" in word or word == "-r"]
    assert dev.requirements("dev") == ["-r", "requirements-dev.txt"]


def test_an_environment_is_used_again_until_a_requirement_changes(dev, monkeypatch, tmp_path):
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(dev, "PYTHON", sys.executable)
    (tmp_path / "requirements-dev.txt").write_text("-e .\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert not dev.is_current("demo")
    dev.STAMP.write_text(dev.wanted_stamp("demo"), encoding="utf-8")
    assert dev.is_current("demo")
    assert not dev.is_current("dev"), "the demo's environment lacks the tools"
    dev.STAMP.write_text(dev.wanted_stamp("dev"), encoding="utf-8")
    assert dev.is_current("demo")
    assert dev.is_current("dev")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert not dev.is_current("dev")


@pytest.mark.parametrize("target", ["demo", "test", "check", "docs", "bench", "wheels"])
def test_make_targets_are_one_line_without_logic(dev, root, target):
    lines = (root / "Makefile").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"{target}:")]
    assert line.split(";")[1].strip() == f"@$(DEV) {target} $(ARGS)"
    assert target in dev.COMMANDS


def test_an_unknown_command_shows_the_usage(root):
    done = subprocess.run(
        [sys.executable, root / "scripts" / "dev.py", "tset"], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 1
    assert "scripts/dev.py test" in done.stderr
