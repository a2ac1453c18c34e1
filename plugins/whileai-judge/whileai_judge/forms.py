"""The three forms of a verdict that a model can be asked for: labels, a score, criteria.

A form reads one answer and makes one verdict of several. What cannot be read is None; a tie is abstained.

Example:
    >>> form = Form("Is polite.", {"PASS": 1.0, "FAIL": 0.0})
    >>> form.decide(["PASS", "FAIL", "PASS"])["reward"]
    1.0
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_judge.parsing import parse_object, parse_score, parse_verdict, scaled
from whileai_judge.rubric import Rubric, Verdict
from whileai_kernel.errors import ParameterError

_CRITERION: dict[str, Verdict] = {"MET": True, "UNMET": False, "N/A": "n/a"}


def label_rewards(labels: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Labels with their rewards; two bare labels are worth 1 and 0.

    Raises:
        ParameterError: Fewer than two different labels, or a reward outside [0, 1].
    """
    if isinstance(labels, Mapping):
        rewards = {str(label): float(reward) for label, reward in labels.items()}
    elif isinstance(labels, str) or len(labels) != 2:
        raise ParameterError(
            f"labels={labels!r} has no rewards",
            why="two labels are worth 1 and 0; more need their rewards",
            fix="pass labels={'good': 1.0, 'fair': 0.5, 'poor': 0.0}",
        )
    else:
        rewards = {labels[0]: 1.0, labels[1]: 0.0}
    if len({label.strip().casefold() for label in rewards}) < 2 or not all(0 <= r <= 1 for r in rewards.values()):
        raise ParameterError(f"labels={labels!r} cannot be used", why="two different labels, rewards in [0, 1]")
    return rewards


@dataclass(frozen=True, slots=True)
class Form:
    """How a verdict is given.

    Attributes:
        rubric: Prose, or criteria (then the two others do not matter).
        labels: Labels with their rewards.
        scale: Least and largest score, instead of labels.
    """

    rubric: str | Rubric
    labels: Mapping[str, float]
    scale: tuple[float, float] | None = None

    def read_text(self, text: str, marker: str) -> Any:
        """What an answer in text decided, read from the lines that carry the marker; None when unreadable."""
        if isinstance(self.rubric, Rubric):
            found: dict[str, str | None] = {}
            for criterion in self.rubric.criteria:
                choices = ("MET", "UNMET", "N/A") if criterion.may_not_apply else ("MET", "UNMET")
                found[criterion.id] = parse_verdict(text, choices, marker=f"{marker} {criterion.id}")
            return found if any(found.values()) else None
        if self.scale is not None:
            return parse_score(text, self.scale, marker=marker)
        return parse_verdict(text, tuple(self.labels), marker=marker)

    def read_object(self, text: str) -> Any:
        """What an answer in JSON decided; None when unreadable."""
        value = parse_object(text)
        if value is None:
            return None
        if isinstance(self.rubric, Rubric):
            found: dict[str, str | None] = {}
            for criterion in self.rubric.criteria:
                said = value.get(criterion.id.strip().casefold())
                choices = ("MET", "UNMET", "N/A") if criterion.may_not_apply else ("MET", "UNMET")
                found[criterion.id] = said.upper() if isinstance(said, str) and said.upper() in choices else None
            return found if any(found.values()) else None
        if self.scale is not None:
            return parse_score(json.dumps({"score": value.get("score")}), self.scale)
        return parse_verdict(json.dumps({"verdict": value.get("verdict")}), tuple(self.labels))

    def decide(self, votes: Sequence[Any]) -> dict[str, Any]:
        """The verdict of at least one readable vote: the majority; of scores the mean."""
        if isinstance(self.rubric, Rubric):
            verdicts = {c.id: majority([vote.get(c.id) for vote in votes]) for c in self.rubric.criteria}
            score = self.rubric.score({i: _CRITERION.get(v) if v else None for i, v in verdicts.items()})
            if score.reward is not None:
                return {"reward": score.reward, "reason": score.reason, "criteria": verdicts}
            status = "invalid" if score.bounds else "abstained"
            bounds = list(score.bounds) if score.bounds else None
            said = {"status": status, "reason": score.reason, "criteria": verdicts, "bounds": bounds}
            return {"reward": None, **said}
        if self.scale is not None:
            mean = sum(votes) / len(votes)
            return {"reward": scaled(mean, self.scale), "on_scale": mean}
        label = majority(votes)
        if label is None:
            return {"reward": None, "status": "abstained", "reason": "the votes are tied"}
        return {"reward": self.labels[label], "verdict": label}


def majority(votes: Sequence[Any]) -> Any:
    """The vote that occurs most often; None on a tie or without any."""
    counts = Counter(vote for vote in votes if vote is not None).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def agreement_of(votes: Sequence[Any]) -> float | None:
    """The share of pairs of votes that are equal; None with fewer than two votes."""
    pairs = [(a, b) for i, a in enumerate(votes) for b in votes[i + 1 :]]
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None
