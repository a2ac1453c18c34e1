"""The four typed objects and their projection to the flat row and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from whileai_kernel.errors import RowError
from whileai_kernel.models import Judgment, Marker, Rollout, Scorer, Task, from_row, to_row
from whileai_kernel.rowio import dumps_row, read_rows
from whileai_kernel.rows import KEY_ORDER, OUTCOMES, STATUSES, content_id

MODELS = (Task, Rollout, Judgment)


def test_the_keys_of_the_row_are_the_fields_of_the_models():
    fields = [name for model in MODELS for name in model.model_fields]
    assert len(set(fields)) == len(fields)
    assert set(KEY_ORDER) == {*fields, "schema_version", "markers", "marker_evidence", "judgments"}


def test_objects_are_frozen_and_know_their_fields():
    for thing in (Task(prompt="p"), Rollout(), Judgment(), Marker(name="m"), Scorer(id="s")):
        with pytest.raises(ValidationError):
            next(iter(type(thing).model_fields))
            thing.status = "x"
    for model, values in (
        (Task, {"prompt": "p"}),
        (Rollout, {}),
        (Judgment, {}),
        (Marker, {"name": "m"}),
        (Scorer, {"id": "s"}),
    ):
        with pytest.raises(ValidationError, match="typo"):
            model(**values, typo=1)


def test_the_smallest_row():
    row = to_row(Task(prompt="2+2?"), Rollout())
    assert row == {
        "schema_version": 1,
        "task_id": content_id("task", "2+2?"),
        "rollout_id": content_id("rollout", content_id("task", "2+2?"), 0, {}, [], None),
        "index": 0,
        "prompt": "2+2?",
        "final_text": None,
        "reward": None,
        "status": "missing",
        "markers": {},
        "threshold": 1.0,
        "outcome": "completed",
    }
    assert list(row) == [k for k in KEY_ORDER if k in row]


def test_final_text_is_read_from_the_messages_unless_it_is_given():
    messages = ({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"})
    assert Rollout(messages=messages).final_text == "a"
    assert Rollout(messages=messages, final_text="b").final_text == "b"
    assert Rollout(messages=messages, final_text=None).final_text is None
    row = {"prompt": "q", "messages": list(messages), "final_text": None}
    assert from_row(row).rollout.final_text is None
    assert from_row({"prompt": "q", "messages": list(messages)}).rollout.final_text == "a"


@pytest.mark.parametrize("status", STATUSES)
def test_a_reward_goes_with_ok_and_with_nothing_else(status):
    reward = 0.5 if status == "ok" else None
    assert Judgment(reward=reward, status=status).status == status
    with pytest.raises(ValidationError):
        Judgment(reward=None if status == "ok" else 0.0, status=status)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"reward": 1.5}, "reward"),
        ({"reward": -0.1}, "reward"),
        ({"reward": float("nan")}, "reward"),
        ({"reward": True}, "reward"),
        ({"reward": "0.5"}, "reward"),
        ({"reward": 0.5, "threshold": "1"}, "threshold"),
        ({"reward": 0.5, "threshold": False}, "threshold"),
        ({"index": True}, "index"),
        ({"index": "2"}, "index"),
        ({"index": -1}, "index"),
        ({"status": "great"}, "status"),
        ({"outcome": "won"}, "outcome"),
        ({"prompt": ["x"]}, "prompt"),
        ({"tools": "x"}, "tools"),
        ({"scorer": "me"}, "scorer"),
        ({"scorer": {"id": "x", "kind": "oracle"}}, "scorer.kind"),
        ({"markers": [1]}, "markers"),
        ({"markers": {"a": 2.0}}, "markers.value"),
        ({"markers": {"a": True}}, "markers.value"),
        ({"markers": {"": 1.0}}, "markers.name"),
        ({"markers": {}, "marker_evidence": {"a": 1}}, "marker_evidence"),
        ({"marker_evidence": ["a"]}, "marker_evidence"),
        ({"judgments": {"a": 1}}, "judgments"),
        ({"judgments": [3]}, "judgments"),
        ({"judgments": [{}, {"reward": 2.0, "status": "ok"}]}, "judgments[1].reward"),
        ({"judgments": [{"reward": 1.0, "status": "ok", "annotator": "kim"}]}, "judgments[0].annotator"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ],
)
def test_a_wrong_field_is_named(row, field):
    with pytest.raises(RowError) as caught:
        from_row({"prompt": "p", **row})
    assert caught.value.field == field


def test_an_old_row_without_status_gets_one():
    assert from_row({"prompt": "p", "reward": 0.25}).judgment.status == "ok"
    assert from_row({"prompt": "p"}).judgment.status == "missing"


def test_extra_never_shadows_a_key():
    with pytest.raises(RowError, match="shadows"):
        to_row(Task(prompt="p"), Rollout(), extra={"reward": 1.0})
    assert to_row(Task(prompt="p"), Rollout(), extra={"mine": [1]})["mine"] == [1]


def test_marker_names_are_unique():
    with pytest.raises(RowError, match="repeat"):
        to_row(Task(prompt="p"), Rollout(), markers=[Marker(name="a"), Marker(name="a", value=1.0)])


# --- properties ---

texts = st.text(max_size=8)
numbers = st.floats(0, 1) | st.integers(0, 1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
scorers = st.builds(
    Scorer,
    id=texts,
    version=st.none() | texts,
    kind=st.sampled_from(["rule", "judge", "reward_model", "human"]),
    params=st.none() | objects,
)


@st.composite
def judgments(draw):
    status = draw(st.sampled_from(STATUSES))
    return Judgment(
        reward=draw(numbers) if status == "ok" else None,
        status=status,
        reason=draw(st.none() | texts),
        scorer=draw(st.none() | scorers),
        evidence=draw(objects),
        threshold=draw(numbers),
    )


messages = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "user", "assistant"]),
        texts,
    ),
    max_size=4,
).map(tuple)
tasks = st.builds(
    Task,
    task_id=texts,
    prompt=texts,
    system_prompt=st.none() | texts,
    tools=st.lists(objects, max_size=2).map(tuple),
    axes=objects,
    world=objects,
    privileged=objects,
    split=st.none() | texts,
    lineage=objects,
)
rollouts = st.builds(
    Rollout,
    rollout_id=texts,
    index=st.integers(0, 10**6),
    policy=objects,
    messages=messages,
    final_text=st.none() | texts,
    finish_reason=st.none() | texts,
    outcome=st.sampled_from(OUTCOMES),
    error=st.none() | objects,
    usage=objects,
    logprobs=values,
    faults_fired=st.lists(values, max_size=2).map(tuple),
    seeded=st.none() | st.lists(texts, max_size=2).map(tuple),
)
marker_lists = st.dictionaries(
    st.text(min_size=1, max_size=5), st.tuples(st.none() | numbers, st.none() | values), max_size=3
).map(lambda d: [Marker(name=k, value=v, evidence=e) for k, (v, e) in d.items()])
extras = st.dictionaries(texts.filter(lambda k: k not in KEY_ORDER), values, max_size=3)


@given(tasks, rollouts, st.none() | judgments(), marker_lists, st.lists(judgments(), max_size=2), extras)
def test_a_row_and_its_parts_are_one_thing(task, rollout, judgment, markers, others, extra):
    row = to_row(task, rollout, judgment, markers, judgments=others, extra=extra)
    parts = from_row(row)
    again = to_row(
        parts.task, parts.rollout, parts.judgment, parts.markers, judgments=parts.judgments, extra=parts.extra
    )
    assert dumps_row(again) == dumps_row(row)
    assert parts.task == task
    assert parts.judgment == (judgment or Judgment())
    assert (parts.extra, parts.markers, parts.judgments) == (extra, tuple(markers), tuple(others))
    (read,) = read_rows([dumps_row(row)])
    assert dumps_row(read) == dumps_row(row)
    assert from_row(json.loads(json.dumps(row))) == parts
