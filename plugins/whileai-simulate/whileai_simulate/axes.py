"""The axes of a situation: what varies, which values exclude each other, and how often each is wanted.

Values come from the tools, the policy text and the options; a caller can pin an axis to some values, drop it, or
add one. Clauses of the policy become values without a cap. Constraints keep situations meaningful: a fault needs a
tool call, a world state needs an entity, a retry needs a history.

Example:
    >>> [rule.text for rule in policy_rules("Be kind. You must verify the email before any change.")]
    ['You must verify the email before any change.']
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError, nearest, unknown_name
from whileai_simulate.covering import Forbidden
from whileai_simulate.defaults import OFF_TOPIC
from whileai_simulate.entities import Domain, ToolInfo
from whileai_simulate.faults import FAULTS, SUCCESS

__all__ = ["AXIS_NAMES", "HISTORIES", "NO_TOOL", "SEVERAL", "STANCES", "VOCABULARY", "WORLD_STATES", "Axes", "Rule",
           "build_axes", "may_be", "policy_rules"]  # fmt: skip

NO_TOOL, SEVERAL, NONE = "none", "several", "none"
AXIS_NAMES = ("tool", "policy_rule", "stance", "world_state", "tool_condition", "history")
STANCES = ("ordinary", "ambiguous", "boundary", "adversarial", "hurried", "unsure", "retry", "mistaken", "exploratory",
           "conflicting")  # fmt: skip
WORLD_STATES = ("exists", "missing", "already_acted", "duplicate", "partial", "unknown")
CONDITIONS = (SUCCESS, *FAULTS)
HISTORIES = ("fresh", "prior_failure", "prior_partial", "contradicts_earlier", "repeat_visit")
VOCABULARY: dict[str, tuple[str, ...]] = {
    "stance": STANCES,
    "world_state": (*WORLD_STATES, NONE),
    "tool_condition": (*CONDITIONS, NONE),
    "history": HISTORIES,
}
"""Values of the axes that are the same whatever the tools are; own faults are further tool conditions."""
_OFF_TOPIC_STANCES = ("ordinary", "hurried", "exploratory")
_MODAL = re.compile(
    r"\b(must|should|shall|can only|cannot|can not|can't|may not|may only|never|always|do not|don't|does not|needs? to|"
    r"has to|have to|only if|only when|allowed|at most|at least|unless|deny|refuse|ensure|make sure|required?|"
    r"forbidden|"
    r"prohibited|will be|no more than|within \d+)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One clause of the policy: its value on the axis and its text."""

    value: str
    text: str


@dataclass(slots=True)
class Axes:
    """Axes of a run.

    Attributes:
        values: Values of each axis, in order.
        forbidden: Pairs of values that exclude each other.
        weights: How often each value is wanted, relative to the others of its axis.
        rules: Clauses of the policy by their value.
    """

    values: dict[str, list[Any]]
    forbidden: list[Forbidden] = field(default_factory=list)
    weights: dict[str, dict[Any, float]] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)

    def asked(self, axis: str) -> dict[Any, float]:
        """Return the wanted share of each value of an axis; they sum to 1."""
        weights = {v: self.weights.get(axis, {}).get(v, 1.0) for v in self.values[axis]}
        total = sum(weights.values()) or 1.0
        return {v: w / total for v, w in weights.items()}


def policy_rules(text: str | None) -> list[Rule]:
    """Return the clauses of a policy: sentences that oblige, forbid or limit; none is left out for length.

    Args:
        text: The policy, plain or Markdown. Headings are skipped, list items are read one by one.
    """
    blocks: list[str] = []
    joined = ""
    for raw in (text or "").splitlines():
        line = raw.strip()
        bullet = re.match(r"^(?:[-*+•]|\d+[.)])\s+", line)
        if not line or line.startswith("#") or bullet:
            blocks.append(joined)
            joined = re.sub(r"^(?:[-*+•]|\d+[.)])\s+", "", line) if bullet else ""
        else:
            joined = f"{joined} {line}".strip()
    blocks.append(joined)
    rules: list[Rule] = []
    seen: set[str] = set()
    for block in blocks:
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9'\"(])", re.sub(r"\*\*|__|`", "", block)):
            clean = sentence.strip()
            if len(clean) > 8 and _MODAL.search(clean) and clean.casefold() not in seen:
                seen.add(clean.casefold())
                words = re.findall(r"[\w'-]+", clean)
                short = " ".join(words[:8])
                rules.append(Rule(f"r{len(rules) + 1:02} {short}", clean))
    return rules


def build_axes(
    domain: Domain,
    system_prompt: str | None,
    *,
    changes: Mapping[str, Sequence[Any] | None] | None = None,
    weights: Mapping[str, Mapping[Any, float]] | None = None,
    off_topic: float = OFF_TOPIC.value,
    forbidden: Sequence[Forbidden] = (),
    faults: Sequence[str] = (),
) -> Axes:
    """Return the axes for some tools and a policy.

    Args:
        domain: What the tools are about.
        system_prompt: The policy text.
        changes: Per axis: a list pins a known axis to these values, or adds a new axis; `None` drops it.
        weights: Relative weight of values, by axis; values that are not named weigh 1.
        off_topic: Wanted share of asks that need no tool, in [0, 1).
        forbidden: Further pairs of values that exclude each other.
        faults: Names of own faults.

    Raises:
        ParameterError: An axis or a value is unknown, or a share is out of range.
    """
    rules = policy_rules(system_prompt)
    names = list(domain.tools)
    tools = [*names, *([SEVERAL] if len(names) > 1 else []), *([NO_TOOL] if off_topic > 0 or not names else [])]
    values: dict[str, list[Any]] = {
        "tool": tools,
        "policy_rule": [NONE, *(r.value for r in rules)],
        "stance": list(STANCES),
        "world_state": [*WORLD_STATES, NONE],
        "tool_condition": [*CONDITIONS, *faults, NONE],
        "history": list(HISTORIES),
    }
    if not 0 <= off_topic < 1:
        raise ParameterError(f"off_topic must be in [0, 1), not {off_topic!r}", fix="pass off_topic=0.05")
    wanted = {axis: dict(by_value) for axis, by_value in (weights or {}).items()}
    share = off_topic / (1 - off_topic) * max(1, len(tools) - 1) if off_topic else 0.0
    wanted.setdefault("tool", {}).setdefault(NO_TOOL, share)
    every = {axis: list(known) for axis, known in values.items()}
    pinned_axes = _apply(values, changes or {})
    _check_forbidden(forbidden, {**every, **{axis: known for axis, known in values.items() if axis not in every}})
    for axis, by_value in wanted.items():
        if axis not in values and axis in AXIS_NAMES:
            continue
        if axis not in values:
            unknown_name("axis", axis, values)
        for value in by_value:
            if value not in values[axis] and not (axis == "tool" and value == NO_TOOL) and axis not in pinned_axes:
                unknown_name(f"value of {axis}", str(value), [str(v) for v in values[axis]])
        if all(by_value.get(value, 1.0) == 0 for value in values[axis]):
            raise ParameterError(f"every value of axis {axis!r} has weight 0", fix=f"leave one of {axis} above 0")
    rules_by_value = {r.value: r for r in rules if r.value in values.get("policy_rule", ())}
    return _pruned(Axes(values, [*_constraints(domain, values), *forbidden], wanted, rules_by_value))


def _check_forbidden(forbidden: Sequence[Forbidden], values: Mapping[str, Sequence[Any]]) -> None:
    for pair in forbidden:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 4:
            raise ParameterError(
                f"a forbidden pair is (axis, value, other axis, other value), not {pair!r:.60}",
                fix="pass options={'forbidden': [('tool', 'get_order', 'stance', 'hurried')]}",
            )
        for axis, value in (pair[:2], pair[2:]):
            if axis not in values:
                unknown_name("axis", str(axis), values)
            if value not in values[axis]:
                unknown_name(f"value of {axis}", str(value), [str(v) for v in values[axis]])
        if pair[0] == pair[2]:
            raise ParameterError(
                f"a forbidden pair is of two axes, and {pair[0]!r} is one",
                fix=f"pin the axis instead: axes={{{pair[0]!r}: [...]}}",
            )


def _misspelt(axis: str, chosen: Sequence[Any], values: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a new axis looks like a known one, by its name and its values: then it is one, misspelt."""
    return any(not set(chosen).isdisjoint(values.get(known, ())) for known in nearest(axis, AXIS_NAMES))


def _apply(values: dict[str, list[Any]], changes: Mapping[str, Sequence[Any] | None]) -> set[str]:
    for axis, pinned in changes.items():
        if pinned is None:
            if axis not in values:
                unknown_name("axis", axis, values)
            del values[axis]
            continue
        chosen = [pinned] if isinstance(pinned, str) else list(pinned)
        if not chosen:
            raise ParameterError(f"axis {axis!r} has no values", fix=f"give values, or {axis}=None to drop it")
        if axis in AXIS_NAMES and axis in values:
            for value in chosen:
                if value not in values[axis]:
                    unknown_name(f"value of {axis}", str(value), [str(v) for v in values[axis]])
            # Where nothing is called there is nothing to fail: the neutral value stays available.
            neutral = [NONE] if axis in ("world_state", "tool_condition") and NONE not in chosen else []
            chosen = [*chosen, *neutral]
        elif axis not in AXIS_NAMES and _misspelt(axis, chosen, values):
            unknown_name("axis", axis, values)
        values[axis] = chosen
    return set(changes)


def _constraints(domain: Domain, values: Mapping[str, Sequence[Any]]) -> list[Forbidden]:
    out: list[Forbidden] = []
    states = [s for s in values.get("world_state", ()) if s != NONE]
    conditions = [c for c in values.get("tool_condition", ()) if c != NONE]
    for tool in values.get("tool", ()):
        info = domain.tools.get(tool)
        calls = tool != NO_TOOL
        lives = calls and (info is None or info.mode not in ("generic", "list")) and bool(domain.entities)
        if info is not None and info.mode == "list" and info.key:
            lives = True
        out += (
            [("tool", tool, "tool_condition", NONE)]
            if calls
            else [("tool", tool, "tool_condition", c) for c in conditions]
        )
        out += [("tool", tool, "world_state", NONE)] if lives else [("tool", tool, "world_state", s) for s in states]
        if info is not None and lives:
            out += [("tool", tool, "world_state", s) for s in states if not may_be(info, domain, s)]
        if not calls:
            out += [("tool", tool, "stance", s) for s in STANCES if s not in _OFF_TOPIC_STANCES]
            out += [("tool", tool, "history", h) for h in HISTORIES if h not in ("fresh", "repeat_visit")]
            out += [("tool", tool, "policy_rule", r) for r in values.get("policy_rule", ()) if r != NONE]
        if info is not None and (info.mode == "generic" or (info.mode == "list" and not info.key)):
            # A sum, a transfer or a catalogue leaves nothing half done, and nothing to be wrong, vague or torn about.
            out += [("tool", tool, "history", h) for h in ("prior_partial", "contradicts_earlier")]
            out += [("tool", tool, "stance", s) for s in ("conflicting", "mistaken", "ambiguous")]
        if info is not None and info.mode == "generic":
            out += [("tool", tool, "history", "prior_failure"), ("tool", tool, "stance", "exploratory")]
    out += [("stance", "retry", "history", "fresh"), ("stance", "retry", "history", "contradicts_earlier")]
    out += [("stance", s, "history", "prior_partial") for s in ("unsure", "exploratory")]
    out += [
        ("stance", s, "history", "contradicts_earlier") for s in ("conflicting", "ambiguous", "unsure", "exploratory")
    ]
    return out


def may_be(info: ToolInfo, domain: Domain, state: str) -> bool:
    """Whether what a tool is about can be in a state of the world.

    What is made beside nothing can be there already or half made, but not gone, doubled or uncertain; what is made for
    another thing (a comment on an issue) can, since that other thing can.
    """
    if info.mode != "create" or state not in ("missing", "duplicate", "unknown"):
        return True
    return any(p.name == info.key and p.entity in domain.entities for p in info.params)


def _clash(axes: Axes) -> str:
    """Return which values exclude each other where an axis has no other."""
    only = {(axis, values[0]) for axis, values in axes.values.items() if len(values) == 1}
    found = [f"{a}={va} and {b}={vb}" for a, va, b, vb in axes.forbidden if {(a, va), (b, vb)} <= only]
    return f"{', '.join(found[:3])} exclude each other" if found else "the constraints exclude each of them"


def _pruned(axes: Axes) -> Axes:
    """Drop values that no valid row can hold: `none` where every tool has an entity, for example."""
    from whileai_simulate.covering import count_coverage

    reachable = count_coverage([], axes.values, strength=1, forbidden=axes.forbidden).missing
    possible = {cell[0] for cell in reachable}
    for axis, values in list(axes.values.items()):
        kept = [v for v in values if (axis, v) in possible]
        if not kept:
            raise ParameterError(
                f"no value of axis {axis!r} can occur",
                why=_clash(axes),
                fix="pin other values, or drop one of the axes",
            )
        axes.values[axis] = kept
    return axes
