"""Bad rows against every public call: a clear error that names row and field, or the right number with a note.

Run this file as a program to print the table, or with the names of cases to print these alone:
`python test_measure_matrix.py "a million tasks"` takes a minute or two.
"""

import functools
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from whileai_kernel.errors import RowError, WhileaiError
from whileai_measure import (
    StopWhen,
    compare,
    coverage_gap,
    eval_variance,
    extract,
    holdout_size,
    judge_agreement,
    pass_at,
    stop_when,
)

Rows = list[Any]


def good(n: int = 12, k: int = 2) -> Rows:
    return [
        {
            "task_id": f"t{i}",
            "rollout_id": f"t{i}-{j}",
            "prompt": f"p{i}",
            "reward": float((i + j) % 2),
            "markers": {"m": 1.0},
        }
        for i in range(n)
        for j in range(k)
    ]


def with_last(**changes: Any) -> Callable[[], Rows]:
    def make() -> Rows:
        rows = good()
        rows[-1] = {k: v for k, v in {**rows[-1], **changes}.items() if v is not ...}
        return rows

    return make


RULES: list[StopWhen] = []


def _rule() -> StopWhen:
    RULES.append(stop_when(width=0.01, repeats=2))
    return RULES[-1]


CASES: dict[str, Callable[[], Rows]] = {
    "no reward": with_last(reward=...),
    "no task_id": with_last(task_id=...),
    "no task_id, no prompt": with_last(task_id=..., prompt=...),
    "task_id a number": with_last(task_id=7),
    "task_id a list": with_last(task_id=["t"]),
    "reward a list": with_last(reward=[1.0]),
    "reward text": with_last(reward="good"),
    "reward text of a number": with_last(reward="1.0"),
    "reward NaN": with_last(reward=math.nan),
    "reward infinite": with_last(reward=math.inf),
    "reward 1.5": with_last(reward=1.5),
    "reward a huge integer": with_last(reward=10**400),
    "reward true": with_last(reward=True),
    "status unknown": with_last(status="okay"),
    "reward beside an error": with_last(status="error"),
    "threshold text": with_last(threshold="1"),
    "marker text": with_last(markers={"m": "0.5"}),
    "marker NaN": with_last(markers={"m": math.nan}),
    "markers a list": with_last(markers=[1]),
    "messages text": with_last(messages="hi"),
    "axes text": with_last(axes="chat"),
    "lone surrogate": with_last(task_id="t\ud83d", prompt="p\udc00"),
    "10 MB of text": with_last(final_text="x" * 10_000_000, prompt="y" * 10_000_000),
    "row a list": lambda: [*good(), ["t0", 1.0]],
    "row null": lambda: [*good(), None],
    "rows twice": lambda: good() + good(),
    "rows twice, other reward": lambda: [*good(), {**good()[0], "reward": 1.0}],
    "empty": list,
    "one task": lambda: good(1),
    "many tasks": lambda: good(5_000),
}
CALLS: dict[str, Callable[[Rows], Any]] = {
    "extract": extract,
    "pass_at": pass_at,
    "compare before": lambda rows: compare(rows, good()),
    "compare after": lambda rows: compare(good(), rows),
    "eval_variance": lambda rows: eval_variance(rows, good()),
    "holdout_size": lambda rows: holdout_size(0.05, rows=rows),
    "judge_agreement": judge_agreement,
    "coverage_gap": coverage_gap,
    "stop_when": lambda rows: _rule()(rows),
}
# What a call does not read cannot be wrong for it.
READS = {"coverage_gap": ("row", "axes", "messages"), "compare before": ("markers",), "compare after": ("markers",)}


def outcome(case: str, call: str) -> str:
    """Return one cell: an error with its place, or ok with what was said."""
    try:
        report = CALLS[call](CASES[case]())
    except RowError as err:
        return f"error: row {err.row}, {err.field or 'row'}"
    except WhileaiError as err:
        assert err.why or err.fix
        return f"error: {err.what}"
    notes = getattr(RULES[-1] if call == "stop_when" else report, "notes", ())
    return f"ok: {'; '.join(notes)}" if notes else "ok"


def table(cases: Any = None) -> Iterator[str]:
    """Yield the matrix as text, one line per cell."""
    width = max(map(len, CASES))
    for case in cases or CASES:
        for call in CALLS:
            yield f"{case:<{width}}  {call:<15} {outcome(case, call)[:110]}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", CASES)
def test_no_cell_is_a_raw_traceback(case: str, call: str) -> None:
    text = outcome(case, call)  # anything but a WhileaiError fails here
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("case", "place"),
    [
        ("no task_id, no prompt", "row 23, task_id"),
        ("task_id a list", "row 23, task_id"),
        ("reward a list", "row 23, reward"),
        ("reward text", "row 23, reward"),
        ("reward text of a number", "row 23, reward"),
        ("reward infinite", "row 23, reward"),
        ("reward 1.5", "row 23, reward"),
        ("reward a huge integer", "row 23, reward"),
        ("status unknown", "row 23, status"),
        ("threshold text", "row 23, threshold"),
        ("row a list", "row 24, row"),
        ("row null", "row 24, row"),
        ("rows twice, other reward", "row 24, rollout_id"),
    ],
)
@pytest.mark.parametrize("call", [c for c in CALLS if c != "coverage_gap"])
def test_what_cannot_be_read_is_named(case: str, place: str, call: str) -> None:
    assert outcome(case, call) == f"error: {place}"


@pytest.mark.parametrize("call", ["compare before", "compare after"])
def test_bad_markers_are_named_where_markers_are_read(call: str) -> None:
    assert outcome("marker text", call) == "error: row 23, markers.m"
    assert outcome("markers a list", call) == "error: row 23, markers"
    assert outcome("marker text", "pass_at") == "ok"


@pytest.mark.parametrize(("case", "field"), [("axes text", "axes"), ("messages text", "messages")])
def test_coverage_names_what_it_reads(case: str, field: str) -> None:
    assert outcome(case, "coverage_gap") == f"error: row 23, {field}"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("no reward", "1 of 24 rows not scored (1 missing)"),
        ("reward NaN", "1 of 24 rows not scored (1 invalid)"),
        ("reward beside an error", "1 of 24 rows not scored (1 error)"),
        ("reward true", "booleans"),
        ("rows twice", "24 rows repeat"),
        ("empty", "no rows"),
        ("one task", "one task"),
    ],
)
def test_what_is_left_out_is_said(case: str, said: str) -> None:
    assert said in outcome(case, "pass_at")


@pytest.mark.parametrize("call", [c for c in CALLS if c not in ("extract", "coverage_gap")])
@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("no reward", "1 of 24 rows not scored (1 missing)"),
        ("reward beside an error", "1 of 24 rows not scored (1 error)"),
        ("reward true", "booleans"),
        ("rows twice", "24 rows repeat"),
    ],
)
def test_every_call_says_what_it_left_out(case: str, said: str, call: str) -> None:
    assert said in outcome(case, call)


def test_numbers_do_not_change_in_silence() -> None:
    want = pass_at(good()).pass_1
    for case in ("rows twice", "marker NaN", "10 MB of text", "markers a list"):
        assert pass_at(CASES[case]()).pass_1 == want, case
    assert pass_at(CASES["no reward"]()).rollouts == 23
    assert pass_at(CASES["reward true"]()).rollouts == 24


def test_the_table_has_every_cell() -> None:
    cases = ["no reward", "row null"]
    lines = list(table(cases))
    assert len(lines) == len(cases) * len(CALLS)
    assert sum("error: row 24, row" in line for line in lines) == len(CALLS)


if __name__ == "__main__":
    CASES["a million tasks"] = functools.cache(lambda: good(1_000_000, 1))
    for text in table(sys.argv[1:]):
        spent, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{text}  [{spent:.0f} s, {peak:.0f} MB so far]" if "million" in text else text, flush=True)
