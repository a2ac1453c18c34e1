"""The flat row: ids, keys, grouping, passing, removal of private data, rows from columns."""

from __future__ import annotations

import hashlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.rows import (
    KEY_ORDER,
    LENGTH_REASONS,
    SCHEMA_VERSION,
    STATUSES,
    content_id,
    group_by_task,
    make_rows,
    ordered,
    passed,
    strip_privileged,
    task_key,
    truncated,
)

# --- ids ---

KNOWN_IDS = [
    # prefix, parts, the canonical text, and its hash as written down once
    ("task", ("What is 17*3?",), b'["What is 17*3?"]', "task_9fe940407c9c124858be"),
    ("task", ("caf\u00e9 \U0001f917",), b'["caf\\u00e9 \\ud83e\\udd17"]', "task_6142a88471e2c84cd833"),
    (
        "rollout",
        ("t", 0, {"b": [1.5, None], "a": True}, "x"),
        b'["t",0,{"a":true,"b":[1.5,null]},"x"]',
        "rollout_b4cb49e13431c17bbadb",
    ),
    ("x", (1,), b"[1]", "x_080a9ed428559ef60266"),
    ("x", (1.0,), b"[1.0]", "x_c2272c0a862f11de35da"),
    ("x", (1e22, 5e-324, 0.1 + 0.2, -0.0), b"[1e+22,5e-324,0.30000000000000004,-0.0]", "x_c463d48e7dc00fffc11c"),
    ("x", (2**70,), b"[1180591620717411303424]", "x_db27bb6b343e2cc634c5"),
    ("x", ("\ud83d\u2028",), b'["\\ud83d\\u2028"]', "x_021ed156b9396f677341"),
    ("x", (), b"[]", "x_4f53cda18c2baa0c0354"),
]


def sha(prefix: str, canonical: bytes) -> str:
    return f"{prefix}_{hashlib.sha256(canonical).hexdigest()[:20]}"


@pytest.mark.parametrize(("prefix", "parts", "canonical", "literal"), KNOWN_IDS)
def test_ids_are_hashes_of_canonical_json(prefix, parts, canonical, literal):
    assert content_id(prefix, *parts) == sha(prefix, canonical) == literal


def test_ids_do_not_depend_on_key_order_or_on_lists_against_tuples():
    a = {"x": 1, "y": {"p": [1, 2], "q": None}}
    b = {"y": {"q": None, "p": (1, 2)}, "x": 1}
    assert content_id("t", a) == content_id("t", b)
    assert content_id("t", 1) != content_id("t", 1.0) != content_id("t", True)
    assert content_id("t", "a", "b") != content_id("t", "ab") != content_id("t", ["a", "b"])


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), min_size=2, max_size=5), st.randoms())
def test_ids_are_stable_under_key_order(mapping, random):
    shuffled = list(mapping.items())
    random.shuffle(shuffled)
    assert content_id("t", dict(shuffled)) == content_id("t", mapping)


@pytest.mark.parametrize("part", [float("nan"), float("inf"), {1, 2}, object(), b"x", {1: 2, "a": 3}, {(1,): 2}])
def test_ids_need_json(part):
    with pytest.raises(RowError, match="task id"):
        content_id("task", part)


IDS_PROGRAM = f"""
import json
from whileai_kernel.rows import content_id
cases = {[(prefix, parts) for prefix, parts, _, _ in KNOWN_IDS]!r}
print(json.dumps([content_id(prefix, *parts) for prefix, parts in cases]))
"""


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_ids_do_not_depend_on_the_hash_seed(child, seed):
    assert child(IDS_PROGRAM, PYTHONHASHSEED=seed).answer == [literal for *_, literal in KNOWN_IDS]


def test_ids_do_not_depend_on_the_version_of_python(other_child):
    assert other_child(IDS_PROGRAM, PYTHONHASHSEED="7").answer == [literal for *_, literal in KNOWN_IDS]


# --- keys and grouping ---


def test_ordered_puts_known_keys_first_and_keeps_the_rest_in_order():
    row = {"zeta": 1, "reward": 1.0, "alpha": 2, "task_id": "t", "schema_version": 1}
    assert list(ordered(row)) == ["schema_version", "task_id", "reward", "zeta", "alpha"]
    assert ordered(row) == row and ordered(row) is not row


def test_key_order_names_each_key_once():
    assert len(set(KEY_ORDER)) == len(KEY_ORDER)
    assert {"task_id", "prompt", "final_text", "reward", "markers"} <= set(KEY_ORDER)


def test_task_key_prefers_the_id():
    assert task_key({"task_id": "t", "prompt": "p"}) == "t"
    assert task_key({"task_id": 7}) == "7"
    for absent in ({}, {"task_id": None}, {"task_id": ""}):
        assert task_key({**absent, "prompt": "p"}) == content_id("task", "p")
    messages = [{"role": "user", "content": "p"}]
    assert task_key({"prompt": messages}) == content_id("task", messages)


@pytest.mark.parametrize(
    "row", [{}, {"prompt": ""}, {"prompt": None}, {"task_id": True}, {"task_id": 1.5}, {"task_id": ["t"]}]
)
def test_a_row_without_a_task_is_refused(row):
    with pytest.raises(RowError) as caught:
        task_key(row)
    assert caught.value.field == "task_id" and caught.value.fix


def test_group_by_task_keeps_order_and_objects():
    rows = [{"task_id": "b", "n": 0}, {"prompt": "p", "n": 1}, {"task_id": "b", "n": 2}, {"task_id": 3}]
    groups = group_by_task(iter(rows))
    assert list(groups) == ["b", content_id("task", "p"), "3"]
    assert groups["b"][1] is rows[2]


def test_group_by_task_names_the_row():
    with pytest.raises(RowError) as caught:
        group_by_task([{"task_id": "a"}, {"x": 1}])
    assert (caught.value.row, caught.value.field) == (1, "task_id")
    assert str(caught.value).startswith("row 1 field task_id: ")


# --- passing ---


@pytest.mark.parametrize(
    ("row", "threshold", "expected"),
    [
        ({"reward": 1.0}, None, True),
        ({"reward": 0.999}, None, False),
        ({"reward": 1 - 1e-10}, None, True),
        ({"reward": sum([0.1] * 10)}, None, True),
        ({"reward": 0.5, "threshold": 0.5}, None, True),
        ({"reward": 0.5, "threshold": 0.5}, 0.6, False),
        ({"reward": 0.0, "threshold": 0.0}, None, True),
        ({"reward": 0.5, "threshold": 0.9}, 0.0, True),
        ({"reward": 0.5, "threshold": None}, None, False),
        ({"reward": None, "threshold": 0.0}, None, None),
        ({}, None, None),
    ],
)
def test_passed(row, threshold, expected):
    assert passed(row, threshold) is expected


def test_two_half_credits_are_no_pass():
    assert [passed({"reward": r}) for r in (0.6, 0.6, 0.75)] == [False] * 3
    assert [passed({"reward": r}, tolerance=1e-6) for r in (1.0, 0.9999999)] == [True, True]


@pytest.mark.parametrize("finish", [*LENGTH_REASONS])
def test_a_length_limit_is_a_cut(finish):
    assert truncated({"finish_reason": finish, "final_text": "The result is 12."}) is True


@pytest.mark.parametrize("text", ["def f():\n    return 1\n```", "Regards,\nKim"])
def test_the_text_never_decides_about_a_cut(text):
    assert truncated({"finish_reason": "stop", "final_text": text}) is False
    assert truncated({"finish_reason": None, "final_text": text}) is None
    assert truncated({"final_text": text}) is None


def test_the_outcome_says_cut_too():
    assert truncated({"outcome": "truncated"}) is True
    assert truncated({"outcome": "completed"}) is None


# --- private data ---


def test_privileged_is_removed_at_any_depth():
    value = {"a": [{"privileged": 1, "b": ({"privileged": {"x": 1}, "c": 2},)}], "privileged": {"reference": "4"}}
    before = json.dumps(value)
    assert strip_privileged(value) == {"a": [{"b": [{"c": 2}]}]}
    assert json.dumps(value) == before


json_like = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["privileged", "a", "b", "reference"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_like)
def test_no_key_privileged_is_left(value):
    clean = strip_privileged(value)
    assert '"privileged":' not in json.dumps(clean)
    assert strip_privileged(clean) == clean


# --- rows from columns ---


def test_make_rows_is_the_documented_row():
    rows = make_rows(
        ["2+2?", "2+2?", "3+3?"],
        ["4", "5", "6"],
        [1, 0.25, None],
        references=["4", "4", None],
        markers=[{"concise": 1}, None, {"concise": None}],
        finish_reasons=["stop", "length", None],
        system_prompt="Count.",
        threshold=0.5,
    )
    first = rows[0]
    assert first == {
        "schema_version": SCHEMA_VERSION,
        "task_id": sha("task", b'["2+2?"]'),
        "rollout_id": first["rollout_id"],
        "index": 0,
        "prompt": "2+2?",
        "final_text": "4",
        "reward": 1.0,
        "status": "ok",
        "markers": {"concise": 1.0},
        "threshold": 0.5,
        "system_prompt": "Count.",
        "messages": [
            {"role": "system", "content": "Count."},
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "4"},
        ],
        "finish_reason": "stop",
        "outcome": "completed",
        "privileged": {"reference": "4"},
    }
    assert [r["index"] for r in rows] == [0, 1, 0]
    assert [r["reward"] for r in rows] == [1.0, 0.25, None]
    assert [r["status"] for r in rows] == ["ok", "ok", "missing"]
    assert [r["outcome"] for r in rows] == ["completed", "truncated", "completed"]
    assert "privileged" not in rows[2] and rows[2]["markers"] == {"concise": None}
    assert len({r["rollout_id"] for r in rows}) == 3
    assert all(list(r) == [k for k in KEY_ORDER if k in r] for r in rows)
    assert all(r["status"] in STATUSES for r in rows)


def test_make_rows_takes_iterators_and_messages():
    prompt = [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}]
    reply = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "tool_call_id": "a", "content": "r"},
        {"role": "assistant", "content": "done"},
    ]
    (row,) = make_rows(
        iter([prompt]), iter([reply]), iter([True]), task_ids=itertools.count(5) and [5], system_prompt="X"
    )
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert row["messages"][0]["content"] == "S"
    assert (row["prompt"], row["final_text"], row["task_id"], row["reward"]) == ("hi", "done", "5", 1.0)


def test_make_rows_reads_whole_verdicts():
    verdict = {"reward": 0.5, "reason": "half", "markers": {"a": 1}, "n": 3}
    (row,) = make_rows(["p"], ["c"], [verdict], markers=[{"b": 0}])
    assert (row["reward"], row["reason"], row["evidence"]) == (0.5, "half", {"n": 3})
    assert row["markers"] == {"a": 1.0, "b": 0.0}


def test_make_rows_without_rewards_is_not_scored():
    assert [(r["reward"], r["status"]) for r in make_rows(["p"], ["c"])] == [(None, "missing")]


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({"completions": ["a"]}, ParameterError, "completions"),
        ({"reward": [1]}, ParameterError, "reward"),
        ({"references": "ab"}, ParameterError, "references"),
        ({"prompts": "ab"}, ParameterError, "prompts"),
        ({"prompts": {"a": 1, "b": 2}}, ParameterError, "prompts"),
        ({"markers": [{"a": 7}, None]}, RowError, "a"),
        ({"markers": [None, {"a": float("nan")}]}, RowError, "markers"),
        ({"markers": [None, ["a"]]}, RowError, "markers"),
        ({"prompts": ["a", 7]}, RowError, "prompts"),
        ({"completions": [None, "b"]}, RowError, "completions"),
        ({"completions": ["a", [{"role": "robot", "content": "x"}]]}, RowError, "robot"),
    ],
)
def test_make_rows_says_what_is_wrong(arguments, error, word):
    with pytest.raises(error, match=word):
        make_rows(**{"prompts": ["a", "b"], "completions": ["x", "y"], **arguments})
