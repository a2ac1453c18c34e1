"""The tests' own process: run a test program against a candidate that lives in another process.

The names that the candidate's source defines become remote objects here: a call sends its arguments as data and gets a
value back as data, so comparisons happen here, between genuine built-in objects. What the candidate's source imports
from the standard library is imported here anew. The candidate cannot see this process, its tests or its verdict, and
the verdict exists only when every declared test has run to its end here.

Tests that subclass a candidate's class, share files with it or look into it do not work across the border; they are
reported as an error of the tests, not as a failure of the candidate.
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

from whileai_verify.collect import Collector, fixture
from whileai_verify.frames import write_frame
from whileai_verify.patches import CandidateModule, MonkeyPatch, forward_patches
from whileai_verify.remote import CandidateGoneError, Link, Remote
from whileai_verify.rewrite import HELPERS, rewrite
from whileai_verify.unsupported import UnsupportedError

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
        except (CandidateGoneError, UnsupportedError) as error:
            self.results[name] = str(error)
            raise
        except unittest.SkipTest:
            self.results.pop(name, None)
        except BaseException as error:  # noqa: BLE001 - any exception is a failed test, SystemExit too
            if type(error).__name__ == "Skipped" and type(error).__module__.startswith("_pytest"):
                self.results.pop(name, None)
                return
            if isinstance(error, FileNotFoundError) and not hasattr(error, "_whileai_remote"):
                raise UnsupportedError("files that the tests and the code share") from None
            self.results[name] = _what(error)
        else:
            self.results[name] = ""
        if UnsupportedError.raised:  # a test or its framework caught it
            raise UnsupportedError(UnsupportedError.raised[0])


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
        sys.modules[MODULE] = CandidateModule(MODULE, link, scope)
        forward_patches(link)
        with contextlib.redirect_stdout(io.StringIO()):
            _run_program(tree, scope, job["entry_point"], outcome, link)
    except UnsupportedError as error:
        return {"error": f"the tests use what does not work across the border: {error}"[:300]}
    except CandidateGoneError as error:
        return {"gone": str(error), "results": outcome.results}
    except ImportError as error:
        return {"error": f"the tests need the module {error.name}"}
    except OSError as error:
        return {"error": f"the tests cannot be run: {type(error).__name__}"}
    if not outcome.results:
        return {"error": "the tests check nothing"}
    return {"results": outcome.results}


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


def _run_program(
    tree: ast.Module, scope: dict[str, Any], entry_point: str | None, outcome: Outcome, link: Link
) -> None:
    """Execute a test program, then the tests that it defines."""
    if any(isinstance(n, ast.Import) and any(a.name == "pytest" for a in n.names) for n in ast.walk(tree)) or any(
        isinstance(n, ast.ImportFrom) and n.module == "pytest" for n in ast.walk(tree)
    ):
        setattr(importlib.import_module("pytest"), "fixture", fixture)  # noqa: B010 - a library without types here
    body = rewrite(tree, {*scope, MODULE})
    module = types.ModuleType("tests")
    sys.modules["tests"] = module
    space = module.__dict__
    space.update({**scope, **HELPERS, "__builtins__": builtins})
    code = compile(body, "tests", "exec", dont_inherit=True)
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
    if not _asserts(body.body):
        del outcome.results["module"]
    collector = Collector(space, set(scope), lambda: MonkeyPatch(link))
    try:
        tests = collector.tests()
    except Exception as error:  # noqa: BLE001 - only the tests' own marks are evaluated here
        raise UnsupportedError(f"tests that cannot be collected ({type(error).__name__})") from None
    check = space.get("check")
    if inspect.isfunction(check) and len(inspect.signature(check).parameters) == 1 and entry_point in scope:
        candidate = scope[entry_point]
        tests = [("check", lambda: check(candidate))] + [t for t in tests if t[0] != "check"]
    for name, _ in tests:
        outcome.results[name] = "did not run"
    for name, body_ in tests:
        outcome.run(name, body_)
    outcome.run("teardown", collector.close)
    if outcome.results.get("teardown") == "":
        del outcome.results["teardown"]


def main(fd: int, report: int, job: dict[str, Any]) -> None:
    """Run a job and write its outcome; the process ends here."""
    answer = run_tests(fd, job)
    write_frame(report, json.dumps(answer).encode())
    os._exit(0)
