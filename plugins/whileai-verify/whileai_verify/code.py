r"""CodeExec: code passes its tests, in isolation, with a verdict that it cannot reach.

The candidate runs in a sandbox of its own. Tests run in a second one, and cases are compared in this process; between
them cross plain values and nothing else. A candidate can therefore end its process, patch its own interpreter or print
what it likes: it can neither see what is expected nor say that it passed. Success is a fact about the tests' process:
every declared test ran there to its end.

What a task gives (all under `privileged` by default):

* `tests`: a test program: plain asserts, `test_*` functions and `Test*` classes, unittest cases, or HumanEval's
  `check(candidate)`;
* or `cases`: a list of `{"input": [arguments], "expected": value}` for a function, or `{"stdin": text, "stdout": text}`
  for a program;
* `entry_point`: the name under test; `files`: further files by path.

Example:
    >>> row = {"final_text": "def f(x):\n    return x + 1", "privileged": {"tests": "assert f(1) == 2"}}
    >>> CodeExec()(row)["reward"]
    1.0
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Example
from whileai_verify.codetext import Code, defined_names, find_code
from whileai_verify.compare import same_number
from whileai_verify.defaults import CODE_FLOAT_TOL
from whileai_verify.rowview import Verdict, check_options, lookup, not_scored, reply_of, verdict
from whileai_verify.sandbox import LEVELS, Limits, LocalSandbox, SandboxError, SandboxJob, SandboxResult

__all__ = ["CodeExec", "Sandbox", "same_output", "same_typed"]


class Sandbox(Protocol):
    """A backend of the kind `sandboxes`."""

    def run(self, job: SandboxJob) -> SandboxResult:
        """Run one job to its end; raise `SandboxError` when the sandbox fails, never for what the candidate does."""


def same_typed(got: Any, expected: Any, float_tol: float = 0.0) -> bool:
    """Return whether a value is the expected one, with the types of the expected side.

    `True` is not 1, `2.0` is not 2, `None` is not `"None"`; an int stands for an equal float, and a tuple for a list,
    because JSON has no tuples.
    """
    if isinstance(expected, float):
        return type(got) in (int, float) and same_number(got, expected, float_tol)
    if isinstance(expected, list):
        return (
            type(got) in (list, tuple)
            and len(got) == len(expected)
            and all(same_typed(g, e, float_tol) for g, e in zip(got, expected, strict=True))
        )
    if type(got) is not type(expected):
        return False
    if isinstance(expected, tuple):
        return len(got) == len(expected) and all(
            same_typed(g, e, float_tol) for g, e in zip(got, expected, strict=True)
        )
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(
            type(_key(got, k)) is type(k) and same_typed(got[k], e, float_tol) for k, e in expected.items()
        )
    return bool(got == expected)


def _key(mapping: dict[Any, Any], key: Any) -> Any:
    return next(k for k in mapping if k == key)


def same_output(got: bytes, expected: str | bytes) -> bool:
    """Return whether a program printed the expected text: the same lines in order, blanks at line ends aside."""
    want = expected if isinstance(expected, bytes) else expected.encode("utf-8", "surrogateescape")
    return _lines(got) == _lines(want)


def _lines(data: bytes) -> list[bytes]:
    return [line.rstrip() for line in data.replace(b"\r\n", b"\n").rstrip().split(b"\n")]


def _row(reply: str) -> dict[str, Any]:
    return {"final_text": reply, "privileged": {"tests": "assert f(1) == 2\nassert f(5) == 6"}}


class CodeExec:
    """1 when the code of the reply passes every test; 0 when it does not, does not end, or breaks out of its limits.

    A failure of the sandbox or of the tests themselves is not scored.

    Args:
        score: `all` (1 only when every test passes), or `fraction` (the share that passes).
        entry_point: Name under test; `None` reads `entry_field`, else finds the last function of the code.
        isolation: Level that is required at least: `namespaces`, `landlock` or `process`; `None` takes the strongest
            that the machine has. The evidence names the one that held, and its layers.
        limits: A `Limits`, or some of its fields by name.
        float_tol: Relative tolerance when a returned float is compared with an expected one (cases).
        prefix: Dotted field of the row with text that stands before a completion (HumanEval: `prompt`); used when the
            reply does not define the entry point itself.
        sandbox: A backend, or the name of one of the kind `sandboxes`.
        tests_field: Dotted field with a test program.
        cases_field: Dotted field with cases.
        entry_field: Dotted field with the entry point.
        files_field: Dotted field with further files, path to text.
        threshold: Reward from which a rollout passes.
    """

    examples = (
        Example(_row("```python\ndef f(x):\n    return x + 1\n```"), 1.0),
        Example(_row("```python\nimport os\nos._exit(0)\n```"), 0.0),
        Example(_row(""), 0.0),
        Example({"final_text": "def f(x): return 1"}, None),
    )

    def __init__(
        self,
        *,
        score: Literal["all", "fraction"] = "all",
        entry_point: str | None = None,
        isolation: Literal["namespaces", "landlock", "process"] | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        float_tol: float = CODE_FLOAT_TOL.value,
        prefix: str | None = None,
        sandbox: Sandbox | str = "local",
        tests_field: str = "privileged.tests",
        cases_field: str = "privileged.cases",
        entry_field: str = "privileged.entry_point",
        files_field: str = "privileged.files",
        threshold: float = 1.0,
    ) -> None:
        check_options(score=(score, ("all", "fraction")), isolation=(isolation, (None, *LEVELS)))
        try:
            self.limits = limits if isinstance(limits, Limits) else Limits(**(limits or {}))
        except TypeError as error:
            raise ParameterError(f"limits: {error}", fix=f"fields are {', '.join(Limits.__slots__)}") from None
        self.score, self.entry_point, self.isolation, self.float_tol = score, entry_point, isolation, float_tol
        self.prefix, self.threshold = prefix, threshold
        self.sandbox = _backend(sandbox)
        self.tests_field, self.cases_field = tests_field, cases_field
        self.entry_field, self.files_field = entry_field, files_field

    def __call__(self, row: Mapping[str, Any]) -> Verdict:
        """Return the verdict on one row."""
        tests, cases = lookup(row, self.tests_field), lookup(row, self.cases_field)
        if not tests and not cases:
            return not_scored("missing", f"the row has no {self.tests_field} and no {self.cases_field}")
        if tests and not isinstance(tests, str):
            return not_scored("error", f"{self.tests_field} is not a text")
        reply = reply_of(row)
        if not reply.strip():
            return verdict(0, "the reply is empty")
        named = self.entry_point or lookup(row, self.entry_field) or None
        code = self._code(row, reply, named)
        if code is None:
            return verdict(0, "the reply holds no code")
        try:
            return self._tests(row, code, tests, named) if tests else self._cases(code, cases, named)
        except SandboxError as error:
            return not_scored("error", error.what)

    def _code(self, row: Mapping[str, Any], reply: str, named: str | None) -> Code | None:
        code = find_code(reply, named)
        if code is None:
            return None
        files = dict(code.files)
        before = lookup(row, self.prefix) if self.prefix else None
        if isinstance(before, str) and named and named not in (defined_names(files[code.main]) or []):
            files[code.main] = before + _body(files[code.main], reply)
        given = lookup(row, self.files_field)
        if isinstance(given, Mapping):
            files.update({str(k): str(v) for k, v in given.items()})  # the task's files win over the candidate's
        return Code(files, code.main)

    def _job(self, code: Code, **what: Any) -> SandboxResult:
        return self.sandbox.run(SandboxJob(code.files, code.main, limits=self.limits, level=self.isolation, **what))

    def _tests(self, row: Mapping[str, Any], code: Code, tests: str, named: str | None) -> Verdict:
        try:
            ast.parse(code.files[code.main])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return verdict(0, f"the code does not compile: {type(error).__name__}")
        entry = named or _last_function(code)
        before = lookup(row, self.prefix) if self.prefix else ""
        result = self._job(code, tests=tests, entry_point=entry, trusted=before if isinstance(before, str) else "")
        if result.harness:
            return not_scored("error", result.problem, **_evidence(result))
        total = max(1, len(result.results))
        passed = sum(problem == "" for problem in result.results.values())
        if result.stopped or result.problem:
            reason = _stopped(result, self.limits)
            share = passed / total if self.score == "fraction" and len(result.results) > passed else 0.0
            return verdict(share, reason, passed=passed, total=total, **_evidence(result))
        reward = passed / total if self.score == "fraction" else float(passed == total)
        reason = f"{passed} of {total} tests pass"
        failed = {n: p for n, p in result.results.items() if p}
        return verdict(reward, reason, passed=passed, total=total, failed=failed, **_evidence(result))

    def _cases(self, code: Code, cases: Any, named: str | None) -> Verdict:
        if not isinstance(cases, list) or not all(isinstance(c, Mapping) for c in cases):
            return not_scored("error", f"{self.cases_field} is not a list of cases")
        programs = [c for c in cases if "stdout" in c]
        if (programs and len(programs) != len(cases)) or not all("stdout" in c or "expected" in c for c in cases):
            return not_scored("error", f"{self.cases_field}: each case needs 'expected', or each needs 'stdout'")
        return self._programs(code, programs) if programs else self._functions(code, cases, named)

    def _functions(self, code: Code, cases: list[Mapping[str, Any]], named: str | None) -> Verdict:
        entry = named or _last_function(code)
        if entry is None:
            return verdict(0, "the code defines no function", passed=0, total=len(cases))
        calls = [
            (entry, c["input"] if isinstance(c.get("input"), list) else [c.get("input")], dict(c.get("kwargs") or {}))
            for c in cases
        ]
        result = self._job(code, calls=calls)
        hits = [
            kind == "value" and same_typed(value, case["expected"], self.float_tol)
            for (kind, value), case in zip(result.values, cases, strict=False)
        ]
        return self._tally(sum(hits), len(cases), result)

    def _programs(self, code: Code, cases: list[Mapping[str, Any]]) -> Verdict:
        passed = 0
        result: SandboxResult | None = None
        for case in cases:
            given = case.get("stdin", "")
            result = self._job(
                code, stdin=given.encode("utf-8", "surrogateescape") if isinstance(given, str) else bytes(given)
            )
            right = not result.stopped and result.exit == 0 and same_output(result.stdout, case["stdout"])
            passed += right
            if not right and self.score == "all":
                break
        assert result is not None
        return self._tally(passed, len(cases), result)

    def _tally(self, passed: int, total: int, result: SandboxResult) -> Verdict:
        reward = passed / total if self.score == "fraction" else float(passed == total)
        reason = f"{passed} of {total} cases pass"
        if passed < total and (result.stopped or result.problem):
            reason += f"; {_stopped(result, self.limits)}"
        return verdict(reward, reason, passed=passed, total=total, **_evidence(result))


def _backend(sandbox: Sandbox | str) -> Sandbox:
    if not isinstance(sandbox, str):
        return sandbox
    if sandbox == "local":
        return _local()
    from whileai_kernel.registry import make

    backend: Sandbox = make("sandboxes", sandbox)
    return backend


_LOCAL: list[LocalSandbox] = []


def _local() -> LocalSandbox:
    if not _LOCAL:
        _LOCAL.append(LocalSandbox())
    return _LOCAL[0]


def _body(block: str, reply: str) -> str:
    """Return a completion as it continues a prompt: an indented body, kept or brought to one indentation."""
    text = block if block.strip() else reply
    first = next((line for line in text.split("\n") if line.strip()), "")
    if first[:1] in (" ", "\t"):
        return text
    return "\n".join("    " + line if line.strip() else line for line in text.split("\n"))


def _last_function(code: Code) -> str | None:
    try:
        tree = ast.parse(code.files[code.main])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for usual in ("solve", "solution"):
        if usual in names:
            return usual
    return names[-1] if names else None


def _stopped(result: SandboxResult, limits: Limits) -> str:
    return {
        "time": f"the code did not end within {limits.time_s:g} s",
        "memory": f"the code's processes used more than {limits.memory_mb} MiB together",
        "output": f"the code printed more than {limits.output_kb} KiB",
    }.get(result.stopped, result.problem or "the code's process ended early")


def _evidence(result: SandboxResult) -> dict[str, Any]:
    out: dict[str, Any] = {"isolation": result.level, "layers": list(result.layers)}
    if result.stopped:
        out["stopped"] = result.stopped
    return out
