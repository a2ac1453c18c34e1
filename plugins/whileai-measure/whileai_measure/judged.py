"""Is the scorer right: its verdicts against a truth that some of the rows carry, and the pass rate corrected for it.

The truth of a row is a field (`truth="labels.human"`), a function of the row, a mapping from rollout ids, or, without
`truth=`, the reward of its latest human judgment. Rows without a truth still count for the pass rate that is corrected.

Example:
    >>> rows = [{"task_id": str(i), "reward": i % 2, "label": i % 2 if i < 30 else 0} for i in range(40)]
    >>> print(judge_agreement(rows, truth="label").confusion)
    sensitivity 1.00 [0.80..1.00], specificity 0.80 [0.61..0.91] (passes: 15 right, 0 missed; fails: 20 right, 5 missed)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.rows import task_key
from whileai_measure.blocks import RowsLike, row_stream, safe
from whileai_measure.columns import Label, extract
from whileai_measure.correction import CorrectedRate, rogan_gladen
from whileai_measure.defaults import CONFIDENCE
from whileai_measure.intervals import Estimate
from whileai_measure.passat import PassAt, pass_at
from whileai_measure.raters import Agreement, Confusion, agreement, confusion

__all__ = ["JudgeAgreement", "judge_agreement"]


@dataclass(frozen=True)
class JudgeAgreement:
    """A scorer against the truth.

    Attributes:
        agreement: Accuracy, kappa and AC1 of pass and fail.
        confusion: Counts, sensitivity and specificity.
        observed: Pass rates as the scorer reports them, over all rows.
        corrected: pass@1 corrected for the scorer; `None` where it cannot be (no labelled passes or fails, or a scorer
            no better than chance).
        notes: What a reader must know.
    """

    agreement: Agreement
    confusion: Confusion
    observed: PassAt
    corrected: CorrectedRate | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [str(self.agreement), str(self.confusion)]
        if self.corrected is not None:
            lines.append(str(self.corrected))
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        return {
            "agreement": self.agreement.to_dict(),
            "confusion": self.confusion.to_dict(),
            "observed": self.observed.to_dict(),
            "corrected": None if self.corrected is None else self.corrected.to_dict(),
            "notes": list(self.notes),
        }


def judge_agreement(
    rows: RowsLike,
    *,
    truth: Label | None = None,
    threshold: float | None = None,
    confidence: float = CONFIDENCE.value,
) -> JudgeAgreement:
    """Return how far the rewards of rows agree with a truth that some of them carry.

    Args:
        rows: Rows, an iterator of rows, a path or a table.
        truth: Field, function or mapping from rollout ids; without it the latest human judgment. A number in [0, 1],
            a boolean, or `None` where a row has no truth.
        threshold: Reward from which a rollout, and a truth, passes; default the row's own.
        confidence: Level of the intervals.

    Raises:
        RowError: A row or its truth cannot be read.

    Source: Rogan and Gladen 1978 for the corrected rate; see `raters` and `correction`.
    """
    data = list(row_stream(rows))
    table = extract(data, threshold=threshold)
    judged, truths, tasks = [], [], []
    read: set[tuple[str, Any]] = set()
    for position, row in enumerate(data):
        task, rollout = task_key(row), row.get("rollout_id")
        if rollout is not None and (task, rollout) in read:
            continue  # counted by the columns: one rollout is one verdict
        read.add((task, rollout))
        tasks.append(task)
        value = _truth(row, truth)
        if value is not None and (not isinstance(value, bool | int | float) or not 0 <= value <= 1):
            raise RowError(
                f"the truth must be a number in [0, 1] or a boolean, not {safe(value)}", row=position, field="truth"
            )
        limit = threshold if threshold is not None else row.get("threshold")
        limit = 1.0 if limit is None else float(limit)
        status, reward = row.get("status"), row.get("reward")
        judged.append(None if reward is None or status not in (None, "ok") else float(reward >= limit - 1e-9))
        truths.append(None if value is None else float(value >= limit - 1e-9))
    observed = pass_at(data, 1, threshold=threshold, confidence=confidence)
    sides = confusion(judged, truths, clusters=tasks, confidence=confidence)
    notes = table.left_out()
    unlabelled = sum(t is None for t in truths)
    if unlabelled:
        notes.append(f"{unlabelled} of {len(truths)} rows have no truth: they count for the pass rate alone")
    passes, fails = sides.true_pass + sides.false_fail, sides.true_fail + sides.false_pass
    corrected = None
    if not passes or not fails:
        notes.append("not corrected: the labelled rows lack passes or fails")
    elif observed.pass_1.value is None:
        notes.append("not corrected: no row is scored")
    elif sides.true_pass / passes + sides.true_fail / fails <= 1:
        notes.append("not corrected: the scorer is no better than chance on the labelled rows")
    else:
        corrected = rogan_gladen(
            observed.pass_1,
            sensitivity=_labelled(sides.sensitivity, sides.true_pass, passes),
            specificity=_labelled(sides.specificity, sides.true_fail, fails),
            confidence=confidence,
        )
    return JudgeAgreement(
        agreement(judged, truths, labels=[0.0, 1.0], clusters=tasks, confidence=confidence),
        sides,
        observed,
        corrected,
        tuple(notes),
    )


def _labelled(share: Estimate, right: int, labelled: int) -> tuple[float, float]:
    """Return the counts behind a share at its effective size, which is smaller where tasks have several rollouts."""
    size = min(share.effective or labelled, labelled)
    return right * size / labelled, size


def _truth(row: Mapping[str, Any], truth: Label | None) -> Any:
    if truth is None:
        human = [j for j in row.get("judgments") or () if isinstance(j, Mapping) and _kind(j) == "human"]
        return human[-1].get("reward") if human else None
    if isinstance(truth, Mapping):
        return truth.get(row.get("rollout_id"))  # type: ignore[arg-type]
    if not isinstance(truth, str):
        return truth(row)
    value: Any = row
    for part in truth.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _kind(judgment: Mapping[str, Any]) -> Any:
    scorer = judgment.get("scorer")
    return scorer.get("kind") if isinstance(scorer, Mapping) else None
