"""The worker pool: deadlines, threads, loops, forks, memory; and Regex, which uses it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError
from whileai_verify import MathEqual, Regex
from whileai_verify.pool import Pool, WorkError, WorkTimeoutError, shared_pool
from whileai_verify.text import worst_case_steps

EVIL = [r"(a+)+$", 0, "search", "a" * 40 + "b"]
GOOD = [r"a+b", 0, "search", "aaab"]


def test_late_work_is_ended_and_the_pool_survives() -> None:
    pool = Pool("whileai_verify.work_regex", workers=1)
    assert pool.call(GOOD, 30.0) is True
    worker = pool._idle[0].process.pid
    for _ in range(3):
        with pytest.raises(WorkTimeoutError):
            pool.call(EVIL, 0.3)
        assert pool.call(GOOD, 30.0) is True
    assert pool._idle[0].process.pid == worker  # the evaluator was replaced, not the worker
    pool.close()


def test_errors_are_errors() -> None:
    pool = Pool("whileai_verify.work_regex", workers=1)
    with pytest.raises(WorkError, match="the evaluation failed"):
        pool.call(["(", 0, "search", "x"], 10.0)
    assert pool.call(GOOD, 30.0) is True
    pool.close()
    with pytest.raises(WorkError, match="could not start"):
        Pool("whileai_verify.no_such_module").call(GOOD, 1.0)


def test_a_killed_worker_is_replaced() -> None:
    pool = Pool("whileai_verify.work_regex", workers=1)
    assert pool.call(GOOD, 30.0)
    pool._idle[0].process.kill()
    pool._idle[0].process.wait()
    assert pool.call(GOOD, 30.0)
    pool.close()


def test_eight_threads_and_a_running_loop() -> None:
    pool = shared_pool("whileai_verify.work_regex", 1)

    async def inside() -> Any:
        return await asyncio.gather(*[asyncio.to_thread(pool.call, GOOD, 30.0) for _ in range(8)])

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda _: pool.call(GOOD, 30.0), range(40)))
    assert all(asyncio.run(inside()))


def test_after_a_fork() -> None:
    code = """
import os
from whileai_verify.pool import shared_pool
pool = shared_pool("whileai_verify.work_regex", 1)
good = ["a+b", 0, "search", "aaab"]
assert pool.call(good, 30.0)
pid = os.fork()
if pid == 0:
    os._exit(0 if pool.call(good, 30.0) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert pool.call(good, 30.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def row(text: str, gold: str | None = None) -> dict[str, Any]:
    return {"final_text": text, "privileged": {"reference": gold}}


def test_regex_verdicts() -> None:
    assert Regex(r"\d{4}")(row("order 1207"))["reward"] == 1.0
    assert Regex(r"\d{4}", match="full")(row("order 1207"))["reward"] == 0.0
    assert Regex("ORDER", ignore_case=True)(row("order"))["reward"] == 1.0
    assert Regex()(row("x", "("))["reward"] is None
    assert Regex("a*")(row(""))["reward"] == 0.0
    with pytest.raises(ParameterError, match="regular expression"):
        Regex("(")


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(a*)*b", r"(?:a+){10,}$", r"^(a|a)*$", r"(.*)\1\1b"])
def test_catastrophic_patterns_end(pattern: str) -> None:
    got = Regex(pattern, deadline=0.5)(row("a" * 60 + "!"))
    assert got["reward"] in (None, 0.0, 1.0)
    assert Regex("b")(row("abc"))["reward"] == 1.0


@given(st.text("ab", min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_regex_agrees_with_re(text: str) -> None:
    for pattern in (r"a+b", r"^(ab)*$", r"b{2}", r"[^a]b?"):
        assert Regex(pattern)(row(text))["reward"] == float(re.search(pattern, text) is not None)


def test_worst_case_is_an_upper_bound() -> None:
    assert worst_case_steps("abc", 100) <= 10_000
    assert worst_case_steps(r"(a+)+", 10) == float("inf")
    assert worst_case_steps(r"(a)\1", 10) == float("inf")
    assert worst_case_steps(r"a*b*c*", 1_000) >= 1e9


def test_math_pool_survives_a_pathological_answer() -> None:
    pytest.importorskip("math_verify")
    verifier = MathEqual(deadline=1.0)
    # The parser refuses towers of powers; a nest of logarithms of sums keeps the algebra system busy for longer.
    slow = r"\sum_{k=1}^{10000000} \frac{1}{k^{3}+\sin k}"
    first = verifier.equal("1", slow)
    assert first["reward"] in (0.0, None)
    assert verifier.equal(r"\frac12", "0.5")["reward"] == 1.0
    failing = MathEqual(deadline=1.0, on_timeout="fail")
    assert failing.equal("1", slow)["reward"] == 0.0
