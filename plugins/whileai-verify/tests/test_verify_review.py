"""What a review tried: sets against sympy, tool calls, states, reasons that leak, memory of several processes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from whileai_kernel.models import from_row
from whileai_verify import (
    SQL,
    Arguments,
    Called,
    CodeExec,
    ExactMatch,
    FinalState,
    Includes,
    JSONField,
    JSONSchema,
    MathEqual,
    MultipleChoice,
    Numeric,
    Sequence,
    verify_rows,
)
from whileai_verify.compare import first_difference
from whileai_verify.doubt import doubtful, open_box, second_thought
from whileai_verify.prose import last_number
from whileai_verify.sandbox import Limits, LocalSandbox, SandboxJob, strongest_level


def row(*calls: tuple[str, str], results: dict[int, str | None] | None = None, **more: Any) -> dict[str, Any]:
    made = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(calls)
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    if made:
        messages.append({"role": "assistant", "content": "", "tool_calls": made})
    for i in range(len(calls)):
        text = (results or {}).get(i, "ok")
        if text is not None:
            messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": text})
    return {"messages": [*messages, {"role": "assistant", "content": "Done."}], "final_text": "Done.", **more}


def test_unions_of_intervals_against_sympy() -> None:
    sympy = pytest.importorskip("sympy")
    pytest.importorskip("math_verify")
    draw = random.Random(5)

    def one() -> Any:
        a, b = sorted(draw.sample(range(-6, 7), 2))
        low: Any = -sympy.oo if draw.random() < 0.15 else a
        high: Any = sympy.oo if draw.random() < 0.15 else b
        return sympy.Interval(low, high, draw.random() < 0.5, draw.random() < 0.5)

    def shown(parts: list[Any], words: bool) -> str:
        if words:
            out = []
            for p in parts:
                low = "" if p.start == -sympy.oo else f"{p.start} {'<' if p.left_open else '<='} "
                high = "" if p.end == sympy.oo else f" {'<' if p.right_open else '<='} {p.end}"
                out.append(f"{low}x{high}")
            return " or ".join(out) if all("<" in o for o in out) else ""
        return r" \cup ".join(
            f"{'(' if p.left_open else '['}{sympy.latex(p.start)}, {sympy.latex(p.end)}{')' if p.right_open else ']'}"
            for p in parts
        )

    verifier = MathEqual()
    for _ in range(60):
        first = [one() for _ in range(draw.randint(1, 3))]
        second = [one() for _ in range(draw.randint(1, 3))] if draw.random() < 0.4 else list(reversed(first))
        if draw.random() < 0.3:
            union = sympy.Union(*first)
            second = (
                [union]
                if isinstance(union, sympy.Interval)
                else [p for p in union.args if isinstance(p, sympy.Interval)]
            )
        texts = shown(first, False), shown(second, draw.random() < 0.5) or shown(second, False)
        want = float(sympy.Union(*first) == sympy.Union(*second))
        assert verifier.equal(*texts)["reward"] == want, texts
        assert verifier.equal(*reversed(texts))["reward"] == want, texts


def test_the_same_text_is_the_same_answer() -> None:
    pytest.importorskip("math_verify")
    equal = MathEqual().equal
    assert equal(r"\triangle ABC \sim \triangle DEF", r"\triangle ABC\sim\triangle DEF")["reward"] == 1.0
    assert equal(r"7^{7^7}", r"$7^{7^7}$")["reward"] == 1.0
    assert equal("2 1/3", "21/3")["reward"] == 0.0
    assert equal("2^1 0", "2^10")["reward"] != 1.0


@pytest.mark.parametrize(
    ("verifier", "made", "want"),
    [
        (Called("a", at_least=2), row(("a", "{}"), ("b", "{}"), ("a", "{}")), 1),
        (Called("a", at_most=1), row(("a", "{}"), ("a", "{}")), 0),
        (Called("A"), row(("a", "{}")), 0),
        (Called("a", succeeded=True), row(("a", "{}"), results={0: '{"error": "x"}'}), 0),
        (Called("a", succeeded=True), row(("a", "{}"), results={0: '{"error": null}'}), 1),
        (Called("a", succeeded=True), row(("a", "{}"), results={0: None}), 0),
        (Sequence(["a", "a"], match="contiguous"), row(("a", "{}"), ("b", "{}"), ("a", "{}")), 0),
        (Sequence(["b", "a"]), row(("a", "{}"), ("b", "{}"), ("a", "{}")), 1),
        (Sequence(["a"], match="exact"), row(("a", "{}"), ("b", "{}")), 0),
        (Arguments("a", expected={"k": 1}), row(("a", '{"k": 1.0}')), 1),
        (Arguments("a", expected={"k": 1}), row(("a", '{"k": true}')), 0),
        (Arguments("a", expected={"k": 2}), row(("a", '{"k": 1, "k": 2}')), 0),
        (Arguments("a", expected={"k": 1}), row(("a", '{"k": NaN}')), 0),
        (Arguments("a", expected={}), row(("a", "")), 1),
        (Arguments("a", expected={"k": {"a": 1}}, match="subset"), row(("a", '{"k": {"a": 1, "b": 2}}')), 1),
        (Arguments("a", expected={"k": [1]}, match="subset"), row(("a", '{"k": [1, 2]}')), 0),
        (Arguments("a", expected={"k": 1}, which="last"), row(("a", '{"k": 1}'), ("a", '{"k": 2}')), 0),
    ],
)
def test_tool_calls(verifier: Any, made: dict[str, Any], want: float) -> None:
    assert verifier(made)["reward"] == want


@pytest.mark.parametrize(
    ("state", "goal", "options", "want"),
    [
        ({"x": 10}, {"x": 10.0}, {}, 1),
        ({"x": True}, {"x": 1}, {}, 0),
        ({"p": [1, 1, 2]}, {"p": [1, 2, 2]}, {"unordered": ["p"]}, 0),
        ({"o": {"1": {"p": [{"a": 1}, {"a": 2}]}}}, {"o": {"1": {"p": [{"a": 2}, {"a": 1}]}}}, {"unordered": ["p"]}, 1),
        ({"p": [[1, 2], [3]]}, {"p": [[3], [2, 1]]}, {"unordered": ["p"]}, 0),
        ({"x": 1, "y": 2}, {"x": 1}, {}, 0),
        ({"x": 1, "y": 2}, {"x": 1}, {"subset": True}, 1),
        ({"x": 1.0001}, {"x": 1}, {"rel_tol": 1e-3}, 1),
        ({"x": []}, {"x": {}}, {}, 0),
        ({"x": None}, {}, {}, 0),
    ],
)
def test_final_state(state: Any, goal: Any, options: dict[str, Any], want: float) -> None:
    made = row(("a", "{}"), world={"state": state}, privileged={"state": goal})
    assert FinalState(**options)(made)["reward"] == want


def test_unordered_lists_with_tolerance_against_every_pairing() -> None:
    import itertools

    draw = random.Random(0)
    for _ in range(300):
        n = draw.randint(1, 5)
        a, b = ([draw.randint(0, 50) / 100 for _ in range(n)] for _ in range(2))
        if any(abs(abs(x - y) - 0.155) < 1e-9 for x in a for y in b):
            continue
        want = any(all(abs(x - y) <= 0.155 for x, y in zip(a, p, strict=True)) for p in itertools.permutations(b))
        assert (first_difference(a, b, unordered=("",), abs_tol=0.155) is None) == want


SECRET = "zq4217"


@pytest.mark.parametrize(
    ("verifier", "reply", "private"),
    [
        (ExactMatch(), "x", {"reference": SECRET}),
        (Includes(), "x", {"reference": SECRET}),
        (Numeric(), "4218", {"reference": "4217"}),
        (MultipleChoice(), "B", {"reference": SECRET, "options": [SECRET, "x"]}),
        (JSONField("a"), '{"a": {"x": 1}}', {"reference": {SECRET: 1}}),
        (JSONField(), '{"a": 1}', {"reference": {"a": SECRET}}),
        (JSONField(), '{"a": 1}', {"reference": {"a": 1, SECRET: 2}}),
        (FinalState(), "x", {"state": {"orders": {SECRET: 1}}, "required_calls": []}),
        (FinalState(), "x", {"state": {"a": 1}, "required_calls": [SECRET]}),
        (Called(), "x", {"calls": [SECRET]}),
        (Sequence(), "x", {"calls": [SECRET]}),
        (Arguments("a"), "x", {"reference": {SECRET: 1}}),
        (SQL(), "SELECT 1", {"reference": f"SELECT '{SECRET}'", "database": {"script": ""}}),
        (SQL(), "SELECT 1", {"reference": f"SELECT {SECRET}", "database": {"script": ""}}),
        (CodeExec(), "def f(x): return 1", {"tests": f"assert f(1) == '{SECRET}', '{SECRET}'"}),
    ],
)
def test_reasons_name_nothing_of_the_reference(verifier: Any, reply: str, private: dict[str, Any]) -> None:
    made = {**row(("a", '{"k": 1}'), world={"state": {"orders": {}}}), "final_text": reply, "privileged": private}
    got = verifier(made)
    assert got["reward"] in (0.0, None)
    assert SECRET not in str(got["reason"])
    assert "4217" not in str(got["reason"])


def test_the_difference_of_a_state_is_in_the_evidence() -> None:
    made = row(("a", "{}"), world={"state": {"orders": {}}}, privileged={"state": {"orders": {"7": 1}}})
    assert FinalState()(made)["difference"] == "orders.7: missing"


def test_a_schema_that_cannot_be_evaluated_is_not_scored() -> None:
    pytest.importorskip("jsonschema")
    for schema in ({"$ref": "#/nope"}, {"$ref": "#"}, {"$ref": "#/nope", "pattern": "a"}):
        got = JSONSchema()({"final_text": "{}", "privileged": {"schema": schema}})
        assert (got["reward"], got["status"]) == (None, "error"), schema


def test_an_earlier_reward_without_a_status_stays_readable() -> None:
    given = {"task_id": "t", "prompt": "p", "final_text": "4", "privileged": {"reference": "4"}, "reward": 0.5}
    graded = verify_rows([given], "exact_match")[0]
    assert [(j.reward, j.status) for j in from_row(graded).judgments] == [(0.5, "ok")]
    json.dumps(graded)


def test_doubt() -> None:
    for text in ("Is it 12?", "It is not 12.", "maybe 12", "12 is wrong.", "12 eggs. I cannot solve this."):
        at = text.index("12")
        assert doubtful(text, at, at + 2), text
    for text in ("It is 12.", "12 of them are not red.", "I am sure it is 12"):
        at = text.index("12")
        assert not doubtful(text, at, at + 2), text
    assert second_thought(". Or maybe 13.")
    assert not second_thought(". Or so it seems.")
    assert open_box(r"so \boxed{5")
    assert not open_box(r"so \boxed{\frac{1}{2}}")


def test_prose_numbers_are_read_in_linear_time() -> None:
    for text in ("1 " * 200_000, "(" * 200_000, "not " * 100_000 + "5", "\\boxed{5}" + " ," * 100_000 + "\\boxed{6}"):
        last_number(text)
        Numeric()({"final_text": text, "privileged": {"reference": "5"}})
        MultipleChoice()({"final_text": text, "privileged": {"reference": "A"}})


KIDS = """
import os, time
kids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        block = bytearray({mib} << 20)
        for i in range(0, len(block), 4096):
            block[i] = 1
        {then}
        os._exit(0)
    kids.append(pid)
for pid in kids:
    os.waitpid(pid, 0)
print("done")
"""


@pytest.mark.parametrize("then", ["time.sleep(5)", "[(os.write(1, b'.'), time.sleep(0.005)) for _ in range(900)]"])
def test_processes_that_keep_their_own_limit_have_one_together(then: str) -> None:
    if strongest_level() != "namespaces":
        pytest.skip("several processes are tried at the level namespaces only")
    job = SandboxJob(
        {"solution.py": KIDS.format(mib=80, then=then)},
        "solution.py",
        stdin=b"",
        limits=Limits(memory_mb=200, time_s=20),
    )
    got = LocalSandbox().run(job)
    assert got.stopped == "memory"
    assert "memory" in got.layers


def test_memory_that_processes_share_counts_once() -> None:
    if strongest_level() != "namespaces":
        pytest.skip("several processes are tried at the level namespaces only")
    few = SandboxJob(
        {"solution.py": KIDS.format(mib=10, then="pass")}, "solution.py", stdin=b"", limits=Limits(memory_mb=200)
    )
    assert LocalSandbox().run(few).stdout == b"done\n"
    source = "block = bytearray(60 << 20)\nfor i in range(0, len(block), 4096): block[i] = 1\n"
    source += KIDS.format(mib=1, then="sum(block[::4096])")
    import os

    if os.getuid() == 0:  # an ordinary user cannot read how pages are shared
        job = SandboxJob({"solution.py": source}, "solution.py", stdin=b"", limits=Limits(memory_mb=160))
        assert LocalSandbox().run(job).stdout == b"done\n"
