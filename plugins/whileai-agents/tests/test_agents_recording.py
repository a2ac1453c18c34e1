"""Which conversation a request belongs to, and the file that the rows go to."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_agents.conversations import Book
from whileai_agents.recording import add_usage, redact
from whileai_agents.rowfile import RowFile
from whileai_kernel.errors import FileThereError, RowError
from whileai_kernel.rowio import read_rows

SYSTEM = {"role": "system", "content": "s"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*ids: str, arguments: str = '{"k": 1}') -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": "get", "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": "", "tool_calls": made}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


# -- conversations --------------------------------------------------------------------------------------------


def test_a_request_that_extends_a_conversation_belongs_to_it() -> None:
    book = Book()
    first = book.land([SYSTEM, user("q")], calls("a", "b"))
    second = book.land([SYSTEM, user("q"), calls("a", "b"), result("a", "1"), result("b", "2")], said("done"))
    assert second is first
    assert [m["role"] for m in first.messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert (first.requests, book.count) == (2, 1)


@pytest.mark.parametrize(
    "echo",
    [
        {**calls("a"), "content": None},
        calls("a", arguments='{"k":1}'),
        {**calls("a"), "reasoning_content": "hm"},
        {**calls("a"), "refusal": None, "annotations": []},
    ],
)
def test_programs_may_write_a_reply_back_in_another_way(echo: dict[str, Any]) -> None:
    book = Book()
    exact = calls("a", arguments='{ "k" : 1 }')
    first = book.land([user("q")], exact)
    assert book.land([user("q"), echo, result("a", "1")], said("done")) is first
    assert first.messages[1] == exact, "the reply stands as the model gave it"


def test_reasoning_that_a_program_leaves_out_is_kept() -> None:
    book = Book()
    first = book.land([user("q")], said("<think>hm</think>yes"))
    assert book.land([user("q"), said("yes"), user("and?")], said("no")) is first
    assert first.messages[1]["content"] == "<think>hm</think>yes"


@pytest.mark.parametrize(
    "other",
    [
        calls("b"),
        calls("a", arguments='{"k": 2}'),
        calls("a", "a2"),
        said("something else"),
    ],
)
def test_another_history_is_another_conversation(other: dict[str, Any]) -> None:
    book = Book()
    first = book.land([user("q")], calls("a"))
    second = book.land([user("q"), other, user("and?")], said("done"))
    assert second is not first
    assert second.branch is None, "they share a prompt and no reply"
    assert second.messages[1] == other


def test_ids_that_start_again_in_each_turn_and_results_out_of_order() -> None:
    """Public reports: a counter that restarts names two calls alike, and parallel results come in any order."""
    from whileai_kernel.messages import tool_calls

    book = Book()
    history = [user("q")]
    for turn in (calls("call_0", "call_1"), calls("call_0", "call_1", arguments='{"k": 2}')):
        first = book.land(copy.deepcopy(history), turn)
        history += [turn, result("call_1", "one"), result("call_0", "zero")]
    assert book.land(history, said("done")) is first
    assert book.count == 1
    found = [(c.id, c.arguments, c.result) for c in tool_calls(first.messages)]
    assert found == [(f"call_{i}", {"k": k}, ("zero", "one")[i]) for k in (1, 2) for i in (0, 1)]


def test_system_and_developer_are_one_voice_and_text_parts_are_text() -> None:
    book = Book()
    first = book.land([{"role": "developer", "content": "s"}, user("q")], said("a"))
    parts = {"role": "user", "content": [{"type": "text", "text": "q"}]}
    assert book.land([SYSTEM, parts, said("a"), user("more")], said("b")) is first
    assert first.messages[0]["role"] == "developer", "the row keeps the first wording"


def test_a_branch_names_what_it_left() -> None:
    book = Book()
    opening = [SYSTEM, user("q")]
    root = book.land(opening, said("a"), "completion a")
    root = book.land([*opening, said("a"), user("x")], said("b"), "completion b")
    branch = book.land([*opening, said("a"), user("y")], said("c"), "completion c")
    assert branch is not root
    assert branch.branch == (root, 3)
    assert [m["content"] for m in branch.messages] == ["s", "q", "a", "y", "c"]
    assert branch.replies == [(2, "completion a"), (4, "completion c")]
    assert branch.shared_replies == 1, "what the branch shares is not paid for twice"
    assert [m["content"] for m in root.messages] == ["s", "q", "a", "x", "b"]
    assert book.land([*opening, said("a"), user("y"), said("c"), user("z")], said("d")) is branch


def test_equal_requests_are_further_tries_of_a_task_and_a_branch_within_one_rollout() -> None:
    outside, inside = Book(), Book(one_rollout=True)
    for book in (outside, inside):
        book.land([user("q")], said("a"))
    assert outside.land([user("q")], said("b")).branch is None
    assert inside.land([user("q")], said("b")).branch == (inside.open[0], 1)


def test_helpers_beside_the_agent_are_rows_of_their_own() -> None:
    book = Book(one_rollout=True)
    main = book.land([SYSTEM, user("q")], calls("a"))
    helper = book.land([SYSTEM, user("a helper's job")], said("found"))
    again = book.land([SYSTEM, user("q"), calls("a"), result("a", "found")], said("done"))
    assert again is main
    assert helper.branch is None
    assert len(helper.messages) == 3


def test_a_request_that_failed_is_continued_by_its_second_try() -> None:
    book = Book()
    first = book.land([user("q")], None, error={"type": "E"})
    assert first.error == {"type": "E"}
    assert book.land([user("q")], said("a")) is first
    assert (first.error, first.failures, first.requests) == (None, 1, 2)


def test_old_conversations_are_forgotten() -> None:
    book = Book(limit=2)
    first = book.land([user("q0")], said("a"))
    for n in (1, 2):
        book.land([user(f"q{n}")], said("a"))
    assert len(book.open) == 2
    assert book.land([user("q0"), said("a"), user("more")], said("b")) is not first


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("xyz"), min_size=1, max_size=4), min_size=1, max_size=6), st.randoms())
def test_nothing_is_lost_whatever_order_requests_come_in(plans: list[list[str]], random: Any) -> None:
    """Independent programs, interleaved at random: each one's words stand on one conversation, in order."""
    book = Book()
    states = [[user(f"task {n}")] for n, _ in enumerate(plans)]
    steps = [n for n, plan in enumerate(plans) for _ in plan]
    random.shuffle(steps)
    done = [0] * len(plans)
    for n in steps:
        reply = said(f"reply {plans[n][done[n]]}")
        book.land(copy.deepcopy(states[n]), reply)
        states[n] += [reply, user(f"then {plans[n][done[n]]}")]
        done[n] += 1
    found = sorted(json.dumps(c.messages) for c in book.open.values())
    assert found == sorted(json.dumps(state[:-1]) for state in states)


def test_usage_adds_up_and_an_unknown_cost_stays_unknown() -> None:
    known, unknown = {"prompt_tokens": 1, "cost_usd": 0.5}, {"prompt_tokens": 2}
    assert add_usage([known, known]) == {"prompt_tokens": 2, "cost_usd": 1.0}
    assert add_usage([known, unknown]) == {"prompt_tokens": 3}
    assert add_usage([]) == {}


def test_redaction_reaches_every_depth() -> None:
    value = {"a": ["x secret y", ("secret",)], "secret": {"b": "secret"}, "n": 1}
    assert redact(value, ["secret"]) == {"a": ["x [key] y", ["[key]"]], "[key]": {"b": "[key]"}, "n": 1}


# -- the file -------------------------------------------------------------------------------------------------


def row(name: str, turns: int) -> dict[str, Any]:
    return {"schema_version": 1, "task_id": f"t-{name}", "rollout_id": name, "prompt": "q", "turns": "x" * turns}


def test_a_row_that_grows_is_one_line_at_every_moment(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    places: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for turns in range(1, 5):
        for name in "abc":
            expected[name] = row(name, turns)
            places[name] = file.put(expected[name], places.get(name))
            # Read by another reader, as after a kill at this moment.
            assert {r["rollout_id"]: r for r in read_rows(file.path)} == expected
            assert len(list(read_rows(file.path))) == len(expected)
    file.close()
    file.close()
    lines = file.path.read_bytes().split(b"\n")
    assert len(lines) == 4, "a clean end leaves no blank lines"
    assert all(lines[:3])


def test_a_kill_between_the_two_steps_of_a_change_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps(row("a", 1)), json.dumps(row("b", 1)), json.dumps(row("a", 2)), '{"rollout_id": "c", "torn']
    path.write_text("\n".join(lines), encoding="utf-8")
    file = RowFile(path)
    assert file.recovered_bytes == len(lines[-1])
    assert [(r["rollout_id"], len(r["turns"])) for r in file.read()] == [("b", 1), ("a", 2)]
    assert file.tasks == {"t-a": 1, "t-b": 1}
    file.put(row("d", 1))
    file.close()
    assert [r["rollout_id"] for r in read_rows(path)] == ["b", "a", "d"]


def test_a_file_is_continued_and_not_shared(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "rows.jsonl"
    first = RowFile(path)
    first.put(row("a", 1))
    with pytest.raises(FileThereError, match="another process"):
        RowFile(path)
    first.close()
    second = RowFile(path)
    second.put(row("b", 1))
    second.close()
    assert [r["rollout_id"] for r in read_rows(path)] == ["a", "b"]


@pytest.mark.parametrize("content", [b"not json\n", b"[1]\n", b"\xff\xfe\n"])
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(RowError, match="no file of rows"):
        RowFile(path)
    assert path.read_bytes() == content


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)), max_size=20), st.integers(0, 10_000))
def test_a_kill_at_any_byte_loses_no_row_that_had_landed(changes: list[tuple[str, int]], cut: int) -> None:
    """Cut the file inside its last line: every row but that change is there, once."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        file = RowFile(path)
        places: dict[str, Any] = {}
        state: dict[str, Any] = {}
        for name, turns in changes:
            state[name] = row(name, turns)
            places[name] = file.put(state[name], places.get(name))
        file._file.close()  # no clean end
        torn = json.dumps(row("torn", 5)).encode()
        with path.open("ab") as end:
            end.write(torn[: cut % len(torn)])
        again = RowFile(path)
        assert {r["rollout_id"]: r for r in again.read()} == state
        again.close()
