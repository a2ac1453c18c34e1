"""Which agent, judge, tool or user a journal belongs to: not its name, and not its source alone."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.tools import tool
from whileai_simulate import simulate
from whileai_simulate.fingerprint import fingerprint
from whileai_simulate.journal import JournalError
from whileai_simulate.world import World

WORD = "one"


def closure(word: Any) -> Any:
    def agent(message: str) -> str:
        return f"{word}"

    return agent


def default(word: Any) -> Any:
    def agent(message: str, word: Any = word) -> str:
        return f"{word}"

    return agent


def keyword_default(word: Any) -> Any:
    def agent(message: str, *, word: Any = word) -> str:
        return f"{word}"

    return agent


def wrapped(word: Any) -> Any:
    inner = closure(word)

    @functools.wraps(inner)
    def outer(message: str) -> Any:
        return inner(message)

    return outer


class Speaker:
    def __init__(self, word: Any) -> None:
        self.word = word

    def __call__(self, message: str) -> str:
        return f"{self.word}"

    def say(self, message: str) -> str:
        return f"{self.word}"


class Slotted:
    __slots__ = ("word",)

    def __init__(self, word: Any) -> None:
        self.word = word

    def __call__(self, message: str) -> str:
        return f"{self.word}"


@dataclasses.dataclass
class Config:
    word: Any

    def __call__(self, message: str) -> str:
        return f"{self.word}"


def executed(word: Any) -> Any:
    space: dict[str, Any] = {}
    exec(f"def agent(message): return str({word!r})", space)
    return space["agent"]


def of_module(word: Any) -> Any:
    space: dict[str, Any] = {"__name__": "somewhere", "WORD": word}
    exec("def agent(message): return helper()\ndef helper(): return WORD", space)
    return space["agent"]


def plain(message: str, word: Any) -> str:
    return f"{word}"


MAKERS: dict[str, Callable[[Any], Any]] = {
    "closure": closure,
    "a value deep in a closure": lambda word: closure({"sampling": [{"temperature": word}]}),
    "default": default,
    "keyword default": keyword_default,
    "partial": lambda word: functools.partial(plain, word=word),
    "partial of a partial": lambda word: functools.partial(functools.partial(plain), word=word),
    "wrapped": wrapped,
    "object": Speaker,
    "object with a mapping": lambda word: Speaker({"model": word}),
    "object with an object": lambda word: Speaker(Config(word)),
    "method": lambda word: Speaker(word).say,
    "slots": Slotted,
    "dataclass": Config,
    "exec": executed,
    "constant of the module, in a helper": of_module,
    "class made in a function": lambda word: type("Agent", (), {"__call__": lambda self, message: f"{word}"})(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_tells_agents_apart_is_seen(name: str) -> None:
    make = MAKERS[name]
    assert fingerprint(make("a")) == fingerprint(make("a"))
    assert fingerprint(make("a")) != fingerprint(make("b"))
    assert fingerprint(make(1)) != fingerprint(make("1"))


@pytest.mark.parametrize("name", MAKERS)
def test_another_agent_of_one_factory_is_refused(name: str, tmp_path: Path) -> None:
    make = MAKERS[name]
    simulate(make("a"), situations=2, repeats=1, checkpoint=tmp_path / "j", progress=False)
    again = simulate(make("a"), situations=2, repeats=1, checkpoint=tmp_path / "j", progress=False)
    assert len(again) == 2
    with pytest.raises(JournalError, match="agent"):
        simulate(make("b"), situations=2, repeats=1, checkpoint=tmp_path / "j", progress=False)


def test_two_lambdas_of_one_line_are_two() -> None:
    one, two = (lambda message: message + message), (lambda message: message * 2)
    assert fingerprint(one) != fingerprint(two)


def test_what_an_agent_counts_is_no_part_of_it(tmp_path: Path) -> None:
    seen: list[str] = []
    by_word: dict[str, int] = {}
    count = 0

    def agent(message: str) -> str:
        nonlocal count
        count += 1
        seen.append(message)
        by_word[message] = by_word.get(message, 0) + 1
        return "ok"

    class Counting:
        def __init__(self) -> None:
            self.calls = 0
            self.seen: list[str] = []
            self.held: dict[str, str] = {}

        def __call__(self, message: str) -> str:
            self.calls += 1
            self.seen.append(message)
            self.held[message] = "ok"
            return "ok"

    objects = [agent, Counting(), Counting().__call__, lambda message: seen.append(message) or "ok"]
    for n, each in enumerate(objects):
        for _ in range(2):  # the same object again, after it has counted
            data = simulate(each, situations=3, repeats=1, checkpoint=tmp_path / str(n), progress=False)
            assert len(data) == 3


def test_cycles_and_strange_values_have_a_fingerprint() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for value in (loop, object(), len, print, [loop, loop], {1: "a", "b": 2}, {3, "x"}, range, sys, float("nan")):
        assert fingerprint(closure(value)) == fingerprint(closure(value))


def test_it_is_the_same_in_every_process() -> None:
    program = (
        "from whileai_simulate import seeded_agent, honest_agent\n"
        "from whileai_simulate.fingerprint import fingerprint\n"
        "def make(x):\n    return lambda m: (x, {'a', 'b', 'c', 'd'})\n"
        "print(fingerprint(make({'k', 'l', 'm'})), fingerprint(seeded_agent()), fingerprint(honest_agent()))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]


def judge_of(value: float) -> Any:
    def judge(row: Any) -> float:
        return value

    return judge


def tool_of(value: str) -> Any:
    @tool(kind="read")
    def get_order(order_id: str) -> dict[str, str]:
        """Look up an order."""
        return {"value": value}

    return get_order


class Answer(World):
    def answer(self, info: Any, arguments: Any) -> str:
        return self.note(info.name, arguments, "read", "one")


class Talk:
    def __init__(self, word: str) -> None:
        self.word = word

    def start(self, task: Any, seed: int, patience: int) -> Any:
        return type("User", (), {"reply": lambda self, spoken: None, "ended_by": "user_stop"})()


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "judge": ({"judge": judge_of(1.0)}, {"judge": judge_of(0.0)}),
    "body of a tool": ({"tools": [tool_of("a")]}, {"tools": [tool_of("b")]}),
    "own function": (
        {"tools": [tool_of("a")], "options": {"execute": {"get_order": closure("a")}}},
        {"tools": [tool_of("a")], "options": {"execute": {"get_order": closure("b")}}},
    ),
    "world": (
        {"options": {"world": Answer}},
        {"options": {"world": type("Answer", (World,), {"answer": lambda self, info, arguments: "two"})}},
    ),
    "user": ({"user": Talk("a")}, {"user": Talk("b")}),
    "reference of a seed": (
        {"seeds": [{"prompt": "hi there", "reference": "1"}]},
        {"seeds": [{"prompt": "hi there", "reference": "2"}]},
    ),
    "text of a task": (
        {"tasks": [{"task_id": "t", "prompt": "a"}], "situations": None},
        {"tasks": [{"task_id": "t", "prompt": "b"}], "situations": None},
    ),
    "name on the rows": ({"options": {"agent_name": "a"}}, {"options": {"agent_name": "b"}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_else_shapes_the_rows_is_another_call(name: str, tmp_path: Path) -> None:
    first, second = CHANGES[name]

    def run(call: dict[str, Any]) -> Any:
        call = {"situations": 2, "repeats": 1, "checkpoint": tmp_path / "j", "progress": False, **call}
        return simulate(lambda message: "ok", **call)

    run(first)
    run(first)
    with pytest.raises(JournalError, match="another call"):
        run(second)
