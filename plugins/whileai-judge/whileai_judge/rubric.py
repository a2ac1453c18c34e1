"""A rubric of weighted criteria: one verdict per criterion, one reward from them.

| kind of criterion | met | not met |
| --- | --- | --- |
| ``hard`` | nothing changes | the reward is 0 |
| ``principle`` | its weight counts | its weight is missing |
| ``pitfall`` (met = the reply fell into it) | its weight is taken off | nothing changes |

The reward is (weights of principles met - weights of pitfalls met) / (weights of principles), held in [0, 1]. With no
principle it starts from 1: hard criteria decide and pitfalls take off their share. A criterion without a verdict is
not a pass and not a fail: when the reward depends on it, the row is not scored. One that does not apply is left out;
when none applies there is nothing to score.

Example:
    >>> rubric = Rubric([Criterion("asks", "Asks for the order number.", "hard"), Criterion("warm", "Is warm.")])
    >>> rubric.score({"asks": True, "warm": False}).reward, rubric.score({"asks": False, "warm": None}).reward
    (0.0, 0.0)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from whileai_judge.defaults import UNREAD_CRITERIA
from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.rows import content_id

Kind = Literal["hard", "principle", "pitfall"]
KINDS: tuple[Kind, ...] = ("hard", "principle", "pitfall")
Verdict = bool | None | Literal["n/a"]

_LISTED = re.compile(r"^\s*[-*]\s+\[(hard|principle|pitfall)", re.MULTILINE)
_ITEM = re.compile(
    r"^\s*[-*]\s+(?:\[(?P<kind>[a-z]+)(?:\s+(?P<weight>[0-9.]+))?\]\s*)?(?:(?P<id>[\w-]+):\s+)?(?P<text>.+)$"
)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing to look for.

    Attributes:
        id: Short name, unique in the rubric.
        text: What has to be true of the reply (of a pitfall: what the reply must not do).
        kind: ``hard``, ``principle`` or ``pitfall``.
        weight: How much it counts among principles and pitfalls, above 0.
        may_not_apply: Whether the judge may answer that it does not apply.
    """

    id: str
    text: str
    kind: Kind = "principle"
    weight: float = 1.0
    may_not_apply: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"criterion {self.id!r} has kind {self.kind!r}", fix=f"use one of {', '.join(KINDS)}")
        if not (isinstance(self.weight, int | float) and 0 < self.weight < float("inf")):
            raise ParameterError(f"criterion {self.id!r} has weight {self.weight!r}", fix="use a number above 0")
        if not self.id.strip() or not self.text.strip():
            raise ParameterError("a criterion needs an id and a text", fix="Criterion('polite', 'Is polite.')")


@dataclass(frozen=True, slots=True)
class RubricScore:
    """What the verdicts on the criteria come to.

    Attributes:
        reward: In [0, 1], or None when it depends on a criterion without a verdict, or nothing applies.
        bounds: Least and largest reward that the criteria without a verdict leave possible; None when nothing applies.
        reason: One sentence.
    """

    reward: float | None
    bounds: tuple[float, float] | None
    reason: str


class Rubric:
    """Criteria and how they make a reward.

    Args:
        criteria: At least one.
        name: What reports call it.

    Raises:
        ParameterError: No criterion, or two with one id.
    """

    def __init__(self, criteria: Iterable[Criterion], name: str = "rubric") -> None:
        self.criteria = tuple(criteria)
        self.name = name
        ids = [criterion.id for criterion in self.criteria]
        if not ids:
            raise ParameterError("a rubric needs a criterion", why="nothing to check is not a pass")
        repeated = sorted({one for one in ids if ids.count(one) > 1})
        if repeated:
            raise ParameterError(f"criteria share the id {repeated[0]!r}", why="one verdict per id", fix="rename one")

    @property
    def version(self) -> str:
        """Hash of everything that shapes a verdict."""
        return content_id("rubric", [[c.id, c.text, c.kind, float(c.weight), c.may_not_apply] for c in self.criteria])

    @classmethod
    def from_markdown(cls, text: str, name: str = "rubric") -> Rubric:
        """Read a rubric from a list: ``- [hard] asks: Asks for the order number.``, ``- [pitfall 2] Guesses.``

        The kind (``principle``), its weight (1) and the id (``c1``, ``c2``...) may be left out.

        Raises:
            ParameterError: There is no list item, or a kind is unknown.
        """
        criteria: list[Criterion] = []
        for line in text.splitlines():
            match = _ITEM.match(line)
            if match is not None:
                kind = next((k for k in KINDS if k == (match["kind"] or "principle")), None)
                if kind is None:
                    unknown_name("kind of criterion", match["kind"], KINDS)
                weight = float(match["weight"] or 1)
                criteria.append(Criterion(match["id"] or f"c{len(criteria) + 1}", match["text"].strip(), kind, weight))
        return cls(criteria, name)

    @classmethod
    def read(cls, text: str, name: str = "rubric") -> Rubric | str:
        """The rubric that a text lists: one with items such as ``- [hard] asks: ...``; any other text is prose.

        Raises:
            ParameterError: The text is empty, or a kind is unknown.
        """
        if not text.strip():
            raise ParameterError("the rubric is empty", why="nothing to check is not a pass", fix="say what counts")
        return cls.from_markdown(text, name) if _LISTED.search(text) else text

    def score(self, verdicts: Mapping[str, Verdict]) -> RubricScore:
        """The reward of one set of verdicts.

        Args:
            verdicts: By criterion id: True, False, None (no verdict), ``"n/a"`` (does not apply).

        Raises:
            ParameterError: A verdict names no criterion.
        """
        known = {criterion.id for criterion in self.criteria}
        strangers = sorted(set(verdicts) - known)
        if strangers:
            raise ParameterError(f"no criterion {strangers[0]!r}", why=f"criteria are {', '.join(sorted(known))}")
        applying = [c for c in self.criteria if verdicts.get(c.id) != "n/a"]
        if not applying:
            return RubricScore(None, None, "no criterion applies")
        open_ids = [c.id for c in applying if verdicts.get(c.id) is None]
        if len(open_ids) > UNREAD_CRITERIA.value:
            return RubricScore(None, (0.0, 1.0), f"{len(open_ids)} of {len(applying)} criteria have no verdict")
        rewards = [
            _reward(applying, {**verdicts, **dict(zip(open_ids, guess, strict=True))})
            for guess in itertools.product((True, False), repeat=len(open_ids))
        ]
        low, high = min(rewards), max(rewards)
        if high - low > 1e-12:
            return RubricScore(None, (low, high), f"no verdict on {', '.join(open_ids)}")
        failed = [c.id for c in applying if c.kind == "hard" and verdicts.get(c.id) is False]
        missed = [c.id for c in applying if c.kind == "principle" and verdicts.get(c.id) is False]
        fell = [c.id for c in applying if c.kind == "pitfall" and verdicts.get(c.id) is True]
        said = [("failed", failed), ("not met", missed), ("pitfall", fell)]
        reason = "; ".join(f"{word}: {', '.join(ids)}" for word, ids in said if ids) or "every criterion is met"
        return RubricScore(low, (low, high), reason)

    def to_dict(self) -> dict[str, Any]:
        """The rubric as plain values."""
        fields = ("id", "text", "kind", "weight", "may_not_apply")
        return {"name": self.name, "criteria": [{f: getattr(c, f) for f in fields} for c in self.criteria]}

    def __repr__(self) -> str:
        return f"Rubric({self.name!r}, {len(self.criteria)} criteria)"


def _reward(criteria: list[Criterion], verdicts: Mapping[str, Verdict]) -> float:
    if any(c.kind == "hard" and verdicts.get(c.id) is False for c in criteria):
        return 0.0
    principles = sum(c.weight for c in criteria if c.kind == "principle")
    pitfalls = sum(c.weight for c in criteria if c.kind == "pitfall")
    met = sum(c.weight for c in criteria if c.kind == "principle" and verdicts.get(c.id) is True)
    fell = sum(c.weight for c in criteria if c.kind == "pitfall" and verdicts.get(c.id) is True)
    if not principles:
        return max(0.0, 1.0 - (fell / pitfalls if pitfalls else 0.0))
    return min(1.0, max(0.0, (met - fell) / principles))
