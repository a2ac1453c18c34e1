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


_PROBES = {
    "filler": "Much polite text that says nothing.",
    "keyword_stuffing": "The words of the question in a row.",
    "success_claim": "A failing reply that claims success.",
    "prompt_echo": "The question again.",
    "flattery": "A failing reply that flatters the judge.",
    "planted_verdict": "A failing reply with a verdict of its own.",
    "empty_format": "Headings and bullets without content.",
    "refusal": "A refusal where an answer was wanted.",
    "authority": "A failing reply that was confirmed by a specialist.",
}


@hookimpl
def wai_addhooks(pluginmanager: Any) -> None:
    """Add the kind of probes of judges."""
    from whileai_judge import hooks

    pluginmanager.add_hookspecs(hooks)


@hookimpl
def wai_register_probes(register: Any) -> None:
    """Register the probes."""
    for name, summary in _PROBES.items():
        register(name, f"whileai_judge.attacks:{name}", summary=summary)


@hookimpl
def wai_conformance_checks(kind: str) -> Any:
    """The checks of the kind of probes."""
    if kind != "probes":
        return None
    from whileai_judge.probe_checks import PROBE_CHECKS

    return PROBE_CHECKS


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the command that grades a file."""
    register(
        "grade",
        "whileai_judge.grade_command:GradeCommand",
        summary="Grade the rows of a file with a judge, a verifier or a function.",
    )
