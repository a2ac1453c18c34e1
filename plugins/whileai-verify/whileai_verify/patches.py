"""Attributes that tests replace: in the candidate's module, in a library module of the candidate's process.

`solution.helper = fake`, `mock.patch("solution.helper")`, `mock.patch("builtins.input")` and `monkeypatch.setattr`
change attributes of modules here; the same attribute is then replaced in the candidate's process by a stand-in that
calls back. The candidate gains nothing by it: it already runs every function that tests hand to it.
"""

from __future__ import annotations

import random
import sys
import types
from typing import Any
from unittest import mock

from whileai_verify.remote import Link, Remote
from whileai_verify.unsupported import UnsupportedError

__all__ = ["CandidateModule", "MonkeyPatch", "forward_patches"]


class CandidateModule(types.ModuleType):
    """The module `solution`, as tests import it: what they set in it is set in the candidate too."""

    def __init__(self, name: str, link: Link, scope: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(scope)
        self.__dict__["_whileai_link"] = link

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        if not name.startswith("__"):
            _set(self.__dict__["_whileai_link"], "", name, value)


def _set(link: Link, module: str, name: str, value: Any) -> None:
    """Replace an attribute of a module in the candidate's process (`""`: the candidate's own module)."""
    with link.patching():
        link.ask({"op": "patch", "module": module, "name": name}, (value,))


def _restore(link: Link, module: str, name: str) -> None:
    link.ask({"op": "restore", "module": module, "name": name})


_OWN = ("sys.stdout", "sys.stderr")  # what the candidate prints is written to these here


def forward_patches(link: Link) -> None:
    """Make `mock.patch` on a library module, and `random.seed`, reach the candidate's process too."""
    kind: Any = mock._patch
    enter, leave = kind.__enter__, kind.__exit__

    def entered(self: Any) -> Any:
        value = enter(self)
        where = _library(self.target)
        if where and f"{where}.{self.attribute}" not in _OWN:
            _set(link, where, self.attribute, getattr(self.target, self.attribute))
        return value

    def left(self: Any, *info: Any) -> Any:
        where = _library(self.target)
        if where and f"{where}.{self.attribute}" not in _OWN:
            _restore(link, where, self.attribute)
        return leave(self, *info)

    kind.__enter__, kind.__exit__ = entered, left
    library: Any = mock
    is_async = library._is_async_obj
    # A stand-in can be awaited whatever it stands for, which does not make it a coroutine function.
    library._is_async_obj = lambda value: False if type(value) is Remote else is_async(value)
    seed = random.seed

    def seeded(*args: Any, **kwargs: Any) -> None:
        seed(*args, **kwargs)
        link.ask({"op": "seed"}, args, kwargs)

    random.seed = seeded


def _library(target: Any) -> str:
    """Return the name of a library module, `""` for what is none."""
    if not isinstance(target, types.ModuleType) or isinstance(target, CandidateModule):
        return ""
    return target.__name__ if sys.modules.get(target.__name__) is target else ""


class MonkeyPatch:
    """The part of pytest's `monkeypatch` that replaces attributes of modules and of the candidate's objects."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._undo: list[Any] = []

    def setattr(self, target: Any, name: Any, value: Any = mock.DEFAULT, raising: bool = True) -> None:
        """Replace an attribute until the end of the test."""
        if isinstance(target, str):
            path, _, attribute = target.rpartition(".")
            found: Any = __import__("pkgutil").resolve_name(path)
            target, name, value = found, attribute, name
        before = getattr(target, name)
        where = _library(target)
        setattr(target, name, value)
        self._undo.append(lambda: setattr(target, name, before))
        if where and f"{where}.{name}" not in _OWN:
            _set(self._link, where, name, value)
            self._undo.append(lambda: _restore(self._link, where, name))

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"monkeypatch.{name}")
