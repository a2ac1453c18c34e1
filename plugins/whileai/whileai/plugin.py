"""The light module of the facade: the command that it adds, as strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register


@hookimpl
def wai_register_commands(register: Register) -> None:
    """Register `wai demo`."""
    register("demo", "whileai.demo:Demo", summary="Run the whole loop offline and print each step.")
