# ruff: noqa: E501 - recorded shapes are easier to compare on one line
"""Files, kinds, masks and what is left out, without any trainer's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_export import encode, export
from whileai_export.exporters import Chat
from whileai_export.preparing import prepare
from whileai_export.samples import group_figures
from whileai_kernel import make
from whileai_kernel.errors import FindingsError, ParameterError, RowError, UnknownNameError
from whileai_kernel.messages import tool_calls
from whileai_kernel.plugins import manager
from whileai_kernel.rows import make_rows

CALLS = [
    {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}},
    {"id": "b", "type": "function", "function": {"name": "get", "arguments": '{"k": 2}'}},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "get",
        "description": "d",
        "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}},
    },
    "x-kind": "read",
}


def agent_row(**changes: Any) -> dict[str, Any]:
    """Return a row with two tool turns, a parallel call, a reasoning block and private parts at several depths."""
    row = {
        "task_id": "t", "rollout_id": "r", "prompt": "q", "final_text": "Done.", "reward": 1.0, "status": "ok",
        "reason": "want 4217", "markers": {}, "tools": [TOOL], "privileged": {"reference": "4217", "deep": {"state": "SECRET"}},
        "judgments": [{"reward": 0.0, "status": "ok", "reason": "want 4217"}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "q", "privileged": "SECRET"},
            {"role": "assistant", "content": "", "reasoning_content": "plan", "tool_calls": CALLS},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "assistant", "content": "More.", "tool_calls": [{**CALLS[0], "id": "c"}]},
            {"role": "tool", "tool_call_id": "c", "content": "three"},
            {"role": "assistant", "content": "Done."},
        ],
    }  # fmt: skip
    return {**row, **changes}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_chat_records_hold_what_a_trainer_needs_and_nothing_private(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    report = export([agent_row(), agent_row(rollout_id="s", reward=0.0)], path)
    text = path.read_text(encoding="utf-8")
    assert (report.written, report.dropped) == (2, {})
    for private in ("4217", "SECRET", "privileged", "x-kind", "want"):
        assert private not in text
    first = lines(path)[0]
    assert list(first) == ["messages", "tools", "task_id", "rollout_id", "reward", "status", "group"]
    assert first["group"] == {"id": "t", "size": 2, "scored": 2, "mean": 0.5, "std": pytest.approx(0.5**0.5)}
    assert [m["role"] for m in first["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [(c.id, c.result) for c in tool_calls(first["messages"])] == [("a", "one"), ("b", "two"), ("c", "three")]


def test_the_same_content_again_is_no_conflict_and_other_content_needs_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    assert export([agent_row()], path).details["changed"]
    before = path.stat()
    assert not export([agent_row()], path).details["changed"]
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    with pytest.raises(ParameterError, match="holds other content") as err:
        export([agent_row(reward=0.0)], path)
    assert "overwrite=True" in str(err.value)
    assert lines(path)[0]["reward"] == 1.0
    export([agent_row(reward=0.0)], path, overwrite=True)
    assert lines(path)[0]["reward"] == 0.0
    assert [p.name for p in tmp_path.iterdir()] == ["train.jsonl"]


def test_a_failure_in_the_middle_leaves_the_old_file_and_no_debris(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    export([agent_row()], path)
    bad = agent_row(extra=1)
    with pytest.raises(RowError, match="mixes"):
        export([bad, {**agent_row(), "extra": "1"}], path, overwrite=True, columns=["extra"])
    assert lines(path)[0]["rollout_id"] == "r"
    assert [p.name for p in tmp_path.iterdir()] == ["train.jsonl"]


def test_a_folder_gets_manifest_card_and_shards_and_only_its_own_files_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    rows = [agent_row(rollout_id=str(n)) for n in range(6)]
    report = export(rows, folder, to="trl", shard_bytes=1)
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["README.md", "manifest.json", *(f"train-0000{n}-of-00006.jsonl" for n in range(6))]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["written"], manifest["rows"], manifest["tasks"], manifest["target"]) == (6, 6, 1, "trl")
    assert manifest["files"][0]["rows"] == 1
    assert "whileai-export" in manifest["versions"]
    assert "assistant_only_loss" in json.dumps(manifest["trainer"])
    (folder / "mine.txt").write_text("keep me", encoding="utf-8")
    assert not export(rows, folder, to="trl", shard_bytes=1).details["changed"]
    export(rows[:2], folder, to="trl", overwrite=True)
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "manifest.json", "mine.txt", "train.jsonl"]
    assert report.details["files"][0]["sha256"] == manifest["files"][0]["sha256"]


def test_line_separators_surrogates_and_big_integers_are_never_silently_changed(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    texts = ["a\u2028b", "c\u0085d", "e\u2029\x0bf\x0cg", "half \ud83d"]
    rows = make_rows(texts, ["ok"] * 4)
    export(rows, path)
    raw = path.read_bytes()
    for separator in (b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85"):
        assert separator not in raw
    assert len(raw.decode("utf-8").splitlines()) == 4
    assert [r["messages"][0]["content"] for r in lines(path)] == texts
    big = agent_row(messages=[
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"id": 18446744073709551615, "ok": 9007199254740993}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}, {"role": "assistant", "content": "y"},
    ])  # fmt: skip
    report = export([big], tmp_path / "trl.jsonl", to="trl")
    arguments = lines(tmp_path / "trl.jsonl")[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert arguments == {"id": "18446744073709551615", "ok": 9007199254740993}
    assert any(
        "integers beyond 64 bits became text at messages[].tool_calls[].function.arguments.id" in n
        for n in report.notes
    )


@pytest.mark.parametrize(
    ("target", "arguments", "expected"),
    [
        ("hf", '{"city": "Oslo"}', {"city": "Oslo"}),
        ("openai", {"city": "Oslo"}, '{"city": "Oslo"}'),
        ("hf", '"{\\"city\\": \\"Oslo\\"}"', {"city": "Oslo"}),
        ("openai", '"{\\"city\\": \\"Oslo\\"}"', '{"city": "Oslo"}'),
        ("hf", "{city: Oslo", "{city: Oslo"),
        ("hf", "", {}),
        ("openai", "", "{}"),
    ],
)
def test_arguments_are_encoded_once(target: str, arguments: Any, expected: Any) -> None:
    chat = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}],
        }
    ]
    assert encode(chat, target)[0]["tool_calls"][0]["function"]["arguments"] == expected


def test_arguments_that_are_not_json_are_flagged_with_row_and_call(tmp_path: Path) -> None:
    row = agent_row(messages=[
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{city: Oslo"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}, {"role": "assistant", "content": "y"},
    ])  # fmt: skip
    report = export([row], tmp_path / "a.jsonl", to="trl")
    assert any("row r" in n and "call a are not a JSON object" in n for n in report.notes)
    assert export([row], tmp_path / "b.jsonl", to="trl", bad_arguments="drop").dropped == {"arguments are not JSON": 1}


def test_repeated_ids_are_renamed_and_parallel_calls_kept() -> None:
    call = {**CALLS[0], "id": "call_0"}
    chat = [{"role": "user", "content": "q"}]
    for text in ("one", "two"):
        chat += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": text},
        ]  # type: ignore[dict-item]
    out = encode(chat, "openai")
    ids = [c["id"] for m in out for c in m.get("tool_calls", ())]
    assert len(set(ids)) == 2
    assert [c.result for c in tool_calls(out)] == ["one", "two"]


@pytest.mark.parametrize(
    ("messages", "roles", "system"),
    [
        ([("developer", "Answer in Danish."), ("user", "hi"), ("assistant", "hej")], ["system", "user", "assistant"], "Answer in Danish."),
        ([("system", "A."), ("developer", "B."), ("user", "hi"), ("assistant", "x")], ["system", "user", "assistant"], "A.\n\nB."),
        ([("system", "A."), ("user", "hi"), ("system", "B."), ("assistant", "x")], ["system", "user", "assistant"], "A.\n\nB."),
    ],
)  # fmt: skip
def test_instructions_become_one_leading_system_message_for_templates(
    messages: list[tuple[str, str]], roles: list[str], system: str
) -> None:
    out = encode([{"role": r, "content": c} for r, c in messages], "hf")
    assert [m["role"] for m in out] == roles
    assert out[0]["content"] == system
    kept = encode([{"role": r, "content": c} for r, c in messages], "openai")
    assert [m["role"] for m in kept] == [r for r, _ in messages]


def test_anthropic_results_of_a_turn_stand_in_one_user_message_before_text() -> None:
    chat = [*agent_row()["messages"][:5], {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Yes."}]
    out = [m for m in encode(chat, "anthropic") if m["role"] != "system"]
    assert [m["role"] for m in out] == ["user", "assistant", "user", "assistant"]
    assert [b["type"] for b in out[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert [b["type"] for b in out[1]["content"]] == ["thinking", "tool_use", "tool_use"]
    assert out[1]["content"][1]["input"] == {"k": 1}


def test_parts_become_text_and_rows_with_images_need_a_word(tmp_path: Path) -> None:
    row = make_rows([[{"role": "user", "content": [{"type": "text", "text": "hi"}]}]], ["x"])[0]
    export([row], tmp_path / "a.jsonl", to="trl")
    assert lines(tmp_path / "a.jsonl")[0]["messages"][0]["content"] == "hi"
    parts = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    image = make_rows([[{"role": "user", "content": parts}]], ["x"])[0]
    assert export([image], tmp_path / "b.jsonl", to="openai").dropped == {"has parts other than text": 1}
    export([image], tmp_path / "c.jsonl", to="openai", media="keep")
    assert lines(tmp_path / "c.jsonl")[0]["messages"][0]["content"] == parts


@pytest.mark.parametrize(
    ("messages", "finish", "dropped"),
    [
        ([("user", "q", None), ("assistant", "", "a"), ("user", "?", None)], None, "call without result"),
        ([("tool", "late", "z"), ("assistant", "ok", None)], None, "result without call"),
        ([("user", "q", None), ("assistant", "", "a")], None, "call without result"),
        ([("user", "q", None), ("assistant", "", "a")], "tool_calls", ""),
        ([("user", "q", None)], None, "no reply"),
        ([("user", "q", None), ("assistant", "", None)], None, "an empty assistant turn"),
    ],
)  # fmt: skip
def test_conversations_that_no_trainer_reads_are_left_out_with_the_reason(
    messages: list[tuple[str, str, str | None]], finish: str | None, dropped: str
) -> None:
    chat: list[dict[str, Any]] = []
    for role, content, call in messages:
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant" and call:
            message["tool_calls"] = [{**CALLS[0], "id": call}]
        elif role == "tool":
            message["tool_call_id"] = call
        chat.append(message)
    assert prepare({"messages": chat, "finish_reason": finish}).dropped == dropped


TWO = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"},
]


def test_the_mask_is_said_in_what_the_target_reads_or_the_report_says_that_it_is_not(tmp_path: Path) -> None:
    row = {"task_id": "t", "messages": TWO}
    report = export([row], tmp_path / "last.jsonl", to="trl", train="last")
    record = lines(tmp_path / "last.jsonl")[0]
    assert set(record) == {"prompt", "completion", "tools"}
    assert record["completion"] == [{"role": "assistant", "content": "d"}]
    assert [m["content"] for m in record["prompt"]] == ["a", "b", "c"]
    report = export([row], tmp_path / "all.jsonl", to="trl")
    assert any("assistant_only_loss=True" in n for n in report.notes)
    assert "loss_mask" not in (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    export([row], tmp_path / "w.jsonl", to="openai", train="last")
    assert [m.get("weight") for m in lines(tmp_path / "w.jsonl")[0]["messages"]] == [None, 0, None, 1]
    for target in ("anthropic", "sharegpt"):
        report = export([row], tmp_path / f"{target}.jsonl", to=target, train=[1])
        assert any("not enforced" in n for n in report.notes)
        assert report.details["trainer"]["enforced"] is False
    report = export([row], tmp_path / "args.jsonl", to="trl", train_arguments=False)
    assert any("train_arguments=False is not enforced" in n for n in report.notes)
    for target in ("chat", "openai", "trl", "anthropic", "sharegpt"):
        for kind in ("sft", "rewarded", "preference"):
            bad = {**row, "reward": 0.0, "messages": [*TWO[:-1], {"role": "assistant", "content": "x"}]}
            path = tmp_path / f"{target}-{kind}.jsonl"
            report = export([{**row, "reward": 1.0}, bad], path, to=target, kind=kind, train_arguments=False)
            assert any("train_arguments=False is not enforced" in n for n in report.notes), (target, kind)
            assert report.details["trainer"]["enforced"] is False
    prompts = export([row], tmp_path / "prompts.jsonl", to="trl", kind="prompts", train_arguments=False)
    assert not any("enforced" in n for n in prompts.notes)


def test_chosen_turns_that_are_no_suffix_become_one_sample_each_for_trl(tmp_path: Path) -> None:
    chat = [*TWO, {"role": "user", "content": "e"}, {"role": "assistant", "content": "f"}]
    report = export([{"task_id": "t", "messages": chat}], tmp_path / "a.jsonl", to="trl", train=[1, 5])
    assert [[m["content"] for m in r["completion"]] for r in lines(tmp_path / "a.jsonl")] == [["b"], ["f"]]
    assert any("one sample per trained turn" in n for n in report.notes)
    export([{"task_id": "t", "messages": chat}], tmp_path / "b.jsonl", to="trl", train=[3, 5])
    assert [[m["content"] for m in r["completion"]] for r in lines(tmp_path / "b.jsonl")] == [["d", "e", "f"]]


def test_unroll_gives_one_sample_per_turn_with_what_it_saw(tmp_path: Path) -> None:
    export([agent_row()], tmp_path / "a.jsonl", to="trl", unroll=True)
    records = lines(tmp_path / "a.jsonl")
    assert [len(r["prompt"]) for r in records] == [2, 5, 7]
    assert [len(r["completion"]) for r in records] == [1, 1, 1]
    export([agent_row()], tmp_path / "b.jsonl", to="openai", unroll=True)
    assert [[m["weight"] for m in r["messages"] if "weight" in m] for r in lines(tmp_path / "b.jsonl")] == [
        [1],
        [0, 1],
        [0, 0, 1],
    ]


def test_reasoning_is_kept_stripped_or_inlined(tmp_path: Path) -> None:
    for mode, expected in (("keep", "plan"), ("strip", None), ("inline", None)):
        export([agent_row()], tmp_path / f"{mode}.jsonl", to="trl", reasoning=mode)
        turn = lines(tmp_path / f"{mode}.jsonl")[0]["messages"][2]
        assert turn.get("reasoning_content") == expected
        assert ("<think>\nplan\n</think>" in turn["content"]) == (mode == "inline")
    tagged = make_rows(["q"], ["<think>plan</think>\n\nDone."])
    export(tagged, tmp_path / "t.jsonl", to="trl", reasoning="strip")
    assert lines(tmp_path / "t.jsonl")[0]["messages"][-1]["content"] == "Done."
    unfinished = make_rows(["q"], ["<think>plan"])
    assert export(unfinished, tmp_path / "u.jsonl", to="trl", reasoning="strip").dropped == {
        "reasoning without a reply": 1
    }


def test_preference_pairs_are_cut_at_the_first_turn_that_differs(tmp_path: Path) -> None:
    good = agent_row(rollout_id="good", reward=1.0)
    bad = agent_row(rollout_id="bad", reward=0.0)
    bad["messages"] = [*good["messages"][:5], {"role": "assistant", "content": "I give up."}]
    report = export([bad, good], tmp_path / "p.jsonl", to="trl", kind="preference")
    record = lines(tmp_path / "p.jsonl")[0]
    assert list(record) == ["prompt", "chosen", "rejected", "tools"]
    assert len(record["prompt"]) == 5
    assert [len(record[k]) for k in ("chosen", "rejected")] == [1, 1]
    assert record["chosen"][0]["content"] == "More."
    assert record["rejected"][0]["content"] == "I give up."
    assert report.written == 1
    export([bad, good], tmp_path / "w.jsonl", to="trl", kind="preference", pairs="whole")
    assert len(lines(tmp_path / "w.jsonl")[0]["chosen"]) == 3
    equal = export([good, {**good, "rollout_id": "x"}], tmp_path / "n.jsonl", to="trl", kind="preference")
    assert equal.dropped == {"no pair: rewards of the task do not differ": 2}
    for target in ("openai", "anthropic", "chat"):
        assert export([bad, good], tmp_path / f"{target}.jsonl", to=target, kind="preference").written == 1
    whole = export([bad, good], tmp_path / "w2.jsonl", to="trl", kind="preference", pairs="whole")
    assert any("tool results and users' turns included" in n for n in whole.notes)
    assert whole.details["trainer"]["enforced"] is False


def test_a_sharegpt_pair_never_loses_a_turn_of_a_reply(tmp_path: Path) -> None:
    """The format holds one turn per reply: text with a call, or several turns, do not fit and are left out."""
    good = agent_row(rollout_id="good", reward=1.0)
    text = agent_row(rollout_id="bad", reward=0.0)
    text["messages"] = [*good["messages"][:5], {"role": "assistant", "content": "I give up."}]
    reason = {"no pair: a reply is several turns, and a ShareGPT pair holds one": 2}
    assert export([text, good], tmp_path / "a.jsonl", to="sharegpt", kind="preference").dropped == reason
    done = agent_row(rollout_id="done", reward=1.0)
    done["messages"] = [*good["messages"][:5], {"role": "assistant", "content": "Done."}]
    assert export([text, done], tmp_path / "b.jsonl", to="sharegpt", kind="preference").written == 1
    record = lines(tmp_path / "b.jsonl")[0]
    assert record["chosen"] == {"from": "gpt", "value": "Done."}
    assert record["rejected"] == {"from": "gpt", "value": "I give up."}
    assert export([good, done], tmp_path / "c.jsonl", to="sharegpt", kind="preference", pairs="whole").written == 0


def test_prompts_are_written_once_per_task_and_references_only_on_the_reward_side(tmp_path: Path) -> None:
    rows = [
        agent_row(),
        agent_row(rollout_id="s"),
        agent_row(task_id="u", messages=[], final_text=None, reward=None, status="missing"),
    ]
    report = export(rows, tmp_path / "out", to="trl", kind="prompts", references=True)
    records = lines(tmp_path / "out" / "train.jsonl")
    assert [r["task_id"] for r in records] == ["t", "u"]
    assert [m["role"] for m in records[0]["prompt"]] == ["system", "user"]
    assert "4217" not in (tmp_path / "out" / "train.jsonl").read_text(encoding="utf-8")
    assert lines(tmp_path / "out" / "references.jsonl") == [
        {"task_id": "t", "reference": "4217"},
        {"task_id": "u", "reference": "4217"},
    ]
    assert any("never to the model" in n for n in report.notes)
    assert export(rows, tmp_path / "plain.jsonl", to="trl", kind="prompts").written == 2
    assert not (tmp_path / "plain.references.jsonl").exists()


def test_rewarded_rows_carry_group_figures_and_sampled_tokens(tmp_path: Path) -> None:
    rows = [agent_row(rollout_id=str(n), reward=r) for n, r in enumerate((1.0, 0.0, None, 0.5))]
    rows[0]["logprobs"] = {"completion_token_ids": [5, 6, 7], "logprobs": [-0.1, -0.2, -0.3]}
    rows[2]["status"] = "missing"
    report = export(rows, tmp_path / "r.jsonl", to="trl", kind="rewarded")
    records = lines(tmp_path / "r.jsonl")
    assert report.dropped == {"not scored": 1}
    assert {r["group_size"] for r in records} == {4}
    assert {r["group_scored"] for r in records} == {3}
    assert records[0]["group_mean"] == pytest.approx(0.5)
    assert records[0]["group_std"] == pytest.approx(0.5)  # sqrt(((.5)^2+(.5)^2+0)/2)
    assert records[0]["completion_token_ids"] == [5, 6, 7]
    assert records[0]["completion_mask"] == [1, 1, 1]
    assert records[1]["completion_token_ids"] is None
    assert any("tokens will be re-created by the trainer for 3 of 4 rows" in n for n in report.notes)


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=6))
def test_group_figures_agree_with_the_definition(rewards: list[float | None]) -> None:
    figures = group_figures([{"task_id": "t", "reward": r} for r in rewards])["t"]
    scored = [r for r in rewards if r is not None]
    assert (figures["size"], figures["scored"]) == (len(rewards), len(scored))
    if len(scored) > 1:
        mean = sum(scored) / len(scored)
        assert figures["std"] == pytest.approx(
            (sum((r - mean) ** 2 for r in scored) / (len(scored) - 1)) ** 0.5, abs=1e-9
        )
    else:
        assert figures["std"] is None


def test_eval_records_say_what_was_measured(tmp_path: Path) -> None:
    rows = [agent_row(rollout_id=str(n), reward=r, split="holdout") for n, r in enumerate((1.0, 0.0, None))]
    export(rows, tmp_path / "e.jsonl", to="trl", kind="eval")
    record = lines(tmp_path / "e.jsonl")[0]
    assert (record["n"], record["scored"], record["mean_reward"], record["pass_rate"], record["split"]) == (
        3,
        2,
        0.5,
        0.5,
        "holdout",
    )


def test_held_out_rows_are_not_trained_on_unless_allowed(tmp_path: Path) -> None:
    rows = [agent_row(), agent_row(rollout_id="h", split="holdout")]
    assert export(rows, tmp_path / "a.jsonl").dropped == {"held out": 1}
    assert export(rows, tmp_path / "b.jsonl", allow=["held_out"]).written == 2


@pytest.mark.parametrize(
    ("reply", "private", "dropped"),
    [
        ("It is 4218.", {"reference": "4217"}, {}),
        ("It is 4217.", {"reference": "4217"}, {}),
        ("17", {"reference": "7"}, {}),
        ("hint said 4217", {"reference": "4217"}, {"quotes privileged context": 1}),
        ("According to the answer key, 4217.", {"reference": "4217"}, {"quotes privileged context": 1}),
        ("I see: the customer is allowed one refund per year only.", {"rubric": "the customer is allowed one refund per year only"}, {"quotes privileged context": 1}),
    ],
)  # fmt: skip
def test_what_was_hidden_does_not_reach_the_file(
    tmp_path: Path, reply: str, private: dict[str, Any], dropped: dict[str, int]
) -> None:
    row = {
        "task_id": "t",
        "prompt": "How many?",
        "final_text": reply,
        "reward": 0.0,
        "reason": "want 4217",
        "privileged": private,
    }
    others = ["guard/leaked_reference"]  # where that plugin is installed it stops the export before
    report = export([row], tmp_path / "a.jsonl", allow=others)
    assert report.dropped == dropped
    if "4217" not in reply:
        assert "4217" not in (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    assert export([row], tmp_path / "b.jsonl", allow=["quotes_privileged", *others]).written == 1


def test_private_text_that_the_user_said_may_be_repeated(tmp_path: Path) -> None:
    goal = "change my flight to the earlier one on Monday"
    row = {"task_id": "t", "prompt": f"Please {goal}.", "final_text": f"I will {goal}.", "privileged": {"goal": goal}}
    assert export([row], tmp_path / "a.jsonl").written == 1


def test_checks_of_plugins_run_first_and_stop_the_export_by_name(tmp_path: Path) -> None:
    from whileai_kernel import hookimpl
    from whileai_kernel.lifecycle import Finding

    class Strict:
        @hookimpl
        def wai_check_rows(self, rows: Any, stage: Any) -> list[Finding]:
            return [Finding("strict/no", "error", "no good", count=len(rows))] if stage.name == "export" else []

    plugin = Strict()
    manager().pm.register(plugin, name="strict")
    try:
        with pytest.raises(FindingsError, match="no good"):
            export([agent_row()], tmp_path / "a.jsonl")
        assert not (tmp_path / "a.jsonl").exists()
        report = export([agent_row()], tmp_path / "a.jsonl", allow=["strict/no"])
        assert report.details["findings"][0]["name"] == "strict/no"
    finally:
        manager().pm.unregister(plugin)


def test_unknown_names_and_words_name_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="trl"):
        export([agent_row()], tmp_path / "a.jsonl", to="tlr")
    for options, said in (
        ({"kind": "stf"}, "sft"),
        ({"unrol": True}, "unroll"),
        ({"reasoning": "srip"}, "strip"),
        ({"train": "lst"}, "last"),
    ):
        with pytest.raises(ParameterError, match=f"did you mean '{said}'"):
            export([agent_row()], tmp_path / "a.jsonl", to="trl", **options)
    with pytest.raises(ParameterError, match="privileged is never a column"):
        export([agent_row()], tmp_path / "a.jsonl", columns=["privileged"])


def test_extra_columns_have_one_type_and_objects_are_text(tmp_path: Path) -> None:
    rows = [agent_row(a="007", n=1, o={"x": 1, "privileged": 2}), agent_row(a="8", n=0.5, o=None)]
    export(rows, tmp_path / "a.jsonl", to="trl", columns=["a", "n", "o"])
    first = lines(tmp_path / "a.jsonl")[0]
    assert (first["a"], first["n"], first["o"]) == ("007", 1.0, '{"x": 1}')
    with pytest.raises(RowError, match="mixes"):
        export([agent_row(a="007"), agent_row(a=7)], tmp_path / "b.jsonl", columns=["a"])


def test_exported_records_are_read_back(tmp_path: Path) -> None:
    exporter = make("exporters", "chat")
    exporter.export([agent_row()], tmp_path / "a.jsonl")
    assert list(exporter.read(tmp_path / "a.jsonl")) == lines(tmp_path / "a.jsonl")
    exporter.export([agent_row()], tmp_path / "folder")
    assert list(Chat().read(tmp_path / "folder")) == lines(tmp_path / "folder" / "train.jsonl")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(min_size=1, max_size=8)), min_size=1, max_size=4))
def test_any_text_comes_back_from_the_file_as_it_was(pairs: list[tuple[str, str]]) -> None:
    import tempfile

    rows = make_rows([a for a, _ in pairs], [b for _, b in pairs])
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.jsonl"
        export(rows, path)
        back = [[m["content"] for m in r["messages"]] for r in Chat().read(path)]
    assert back == [[a, b] for a, b in pairs]


def test_the_command_line_writes_and_reports(tmp_path: Path) -> None:
    import argparse

    from whileai_export.command import ExportCommand
    from whileai_kernel.rowio import write_rows

    write_rows(tmp_path / "rows.jsonl", [agent_row()])
    command, parser = ExportCommand(), argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(
        [str(tmp_path / "rows.jsonl"), "--to", "trl", "--kind", "sft", "--train", "2,5", "--out", str(tmp_path / "dir")]
    )
    assert command.run(args) == 0
    assert [m["role"] for m in lines(tmp_path / "dir" / "train.jsonl")[0]["completion"]] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


def test_the_command_line_reads_formats_of_installed_sources(tmp_path: Path) -> None:
    import argparse

    pytest.importorskip("whileai_traces")
    from whileai_export.command import ExportCommand

    source = tmp_path / "chat.jsonl"
    source.write_text(
        '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x"}]}\n{cut\n',
        encoding="utf-8",
    )
    command, parser = ExportCommand(), argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([str(source), "--out", str(tmp_path / "out.jsonl")])) == 0
    assert lines(tmp_path / "out.jsonl")[0]["messages"][1]["content"] == "x"
    with pytest.raises(ParameterError, match="there is no file"):
        command.run(parser.parse_args([str(tmp_path / "absent.jsonl")]))


def test_files_and_reports_do_not_depend_on_the_platform_encoding(tmp_path: Path) -> None:
    code = (
        "from whileai_export import export\n"
        "rows = [{'task_id': 't', 'prompt': '\\u00e9 \\u4ecb \\U0001f917', 'final_text': '\\u2713'}]\n"
        f"print(export(rows, {str(tmp_path / 'a.jsonl')!r}))"
    )
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, timeout=60)
    assert lines(tmp_path / "a.jsonl")[0]["messages"][0]["content"] == "\u00e9 \u4ecb \U0001f917"


def test_importing_the_package_and_its_light_module_loads_nothing_heavy() -> None:
    code = (
        "import sys, whileai_export, whileai_export.plugin\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'pydantic', 'numpy', 'pyarrow', 'transformers'}))\n"
        "print('whileai_export.exporters' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["[]", "False"]


def test_an_argument_that_is_called_privileged_is_no_secret(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"privileged": {"type": "boolean", "x-note": "hidden"}},
        "privileged": "SECRET",
    }
    tool = {
        "type": "function",
        "function": {"name": "run", "parameters": schema, "privileged": "SECRET"},
        "privileged": "SECRET",
    }
    call = {"id": "a", "type": "function", "function": {"name": "run", "arguments": '{"privileged": true}'}}
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "x"}, {"role": "assistant", "content": "y"}]  # fmt: skip
    for target in ("chat", "openai", "trl", "anthropic", "sharegpt"):
        export([{"task_id": "t", "messages": chat, "tools": [tool]}], tmp_path / f"{target}.jsonl", to=target)
        text = (tmp_path / f"{target}.jsonl").read_text(encoding="utf-8")
        assert "SECRET" not in text
        assert "hidden" not in text
        record = json.loads(text)
        tools = json.loads(record["tools"]) if isinstance(record["tools"], str) else record["tools"]
        parameters = tools[0].get("input_schema") or tools[0]["function"]["parameters"]
        assert parameters == {"type": "object", "properties": {"privileged": {"type": "boolean"}}}
    trl = json.loads((tmp_path / "trl.jsonl").read_text(encoding="utf-8"))
    assert trl["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"privileged": True}


def test_pairs_that_are_there_already_are_written(tmp_path: Path) -> None:
    history = agent_row()["messages"][:5]
    pair = {
        "task_id": "t", "prompt": history, "chosen": agent_row()["messages"][5:], "rejected": [{"role": "assistant", "content": "No."}],
        "tools": [TOOL], "chosen_id": "a", "rejected_id": "b", "margin": 1.0,
    }  # fmt: skip
    plain = {"prompt": "q", "chosen": "yes", "rejected": "no", "task_id": "u"}
    broken = {**pair, "rejected": [{"role": "assistant", "content": "", "tool_calls": CALLS}]}

    class Pairs:
        pairs = (pair, plain, broken)

    for rows in ([pair, plain, broken], Pairs()):
        path = tmp_path / f"{type(rows).__name__}.jsonl"
        report = export(rows, path, to="trl", kind="preference")  # type: ignore[arg-type]
        records = lines(path)
        assert [len(r["prompt"]) for r in records] == [5, 1]
        assert [len(r["chosen"]) for r in records] == [1, 1]
        assert records[1]["chosen"] == [{"role": "assistant", "content": "yes"}]
        assert report.dropped == {"no pair: rejected call without result": 1}
    select = pytest.importorskip("whileai_select")
    rows = [
        agent_row(rollout_id="x"),
        {**agent_row(rollout_id="y", reward=0.0), "messages": [*history, {"role": "assistant", "content": "No."}]},
    ]
    assert (
        export(
            select.build_preference_pairs(rows, max_length_ratio=None),
            tmp_path / "s.jsonl",
            to="trl",
            kind="preference",
        ).written
        == 1
    )


def test_free_form_columns_as_text_for_old_loaders(tmp_path: Path) -> None:
    export([agent_row()], tmp_path / "out", to="openai", as_text=True)
    record = lines(tmp_path / "out" / "train.jsonl")[0]
    assert all(isinstance(v, str) for v in record.values())
    assert json.loads(record["messages"])[0]["role"] == "system"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["columns"] == {"messages": "text", "tools": "text"}


def test_what_a_format_cannot_carry_is_named(tmp_path: Path) -> None:
    chat = [
        {"role": "user", "content": "q"}, {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "no", "is_error": True}, {"role": "assistant", "content": "x"},
    ]  # fmt: skip
    row = {"task_id": "t", "messages": chat}
    said = {
        t: " ".join(export([row], tmp_path / f"{t}.jsonl", to=t).notes)
        for t in ("chat", "openai", "trl", "anthropic", "sharegpt")
    }
    assert "in the middle" in said["trl"]
    assert "in the middle" in said["anthropic"]
    assert "lost their reasoning" in said["openai"]
    assert "developer messages" in said["sharegpt"]
    assert "block in the text" in said["sharegpt"]
    assert "marked as errors" in said["chat"]
    assert "marked as errors" not in said["anthropic"]
    assert "middle" not in said["chat"]


def test_the_path_says_what_is_written(tmp_path: Path) -> None:
    import gzip

    export([agent_row()], tmp_path / "a.jsonl")
    for _ in range(2):
        report = export([agent_row()], tmp_path / "a.jsonl.gz")
    assert not report.details["changed"]
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == (tmp_path / "a.jsonl").read_bytes()
    assert list(Chat().read(tmp_path / "a.jsonl.gz")) == lines(tmp_path / "a.jsonl")
    export([agent_row()], f"{tmp_path}/out.v1/")
    assert (tmp_path / "out.v1" / "train.jsonl").is_file()
    with pytest.raises(ParameterError, match=r"writes no \.csv file"):
        export([agent_row()], tmp_path / "a.csv")


def test_rows_of_messages_alone_belong_to_the_task_of_their_first_ask(tmp_path: Path) -> None:
    chats = [
        {"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": "x"}]} for q in ("a", "a", "b")
    ]
    report = export([*chats, {"reward": 7}, "no row"], tmp_path / "a.jsonl")  # type: ignore[list-item]
    assert len({r["task_id"] for r in lines(tmp_path / "a.jsonl")}) == 2
    assert report.dropped == {"reward is not a number from 0 to 1": 1, "is no row": 1}


def test_every_option_of_an_export_is_on_the_command_line(tmp_path: Path) -> None:
    import argparse

    from whileai_export.command import ExportCommand
    from whileai_export.options import Options

    given = [
        "--kind", "sft", "--reasoning", "strip", "--pairs", "whole", "--media", "keep", "--bad-arguments", "drop", "--file", "jsonl",
        "--train", "last", "--no-train-arguments", "--unroll", "--columns", "a,b", "--as-text", "--shard-bytes", "7", "--no-manifest",
        "--references",
    ]  # fmt: skip
    command, parser = ExportCommand(), argparse.ArgumentParser()
    command.add_arguments(parser)
    chosen = command.options(parser.parse_args(["rows.jsonl", *given]))
    assert set(chosen) | {"tokenizer"} == set(Options.__dataclass_fields__)
    assert command.options(parser.parse_args(["rows.jsonl"])) == {}
    assert Options(**chosen).train_arguments is False
    assert chosen["columns"] == ["a", "b"]
    assert command.options(parser.parse_args(["rows.jsonl", "--option", "x-y=[1]", "--option", "z=text"])) == {
        "x_y": [1],
        "z": "text",
    }
    with pytest.raises(ParameterError, match="is no option"):
        command.options(parser.parse_args(["rows.jsonl", "--option", "nothing"]))
