"""Labels beside verdicts: keys that name one row, and annotators who may disagree."""

from __future__ import annotations

import copy

import pytest

from whileai_judge import annotator_agreement, attach_labels, gold_of, grade
from whileai_judge.labels import krippendorff_alpha
from whileai_kernel.errors import ParameterError, RowError


def rows_of(n, per_task=2):
    return [
        {"task_id": f"t{i // per_task}", "rollout_id": f"r{i}", "prompt": "q", "final_text": str(i), "markers": {}}
        for i in range(n)
    ]


def test_labels_stand_beside_the_verdict_and_nothing_is_changed():
    judged = grade(rows_of(3), lambda row: row["final_text"] != "1")
    before = copy.deepcopy(judged.rows)
    labelled = attach_labels(judged, {"r0": True, "r1": {"reward": 0, "reason": "wrong date"}}, annotator="ada")
    assert judged.rows == before
    assert [row["reward"] for row in labelled] == [1.0, 0.0, 1.0]
    assert labelled[1]["judgments"][0]["scorer"] == {"id": "label/human/ada", "kind": "human"}
    assert labelled[1]["judgments"][0]["reason"] == "wrong date"
    assert [gold_of(row) for row in labelled] == [1.0, 0.0, None]
    assert labelled.provenance["labels"] == [{"source": "human", "by": "rollout_id", "labels": 2, "rows": 2, "of": 3}]


def test_records_with_several_annotators():
    records = [
        {"rollout_id": "r0", "label": 1, "annotator": "ada"},
        {"rollout_id": "r0", "label": 0, "annotator": "bob", "reason": "rude"},
        {"rollout_id": "r1", "label": 1, "annotator": "ada"},
        {"rollout_id": "r1", "label": 1, "annotator": "bob"},
        {"rollout_id": "r1", "label": 0, "annotator": "eve"},
    ]
    labelled = attach_labels(rows_of(2), records)
    assert gold_of(labelled[0]) is None  # split in half: no label is right
    assert gold_of(labelled[1]) == pytest.approx(2 / 3)
    assert gold_of(labelled[1], "label/human/eve") == 0.0
    assert gold_of(labelled[1], lambda row: None) is None


def test_programs_and_models_are_not_people():
    labelled = attach_labels(rows_of(1), {"r0": 1}, source="program", annotator="tests")
    assert gold_of(labelled[0]) is None
    assert gold_of(labelled[0], "label/program") == 1.0
    assert labelled[0]["judgments"][0]["scorer"]["kind"] == "rule"


@pytest.mark.parametrize(
    ("labels", "by", "message"),
    [
        ({"t0": 1}, "task_id", "is on 2 rows"),
        ({"r9": 1}, "rollout_id", "no row has"),
        ([{"rollout_id": "r0", "label": 1}, {"rollout_id": "r0", "label": 0}], "rollout_id", "twice"),
        ({"r0": "good"}, "rollout_id", "cannot be used"),
    ],
)
def test_ambiguous_keys_are_refused(labels, by, message):
    with pytest.raises(RowError, match=message):
        attach_labels(rows_of(4), labels, by=by)


def test_wrong_arguments_are_refused():
    with pytest.raises(ParameterError, match="human"):
        attach_labels(rows_of(1), {}, source="humans")
    with pytest.raises(ParameterError, match="label"):
        attach_labels(rows_of(1), [{"rollout_id": "r0"}])
    assert len(attach_labels(rows_of(4, per_task=1), {"t0": 1}, by="task_id")) == 4


def test_alpha_of_the_published_examples():
    """Krippendorff 2011, sections A and C: two coders on binary data, four coders on nominal data with gaps."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha(list(zip(first, second, strict=True))) == pytest.approx(0.095, abs=5e-4)
    data = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[v for v in unit if v is not None] for unit in zip(*data, strict=True)]
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([]) is None


def test_agreement_of_annotators_has_an_interval_over_tasks():
    records = []
    for i in range(20):
        records.append({"rollout_id": f"r{i}", "label": i % 2, "annotator": "ada"})
        records.append({"rollout_id": f"r{i}", "label": i % 2 if i else 1, "annotator": "bob"})
    report = annotator_agreement(attach_labels(rows_of(20), records))
    assert report.agreement.value == 0.95
    assert (report.agreement.rows, report.agreement.tasks, report.rows) == (20, 10, 20)
    assert report.agreement.low < 0.95 < report.agreement.high
    assert report.annotators == {"label/human/ada": 20, "label/human/bob": 20}
    assert "annotators agree 0.95" in str(report)
    assert "cannot be compared" in str(annotator_agreement(rows_of(3)))
