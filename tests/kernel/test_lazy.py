"""Names that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from whileai_kernel.lazy import lazy_names

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def package(monkeypatch):
    module = types.ModuleType("acme_lazy")
    monkeypatch.setitem(sys.modules, "acme_lazy", module)
    shapes = types.ModuleType("acme_lazy.shapes")
    shapes.Circle = type("Circle", (), {})
    monkeypatch.setitem(sys.modules, "acme_lazy.shapes", shapes)
    module.__path__ = []
    module.__getattr__, module.__dir__ = lazy_names("acme_lazy", {".shapes": ["Circle"], "fractions": ("Fraction",)})
    return module


def test_names_come_from_the_package_and_from_elsewhere(package):
    import fractions

    assert package.Circle is sys.modules["acme_lazy.shapes"].Circle
    assert package.Fraction is fractions.Fraction


def test_a_name_is_looked_up_once(package):
    first = package.Circle
    del sys.modules["acme_lazy.shapes"].Circle
    assert package.Circle is first


def test_dir_tells_of_names_before_they_are_used_and_of_each_once(package):
    before = dir(package)
    assert {"Circle", "Fraction", "__name__"} <= set(before)
    _ = package.Circle
    assert dir(package) == before


def test_an_unknown_name_is_an_ordinary_attribute_error(package):
    with pytest.raises(AttributeError, match=r"module 'acme_lazy' has no attribute 'Square'"):
        _ = package.Square
    assert not hasattr(package, "__wrapped__")


def test_a_failing_import_is_not_hidden(package):
    package.__getattr__, _ = lazy_names("acme_lazy", {".nowhere": ("Square",)})
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        _ = package.Square


def test_it_costs_neither_pydantic_nor_pluggy():
    code = "import sys, whileai_kernel.lazy; print(*{m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) <= {"whileai_kernel", "__main__"}
