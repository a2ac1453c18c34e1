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
    register(
        "rubric",
        "whileai_judge.model_judge:Judge",
        summary="Asks a model about a rubric: prose or weighted criteria, votes, statuses for what cannot be read.",
    )


@hookimpl
def wai_addhooks(pluginmanager: Any) -> None:
    """Add the hook through which other plugins offer probes of judges."""
    from whileai_judge import hooks

    pluginmanager.add_hookspecs(hooks)


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the command that grades a file."""
    register(
        "grade",
        "whileai_judge.grade_command:GradeCommand",
        summary="Grade the rows of a file with a judge, a verifier or a function.",
    )
