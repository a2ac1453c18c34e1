"""A scorer against the truth that rows carry."""

import pytest

from whileai_kernel.errors import RowError
from whileai_measure import confusion, judge_agreement, pass_at, rogan_gladen


def rows(n: int = 60) -> list[dict[str, object]]:
    out = []
    for i in range(n):
        right = i % 3 > 0
        reward = float(right) if i % 10 else float(not right)
        human = {"reward": float(right), "scorer": {"id": "people", "kind": "human"}}
        out.append(
            {"task_id": f"t{i}", "rollout_id": f"r{i}", "reward": reward, "judgments": [human] if i < 40 else []}
        )
    return out


def test_human_judgments_are_the_default_truth() -> None:
    report = judge_agreement(rows())
    want = confusion([r["reward"] for r in rows()[:40]], [float(i % 3 > 0) for i in range(40)])
    assert (report.confusion.true_pass, report.confusion.false_pass) == (want.true_pass, want.false_pass)
    assert report.agreement.items == 40
    assert report.agreement.accuracy.value == pytest.approx(0.9)
    assert any("20 of 60 rows have no truth" in note for note in report.notes)


def test_the_corrected_rate_is_rogan_gladen_at_the_effective_size() -> None:
    report = judge_agreement(rows())
    c = report.confusion
    want = rogan_gladen(
        pass_at(rows(), 1).pass_1,
        sensitivity=(c.true_pass, c.true_pass + c.false_fail),
        specificity=(c.true_fail, c.true_fail + c.false_pass),
    )
    assert report.corrected == want
    assert "corrected" in str(report)


def test_truth_by_field_function_and_mapping() -> None:
    data = [{**r, "labels": {"gold": i % 2}} for i, r in enumerate(rows())]
    by_field = judge_agreement(data, truth="labels.gold")
    assert by_field.confusion == judge_agreement(data, truth=lambda r: r["labels"]["gold"]).confusion
    assert by_field.confusion == judge_agreement(data, truth={f"r{i}": i % 2 for i in range(60)}).confusion


def test_what_cannot_be_corrected_says_why() -> None:
    assert judge_agreement([]).corrected is None
    no_labels = judge_agreement([{"task_id": "a", "reward": 1.0}])
    assert "lack passes or fails" in str(no_labels)
    wrong = judge_agreement([{**r, "g": 1.0 - float(r["reward"])} for r in rows()], truth="g")
    assert wrong.corrected is None and "chance" in str(wrong)
    missing = judge_agreement([{"task_id": "a", "reward": None, "g": g} for g in (0, 1)], truth="g")
    assert missing.corrected is None and missing.agreement.left_out == 2


def test_an_unreadable_truth_is_named() -> None:
    with pytest.raises(RowError) as err:
        judge_agreement([{"task_id": "a", "reward": 1, "g": 1}, {"task_id": "b", "reward": 1, "g": "yes"}], truth="g")
    assert (err.value.row, err.value.field) == (1, "truth")


def test_repeated_rows_and_rollouts_of_one_task_claim_no_more() -> None:
    once = judge_agreement(rows())
    twice = judge_agreement(rows() + rows())  # the same rollout_id: one verdict each
    assert twice.confusion == once.confusion and twice.agreement.kappa == once.agreement.kappa
    assert any("60 rows repeat" in note for note in twice.notes)
    copies = [{**row, "rollout_id": f"{row['rollout_id']}-{i}"} for row in rows() for i in range(5)]
    many = judge_agreement(copies)
    assert many.agreement.items == 200 and many.agreement.kappa.units == 40
    for pick in (lambda r: r.agreement.kappa, lambda r: r.confusion.sensitivity):
        assert pick(many).width > 0.85 * pick(once).width
    assert many.corrected.high - many.corrected.low > 0.85 * (once.corrected.high - once.corrected.low)
