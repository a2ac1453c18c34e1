"""Extraction, text, calls, state, rules, SQL, combinators, the decorator, batches, audits and the command."""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel import make, spec_of
from whileai_kernel.errors import ParameterError
from whileai_verify import (
    SQL,
    All,
    Arguments,
    Called,
    ExactMatch,
    FinalState,
    Gate,
    Includes,
    JSONSchema,
    MultipleChoice,
    Not,
    NotCalled,
    Numeric,
    Sequence,
    Weighted,
    audit,
    averify_rows,
    null_agents,
    verifier,
    verify_rows,
)
from whileai_verify import (
    Any as AnyOf,
)
from whileai_verify.cli import VerifyCommand
from whileai_verify.compare import first_difference
from whileai_verify.extract import boxes, code_blocks, find_json, marked_answer, strip_decoration
from whileai_verify.number import read_number
from whileai_verify.work_sql import ordered


def row(reply: str = "x", **private: Any) -> dict[str, Any]:
    return {"task_id": "t", "prompt": "p", "final_text": reply, "privileged": private}


# --- extraction ------------------------------------------------------------------------------------------------------


def test_boxes() -> None:
    assert [b.value for b in boxes(r"\boxed{1} \boxed{\frac{1}{2}} \boxed{unclosed")] == ["1", r"\frac{1}{2}"]
    assert [b.value for b in boxes(r"\boxed{a \boxed{b}}")] == [r"a \boxed{b}"]
    assert [b.value for b in boxes(r"\boxed 5 and \fbox{6}")] == ["5", "6"]
    assert [b.value for b in boxes(r"\boxed{\{1,2\}}")] == [r"\{1,2\}"]
    assert boxes("no box") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The answer is 5.", "5"),
        ("Answer: 5 because 2+3", "5"),
        ("**Answer:** 5", "5"),
        ("Final answer:\n\n5\n", "5"),
        ("#### 5", "5"),
        ("A: 5", "5"),
        (r"\boxed{5}. The answer is obvious", "5"),
        ("The answer is 4. Final answer: 5", "5"),
        ("Answer: $x + 1$ as shown", "$x + 1$"),
        ("nothing", None),
    ],
)
def test_marked_answers(text: str, value: str | None) -> None:
    found = marked_answer(text)
    assert (found.value if found else None) == value


def test_own_markers() -> None:
    assert marked_answer("RESULT= 5\nRESULT= 6", ["RESULT="]).value == "6"  # type: ignore[union-attr]
    assert Numeric(markers=["RESULT="])(row("RESULT= 6\nAnswer: 5", reference="6"))["reward"] == 1.0


def test_decoration() -> None:
    for text in ("**B**", "$B$", r"$\text{B}$.", "`B`", r"\(B\)", "__B__", r"**$\mathrm{B}$**"):
        assert strip_decoration(text) == "B"
    assert strip_decoration('"B"', quotes=True) == "B"


def test_code_blocks() -> None:
    text = "~~~py\na\n~~~\n````\n```\ninner\n```\n````\n```python\nopen"
    assert [(b.language, b.code, b.closed) for b in code_blocks(text)] == [
        ("py", "a\n", True),
        ("", "```\ninner\n```\n", True),
        ("python", "open", False),
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)
    )
)
@settings(max_examples=80, deadline=None)
def test_json_is_found_whole_and_fenced(value: Any) -> None:
    text = json.dumps(value)
    assert find_json(text).value == value
    if isinstance(value, list | dict):
        assert find_json(f"Here:\n```json\n{text}\n```\n").value == value


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
@settings(max_examples=80, deadline=None)
def test_numbers_are_exact(top: int, bottom: int) -> None:
    from fractions import Fraction

    assert read_number(f"{top}").value == top  # type: ignore[union-attr]
    assert read_number(f"{top:,}").value == top  # type: ignore[union-attr]
    assert read_number(f"{top}/{bottom}").value == Fraction(top, bottom)  # type: ignore[union-attr]


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_reply_breaks_a_verifier(text: str) -> None:
    for check in (Numeric(), ExactMatch(answer="marked"), Includes()):
        assert check(row(text, reference="7"))["reward"] in (0.0, 1.0)
    assert MultipleChoice()(row(text, reference="B"))["reward"] in (0.0, 1.0)


# --- text ------------------------------------------------------------------------------------------------------------


def test_text_normalisation_is_an_argument() -> None:
    assert ExactMatch()(row("ＰＡＲＩＳ\u00a0 ", reference="paris"))["reward"] == 1.0
    assert ExactMatch(ignore_case=False)(row("PARIS", reference="Paris"))["reward"] == 0.0
    assert ExactMatch(nfkc=False)(row("x²", reference="x2"))["reward"] == 0.0
    assert ExactMatch(ignore_punctuation=True)(row("Paris!", reference="Paris"))["reward"] == 1.0
    assert ExactMatch(answer="marked")(row("The answer is **Paris**.", reference="Paris"))["reward"] == 1.0
    assert ExactMatch()(row("a", reference=["b", "a"]))["reward"] == 1.0
    assert ExactMatch()(row("a", reference={"x": 1}))["reward"] is None
    assert ExactMatch(reference="privileged.gold.name")(row("a", gold={"name": "a"}))["reward"] == 1.0


def test_includes_modes() -> None:
    assert Includes(["cat", "dog"], mode="all")(row("a cat and a dog"))["reward"] == 1.0
    assert Includes(["cat", "dog"], mode="none")(row("a bird"))["reward"] == 1.0
    assert Includes(["cat"], mode="none")(row(""))["reward"] == 0.0
    assert Includes(["cat"], words=False)(row("concatenate"))["reward"] == 1.0
    assert Includes(["cat"])(row("concatenate"))["reward"] == 0.0
    with pytest.raises(ParameterError):
        Includes([])
    with pytest.raises(ParameterError):
        Includes("cat")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="did you mean"):
        Includes(["cat"], mode="alll")  # type: ignore[arg-type]


# --- calls and state -------------------------------------------------------------------------------------------------


def talk(*calls: tuple[str, str, str | None], text: str = "Done.") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    for n, (name, arguments, result) in enumerate(calls):
        call = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        if result is not None:
            messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": result})
    return {"messages": [*messages, {"role": "assistant", "content": text}], "final_text": text}


def test_called_and_not_called() -> None:
    talked = talk(("get", "{}", "ok"), ("get", "{}", '{"error": "no"}'))
    assert Called("get")(talked)["reward"] == 1.0
    assert Called("get", at_least=2)(talked)["reward"] == 1.0
    assert Called("get", at_least=2, succeeded=True)(talked)["reward"] == 0.0
    assert Called("get", at_most=1)(talked)["reward"] == 0.0
    assert Called(["get", "put"])(talked)["reward"] == 0.0
    assert NotCalled("put")(talked)["reward"] == 1.0
    assert NotCalled("get")(talked)["reward"] == 0.0
    assert NotCalled("get")(talk(text=""))["reward"] == 0.0
    assert Called("get")({"final_text": "x"})["reward"] is None
    with pytest.raises(ParameterError):
        Called([])


def test_sequence() -> None:
    talked = talk(("a", "{}", "ok"), ("b", "{}", "ok"), ("c", "{}", "ok"))
    for names, match, expected in (
        (["a", "c"], "subsequence", 1.0),
        (["c", "a"], "subsequence", 0.0),
        (["a", "c"], "contiguous", 0.0),
        (["b", "c"], "contiguous", 1.0),
        (["a", "b", "c"], "exact", 1.0),
        (["a", "b"], "exact", 0.0),
    ):
        assert Sequence(names, match=match)(talked)["reward"] == expected  # type: ignore[arg-type]


def test_arguments() -> None:
    talked = talk(("get", '{"id": "7", "n": 2}', "ok"), ("get", "{broken", "ok"))
    assert Arguments("get", expected={"id": "7", "n": 2})(talked)["reward"] == 1.0
    assert Arguments("get", expected={"id": 7, "n": 2})(talked)["reward"] == 0.0
    assert Arguments("get", expected={"id": "7"})(talked)["reward"] == 0.0
    assert Arguments("get", expected={"id": "7"}, match="subset")(talked)["reward"] == 1.0
    assert Arguments("get", expected={"id": "7"}, match="subset", which="last")(talked)["reward"] == 0.0
    assert Arguments("put", expected={})(talked)["reward"] == 0.0
    pytest.importorskip("jsonschema")
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "pattern": "^[0-9]$"}}}
    assert Arguments("get", schema=schema)(talked)["reward"] == 1.0


def test_schema_refuses_what_it_cannot_check() -> None:
    pytest.importorskip("jsonschema")
    with pytest.raises(ParameterError, match="cannot be checked"):
        JSONSchema({"type": "string", "format": "sku"})
    with pytest.raises(ParameterError, match="refers to"):
        JSONSchema({"$ref": "https://example.org/schema.json"})
    with pytest.raises(ParameterError, match="not a valid"):
        JSONSchema({"type": "strange"})
    evil = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
    got = JSONSchema(evil, deadline=0.5)(row(json.dumps({"s": "a" * 40 + "b"})))
    assert (got["reward"], got["status"]) == (None, "timeout")


def test_final_state_names_the_first_difference_only() -> None:
    base = {**talk(("put", "{}", "ok")), "world": {"state": {"orders": {"1": {"status": "open"}}}}}
    base["privileged"] = {"state": {"orders": {"1": {"status": "shipped"}}}}
    got = FinalState()(base)
    assert got["difference"] == "orders.1.status: another value"
    assert "shipped" not in str(got)
    own = FinalState(actual=lambda r: {"orders": {"1": {"status": "shipped"}}})
    assert own(base)["reward"] == 1.0


@given(st.lists(st.integers(0, 3), max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_unordered_lists_are_multisets(items: list[int], draw: Any) -> None:
    other = list(items)
    draw.shuffle(other)
    assert first_difference(items, other, unordered=("",)) is None
    if items:
        assert first_difference(items, [*other[1:], 9], unordered=("",)) is not None


def test_tolerant_matching_does_not_strand_an_item() -> None:
    assert first_difference([1.0, 1.5], [1.5, 1.9], unordered=("",), abs_tol=0.5) is None
    assert first_difference([1.9, 1.4], [1.5, 1.9], unordered=("",), abs_tol=0.45) is None
    assert first_difference([1.0, 1.0], [1.0, 2.0], unordered=("",), abs_tol=0.5) is not None


# --- SQL -------------------------------------------------------------------------------------------------------------

SCRIPT = """CREATE TABLE t (id INTEGER, name TEXT, x REAL);
INSERT INTO t VALUES (1, 'a', 0.1), (2, 'b', 0.2), (2, 'b', 0.2), (3, NULL, 0.3);"""


@pytest.mark.parametrize(
    ("gold", "query", "expected"),
    [
        ("SELECT name FROM t", "SELECT name FROM t ORDER BY id DESC", 1.0),
        ("SELECT name FROM t ORDER BY id", "SELECT name FROM t ORDER BY id DESC", 0.0),
        ("SELECT name FROM t ORDER BY id", "SELECT name FROM t ORDER BY id ASC", 1.0),
        ("SELECT name FROM t", "SELECT DISTINCT name FROM t", 0.0),
        ("SELECT id, name FROM t", "SELECT name, id FROM t", 0.0),
        ("SELECT sum(x) FROM t", "SELECT 0.8", 1.0),
        ("SELECT sum(x) FROM t", "SELECT 0.81", 0.0),
        ("SELECT id FROM t WHERE id = 2", "SELECT '2' FROM t WHERE id = 2", 0.0),
        ("SELECT name FROM t WHERE id = 3", "SELECT NULL", 1.0),
        ("SELECT count(*) FROM t", "SELECT 4.0", 1.0),
        ("SELECT id FROM t", "DELETE FROM t", 0.0),
        ("SELECT id FROM t", "SELECT id FROM t; DROP TABLE t", 0.0),
        ("SELECT id FROM t", "ATTACH 'x.db' AS y", 0.0),
        ("SELECT id FROM t", "PRAGMA writable_schema = 1", 0.0),
        ("SELECT id FROM t", "SELECT load_extension('x')", 0.0),
        ("SELECT id FROM t", "SELECT nothing FROM t", 0.0),
        ("SELECT id FROM t", "no query", 0.0),
        ("SELECT id FROM t WHERE id > 9", "SELECT id FROM t WHERE id > 8", 1.0),
    ],
)
def test_sql(gold: str, query: str, expected: float) -> None:
    got = SQL()(row(f"```sql\n{query}\n```", reference=gold, database={"script": SCRIPT}))
    assert got["reward"] == expected, got


def test_sql_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    db = sqlite3.connect(path)
    db.executescript(SCRIPT)
    db.commit()
    db.close()
    before = path.read_bytes()
    check = SQL(str(path), deadline=1.0)
    assert check(row("SELECT id FROM t", reference="SELECT id FROM t"))["reward"] == 1.0
    assert check(row("UPDATE t SET id = 9", reference="SELECT id FROM t"))["reward"] == 0.0
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    assert check(row(endless, reference="SELECT 1"))["reward"] == 0.0
    assert check(row("SELECT 1", reference="SELECT nothing"))["reward"] is None
    assert SQL(str(tmp_path / "absent"))(row("SELECT 1", reference="SELECT 1"))["reward"] is None
    assert path.read_bytes() == before


def test_order_by_is_found_outside_of_brackets_only() -> None:
    assert ordered("SELECT a FROM t ORDER BY a")
    assert not ordered("SELECT a FROM (SELECT a FROM t ORDER BY a)")
    assert not ordered("SELECT 'order by' FROM t -- order by x")


# --- combinators -----------------------------------------------------------------------------------------------------


def fixed(value: Any) -> Any:
    def part(r: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return {"reward": None, "status": "missing"} if value is None else value

    return part


@pytest.mark.parametrize(
    ("parts", "both", "either"),
    [
        ([1, 1], 1.0, 1.0),
        ([1, 0], 0.0, 1.0),
        ([0, 0], 0.0, 0.0),
        ([1, None], None, 1.0),
        ([0, None], 0.0, None),
        ([None, None], None, None),
        ([1, ValueError("x")], None, 1.0),
        ([0.5, 1], 0.0, 1.0),
    ],
)
def test_three_valued_logic(parts: list[Any], both: float | None, either: float | None) -> None:
    made = [fixed(p) for p in parts]
    assert All(made)(row())["reward"] == both
    assert AnyOf(made)(row())["reward"] == either


def test_weighted_gate_not() -> None:
    assert Weighted([fixed(1), fixed(0)], [3, 1])(row())["reward"] == 0.75
    assert Weighted({"a": fixed(0.5), "b": fixed(None)}, {"a": 1, "b": 9})(row())["reward"] == 0.5
    assert Weighted([fixed(1), fixed(None)], missing="open")(row())["reward"] is None
    assert Gate(fixed(1), fixed(0.4))(row())["reward"] == 0.4
    assert Gate(fixed(0), fixed(ValueError("not asked")))(row())["reward"] == 0.0
    assert Gate(fixed(None), fixed(1))(row())["reward"] is None
    assert Not(fixed(0.25))(row())["reward"] == 0.75
    assert Not(fixed(None))(row())["reward"] is None
    assert Not(fixed(0))(row(""))["reward"] == 0.0


def test_combinations_are_checked_when_made() -> None:
    for make_one in (lambda: All([]), lambda: AnyOf({}), lambda: Weighted([]), lambda: Weighted([fixed(1)], [0])):
        with pytest.raises(ParameterError):
            make_one()
    with pytest.raises(ParameterError, match="required"):
        Weighted({"a": fixed(1)}, required=["b"])
    with pytest.raises(ParameterError, match="weights"):
        Weighted([fixed(1)], [1, 2])
    with pytest.raises(ParameterError, match="must be a verifier"):
        All([Numeric])


def test_parts_by_name_and_async_parts() -> None:
    named = All(["exact_match", {"name": "verify/numeric", "rel_tol": 0.1}])
    assert named(row("7", reference="7"))["reward"] == 1.0

    async def later(r: Any) -> float:
        await asyncio.sleep(0)
        return 1.0

    assert asyncio.run(All([later, fixed(1)])(row()))["reward"] == 1.0
    assert asyncio.run(Gate(later, later)(row()))["reward"] == 1.0
    assert asyncio.run(Gate(fixed(1), later)(row()))["reward"] == 1.0


# --- decorator, batch, audit, command --------------------------------------------------------------------------------


def test_decorator() -> None:
    @verifier
    def same(reply: str, reference: str) -> bool:
        """Compare."""
        return reply == reference

    @verifier(threshold=0.5)
    def whole(anything: Any) -> float:
        return 0.5

    assert same(row("a", reference="a"))["reward"] == 1.0
    assert same(row("a"))["reward"] is None
    assert (same.__name__, same.__doc__) == ("same", "Compare.")
    assert (whole(row()), whole.threshold) == (0.5, 0.5)
    with pytest.raises(ParameterError, match="does not have"):

        @verifier
        def odd(reply: str, gold: str) -> bool:
            return True


def test_batches() -> None:
    rows = [row(str(i), reference=str(i % 2)) | {"task_id": str(i)} for i in range(6)]
    before = json.dumps(rows)
    graded = verify_rows(rows, "verify/exact_match")
    assert [g["reward"] for g in graded] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert graded[0]["scorer"]["id"] == "verify/exact_match"
    assert json.dumps(rows) == before
    assert asyncio.run(averify_rows(rows, "exact_match", threads=2)) == graded
    again = verify_rows(graded, fixed(0), threads=1, name="second")
    assert again[0]["judgments"][0]["reward"] == 1.0
    broken = verify_rows(rows, fixed(ValueError("no")))
    assert [(b["reward"], b["status"]) for b in broken] == [(None, "error")] * 6

    async def later(r: Any) -> float:
        return 1.0

    assert verify_rows(rows[:2], later)[0]["reward"] == 1.0
    with pytest.raises(ParameterError):
        verify_rows(rows, "exact_match", threads=0)


def test_audit_estimates_with_intervals() -> None:
    rows = [
        row(str(i % 4), reference="0") | {"task_id": str(i // 4), "reward": float(i % 4 in (0, 1))} for i in range(80)
    ]
    report = audit("exact_match", rows, "recorded")
    assert report.false_negative.share == 0.5
    assert report.false_positive.share == 0.0
    assert report.false_positive.high > 0.0
    assert report.agreement.share == 0.75
    assert len(report.disagreements) == 20
    assert report.false_negative.low < 0.5 < report.false_negative.high
    assert "false negatives 0.500" in str(report)
    assert json.dumps(report.to_dict())
    assert "<table>" in report._repr_html_()
    unscored = audit(fixed(None), rows, "recorded")
    assert (unscored.only_second, unscored.agreement.share) == (80, None)


def test_audit_interval_is_over_tasks() -> None:
    few = [
        row("1", reference=str(int(t < 5))) | {"task_id": str(t), "reward": 1.0} for t in range(10) for _ in range(4)
    ]
    many = [r for r in few for _ in range(10)]
    a, b = audit("exact_match", few, "recorded"), audit("exact_match", many, "recorded")
    assert (a.false_negative.low, a.false_negative.high) == pytest.approx((b.false_negative.low, b.false_negative.high))


def test_null_agents() -> None:
    tasks = [row("", reference=str(i)) | {"task_id": str(i), "prompt": f"what is {i}?"} for i in range(4)]
    assert null_agents("exact_match", tasks).flagged == ()
    paid = null_agents(lambda r: bool(r["final_text"]), tasks)
    assert set(paid.flagged) == {"refuse", "echo", "constant", "filler", "ask_back"}
    assert "echo" in null_agents("includes", tasks).flagged
    assert null_agents("exact_match", tasks, agents={"mine": lambda t: "2"}).paid["mine"] == ("2",)
    assert json.dumps(paid.to_dict())
    with pytest.raises(ParameterError):
        null_agents("exact_match", [])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows = [
        {"schema_version": 1, "task_id": str(i), "rollout_id": f"r{i}", "index": 0, "prompt": "p", "final_text": str(i),
         "reward": None, "status": "missing", "markers": {}, "privileged": {"reference": "1"}}
        for i in range(3)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    command = VerifyCommand()
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert (
        command.run(parser.parse_args([str(path), "--with", "number", "--param", "rel_tol=0.5", "--out", str(out)]))
        == 0
    )
    assert capsys.readouterr().out.startswith("passed 1 of 3 (0.333), mean reward 0.333, not scored 0")
    assert [json.loads(line)["reward"] for line in out.read_text(encoding="utf-8").splitlines()] == [0.0, 1.0, 0.0]
    assert command.run(parser.parse_args([str(path), "--with", "exact_match", "--second", "number"])) == 0
    assert "agreement 1.000" in capsys.readouterr().out
    assert command.run(parser.parse_args([str(path), "--with", "exact_match", "--null-agents"])) == 0


def test_made_by_name_carries_its_spec() -> None:
    made = make("verifiers", "verify/numeric", rel_tol=0.1)
    spec = spec_of(made)
    assert spec is not None
    assert (spec.id, spec.params) == ("verify/numeric", {"rel_tol": 0.1})


def test_light_module_is_light() -> None:
    code = (
        "import sys, whileai_verify, whileai_verify.plugin\n"
        "heavy = {'pydantic', 'numpy', 'sympy', 'math_verify', 'jsonschema', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
