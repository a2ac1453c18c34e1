"""What all scenes of a run share, made from tools and a policy text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whileai_kernel.tools import as_tools
from whileai_simulate.axes import build_axes
from whileai_simulate.defaults import OFF_TOPIC
from whileai_simulate.entities import read_domain
from whileai_simulate.faults import Fault
from whileai_simulate.scenes import Setting

__all__ = ["make_setting"]


def make_setting(
    tools: Iterable[Any],
    system_prompt: str | None,
    *,
    seed: int = 0,
    locale: str = "en_US",
    axes: Mapping[str, Sequence[Any] | None] | None = None,
    weights: Mapping[str, Mapping[Any, float]] | None = None,
    off_topic: float = OFF_TOPIC.value,
    forbidden: Sequence[tuple[str, Any, str, Any]] = (),
    faults: Mapping[str, Fault] | None = None,
) -> Setting:
    """Read the tools and the policy once, for all scenes.

    Args:
        tools: Anything that `whileai_kernel.tools.as_tool` reads.
        system_prompt: The policy; clauses become values of the axis `policy_rule`.
        seed: Seed of the run.
        locale: Locale of names and streets (faker).
        axes: Pinned, added and dropped axes; see `build_axes`.
        weights: Wanted relative shares; see `build_axes`.
        off_topic: Wanted share of asks that need no tool.
        forbidden: Further pairs of values that exclude each other.
        faults: Own faults by name, further values of the axis `tool_condition`.
    """
    parsed = as_tools(tools)
    domain = read_domain(parsed)
    found = build_axes(
        domain,
        system_prompt,
        changes=axes,
        weights=weights,
        off_topic=off_topic,
        forbidden=forbidden,
        faults=tuple(faults or ()),
    )
    text = system_prompt or ""
    return Setting(
        domain=domain,
        axes=found,
        seed=seed,
        locale=locale,
        authenticate=bool(
            re.search(r"authenticat|verify (the|their|his|her)? ?(user|customer|identity)|identity", text, re.I)
        ),
        confirm=bool(re.search(r"\bconfirm", text, re.I)),
        tools=[tool.to_openai() for tool in parsed],
        system_prompt=system_prompt,
        faults=dict(faults or {}),
    )
