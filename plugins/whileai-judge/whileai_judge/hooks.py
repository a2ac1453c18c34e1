"""The kind that whileai-judge adds: probes of judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.hookspecs import hookspec

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register


@hookspec
def wai_register_probes(register: Register) -> None:
    """Register probes: functions of a row that return the text of a reply which must not pass, or None.

    With an attribute ``keeps_reply = True`` the text is the row's own failing reply with something added; else it
    replaces the reply by something worthless.
    """
