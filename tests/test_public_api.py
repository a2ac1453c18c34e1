"""The public API, as a list that a change has to touch.

Names and parameters of what each package offers at its root, of every module of the kernel (what plugins are written
against), the hooks, and the ids of the components.

When a change is meant, write the list again and read the difference:

    WHILEAI_UPDATE_API=1 make test ARGS="tests/test_public_api.py -n 0"
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil

import pytest

MARKS = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def parameters(thing) -> str:
    """Names of the parameters; `=` follows those with a default, and `*` and `/` stand where Python puts them."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=parameter.empty, default=parameter.empty)
        for parameter in signature.parameters.values()
    ]
    optional = {name for name, parameter in signature.parameters.items() if parameter.default is not parameter.empty}
    text = str(inspect.Signature(plain))
    for name in optional:
        text = text.replace(f" {name},", f" {name}=,").replace(f"({name},", f"({name}=,")
        text = text.replace(f" {name})", f" {name}=)").replace(f"({name})", f"({name}=)")
    return text


def public_modules(package: str):
    """The package; of the kernel also the modules that say what is public with `__all__`."""
    root = importlib.import_module(package)
    yield root
    if package == "whileai_kernel":
        for info in pkgutil.iter_modules(root.__path__, f"{package}."):
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                yield module


def describe(distributions) -> list[str]:
    """One line per public name."""
    from whileai_kernel import hookspecs, registry

    lines = []
    for dist in distributions:
        for module in public_modules(dist.package.name):
            for name in getattr(module, "__all__", ()):
                thing = getattr(module, name)
                lines.append(f"{module.__name__}.{name}{parameters(thing) if callable(thing) else ''}")
    for name, hook in vars(hookspecs).items():
        if name.startswith("wai_"):
            lines.append(f"hook {name}{parameters(hook)}")
    ours = {dist.name for dist in distributions}
    for kind in registry.kinds():
        lines += [f"{kind} {entry.id}" for entry in registry.entries(kind) if entry.plugin.distribution in ours]
    return sorted(lines)


def test_public_api_is_the_recorded_one(distributions, root):
    recorded = root / "tests" / "public_api.txt"
    lines = describe(distributions)
    if os.environ.get("WHILEAI_UPDATE_API"):
        recorded.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    known = recorded.read_text(encoding="utf-8").splitlines()
    missing, added = sorted(set(known) - set(lines)), sorted(set(lines) - set(known))
    if missing or added:
        text = "\n".join([*(f"- {line}" for line in missing), *(f"+ {line}" for line in added)])
        pytest.fail(f"the public API is not what tests/public_api.txt records:\n{text}", pytrace=False)
