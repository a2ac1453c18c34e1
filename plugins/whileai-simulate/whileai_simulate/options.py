"""The arguments of a run, checked: modes, budgets, and the options that few calls need."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError, nearest, unknown_name
from whileai_simulate import defaults as d
from whileai_simulate.checks import check_number, check_options
from whileai_simulate.faults import Fault
from whileai_simulate.world import World

__all__ = ["MODES", "Budget", "Options", "check_unknown", "make_budget", "make_options", "preset"]

MODES: dict[str, Mapping[str, Any]] = {
    "explore": d.MODE_EXPLORE.value,
    "sft": d.MODE_SFT.value,
    "rl": d.MODE_RL.value,
    "adaptive": d.MODE_ADAPTIVE.value,
}
"""Presets of the parameters by mode; what the call names wins."""


@dataclass(frozen=True, slots=True)
class Options:
    """Knobs that few calls need; pass a mapping or an `Options`.

    Attributes:
        strength: Combinations of this many axis values are covered (2 or 3).
        weights: Wanted relative shares: `{axis: {value: weight}}`.
        off_topic: Wanted share of asks that need no tool.
        forbidden: Pairs that exclude each other: `(axis, value, other axis, other value)`.
        locale: Locale of names and streets.
        execute: `True` runs the bodies of `@tool` functions instead of the mock; a mapping names functions by tool.
        faults: Own faults by name: further values of the axis `tool_condition`.
        world: A subclass of `World` that answers calls in its own way (override `answer`).
        user: As the argument `user` of `simulate`, which wins.
        patience: Answers of the user before it gives up; a task's own brief wins.
        max_turns: Replies of the agent before a rollout is truncated.
        near_duplicate: Jaccard similarity from which two asks are near-duplicates.
        near_window: Asks, the last ones kept, that a new ask is compared with; the same words are refused for ever.
        give_up_after: Rollouts that all fail before the agent is called off; 0 never.
        collect: Keep rows in memory; without it rows stand in `output` alone.
        overwrite: Replace an `output` that exists.
        adaptive_floor: See `policies.Repeats`.
        share_tolerance: Allowed distance of shares from what was asked.
        leak_ngram: Words in a row that an ask may not share with a trace.
        rollout_tokens: Most tokens of one rollout, which a token budget reserves.
        rollout_usd: Most dollars of one rollout, which a money budget reserves.
        agent_name: Name of the agent on the rows.
        allow: Findings of checks that do not stop the run.
    """

    strength: int = d.STRENGTH.value
    weights: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)
    off_topic: float = d.OFF_TOPIC.value
    forbidden: Sequence[tuple[str, Any, str, Any]] = ()
    locale: str = "en_US"
    execute: bool | Mapping[str, Callable[..., Any]] = True
    faults: Mapping[str, Fault] = field(default_factory=dict)
    world: type[World] | None = None
    user: Any = "none"
    patience: int = d.USER_PATIENCE.value
    max_turns: int = d.MAX_TURNS.value
    near_duplicate: float = d.NEAR_DUPLICATE.value
    near_window: int = d.NEAR_WINDOW.value
    give_up_after: int = d.GIVE_UP_AFTER.value
    collect: bool = True
    overwrite: bool = False
    adaptive_floor: float = d.ADAPTIVE_FLOOR.value
    share_tolerance: float = d.SHARE_TOLERANCE.value
    leak_ngram: int = d.LEAK_NGRAM.value
    rollout_tokens: float | None = None
    rollout_usd: float | None = None
    agent_name: str | None = None
    allow: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; `None` is no limit. A run stops before it exceeds one."""

    rollouts: int | None = None
    seconds: float | None = None
    tokens: float | None = None
    usd: float | None = None


def _from_mapping(cls: type[Any], value: Mapping[str, Any], noun: str) -> Any:
    names = [f.name for f in dataclasses.fields(cls)]
    for name in value:
        if name not in names:
            unknown_name(noun, name, names)
    return cls(**value)


def make_options(value: Options | Mapping[str, Any] | None) -> Options:
    """Return options from a mapping; unknown names are errors with the nearest match."""
    if value is not None and not isinstance(value, Options | Mapping):
        raise ParameterError(
            f"options must be a mapping or Options, not {type(value).__name__}", fix="pass options={'strength': 3}"
        )
    made: Options = value if isinstance(value, Options) else _from_mapping(Options, value or {}, "option")
    check_options(made)
    return made


def make_budget(value: int | Mapping[str, float] | Budget | None) -> Budget:
    """Return a budget: a number is rollouts, a mapping names `rollouts`, `seconds`, `tokens`, `usd`."""
    if isinstance(value, Budget) or value is None:
        made = value or Budget()
    elif isinstance(value, int) and not isinstance(value, bool):
        made = Budget(rollouts=value)
    elif isinstance(value, Mapping):
        made = _from_mapping(Budget, value, "budget")
    else:
        raise ParameterError(
            f"budget must be a number of rollouts or a mapping, not {value!r:.60}", fix="pass budget=64"
        )
    for f in dataclasses.fields(Budget):
        limit = getattr(made, f.name)
        if limit is not None:
            fix = f"pass budget={{'{f.name}': 64}}"
            check_number(f"budget {f.name}", limit, 0, whole=f.name == "rollouts", above=True, fix=fix)
    return made


def preset(mode: str | None) -> dict[str, Any]:
    """Return the parameters that a mode sets.

    Raises:
        ParameterError: There is no such mode.
    """
    if mode is None:
        return {"repeats": d.REPEATS.value, "repeat_policy": "fixed"}
    if mode not in MODES:
        unknown_name("mode", mode, MODES)
    return dict(MODES[mode])


def check_unknown(unknown: Mapping[str, Any], call: Callable[..., Any]) -> None:
    """Raise for arguments that the call does not have; names the nearest argument or option."""
    if not unknown:
        return
    name = next(iter(unknown))
    own = [p for p in inspect.signature(call).parameters if p != "unknown"]
    advanced = [f.name for f in dataclasses.fields(Options)]
    if name in advanced:
        raise ParameterError(
            f"{name!r} is an option, not an argument of simulate",
            fix=f"pass options={{{name!r}: {unknown[name]!r:.40}}}",
        )
    near = nearest(name, [*own, *advanced])
    raise ParameterError(
        f"simulate has no argument {name!r}",
        why=f"its arguments are {', '.join(own)}",
        fix=f"did you mean {near[0]!r}?" if near else "leave it out",
    )
