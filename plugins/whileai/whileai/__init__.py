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

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    import whileai_verify as verify
    from whileai.backends import Anthropic, Bedrock, Fireworks, Gemini, LiteLLM, Local
    from whileai.data import ScoredData, Selection, SimulationData, read, rows, select
    from whileai.settings import asimulate, configure, context, grade, simulate
    from whileai_agents import mcp_tools, proxy
    from whileai_export import export, preflight_export
    from whileai_guard import HackMonitor, decontaminate, hack_scan, hack_scan_diff, leak_report, split_rows
    from whileai_judge import (
        Criterion,
        Judge,
        Rubric,
        annotator_agreement,
        attach_labels,
        compare_judges,
        corrected_pass_rate,
        judge_probes,
        judge_trust,
        pairwise,
    )
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
    from whileai_measure import (
        agreement,
        compare,
        coverage_gap,
        detectable_effect,
        eval_power,
        eval_variance,
        holdout_size,
        noise_band,
        pass_at,
        self_check,
        stop_when,
    )
    from whileai_openai import Cached, Ceilings, Metered, Recorded
    from whileai_openai.specs import VLLM, Endpoint, Ollama, OpenAI
    from whileai_select import (
        build_preference_pairs,
        curriculum,
        group_signal,
        next_round,
        publish_gate,
        recommend_k,
        retire_solved,
        trim,
    )
    from whileai_simulate import (
        ModelUser,
        ModelWriter,
        audit_user,
        honest_agent,
        preflight,
        recommend,
        seeded_agent,
    )
    from whileai_traces import tools_from_traces
    from whileai_verify import verifier

__version__ = "1.0.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "whileai.backends": ("Anthropic", "Bedrock", "Fireworks", "Gemini", "LiteLLM", "Local"),
    "whileai.settings": ("asimulate", "configure", "context", "grade", "simulate"),
    "whileai.data": ("ScoredData", "Selection", "SimulationData", "read", "rows", "select"),
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
    "whileai_openai": ("Cached", "Ceilings", "Metered", "Recorded"),
    "whileai_openai.specs": ("VLLM", "Endpoint", "Ollama", "OpenAI"),
    "whileai_agents": ("mcp_tools", "proxy"),
    "whileai_verify": ("verifier",),
    "whileai_export": (
        "export",
        "preflight_export",
    ),
    "whileai_guard": (
        "HackMonitor",
        "decontaminate",
        "hack_scan",
        "hack_scan_diff",
        "leak_report",
        "split_rows",
    ),
    "whileai_judge": (
        "Criterion",
        "Judge",
        "Rubric",
        "annotator_agreement",
        "attach_labels",
        "compare_judges",
        "corrected_pass_rate",
        "judge_probes",
        "judge_trust",
        "pairwise",
    ),
    "whileai_measure": (
        "agreement",
        "compare",
        "coverage_gap",
        "detectable_effect",
        "eval_power",
        "eval_variance",
        "holdout_size",
        "noise_band",
        "pass_at",
        "self_check",
        "stop_when",
    ),
    "whileai_select": (
        "build_preference_pairs",
        "curriculum",
        "group_signal",
        "next_round",
        "publish_gate",
        "recommend_k",
        "retire_solved",
        "trim",
    ),
    "whileai_simulate": (
        "ModelUser",
        "ModelWriter",
        "audit_user",
        "honest_agent",
        "preflight",
        "recommend",
        "seeded_agent",
    ),
    "whileai_traces": ("tools_from_traces",),
}

__all__ = [
    "VLLM",
    "Anthropic",
    "Bedrock",
    "Cached",
    "Ceilings",
    "Criterion",
    "Dataset",
    "Endpoint",
    "Finding",
    "Fireworks",
    "Gemini",
    "HackMonitor",
    "Judge",
    "Judgment",
    "LiteLLM",
    "Local",
    "Marker",
    "Metered",
    "ModelUser",
    "ModelWriter",
    "Ollama",
    "OpenAI",
    "Recorded",
    "Rollout",
    "Rubric",
    "ScoredData",
    "Selection",
    "SimulationData",
    "Spec",
    "Task",
    "Tool",
    "WhileaiError",
    "agreement",
    "annotator_agreement",
    "asimulate",
    "attach_labels",
    "audit_user",
    "build_preference_pairs",
    "compare",
    "compare_judges",
    "configure",
    "context",
    "corrected_pass_rate",
    "coverage_gap",
    "curriculum",
    "decontaminate",
    "detectable_effect",
    "eval_power",
    "eval_variance",
    "export",
    "from_row",
    "grade",
    "group_signal",
    "hack_scan",
    "hack_scan_diff",
    "holdout_size",
    "honest_agent",
    "judge_probes",
    "judge_trust",
    "leak_report",
    "lookup",
    "make",
    "mcp_tools",
    "next_round",
    "noise_band",
    "pairwise",
    "pass_at",
    "preflight",
    "preflight_export",
    "proxy",
    "publish_gate",
    "read",
    "recommend",
    "recommend_k",
    "register_local",
    "resolve",
    "retire_solved",
    "rows",
    "seeded_agent",
    "select",
    "self_check",
    "simulate",
    "spec_of",
    "split_rows",
    "stop_when",
    "to_row",
    "tool",
    "tools_from_traces",
    "trim",
    "verifier",
    "verify",
]


_imported, _names = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "verify":  # a module
        return importlib.import_module("whileai_verify")
    if name in __all__ or name.startswith("__"):
        return _imported(name)
    from whileai_kernel.errors import nearest

    near = nearest(name, __all__)
    hint = f"; did you mean wai.{near[0]}?" if near else f"; it has {', '.join(__all__)}"
    raise AttributeError(f"whileai has no {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*_names(), *__all__})
