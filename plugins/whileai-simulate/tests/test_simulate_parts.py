"""Repeats, scripted users, near-duplicates, draws, the engine's bounds, reports and the command."""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_simulate import honest_agent, recommend, seeded_agent, simulate
from whileai_simulate.cli import SimulateCommand
from whileai_simulate.dedup import HashSet, NearDuplicates, shingles
from whileai_simulate.draw import Draw, hash64, mixed
from whileai_simulate.outcome import Outcome
from whileai_simulate.policies import Repeats
from whileai_simulate.users import ScriptedUser

TOOL = {
    "name": "cancel_order",
    "kind": "write",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
}
LOOK = {**TOOL, "name": "get_order", "kind": "read"}


# -- draws ----------------------------------------------------------------------------------------------------


def test_draws_are_the_same_everywhere() -> None:
    """The generators by their published definitions: MMIX of Knuth by hand, SplitMix64's first outputs from state 0."""
    draw = Draw.at(0)
    first = 1442695040888963407
    second = (first * 6364136223846793005 + 1442695040888963407) % 2**64
    assert [draw.bits(), draw.bits()] == [first // 2**32, second // 2**32]
    assert [Draw.at(0).below(10), Draw.at(0).choice("abcdefg")] == [first // 2**32 % 10, "abcdefg"[first // 2**32 % 7]]
    assert Draw.at(0).random() == first // 2**32 / 2**32
    assert [mixed(0, n) for n in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert hash64("a", 1) == hash64("a", 1) != hash64("a", 2)
    assert sorted(Draw(3).shuffled(range(20))) == list(range(20))


@pytest.mark.parametrize("size", [2, 3, 7, 10, 64])
def test_draws_are_uniform_along_a_stream_and_across_streams(size: int) -> None:
    """Chi-square of 20,000 draws, and of pairs of neighbours, along one stream, across tasks and across rollouts."""
    n = 20_000
    stream, tail = Draw("stream"), 6.0  # standard deviations of the statistic, by its normal approximation

    def far(values: Sequence[int], cells: int) -> float:
        expected = len(values) / cells
        counts = Counter(values)
        chi = sum((counts[c] - expected) ** 2 / expected for c in range(cells))
        return (chi - (cells - 1)) / (2 * (cells - 1)) ** 0.5

    along = [stream.below(size) for _ in range(n)]
    across = [Draw(0, "scene", task).below(size) for task in range(n)]
    rollouts = [Draw.at(mixed(hash64(0, "task"), index)).below(size) for index in range(n)]
    for values in (along, across, rollouts):
        assert abs(far(values, size)) < tail
        pairs = [a * size + b for a, b in zip(values[::2], values[1::2], strict=True)]
        assert abs(far(pairs, size * size)) < tail


def test_a_wide_range_is_reached_in_full() -> None:
    """A range of more than 32 bits: the mean of its draws is its middle, and both halves of the word vary."""
    draw = Draw("wide")
    drawn = [draw.between(0, 10**15) for _ in range(2000)]
    assert abs(sum(drawn) / len(drawn) / 10**15 - 0.5) < 0.03 and max(drawn) > 0.99 * 10**15
    assert len({value % 2**16 for value in drawn}) > 1900


# -- repeats --------------------------------------------------------------------------------------------------


def test_successive() -> None:
    policy = Repeats("successive", 8)
    assert policy.first() == 2
    assert policy.more([1.0, 0.0]) == 6
    assert policy.more([1.0, 1.0]) == 0
    assert policy.more([None, 1.0]) == 6
    assert policy.more([1.0] * 8) == 0


def test_adaptive_follows_its_predictive_chance() -> None:
    """The chance is checked by simulation: a uniform pass rate, n equal verdicts seen, `left` more to come."""
    import random

    rng = random.Random(0)
    for n, left in ((2, 6), (4, 4), (5, 3)):
        same = other = 0
        while same + other < 4000:
            p = rng.random()
            first = [rng.random() < p for _ in range(n)]
            if len(set(first)) == 1:
                rest = [rng.random() < p for _ in range(left)]
                other += any(r != first[0] for r in rest)
                same += all(r == first[0] for r in rest)
        assert Repeats.chance_of_other(n, left) == pytest.approx(other / 4000, abs=0.03)
    policy = Repeats("adaptive", 8)
    rewards: list[float | None] = [1.0, 1.0]
    while policy.more(rewards):
        rewards.append(1.0)
    assert len(rewards) == 4
    assert policy.more([1.0, 1.0, 0.0]) == 5


def test_states() -> None:
    assert Repeats("fixed", 2).state([None, None], True) == "complete"
    assert Repeats("successive", 4).state([1.0, 1.0], True) == "stopped"
    assert Repeats("successive", 4).state([1.0, 0.0], False) == "mixed"
    assert Repeats("successive", 4).state([1.0], False) == "probing"
    assert Repeats("none", 1).state([1.0], True) == "complete"


# -- near-duplicates ------------------------------------------------------------------------------------------


@given(
    texts=st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f1", "g2", "h"]), min_size=0, max_size=9).map(" ".join),
        max_size=14,
    ),
    threshold=st.sampled_from([0.3, 0.5, 0.8, 0.9, 1.0]),
)
@settings(max_examples=300, deadline=None)
def test_near_duplicates_against_brute_force(texts: list[str], threshold: float) -> None:
    seen = NearDuplicates(threshold)
    kept: list[set[str]] = []
    for text in texts:
        mine = shingles(text)
        wanted = not any(len(mine & k) / len(mine | k) >= threshold - 1e-12 for k in kept)
        assert seen.add(text) is wanted
        if wanted:
            kept.append(mine)


@given(
    texts=st.lists(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=0, max_size=6).map(" ".join), max_size=40),
    threshold=st.sampled_from([0.3, 0.6, 0.9]),
    window=st.integers(1, 5),
)
@settings(max_examples=300, deadline=None)
def test_near_duplicates_are_looked_for_in_the_window_and_equal_ones_everywhere(
    texts: list[str], threshold: float, window: int
) -> None:
    seen = NearDuplicates(threshold, window=window)
    kept: list[str] = []
    for text in texts:
        mine = shingles(text)
        near = [shingles(k) for k in kept[-window:]]
        wanted = text not in kept and not any(len(mine & k) / len(mine | k) >= threshold - 1e-12 for k in near)
        assert seen.add(text) is wanted
        if wanted:
            kept.append(text)
        assert seen.compared == min(window, len(kept))


def test_the_index_of_near_duplicates_never_outgrows_its_window() -> None:
    seen, window = NearDuplicates(0.9, window=50), 50
    words = [f"word{n}" for n in range(400)]
    sizes = []
    for n in range(1500):
        assert seen.add(" ".join(words[(7 * n + 31 * i * i) % 400] for i in range(n % 20 + 5)) + f" {n}")
        sizes.append(seen.indexed)
        assert seen.compared <= window
    # Texts of 6 to 25 words have at most 23 shingles, and those fall in 1 to 9 buckets: see `_keys`.
    assert max(sizes) <= 9 * window
    assert max(sizes[-500:]) <= max(sizes[:500]) * 1.1


def test_a_noted_text_is_refused_and_takes_no_place() -> None:
    seen = NearDuplicates()
    seen.note("Please cancel my order now")
    assert seen.compared == 0
    assert not seen.add("please cancel my order, now!")


@given(values=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3000), max_size=3000))
@settings(max_examples=30, deadline=None)
def test_a_hash_set_is_a_set(values: list[int]) -> None:
    table, oracle = HashSet(), set()
    for value in values:
        assert table.add(value) is ((value or 1) not in oracle)
        oracle.add(value or 1)
    assert len(table) == len(oracle)


def test_a_hash_set_grows() -> None:
    table = HashSet()
    assert all(table.add(n << 40 | 5) for n in range(5000))
    assert not any(table.add(n << 40 | 5) for n in range(5000))


# -- the scripted user ----------------------------------------------------------------------------------------


def test_agreeing_to_an_action_is_not_the_end() -> None:
    said: list[str] = []

    def agent(messages: list[dict[str, Any]], *, context: Any) -> str:
        said.append(messages[-1]["content"])
        if len([m for m in messages if m["role"] == "assistant"]) == 0:
            return "Shall I cancel it? (yes/no)"
        order = next(iter(context.task["world"]["entities"]["order"]))
        context.call_tool("cancel_order", {"order_id": order})
        return "Done."

    data = simulate(
        agent, tools=[TOOL, LOOK], situations=1, repeats=1, options={"user": "scripted"},
        axes={"tool": ["cancel_order"], "stance": ["ordinary"], "world_state": ["exists"],
              "tool_condition": ["success"]},
    )  # fmt: skip
    assert said[1] == "Yes, please go ahead."
    assert data[0]["world_log"]["changes"]
    assert data[0]["ended_by"] == "user_stop"
    assert [m["role"] for m in data[0]["messages"]] == ["user", "assistant", "user", "assistant"]


def test_reasoning_never_reaches_the_user() -> None:
    data = simulate(
        lambda messages: "<think>###STOP### shall I?</think>Your order is on its way.",
        tools=[LOOK], situations=1, repeats=1, options={"user": "scripted"},
    )  # fmt: skip
    assert data[0]["ended_by"] == "user_stop"
    data = simulate(
        lambda messages: "<think>done</think>What is your order ID?",
        tools=[LOOK], situations=1, repeats=1, options={"user": "scripted", "patience": 2},
        axes={"tool": ["get_order"], "stance": ["ordinary"]},
    )  # fmt: skip
    assert data[0]["ended_by"] == "patience"
    assert "order ID" in data[0]["messages"][2]["content"]
    assert "think" not in data[0]["messages"][2]["content"]
    assert data.report.ended_by == {"patience": 1}


def test_a_user_who_does_not_want_it_says_no() -> None:
    user = ScriptedUser({}, agree=False)
    assert user.reply("Shall I proceed?") == "No, please don't change anything."
    assert user.reply("All right.") is None


# -- the engine -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_exactly_as_many_in_flight_as_asked(kind: str) -> None:
    """No clock: eight rollouts meet at a barrier that opens for eight, and nine are never seen at once."""
    inside, most = [0], [0]
    lock = threading.Lock()

    def enter() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])

    def leave() -> None:
        with lock:
            inside[0] -= 1

    barrier = threading.Barrier(8)

    def agent(message: str) -> str:
        enter()
        barrier.wait(20)
        leave()
        return "ok"

    waiting: list[asyncio.Event] = []

    async def agent_async(message: str) -> str:
        enter()
        event = asyncio.Event()
        waiting.append(event)
        if len(waiting) == 8:
            for other in waiting:
                other.set()
            waiting.clear()
        await asyncio.wait_for(event.wait(), 20)
        leave()
        return "ok"

    chosen = agent if kind == "sync" else agent_async
    data = simulate(chosen, tools=[LOOK], situations=32, repeats=1, concurrency=8)
    assert data.report.failed == 0
    assert most[0] == 8


def test_an_async_agent_that_blocks_the_loop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from whileai_simulate import engine

    monkeypatch.setattr(engine, "_GRACE_S", 0.2)
    release = threading.Event()

    async def blocker(message: str) -> str:
        release.wait(30)
        return "ok"

    try:
        data = simulate(blocker, tools=[LOOK], situations=2, repeats=1, deadline_s=0.2, options={"give_up_after": 0})
    finally:
        release.set()
    assert "blocks the event loop" in data.report.stopped


def test_a_judge_may_be_async_and_its_errors_are_not_zero() -> None:
    async def judge(row: Any) -> float:
        await asyncio.sleep(0)
        if row["index"] == 1:
            raise ValueError("no verdict")
        return 1.0

    data = simulate(seeded_agent(), tools=[LOOK], situations=2, repeats=2, judge=judge)
    assert [r["reward"] for r in data] == [1.0, None, 1.0, None]
    assert [r["status"] for r in data] == ["ok", "error", "ok", "error"]


def test_the_outcome_check_drives_successive_repeats() -> None:
    data = simulate(
        honest_agent(), tools=[LOOK, TOOL], situations=12, repeats=6, repeat_policy="successive", judge=Outcome()
    )
    assert len(data) < 72
    assert data.report.groups["saved"] == 72 - len(data)


# -- sizing and the command -----------------------------------------------------------------------------------


def test_recommend() -> None:
    small = recommend([LOOK], mode="rl", rollout_usd=0.01, rollout_s=2.0)
    assert small.situations == max(small.array_rows, small.precision_tasks)
    assert small.rollouts == small.situations * 8
    assert small.usd == pytest.approx(small.rollouts * 0.01)
    # Half width 0.1 at the worst case: 1.96 * 0.5 / sqrt(n) <= 0.1 needs 97 tasks.
    assert small.precision_tasks == 97
    assert "rollouts" in str(small)
    json.dumps(small.to_dict())
    with pytest.raises(ParameterError):
        recommend([LOOK], half_width=0.0)


def wai(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command = SimulateCommand()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(words)))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([LOOK, TOOL]), encoding="utf-8")
    policy = tmp_path / "policy.md"
    policy.write_text("You must be kind.", encoding="utf-8")
    out = tmp_path / "rows.jsonl"
    words = ["--tools", str(tools), "--policy", str(policy), "--situations", "4", "--repeats", "2", "--quiet"]
    assert wai("--agent", "seeded", *words, "--out", str(out)) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 8
    told = capsys.readouterr().out
    assert "4 tasks, 8 rollouts" in told and f"wrote 8 rows to {out}" in told
    assert wai("--agent", "honest", *words) == 0
    assert wai("--agent", "seeded", *words, "--preflight") == 0
    plain = capsys.readouterr().out
    assert "get_order: read, get order" in plain
    assert "does nothing" not in plain
    assert wai("--agent", "seeded", *words, "--preflight", "--judge", "simulate/outcome") == 0
    assert "does nothing, empty: mean reward 0.00" in capsys.readouterr().out
    assert wai("--agent", "seeded", *words, "--out", str(out)) == 0
    told = capsys.readouterr().out
    assert f"already finished: 8 rows in {out}" in told and "wrote" not in told
    own = tmp_path / "mine.py"
    own.write_text("def agent(message):\n    return 'ok'\n", encoding="utf-8")
    assert wai("--agent", f"{own}:agent", *words) == 0
