"""Values as data: what crosses between a candidate, its tests and the comparison outside.

Plain Python values become tagged JSON and come back as genuine built-in objects, so an object with a lying `__eq__`,
`__hash__` or `__class__` does not cross: it becomes a handle. The decoder builds built-in types only and runs no code
of the other side.

Example:
    >>> decode(encode((1, {"a": {2.5}})))
    (1, {'a': {2.5}})
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

__all__ = ["CannotCrossError", "decode", "encode"]

MAX_DEPTH = 150


class CannotCrossError(Exception):
    """A value is nested too deeply, or is not what it claims to be."""


_SMALL = 1 << 53
Handle = Callable[[Any], Any]


def encode(value: Any, handle: Handle | None = None, depth: int = 0) -> Any:
    """Return a value as JSON data.

    Args:
        value: Any value.
        handle: Gives the data for an object that is not plain; without it such an object is an error.
        depth: How deep this call is nested.

    Raises:
        CannotCrossError: It is nested too deeply, or is not plain and there is no `handle`.
    """
    if depth > MAX_DEPTH:
        raise CannotCrossError("a value nested too deeply")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_SMALL < value < _SMALL else {"i": hex(value)}
    if kind is float:
        return {"f": value.hex() if value == value else "nan"}
    if kind is list:
        return [encode(v, handle, depth + 1) for v in value]
    if kind in _PLAIN:
        tag, convert = _PLAIN[kind]
        return {tag: convert(value, lambda v: encode(v, handle, depth + 1))}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        items = [encode(v, handle, depth + 1) for v in tuple.__iter__(value)]
        return {"n": [str(kind.__name__), [str(f) for f in kind._fields], items]}
    if kind.__module__ == "numpy" and handle is not None:
        array = _array(value)
        if array is not None:
            return array
    for base in (int, float, str, list, tuple, dict, set, frozenset, bytes):  # bool has no subclasses
        if isinstance(value, base) and not hasattr(kind, "__dataclass_fields__") and not _is_enum(value):
            return encode(_PLAIN_OF[base](value), handle, depth + 1)
    if handle is None:
        raise CannotCrossError(f"an object of type {kind.__name__}")
    return handle(value)


_NUMERIC = "biufc"  # kinds of numpy data that are plain numbers


def _array(value: Any) -> Any:
    """Return the data of a numpy array or number, `None` for what is no such thing."""
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(getattr(value, "dtype", None), "kind", "") not in _NUMERIC:
        return None
    if type(value) is numpy.ndarray:
        return {"np": [value.dtype.str, list(value.shape), value.tobytes().hex()]}
    return {"ns": [value.dtype.str, value.tobytes().hex()]} if isinstance(value, numpy.generic) else None


def _decode_array(tag: str, body: Any) -> Any:
    import numpy  # type: ignore[import-not-found,unused-ignore]

    dtype = numpy.dtype(str(body[0]))
    if dtype.kind not in _NUMERIC:
        raise CannotCrossError("an array of objects")
    flat = numpy.frombuffer(bytes.fromhex(body[-1]), dtype=dtype)
    return flat[0] if tag == "ns" else flat.reshape([int(n) for n in body[1]]).copy()


def _is_enum(value: Any) -> bool:
    import enum

    return isinstance(value, enum.Enum)


_PLAIN_OF: dict[type, Callable[[Any], Any]] = {
    int: lambda v: int.__add__(v, 0),
    float: lambda v: float.__add__(v, 0.0),
    str: lambda v: str.__str__(v) if type(str.__str__(v)) is str else "".join(str.__iter__(v)),
    list: lambda v: list(list.__iter__(v)),
    tuple: lambda v: tuple(tuple.__iter__(v)),
    dict: lambda v: dict(dict.items(v)),
    set: lambda v: set(set.__iter__(v)),
    frozenset: lambda v: frozenset(frozenset.__iter__(v)),
    bytes: lambda v: bytes(memoryview(v)),
}

Inner = Callable[[Any], Any]
_PLAIN: dict[type, tuple[str, Callable[[Any, Inner], Any]]] = {
    tuple: ("t", lambda v, e: [e(x) for x in v]),
    dict: ("d", lambda v, e: [[e(k), e(x)] for k, x in v.items()]),
    set: ("s", lambda v, e: [e(x) for x in v]),
    frozenset: ("z", lambda v, e: [e(x) for x in v]),
    bytes: ("b", lambda v, e: v.hex()),
    bytearray: ("B", lambda v, e: v.hex()),
    complex: ("c", lambda v, e: [e(v.real), e(v.imag)]),
    range: ("r", lambda v, e: [e(v.start), e(v.stop), e(v.step)]),
    decimal.Decimal: ("D", lambda v, e: str(v)),
    fractions.Fraction: ("F", lambda v, e: [e(v.numerator), e(v.denominator)]),
    datetime.datetime: ("dt", lambda v, e: v.isoformat()),
    datetime.date: ("da", lambda v, e: v.isoformat()),
    datetime.time: ("ti", lambda v, e: v.isoformat()),
    datetime.timedelta: ("td", lambda v, e: [v.days, v.seconds, v.microseconds]),
    Counter: ("kc", lambda v, e: [[e(k), e(x)] for k, x in v.items()]),
    OrderedDict: ("ko", lambda v, e: [[e(k), e(x)] for k, x in v.items()]),
    defaultdict: ("kd", lambda v, e: [[e(k), e(x)] for k, x in v.items()]),
    deque: ("kq", lambda v, e: [e(x) for x in v]),
}
_BUILTIN_TYPES = {
    t.__name__: t
    for t in (int, float, str, bool, list, tuple, dict, set, frozenset, bytes, bytearray, complex, type(None), object)
}


def decode(data: Any, handle: Handle | None = None, depth: int = 0) -> Any:
    """Return the value of JSON data; the inverse of `encode`.

    Args:
        data: What `encode` gave, as it came back from `json.loads`.
        handle: Makes an object of the data of a handle (a dict with the key `o`).
        depth: How deep this call is nested.

    Raises:
        CannotCrossError: The data is not what `encode` gives.
    """
    if depth > MAX_DEPTH + 2:
        raise CannotCrossError("a value nested too deeply")
    if data is None or isinstance(data, bool | int | str):
        return data
    if isinstance(data, list):
        return [decode(v, handle, depth + 1) for v in data]
    if not isinstance(data, dict) or not data:
        raise CannotCrossError("data of an unknown kind")
    if "o" in data or "cb" in data:
        if handle is None:
            raise CannotCrossError("an object that is not plain data")
        return handle(data)
    (tag, body), *rest = data.items()
    if tag in ("np", "ns") and handle is not None and not rest:  # between a candidate and its tests only
        try:
            return _decode_array(tag, body)
        except (ImportError, TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
            raise CannotCrossError(f"data of kind {tag} that is broken") from error
    maker = _MAKERS.get(tag)
    if rest or maker is None:
        raise CannotCrossError("data of an unknown kind")
    try:
        return maker(body, lambda v: decode(v, handle, depth + 1))
    except CannotCrossError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, ArithmeticError) as error:
        raise CannotCrossError(f"data of kind {tag} that is broken") from error


def _named(body: Any, d: Inner) -> Any:
    name, fields, values = body
    if not all(isinstance(f, str) and f.isidentifier() and not f.startswith("_") for f in fields) or len(fields) > 200:
        raise CannotCrossError("a named tuple with odd fields")
    made = namedtuple(name if str(name).isidentifier() else "Row", fields)  # type: ignore[misc]
    return made(*[d(v) for v in values])


_MAKERS: dict[str, Callable[[Any, Inner], Any]] = {
    "i": lambda b, d: int(b, 16),
    "f": lambda b, d: float.fromhex(b),
    "t": lambda b, d: tuple(d(v) for v in b),
    "d": lambda b, d: {d(k): d(v) for k, v in b},
    "s": lambda b, d: {d(v) for v in b},
    "z": lambda b, d: frozenset(d(v) for v in b),
    "b": lambda b, d: bytes.fromhex(b),
    "B": lambda b, d: bytearray.fromhex(b),
    "c": lambda b, d: complex(d(b[0]), d(b[1])),
    "r": lambda b, d: range(d(b[0]), d(b[1]), d(b[2])),
    "D": lambda b, d: decimal.Decimal(b),
    "F": lambda b, d: fractions.Fraction(d(b[0]), d(b[1])),
    "dt": lambda b, d: datetime.datetime.fromisoformat(b),
    "da": lambda b, d: datetime.date.fromisoformat(b),
    "ti": lambda b, d: datetime.time.fromisoformat(b),
    "td": lambda b, d: datetime.timedelta(*b),
    "kc": lambda b, d: Counter({d(k): d(v) for k, v in b}),
    "ko": lambda b, d: OrderedDict((d(k), d(v)) for k, v in b),
    "kd": lambda b, d: defaultdict(None, {d(k): d(v) for k, v in b}),
    "kq": lambda b, d: deque(d(v) for v in b),
    "n": _named,
    "T": lambda b, d: _BUILTIN_TYPES[b],
}
