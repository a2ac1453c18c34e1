"""Start-up budgets, in loaded modules rather than seconds: what a first line of a program may cost."""

from __future__ import annotations

import pytest

HEAVY = {
    "numpy",
    "scipy",
    "pandas",
    "torch",
    "litellm",
    "pydantic",
    "httpx",
    "openai",
    "transformers",
    "datasets",
}


def top_level(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_import_whileai_loads_no_plugin_and_nothing_heavy(python, distributions):
    loaded = top_level(python.modules_after("import whileai as wai"))
    plugins = {dist.package.name for dist in distributions} - {"whileai", "whileai_kernel"}
    assert not loaded & (plugins | HEAVY)


def test_import_kernel_loads_nothing_heavy(python):
    assert not top_level(python.modules_after("import whileai_kernel")) & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["pass-at", "--help"]], ids=" ".join)
def test_wai_help_loads_nothing_heavy(python, arguments):
    program = "import sys; sys.argv[0] = 'wai'\nfrom whileai_cli.main import main\n"
    program += "try:\n    code = main()\nexcept SystemExit as stop:\n    code = stop.code\nassert not code, code"
    assert not top_level(python.modules_after(program, *arguments)) & HEAVY


def test_package_is_lazy(python, distribution):
    loaded = top_level(python.modules_after(f"import {distribution.package.name}"))
    assert not loaded & HEAVY


def test_light_module_is_light(python, plugin):
    loaded = python.modules_after(f"import {plugin.package.name}.plugin")
    ours = {name for name in loaded if name.split(".")[0] == plugin.package.name}
    assert ours == {plugin.package.name, f"{plugin.package.name}.plugin"}
    assert not top_level(loaded) & HEAVY


def test_finding_every_plugin_loads_light_modules_only(python, distributions):
    kinds = ("verifiers", "statistics", "commands", "sources")
    program = f"import whileai_kernel as k\nfor kind in {kinds}: k.entries(kind)"
    loaded = python.modules_after(program)
    assert not top_level(loaded) & HEAVY
    for dist in distributions:
        name = dist.package.name
        if name != "whileai_kernel":
            ours = {module for module in loaded if module.split(".")[0] == name}
            hooks = {f"{name}.hooks", f"{name}.hookspecs"}  # of a plugin that adds a kind
            assert ours <= {name, f"{name}.plugin", *hooks}, f"{name}: {sorted(ours)}"
