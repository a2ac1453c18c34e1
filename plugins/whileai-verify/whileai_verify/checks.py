"""Conformance checks of the kind `sandboxes`: what a backend has to do so that verdicts can rest on it."""

from __future__ import annotations

from typing import Any

from whileai_verify.sandbox import Limits, SandboxJob, SandboxResult

__all__ = ["SANDBOX_CHECKS"]

_ADD = {"solution.py": "def f(x):\n    return x + 1\n"}


def _run(subject: Any, source: str, **job: Any) -> SandboxResult:
    result: SandboxResult = subject.component.run(SandboxJob({"solution.py": source}, "solution.py", **job))
    return result


def runs_a_program(subject: Any) -> None:
    """A sandbox that changes input or output fails right programs."""
    got = _run(subject, "import sys\nprint(sys.stdin.read()[::-1])\nsys.exit(3)", stdin=b"abc")
    assert (got.stdout.strip(), got.exit) == (b"cba", 3), f"printed {got.stdout!r}, exit code {got.exit}"


def calls_with_plain_values(subject: Any) -> None:
    """A sandbox that passes objects on lets a candidate decide the comparison."""
    lie = "class T:\n    def __eq__(s, o): return True\ndef f(x):\n    return x if x else T()\n"
    got = subject.component.run(SandboxJob({"solution.py": lie}, "solution.py", calls=[("f", [7], {}), ("f", [0], {})]))
    assert got.values[0] == ("value", 7), f"7 came back as {got.values[0]!r}"
    assert got.values[1][0] != "value" or got.values[1][1].__eq__(5) is not True, (
        "an object with its own equality came back"
    )


def runs_every_test(subject: Any) -> None:
    """A test that did not run is not a test that passed."""
    tests = "def test_a(): assert f(1) == 2\ndef test_b(): assert f(1) == 3\n"
    got = subject.component.run(SandboxJob(_ADD, "solution.py", tests=tests, entry_point="f"))
    assert set(got.results) == {"test_a", "test_b"}, f"tests reported: {sorted(got.results)}"
    assert got.results["test_a"] == "", f"a right answer fails: {got.results['test_a']}"
    assert got.results["test_b"], "a wrong answer passes"


def survives_an_early_exit(subject: Any) -> None:
    """A candidate that ends its process must not end in success."""
    got = _run(subject, "import os\nos._exit(0)", tests="assert f(1) == 2", entry_point="f")
    assert got.stopped or got.problem or any(got.results.values()), "ending the process passed"


def ends_what_does_not_end(subject: Any) -> None:
    """A candidate that never ends stops a whole run."""
    got = _run(subject, "while True: pass", stdin=b"", limits=Limits(time_s=1))
    assert got.stopped == "time", f"an endless program was stopped by {got.stopped!r}"


def names_its_isolation(subject: Any) -> None:
    """A verdict whose isolation is unknown cannot be trusted later."""
    got = _run(subject, "print(1)", stdin=b"")
    assert got.level, "the result names no level"
    assert got.layers, "the result names no layer"


def keeps_secrets_out(subject: Any) -> None:
    """A key in the candidate's environment is a key that a model can print."""
    import os

    os.environ["WHILEAI_CONFORMANCE_SECRET"] = "secret"
    try:
        got = _run(subject, "import os\nprint('WHILEAI_CONFORMANCE_SECRET' in os.environ)", stdin=b"")
    finally:
        del os.environ["WHILEAI_CONFORMANCE_SECRET"]
    assert got.stdout.strip() == b"False", "the environment of the parent is visible"


SANDBOX_CHECKS = (
    runs_a_program,
    calls_with_plain_values,
    runs_every_test,
    survives_an_early_exit,
    ends_what_does_not_end,
    names_its_isolation,
    keeps_secrets_out,
)
