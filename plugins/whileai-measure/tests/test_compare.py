"""compare: pairing, the test against scipy, agreement of verdict and interval, guards, noise, public data."""

import json
import os
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whileai_kernel.errors import ParameterError
from whileai_measure import compare, sign_flip
from whileai_measure.signflip import least_tasks

Rows = list[dict[str, object]]


def arm(tasks: dict[str, list[float | None]] | list[float], **extra: object) -> Rows:
    if isinstance(tasks, list):
        tasks = {f"t{i}": [r] for i, r in enumerate(tasks)}
    return [{"task_id": t, "reward": r, **extra} for t, rewards in tasks.items() for r in rewards]


def shared(name: str) -> Path:
    roots = [Path(os.environ["WHILEAI_SHARED"])] if "WHILEAI_SHARED" in os.environ else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data" / name).is_file():
            return root / "data" / name
    pytest.skip(f"public data file {name} is not here (set WHILEAI_SHARED)")


@pytest.mark.parametrize("tasks", [2, 5, 6, 9, 13])
def test_enumerated_test_equals_scipy_without_ties(tasks: int) -> None:
    d = np.random.default_rng(tasks).normal(0.4, 1.0, tasks)
    want = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    got = sign_flip(d)
    assert got.exact
    assert got.p_value == pytest.approx(want.pvalue, abs=1e-12)


def test_drawn_test_agrees_with_the_enumerated_one() -> None:
    d = np.random.default_rng(1).normal(0.4, 1.0, 16)
    exact, drawn = sign_flip(d), sign_flip(d, exact_tasks=0, draws=40_000)
    assert not drawn.exact
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * np.sqrt(exact.p_value / 40_000))
    assert drawn.interval(0.95) == pytest.approx(exact.interval(0.95), abs=0.03)


def test_ties_of_the_enumerated_test_are_mid_p_with_the_observed_pattern_in_full() -> None:
    d = np.array([1.0] * 7 + [-1.0])
    sums = np.array([np.dot(signs, d) for signs in product((1, -1), repeat=8)])
    greater, equal = int((sums > d.sum()).sum()), int((sums == d.sum()).sum())
    assert sign_flip(d).p_value == pytest.approx(2 * (1 + greater + equal // 2) / 256)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.25, 1 / 3, 1.0]), min_size=1, max_size=14),
    st.sampled_from([0.8, 0.9, 0.95]),
)
def test_interval_excludes_zero_exactly_when_the_test_rejects(d: list[float], confidence: float) -> None:
    flip = sign_flip(d)
    low, high = flip.interval(confidence)
    assert (low > 0 or high < 0) == (flip.p_value <= 1 - confidence + 1e-12)
    change = compare(
        arm([0.5 - x / 2 for x in d]), arm([0.5 + x / 2 for x in d]), target="mean reward", confidence=confidence
    )
    got = change.change
    assert (got.low > 0 or got.high < 0) == (got.p_value <= 1 - confidence + 1e-12)
    assert got.low <= got.delta <= got.high


@pytest.mark.parametrize("seed", range(4))
def test_every_shift_inside_the_interval_is_kept_and_outside_rejected(seed: int) -> None:
    d = np.random.default_rng(seed).normal(0.2, 0.5, 11)
    low, high = sign_flip(d).interval(0.95)
    for shift, kept in ((low + 1e-6, True), (high - 1e-6, True), (low - 1e-6, False), (high + 1e-6, False)):
        assert (sign_flip(d - shift).p_value > 0.05) == kept


def test_least_tasks_is_where_two_to_the_minus_n_gets_small() -> None:
    assert [least_tasks(c) for c in (0.9, 0.95, 0.99)] == [5, 6, 8]


def test_pairs_by_id_not_by_order() -> None:
    a = arm({"t1": [1], "t2": [0], "t3": [1], "t4": [0]})
    b = arm({"t4": [1], "t3": [1], "t2": [0], "t1": [1]})
    report = compare(a, b)
    assert report.shared == 4
    assert report.change.delta == pytest.approx(0.25)
    assert (report.change.mcnemar["lost"], report.change.mcnemar["won"]) == (0, 1)


def test_half_shared_is_another_exam() -> None:
    a = arm({"t1": [1], "t2": [0], "t3": [1], "t4": [0]})
    b = arm({"t3": [1], "t4": [1], "t5": [0], "t6": [0]})
    report = compare(a, b)
    assert report.verdict == "not comparable" and report.exit_code == 2
    assert report.shared == 2
    assert report.unpaired_before == ("t1", "t2")
    assert report.unpaired_after == ("t5", "t6")
    assert "t1, t2" in str(report)
    assert compare(a, b, allow=["shared"]).verdict != "not comparable"


def test_a_quarter_shared_both_ways_is_refused_too() -> None:
    a, b = arm({f"t{i}": [1] for i in range(4)}), arm({f"t{i}": [0] for i in range(100)})
    assert compare(a, b).verdict == "not comparable"


def test_task_means_come_first() -> None:
    report = compare(arm({"t1": [1, 0], "t2": [1]}), arm({"t1": [1], "t2": [1]}))
    assert report.change.before == 0.75
    assert report.change.tasks == 2
    assert report.change.mcnemar is None


def test_shuffling_rows_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    a = arm({f"t{i}": rng.integers(0, 2, 4).tolist() for i in range(20)})
    b = arm({f"t{i}": rng.integers(0, 2, 4).tolist() for i in range(20)})
    order = rng.permutation(len(a))
    one, two = compare(a, b), compare([a[i] for i in order], [b[i] for i in order[::-1]])
    assert one.change.delta == pytest.approx(two.change.delta)
    assert one.change.p_value == two.change.p_value
    a, b = ([{**r, "reward": float(rng.random())} for r in rows] for rows in (a, b))
    one, two = (compare(x, y, target="mean reward") for x, y in ((a, b), ([a[i] for i in order], b)))
    assert one.change.p_value == two.change.p_value
    assert (one.change.low, one.change.high) == pytest.approx((two.change.low, two.change.high), abs=1e-12)


def test_verdict_words() -> None:
    up = arm([0.0] * 8), arm([1.0] * 8)
    assert compare(*up).verdict == "improved" and compare(*up).exit_code == 0
    assert compare(*reversed(up)).verdict == "regressed" and compare(*reversed(up)).exit_code == 1
    assert compare(arm([0.0] * 5), arm([1.0] * 5)).verdict == "inconclusive"
    assert compare(arm([0.0, 1.0] * 8), arm([1.0, 0.0] * 8)).verdict == "no difference detected"
    noise = compare(*up, run_std=0.5, run_std_runs=3)
    assert noise.verdict == "within noise" and "re-runs" in noise.sentence
    assert compare(*up, seed_std=0.5, seed_runs=3).verdict == "within noise"
    for report in (compare(*up), noise):
        assert report.sentence


def test_agreeing_tasks_do_not_give_zero_width() -> None:
    same = compare(arm([1.0] * 40), arm([1.0] * 40)).change
    assert same.low < 0 < same.high and same.high - same.low < 0.2
    assert compare(arm([0.0] * 8), arm([1.0] * 8)).change.low < 1.0


def test_equivalence_is_said_when_the_data_support_it() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 2000)
    a = arm({f"t{i}": rng.binomial(1, q, 4).tolist() for i, q in enumerate(p)})
    b = arm({f"t{i}": rng.binomial(1, q, 4).tolist() for i, q in enumerate(p)})
    report = compare(a, b, margin=0.03)
    assert report.change.no_larger_than < 0.03
    assert "equivalent at the margin of 0.03" in report.sentence
    d = np.array(report.change.deltas)
    tost = max(abs(x) for x in stats.ttest_1samp(d, 0).confidence_interval(0.90))
    assert report.change.no_larger_than == pytest.approx(tost, rel=0.05)


def test_markers_guards_and_proxy() -> None:
    a = [{**r, "markers": {"polite": 1.0, "short": 0.0}} for r in arm([0.0, 1.0] * 8)]
    b = [{**r, "markers": {"polite": 0.0, "short": 1.0, "new": 1.0}} for r in arm([0.0, 1.0] * 8)]
    report = compare(a, b, must_not_regress="polite", proxy="short")
    assert report.changes["polite"].verdict == "regressed"
    assert report.regressions == ("polite",) and report.exit_code == 1
    assert report.over_optimised
    assert any("over-optimised" in note for note in report.notes)
    assert any("new" in note for note in report.notes)
    with pytest.raises(ParameterError, match="polit"):
        compare(a, b, must_not_regress="polit")


def test_holm_equals_statsmodels_and_keeps_intervals_in_step() -> None:
    multi = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(3)
    a, b = [], []
    for i in range(30):
        a.append({"task_id": f"t{i}", "reward": 1.0, "markers": {f"m{j}": float(rng.random()) for j in range(6)}})
        marks = {
            f"m{j}": float(min(1, max(0, a[-1]["markers"][f"m{j}"] + rng.normal(0.05 * j, 0.25)))) for j in range(6)
        }
        b.append({"task_id": f"t{i}", "reward": 1.0, "markers": marks})
    report = compare(a, b, adjust="holm")
    names = list(report.changes)
    _, want, _, _ = multi.multipletests([report.changes[n].p_value for n in names], method="holm")
    assert [report.changes[n].p_adjusted for n in names] == pytest.approx(list(want))
    for change in report.changes.values():
        assert (change.low > 0 or change.high < 0) == (change.p_adjusted <= 0.05)
    assert report.family_error == pytest.approx(0.05)
    assert compare(a, b).family_error == pytest.approx(0.35)


def test_what_else_differs_stops_the_comparison() -> None:
    a, b = arm([0.0] * 10), arm([1.0] * 10)
    judge = {"id": "judge/x", "version": "1", "kind": "judge"}
    assert compare(
        [{**r, "scorer": judge} for r in a], [{**r, "scorer": {**judge, "version": "2"}} for r in b]
    ).verdict == ("not comparable")
    assert compare(a, [{**r, "threshold": 0.5} for r in b]).verdict == "not comparable"
    prompts = compare([{**r, "prompt": "x"} for r in a], [{**r, "prompt": "y"} for r in b])
    assert prompts.verdict == "not comparable" and "another prompt" in prompts.sentence
    cut = compare([{**r, "finish_reason": "length"} for r in a], b)
    assert cut.verdict == "not comparable" and "length" in cut.sentence
    fewer = compare([*a, *({**r, "reward": None} for r in a)], b, allow=["graded"])
    assert fewer.verdict == "improved" and any("not scored" in n for n in fewer.notes)
    half = arm([0.0, 1.0] * 8)
    ungraded = [{**r, "reward": None} for r in half for _ in range(9)]
    assert compare([*half, *ungraded], arm([1.0] * 16)).verdict == "not comparable"


def test_unpaired_is_said_and_its_interval_agrees_with_its_p() -> None:
    a, b = arm({f"a{i}": [float(i % 2)] for i in range(40)}), arm({f"b{i}": [1.0] for i in range(40)})
    report = compare(a, b, paired=False)
    assert report.verdict == "improved" and not report.paired
    assert any("unpaired" in n for n in report.notes)
    assert (report.change.low > 0) == (report.change.p_value <= 0.05)
    none = compare(a, arm({f"b{i}": [float(i % 2)] for i in range(40)}), paired=False)
    assert none.verdict == "no difference detected" and none.change.p_value > 0.9


def test_unpaired_interval_is_close_to_statsmodels_newcombe() -> None:
    prop = pytest.importorskip("statsmodels.stats.proportion")
    a = arm({f"a{i}": [float(i < 60)] for i in range(200)})
    b = arm({f"b{i}": [float(i < 80)] for i in range(200)})
    got = compare(a, b, paired=False).change
    low, high = prop.confint_proportions_2indep(80, 200, 60, 200, method="newcomb")
    assert (got.low, got.high) == pytest.approx((low, high), abs=0.003)


def test_clusters_flip_as_one() -> None:
    a = [{**r, "g": str(i // 4)} for i, r in enumerate(arm([0.0] * 32))]
    b = [{**r, "g": str(i // 4)} for i, r in enumerate(arm([float(i // 4 % 4 > 0) for i in range(32)]))]
    plain, grouped = compare(a, b).change, compare(a, b, cluster="g").change
    assert grouped.delta == pytest.approx(plain.delta)
    assert grouped.high - grouped.low > 1.5 * (plain.high - plain.low)


def test_mcnemar_equals_statsmodels() -> None:
    table = pytest.importorskip("statsmodels.stats.contingency_tables")
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    got = compare(arm(x.astype(float).tolist()), arm(y.astype(float).tolist())).change.mcnemar
    counts = [[int(((x == i) & (y == j)).sum()) for j in (1, 0)] for i in (1, 0)]
    assert got["p_exact"] == pytest.approx(table.mcnemar(counts, exact=True).pvalue)


def test_gsm8k_arms_decide_as_mcnemar_and_the_paired_t() -> None:
    with shared("gsm8k_model_solutions.jsonl").open(encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    arms = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    rewards = {name: [float(it[name]["is_correct"]) for it in items] for name in arms}
    for before, after in combinations(arms, 2):
        change = compare(arm(rewards[before]), arm(rewards[after])).change
        t = stats.ttest_rel(rewards[after], rewards[before])
        ci = t.confidence_interval()
        decided = change.verdict in ("improved", "regressed")
        assert decided == (t.pvalue <= 0.05) == (change.mcnemar["p_exact"] <= 0.05)
        assert change.high - change.low == pytest.approx(ci.high - ci.low, rel=0.05)
        assert np.sign(change.delta) == np.sign(t.statistic)


@pytest.mark.parametrize("tasks", [6, 7, 8, 10, 20, 50])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("ab", [(2, 2), (1, 9)])
def test_false_alarms_under_the_null(tasks: int, k: int, ab: tuple[float, float]) -> None:
    from whileai_measure.signflip import sign_flips

    trials = 500
    rng = np.random.default_rng([tasks, k, ab[1]])
    p = rng.beta(*ab, (trials, tasks))
    d = (rng.binomial(k, p) - rng.binomial(k, p)) / k
    rejected = np.mean([f.p_value <= 0.05 for f in sign_flips(d.T, draws=999, exact_tasks=8)])
    assert rejected <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def test_no_rows_on_a_side_is_not_comparable() -> None:
    assert compare([], arm([1.0] * 8)).verdict == "not comparable"
    assert compare([], []).verdict == "inconclusive"


def test_report_is_plain_json_and_html() -> None:
    report = compare(arm([0.0, 1.0] * 8), arm([1.0] * 16), proxy="pass@1")
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["verdict"] == "improved"
    assert "<svg" in report._repr_html_()
