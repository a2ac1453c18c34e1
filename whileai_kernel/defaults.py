"""Sourced constants: every number that shapes a result has a value, a meaning and a source.

Each plugin keeps its constants in a module `defaults.py` beside its light module; `collect()` reads them from
every loaded plugin, and `wai defaults` prints them. This module holds the type, the kernel's own constants and
the collector. It does not hold the constants of any plugin.

Example:
    >>> CONFIDENCE = Sourced(0.95, "share of intervals that hold the true value", "convention, untested")
    >>> CONFIDENCE.value
    0.95
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from whileai_kernel.errors import describe

__all__ = ["PASS_TOLERANCE", "REWARD_TOLERANCE", "THRESHOLD", "DefaultRow", "Sourced", "collect", "constants"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A constant with its meaning and its source.

    Attributes:
        value: The constant itself.
        meaning: One sentence: what it does to a result, with its unit.
        source: Paper and section, a measurement, or the words `convention, untested`.
    """

    value: T
    meaning: str
    source: str

    def __post_init__(self) -> None:
        if not self.meaning.strip() or not self.source.strip():
            raise ValueError("a Sourced constant needs a meaning and a source")


THRESHOLD = Sourced(1.0, "a rollout passes when its reward is at least this", "convention, untested")
PASS_TOLERANCE = Sourced(
    1e-9,
    "slack below the threshold that still passes, for rewards that are sums of weights",
    "measurement: 10 weights of 0.1 sum to 1 - 1.1e-16; the slack is far above float64 rounding of 1e6 terms",
)
REWARD_TOLERANCE = Sourced(
    1e-9,
    "a reward this far outside [0, 1] is rounding and is moved to the bound; beyond it is invalid",
    "measurement: as PASS_TOLERANCE",
)


@dataclass(frozen=True, slots=True)
class DefaultRow:
    """One line of `wai defaults`: where the constant lives and what it says."""

    plugin: str
    name: str
    value: object
    meaning: str
    source: str


def constants(module: ModuleType, plugin: str) -> list[DefaultRow]:
    """Return the `Sourced` constants of one module, in alphabetical order."""
    return [
        DefaultRow(plugin, name, const.value, const.meaning, const.source)
        for name, const in sorted(vars(module).items())
        if name.isupper() and isinstance(const, Sourced)
    ]


def collect() -> list[DefaultRow]:
    """Return the constants of the kernel and of every loaded plugin.

    Imports the `defaults` module of each plugin's package, and nothing else of it.

    Returns:
        Rows sorted by plugin and name; the kernel comes first.
    """
    from whileai_kernel.plugins import manager

    rows = constants(importlib.import_module(__name__), "kernel")
    for plugin in sorted(manager().plugins, key=lambda p: p.name):
        package = plugin.module.rpartition(".")[0]
        try:
            if package and importlib.util.find_spec(f"{package}.defaults") is not None:
                rows += constants(importlib.import_module(f"{package}.defaults"), plugin.name)
        except Exception as err:  # noqa: BLE001 - isolation: recorded, and the constants of the others are shown
            manager().record(plugin, "defaults", describe(err))
    return rows
