"""Near-duplicates: exact decisions, expected recall, clusters."""

from __future__ import annotations

import random

import pytest

from whileai_guard.duplicates import choose_bands, near_duplicates
from whileai_kernel.errors import ParameterError

pytest.importorskip("rensa")


def words(rng, n):
    return [f"w{rng.randrange(5000)}x" for _ in range(n)]


def jaccard(a, b, n=5):
    x, y = ({tuple(t[i : i + n]) for i in range(len(t) - n + 1)} for t in (a, b))
    return len(x & y) / len(x | y)


def test_planted_pairs_are_found_and_decided_by_exact_overlap():
    rng = random.Random(1)
    texts, truth = [], set()
    for _ in range(150):
        base = words(rng, 120)
        other = base[:]
        for at in rng.sample(range(120), rng.choice((1, 2, 3, 6))):
            other[at] = f"c{at}"
        texts += [base, other]
        if jaccard(base, other) >= 0.8:
            truth.add((len(texts) - 2, len(texts) - 1))
    report = near_duplicates([" ".join(t) for t in texts])
    found = {(a, b) for a, b, _ in report.pairs}
    assert found <= truth and len(found) >= 0.97 * len(truth) and len(truth) > 50
    for a, b, share in report.pairs:
        assert share == pytest.approx(jaccard(texts[a], texts[b]))
    assert "expected recall 0.99" in str(report) and report.to_dict()["n"] == 300


def test_equal_texts_and_clusters():
    texts = ["a b c d e f g"] * 4 + ["other words stand here now and then", "A b, c d e f g!"]
    report = near_duplicates(texts)
    assert report.clusters == ((0, 1, 2, 3, 5),) and report.extra == (1, 2, 3, 5)
    assert near_duplicates(["", ""]).clusters == () and near_duplicates([]).n == 0


def test_bands_reach_the_recall_that_is_asked_for():
    for threshold in (0.5, 0.8, 0.95):
        rows, bands, expected = choose_bands(threshold, 128, 0.99)
        assert (
            expected == pytest.approx(1 - (1 - threshold**rows) ** bands) and expected >= 0.99 and rows * bands <= 128
        )
    with pytest.raises(ParameterError):
        near_duplicates(["a"], threshold=0.0)
