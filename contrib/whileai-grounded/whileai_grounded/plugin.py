"""The light module of whileai-grounded: what it adds, as strings."""

from __future__ import annotations

from typing import Any

from whileai_kernel import hookimpl


@hookimpl
def wai_register_verifiers(register: Any) -> None:
    """Register the verifier of quotations."""
    register(
        "quotes_exist",
        "whileai_grounded.quotes:QuotesExist",
        summary="Every direct quotation in the reply occurs in what the agent was shown.",
    )


@hookimpl
def wai_register_markers(register: Any) -> None:
    """Register the marker of figures."""
    register(
        "figures_seen",
        "whileai_grounded.figures:FiguresSeen",
        summary="Share of the numbers and codes in the reply that occur in what the agent was shown.",
    )
