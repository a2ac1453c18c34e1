"""The light module of whileai-judge: what it adds, as strings."""

from __future__ import annotations

from typing import Any

from whileai_kernel import hookimpl


@hookimpl
def wai_register_judges(register: Any) -> None:
    """Register the judges."""
    register(
        "seeded",
        "whileai_judge.seeded:seeded",
        summary="Right by construction on rows of a seeded agent: 0 when a behaviour was planted.",
    )
