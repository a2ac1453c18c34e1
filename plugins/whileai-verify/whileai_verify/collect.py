"""Find and run the tests of a program the way pytest and unittest do, as far as single-file tests use them.

Functions and methods named `test*`, classes named `Test*`, unittest cases; parametrize, skip, skipif, xfail and
usefixtures marks; fixtures with dependencies, parameters, teardown and autouse; set-up and tear-down functions. What is
not known here raises `UnsupportedError`: such tests are not scored.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from whileai_verify.remote import CandidateGoneError
from whileai_verify.unsupported import UnsupportedError

__all__ = ["Collector", "Test", "fixture"]

Test = tuple[str, Callable[[], Any]]
_MARK = "_whileai_fixture"


@dataclass(frozen=True)
class _Fixture:
    function: Any
    scope: str
    params: tuple[Any, ...] | None
    autouse: bool
    owner: type | None = None


def fixture(function: Any = None, **options: Any) -> Any:
    """Stand in for `pytest.fixture`: note the options on the function."""

    def wrap(fn: Any) -> Any:
        if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
            raise UnsupportedError("asynchronous fixtures")
        params = options.get("params")
        made = _Fixture(
            fn, str(options.get("scope", "function")), None if params is None else tuple(params),
            bool(options.get("autouse", False)),
        )  # fmt: skip
        setattr(fn, _MARK, (options.get("name") or fn.__name__, made))
        return fn

    return wrap if function is None else wrap(function)


class _Capsys:
    """The part of pytest's `capsys` that reads what was printed."""

    def readouterr(self) -> Any:
        out = sys.stdout
        text = out.getvalue() if isinstance(out, io.StringIO) else ""
        if isinstance(out, io.StringIO):
            out.seek(0)
            out.truncate()
        return types.SimpleNamespace(out=text, err="")


class _Request:
    """The part of pytest's `request` that gives the parameter."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"request.{name} in a fixture")


@dataclass
class _Run:
    """One test with its arguments."""

    function: Any
    owner: type | None
    case: dict[str, Any]
    params: dict[str, Any]
    made: dict[str, Any] = field(default_factory=dict)
    undo: list[Callable[[], None]] = field(default_factory=list)


class Collector:
    """The tests of one program.

    Args:
        space: The namespace of the executed program.
        inherited: Names in it that are the candidate's.
        monkeypatch: Makes the `monkeypatch` fixture.
    """

    def __init__(self, space: dict[str, Any], inherited: set[str], monkeypatch: Callable[[], Any]) -> None:
        self.space, self.inherited, self.monkeypatch = space, inherited, monkeypatch
        self.fixtures: dict[str, _Fixture] = {}
        self.kept: dict[str, Any] = {}
        self.finish: list[Callable[[], None]] = []
        self.numbers = 0
        for value in list(space.values()):
            if inspect.isfunction(value) and hasattr(value, _MARK):
                name, made = getattr(value, _MARK)
                self.fixtures[name] = made

    # --- collection ------------------------------------------------------------------------------------------------

    def tests(self) -> list[Test]:
        """Return the tests in the order of the program."""
        found: list[Test] = []
        for name, value in list(self.space.items()):
            own = getattr(value, "__module__", None) == "tests"
            if name in self.inherited and not (inspect.isfunction(value) and own):
                continue
            if inspect.isfunction(value) and name.startswith("test") and not hasattr(value, _MARK):
                found += self._function(name, value, None)
            elif isinstance(value, type) and issubclass(value, unittest.TestCase) and own:
                found += [(f"{name}.{m}", _case(value, m)) for m in unittest.defaultTestLoader.getTestCaseNames(value)]
            elif isinstance(value, type) and name.startswith("Test") and own:
                for method in [m for m in dir(value) if m.startswith("test")]:
                    found += self._function(f"{name}.{method}", getattr(value, method), value)
        return found

    def _marks(self, function: Any, owner: type | None) -> list[Any]:
        marks = list(getattr(function, "pytestmark", []))
        for holder in (owner, types.SimpleNamespace(**{"pytestmark": self.space.get("pytestmark", [])})):
            more = getattr(holder, "pytestmark", [])
            marks += more if isinstance(more, list | tuple) else [more]
        return [getattr(m, "mark", m) for m in marks]

    def _function(self, name: str, function: Any, owner: type | None) -> list[Test]:
        marks = self._marks(function, owner)
        if any(_skipped(m) for m in marks):
            return []
        expected = next((m for m in marks if m.name == "xfail" and _holds(m)), None)
        cases = [{**c} for c in _cases(marks)]
        needed = _parameters(
            function,
            owner is not None and not isinstance(inspect.getattr_static(owner, function.__name__, None), staticmethod),
        )
        extra = [a for m in marks if m.name == "usefixtures" for a in m.args]
        runs: list[_Run] = []
        for case in cases:
            wanted = [n for n in [*needed, *extra, *self._automatic(owner)] if n not in case]
            for params in self._params(wanted, owner):
                runs.append(_Run(function, owner, case, params))
        label = name if len(runs) == 1 else f"{name}[{{}}]"
        return [(label.format(n), self._body(run, needed, extra, expected)) for n, run in enumerate(runs)]

    def _automatic(self, owner: type | None) -> list[str]:
        found = [n for n, f in self.fixtures.items() if f.autouse]
        return found + [n for n, f in self._owned(owner).items() if f.autouse]

    def _owned(self, owner: type | None) -> dict[str, _Fixture]:
        found: dict[str, _Fixture] = {}
        for key in dir(owner) if owner is not None else ():
            value = getattr(owner, key, None)
            if inspect.isfunction(value) and hasattr(value, _MARK):
                name, made = getattr(value, _MARK)
                found[name] = _Fixture(made.function, made.scope, made.params, made.autouse, owner)
        return found

    def _find(self, name: str, owner: type | None) -> _Fixture | None:
        return self._owned(owner).get(name) or self.fixtures.get(name)

    def _params(self, names: list[str], owner: type | None) -> list[dict[str, Any]]:
        """Return every combination of the parameters of the fixtures that a test uses."""
        sets: list[dict[str, Any]] = [{}]
        seen: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop(0)
            made = self._find(name, owner)
            if name in seen or made is None:
                continue
            seen.add(name)
            queue += _parameters(made.function, made.owner is not None)
            if made.params is not None:
                sets = [{**s, name: p} for s in sets for p in made.params]
        return sets

    # --- running ---------------------------------------------------------------------------------------------------

    def _body(self, run: _Run, needed: list[str], extra: list[str], expected: Any) -> Callable[[], Any]:
        def body() -> Any:
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    value = self._run(run, needed, extra)
                except (CandidateGoneError, UnsupportedError, unittest.SkipTest):
                    raise
                except BaseException:
                    if expected is not None:
                        raise unittest.SkipTest("expected to fail") from None
                    raise
            return value

        return body

    def _run(self, run: _Run, needed: list[str], extra: list[str]) -> Any:
        instance = run.owner() if run.owner is not None else None
        try:
            self._before(run, instance)
            for name in [*self._automatic(run.owner), *extra]:
                self._value(name, run, instance)
            arguments = {n: run.case[n] if n in run.case else self._value(n, run, instance) for n in needed}
            function = run.function if instance is None else getattr(instance, run.function.__name__)
            value = function(**{**{k: v for k, v in run.case.items() if k in needed}, **arguments})
            if inspect.iscoroutine(value):
                import asyncio

                value = asyncio.run(value)
            return value
        finally:
            for undo in reversed(run.undo):
                undo()

    def _before(self, run: _Run, instance: Any) -> None:
        """Run the set-up functions, and note the tear-down ones."""
        for name in ("setup_module", "setUpModule"):
            self._once(
                name,
                self.space.get(name),
                self.space.get(name.replace("setup", "teardown").replace("setUp", "tearDown")),
            )
        if run.owner is not None:
            setup = getattr(run.owner, "setup_class", None)
            self._once(f"class {run.owner.__name__}", setup, getattr(run.owner, "teardown_class", None))
        pairs = (
            [("setup_method", "teardown_method"), ("setup", "teardown"), ("setUp", "tearDown")]
            if instance is not None
            else [("setup_function", "teardown_function")]
        )
        for first, last in pairs:
            holder: Any = (
                instance
                if instance is not None
                else types.SimpleNamespace(**{k: self.space[k] for k in (first, last) if k in self.space})
            )
            if callable(getattr(holder, first, None)):
                _flexible(getattr(holder, first), run.function)
            if callable(getattr(holder, last, None)):
                run.undo.append(functools.partial(_flexible, getattr(holder, last), run.function))

    def _once(self, key: str, setup: Any, teardown: Any) -> None:
        if key in self.kept:
            return
        self.kept[key] = True
        if callable(setup):
            _flexible(setup, types.SimpleNamespace(__name__="tests"))
        if callable(teardown):
            self.finish.append(lambda: _flexible(teardown, types.SimpleNamespace(__name__="tests")))

    def close(self) -> None:
        """Run what was kept for the end."""
        for each in reversed(self.finish):
            each()

    def _value(self, name: str, run: _Run, instance: Any) -> Any:
        if name in run.made:
            return run.made[name]
        made = self._find(name, run.owner)
        if made is None:
            value = self._built_in(name, run)
        else:
            wide = made.scope != "function" and made.params is None
            key = f"{name} of {made.owner} {run.owner if made.scope == 'class' else ''}"
            if wide and key in self.kept:
                return self.kept[key]
            value = self._make(name, made, run, instance, self.finish if wide else run.undo)
            if wide:
                self.kept[key] = value
        run.made[name] = value
        return value

    def _make(self, name: str, made: _Fixture, run: _Run, instance: Any, undo: list[Callable[[], None]]) -> Any:
        arguments: dict[str, Any] = {}
        for needed in _parameters(made.function, made.owner is not None):
            if needed == "request":
                arguments[needed] = _Request({"param": run.params[name]} if name in run.params else {})
            else:
                arguments[needed] = self._value(needed, run, instance)
        value = made.function(*([instance] if made.owner is not None else []), **arguments)
        if inspect.isgenerator(value):
            rest: Iterator[Any] = value
            value = next(rest)
            undo.append(lambda: next(rest, None))
        return value

    def _built_in(self, name: str, run: _Run) -> Any:
        if name in ("capsys", "capfd"):
            return _Capsys()
        if name == "tmp_path":
            self.numbers += 1
            path = Path.cwd() / f"tmp_path_{self.numbers}"
            path.mkdir()
            return path
        if name == "monkeypatch":
            patch = self.monkeypatch()
            run.undo.append(patch.undo)
            return patch
        raise UnsupportedError(f"the fixture {name!r}")


def _flexible(function: Any, argument: Any) -> None:
    function(*[argument][: len([p for p in inspect.signature(function).parameters.values() if p.default is p.empty])])


def _parameters(function: Any, method: bool) -> list[str]:
    """Return the names of the arguments that a test or a fixture asks for."""
    names = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    mocks = [p for p in getattr(function, "patchings", []) if p.new is mock.DEFAULT and not p.attribute_name]
    return names[int(method) + len(mocks) :]  # arguments that `mock.patch` fills in come first


def _holds(mark: Any) -> bool:
    """Return whether the condition of a skipif or xfail mark holds; no condition always does."""
    conditions = [*mark.args, *([mark.kwargs["condition"]] if "condition" in mark.kwargs else [])]
    if any(isinstance(c, str) for c in conditions[:1]) and mark.name == "skipif":
        raise UnsupportedError("a skipif condition in a text")
    return not conditions or bool(conditions[0]) or isinstance(conditions[0], str)


def _skipped(mark: Any) -> bool:
    return mark.name == "skip" or (mark.name == "skipif" and _holds(mark)) or (
        mark.name == "xfail" and mark.kwargs.get("run") is False
    )  # fmt: skip


def _cases(marks: list[Any]) -> list[dict[str, Any]]:
    """Return the argument sets of parametrize marks; one empty set without marks."""
    sets: list[dict[str, Any]] = [{}]
    for mark in marks:
        if mark.name != "parametrize":
            continue
        if mark.kwargs.get("indirect"):
            raise UnsupportedError("parametrize with indirect")
        given = [*mark.args, *[mark.kwargs[k] for k in ("argnames", "argvalues") if k in mark.kwargs]]
        names = (
            list(given[0])
            if isinstance(given[0], list | tuple)
            else [n.strip() for n in given[0].split(",") if n.strip()]
        )
        single = isinstance(given[0], str) and len(names) == 1
        values: list[tuple[Any, ...]] = []
        for each in given[1]:
            if hasattr(each, "marks") and hasattr(each, "values"):
                if not any(_skipped(getattr(m, "mark", m)) or getattr(m, "name", "") == "xfail" for m in each.marks):
                    values.append(tuple(each.values))
            else:
                values.append((each,) if single else tuple(each))
        sets = [{**s, **dict(zip(names, v, strict=True))} for s in sets for v in values]
    return sets


def _case(cls: type[unittest.TestCase], method: str) -> Callable[[], None]:
    def body() -> None:
        result = unittest.TestResult()
        unittest.TestSuite([cls(method)]).run(result)
        problems = [*result.failures, *result.errors, *[(t, "") for t in result.unexpectedSuccesses]]
        if result.skipped and not problems:
            raise unittest.SkipTest("skipped")
        if problems:
            if "CandidateGoneError" in problems[0][1]:
                raise CandidateGoneError("the candidate's process ended before its tests")
            raise AssertionError

    return body
