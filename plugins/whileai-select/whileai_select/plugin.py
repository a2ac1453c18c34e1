"""Light module of whileai-select: what it registers, as strings."""

from __future__ import annotations

from collections.abc import Callable

from whileai_kernel import hookimpl


@hookimpl
def wai_register_selectors(register: Callable[..., None]) -> None:
    """Register the selectors."""
    register("rl", "whileai_select.rl:select_rl", summary="Whole groups with signal inside a difficulty band.")
    register("next_round", "whileai_select.rounds:next_round", summary="Solved tasks out, then the RL selection.")
    register("sft", "whileai_select.sft:select_sft", summary="Rejection sampling: the best completions of each task.")


@hookimpl
def wai_register_statistics(register: Callable[..., None]) -> None:
    """Register the statistics."""
    register("group_signal", "whileai_select.signal:group_signal", summary="Share of groups that carry a gradient.")
    register("recommend_k", "whileai_select.signal:recommend_k", summary="Group size from the rates seen so far.")


@hookimpl
def wai_register_commands(register: Callable[..., None]) -> None:
    """Register the sub-command."""
    register("select", "whileai_select.commands:Select", summary="Keep the rows that teach, with a ledger.")
