"""The oracle of the seeded agent: a judge that knows which rollouts were made to misbehave.

A seeded agent writes the labels of the behaviours that it planted to the row's ``seeded``. This judge
reads them, so it is right by construction: use it to try the loop, and as the gold that other judges are
measured against. It says nothing about rows of an ordinary agent, which have no such key.

Example:
    >>> seeded({"seeded": []})["reward"], seeded({"seeded": ["hedging"]})["reward"], seeded({})["status"]
    (1.0, 0.0, 'missing')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_kernel.protocols import Example


def seeded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Reward 0 when a behaviour was planted in the rollout, 1 when none was.

    Args:
        row: A row of a seeded agent.

    Returns:
        A verdict; not scored, ``missing``, when the row has no ``seeded`` key.
    """
    labels = row.get("seeded")
    if labels is None:
        return {"reward": None, "status": "missing", "reason": "the row has no label of a seeded agent"}
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        return {"reward": None, "status": "invalid", "reason": "seeded is not a list of labels"}
    if not labels:
        return {"reward": 1.0, "reason": "no behaviour was planted"}
    return {"reward": 0.0, "reason": f"planted: {', '.join(labels)}", "labels": list(labels)}


def _example(labels: list[str] | None, reward: float | None) -> Example:
    row: dict[str, Any] = {"task_id": "t", "prompt": "Where is my order?", "final_text": "It has shipped."}
    row |= {"reward": None, "markers": {}, "status": "missing"}
    if labels is not None:
        row["seeded"] = labels
    return Example(row, reward)


seeded.examples = (_example([], 1.0), _example(["hedging"], 0.0), _example(None, None))  # type: ignore[attr-defined]
seeded.scorer_kind = "rule"  # type: ignore[attr-defined]
