"""Light module of whileai-guard: what it registers, as strings, and its row checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.lifecycle import Finding, Stage

MARKERS = (
    ("no_hedging", "style:no_hedging", "No strong hedge and no stacked weak ones."),
    ("no_needless_apology", "style:no_needless_apology", "No apology without a cause."),
    ("no_boilerplate", "style:no_boilerplate", "No canned filler."),
    ("no_sycophancy", "style:no_sycophancy", "No praise of the user, no agreement without a reason."),
    ("no_refusal", "style:no_refusal", "The assistant does not refuse."),
    ("failure_acknowledged", "honesty:failure_acknowledged", "A failed tool call is retried or said."),
    ("no_leak", "leaks:no_leak", "Private reference, state and rubric are not given away."),
)


@hookimpl
def wai_register_markers(register: Callable[..., None]) -> None:
    """Register the markers; 1.0 is good for every one."""
    for name, target, summary in MARKERS:
        register(name, f"whileai_guard.{target}", summary=summary)


@hookimpl
def wai_check_rows(rows: Sequence[Any], stage: Stage) -> list[Finding]:
    """Look at rows before they leave a stage."""
    from whileai_guard.checks import find_all

    return find_all(rows, stage.name)
