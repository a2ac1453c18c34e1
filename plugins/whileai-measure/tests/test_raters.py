"""Agreement statistics against scikit-like closed forms, statsmodels and published worked examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_measure import agreement, confusion, krippendorff_alpha, length_effect, position_effect, rogan_gladen
from whileai_measure.intervals import Estimate


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, "linear", "quadratic"]))
def test_kappa_and_its_interval_equal_statsmodels(seed: int, weights: str | None) -> None:
    rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, 80)
    b = np.where(rng.random(80) < 0.6, a, rng.integers(0, 3, 80))
    got = agreement(a.tolist(), b.tolist(), weights=weights, labels=[0, 1, 2], interval="delta")
    table = np.array(got.table)
    kind = {None: None, "linear": "linear", "quadratic": "quadratic"}[weights]
    want = rater.cohens_kappa(table, wt=kind) if kind else rater.cohens_kappa(table)
    assert got.kappa.value == pytest.approx(want.kappa, abs=1e-9)
    assert (got.kappa.low, got.kappa.high) == pytest.approx((want.kappa_low, want.kappa_upp), abs=1e-4)


def test_ac1_of_a_two_by_two_table_in_closed_form() -> None:
    a = [1] * 118 + [1] * 5 + [0] * 2 + [0] * 0
    b = [1] * 118 + [0] * 5 + [1] * 2 + [0] * 0
    pa, share = 118 / 125, (123 + 120) / 250
    chance = 2 * share * (1 - share)
    got = agreement(a, b)
    assert got.ac1.value == pytest.approx((pa - chance) / (1 - chance))
    assert got.ac1.value > 0.9 > got.kappa.value  # the paradox that the report notes
    assert any("AC1" in note for note in got.notes)


def test_intervals_of_kappa_and_ac1_cover_in_simulation() -> None:
    rng = np.random.default_rng(1)
    truth = np.array([[0.4, 0.1], [0.05, 0.45]])
    big = agreement(*_draw(truth, 200_000, rng))
    hits = np.zeros(2)
    for _ in range(200):
        got = agreement(*_draw(truth, 100, rng))
        hits += [got.kappa.low <= big.kappa.value <= got.kappa.high, got.ac1.low <= big.ac1.value <= got.ac1.high]
    assert (hits / 200 > 0.90).all()


def _draw(table: "np.ndarray", n: int, rng: "np.random.Generator") -> tuple[list[int], list[int]]:
    cells = rng.choice(4, size=n, p=table.ravel())
    return (cells // 2).tolist(), (cells % 2).tolist()


def test_missing_labels_are_counted_not_read() -> None:
    got = agreement([1, None, 0, float("nan")], [1, 1, 0, 1])
    assert (got.items, got.left_out) == (2, 2)
    assert got.accuracy.value == 1.0 and got.accuracy.width > 0 and got.kappa.low < 1.0
    none = agreement([], [])
    assert none.accuracy.value is None and none.kappa.value is None
    one = agreement([1, 1], [1, 1])
    assert one.kappa.value is None and "kappa does not exist" in str(one)
    with pytest.raises(ParameterError):
        agreement([1], [1, 0])
    with pytest.raises(ParameterError, match="linear"):
        agreement([1], [1], weights="linaer")
    with pytest.raises(ParameterError):
        agreement([[1]], [1])


@pytest.mark.parametrize("name", ["kappa", "ac1", "alpha", "delta"])
def test_intervals_hold_at_20_items_of_prevalence_09(name: str) -> None:
    # All tables of 20 items that matter, each with its chance, so that the coverage has no simulation error.
    truth = np.array([0.9 * 0.9 * 0.8 + 0.1 * 0.1 * 0.2, 0.9 * 0.9 * 0.2 + 0.1 * 0.1 * 0.8, 0, 0])
    truth[2] = 0.9 * 0.1 * 0.8 + 0.1 * 0.9 * 0.2
    truth[3] = 1 - truth.sum()
    rng = np.random.default_rng(2)
    tables, weight = np.unique(rng.multinomial(20, truth, size=1500), axis=0, return_counts=True)
    order = np.argsort(-weight)[:150]
    tables, weight = tables[order], weight[order]
    po, share = truth[0] + truth[3], (2 * truth[0] + truth[1] + truth[2]) / 2
    r, c = truth[0] + truth[1], truth[0] + truth[2]
    both = r * c + (1 - r) * (1 - c)
    same = share**2 + (1 - share) ** 2
    true = {"ac1": (po - 1 + same) / same, "alpha": (po - same) / (1 - same)}.get(name, (po - both) / (1 - both))
    hits = seen = 0
    for table, times in zip(tables.tolist(), weight.tolist(), strict=True):
        a = [1] * (table[0] + table[1]) + [0] * (table[2] + table[3])
        b = [1] * table[0] + [0] * table[1] + [1] * table[2] + [0] * table[3]
        if name == "alpha":
            got = krippendorff_alpha([a, b], draws=600)
        else:
            both_of = agreement(a, b, draws=600, interval="delta" if name == "delta" else "posterior")
            got = both_of.ac1 if name == "ac1" else both_of.kappa
        if got.value is not None:
            seen += times
            hits += times * (got.low <= true <= got.high)
    if name == "delta":
        assert hits / seen < 0.93  # the reason for the other
    else:
        assert hits / seen > 0.93


@pytest.mark.parametrize("items", [1, 2, 10, 200])
def test_agreement_on_one_label_has_width(items: int) -> None:
    for interval in ("posterior", "delta"):
        got = agreement([1] * items, [1] * items, interval=interval)
        assert (got.ac1.value, got.labels, got.table) == (1.0, (1,), ((items,),))
        assert got.ac1.low < 1.0 - 0.5 / items and got.ac1.high == 1.0
        assert got.kappa.value is None


def test_rollouts_of_one_task_are_one_unit() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 40)
    b = np.where(rng.random(40) < 0.8, a, 1 - a)
    alone = agreement(a.tolist(), b.tolist())
    once = agreement(np.repeat(a, 5).tolist(), np.repeat(b, 5).tolist())
    tasks = np.repeat(np.arange(40), 5).tolist()
    copied = agreement(np.repeat(a, 5).tolist(), np.repeat(b, 5).tolist(), clusters=tasks)
    for name in ("accuracy", "kappa", "ac1"):
        plain, false, fair = (getattr(x, name) for x in (alone, once, copied))
        assert fair.value == pytest.approx(plain.value)
        assert (fair.units, fair.tasks) == (40, 200)
        assert fair.width == pytest.approx(plain.width, rel=0.08)  # five copies of an item say nothing new
        assert false.width < 0.6 * plain.width
    alpha = krippendorff_alpha([np.repeat(a, 5).tolist(), np.repeat(b, 5).tolist()], clusters=tasks)
    assert alpha.width == pytest.approx(krippendorff_alpha([a.tolist(), b.tolist()]).width, rel=0.08)
    perfect = agreement([1, 0] * 20, [1, 0] * 20, clusters=[0] * 20 + [1] * 20)
    assert perfect.kappa.width > agreement([1, 0] * 20, [1, 0] * 20).kappa.width
    sides = confusion([1.0] * 30 + [0.0] * 10, [1.0] * 40, clusters=[0] * 30 + [1] * 10)
    assert sides.sensitivity.units == 2 and sides.sensitivity.width > 0.9
    with pytest.raises(ParameterError, match="clusters"):
        agreement([1, 0], [1, 0], clusters=[1])
    with pytest.raises(ParameterError, match="posterior"):
        agreement([1, 0], [1, 0], interval="posteriour")


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_a_sum_over_pairs(level: str) -> None:
    rng = np.random.default_rng(5)
    ratings = rng.integers(0, 4, (3, 15)).astype(float)
    ratings[rng.random(ratings.shape) < 0.2] = np.nan
    lists = [[None if v != v else v for v in row] for row in ratings]
    items = [[v for v in column if v == v] for column in ratings.T]
    items = [v for v in items if len(v) > 1]
    flat = sorted(v for item in items for v in item)
    rank = {v: flat.index(v) + flat.count(v) / 2 for v in flat}

    def distance(x: float, y: float) -> float:
        gap = {"nominal": float(x != y), "ordinal": rank[x] - rank[y], "interval": x - y}[level]
        return gap * gap

    n = len(flat)
    seen = sum(distance(x, y) / (len(item) - 1) for item in items for x in item for y in item) / n
    expected = sum(distance(x, y) for x in flat for y in flat) / (n * (n - 1))
    assert krippendorff_alpha(lists, level=level).value == pytest.approx(1 - seen / expected, abs=1e-9)


# Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: four coders, twelve units, missing data.
CODERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level: str, alpha: float) -> None:
    got = krippendorff_alpha(CODERS, level=level)
    assert got.value == pytest.approx(alpha, abs=0.0006)
    assert got.low < got.value < got.high


def test_alpha_edges() -> None:
    assert krippendorff_alpha([[1, 1], [1, 1]]).value is None
    assert krippendorff_alpha([[1], [1]]).value is None
    perfect = krippendorff_alpha([[0, 1, 0, 1], [0, 1, 0, 1]])
    assert perfect.value == 1.0 and perfect.low < 1.0
    with pytest.raises(ParameterError):
        krippendorff_alpha([[1, 2]])
    with pytest.raises(ParameterError, match="numbers"):
        krippendorff_alpha([["a", "b"], ["a", "c"]], level="interval")


def test_confusion_counts_and_rates() -> None:
    got = confusion([1, 1, 0, 0, 1, None], [1, 0, 0, 1, 1, 1])
    assert (got.true_pass, got.false_pass, got.true_fail, got.false_fail, got.left_out) == (2, 1, 1, 1, 1)
    assert got.sensitivity.value == pytest.approx(2 / 3) and got.specificity.value == 0.5
    assert confusion([1.0], [1.0]).specificity.value is None
    assert confusion([0.6], [1.0], threshold=0.5).true_pass == 1
    with pytest.raises(ParameterError):
        confusion(["yes"], [1])


def test_position_effect_counts_only_verdicts_that_follow_the_seat() -> None:
    got = position_effect(["a"] * 8 + ["a", "b", "b", None], ["b"] * 8 + ["a", "b", "a", "a"])
    assert (got.items, got.ties) == (9, 1)
    assert got.effect == pytest.approx(8 / 9 - 0.5)
    assert got.consistent == pytest.approx(2 / 11)
    assert position_effect(["a"], ["a"]).effect is None
    with pytest.raises(ParameterError):
        position_effect(["A"], ["a"])


def test_length_effect() -> None:
    got = length_effect([10, 20, 5, 7], [5, 30, 9, 7], ["a", "b", "b", "a"])
    assert (got.items, got.ties, got.effect) == (3, 1, 0.5)
    assert -0.5 <= got.low < got.effect and "longer answer" in str(got)


def test_rogan_gladen_point_and_identity() -> None:
    got = rogan_gladen(0.6, 200, sensitivity=(90, 100), specificity=(85, 100))
    assert got.value == pytest.approx((0.6 + 0.85 - 1) / (0.9 + 0.85 - 1))
    perfect = rogan_gladen(0.3, 500, sensitivity=(100_000, 100_000), specificity=(100_000, 100_000))
    assert perfect.value == pytest.approx(0.3)
    assert (perfect.low, perfect.high) == pytest.approx((0.262, 0.342), abs=0.003)
    below = rogan_gladen(0.05, 100, sensitivity=(90, 100), specificity=(85, 100))
    assert below.value == 0.0 and below.low == 0.0 and "outside" in str(below)
    estimate = Estimate(0.6, 0.5, 0.7, 50, 50, 120.0)
    assert rogan_gladen(estimate, sensitivity=(90, 100), specificity=(85, 100)).value == pytest.approx(got.value)
    for bad in ({"sensitivity": (5, 4)}, {"sensitivity": (10, 100)}, {"specificity": (0, 0)}):
        with pytest.raises(ParameterError):
            rogan_gladen(0.5, 100, **({"sensitivity": (90, 100), "specificity": (85, 100)} | bad))


@pytest.mark.parametrize(("true", "se", "sp"), [(0.3, 0.9, 0.85), (0.8, 0.8, 0.95), (0.05, 0.9, 0.9)])
def test_rogan_gladen_interval_covers(true: float, se: float, sp: float) -> None:
    rng = np.random.default_rng(int(true * 100))
    hits = 0
    for _ in range(1000):
        n, pos, neg = 300, 100, 100
        observed = rng.binomial(n, true * se + (1 - true) * (1 - sp)) / n
        labelled = (int(rng.binomial(pos, se)), pos), (int(rng.binomial(neg, sp)), neg)
        got = rogan_gladen(observed, n, sensitivity=labelled[0], specificity=labelled[1])
        hits += got.low <= true <= got.high
    assert hits / 1000 > 0.93
