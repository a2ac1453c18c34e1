"""The public reports on verification, extraction, reasoning blocks, choices and code, as tests."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError
from whileai_kernel.verdicts import to_judgment
from whileai_verify import (
    All,
    CodeExec,
    ExactMatch,
    FinalState,
    FormatTags,
    Includes,
    MathEqual,
    MultipleChoice,
    Numeric,
    RuleChecks,
    Weighted,
)
from whileai_verify.compare import first_difference


def row(reply: str, gold: Any = None, **private: Any) -> dict[str, Any]:
    return {"task_id": "t", "prompt": "p", "final_text": reply, "privileged": {"reference": gold, **private}}


def math(gold: str, reply: str) -> Any:
    pytest.importorskip("math_verify")
    return MathEqual()(row(reply, gold))["reward"]


BOXED = (r"\frac{2}{7}", r"so \boxed{\frac{2}{7}}")


def test_math_in_threads_and_loops() -> None:
    pytest.importorskip("math_verify")
    box: list[Any] = []
    thread = threading.Thread(target=lambda: box.append(math(*BOXED)))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(8) as pool:
        box += list(pool.map(lambda _: math(*BOXED), range(16)))

    async def inside() -> Any:
        return math(*BOXED)

    box.append(asyncio.run(inside()))
    assert box == [1.0] * 18


def test_math_that_does_not_end() -> None:
    pytest.importorskip("math_verify")
    with ThreadPoolExecutor(2) as pool:
        for reply in (r"\boxed{9^{9^{9^{9}}}}", r"\boxed{(10^{9})!}"):
            assert all(r in (0.0, None) for r in pool.map(lambda _, reply=reply: math("1", reply), range(3)))
        assert pool.submit(math, "5", r"\boxed{5}").result() == 1.0


@pytest.mark.parametrize(
    ("gold", "reply", "expected"),
    [
        ("24", r"My draft says \boxed{18}, but one row was missed, so it is \boxed{24}.", 1.0),
        ("18", r"My draft says \boxed{18}, but one row was missed, so it is \boxed{24}.", 0.0),
        ("2", r"\boxed{1 \text{ or } 2}", 0.0),
        (r"$\{1,2\}$", r"\boxed{2, 1}", 1.0),
        ("4", r"<think>maybe \boxed{4} but let me check the", 0.0),
        ("4", r"<think>\boxed{9}</think> The answer is \boxed{4}", 1.0),
        ("9", r"<think>\boxed{9}</think> The answer is \boxed{4}", 0.0),
        ("$2$", "The answer is 2 or 3", 0.0),
        ("73", "Final Answer: **73**", 1.0),
        ("$4$", r"$4\sqrt(2)$", 0.0),
        ("$10$", "$10_{2}$", 0.0),
        (r"$\frac{1}{3}$", "0.33", 0.0),
        ("$14-i$", "14.0 + -1.0i", 1.0),
    ],
)
def test_math_replies(gold: str, reply: str, expected: float) -> None:
    assert math(gold, reply) == expected


@pytest.mark.parametrize(
    ("gold", "reply", "expected"),
    [
        ("54", "6*9=54\n#### 54\n" + "prose without any digit " * 30, 1.0),
        ("54", "6*9=54\n#### 54", 1.0),
        ("54", "#### 53\nwait, recount\n#### 54", 1.0),
    ],
)
def test_number_after_marker(gold: str, reply: str, expected: float) -> None:
    assert Numeric()(row(reply, gold))["reward"] == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("ANSWER: $B$", 1.0),
        ("**ANSWER:** **B**", 1.0),
        ("ANSWER: (B).", 1.0),
        ("ANSWER: BC", 0.0),
        ("ANSWER: Because", 0.0),
    ],
)
def test_choice_decoration(reply: str, expected: float) -> None:
    assert MultipleChoice()(row(reply, "B"))["reward"] == expected


def test_unknown_check_fails_closed() -> None:
    with pytest.raises(ParameterError, match="unknown check"):
        RuleChecks([{"id": "keywords:exists_typo", "value": "tea"}])
    assert RuleChecks()(row("", checks=[{"id": "keywords:exists_typo", "value": "tea"}]))["reward"] is None
    assert RuleChecks([])(row("anything"))["reward"] is None
    assert RuleChecks()(row("anything", checks=[]))["reward"] is None


def test_repeated_check_counts_twice() -> None:
    checks = [{"id": "max_words", "value": 3}, {"id": "max_words", "value": 10}]
    got = RuleChecks(checks, score="fraction")(row("one two three four five six"))
    assert (got["passed"], got["reward"]) == ([False, True], 0.5)
    assert RuleChecks(checks)(row("one two three four five six"))["reward"] == 0.0


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>a</tool><answer>b</answer>", 0.0),
        ("<think>a<answer>b</answer>", 0.0),
        ("<think>a</think><answer>b</answer>", 1.0),
        ("<answer>b</answer><think>a</think>", 0.0),
        ("<think>a</think><think>b</think><answer>b</answer>", 0.0),
        ("<think></think><answer></answer>", 0.0),
    ],
)
def test_tags(reply: str, expected: float) -> None:
    assert FormatTags(("think", "answer"))(row(reply))["reward"] == expected


def _assertions(r: Any) -> Any:
    return {"reward": None, "status": "missing", "reason": "nothing to check"}


def _judge_is_missing(r: Any) -> Any:
    raise RuntimeError("no judge is set")


def test_vacuous_component() -> None:
    def state(r: Any) -> float:
        return 1.0

    def no_state(r: Any) -> Any:
        return {"reward": None, "status": "missing"}

    got = Weighted({"state": state, "assertions": _assertions})(row("x"))
    assert got["reward"] == 1.0
    assert got["parts"]["assertions"]["reward"] is None
    assert "not evaluated: assertions" in got["reason"]
    assert Weighted({"state": no_state, "assertions": _assertions})(row("x"))["reward"] is None
    got = Weighted({"state": state, "assertions": _judge_is_missing})(row("x"))
    assert (got["reward"], got["status"]) == (None, "error")
    required = Weighted({"state": state, "assertions": _assertions}, required=["assertions"])(row("x"))
    assert required["reward"] is None
    assert All({"state": state, "assertions": _assertions}, missing="skip")(row("x"))["reward"] == 1.0


def test_gold_never_stands_in_a_reason() -> None:
    for verifier in (Numeric(), ExactMatch(), Includes()):
        judgment = to_judgment(verifier(row("It is 4218.", "4217")))[0]
        assert judgment.reward == 0.0
        assert "4217" not in str(judgment)
    assert Numeric()(row("17", "7"))["reward"] == 0.0
    assert Includes()(row("17", "7"))["reward"] == 0.0


def test_state_of_an_agent_that_does_nothing() -> None:
    same = {"orders": {"1": "open"}}
    base = {
        "messages": [],
        "final_text": "",
        "world": {"state": same},
        "privileged": {"state": same, "initial_state": same},
    }
    assert FinalState(required_calls=["get_order"])(base)["reward"] == 0.0
    assert FinalState()(base)["reward"] == 0.0


def test_state_equality() -> None:
    a, b = {"pay": [{"id": 1}, {"id": 2}]}, {"pay": [{"id": 2}, {"id": 1}]}
    assert first_difference(a, b, unordered=["pay"]) is None
    assert first_difference({"x": 10}, {"x": 10.0}) is None
    assert first_difference({"x": "10"}, {"x": 10}) == "x: a text instead of a number"
    assert first_difference({"log": ["a", "b"]}, {"log": ["b", "a"]}) == "log[0]: another value"


def code(reply: str, **private: Any) -> Any:
    return CodeExec()(row(reply, **private))["reward"]


TESTS = "assert f(1)==2\nassert f(5)==6"


@pytest.mark.parametrize(
    ("reply", "tests", "expected"),
    [
        ("import os\nos._exit(0)", TESTS, 0.0),
        ("import sys\nsys.exit(0)", "assert f(1)==2", 0.0),
        ("class T:\n    def __eq__(s,o): return True\ndef f(x): return T()", "assert f(1)==2", 0.0),
        (
            "import builtins\nbuiltins.AssertionError=type('A',(BaseException,),{})\ndef f(x): return 0",
            "assert f(1)==2",
            0.0,
        ),
        ("def f(x): return x+1", TESTS, 1.0),
    ],
)
def test_code_exit_and_equality(reply: str, tests: str, expected: float) -> None:
    assert code(reply, tests=tests) == expected


def test_code_raise_is_not_empty() -> None:
    assert code("def solve(x):\n    raise RuntimeError('no')", cases=[{"input": [3], "expected": ""}]) == 0.0
    assert code("def solve(x):\n    return ''", cases=[{"input": [3], "expected": ""}]) == 1.0
    assert code("def solve(x):\n    return None", cases=[{"input": [3], "expected": "None"}]) == 0.0


@pytest.mark.parametrize(("printed", "expected"), [("B\nA\nA", 0.0), ("A\nB", 0.0), ("A \nB\nA\n\n", 1.0)])
def test_code_output_is_not_a_set(printed: str, expected: float) -> None:
    assert code(f"print({printed!r}, end='')", cases=[{"stdin": "", "stdout": "A\nB\nA"}]) == expected


def test_declared_tests_all_count() -> None:
    tests = "def test_1(): assert f(1) == 2\ndef test_2(): assert f(2) == 9\ndef test_3(): assert f(3) == 4\n"
    got = CodeExec()(row("def f(x): return x + 1", tests=tests))
    assert (got["reward"], got["passed"], got["total"]) == (0.0, 2, 3)
    assert CodeExec(score="fraction")(row("def f(x): return x + 1", tests=tests))["reward"] == pytest.approx(2 / 3)


def test_platform_without_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGALRM", raising=False)
    monkeypatch.delattr(signal, "setitimer", raising=False)
    assert code("def f(x): return x+1", tests="assert f(1)==2") == 1.0
    assert math("2", r"\boxed{2}") == 1.0
    assert math(r"\frac12", r"\boxed{0.5}") == 1.0
