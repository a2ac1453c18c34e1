"""The front door: `import whileai as wai`.

The loop in five calls, offline and deterministic for a seed::

    import whileai as wai

    @wai.tool
    def get_order(order_id: str) -> dict:
        '''Look up an order by id.'''
        ...

    data = wai.simulate(wai.seeded_agent([get_order]), tools=[get_order], simulator=False, mode="rl", situations=16)
    scored = data.grade(judge=lambda row: {"reward": int(not row["seeded"])})
    print(scored.pass_at)
    scored.select(mode="rl").export("train.jsonl")

This package holds no algorithm. Each name is imported from its plugin when it is first used, so `import whileai`
loads no plugin, no pydantic and no numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai.data import (
        ScoredData,
        Selection,
        SimulationData,
        asimulate,
        grade,
        read,
        rows,
        select,
        simulate,
    )
    from whileai_export import export
    from whileai_kernel import (
        Dataset,
        Finding,
        Judgment,
        Marker,
        Rollout,
        Spec,
        Task,
        Tool,
        WhileaiError,
        from_row,
        lookup,
        make,
        register_local,
        resolve,
        spec_of,
        to_row,
        tool,
    )
    from whileai_measure import pass_at
    from whileai_openai.specs import VLLM, Endpoint, Ollama, OpenAI
    from whileai_simulate import seeded_agent
    from whileai_verify import verifier

__version__ = "1.0.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "whileai.data": (
        "ScoredData",
        "Selection",
        "SimulationData",
        "asimulate",
        "grade",
        "read",
        "rows",
        "select",
        "simulate",
    ),
    "whileai_export": ("export",),
    "whileai_kernel": (
        "Dataset",
        "Finding",
        "Judgment",
        "Marker",
        "Rollout",
        "Spec",
        "Task",
        "Tool",
        "WhileaiError",
        "from_row",
        "lookup",
        "make",
        "register_local",
        "resolve",
        "spec_of",
        "to_row",
        "tool",
    ),
    "whileai_measure": ("pass_at",),
    "whileai_openai.specs": ("VLLM", "Endpoint", "Ollama", "OpenAI"),
    "whileai_simulate": ("seeded_agent",),
    "whileai_verify": ("verifier",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "VLLM",
    "Dataset",
    "Endpoint",
    "Finding",
    "Judgment",
    "Marker",
    "Ollama",
    "OpenAI",
    "Rollout",
    "ScoredData",
    "Selection",
    "SimulationData",
    "Spec",
    "Task",
    "Tool",
    "WhileaiError",
    "asimulate",
    "export",
    "from_row",
    "grade",
    "lookup",
    "make",
    "pass_at",
    "read",
    "register_local",
    "resolve",
    "rows",
    "seeded_agent",
    "select",
    "simulate",
    "spec_of",
    "to_row",
    "tool",
    "verifier",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from whileai_kernel.errors import nearest

    near = nearest(name, __all__)
    hint = f"; did you mean wai.{near[0]}?" if near else f"; it has {', '.join(__all__)}"
    raise AttributeError(f"whileai has no {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
