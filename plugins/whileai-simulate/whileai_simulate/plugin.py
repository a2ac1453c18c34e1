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
    """Register the offline writer."""
    register("offline", "whileai_simulate.writer:OfflineWriter", summary="Asks from frames; no model, no network.")


@hookimpl
def wai_register_verifiers(register: Any) -> None:
    """Register the outcome check."""
    register(
        "outcome", "whileai_simulate.outcome:Outcome", summary="Goal reached, by the state of the simulated world."
    )


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the command."""
    register("simulate", "whileai_simulate.cli:SimulateCommand", summary="Simulate an agent and write the rows.")
