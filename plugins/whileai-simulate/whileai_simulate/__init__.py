"""Situations, a world that fails on purpose, agents and the engine that runs them.

Names are imported when they are first used, so that importing the package costs nothing.

Example:
    >>> data = simulate(seeded_agent(), situations=2, repeats=2)
    >>> len(data), [row["index"] for row in data]
    (4, [0, 1, 0, 1])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "AgentContext": "agents",
    "AgentFailedError": "run",
    "Budget": "options",
    "ModelUser": "model_user",
    "ModelWriter": "model_writer",
    "Options": "options",
    "Outcome": "outcome",
    "SimulatedDataset": "run",
    "UserAudit": "audit",
    "UserFailedError": "run",
    "asimulate": "run",
    "audit_user": "audit",
    "honest_agent": "seeded",
    "preflight": "understanding",
    "recommend": "sizing",
    "seeded_agent": "seeded",
    "simulate": "run",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
