"""The one message model: what comes in, how calls find their results, what is trained, what is said to be wrong."""

from __future__ import annotations

import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.messages import (
    check_messages,
    final_text_of,
    normalise_messages,
    parse_arguments,
    split_reasoning,
    spoken_text,
    steps,
    text_of,
    tool_calls,
    trained_turns,
    validate_messages,
    with_unique_ids,
)


def call(id_, k=1, name="get", **extra):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps({"k": k})}, **extra}


def asks(*calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id_, content):
    return {"role": "tool", "content": content, **({} if id_ is None else {"tool_call_id": id_})}


USER, DONE = {"role": "user", "content": "q"}, {"role": "assistant", "content": "ok"}


def paired(messages):
    return [(c.name, c.arguments, c.result) for c in tool_calls(messages)]


def codes(messages, **options):
    return [p.code for p in validate_messages(messages, **options)]


# --- text ---


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Red", "Red"),
        (None, ""),
        ([], ""),
        (
            [
                {"type": "text", "text": "Red"},
                {"type": "image_url", "image_url": {"url": "x"}},
                {"type": "text", "text": " car"},
            ],
            "Red car",
        ),
        ([{"type": "input_text", "text": "x"}], "x"),
        ([{"type": "output_text", "text": "x"}, "y"], "xy"),
        (["a", "b"], "ab"),
        ({"type": "text", "text": "one part"}, "one part"),
        ([{"type": "text", "content": "as telemetry writes it"}], "as telemetry writes it"),
        ([{"type": "text", "text": {"value": "as assistants write it", "annotations": []}}], "as assistants write it"),
        ([{"text": "no type"}], "no type"),
        ([{"type": "text", "text": None}], ""),
        ({"status": "shipped", "n": 1}, '{"status":"shipped","n":1}'),
        ([{"id": 1}, {"id": 2}], '[{"id":1},{"id":2}]'),
        ([1, 2], "[1,2]"),
        ({}, "{}"),
    ],
)
def test_text_of(content, text):
    assert text_of(content) == text


@pytest.mark.parametrize("content", [7, 1.5, True, b"x", object(), {1, 2}, {"a": object()}, [math.nan]])
def test_what_is_no_content_is_refused(content):
    with pytest.raises(RowError):
        text_of(content)


# --- ingestion ---


def test_anthropic_blocks_become_calls_and_tool_messages():
    messages = [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "first"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"k": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "ok"}],
                    "is_error": False,
                }
            ],
        },
    ]
    before = copy.deepcopy(messages)
    assistant, tool = normalise_messages(messages)
    assert messages == before
    assert (assistant["content"], assistant["reasoning_content"]) == ("Looking.", "first")
    assert [
        (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in assistant["tool_calls"]
    ] == [("t1", "f", {"k": 1})]
    assert tool == {"role": "tool", "tool_call_id": "t1", "content": "ok"}


def test_a_person_who_speaks_beside_results_speaks_after_them():
    content = [
        {"type": "text", "text": "and now?"},
        {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
        {"type": "tool_result", "tool_use_id": "a", "content": {"n": 1}},
    ]
    messages = normalise_messages([asks(call("a"), call("b", 2)), {"role": "user", "content": content}])
    assert [m["role"] for m in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[1] == {"role": "tool", "tool_call_id": "b", "content": "two", "is_error": True}
    assert messages[3]["content"] == "and now?"
    assert paired(messages) == [("get", {"k": 1}, '{"n":1}'), ("get", {"k": 2}, "two")]


def test_images_are_kept_beside_the_text():
    part = {"type": "image_url", "image_url": {"url": "x"}}
    (message,) = normalise_messages([{"role": "user", "content": [{"type": "text", "text": "what is"}, part]}])
    assert message["content"] == "what is" and message["content_parts"][1] == part
    (message,) = normalise_messages([{"role": "user", "content": part}])
    assert message["content_parts"] == [part]
    tool = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [part]}]}
    assert normalise_messages([tool])[0]["content_parts"] == [part]


def test_a_tool_result_given_as_an_object_is_not_lost():
    (message,) = normalise_messages([result("a", {"status": "shipped"})])
    assert json.loads(message["content"]) == {"status": "shipped"}
    assert "content_parts" not in message


def test_flat_and_legacy_calls_become_nested_ones():
    flat = {"role": "assistant", "tool_calls": [{"id": "a", "name": "get", "args": {"k": 1}, "type": "tool_call"}]}
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "get", "arguments": '{"k": 2}'}}
    answer = {"role": "function", "name": "get", "content": "two"}
    messages = normalise_messages([flat, result("a", "one"), legacy, answer])
    assert paired(messages) == [("get", {"k": 1}, "one"), ("get", {"k": 2}, "two")]
    assert all(c["type"] == "function" for m in messages for c in m.get("tool_calls", []))
    assert messages[2]["content"] == "" and "function_call" not in messages[2]


def test_a_call_written_as_part_and_as_call_is_one_call():
    part = {"type": "tool_use", "id": "a", "name": "get", "input": {"k": 1}}
    (message,) = normalise_messages([asks(call("a"), content=[{"type": "text", "text": "x"}, part])])
    assert [c["id"] for c in message["tool_calls"]] == ["a"]


def test_extra_keys_of_messages_and_calls_survive():
    message = {"role": "assistant", "content": "x", "name": "bob", "weight": 0, "tool_calls": [call("a", index=3)]}
    message["tool_calls"][0]["function"]["strict"] = True
    assert normalise_messages([message]) == [message]


def test_ids_are_text():
    messages = normalise_messages([asks(call(7)), result(7, "seven")])
    assert (messages[0]["tool_calls"][0]["id"], messages[1]["tool_call_id"]) == ("7", "7")
    assert paired(messages) == [("get", {"k": 1}, "seven")]


def test_developer_messages_stay():
    messages = [{"role": "developer", "content": "Answer in Danish."}, USER, DONE]
    assert normalise_messages(messages) == messages
    assert codes(messages) == []


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("hi", "messages[1]"),
        (None, "messages[1]"),
        ({"content": "x"}, "messages[1].role"),
        ({"role": "robot", "content": "x"}, "messages[1].role"),
        ({"role": ["user"], "content": "x"}, "messages[1].role"),
        ({"role": "user", "content": 7}, "messages[1].content"),
        ({"role": "assistant", "tool_calls": ["x"]}, "messages[1]"),
        ({"role": "assistant", "tool_calls": {"id": "a"}}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": '[{"id": "a"}]'}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"x": {1, 2}}}]}, "messages[1]"),
    ],
)
def test_what_cannot_be_read_is_named(message, field):
    with pytest.raises(RowError) as caught:
        normalise_messages([USER, message])
    assert caught.value.field == field


def test_the_place_is_the_place_in_the_input():
    blocks = [{"type": "tool_result", "tool_use_id": str(i), "content": "x"} for i in range(3)]
    with pytest.raises(RowError) as caught:
        normalise_messages([{"role": "user", "content": blocks}, {"role": "robot"}])
    assert caught.value.field == "messages[1].role"


def test_check_messages_takes_what_normalise_gives():
    check_messages(normalise_messages([USER, asks(call("a")), result("a", [{"type": "text", "text": "x"}]), DONE]))
    with pytest.raises(RowError, match="role"):
        check_messages([USER, {"role": "model", "content": ""}])


# --- arguments ---


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ({"city": "Oslo"}, {"city": "Oslo"}),
        ('"{\\"city\\": \\"Oslo\\"}"', {"city": "Oslo"}),
        ("", {}),
        ("  ", {}),
        (None, {}),
        ("{city: Oslo", None),
        ("[1]", None),
        ("7", None),
        (7, None),
        ('{"x": NaN}', None),
        ('{"x": 1e999}', None),
        ("[" * 100_000, None),
        (json.dumps(json.dumps(json.dumps({"a": 1}))), None),
    ],
)
def test_arguments_are_an_object_or_nothing(text, decoded):
    assert parse_arguments(text) == decoded


def test_argument_objects_become_text_once():
    (message,) = normalise_messages([asks({"id": "a", "function": {"name": "lookup", "arguments": {"city": "Oslo"}}})])
    text = message["tool_calls"][0]["function"]["arguments"]
    assert isinstance(text, str) and json.loads(text) == {"city": "Oslo"}


def test_broken_arguments_are_kept_and_flagged():
    broken = {"id": "a", "function": {"name": "lookup", "arguments": "{city: Oslo"}}
    messages = normalise_messages([asks(broken), result("a", "x")])
    (record,) = tool_calls(messages)
    assert (record.arguments_text, record.arguments) == ("{city: Oslo", None)
    assert codes(messages) == ["arguments_not_json"]


# --- pairing ---


def test_results_are_paired_by_id_and_not_by_position():
    messages = [asks(call("a", 1), call("b", 2)), result("b", "two"), result("a", "one")]
    assert paired(messages) == [("get", {"k": 1}, "one"), ("get", {"k": 2}, "two")]
    assert [c.result_turn for c in tool_calls(messages)] == [2, 1]
    assert codes(messages) == []


def test_results_without_ids_are_never_guessed():
    messages = [asks(call("a", 1), call("b", 2)), result(None, "two"), result(None, "one")]
    assert [c.result for c in tool_calls(messages)] == [None, None]
    assert codes(messages) == ["ambiguous_result"] * 2 + ["result_without_call"] * 2


@pytest.mark.parametrize(("call_id", "result_id"), [("a", None), ("", None), ("", "z")])
def test_one_call_and_one_result_are_paired(call_id, result_id):
    messages = [asks(call(call_id)), result(result_id, "one")]
    assert paired(messages) == [("get", {"k": 1}, "one")]
    assert codes(messages) == []


def test_the_last_open_call_takes_the_last_nameless_result():
    messages = [asks(call("a", 1), call("b", 2)), result("b", "two"), result(None, "one")]
    assert [c.result for c in tool_calls(messages)] == ["one", "two"]


def test_a_result_with_another_id_is_not_taken():
    messages = [asks(call("a")), result("z", "late")]
    assert [c.result for c in tool_calls(messages)] == [None]
    assert codes(messages) == ["call_without_result", "result_without_call"]


def test_ids_may_repeat_across_turns():
    messages = [asks(call("call_0", 1)), result("call_0", "one"), asks(call("call_0", 2)), result("call_0", "two")]
    assert paired(messages) == [("get", {"k": 1}, "one"), ("get", {"k": 2}, "two")]
    assert codes(messages) == []
    ids = [c["id"] for m in with_unique_ids(messages) for c in m.get("tool_calls", [])]
    assert ids == ["call_0", "call_2_0"]


def test_one_tool_called_twice_is_two_calls():
    messages = [asks(call("x", 1), call("y", 2))]
    assert [(c.id, c.arguments) for c in tool_calls(messages)] == [("x", {"k": 1}), ("y", {"k": 2})]


def test_two_calls_with_one_id_in_a_turn_are_flagged():
    messages = [asks(call("x", 1), call("x", 2)), result("x", "?"), result("x", "!")]
    assert [c.result for c in tool_calls(messages)] == [None, None]
    assert set(codes(messages)) == {"duplicate_call_id", "result_without_call"}


# --- what is wrong ---


def test_a_call_without_result():
    messages = [USER, asks(call("a")), {"role": "user", "content": "?"}]
    assert [str(p) for p in validate_messages(messages)] == ["messages[1]: call a has no result"]


def test_a_result_without_call():
    messages = [result("z", "late"), DONE]
    assert [str(p) for p in validate_messages(messages)] == ["messages[0]: result z has no call"]


def test_a_result_after_somebody_else_spoke_is_not_the_calls():
    messages = [asks(call("a")), USER, result("a", "late"), DONE]
    assert codes(messages) == ["call_without_result", "result_without_call"]


def test_ending_on_a_call_is_allowed_only_when_the_row_says_so():
    messages = [USER, asks(call("a"))]
    assert codes(messages) == ["call_without_result"]
    assert codes(messages, ends_on_call=True) == []
    assert codes([*messages, USER], ends_on_call=True) == ["call_without_result"]
    assert codes([*messages, result("z", "x")], ends_on_call=True) == ["call_without_result", "result_without_call"]


def test_a_conversation_needs_the_assistant():
    assert codes([USER]) == codes([]) == ["no_assistant"]


def test_a_call_needs_a_name():
    assert codes([asks({"id": "a", "function": {"arguments": "{}"}}), result("a", "x")]) == ["call_without_name"]


# --- reasoning ---


@pytest.mark.parametrize(
    ("reply", "reasoning", "spoken"),
    [
        ("<think>plan</think>\n\nDone.", "plan", "Done."),
        ("Done.", None, "Done."),
        ("", None, ""),
        ("plan</think>Done.", "plan", "Done."),
        ("<think>maybe \\boxed{4} but let me check the", "maybe \\boxed{4} but let me check the", None),
        ("<think>a</think>b<think>c</think>d", "ab<think>c", "d"),
        ("<think>a</think>\n<think>b", "a\nb", None),
        ("  <thinking>a</thinking> b", "a", "b"),
        ("<REASONING>a</REASONING>b", "a", "b"),
        ("The tag <think> opens a block.", None, "The tag <think> opens a block."),
        ("x\n<think>a</think>b", "x\na", "b"),
        ("<think></think>b", "", "b"),
    ],
)
def test_only_what_follows_the_last_block_was_said(reply, reasoning, spoken):
    got = split_reasoning(reply)
    assert (" ".join((got[0] or "").split()), got[1]) == (" ".join((reasoning or "").split()), spoken)
    assert (got[0] is None) == (reasoning is None)
    assert spoken_text(reply) == (spoken or "")


def test_nothing_is_no_speech():
    assert spoken_text(None) == ""


# --- views ---


def test_steps_are_a_view_in_order():
    messages = [
        USER,
        asks(call("a"), content="Looking."),
        result("a", "one"),
        asks(call("b", 2)),
        result("b", "two"),
        DONE,
    ]
    assert steps(messages) == [
        {"type": "message", "role": "user", "text": "q"},
        {"type": "message", "role": "assistant", "text": "Looking."},
        {"type": "tool_call", "name": "get", "arguments": {"k": 1}, "result": "one"},
        {"type": "tool_call", "name": "get", "arguments": {"k": 2}, "result": "two"},
        {"type": "message", "role": "assistant", "text": "ok"},
    ]


def test_final_text():
    assert final_text_of([USER, DONE, asks(call("a")), result("a", "x")]) == ""
    assert final_text_of([USER, DONE, {"role": "user", "content": "bye"}]) == "ok"
    assert final_text_of([USER]) is None


def test_trained_turns():
    messages = [USER, asks(call("a")), result("a", "x"), DONE, USER, DONE]
    assert trained_turns(messages) == [1, 3, 5]
    assert trained_turns(messages, "last") == trained_turns(messages, "final") == [5]
    assert trained_turns(messages[:3], "last") == [1]
    assert trained_turns(messages[:3], "final") == []
    assert trained_turns(messages, [5, 1, 1]) == [1, 5]
    assert trained_turns([USER], "last") == []


@pytest.mark.parametrize("train", [[0], [1, 2], [-1], [99]])
def test_only_assistant_turns_are_trained(train):
    with pytest.raises(ParameterError, match="not the assistant's"):
        trained_turns([USER, DONE, USER], train)


def test_an_unknown_word_for_training_names_the_nearest():
    with pytest.raises(ParameterError, match="did you mean 'last'"):
        trained_turns([USER, DONE], "lst")


# --- properties ---

ids = st.sampled_from(["", "a", "b", "call_0", "call_1_0", "call_1_0_", "call_3_0"])
texts = st.text(max_size=5)
calls = st.builds(lambda i, k: call(i, k), ids, st.integers(0, 3))
tool_messages = st.builds(result, st.none() | ids, texts)
parts = st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, texts)
    | st.builds(lambda t: {"type": "thinking", "thinking": t}, texts)
    | st.builds(lambda i, k: {"type": "tool_use", "id": i, "name": "f", "input": {"k": k}}, ids, st.integers(0, 3))
    | st.builds(lambda i, c: {"type": "tool_result", "tool_use_id": i, "content": c}, ids, texts | st.just({"n": 1}))
    | st.just({"type": "image_url", "image_url": {"url": "x"}})
    | st.just({"row": 1})
    | texts,
    max_size=4,
)
conversations = st.lists(
    st.builds(lambda c, t: asks(*c, content=t), st.lists(calls, max_size=3), texts)
    | tool_messages
    | st.builds(lambda c: {"role": "user", "content": c}, texts | st.none()),
    max_size=8,
)
raw_conversations = st.lists(
    st.builds(
        lambda r, c: {"role": r, "content": c},
        st.sampled_from(["user", "assistant", "system", "tool", "developer"]),
        parts | texts | st.none(),
    )
    | st.builds(lambda c, p: asks(*c, content=p), st.lists(calls, max_size=2), parts)
    | st.builds(lambda k: {"role": "assistant", "function_call": {"name": "f", "arguments": {"k": k}}}, st.integers())
    | tool_messages,
    max_size=6,
)


@given(raw_conversations)
def test_normalising_is_idempotent_and_changes_no_input(messages):
    before = copy.deepcopy(messages)
    once = normalise_messages(messages)
    assert messages == before
    assert normalise_messages(once) == once
    check_messages(once)


@given(raw_conversations)
def test_no_text_is_lost(messages):
    everything = json.dumps(normalise_messages(messages))
    for message in messages:
        for part in message.get("content") if isinstance(message.get("content"), list) else []:
            text = part if isinstance(part, str) else part.get("text") or part.get("thinking") or part.get("content")
            if isinstance(text, str) and text.isascii() and text.isalnum():
                assert text in everything


@given(conversations)
def test_no_result_is_used_twice(messages):
    used = [c.result_turn for c in tool_calls(messages) if c.result_turn is not None]
    assert len(used) == len(set(used))
    for record in tool_calls(messages):
        if record.result_turn is not None:
            answer = messages[record.result_turn]
            assert answer["role"] == "tool" and record.turn < record.result_turn
            assert all(m["role"] == "tool" for m in messages[record.turn + 1 : record.result_turn])
            theirs = answer.get("tool_call_id") or ""
            assert not theirs or not record.id or theirs == record.id


@given(conversations)
def test_unique_ids_are_unique_and_keep_the_pairs(messages):
    before = copy.deepcopy(messages)
    renamed = with_unique_ids(messages)
    assert messages == before
    new = [c["id"] for m in renamed for c in m.get("tool_calls", [])]
    assert all(new) and len(set(new)) == len(new)
    old_pairs = [(c.turn, c.position, c.result_turn) for c in tool_calls(messages) if c.result_turn is not None]
    new_pairs = [(c.turn, c.position, c.result_turn) for c in tool_calls(renamed)]
    assert set(old_pairs) <= set(new_pairs)
    assert with_unique_ids(renamed) == renamed


@given(conversations)
def test_first_users_of_an_id_keep_it(messages):
    seen: set[str] = set()
    for old, new in zip(messages, with_unique_ids(messages), strict=True):
        for a, b in zip(old.get("tool_calls", []), new.get("tool_calls", []), strict=True):
            if a["id"] and a["id"] not in seen:
                assert b["id"] == a["id"]
            seen.add(a["id"])


@given(conversations)
def test_a_clean_conversation_pairs_every_call(messages):
    problems = {p.code for p in validate_messages(messages)}
    if not problems:
        assert all(c.result is not None and c.arguments is not None for c in tool_calls(messages))


@given(st.text(alphabet="<>/think \nab", max_size=30) | st.text(max_size=20))
def test_splitting_reasoning_never_raises(text):
    reasoning, spoken = split_reasoning(text)
    assert reasoning is not None or spoken is not None
    if reasoning is None:
        assert spoken == text
