"""pass_at on rows: the printed line, what it counts, uneven groups, clusters, slices, weights, public reports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from whileai_kernel.errors import ParameterError, RowError
from whileai_measure import pass_at

Rows = list[dict[str, object]]


def rows_of(tasks: dict[str, list[float | None]], **extra: object) -> Rows:
    return [
        {"task_id": task, "rollout_id": f"{task}-{i}", "index": i, "reward": reward, **extra}
        for task, rewards in tasks.items()
        for i, reward in enumerate(rewards)
    ]


def shared(name: str) -> Path:
    roots = [Path(os.environ["WHILEAI_SHARED"])] if "WHILEAI_SHARED" in os.environ else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data" / name).is_file():
            return root / "data" / name
    pytest.skip(f"public data file {name} is not here (set WHILEAI_SHARED)")


def test_the_printed_line() -> None:
    rows = rows_of({f"t{i}": [1, 1, 1, 1] if i < 3 else [1, 1, 0, 1] if i < 11 else [0, 1, 0, 1] for i in range(16)})
    line = str(pass_at(rows))
    assert line.startswith("pass@1 0.72 [0.")
    assert " | pass^4 0.19 [" in line and " | pass@4 1.00 [" in line
    assert line.endswith("headroom 0.28 (16 tasks, k=4)")
    assert "\n" not in line


def test_tau_bench_airline_reproduces_the_published_table() -> None:
    runs = json.loads(shared("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8"))
    rows = [
        {"task_id": str(r["task_id"]), "rollout_id": f"{r['task_id']}.{r['trial']}", "reward": r["reward"]}
        for r in runs
    ]
    report = pass_at(rows, k=[1, 2, 3, 4])
    assert [round(report.hat[k].value, 3) for k in (1, 2, 3, 4)] == [0.420, 0.273, 0.220, 0.200]
    assert (report.tasks, report.rollouts) == (50, 200)
    assert all(e.low < e.value < e.high for e in report.hat.values())


def test_gsm8k_arms_have_the_recorded_number_right() -> None:
    with shared("gsm8k_model_solutions.jsonl").open(encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    for arm, right in {
        "6b_finetuning": 286,
        "6b_verification": 515,
        "175b_finetuning": 458,
        "175b_verification": 742,
    }.items():
        rows = [{"prompt": it["question"], "reward": float(it[arm]["is_correct"])} for it in items]
        report = pass_at(rows)
        assert report.rollouts == 1319
        assert round(report.pass_1.value * report.tasks) == right


def test_one_rollout_per_task_supports_nothing_above_k_1() -> None:
    report = pass_at(rows_of({"t1": [1], "t2": [0], "t3": [0], "t4": [0]}), k=[1, 2])
    assert report.at[1].value == 0.25
    assert report.at[2].value is None and report.at[2].low is None
    assert "n/a" in report.line
    assert any("do not exist" in note for note in report.notes)


def test_fractional_rewards_are_not_summed_into_passes() -> None:
    assert pass_at(rows_of({"a": [0.6, 0.6]})).per_task[0].passed == 0
    assert pass_at(rows_of({"a": [0.75] * 4})).per_task[0].passed == 0
    assert pass_at(rows_of({"a": [1.0, 0.9999999]}), threshold=1 - 1e-6).per_task[0].passed == 2
    report = pass_at(rows_of({"a": [0.6, 0.6], "b": [1.0, 0.0]}))
    assert report.fractional == 2
    assert report.mean_reward.value == pytest.approx(0.55)
    assert "mean reward 0.55" in report.line


def test_the_threshold_of_the_row_decides() -> None:
    rows = rows_of({"a": [0.6, 0.4]}, threshold=0.5)
    assert pass_at(rows).per_task[0].passed == 1
    assert pass_at(rows, threshold=0.3).per_task[0].passed == 2


def test_copies_of_rollouts_do_not_narrow_the_interval() -> None:
    tasks = {f"t{i}": [float(i < 5)] * 4 for i in range(10)}
    plain = [{k: v for k, v in r.items() if k != "rollout_id"} for r in rows_of(tasks)]
    once, copied = pass_at(plain, k=4), pass_at(plain * 10, k=4)
    assert copied.rollouts == 400
    assert (copied.pass_1.low, copied.pass_1.high) == pytest.approx((once.pass_1.low, once.pass_1.high), abs=1e-9)


def test_mean_is_over_tasks_and_uses_every_rollout() -> None:
    assert pass_at(rows_of({"t1": [0, 1, 1, 1]})).pass_1.value == 0.75
    assert pass_at(rows_of({"t1": [1, 0], "t2": [0, 0, 0, 0]})).pass_1.value == 0.25


def test_not_scored_is_counted_and_bounded() -> None:
    rows = rows_of({"a": [1, None], "b": [0, 1]})
    rows += [{"task_id": "c", "reward": None, "status": "timeout"}]
    report = pass_at(rows, k=2)
    assert report.not_scored == {"missing": 1, "timeout": 1}
    assert report.pass_1.value == 0.75
    assert report.bounds == pytest.approx(((0.5 + 0.5 + 0) / 3, (1 + 0.5 + 1) / 3))
    assert report.unscored_tasks == 1
    assert report.hat[2].tasks == 1
    text = str(report)
    assert "2 of 5 rows not scored (1 missing, 1 timeout)" in text and "0.33..0.83" in text
    assert "1 has fewer than 2 scored rollouts (a)" in text


def test_nothing_scored_gives_no_number() -> None:
    report = pass_at(rows_of({"a": [None, None]}))
    assert report.pass_1.value is None and report.mean_reward.value is None
    assert report.not_scored == {"missing": 2}
    assert "pass@1 n/a" in report.line


def test_no_rows_give_no_number() -> None:
    report = pass_at([])
    assert report.pass_1.value is None and report.tasks == 0
    assert "no rows" in str(report)


def test_truncation_is_said() -> None:
    cut = pass_at(rows_of({f"t{i}": [0] for i in range(12)}, finish_reason="length"))
    assert cut.truncated_share == 1.0 and "length" in str(cut)
    whole = pass_at(rows_of({f"t{i}": [0] for i in range(12)}, finish_reason="stop"))
    assert whole.truncated_share == 0.0 and "length" not in str(whole)


def test_uneven_groups_use_the_tasks_that_have_k() -> None:
    report = pass_at(rows_of({"a": [1, 1, 1, 1], "b": [1, 0, 0, 0], "c": [1]}), k=4)
    assert report.pass_1.tasks == 3
    assert report.hat[4].tasks == 2 and report.hat[4].value == 0.5
    assert report.headroom == pytest.approx(1.0 - (1.0 + 0.25) / 2)


def test_default_k_is_the_usual_group_size() -> None:
    assert pass_at(rows_of({"a": [1] * 4, "b": [0] * 4, "c": [1] * 3})).k == 4
    assert pass_at(rows_of({"a": [1] * 4, "b": [0] * 3})).k == 4
    assert pass_at(rows_of({"a": [1], "b": [0], "c": [1] * 9})).k == 1


def test_clusters_are_the_unit() -> None:
    tasks = {f"t{i}": [float(i < 6)] for i in range(12)}
    rows = [{**r, "axes": {"passage": str(int(str(r["task_id"])[1:]) // 3)}} for r in rows_of(tasks)]
    plain, grouped = pass_at(rows), pass_at(rows, cluster="axes.passage")
    assert grouped.pass_1.units == 4 and grouped.pass_1.tasks == 12
    assert grouped.pass_1.width > plain.pass_1.width
    with pytest.raises(ParameterError, match="more than one cluster"):
        pass_at([{"task_id": "a", "reward": 1, "g": 1}, {"task_id": "a", "reward": 1, "g": 2}], cluster="g")


def test_slices_by_field_function_and_mapping() -> None:
    rows = rows_of({"a": [1, 1], "b": [0, 1]})
    by_function = pass_at(rows, by=lambda row: row["task_id"])
    by_field, by_map = pass_at(rows, by="task_id"), pass_at(rows, by={"a": "easy", "b": "hard"})
    assert [s.pass_1.value for s in by_function.slices.values()] == [1.0, 0.5]
    assert by_field.to_dict()["slices"].keys() == {"a", "b"}
    assert list(by_map.slices) == ["easy", "hard"]
    assert "easy  pass@1" in str(by_map)


def test_weights_move_the_mean() -> None:
    rows = rows_of({"a": [1], "b": [0]})
    assert pass_at(rows, weight={"a": 3, "b": 1}).pass_1.value == 0.75
    with pytest.raises(ParameterError, match="task b has no usable weight"):
        pass_at(rows, weight={"a": 3})


def test_every_interval_kind_is_an_option() -> None:
    rows = rows_of({f"t{i}": [float(i % 3 > 0), float(i % 2)] for i in range(20)})
    widths = {kind: pass_at(rows, interval=kind).pass_1.width for kind in ("wilson", "t", "percentile", "bca")}
    assert all(0.1 < w < 0.6 for w in widths.values())
    assert len(set(widths.values())) == 4
    with pytest.raises(ParameterError, match="percentil"):
        pass_at(rows, interval="percentil")


def test_report_is_plain_json() -> None:
    report = pass_at(rows_of({"a": [1, None, 0.5]}), k=[1, 2])
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["not_scored"] == {"missing": 1}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"task_id": "a", "reward": "1.0"}, "reward"),
        ({"task_id": "a", "reward": 1.5}, "reward"),
        ({"task_id": "a", "reward": float("inf")}, "reward"),
        ({"task_id": "a", "reward": 10**400}, "reward"),
        ({"task_id": "a", "reward": [1]}, "reward"),
        ({"task_id": 1.5, "reward": 1}, "task_id"),
        ({"reward": 1}, "task_id"),
        ({"task_id": "a", "reward": 1, "status": 3}, "status"),
        ({"task_id": "a", "reward": 1, "status": "okay"}, "status"),
        ({"task_id": "a", "reward": 1, "status": ["ok"]}, "status"),
        ({"task_id": "a", "reward": 1, "threshold": "1"}, "threshold"),
        ({"task_id": "a", "reward": 1, "threshold": 5}, "threshold"),
        (["a", 1], None),
    ],
)
def test_a_bad_row_is_named(row: object, field: str | None) -> None:
    good = rows_of({"a": [1, 0]})
    with pytest.raises(RowError) as err:
        pass_at([*good, row])
    assert err.value.row == 2
    assert err.value.field == field


def test_nan_is_not_scored_and_booleans_are_said() -> None:
    report = pass_at([{"task_id": "a", "reward": float("nan")}, {"task_id": "a", "reward": True}])
    assert report.not_scored == {"invalid": 1}
    assert report.pass_1.value == 1.0
    assert "booleans" in str(report)


def test_a_repeated_rollout_is_left_out_and_a_conflict_is_an_error() -> None:
    rows = rows_of({"a": [1, 0], "b": [1, 1]})
    twice = pass_at(rows + rows)
    assert twice.rollouts == 4 and twice.pass_1 == pass_at(rows).pass_1
    assert "4 rows repeat" in str(twice)
    with pytest.raises(RowError, match="another reward") as err:
        pass_at([*rows, {**rows[0], "reward": 0}])
    assert err.value.row == 4


def test_odd_task_names_are_printed_safely() -> None:
    text = str(pass_at([{"task_id": "\ud83d\n", "reward": 1}, {"task_id": "b", "reward": None}], by="task_id"))
    text.encode("utf-8")
    assert "\\ud83d\\n" in text


def test_rows_are_read_from_iterators_paths_and_tables(tmp_path: Path) -> None:
    rows = rows_of({"a": [1, 0], "b": [None, 1]})
    want = str(pass_at(rows))
    assert str(pass_at(iter(rows))) == want
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8", newline="\n")
    assert str(pass_at(path)) == want
    assert str(pass_at(str(path))) == want
    pd = pytest.importorskip("pandas")
    assert str(pass_at(pd.DataFrame(rows))) == want


def test_polars_and_arrow_tables() -> None:
    rows = rows_of({"a": [1, 0], "b": [None, 1]})
    want = str(pass_at(rows))
    pl = pytest.importorskip("polars")
    assert str(pass_at(pl.DataFrame(rows))) == want


def test_arrow_tables() -> None:
    rows = rows_of({"a": [1, 0], "b": [None, 1]})
    pa = pytest.importorskip("pyarrow")
    assert str(pass_at(pa.Table.from_pylist(rows))) == str(pass_at(rows))


def test_a_missing_file_and_a_single_row_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="there is no file"):
        pass_at(tmp_path / "none.jsonl")
    with pytest.raises(ParameterError, match="must be a list"):
        pass_at({"task_id": "a", "reward": 1})


def test_importing_the_package_loads_no_numpy() -> None:
    names = ("whileai_measure", "whileai_measure.plugin", "whileai_measure.defaults", "whileai_measure.cli")
    code = f"import sys, {', '.join(names)}; print([m for m in ('numpy', 'scipy', 'pydantic') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_large_sets_stream(tmp_path: Path) -> None:
    def stream() -> object:
        for i in range(120_000):
            yield {"task_id": f"t{i // 4}", "rollout_id": f"r{i}", "reward": float(i % 3 == 0)}

    report = pass_at(stream())
    assert (report.rollouts, report.tasks) == (120_000, 30_000)
    assert report.pass_1.value == pytest.approx(np.mean([i % 3 == 0 for i in range(120_000)]))


def test_unreadable_records_of_a_file_are_said(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"task_id": "a", "reward": 1}\n{broken\n{"task_id": "b", "reward": 0}\n', encoding="utf-8")
    report = pass_at(path)
    assert report.rollouts == 2
    assert "1 record of the file could not be read" in str(report)


def test_columns_extracted_once_serve_several_calls() -> None:
    from whileai_measure import compare, extract

    rows = rows_of({f"t{i}": [1, 0] for i in range(8)})
    columns = extract(rows, markers=True, context=True)
    assert pass_at(columns).pass_1 == pass_at(rows).pass_1
    assert compare(columns, columns).verdict == "no difference detected"
    for bad in ({"by": "task_id"}, {"threshold": 0.5}):
        with pytest.raises(ParameterError, match="extract"):
            pass_at(columns, **bad)
    for threshold in (2.0, "1", True):
        with pytest.raises(ParameterError, match="threshold"):
            pass_at(rows, threshold=threshold)


@pytest.mark.parametrize("kind", ["wilson", "percentile", "bca", "studentised"])
def test_the_order_of_rows_does_not_matter(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = rows_of({f"t{i}": rng.random(3).tolist() for i in range(30)})
    want = pass_at(rows, interval=kind, threshold=0.5)
    got = pass_at([rows[i] for i in rng.permutation(len(rows))], interval=kind, threshold=0.5)
    assert got.mean_reward.low == pytest.approx(want.mean_reward.low, abs=1e-12)
    assert got.pass_1.high == pytest.approx(want.pass_1.high, abs=1e-12)


def test_uneven_weights_widen_every_interval() -> None:
    rows = rows_of({f"t{i}": [1, float(i % 2), float(i % 3 > 0), 0] for i in range(40)})
    even, uneven = pass_at(rows, k=2), pass_at(rows, k=2, weight={f"t{i}": 9 if i < 8 else 1 for i in range(40)})
    assert uneven.hat[2].width > even.hat[2].width
    assert pass_at(rows, k=2, weight={f"t{i}": 3 for i in range(40)}).hat[2].width == pytest.approx(even.hat[2].width)
