"""Whatever a judge returns or raises becomes one of three states, and nothing becomes 0 that was not returned as 0."""

from __future__ import annotations

import collections
import json
import math
import types
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.models import Judgment, Scorer
from whileai_kernel.rowio import dumps_row, loads
from whileai_kernel.rows import STATUSES
from whileai_kernel.verdicts import error_judgment, jsonable, timeout_judgment, to_judgment


def reading(value, **options):
    judgment, _ = to_judgment(value, **options)
    return judgment.reward, judgment.status


@pytest.mark.parametrize(
    ("value", "reward"),
    [
        (True, 1.0),
        (False, 0.0),
        (1, 1.0),
        (0, 0.0),
        (0.25, 0.25),
        (-0.0, 0.0),
        (1 + 1e-12, 1.0),
        (-1e-12, 0.0),
        (sum([0.1] * 10), sum([0.1] * 10)),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        ({"reward": 0.5}, 0.5),
        ({"score": 0.5}, 0.5),
        ({"reward": True}, 1.0),
        ({"reward": None, "score": 0.5}, 0.5),
        ({"reward": 1, "score": 1.0}, 1.0),
        ({"reward": 1, "score": True}, 1.0),
        ({"reward": 0.5, "status": "ok"}, 0.5),
        (types.MappingProxyType({"reward": 0.5}), 0.5),
        (collections.OrderedDict(reward=Fraction(1, 2)), 0.5),
    ],
)
def test_what_is_a_reward(value, reward):
    judgment, _ = to_judgment(value)
    assert (judgment.reward, judgment.status, type(judgment.reward)) == (reward, "ok", float)
    assert math.copysign(1, judgment.reward) == 1


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (None, "missing"),
        ({"reward": None}, "missing"),
        ({"score": None, "reason": "no gold"}, "missing"),
        ({"status": "ok"}, "missing"),
        ({"status": "abstained"}, "abstained"),
        ({"reward": None, "status": "timeout"}, "timeout"),
        ({}, "invalid"),
        ({"reason": "x"}, "invalid"),
        (math.nan, "invalid"),
        (math.inf, "invalid"),
        (-math.inf, "invalid"),
        (1.5, "invalid"),
        (-0.1, "invalid"),
        (7, "invalid"),
        (10**400, "invalid"),
        (-(10**5000), "invalid"),
        (Fraction(10**400, 3), "invalid"),
        (Decimal("NaN"), "invalid"),
        (Decimal("sNaN"), "invalid"),
        (Decimal("Infinity"), "invalid"),
        (Decimal("1e400"), "invalid"),
        ("1", "invalid"),
        ("", "invalid"),
        ("0.5", "invalid"),
        (b"1", "invalid"),
        (1 + 0j, "invalid"),
        ([1], "invalid"),
        ((1.0, "why"), "invalid"),
        ({0.5}, "invalid"),
        (object(), "invalid"),
        (len, "invalid"),
        ({"reward": "1"}, "invalid"),
        ({"reward": [1]}, "invalid"),
        ({"score": 7}, "invalid"),
        ({"score": {"score": 1}}, "invalid"),
        ({"reward": 1, "score": 0.5}, "invalid"),
        ({"reward": 0.5, "status": "fine"}, "invalid"),
        ({"reward": 0.5, "status": 3}, "invalid"),
        ({"reward": 0.5, "status": ["ok"]}, "invalid"),
        ({"reward": 0.5, "status": ""}, "invalid"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_scored(value, status):
    assert reading(value) == (None, status)


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "ok"])
def test_a_reward_beside_another_status_is_evidence(status):
    judgment, _ = to_judgment({"reward": 1.0, "status": status, "reason": "r"})
    assert (judgment.reward, judgment.status, judgment.reason) == (None, status, "r")
    assert judgment.evidence == {"reward": 1.0}


def test_a_conflict_keeps_both():
    judgment, _ = to_judgment({"reward": 1, "score": 0.5, "n": 2})
    assert judgment.reason == "reward and score differ"
    assert judgment.evidence == {"n": 2, "reward": 1, "score": 0.5}


def test_every_other_key_is_evidence():
    judgment, markers = to_judgment(
        {"score": 0.5, "reason": "half", "failure_class": "format", "n": 3, "markers": {"a": 1}}
    )
    assert (judgment.reward, judgment.reason) == (0.5, "half")
    assert judgment.evidence == {"failure_class": "format", "n": 3}
    assert markers == {"a": 1.0}


def test_a_reason_that_is_no_text_is_shown():
    assert to_judgment({"reward": 1, "reason": ["a", 1]})[0].reason == "['a', 1]"
    assert to_judgment({"reward": 1, "reason": ""})[0].reason == ""


def test_markers_are_read_like_rewards():
    given_markers = {"yes": True, "half": 0.5, "none": None, "nan": math.nan, "text": "1", 7: 1}
    judgment, markers = to_judgment({"reward": 1, "markers": given_markers})
    assert markers == {"yes": 1.0, "half": 0.5, "none": None, "nan": None, "text": None, "7": 1.0}
    assert set(judgment.evidence["invalid_markers"]) == {"nan", "text"}
    judgment, markers = to_judgment({"reward": 1, "markers": ["a"]})
    assert (judgment.status, markers, judgment.evidence) == ("ok", {}, {"markers": ["a"]})


def test_thresholds():
    assert to_judgment(0.5)[0].threshold == 1.0
    assert to_judgment(0.5, threshold=0.4)[0].threshold == 0.4
    assert to_judgment({"reward": 0.5, "threshold": 0.3}, threshold=0.4)[0].threshold == 0.3
    judgment, _ = to_judgment({"reward": 0.5, "threshold": 7}, threshold=0.4)
    assert (judgment.threshold, judgment.evidence) == (0.4, {"threshold": 7})


def test_a_judgment_is_itself_and_learns_who_judged():
    mine = Judgment(reward=0.5, status="ok")
    assert to_judgment(mine) == (mine, {})
    who = {"id": "verify/x", "version": "1", "kind": "rule"}
    assert to_judgment(mine, scorer=who)[0].scorer == Scorer(**who)
    signed = mine.model_copy(update={"scorer": Scorer(id="other")})
    assert to_judgment(signed, scorer=who)[0] is signed
    assert to_judgment(1, scorer=who)[0].scorer == to_judgment(None, scorer=Scorer(**who))[0].scorer == Scorer(**who)


def test_the_caller_is_told_about_its_own_threshold():
    with pytest.raises(ValueError):
        to_judgment(1, threshold=7)


# --- numpy ---


def test_numpy_scalars():
    np = pytest.importorskip("numpy")
    for value, reward in [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float16(1), 1.0),
        (np.int64(1), 1.0),
        (np.uint8(0), 0.0),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
        ({"reward": np.float32(0.25), "markers": {"m": np.bool_(False)}}, 0.25),
    ]:
        assert reading(value) == (reward, "ok")
    for value in (np.float32("nan"), np.float64("inf"), np.int64(7), np.array([1.0]), np.array([]), np.array(None)):
        assert reading(value)[0] is None
    arrays = {"reward": np.array([1, 2]), "score": np.array([1, 2]), "status": np.array(["ok", "no"])}
    assert reading(arrays) == (None, "invalid")
    assert reading({"reward": 1.0, "score": np.ones(2)})[1] == "invalid"


def test_numpy_evidence():
    np = pytest.importorskip("numpy")
    evidence = to_judgment({"reward": 1, "a": np.int64(3), "b": np.float32("nan"), "c": np.zeros(2), np.int64(1): 2})[
        0
    ].evidence
    assert evidence["a"] == 3 and type(evidence["a"]) is int
    assert evidence["b"] == {"$float": "nan"} and "$repr" in evidence["c"]
    dumps_row(evidence)


# --- evidence ---


class Hostile:
    """Everything that one may ask of it raises."""

    def __repr__(self):
        raise RuntimeError("repr")

    __str__ = __repr__

    def __eq__(self, other):
        raise RuntimeError("eq")

    __hash__ = object.__hash__

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __bool__(self):
        raise RuntimeError("bool")

    def __float__(self):
        raise RuntimeError("float")


class Refusing(collections.abc.Mapping):
    def __getitem__(self, key):
        raise RuntimeError("no")

    def __iter__(self):
        raise RuntimeError("no")

    def __len__(self):
        return 1


class BadRepr:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [
        Hostile(),
        Refusing(),
        {"reward": Hostile()},
        {"reward": 1.0, "score": Hostile()},
        {"reward": None, "status": Hostile()},
        {"reward": None, "reason": Hostile()},
        {"reward": None, "markers": {"a": Hostile()}},
        {"reward": None, "markers": {Hostile(): 1}},
        {"reward": None, "markers": Refusing()},
        {"reward": None, "threshold": Hostile()},
        {"reward": None, Hostile(): 1},
        {"reward": None, "x": [{"y": Hostile()}]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_hostile_values_never_raise(value):
    judgment, markers = to_judgment(value)
    assert judgment.reward is None and judgment.status != "ok"
    dumps_row(judgment.columns())
    dumps_row(markers)


def test_evidence_that_cannot_be_shown_does_not_cost_the_reward():
    judgment, _ = to_judgment({"reward": 0.5, "x": BadRepr(), BadRepr(): {1, "a"}, "y": {BadRepr(), 3}})
    assert (judgment.reward, judgment.status) == (0.5, "ok")
    assert "its repr raised RuntimeError" in json.dumps(judgment.evidence)


def test_nested_evidence():
    evidence = {
        "a": [{"b": math.nan}, (1, math.inf)],
        "big": 10**5000,
        "set": {2, 1},
        "bytes": b"x",
        5: None,
        "ok": True,
    }
    clean = to_judgment({"reward": 1} | evidence)[0].evidence
    assert clean["a"] == [{"b": {"$float": "nan"}}, [1, {"$float": "inf"}]]
    assert clean["set"] == [1, 2] and clean["5"] is None and clean["ok"] is True
    assert clean["bytes"] == {"$repr": "b'x'"} and "bits" in clean["big"]["$repr"]
    assert loads(dumps_row(clean)) == {"schema_version": 1, **clean}


def cyclic():
    twice: dict = {"n": 1}
    twice["a"] = twice["b"] = twice
    chain: list = []
    for _ in range(5000):
        chain = [chain]
    return [twice, {"l": chain}]


@pytest.mark.parametrize("which", range(2))
def test_cycles_and_depth_have_an_end(which):
    judgment, _ = to_judgment({"reward": 1, "x": cyclic()[which]})
    assert judgment.reward == 1.0
    assert "nested deeper than 50" in json.dumps(judgment.evidence)


@pytest.mark.parametrize("depth", [10, 49, 200, 700, 990])
def test_any_depth(depth):
    value: object = 1
    for _ in range(depth):
        value = [value]
    judgment, _ = to_judgment({"reward": 1, "x": value})
    assert judgment.reward == 1.0
    if depth < 50:
        assert judgment.evidence == {"x": value}


def test_surrogate_halves_are_joined_and_lone_ones_kept():
    judgment, _ = to_judgment({"reward": 1, "reason": "\ud83d\ude00", "x\ud83d\ude00": ["\ud83d\ude00", "\ud83d"]})
    assert judgment.reason == "\U0001f600"
    assert judgment.evidence == {"x\U0001f600": ["\U0001f600", "\ud83d"]}
    dumps_row(judgment.columns())


def test_what_is_json_already_is_unchanged():
    value = {"a": [1, 2.5, None, True, "é\u2028"], "b": {"c": []}, "d": -0.0}
    assert jsonable(value) == value and repr(jsonable(value)) == repr(value)


# --- errors and deadlines ---


def test_an_exception_is_its_type_and_text():
    judgment = error_judgment(ValueError("bad\nthing"), Scorer(id="x"), 0.5)
    assert (judgment.reward, judgment.status, judgment.threshold) == (None, "error", 0.5)
    assert judgment.reason == "ValueError: bad thing"
    assert judgment.evidence == {"error_type": "ValueError"} and judgment.scorer == Scorer(id="x")
    assert error_judgment(KeyboardInterrupt()).reason == "KeyboardInterrupt"
    assert error_judgment(KeyError("k")).reason == "KeyError: 'k'"


def test_an_exception_that_hates_to_be_shown():
    class Odd(Exception):
        __repr__ = __str__ = lambda self: 1 / 0

    judgment = error_judgment(Odd())
    assert judgment.reason == "Odd: its text raised ZeroDivisionError"
    long = error_judgment(ValueError("x" * 10**6))
    assert len(long.reason) == 2000
    dumps_row(error_judgment(ValueError("\ud83d\ude00")).columns())
    groups = ExceptionGroup("many", [ValueError("a"), Odd()])
    assert error_judgment(groups).status == "error"


def test_a_deadline():
    judgment = timeout_judgment(1.5, threshold=0.2)
    assert (judgment.reward, judgment.status, judgment.threshold) == (None, "timeout", 0.2)
    assert judgment.reason == "no verdict within 1.5 s" and judgment.evidence == {"deadline_s": 1.5}


# --- properties ---

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.fractions()
    | st.complex_numbers()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=3)
    | st.builds(object)
    | st.builds(Hostile)
    | st.builds(BadRepr)
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["reward", "score", "reason", "markers", "status", "threshold", "x"])
            | st.text(max_size=3)
            | st.integers()
            | st.builds(BadRepr),
            inner | st.sampled_from(["ok", "error", "odd", 0.5]),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(anything)
def test_nothing_raises_and_a_reward_goes_with_ok_alone(value):
    judgment, markers = to_judgment(value)
    assert (judgment.reward is None) == (judgment.status != "ok")
    assert judgment.reward is None or 0.0 <= judgment.reward <= 1.0
    assert all(v is None or 0.0 <= v <= 1.0 for v in markers.values())
    line = dumps_row({**judgment.columns(), "markers": markers})
    assert loads(line)["status"] == judgment.status


@given(st.floats() | st.integers() | st.booleans())
def test_zero_is_only_what_was_returned_as_zero(number):
    reward, _ = reading(number)
    if reward == 0:
        assert -1e-9 <= number <= 1e-9


@given(anything)
def test_jsonable_is_json_and_stays_so(value):
    try:
        clean = jsonable(value)
    except RuntimeError:
        return  # only what a hostile value raises by itself
    assert loads(dumps_row({"x": clean}))["x"] == clean
    assert jsonable(clean) == clean
