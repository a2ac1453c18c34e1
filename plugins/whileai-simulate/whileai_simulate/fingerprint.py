"""What a function or an object is, as a hash: its code, and the values that it was given, but not what it counted.

Two agents made by one factory have the same source; what tells them apart stands in closures, defaults, arguments of a
partial, attributes and constants of the module. All of that is read. What the code itself changes while it runs (a
counter, a list that it appends to) is no part of who it is, or no call could be repeated. Of other objects (clients,
locks, models) only the type counts, and what they say of themselves under `id`, `version`, `policy` and the like.

Example:
    >>> def make(word):
    ...     return lambda message: word
    >>> fingerprint(make("a")) == fingerprint(make("a")), fingerprint(make("a")) == fingerprint(make("b"))
    (True, False)
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["fingerprint"]

_CHANGING = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "clear", "remove", "discard",
     "appendleft", "sort", "reverse", "put"}
)  # fmt: skip
_SAYS = ("id", "name", "version", "model", "policy", "sampling")
_BEGINS = frozenset({"__init__", "__post_init__", "__new__"})
_DEPTH, _ITEMS = 6, 10_000
_Plain = (str, bytes, int, float, complex, bool, type(None))


def fingerprint(value: Any) -> str:
    """Return a hash of what `value` is: 16 hex digits, the same in every process that has the same code."""
    walk = _Walk(_changed_by(value))
    return hashlib.sha256("\x1f".join(walk.of(value, _DEPTH)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


@functools.lru_cache(maxsize=4096)
def _changed_in(code: CodeType) -> frozenset[str]:
    """Return names whose values a function rebinds or changes in place."""
    found: set[str] = set()
    for part in _codes(code):
        before: list[dis.Instruction] = []
        for step in dis.get_instructions(part):
            if step.opname in ("STORE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "DELETE_GLOBAL") or (
                step.opname == "STORE_DEREF" and step.argval in part.co_freevars
            ):
                found.add(str(step.argval))
            elif step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
                found |= {
                    str(b.argval) for b in before[-3:] if b.opname.startswith(("LOAD_DEREF", "LOAD_GL", "LOAD_AT"))
                }
            elif step.opname in ("LOAD_METHOD", "LOAD_ATTR") and step.argval in _CHANGING and before:
                found.add(str(before[-1].argval))
            before = [*before[-3:], step]
    return frozenset(found)


def _functions(value: Any, seen: set[int]) -> Iterator[FunctionType]:
    """Yield the functions of one's own that a value consists of or calls."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, functools.partial):
        yield from _functions(value.func, seen)
    elif isinstance(value, MethodType):
        yield from _functions(value.__func__, seen)
        yield from _functions(type(value.__self__), seen)
    elif isinstance(value, FunctionType):
        yield value
        for inner in (*_cells(value).values(), *_globals(value).values()):
            if isinstance(inner, FunctionType | functools.partial | MethodType | type):
                yield from _functions(inner, seen)
    elif isinstance(value, type):
        for base in _own_classes(value):
            for name, inner in vars(base).items():
                inner = getattr(inner, "__func__", getattr(inner, "fget", inner))
                if name not in _BEGINS and isinstance(inner, FunctionType):
                    yield from _functions(inner, seen)
    elif not isinstance(value, _Plain):
        yield from _functions(type(value), seen)


def _changed_by(value: Any) -> set[str]:
    found: set[str] = set()
    for function in _functions(value, set()):
        found |= _changed_in(function.__code__)
    return found


def _own_classes(cls: type) -> list[type]:
    """Return a class and those of its bases that are written in Python in the same package."""
    root = cls.__module__.partition(".")[0]
    return [c for c in cls.__mro__ if c is cls or (c is not object and c.__module__.partition(".")[0] == root)]


def _cells(function: FunctionType) -> dict[str, Any]:
    out = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            out[name] = cell.cell_contents
        except ValueError:  # not set yet: the function refers to something defined after it
            continue
    return out


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return the values of the module that the code names: constants, and functions and classes of the same module."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    out: dict[str, Any] = {}
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if isinstance(value, FunctionType | type):
            if value.__module__ == function.__module__:
                out[name] = value
        elif isinstance(value, (*_Plain, tuple, list, dict, set, frozenset, functools.partial)):
            out[name] = value
    return out


class _Walk:
    """Turns a value into text, part by part.

    Args:
        changed: Names whose values the code changes, which do not count.
    """

    def __init__(self, changed: set[str]) -> None:
        self.changed = changed
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []

    def of(self, value: Any, depth: int) -> Iterator[str]:
        if isinstance(value, _Plain):
            yield repr(value)
            return
        if id(value) in self.seen:
            yield f"<seen {self.seen[id(value)]}>"
            return
        if depth == 0:
            yield f"<{type(value).__qualname__}>"
            return
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)  # so that no other value gets its id
        if isinstance(value, Mapping):
            yield "{"
            for key, inner in sorted(list(value.items())[:_ITEMS], key=lambda kv: repr(kv[0])):
                yield repr(key) if isinstance(key, _Plain) else type(key).__qualname__
                yield from self.of(inner, depth - 1)
            yield "}"
        elif isinstance(value, set | frozenset):
            yield from ("set", *sorted("".join(self.of(v, 1)) for v in value))
        elif isinstance(value, list | tuple):
            yield "["
            for inner in value[:_ITEMS]:
                yield from self.of(inner, depth - 1)
            yield f"{len(value)}]"
        elif isinstance(value, functools.partial):
            yield "partial"
            for part in (value.func, value.args, value.keywords):
                yield from self.of(part, depth)
        elif isinstance(value, MethodType):
            yield from self.of(value.__func__, depth)
            yield from self.of(value.__self__, depth)
        elif isinstance(value, FunctionType):
            yield from self._function(value, depth)
        elif isinstance(value, type):
            yield from self._class(value, depth)
        else:
            yield from self._object(value, depth)

    def _function(self, function: FunctionType, depth: int) -> Iterator[str]:
        yield from _code(function.__code__)
        yield from self.of(function.__defaults__, depth - 1)
        yield from self.of(function.__kwdefaults__, depth - 1)
        for name, value in (*_cells(function).items(), *_globals(function).items()):
            if name not in self.changed:
                yield name
                yield from self.of(value, depth - 1)

    def _class(self, cls: type, depth: int) -> Iterator[str]:
        for base in _own_classes(cls):
            yield f"class {base.__qualname__}"
            for name, value in sorted(vars(base).items()):
                value = getattr(value, "__func__", getattr(value, "fget", value))
                kept = isinstance(value, FunctionType) or (isinstance(value, _Plain) and not name.startswith("__"))
                if kept and name not in self.changed:
                    yield name
                    yield from self.of(value, depth - 1)

    def _object(self, value: Any, depth: int) -> Iterator[str]:
        """Say what an object is: all of the outermost one and of dataclasses, what others say of themselves."""
        yield f"<{type(value).__module__}.{type(value).__qualname__}>"
        whole = depth == _DEPTH or dataclasses.is_dataclass(value)
        if whole:
            yield from self.of(type(value), depth - 1)
        state = _state(value) if whole else {k: v for k, v in _state(value).items() if k in _SAYS}
        for name, inner in sorted(state.items()):
            if name not in self.changed and (whole or isinstance(inner, (*_Plain, Mapping))):
                yield name
                yield from self.of(inner, depth - 1)


def _state(value: Any) -> dict[str, Any]:
    out = dict(getattr(value, "__dict__", None) or {})
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                out.setdefault(name, getattr(value, name))
    return out


@functools.lru_cache(maxsize=4096)
def _source(code: CodeType) -> str | None:
    """Return the source of a function, or `None` for what was made by exec or typed at a prompt."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return None


def _code(code: CodeType) -> Iterator[str]:
    """Say what code does: by its source, which every Python version reads alike; several lambdas may share a line."""
    source = None if code.co_name == "<lambda>" else _source(code)
    if source is not None:
        yield source
        return
    for part in _codes(code):
        # The order of a set differs between processes.
        consts = [
            repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
            for c in part.co_consts
            if not isinstance(c, CodeType)
        ]
        yield f"{part.co_code.hex()}{part.co_names}{part.co_varnames}{consts}"
