"""Labels of people, programs or models on rows: attach them, and see whether the annotators agree.

A label is a verdict beside the row's own (in ``judgments``), so that nothing is overwritten, several annotators can
label one row, and the row's reward stays the judge's. Keys must name one row: a task id that several rollouts share,
a label for a row that is not there and two labels of one annotator on one row are refused.

Example:
    >>> rows = [{"rollout_id": "r1", "task_id": "t"}, {"rollout_id": "r2", "task_id": "t"}]
    >>> labelled = attach_labels(rows, {"r1": True, "r2": 0})
    >>> [gold_of(row) for row in labelled]
    [1.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_judge.bookkeeping import copy_row, put_verdict
from whileai_judge.defaults import CONFIDENCE, THRESHOLD
from whileai_judge.engine import Outcome
from whileai_judge.intervals import Interval, clustered_rate
from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rows import task_key
from whileai_kernel.verdicts import to_judgment

SOURCES = {"human": "human", "program": "rule", "model": "judge"}
PREFIX = "label"

Labels = Mapping[str, Any] | Iterable[Mapping[str, Any]]
Gold = str | Callable[[Mapping[str, Any]], Any] | None


def attach_labels(
    rows: Iterable[Mapping[str, Any]],
    labels: Labels,
    *,
    by: str = "rollout_id",
    source: str = "human",
    annotator: str = "annotator",
) -> Dataset:
    """Put labels beside the verdicts of rows.

    Args:
        rows: Rows; they are copied.
        labels: Verdicts by key, or records with the key (under ``by``), ``label``, and optionally ``annotator`` and
            ``reason``. A label is anything that a judge may return.
        by: The field of the row that the key names: ``rollout_id``, ``task_id`` or another.
        source: Who labels: ``human``, ``program`` or ``model``.
        annotator: Name of the annotator of records that name none.

    Returns:
        A new ``Dataset``; its provenance has the counts.

    Raises:
        RowError: A key is on several rows or on none, or one annotator labels a row twice.
        ParameterError: ``source`` is unknown, or a record lacks its key or its label.
    """
    if source not in SOURCES:
        unknown_name("source", source, SOURCES)
    listed = list(rows)
    positions: dict[str, list[int]] = {}
    for position, row in enumerate(listed):
        key = task_key(row) if by == "task_id" else row.get(by)
        if key is not None:
            positions.setdefault(str(key), []).append(position)
    given: dict[int, dict[str, tuple[Any, str | None]]] = {}
    for key, who, label, reason in _records(labels, by, annotator):
        found = positions.get(key, [])
        if len(found) != 1:
            what = f"{by} {key!r} is on {len(found)} rows" if found else f"no row has {by} {key!r}"
            fix = "label by rollout_id, or give each row a key of its own" if found else "check the key"
            raise RowError(what, why="a label belongs to one row", fix=fix, field=by)
        if who in given.setdefault(found[0], {}):
            raise RowError(f"{who} labels {by} {key!r} twice", why="which one counts?", fix="name two annotators")
        judgment = to_judgment(label)[0]
        if judgment.status == "invalid":
            raise RowError(f"the label of {by} {key!r} cannot be used", why=judgment.reason or "", field="label")
        given[found[0]][who] = (label, reason)
    labelled = []
    for position, row in enumerate(listed):
        new = copy_row(row)
        for who, (label, reason) in given.get(position, {}).items():
            scorer = {"id": f"{PREFIX}/{source}/{who}", "kind": SOURCES[source]}
            value = label if reason is None else {"reward": to_judgment(label)[0].reward, "reason": reason}
            new = put_verdict(new, Outcome("value", value), scorer, THRESHOLD.value, None, primary=False)
        labelled.append(new)
    provenance = dict(getattr(rows, "provenance", None) or {})
    count = sum(len(one) for one in given.values())
    record = {"source": source, "by": by, "labels": count, "rows": len(given), "of": len(listed)}
    provenance["labels"] = [*provenance.get("labels", ()), record]
    return Dataset(labelled, provenance=provenance, warnings=list(getattr(rows, "warnings", None) or []))


def _records(labels: Labels, by: str, annotator: str) -> Iterable[tuple[str, str, Any, str | None]]:
    if isinstance(labels, Mapping):
        for key, label in labels.items():
            yield str(key), annotator, label, None
        return
    for position, record in enumerate(labels):
        missing = [field for field in (by, "label") if field not in record]
        if missing:
            raise ParameterError(f"label {position} has no {missing[0]!r}", fix=f"give it {by!r} and 'label'")
        yield str(record[by]), str(record.get("annotator", annotator)), record["label"], record.get("reason")


def labels_on(row: Mapping[str, Any], gold: str | None = None) -> dict[str, float]:
    """The scored labels of a row by annotator: of people, or of every scorer whose id starts with ``gold``."""
    found: dict[str, float] = {}
    for judgment in row.get("judgments") or ():
        scorer = judgment.get("scorer") or {}
        name, reward = str(scorer.get("id", "")), judgment.get("reward")
        wanted = scorer.get("kind") == "human" if gold is None else name == gold or name.startswith(f"{gold}/")
        if wanted and reward is not None:
            found[name] = float(reward)
    return found


def gold_of(row: Mapping[str, Any], gold: Gold = None) -> float | None:
    """The right verdict of a row: the mean of its labels; None without labels, and when they are split in half.

    Args:
        row: The row.
        gold: A function of the row, or the scorer id (or its beginning) of the labels; labels of people by default.
    """
    if callable(gold):
        return to_judgment(gold(row))[0].reward
    values = list(labels_on(row, gold).values())
    if not values:
        return None
    mean = sum(values) / len(values)
    return None if len(values) > 1 and mean == 0.5 and set(values) == {0.0, 1.0} else mean


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """How far annotators agree on the rows that two or more of them labelled.

    Attributes:
        agreement: Share of pairs of labels on one row that are equal, with an interval over tasks; None without pairs.
        alpha: Krippendorff's alpha for nominal data (1 is perfect, 0 is chance); None when every label is the same,
            which says nothing about chance.
        annotators: Labels per annotator.
        rows: Rows with two or more labels.
    """

    agreement: Interval | None
    alpha: float | None
    annotators: Mapping[str, int]
    rows: int

    def __str__(self) -> str:
        if self.agreement is None:
            return "no row has two labels: the annotators cannot be compared"
        alpha = "undefined (one value only)" if self.alpha is None else f"{self.alpha:.2f}"
        return f"annotators agree {self.agreement}, alpha {alpha}"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        agreement = None if self.agreement is None else self.agreement.to_dict()
        return {"agreement": agreement, "alpha": self.alpha, "annotators": dict(self.annotators), "rows": self.rows}


def annotator_agreement(
    rows: Iterable[Mapping[str, Any]],
    gold: str | None = None,
    *,
    threshold: float = THRESHOLD.value,
    confidence: float = CONFIDENCE.value,
) -> AnnotatorAgreement:
    """Compare the annotators of rows.

    Args:
        rows: Rows with labels.
        gold: Whose labels; those of people by default.
        threshold: Label from which a row counts as passed.
        confidence: Confidence of the interval.
    """
    pairs: list[tuple[str, bool]] = []
    counts: dict[str, int] = {}
    units: list[list[bool]] = []
    for row in rows:
        labels = labels_on(row, gold)
        values = [value >= threshold - 1e-9 for value in labels.values()]
        for name in labels:
            counts[name] = counts.get(name, 0) + 1
        if len(values) > 1:
            units.append(values)
            task = task_key(row)
            pairs += [(task, a == b) for i, a in enumerate(values) for b in values[i + 1 :]]
    agreement = clustered_rate(pairs, confidence) if pairs else None
    return AnnotatorAgreement(agreement, krippendorff_alpha(units), counts, len(units))


def krippendorff_alpha(units: Sequence[Sequence[Any]]) -> float | None:
    """Krippendorff's alpha for nominal data (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").

    Args:
        units: Labels of each unit; units with fewer than two labels do not count.

    Returns:
        Alpha; None when there are no pairs or only one value.
    """
    used = [unit for unit in units if len(unit) > 1]
    n = sum(len(unit) for unit in used)
    totals: dict[Any, int] = {}
    observed = 0.0
    for unit in used:
        for value in unit:
            totals[value] = totals.get(value, 0) + 1
        equal = sum(unit.count(value) * (unit.count(value) - 1) for value in set(unit))
        observed += (len(unit) * (len(unit) - 1) - equal) / (len(unit) - 1)
    expected = n * n - sum(count * count for count in totals.values())
    return None if not expected else 1 - (n - 1) * observed / expected
