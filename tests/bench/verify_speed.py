"""How fast the verifiers are: rows a second, pool against library, pooled and cold sandbox.

Run: python tests/bench/verify_speed.py [--rows 100000] [--humaneval FILE]
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from whileai_verify import (
    CodeExec,
    ExactMatch,
    Includes,
    JSONField,
    MathEqual,
    MultipleChoice,
    Numeric,
    Regex,
    verify_rows,
)


def row(reply: str, gold: Any) -> dict[str, Any]:
    """Return a minimal row."""
    return {"task_id": "t", "prompt": "p", "final_text": reply, "privileged": {"reference": gold}}


def timed(label: str, count: int, work: Callable[[], Any]) -> None:
    """Run work once and print its rate, by the clock and by the CPU time of this process."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    here = f"{1e6 * cpu / count:10,.1f} us of CPU here"
    sys.stdout.write(
        f"{label:<46} {seconds:8.2f} s {count / seconds:10,.0f} /s {1e6 * seconds / count:12,.1f} us, {here}\n"
    )


def simple(rows: int) -> None:
    """Verifiers that run in place."""
    reasoning = "First I add the numbers, then I check the result once more. " * 5
    for label, verifier, reply, gold in (
        ("exact_match", ExactMatch(), "Paris", "Paris"),
        ("includes", Includes(), reasoning + "Paris", "Paris"),
        ("regex (in place)", Regex(r"\b\d{4}\b"), reasoning + "1207", None),
        ("numeric", Numeric(), reasoning + "\n#### 1,234", "1234"),
        ("multiple_choice", MultipleChoice(), reasoning + "\n**Answer:** (B)", "B"),
        ("json_field", JSONField("a"), '```json\n{"a": 1}\n```', 1),
    ):
        data = [row(reply, gold)] * rows
        timed(f"{label}, calls", rows, lambda v=verifier, d=data: [v(r) for r in d])  # type: ignore[misc]
    data = [row("#### 7", "7")] * (rows // 10)
    timed("numeric through verify_rows", len(data), lambda: verify_rows(data, Numeric(), threads=1))


def mathematics() -> None:
    """MathEqual through its pool, beside the library in this process."""
    verifier = MathEqual()
    pairs = [(rf"\frac{{{n}}}{{7}}", rf"\frac{{{2 * n}}}{{14}}") for n in range(1, 200)]
    timed("math_equal, first call (starts a worker)", 1, lambda: verifier.equal(*pairs[0]))
    timed("math_equal, one thread", len(pairs), lambda: [verifier.equal(*p) for p in pairs])
    with ThreadPoolExecutor(2) as pool:
        timed("math_equal, two threads", len(pairs), lambda: list(pool.map(lambda p: verifier.equal(*p), pairs)))
    from math_verify import parse, verify

    def library() -> None:
        for gold, said in pairs:
            verify(
                parse(f"${gold}$", parsing_timeout=None), parse(f"${said}$", parsing_timeout=None), timeout_seconds=None
            )

    library()
    timed("math-verify in this process, no deadline", len(pairs), library)
    timed(
        "math_equal, a sum of 10^7 terms (one deadline)",
        1,
        lambda: MathEqual(deadline=2.0).equal("1", r"\sum_{k=1}^{10000000} \frac{1}{k^3+\sin k}"),
    )
    timed("math_equal, the next answer", 1, lambda: verifier.equal(*pairs[0]))


def code(humaneval: Path | None) -> None:
    """The sandbox: cold start, pooled candidates, HumanEval."""
    from whileai_verify import sandbox

    tests = {"final_text": "def f(x): return x + 1", "privileged": {"tests": "assert f(1) == 2"}}
    cases = {"final_text": "def f(x): return x + 1", "privileged": {"cases": [{"input": [1], "expected": 2}]}}
    program = {"final_text": "print(1)", "privileged": {"cases": [{"stdin": "", "stdout": "1"}]}}
    verifier = CodeExec()
    timed("code_exec, cold (starts the server)", 1, lambda: verifier(cases))
    sys.stdout.write(f"isolation: {sandbox.strongest_level()}, {', '.join(verifier(cases)['layers'])}\n")
    for label, each in (("cases", cases), ("program", program), ("test program", tests)):
        timed(f"code_exec, pooled, {label}", 40, lambda e=each: [verifier(e) for _ in range(40)])  # type: ignore[misc]
    if humaneval is None or not humaneval.exists():
        return
    with gzip.open(humaneval, "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    rows = [
        {
            "prompt": p["prompt"],
            "final_text": p["canonical_solution"],
            "privileged": {"tests": p["test"], "entry_point": p["entry_point"]},
        }
        for p in problems
    ]
    check = CodeExec(prefix="prompt")
    with ThreadPoolExecutor(2) as pool:
        timed("HumanEval, two threads", len(rows), lambda: list(pool.map(check, rows)))


def main() -> None:
    """Run every part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    default = Path(__file__).resolve().parents[3] / "shared" / "data" / "HumanEval.jsonl.gz"
    parser.add_argument("--humaneval", type=Path, default=default)
    args = parser.parse_args()
    simple(args.rows)
    mathematics()
    code(args.humaneval)


if __name__ == "__main__":
    main()
