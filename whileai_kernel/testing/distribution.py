"""Checks for a plugin as a distribution: light module, targets, summaries, sourced constants, version range."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys

from whileai_kernel.defaults import Sourced
from whileai_kernel.plugins import Plugin, kernel_requirement
from whileai_kernel.registry import entries, kinds
from whileai_kernel.testing.kit import Check, Subject

__all__ = ["PLUGIN_CHECKS"]

_LIGHT = """
import importlib, json, sys
from whileai_kernel import hookimpl
before = set(sys.modules)
importlib.import_module({module!r})
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _plugin(subject: Subject) -> Plugin:
    plugin: Plugin = subject.component
    return plugin


def is_light(subject: Subject) -> None:
    """A light module that imports a library makes every start of every program pay for it."""
    plugin = _plugin(subject)
    code = _LIGHT.format(module=plugin.module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-500:]
    allowed = {*sys.stdlib_module_names, "whileai_kernel", "pluggy", plugin.module.partition(".")[0]}
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not loaded - allowed, f"importing {plugin.module} loads {', '.join(sorted(loaded - allowed))}"
    own = [name for name in json.loads(done.stdout) if name.startswith("whileai_kernel.")]
    assert not own, f"importing {plugin.module} loads {', '.join(own)}; import those under TYPE_CHECKING"


def registers_something(subject: Subject) -> None:
    """A plugin that adds nothing is installed for nothing."""
    plugin = _plugin(subject)
    found = [e for kind in kinds() for e in entries(kind) if e.plugin == plugin]
    module = importlib.import_module(plugin.module)
    hooks = [n for n in dir(module) if n.startswith("wai_") and not n.startswith("wai_register_")]
    assert found or hooks, "it registers no component and observes no stage"


def says_what_each_component_is(subject: Subject) -> None:
    """A component without a summary is a name in a list."""
    bare = [e.id for kind in kinds() for e in entries(kind) if e.plugin == _plugin(subject) and not e.summary.strip()]
    assert not bare, f"no summary: {', '.join(bare)}"


def sources_its_constants(subject: Subject) -> None:
    """A number that shapes a result and has no source is folklore."""
    package = _plugin(subject).module.rpartition(".")[0]
    if not package or importlib.util.find_spec(f"{package}.defaults") is None:
        return
    module = importlib.import_module(f"{package}.defaults")
    bare = [n for n, v in vars(module).items() if n.isupper() and not isinstance(v, Sourced)]
    assert not bare, f"{package}.defaults: not Sourced: {', '.join(bare)}"


def asks_for_a_range_of_kernels(subject: Subject) -> None:
    """A plugin without an upper bound breaks on the day of the next major kernel; one with == on the next minor."""
    asked = kernel_requirement(_plugin(subject).requires)
    assert asked, "it does not depend on whileai-kernel"
    assert "==" not in asked and "<" in asked and ">=" in asked, f"it asks for {asked}; use >=1.0,<2"


PLUGIN_CHECKS: tuple[Check, ...] = (
    is_light,
    registers_something,
    says_what_each_component_is,
    sources_its_constants,
    asks_for_a_range_of_kernels,
)
