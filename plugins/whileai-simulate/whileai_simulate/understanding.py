"""What the simulator understood of some tools and a policy, and what to declare so that it need not guess."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whileai_simulate.baseline import NullResult, null_baseline
from whileai_simulate.covering import covering_array
from whileai_simulate.setting import make_setting

__all__ = ["Preflight", "preflight"]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was inferred.

    Attributes:
        tools: Per tool: kind, mode, entity, key and the status it leaves.
        entities: Per entity type: id field, an example id, owner, fields, and where it was seen.
        rules: Clauses of the policy.
        person: Entity type of the person who writes, or `None`.
        guesses: What was inferred from names alone, and what to declare instead.
        array_rows: Situations that the pairwise array takes.
        pairs: Feasible pairs of axis values.
        nulls: What agents that do nothing earn from the judge, when one is given.
    """

    tools: Mapping[str, Mapping[str, Any]]
    entities: Mapping[str, Mapping[str, Any]]
    rules: Sequence[str]
    person: str | None
    guesses: Sequence[str]
    array_rows: int
    pairs: int
    nulls: Sequence[NullResult] = ()

    @property
    def warnings(self) -> list[str]:
        """What to mend before a run, one sentence each."""
        return [
            f"the judge pays an agent that does nothing ({n}): a model will learn to do that"
            for n in self.nulls
            if n.example is not None
        ] + [f"the judge could not grade {n}" for n in self.nulls if n.failure is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        plain = {name: _plain(getattr(self, name)) for name in self.__slots__ if name != "nulls"}
        return {**plain, "nulls": [asdict(n) for n in self.nulls], "warnings": self.warnings}

    def one_line(self) -> str:
        """Return the preflight in one line."""
        return (
            f"{len(self.tools)} tools, {len(self.entities)} entity types, {len(self.rules)} policy rules, "
            f"{len(self.guesses)} guesses; pairwise coverage takes {self.array_rows} situations"
            + (f"; {len(self.warnings)} warnings" if self.warnings else "")
        )

    def __str__(self) -> str:
        lines = [self.one_line()]
        for name, tool in self.tools.items():
            about = f" {tool['entity']}" if tool["entity"] else ""
            key = f" by {tool['key']}" if tool["key"] else ""
            after = f", then {tool['done']}" if tool["done"] else ""
            lines.append(f"  {name}: {tool['kind']}, {tool['mode']}{about}{key}{after}")
        for name, entity in self.entities.items():
            owner = f", owned by {entity['owner']}" if entity["owner"] else ""
            lines.append(
                f"  {name}: id {entity['id_field']} such as {entity['example']}{owner}; {', '.join(entity['fields'])}"
            )
        lines += [f"  guess: {guess}" for guess in self.guesses]
        lines += [f"  does nothing, {n}" for n in self.nulls]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def preflight(tools: Iterable[Any], system_prompt: str | None = None, *, seed: int = 0, judge: Any = None) -> Preflight:
    """Show what the simulator infers from tools and a policy, before anything runs.

    With a judge it also has three agents graded that do nothing (they say nothing, one sentence, a refusal), and warns
    when they are paid where the goal needs an action or a look.

    Args:
        tools: Anything that `whileai_kernel.tools.as_tool` reads.
        system_prompt: The policy.
        seed: Seed of the example ids.
        judge: Judge or verifier of one's own, or its name; it is asked `3 * NULL_SITUATIONS` times at most.
    """
    from whileai_simulate.draw import Draw
    from whileai_simulate.records import make_id, make_person, make_record

    tools = list(tools)
    setting = make_setting(tools, system_prompt, seed=seed)
    domain = setting.domain
    array = covering_array(setting.axes.values, forbidden=setting.axes.forbidden, seed=seed)
    draw = Draw(seed, "preflight")
    person = make_person(draw)
    infos = {
        name: {"kind": i.kind, "mode": i.mode, "entity": i.entity, "key": i.key, "done": i.done, "needs": i.needs}
        for name, i in domain.tools.items()
    }
    entities = {
        name: {
            "id_field": e.id_field,
            "example": make_id(e, draw, person),
            "owner": e.owner,
            "fields": [k for k in make_record(domain, name, draw, person) if k != e.id_field],
            "statuses": list(e.statuses),
            "sources": list(dict.fromkeys(e.sources)),
        }
        for name, e in domain.entities.items()
    }
    guesses = [g for i in domain.tools.values() for g in i.guesses]
    guesses += [
        f"{name}: no result schema, so its fields are the usual ones; annotate {domain.readers(name)[0].name}()"
        for name, e in domain.entities.items()
        if domain.readers(name) and not any("result of" in s for s in e.sources)
    ]
    guesses += [
        f"{name}: no example or pattern of its ids; add 'such as ...' to the description of {e.id_field}"
        for name, e in domain.entities.items()
        if e.id_example is None and not {"pattern", "format", "enum"} & set(e.id_schema)
        and any("parameter" in s for s in e.sources)
    ]  # fmt: skip
    rules = [r.text for r in setting.rules.values()]
    nulls = () if judge is None else tuple(null_baseline(judge, tools, system_prompt, seed=seed))
    return Preflight(infos, entities, rules, domain.person, guesses, len(array.rows), array.planned, nulls)
