"""The light module of whileai-cli: what it adds, as strings."""

from __future__ import annotations

from typing import Any

from whileai_kernel import hookimpl


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the two commands that are about plugins themselves."""
    register(
        "plugins",
        "whileai_cli.plugins_command:PluginsCommand",
        summary="List the installed plugins, or check one with the conformance kit.",
    )
    register(
        "defaults",
        "whileai_cli.defaults_command:DefaultsCommand",
        summary="Print every number that shapes a result, with its meaning and source.",
    )
