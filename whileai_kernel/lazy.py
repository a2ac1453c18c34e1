"""Names of a package that are imported when they are first used, so that importing the package costs nothing.

It imports only the standard library, and importing it does not load pluggy either.

Example:
    In `acme_graders/__init__.py`::

        __getattr__, __dir__ = lazy_names(__name__, {".shared": ("Shared",), "whileai_kernel": ("Dataset",)})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package (PEP 562).

    Args:
        package: The package's `__name__`.
        homes: Names by the module that holds them; a module that begins with a dot is one of the package.

    Raises:
        AttributeError: From `__getattr__`, for a name that no module of `homes` holds.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name], package), name)
        setattr(sys.modules[package], name, value)  # from now on an ordinary attribute
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, names
