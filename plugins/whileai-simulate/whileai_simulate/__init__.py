"""Situations, a world that fails on purpose, agents and the engine that runs them.

Names are imported when they are first used, so that importing the package costs nothing.

Example:
    >>> data = simulate(seeded_agent(), situations=2, repeats=2)
    >>> len(data), [row["index"] for row in data]
    (4, [0, 1, 0, 1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_simulate.agents import AgentContext
    from whileai_simulate.audit import UserAudit, audit_user
    from whileai_simulate.model_user import ModelUser
    from whileai_simulate.model_writer import ModelWriter
    from whileai_simulate.options import Budget, Options
    from whileai_simulate.outcome import Outcome
    from whileai_simulate.run import AgentFailedError, SimulatedDataset, UserFailedError, asimulate, simulate
    from whileai_simulate.seeded import honest_agent, seeded_agent
    from whileai_simulate.sizing import recommend
    from whileai_simulate.understanding import preflight

__all__ = [
    "AgentContext",
    "AgentFailedError",
    "Budget",
    "ModelUser",
    "ModelWriter",
    "Options",
    "Outcome",
    "SimulatedDataset",
    "UserAudit",
    "UserFailedError",
    "asimulate",
    "audit_user",
    "honest_agent",
    "preflight",
    "recommend",
    "seeded_agent",
    "simulate",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".agents": ("AgentContext",),
        ".audit": ("UserAudit", "audit_user"),
        ".model_user": ("ModelUser",),
        ".model_writer": ("ModelWriter",),
        ".options": ("Budget", "Options"),
        ".outcome": ("Outcome",),
        ".run": ("AgentFailedError", "SimulatedDataset", "UserFailedError", "asimulate", "simulate"),
        ".seeded": ("honest_agent", "seeded_agent"),
        ".sizing": ("recommend",),
        ".understanding": ("preflight",),
    },
)
