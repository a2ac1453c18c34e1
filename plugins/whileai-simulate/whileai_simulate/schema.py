"""Values that satisfy a JSON schema, and the check that they do.

`sample` draws a value for a schema from a `Draw`: enums, constants, patterns, formats, bounds, nested objects,
arrays, unions and local references. `problems` says why a value does not satisfy a schema; it knows the same
keywords and is about fifty times faster than a full validator, which the world needs on every call. The tests
compare both with `jsonschema`.

Example:
    >>> from whileai_simulate.draw import Draw
    >>> sample({"type": "string", "pattern": "^[A-C]{2}-[0-9]{3}$"}, Draw(0))[2]
    '-'
    >>> problems({"a": 1}, {"type": "object", "properties": {"a": {"type": "string"}}})
    ['a must be a string, not 1']
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw

__all__ = ["fits_plainly", "problems", "resolve", "sample", "text_for_pattern", "type_of"]

ALNUM = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LOWER = "abcdefghijklmnopqrstuvwxyz"
_FIRST_DAY = date(2024, 1, 8)
_FORMATS: dict[str, Callable[[Draw], str]] = {
    "date": lambda d: (_FIRST_DAY + timedelta(days=d.below(500))).isoformat(),
    "date-time": lambda d: (
        f"{(_FIRST_DAY + timedelta(days=d.below(500))).isoformat()}T{d.below(24):02}:{d.below(60):02}:00Z"
    ),
    "time": lambda d: f"{d.below(24):02}:{d.below(60):02}:00Z",
    "duration": lambda d: f"PT{d.between(5, 90)}M",
    "email": lambda d: f"{d.text(LOWER, 6)}@example.com",
    "uuid": lambda d: _uuid(d),
    "uri": lambda d: f"https://example.com/{d.text(LOWER, 6)}",
    "url": lambda d: f"https://example.com/{d.text(LOWER, 6)}",
    "hostname": lambda d: f"{d.text(LOWER, 6)}.example.com",
    "ipv4": lambda d: f"192.0.2.{d.between(1, 254)}",
    "ipv6": lambda d: f"2001:db8::{d.between(1, 65535):x}",
}
_FORMAT_CHECKS = {
    "date": re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "ipv4": re.compile(r"(\d{1,3}\.){3}\d{1,3}"),
}


def _uuid(draw: Draw) -> str:
    raw = "".join([f"{draw.bits():08x}" for _ in range(4)])
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-{'89ab'[draw.below(4)]}{raw[17:20]}-{raw[20:32]}"


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Follow local `$ref`s (`#/...`); a reference that leads nowhere is the schema that accepts everything."""
    seen = 0
    while "$ref" in schema and seen < 20:
        node: Any = root or {}
        for part in str(schema["$ref"]).lstrip("#/").split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, Mapping) else {}
        schema = node if isinstance(node, Mapping) else {}
        seen += 1
    return schema


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the (first non-null) type of a schema; guessed from its keywords when it names none."""
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((t for t in declared if t != "null"), "null")
    if isinstance(declared, str):
        return declared
    if schema.get("enum"):
        return _type_name(schema["enum"][0])
    if "properties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema:
        return "number"
    return "string"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def sample(schema: Mapping[str, Any], draw: Draw, *, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """Draw a value that satisfies `schema`.

    Args:
        schema: A JSON schema; keywords that are not known are ignored.
        draw: Where the values come from.
        root: The document that local references point into; by default the schema itself.
        depth: How deep the value stands; optional properties are left out below four levels.
    """
    root = schema if root is None else root
    schema = resolve(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return draw.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            options = [s for s in schema[key] if s.get("type") != "null"] or schema[key]
            return sample(draw.choice(options) if depth < 4 else options[0], draw, root=root, depth=depth + 1)
    if schema.get("allOf"):
        schema = _merged([resolve(s, root) for s in schema["allOf"]], schema)
    kind = type_of(schema)
    if kind == "object":
        return _object(schema, draw, root, depth)
    if kind == "array":
        return _array(schema, draw, root, depth)
    if kind in ("integer", "number"):
        return _number(schema, draw, integer=kind == "integer")
    if kind == "boolean":
        return bool(draw.below(2))
    return None if kind == "null" else _string(schema, draw)


def _merged(parts: list[Mapping[str, Any]], own: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {k: v for k, v in own.items() if k != "allOf"}
    for part in parts:
        for key, value in part.items():
            if key == "properties":
                out[key] = {**out.get(key, {}), **value}
            elif key == "required":
                out[key] = [*out.get(key, []), *value]
            else:
                out.setdefault(key, value)
    return out


def _object(schema: Mapping[str, Any], draw: Draw, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    required = schema.get("required", ())
    out = {}
    for name, part in schema.get("properties", {}).items():
        if name in required or (depth < 3 and draw.below(2)):
            out[name] = sample(part, draw, root=root, depth=depth + 1)
    return out


def _array(schema: Mapping[str, Any], draw: Draw, root: Mapping[str, Any], depth: int) -> list[Any]:
    if schema.get("prefixItems"):
        return [sample(s, draw, root=root, depth=depth + 1) for s in schema["prefixItems"]]
    low = int(schema.get("minItems", 1 if depth < 4 else 0))
    high = max(low, min(int(schema.get("maxItems", low + 1)), low + 2))
    count = draw.between(low, high)
    out: list[Any] = []
    for _ in range(count * 8):
        if len(out) == count:
            break
        value = sample(schema.get("items", {}), draw, root=root, depth=depth + 1)
        if not schema.get("uniqueItems") or value not in out:
            out.append(value)
    return out


def _number(schema: Mapping[str, Any], draw: Draw, *, integer: bool) -> int | float:
    step = schema.get("multipleOf") or (1 if integer else 0.01)
    low = schema.get("minimum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    high = schema.get("maximum")
    if above is not None:
        low = above + step if low is None else max(low, above + step)
    if below is not None:
        high = below - step if high is None else min(high, below - step)
    if low is None:
        low = 1 if high is None or high >= 1 else high - 100
    if high is None:
        high = low + (9 if integer else 100)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    picked = draw.between(first, max(first, last))
    return round(picked * step) if integer else round(picked * step, 10)


def _string(schema: Mapping[str, Any], draw: Draw) -> str:
    if schema.get("pattern"):
        text = text_for_pattern(str(schema["pattern"]), draw)
    elif schema.get("format") in _FORMATS:
        text = _FORMATS[schema["format"]](draw)
    else:
        text = draw.text(LOWER, max(6, int(schema.get("minLength", 0))))
    low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
    if len(text) < low and not schema.get("pattern"):
        text += draw.text(LOWER, low - len(text))
    return text[:high] if high is not None and not schema.get("pattern") else text


@lru_cache(maxsize=512)
def _parsed(pattern: str) -> Any:
    # The standard library's own parser of patterns; it has no public name since 3.11.
    return importlib.import_module("re._parser").parse(pattern)


def text_for_pattern(pattern: str, draw: Draw) -> str:
    """Return text that matches `pattern` (look-arounds are not followed)."""
    for _ in range(20):
        text = "".join(_pieces(_parsed(pattern), draw, {}))
        if re.search(pattern, text):
            return text
    return text


def _pieces(nodes: Any, draw: Draw, groups: dict[int, str]) -> Iterator[str]:
    for op, arg in nodes:
        name = str(op)
        if name == "LITERAL":
            yield chr(arg)
        elif name == "NOT_LITERAL":
            yield draw.choice([c for c in LOWER if ord(c) != arg])
        elif name == "ANY":
            yield draw.choice(LOWER)
        elif name == "IN":
            yield draw.choice(_members(arg))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = arg
            for _ in range(draw.between(low, min(int(high), low + (4 if low == 0 else 3)))):
                yield from _pieces(inner, draw, groups)
        elif name == "SUBPATTERN":
            text = "".join(_pieces(arg[3], draw, groups))
            if arg[0] is not None:
                groups[arg[0]] = text
            yield text
        elif name == "BRANCH":
            yield from _pieces(draw.choice(arg[1]), draw, groups)
        elif name == "GROUPREF":
            yield groups.get(arg, "")
        elif name == "ATOMIC_GROUP":
            yield from _pieces(arg, draw, groups)


_CLASSES = {"DIGIT": "0123456789", "WORD": LOWER + "0123456789_", "SPACE": " "}


def _members(parts: Any) -> str:
    negate, out = False, ""
    for op, arg in parts:
        name = str(op)
        if name == "NEGATE":
            negate = True
        elif name == "LITERAL":
            out += chr(arg)
        elif name == "RANGE":
            out += "".join(chr(c) for c in range(arg[0], min(arg[1], arg[0] + 127) + 1))
        elif name == "CATEGORY":
            kind = str(arg).removeprefix("CATEGORY_")
            if kind.startswith("NOT_"):
                out += "".join(c for c in LOWER + "-. 0" if c not in _CLASSES[kind[4:]])
            else:
                out += _CLASSES[kind]
    if negate:
        return "".join(c for c in LOWER + LOWER.upper() + "0123456789-" if c not in out) or "~"
    return out


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list, tuple),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip
_ARTICLE = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


_FLAT: dict[int, tuple[Mapping[str, Any], dict[str, type] | None, frozenset[str]]] = {}
"""Types of the fields of flat schemas, by the schema's identity; the schema is kept so that it stays its own."""

_SIMPLE: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
_SAYS_NOTHING = frozenset(
    ["type", "title", "description", "default", "examples", "example", "x-root", "x-entity", "x-kind"]
)
_OF_OBJECTS = _SAYS_NOTHING | {"properties", "required", "additionalProperties", "$schema", "$defs"}


def fits_plainly(value: dict[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether an object certainly satisfies a flat schema and has no other fields; `problems` decides what is left.

    A flat schema names its fields, each with one simple type and no bounds: those of most tools.
    """
    known = _FLAT.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_FLAT) > 4096:
            _FLAT.clear()
        known = _FLAT[id(schema)] = (schema, _flat_types(schema), frozenset(schema.get("required", ())))
    types = known[1]
    if types is None:
        return False
    for name, item in value.items():
        if type(item) is not types.get(name):
            return False
    return value.keys() >= known[2]


def _flat_types(schema: Mapping[str, Any]) -> dict[str, type] | None:
    """Return the type of each field that has a simple one and no bounds, or `None` when the object itself has more."""
    if schema.get("type", "object") != "object" or not _OF_OBJECTS.issuperset(schema):
        return None
    return {
        name: _SIMPLE[part["type"]]
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, Mapping)
        and isinstance(part.get("type"), str)
        and part["type"] in _SIMPLE
        and _SAYS_NOTHING.issuperset(part)
    }


def problems(
    value: Any, schema: Mapping[str, Any], *, root: Mapping[str, Any] | None = None, at: str = ""
) -> list[str]:
    """Say why `value` does not satisfy `schema`; an empty list means that it does.

    Args:
        value: A JSON value.
        schema: A JSON schema.
        root: The document that local references point into; by default the schema itself.
        at: Path of the value, for the messages.
    """
    root = schema if root is None else root
    schema = resolve(schema, root)
    where = at or "the value"
    declared = schema.get("type")
    if declared is not None:
        names = declared if isinstance(declared, list) else [declared]
        if not any(_is(value, name) for name in names):
            wanted = " or ".join(_ARTICLE.get(n, f"a {n}") for n in names)
            return [f"{where} must be {wanted}, not {value!r:.60}"]
    if "const" in schema and value != schema["const"]:
        return [f"{where} must be {schema['const']!r}"]
    if "enum" in schema and not any(
        value == e and isinstance(value, bool) == isinstance(e, bool) for e in schema["enum"]
    ):
        return [f"{where} must be one of {', '.join(map(repr, schema['enum']))}, not {value!r:.60}"]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            fitting = sum(not problems(value, s, root=root, at=at) for s in schema[key])
            if fitting == 0 or (key == "oneOf" and fitting > 1):
                return [f"{where} fits {fitting} of the alternatives"]
    found = [p for part in schema.get("allOf", ()) for p in problems(value, part, root=root, at=at)]
    if isinstance(value, str):
        found += _string_problems(value, schema, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found += _number_problems(value, schema, where)
    elif isinstance(value, list | tuple):
        found += _array_problems(value, schema, root, at, where)
    elif isinstance(value, dict):
        found += _object_problems(value, schema, root, at)
    return found


def _string_problems(value: str, schema: Mapping[str, Any], where: str) -> list[str]:
    out = []
    if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", len(value)):
        out.append(f"{where} has {len(value)} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        out.append(f"{where} does not match {schema['pattern']!r}")
    check = _FORMAT_CHECKS.get(schema.get("format", ""))
    if check is not None and not check.fullmatch(value):
        out.append(f"{where} is no {schema['format']}")
    return out


def _number_problems(value: float, schema: Mapping[str, Any], where: str) -> list[str]:
    out = []
    if value < schema.get("minimum", value) or value <= schema.get("exclusiveMinimum", -math.inf):
        out.append(f"{where} is too small")
    if value > schema.get("maximum", value) or value >= schema.get("exclusiveMaximum", math.inf):
        out.append(f"{where} is too large")
    step = schema.get("multipleOf")
    if step and not math.isclose(value / step, round(value / step), abs_tol=1e-9):
        out.append(f"{where} is not a multiple of {step}")
    return out


def _array_problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str, where: str) -> list[str]:
    out = []
    if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
        out.append(f"{where} has {len(value)} items")
    if schema.get("uniqueItems") and any(v in value[:i] for i, v in enumerate(value)):
        out.append(f"{where} repeats an item")
    prefix = schema.get("prefixItems", ())
    for i, item in enumerate(value):
        part = prefix[i] if i < len(prefix) else schema.get("items")
        if isinstance(part, Mapping):
            out += problems(item, part, root=root, at=f"{at}[{i}]")
    return out


def _object_problems(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> list[str]:
    dot = f"{at}." if at else ""
    out = [f"{dot}{name} is missing" for name in schema.get("required", ()) if name not in value]
    known = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            out += problems(item, known[name], root=root, at=f"{dot}{name}")
        elif extra is False:
            out.append(f"{dot}{name} is not a known field")
        elif isinstance(extra, Mapping):
            out += problems(item, extra, root=root, at=f"{dot}{name}")
    return out
