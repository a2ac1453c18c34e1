"""Light module of whileai-select: what it registers, as strings."""

from __future__ import annotations

from collections.abc import Callable

from whileai_kernel import hookimpl


@hookimpl
def wai_register_selectors(register: Callable[..., None]) -> None:
    """Register the selectors."""
    register("rl", "whileai_select.rl:select_rl", summary="Whole groups with signal inside a difficulty band.")
    register("sft", "whileai_select.sft:select_sft", summary="Rejection sampling: the best completions of each task.")
