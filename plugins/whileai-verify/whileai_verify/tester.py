"""The tests' own process: run a test program against a candidate that lives in another process.

The names that the candidate's source defines become remote objects here: a call sends its arguments as data and gets a
value back as data, so comparisons happen here, between genuine built-in objects. What the candidate's source imports
from the standard library is imported here anew. The candidate cannot see this process, its tests or its verdict, and
the verdict exists only when every declared test has run to its end here.

Known limit: tests that subclass a candidate's class, or that look into its memory, do not work across the border.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import importlib
import inspect
import io
import json
import os
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any

from whileai_verify.frames import write_frame
from whileai_verify.remote import CandidateGoneError, Link, Remote

__all__ = ["run_tests"]

MODULE = "solution"


def _defined(source: str) -> tuple[list[str], dict[str, str], list[ast.stmt], dict[str, list[str]]]:
    """Return what a candidate's source defines: names, async functions, its imports, its exception classes."""
    names: list[str] = []
    kinds: dict[str, str] = {}
    imports: list[ast.stmt] = []
    classes: dict[str, list[str]] = {}
    stack: list[ast.stmt] = list(ast.parse(source).body)
    while stack:
        node = stack.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
            if isinstance(node, ast.AsyncFunctionDef):
                kinds[node.name] = "async"
        elif isinstance(node, ast.ClassDef):
            names.append(node.name)
            classes[node.name] = [b.id for b in node.bases if isinstance(b, ast.Name)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names += [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for field in ("body", "orelse", "finalbody"):
                stack += getattr(node, field, [])
            for handler in getattr(node, "handlers", []):
                stack += handler.body
    return list(dict.fromkeys(names)), kinds, imports, classes


def _exceptions(classes: dict[str, list[str]]) -> dict[str, type[BaseException]]:
    """Return real exception classes for those that the candidate's source declares."""
    made: dict[str, type[BaseException]] = {}
    for _ in range(len(classes)):
        for name, bases in classes.items():
            found = [made.get(b) or getattr(builtins, b, None) for b in bases]
            real = tuple(f for f in found if isinstance(f, type) and issubclass(f, Exception))
            if name not in made and real:
                made[name] = type(name, real, {"__init__": lambda self, *a, **k: Exception.__init__(self, *a)})
    return made


def _standard(imports: list[ast.stmt]) -> dict[str, Any]:
    """Import again, here, what the candidate's source imports from the standard library."""
    scope: dict[str, Any] = {}
    for node in imports:
        module = node.module if isinstance(node, ast.ImportFrom) else None
        roots = [module or ""] if module else [a.name for a in getattr(node, "names", [])]
        if all(r.partition(".")[0] in sys.stdlib_module_names for r in roots) and not getattr(node, "level", 0):
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), "imports", "exec"), scope)
    scope.pop("__builtins__", None)
    return scope


def _trusted(source: str, entry_point: str | None) -> dict[str, Any]:
    """Return what the task's own text defines beside the entry point, executed here (helpers of a prompt)."""
    scope: dict[str, Any] = {"__name__": "prompt"}
    with contextlib.suppress(Exception):
        exec(compile(source, "prompt", "exec", dont_inherit=True), scope)
    return {k: v for k, v in scope.items() if not k.startswith("__") and k != entry_point}


def candidate_names(link: Link, job: dict[str, Any], tree: ast.Module) -> dict[str, Any]:
    """Return the names that a test program sees.

    The candidate's names are remote objects. Library modules, and what the task's own text defines, are never taken
    from the candidate: a candidate that redefines `math` or a helper of the tests would otherwise grade itself.
    """
    source, entry_point = job["source"], job["entry_point"]
    names, kinds, imports, classes = _defined(source)
    link.errors = _exceptions(classes)
    scope = {**_standard(imports), **_trusted(job["trusted"], entry_point)}
    bases = {n.value.id for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    for name in names:
        if name != entry_point and name in scope:
            continue
        if name in sys.stdlib_module_names and name in bases:
            scope[name] = importlib.import_module(name)
        elif name in link.errors:
            scope[name] = link.errors[name]
        elif not hasattr(builtins, name) or name == entry_point:
            try:
                value = link.ask({"op": "name", "name": name})
            except (AttributeError, RuntimeError):
                continue
            if isinstance(value, Remote) and name in classes and name[:1].isupper():
                object.__setattr__(value, "_class", True)
            scope[name] = _async(value) if kinds.get(name) == "async" else value
    return scope


def _async(remote: Any) -> Any:
    """Return a coroutine function for an async function of the candidate, so that `asyncio` accepts it."""
    if not isinstance(remote, Remote):
        return remote

    async def function(*args: Any, **kwargs: Any) -> Any:
        value = remote(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value

    return function


class Outcome:
    """Which declared tests passed, and what went wrong in the others."""

    def __init__(self) -> None:
        self.results: dict[str, str] = {}  # "" means passed

    def run(self, name: str, body: Callable[[], Any]) -> None:
        """Run one test to its end and note what happened."""
        try:
            value = body()
            if inspect.iscoroutine(value):
                asyncio.run(value)
        except CandidateGoneError as error:
            self.results[name] = str(error)
            raise
        except unittest.SkipTest:
            return
        except BaseException as error:  # noqa: BLE001 - any exception is a failed test, SystemExit too
            self.results[name] = _what(error)
        else:
            self.results[name] = ""


def _what(error: BaseException) -> str:
    return type(error).__name__  # never the message: it may quote an expected value


def run_tests(fd: int, job: dict[str, Any]) -> dict[str, Any]:
    """Run the tests of a job and return `{"results": {test: problem}}`, `{"error": ...}` or `{"gone": ...}`.

    Args:
        fd: The connection to the candidate.
        job: `tests`, `source` and `trusted` (texts), `entry_point`, `limit` (bytes of one value).
    """
    link = Link(fd, job["limit"])
    outcome = Outcome()
    try:
        first = link.receive()
        if first.get("loaded") is not True:
            return {"gone": f"the code does not load: {str(first.get('error', ''))[:200]}"}
        try:
            tree = ast.parse(job["tests"])
        except (SyntaxError, ValueError, RecursionError) as error:
            return {"error": f"the tests do not compile: {type(error).__name__}"}
        scope = candidate_names(link, job, tree)
        _install_module(scope)
        with contextlib.redirect_stdout(io.StringIO()):
            _run_program(tree, scope, job["entry_point"], outcome)
    except CandidateGoneError as error:
        return {"gone": str(error), "results": outcome.results}
    except ImportError as error:
        return {"error": f"the tests need the module {error.name}"}
    except OSError as error:
        return {"error": f"the tests cannot be run: {type(error).__name__}"}
    if not outcome.results:
        return {"error": "the tests check nothing"}
    return {"results": outcome.results}


def _install_module(scope: dict[str, Any]) -> None:
    module = types.ModuleType(MODULE)
    module.__dict__.update(scope)
    sys.modules[MODULE] = module


def _asserts(nodes: list[ast.stmt]) -> int:
    """Count the checks that run when a module is executed: asserts and method calls named assert*, not in functions."""
    count = 0
    stack: list[ast.AST] = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        count += isinstance(node, ast.Assert)
        stack += list(ast.iter_child_nodes(node))
    return count


def _run_program(tree: ast.Module, scope: dict[str, Any], entry_point: str | None, outcome: Outcome) -> None:
    """Execute a test program, then the tests that it defines."""
    if any(isinstance(n, ast.Import) and any(a.name == "pytest" for a in n.names) for n in ast.walk(tree)):
        importlib.import_module("pytest")
    space: dict[str, Any] = {**scope, "__name__": "tests", "__builtins__": builtins}
    body = tree.body
    # A main block would run the tests a second time and leave with an exit code; the tests are collected below.
    body = [n for n in body if not _is_main_block(n)]
    code = compile(ast.Module(body, []), "tests", "exec", dont_inherit=True)
    bare = _asserts(body)
    module_error: list[BaseException] = []

    def execute() -> None:
        try:
            exec(code, space)
        except ModuleNotFoundError as error:
            module_error.append(error)
            raise

    outcome.run("module", execute)
    if module_error:
        raise module_error[0]
    if outcome.results.get("module"):
        return
    if not bare:
        del outcome.results["module"]
    tests = _collect(space, set(scope))
    check = space.get("check")
    if inspect.isfunction(check) and len(inspect.signature(check).parameters) == 1 and entry_point in scope:
        candidate = scope[entry_point]
        tests = [("check", lambda: check(candidate))] + [t for t in tests if t[0] != "check"]
    for name, _ in tests:
        outcome.results[name] = "did not run"
    for name, body_ in tests:
        outcome.run(name, body_)


def _is_main_block(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


Test = tuple[str, Callable[[], Any]]


def _collect(space: dict[str, Any], inherited: set[str]) -> list[Test]:
    """Return the tests that a program defines: `test_*` functions, `Test*` classes, unittest cases."""
    tests: list[Test] = []
    for name, value in list(space.items()):
        if name in inherited and not (inspect.isfunction(value) and value.__module__ == "tests"):
            continue
        if inspect.isfunction(value) and name.startswith("test"):
            tests += _function_tests(name, value)
        elif isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == "tests":
            tests += [(f"{name}.{m}", _case(value, m)) for m in unittest.defaultTestLoader.getTestCaseNames(value)]
        elif isinstance(value, type) and name.startswith("Test") and value.__module__ == "tests":
            for method in [m for m in dir(value) if m.startswith("test")]:
                tests += _method_tests(name, value, method)
    return tests


def _case(cls: type[unittest.TestCase], method: str) -> Callable[[], None]:
    def body() -> None:
        result = unittest.TestResult()
        cls(method).run(result)
        problems = [*result.failures, *result.errors, *[(t, "") for t in result.unexpectedSuccesses]]
        if result.skipped and not problems:
            raise unittest.SkipTest("skipped")
        if problems:
            text = problems[0][1]
            if "CandidateGoneError" in text:
                raise CandidateGoneError("the candidate's process ended before its tests")
            raise AssertionError

    return body


def _cases(function: Any) -> list[dict[str, Any]]:
    """Return the argument sets of `pytest.mark.parametrize` marks, innermost last; one empty set without marks."""
    sets: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names = mark.args[0] if isinstance(mark.args[0], list | tuple) else [n.strip() for n in mark.args[0].split(",")]
        values = [getattr(v, "values", v) if hasattr(v, "marks") else v for v in mark.args[1]]
        values = [v if len(names) > 1 or (isinstance(v, tuple) and hasattr(v, "_x")) else (v,) for v in values]
        values = [v if isinstance(v, list | tuple) else (v,) for v in values]
        sets = [{**s, **dict(zip(names, v, strict=True))} for s in sets for v in values]
    return sets


def _no_fixture() -> None:
    raise TypeError("a fixture that is not known here")


def _function_tests(name: str, function: Any) -> list[Test]:
    cases = _cases(function)
    needed = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    tests: list[Test] = []
    for n, case in enumerate(cases):
        label = name if len(cases) == 1 else f"{name}[{n}]"
        if all(a in case or a in _FIXTURES for a in needed):
            tests.append((label, lambda case=case: _with_fixtures(function, needed, case)))  # type: ignore[misc]
        else:
            tests.append((label, lambda: _no_fixture()))
    return tests


def _method_tests(owner: str, cls: type, method: str) -> list[Test]:
    def bound(case: dict[str, Any]) -> Any:
        instance = cls()
        for hook in ("setup_method", "setUp", "setup"):
            if hasattr(instance, hook):
                setup = getattr(instance, hook)
                setup(*[None][: len(inspect.signature(setup).parameters)])
                break
        value = getattr(instance, method)(**case)
        if hasattr(instance, "teardown_method"):
            instance.teardown_method(*[None][: len(inspect.signature(instance.teardown_method).parameters)])
        return value

    cases = _cases(getattr(cls, method))
    return [
        (f"{owner}.{method}" if len(cases) == 1 else f"{owner}.{method}[{n}]", lambda case=case: bound(case))  # type: ignore[misc]
        for n, case in enumerate(cases)
    ]


class _Capsys:
    """The part of pytest's `capsys` that reads what was printed."""

    def readouterr(self) -> Any:
        out = sys.stdout
        text = out.getvalue() if isinstance(out, io.StringIO) else ""
        if isinstance(out, io.StringIO):
            out.seek(0)
            out.truncate()
        return types.SimpleNamespace(out=text, err="")


_FIXTURES: dict[str, Callable[[], Any]] = {"capsys": _Capsys, "tmp_path": lambda: __import__("pathlib").Path.cwd()}


def _with_fixtures(function: Any, needed: list[str], case: dict[str, Any]) -> Any:
    made = {n: _FIXTURES[n]() for n in needed if n not in case}
    with contextlib.redirect_stdout(io.StringIO()):
        return function(**case, **made)


def main(fd: int, report: int, job: dict[str, Any]) -> None:
    """Run a job and write its outcome; the process ends here."""
    answer = run_tests(fd, job)
    write_frame(report, json.dumps(answer).encode())
    os._exit(0)
