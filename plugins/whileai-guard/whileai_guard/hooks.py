"""Hook specifications that this plugin adds."""

from __future__ import annotations

from collections.abc import Callable

from whileai_kernel.hookspecs import hookspec


@hookspec
def wai_register_embedders(register: Callable[..., None]) -> None:
    """Register embedders: callables from a list of texts to an `n x d` array."""


@hookspec
def wai_register_guards(register: Callable[..., None]) -> None:
    """Register guards: callables from rows (and what they are compared with) to a report."""


@hookspec
def wai_register_features(register: Callable[..., None]) -> None:
    """Register features for `hack_scan`: callables from a row to a number (or a mapping of names to numbers)."""
