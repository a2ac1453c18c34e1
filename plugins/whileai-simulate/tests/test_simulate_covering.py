"""Covering arrays: coverage counted independently, sizes, constraints."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_simulate.covering import CoverageCount, count_coverage, covering_array, most_covering_first


def feasible_rows(axes: dict[str, list[Any]], forbidden: list[tuple[str, Any, str, Any]]) -> list[dict[str, Any]]:
    """Every valid row, by brute force: the oracle."""
    names = list(axes)
    out = []
    for values in product(*axes.values()):
        row = dict(zip(names, values, strict=True))
        if not any(row[a] == va and row[b] == vb for a, va, b, vb in forbidden):
            out.append(row)
    return out


def tuples_of(rows: list[dict[str, Any]], strength: int) -> set[Any]:
    return {tuple((n, row[n]) for n in names) for row in rows for names in combinations(sorted(row), strength)}


def grid(tools: int, rules: int) -> tuple[dict[str, list[Any]], list[tuple[str, Any, str, Any]]]:
    names = [f"t{i}" for i in range(tools)] + ["none"]
    axes: dict[str, list[Any]] = {
        "tool": names,
        "rule": list(range(rules)),
        "stance": list(range(10)),
        "state": [*range(6), "none"],
        "fault": [*range(6), "none"],
        "history": list(range(5)),
    }
    forbidden = [("tool", "none", "fault", f) for f in range(6)] + [("tool", "none", "state", s) for s in range(6)]
    for name in names[:-1]:
        forbidden += [("tool", name, "fault", "none"), ("tool", name, "state", "none")]
    return axes, forbidden


@pytest.mark.parametrize(("tools", "rules"), [(1, 1), (5, 4), (20, 10), (50, 100)])
def test_every_feasible_pair_is_covered(tools: int, rules: int) -> None:
    axes, forbidden = grid(tools, rules)
    array = covering_array(axes, forbidden=forbidden)
    seen = tuples_of(array.rows, 2)
    barred = {frozenset(((a, va), (b, vb))) for a, va, b, vb in forbidden}
    # A pair is infeasible exactly when it is barred, or when one of its values forces another that bars it. Here
    # the only such force is: no tool <=> no fault <=> no state.
    wanted = set()
    for a, b in combinations(sorted(axes), 2):
        for va, vb in product(axes[a], axes[b]):
            if frozenset(((a, va), (b, vb))) in barred:
                continue
            nones = {n: v == "none" for n, v in ((a, va), (b, vb)) if n in ("tool", "fault", "state")}
            if len(set(nones.values())) > 1:
                continue
            wanted.add(((a, va), (b, vb)))
    assert wanted <= seen
    assert array.planned == array.covered == len(wanted)
    largest = sorted(len(v) for v in axes.values())[-2:]
    assert len(array.rows) <= 1.3 * largest[0] * largest[1]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    strength=st.integers(1, 3),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_against_brute_force(sizes: list[int], strength: int, data: st.DataObject) -> None:
    axes = {f"a{i}": list(range(n)) for i, n in enumerate(sizes)}
    names = list(axes)
    forbidden: list[tuple[str, Any, str, Any]] = []
    if len(names) > 1:
        for _ in range(data.draw(st.integers(0, 4))):
            a, b = data.draw(st.sampled_from(list(combinations(names, 2))))
            forbidden.append((a, data.draw(st.sampled_from(axes[a])), b, data.draw(st.sampled_from(axes[b]))))
    valid = feasible_rows(axes, forbidden)
    if not valid:
        with pytest.raises(ParameterError):
            covering_array(axes, strength=strength, forbidden=forbidden)
        return
    array = covering_array(axes, strength=strength, forbidden=forbidden)
    assert all(row in valid for row in array.rows)
    k = min(strength, len(names))
    assert tuples_of(array.rows, k) == tuples_of(valid, k)
    assert array.planned == len(tuples_of(valid, k))
    some = array.rows[::2]
    counted = count_coverage(some, axes, strength=strength, forbidden=forbidden)
    assert counted.planned == array.planned
    assert counted.covered == len(tuples_of(some, k))
    assert len(counted.missing) == counted.planned - counted.covered


def test_not_larger_than_a_maintained_library() -> None:
    covertable = pytest.importorskip("covertable")
    axes, _ = grid(5, 4)
    theirs = covertable.make({k: list(map(str, v)) for k, v in axes.items()}, strength=2)
    assert len(covering_array(axes).rows) <= 1.3 * len(theirs)


def test_the_first_rows_cover_the_most() -> None:
    axes, forbidden = grid(5, 4)
    rows = covering_array(axes, forbidden=forbidden).rows
    chosen = most_covering_first(rows, 20)
    assert sorted(map(repr, chosen)) == sorted(map(repr, rows))
    best = len(tuples_of(chosen[:20], 2))
    for start in range(0, len(rows) - 20, 7):
        assert best >= len(tuples_of(rows[start : start + 20], 2))
    gains, seen = [], set()
    for row in chosen[:20]:
        new = tuples_of([row], 2) - seen
        seen |= new
        gains.append(len(new))
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("bad", [{"a": []}, {"a": [1, 1]}])
def test_axes_must_have_distinct_values(bad: dict[str, list[int]]) -> None:
    with pytest.raises(ParameterError):
        covering_array(bad)


def test_strength_is_checked() -> None:
    with pytest.raises(ParameterError, match="strength"):
        covering_array({"a": [1]}, strength=4)


def test_weights_fill_what_coverage_leaves_open() -> None:
    axes = {"a": list(range(20)), "b": list(range(20)), "c": ["often", "seldom"]}
    rows = covering_array(axes, weights={"c": {"often": 8.0, "seldom": 1.0}}).rows
    often = sum(row["c"] == "often" for row in rows)
    assert often > 0.7 * len(rows)


def test_every_value_comes_before_one_comes_twice_when_there_is_no_room_for_all_rows() -> None:
    """With room for twice as many rows as the largest axis has values, each value is in one of them."""
    for sizes in ((150, 6, 10, 7), (60, 50, 10), (100, 12, 5, 5, 5)):
        axes = {f"axis{n}": list(range(size)) for n, size in enumerate(sizes)}
        array = covering_array(axes)
        first = most_covering_first(array.rows, 2 * max(sizes))[: 2 * max(sizes)]
        for axis, values in axes.items():
            assert {row[axis] for row in first} == set(values), (sizes, axis)
        greedy = count_coverage(first, axes).covered
        plain = max(count_coverage(array.rows[n :: len(array.rows) // (2 * max(sizes))], axes).covered for n in (0, 1))
        assert greedy >= plain


def test_counting_may_stop_when_all_is_covered_and_not_before() -> None:
    """With the number of feasible pairs known, the count is that of every row looked at, at every length."""
    axes = {"a": list(range(6)), "b": list(range(5)), "c": list(range(4))}
    forbidden = [("a", 0, "b", 0), ("b", 1, "c", 1)]
    rows = covering_array(axes, forbidden=forbidden).rows * 12
    planned = covering_array(axes, forbidden=forbidden).planned
    for length in (0, 1, 29, 64, 65, 128, len(rows)):
        counted = CoverageCount(axes, forbidden=forbidden, planned=planned)
        for row in rows[:length]:
            counted.add(row)
        assert counted.result() == count_coverage(rows[:length], axes, forbidden=forbidden)
