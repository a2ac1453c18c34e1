"""The light module of whileai-simulate: what it adds, as strings."""

from __future__ import annotations

from typing import Any

from whileai_kernel import hookimpl


@hookimpl
def wai_register_agents(register: Any) -> None:
    """Register the scripted agents."""
    register("seeded", "whileai_simulate.seeded:SeededAgent", summary="Misbehaves on a labelled share of rollouts.")
    register("honest", "whileai_simulate.seeded:HonestAgent", summary="Follows the plan of the task, never misbehaves.")


@hookimpl
def wai_register_writers(register: Any) -> None:
    """Register the writers."""
    register("offline", "whileai_simulate.writer:OfflineWriter", summary="Asks from frames; no model, no network.")
    register("model", "whileai_simulate.model_writer:ModelWriter", summary="Asks of a model, held against the world.")


@hookimpl
def wai_register_verifiers(register: Any) -> None:
    """Register the outcome check."""
    register(
        "outcome", "whileai_simulate.outcome:Outcome", summary="Goal reached, by the state of the simulated world."
    )


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the commands."""
    register("simulate", "whileai_simulate.cli:SimulateCommand", summary="Simulate an agent and write the rows.")
    register(
        "audit-user",
        "whileai_simulate.audit_command:AuditUserCommand",
        summary="Say which failures of a file of rows are the simulated user's.",
    )
