"""Is the judge itself right: known judges are named, intervals hold the truth, degenerate labels certify nothing."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge import attach_labels, compare_judges, corrected_pass_rate, grade, judge_trust, pairwise
from whileai_judge.confusion import ac1, agreement, false_fail, false_pass, kappa
from whileai_judge.correct import rogan_gladen
from whileai_judge.intervals import clustered_rate, rate_of, t_quantile, wilson
from whileai_kernel.errors import ParameterError

FIGURES = {"agreement": agreement, "kappa": kappa, "ac1": ac1, "false_pass": false_pass, "false_fail": false_fail}
REPEATS = 200
LEAST = 0.93  # of 200 repeats, at a nominal 0.95


def gold(row):
    return row["gold"]


def simulate(rng, tasks=40, rollouts=4, sens=0.9, spec=0.8, rate=0.5):
    """Clustered rows: tasks differ in difficulty, and the judge's errors differ between tasks."""
    rows = []
    for task in range(tasks):
        p = rng.betavariate(rate * 7 / 3, (1 - rate) * 7 / 3)
        hit, reject = rng.betavariate(sens * 9, (1 - sens) * 9), rng.betavariate(spec * 9, (1 - spec) * 9)
        for index in range(rollouts):
            right = rng.random() < p
            judged = rng.random() < (hit if right else 1 - reject)
            text = "x" * rng.randint(10, 400)
            rows.append({"task_id": f"t{task}", "index": index, "final_text": text, "gold": float(right)})
            rows[-1]["reward"] = float(judged)
    return rows


def cells(sens, spec, rate):
    return rate * sens, (1 - rate) * (1 - spec), rate * (1 - sens), (1 - rate) * spec


# --- the arithmetic ---


def test_t_quantiles_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99):
        for df in (1, 2, 3, 7, 39, 500):
            assert t_quantile(confidence, df) == pytest.approx(stats.t.ppf((1 + confidence) / 2, df), rel=1e-9)


def test_wilson_is_the_published_interval():
    assert wilson(0.8, 10, 1.959964) == pytest.approx((0.490, 0.943), abs=5e-4)


def test_kappa_is_that_of_statsmodels():
    tools = pytest.importorskip("statsmodels.stats.inter_rater")
    for table in ((40, 10, 10, 40), (5, 1, 9, 85), (30, 0, 0, 12)):
        tp, fp, fn, tn = table
        assert kappa(table) == pytest.approx(tools.cohens_kappa([[tp, fp], [fn, tn]]).kappa)


def test_ac1_of_gwets_example_stays_high_where_kappa_collapses():
    """Gwet 2008, table 2 in spirit: 118, 5, 2, 0 agree on nearly everything; kappa is about -0.02, AC1 0.94."""
    assert kappa((118, 5, 2, 0)) == pytest.approx(-0.0234, abs=5e-4)
    assert ac1((118, 5, 2, 0)) == pytest.approx(0.9408, abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=30))
@settings(max_examples=80, deadline=None)
def test_a_rate_lies_in_its_interval_and_the_interval_in_0_to_1_and_is_never_empty(counts):
    interval = rate_of([(float(hits), float(hits + misses)) for hits, misses in counts])
    if interval is None:
        assert all(hits + misses == 0 for hits, misses in counts)
    else:
        assert 0 <= interval.low <= interval.value <= interval.high <= 1
        assert interval.high > interval.low


def test_repeating_the_rows_of_a_task_does_not_narrow_the_interval():
    """10 tasks of 4, half all right and half all wrong; the same rows ten times over are no new tasks."""
    rows = [(f"t{i}", i < 5) for i in range(10) for _ in range(4)]
    once, ten_times = clustered_rate(rows), clustered_rate(rows * 10)
    assert (once.low, once.high) == pytest.approx((ten_times.low, ten_times.high), abs=1e-9)
    assert once.high - once.low > 0.5  # 40 independent rows would give 0.3


# --- coverage ---


@pytest.mark.parametrize(("tasks", "sens", "spec"), [(40, 0.9, 0.8), (15, 0.95, 0.85)])
def test_every_interval_holds_its_truth(tasks, sens, spec):
    rng = random.Random(7)
    truth = {name: figure(cells(sens, spec, 0.5)) for name, figure in FIGURES.items()}
    held = dict.fromkeys(truth, 0)
    for _ in range(REPEATS):
        report = judge_trust(simulate(rng, tasks, 4, sens, spec), gold=gold)
        for name, value in truth.items():
            interval = getattr(report, name)
            held[name] += interval.low <= value <= interval.high
    assert {name: count for name, count in held.items() if count < LEAST * REPEATS} == {}


def test_the_effect_of_length_holds_its_truth_when_there_is_none():
    rng = random.Random(11)
    effects = [judge_trust(simulate(rng), gold=gold).length_effect for _ in range(REPEATS)]
    assert sum(effect.low <= 0 <= effect.high for effect in effects) >= LEAST * REPEATS


def biased_by_length(rng, beta=0.1, tasks=40, rollouts=4):
    """A judge that passes with probability base + beta * z, z the standardised log length, shared in part by a task.

    Among rows of one label the covariance of verdict and z is beta, the variance of z is 1, and that of the verdict is
    base * (1 - base): the correlation is beta / sqrt(0.65 * 0.35) when the two bases are 0.65 and 0.35.
    """
    wide = math.sqrt(3)
    for task in range(tasks):
        shared, shift = rng.uniform(-wide, wide), rng.uniform(-0.1, 0.1)
        for _ in range(rollouts):
            z = (shared + rng.uniform(-wide, wide)) / math.sqrt(2)
            right = rng.random() < 0.5
            judged = rng.random() < (0.65 if right else 0.35) + shift + beta * z
            row = {"task_id": f"t{task}", "gold": float(right), "reward": float(judged)}
            yield {**row, "final_text": "x" * (round(2 ** (8 + z)) - 1)}


@pytest.mark.parametrize("tasks", [20, 60])
def test_the_effect_of_length_holds_its_truth_when_there_is_one(tasks):
    rng = random.Random(21)
    truth = 0.1 / math.sqrt(0.65 * 0.35)
    effects = [judge_trust(biased_by_length(rng, tasks=tasks), gold=gold).length_effect for _ in range(REPEATS)]
    assert sum(effect.low <= truth <= effect.high for effect in effects) >= LEAST * REPEATS
    assert sum(effect.value for effect in effects) / REPEATS == pytest.approx(truth, abs=0.02)


def test_self_consistency_holds_its_truth():
    """Votes are independent coins of 0.9: two of them agree with probability 0.82."""
    rng = random.Random(3)
    held = 0
    for _ in range(REPEATS):
        rows = simulate(rng, tasks=30, rollouts=2)
        for row in rows:
            row["evidence"] = {"votes": [rng.random() < 0.9 for _ in range(3)]}
        interval = judge_trust(rows, gold=gold).self_consistency
        held += interval.low <= 0.82 <= interval.high
    assert held >= LEAST * REPEATS


def test_position_flips_hold_their_truth():
    """A judge that takes the first seat with probability 0.3, and else the better: 0.3 of the pairs flip."""
    rng = random.Random(9)
    held = 0

    def judge(first, second):
        return "first" if rng.random() < 0.3 else "better"

    for _ in range(REPEATS):
        report = pairwise([("better", "worse")] * 40, judge, concurrency=1)
        held += report.position_flips.low <= 0.3 <= report.position_flips.high
    assert held >= LEAST * REPEATS


def test_what_a_pairwise_report_says_holds_its_truth_when_pairs_of_a_task_are_alike():
    """Per task a chance f ~ Beta(3, 7) of taking the first seat; else the better wins, which is the longer in 0.6."""
    rng = random.Random(17)
    names = [f"t{i}" for i in range(30) for _ in range(4)]
    held = dict.fromkeys(("position_flips", "first_seat", "preference", "longer_wins"), 0)
    # With the better one first both causes say "first"; the pair flips when the other order follows the seat too.
    truth = {"position_flips": 0.3, "first_seat": (1 + 0.3) / 2, "preference": 1.0, "longer_wins": 0.6}
    for _ in range(REPEATS):
        chance = {name: rng.betavariate(3, 7) for name in names}
        pairs = []
        for i, name in enumerate(names):
            longer = rng.random() < 0.6
            better, worse = f"+{name} {i}" + "x" * 9 * longer, f"-{name} {i}" + "x" * 9 * (not longer)
            pairs.append((better, worse))

        def judge(first, second, chance=chance):
            seat = rng.random() < chance[first[1:].partition(" ")[0]]
            return "first" if seat or first[0] == "+" else "second"

        report = pairwise(pairs, judge, tasks=names, concurrency=1)
        for name, value in truth.items():
            interval = getattr(report, name)
            held[name] += interval.low <= value <= interval.high
    assert {name: count for name, count in held.items() if count < LEAST * REPEATS} == {}


def test_slices_halves_and_the_distance_to_the_best_judge_hold_their_truth():
    """Two judges with errors of 0.1 and 0.25 that differ between tasks; the better one errs as much in every slice."""
    rng = random.Random(23)
    held = dict.fromkeys(("slice", "first", "second", "behind"), 0)
    for _ in range(REPEATS):
        rows = []
        for task in range(40):
            errors = (rng.betavariate(1, 9), rng.betavariate(2.5, 7.5))
            for index in range(4):
                right = float(rng.random() < 0.5)
                said = [abs(right - (rng.random() < e)) for e in errors]
                rows.append({"task_id": f"t{task}", "gold": right, "said": said, "side": "ab"[index % 2]})
        judges = {"good": lambda row: row["said"][0], "worse": lambda row: row["said"][1]}
        table = compare_judges(rows, judges, gold=gold, slices=("side",))
        best, other = sorted(table.lines, key=lambda line: line.name)
        figures = {"slice": best.trust.slices["side=a"], **best.trust.halves}
        for name, interval in figures.items():
            held[name] += interval.low <= 0.9 <= interval.high
        held["behind"] += other.behind is not None and other.behind.low <= -0.15 <= other.behind.high
    assert {name: count for name, count in held.items() if count < LEAST * REPEATS} == {}


@pytest.mark.parametrize("method", ["difference", "rogan-gladen"])
def test_the_corrected_pass_rate_holds_the_true_rate(method):
    rng = random.Random(5)
    held, off = 0, 0
    for _ in range(REPEATS):
        rows = simulate(rng, tasks=80, rollouts=4, sens=0.9, spec=0.7)
        labelled = {f"t{i}" for i in rng.sample(range(80), 30)}
        for row in rows:
            row["label"] = row["gold"] if row["task_id"] in labelled else None
        rate = corrected_pass_rate(rows, gold=lambda row: row["label"], method=method)
        held += rate.corrected.low <= 0.5 <= rate.corrected.high
        off += rate.observed > 0.5
    assert held >= LEAST * REPEATS
    assert off > 0.9 * REPEATS  # the judge's own rate is 0.6: the correction is needed


def test_rogan_gladen_is_the_closed_form():
    assert rogan_gladen((60.0, 100.0, 45.0, 15.0, 5.0, 35.0)) == pytest.approx((0.6 + 0.7 - 1) / (0.9 + 0.7 - 1))
    assert rogan_gladen((60.0, 100.0, 5.0, 5.0, 5.0, 5.0)) is None  # a coin cannot be turned around
    assert rogan_gladen((60.0, 100.0, 5.0, 0.0, 5.0, 0.0)) is None


def test_corrected_rates_say_why_there_is_none():
    rows = simulate(random.Random(0), tasks=5)
    assert "no row has a label" in str(corrected_pass_rate(rows, gold=lambda row: None))
    assert corrected_pass_rate([{"task_id": "t", "reward": None}]).observed is None
    with pytest.raises(ParameterError, match="rogan-gladen"):
        corrected_pass_rate(rows, method="rogan-galden")
    rows[0]["reward"] = None
    assert corrected_pass_rate(rows, gold=gold).unscored == 1


# --- judges that are none ---


def judged_by(judge, seed=0, **kwargs):
    rows = simulate(random.Random(seed), tasks=60, **kwargs)
    for row in rows:
        row["reward"] = float(judge(row))
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_judges_that_are_none_are_named(seed):
    rng = random.Random(seed)
    named = {
        "constant": judge_trust(judged_by(lambda row: True, seed), gold=gold),
        "length": judge_trust(judged_by(lambda row: len(row["final_text"]) > 150, seed), gold=gold),
        "random": judge_trust(judged_by(lambda row: rng.random() < 0.5, seed), gold=gold),
    }
    pairs = pairwise([(f"x{i}", f"y{i}") for i in range(20)], lambda first, second: "first")
    named["seat"] = judge_trust(judged_by(lambda row: row["gold"], seed), gold=gold, pairs=pairs)
    for fault, report in named.items():
        assert fault in report.faults, (fault, str(report))
        assert report.verdict == "not trusted"
    assert "length" in named["length"].faults
    assert "constant" not in named["random"].faults


def test_a_judge_that_contradicts_itself_is_named():
    rng = random.Random(1)
    rows = judged_by(lambda row: row["gold"])
    for row in rows:
        row["evidence"] = {"votes": [rng.choice(["PASS", "FAIL"]) for _ in range(3)]}
    report = judge_trust(rows, gold=gold)
    assert list(report.faults) == ["inconsistent"]


def test_self_consistency_is_also_read_from_repeated_verdicts():
    rng = random.Random(2)

    def judge(row):
        return rng.random() < 0.5

    judge.version = "1"
    rows = grade(grade(judged_by(lambda row: 0), judge), judge)
    assert judge_trust(rows, gold=gold).self_consistency.value == pytest.approx(0.5, abs=0.15)


def test_a_good_judge_is_trusted_and_a_poor_one_is_not():
    good = judge_trust(simulate(random.Random(0), tasks=150, sens=0.97, spec=0.97), gold=gold)
    assert good.verdict == "trusted", str(good)
    poor = judge_trust(simulate(random.Random(0), tasks=150, sens=0.75, spec=0.6), gold=gold)
    assert poor.verdict == "not trusted"
    between = judge_trust(simulate(random.Random(0), tasks=30, sens=0.9, spec=0.9), gold=gold)
    assert between.verdict == "cannot tell"
    assert any("may be as" in text for text in between.missing)


# --- what certifies nothing ---


def test_degenerate_labels_certify_nothing_and_say_what_is_missing():
    rows = judged_by(lambda row: row["gold"])
    one_class = judge_trust([row for row in rows if row["gold"]], gold=gold)
    assert one_class.verdict != "trusted"
    few = judge_trust(rows[:12], gold=gold)
    assert few.verdict == "cannot tell"
    assert any("more tasks (there are 3)" in text for text in few.missing)
    assert any("labelled as" in text for text in few.missing)
    none = judge_trust(rows)
    assert (none.verdict, none.rows, none.unused["no label"]) == ("cannot tell", 0, len(rows))
    assert none.agreement is None
    assert str(none).startswith("cannot tell")
    single = judge_trust([{"task_id": "t", "reward": 1.0, "gold": 1.0}], gold=gold)
    assert (single.agreement.low, single.agreement.high) == (0.0, 1.0)


def test_perfect_agreement_on_few_tasks_is_not_certainty():
    rows = judged_by(lambda row: row["gold"])[:80]
    report = judge_trust(rows, gold=gold)
    assert report.kappa.value == 1.0
    assert report.kappa.low < 0.95
    assert report.agreement.low < 1.0


def test_labels_under_another_name_are_pointed_at():
    rows = [{"rollout_id": f"r{i}", "task_id": f"t{i}", "reward": 1.0} for i in range(3)]
    assert "attach_labels" in judge_trust(rows).missing[0]
    labelled = attach_labels(rows, {"r0": True}, source="program", annotator="oracle")
    assert "gold='label/program/oracle'" in judge_trust(labelled).missing[0]
    assert "gold='label/program/oracle'" in judge_trust(labelled, gold="label/oracle").missing[0]
    assert judge_trust(labelled, gold="label/program/oracle").rows == 1


def test_a_seat_or_a_constant_is_named_only_where_the_data_can_show_it():
    rows = judged_by(lambda row: row["gold"])
    pairs = [("good", "bad")] * 9 + [("even", "even too")]
    few = pairwise(pairs, lambda first, second: "good" if "good" in (first, second) else "first")
    assert few.position_flips.value == 0.1
    assert few.position_flips.low < 0.1 < few.position_flips.high
    unclear = judge_trust(rows, gold=gold, pairs=few)
    assert "seat" not in unclear.faults
    assert unclear.verdict == "cannot tell"
    assert any("follow the seat" in text for text in unclear.missing)
    assert "constant" not in judge_trust([{**row, "reward": 1.0} for row in rows[:12]], gold=gold).faults


def test_rows_that_cannot_be_used_are_counted():
    rows = judged_by(lambda row: row["gold"])
    rows[0]["reward"] = None
    rows[1]["gold"] = None
    report = judge_trust(rows, gold=gold)
    assert report.unused == {"no label": 1, "not scored": 1}
    assert report.rows == len(rows) - 2
    assert "1 no label" in str(report)


def test_the_verdict_of_one_of_several_judges_and_labels_of_people():
    rows = judged_by(lambda row: row["gold"])
    for i, row in enumerate(rows):
        row["rollout_id"] = f"r{i}"

    def other(row):
        return 1 - row["gold"]

    both = grade(rows, other, primary=False)
    labelled = attach_labels(both, {row["rollout_id"]: row["gold"] for row in rows})
    assert judge_trust(labelled).agreement.value == 1.0
    name = both[0]["judgments"][0]["scorer"]["id"]
    assert judge_trust(labelled, judge=name).agreement.value == 0.0
    assert judge_trust(labelled, judge="nobody").rows == 0


def test_slices_and_halves():
    rows = judged_by(lambda row: row["gold"])
    for row in rows:
        row["axes"] = {"stance": "hurried" if row["index"] == 0 else "calm"}
        if row["index"] == 0:
            row["reward"] = 1.0 - row["gold"]
    report = judge_trust(rows, gold=gold, slices=["axes.stance", "split"])
    assert report.slices["axes.stance=hurried"].value == 0.0
    assert report.slices["axes.stance=calm"].value == 1.0
    assert report.slices["split=None"].rows == len(rows)
    assert sum(half.tasks for half in report.halves.values()) == report.tasks
    assert set(report.halves) == {"first", "second"}
    json.dumps(report.to_dict(), allow_nan=False)
    assert report._repr_html_().startswith("<pre>")


def test_fractional_verdicts_pass_by_their_threshold():
    rows = [{"task_id": f"t{i}", "reward": 0.6, "threshold": 0.5, "gold": 1.0} for i in range(4)]
    assert judge_trust(rows, gold=gold).confusion == {"tp": 4, "fp": 0, "fn": 0, "tn": 0}
    assert judge_trust(rows, gold=gold, threshold=0.7).confusion == {"tp": 0, "fp": 0, "fn": 4, "tn": 0}


def test_judges_side_by_side():
    rows = simulate(random.Random(4), tasks=60)
    rng = random.Random(0)
    noise = {id(row): rng.random() < 0.15 for row in rows}
    flips = [noise[id(row)] for row in rows]
    keyed = [{**row, "flip": flip} for row, flip in zip(rows, flips, strict=True)]
    judges = {
        "noisy": lambda row: {"reward": row["gold"] if not row["flip"] else 1 - row["gold"], "cost_usd": 0.5},
        "right": lambda row: row["gold"],
        "partly": lambda row: row["gold"] if row["index"] else None,
    }
    table = compare_judges(keyed, judges, gold=gold)
    names = [line.name for line in table.lines]
    assert set(names[:2]) == {"right", "partly"}
    assert names[2] == "noisy"
    noisy = table.lines[2]
    assert noisy.behind.high < 0
    wrong = [flip for flip, row in zip(flips, keyed, strict=True) if names[0] == "right" or row["index"]]
    assert noisy.behind.value == pytest.approx(-sum(wrong) / noisy.behind.rows)
    assert noisy.cost == pytest.approx(0.5 * len(rows))
    assert next(line for line in table.lines if line.name == "partly").unscored == 60
    assert table.lines[0].behind is None
    assert str(table).splitlines()[0].startswith("judge")
    json.dumps(table.to_dict(), allow_nan=False)
    with pytest.raises(ParameterError):
        compare_judges(rows, {})
