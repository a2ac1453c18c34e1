"""Parameters of tools: the entities that they refer to, the words they offer, and the examples they give.

Example:
    >>> from whileai_kernel.tools import as_tools
    >>> schema = {"type": "object", "properties": {"order_id": {"type": "string", "description": "such as 'A-17'"}}}
    >>> param = params_of(as_tools([{"name": "get_order", "parameters": schema}])[0], ("get", "order"))[0]
    >>> param.entity, param.example
    ('order', 'A-17')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whileai_kernel.tools import Tool
from whileai_simulate.lexicon import singular, words_of
from whileai_simulate.schema import resolve, type_of

__all__ = ["Param", "keyed", "nouns_of", "params_of", "reference_of"]

_NO_THINGS = frozenset({"id", "number", "code", "status", "by", "detail", "info", "location", "state", "history"})
_LOOSE = frozenset({"tracking", "confirmation", "reference", "serial", "record"})
_ID = re.compile(
    r"^(?:(?P<role>new|old|target|source|from|to|original|current)_)?(?P<entity>[a-z][a-z_]*?)_(?P<kind>ids?|numbers?|codes?|refs?)$"
)
_QUOTED = re.compile(r"['\"`]([^'\"`]{1,60})['\"`]")
_EXAMPLE = re.compile(r"(?:such as|e\.g\.|for example|example:|like|eg\.?)\s*:?,?\s*(['\"`]?)([^\s'\"`),]+)\1", re.I)
_NOT_ENTITIES = frozenset(
    [
        "zip",
        "postal",
        "country",
        "area",
        "currency",
        "language",
        "phone",
        "promo",
        "discount",
        "airport",
        "iata",
        "state",
        "error",
    ]
)


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a tool.

    Attributes:
        name: Name in calls.
        schema: JSON schema, local references resolved.
        required: Whether a call must have it.
        entity: Entity type that it refers to, or `None`.
        many: It holds a list of ids.
        role: `new` when it names what shall replace something, else empty.
        options: Words that the description offers as the only values.
        example: An example from the schema or the description.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool
    entity: str | None = None
    many: bool = False
    role: str = ""
    options: tuple[str, ...] = ()
    example: str | None = None


def params_of(tool: Tool, words: Sequence[str]) -> tuple[Param, ...]:
    """Return the parameters of a tool.

    Args:
        tool: The tool.
        words: Words of its name, the verb first.
    """
    root = tool.parameters
    required = set(root.get("required", ()))
    verb_object = [singular(w) for w in words]
    out = []
    for name, raw in root.get("properties", {}).items():
        raw = raw if isinstance(raw, Mapping) else {}
        schema = resolve(raw, root)
        text = str(raw.get("description") or schema.get("description") or "")
        entity, many, role = reference_of(name, schema, verb_object)
        entity = raw.get("x-entity") or entity
        out.append(
            Param(
                name=name,
                schema={**schema, **{k: v for k, v in raw.items() if k != "$ref"}},
                required=name in required,
                entity=entity,
                many=many,
                role=role,
                options=_options(text, schema),
                example=_example(text, schema),
            )
        )
    seen: set[str] = set()
    for n, param in enumerate(out):
        if param.entity in seen and not param.role and not param.many:
            out[n] = replace(param, role="other")  # the duplicate of the case that the first one names
        seen.add(param.entity or "")
    return tuple(out)


def reference_of(name: str, schema: Mapping[str, Any], verb_object: list[str]) -> tuple[str | None, bool, str]:
    """Return the entity that a parameter refers to, whether it lists several, and its role."""
    if "enum" in schema or type_of(schema) in ("boolean", "object"):
        return None, False, ""
    snake = "_".join(words_of(name))
    if snake in ("id", "ids", "identifier", "uuid"):
        nouns = [w for w in verb_object[1:] if w not in ("detail", "info", "status", "by", "id")]
        return (nouns[-1] if nouns else None), snake == "ids", ""
    match = _ID.match(snake)
    if match is None:
        return None, False, ""
    entity = singular(match["entity"])
    things = [w for w in verb_object[1:] if w not in _NO_THINGS]
    if entity in _LOOSE and things:
        entity = things[-1]  # the tracking number of track_package is that of the package
    elif entity == "tracking":
        entity = "package"
    last = entity.rpartition("_")[2]
    if last != entity and last in verb_object[1:] and entity not in "_".join(verb_object):
        entity = last  # the primary case of merge_cases is a case
    coded = not match["kind"].startswith("id")
    if entity.split("_")[-1] in _NOT_ENTITIES or (coded and entity in ("phone", "card", "account_holder")):
        return None, False, ""
    if type_of(schema) == "number":
        return None, False, ""
    return entity, match["kind"].endswith("s"), "new" if match["role"] in ("new", "to", "target") else ""


def _options(text: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the quoted words of "either 'a' or 'b'", which are an enum that the schema forgot."""
    if "enum" in schema or type_of(schema) != "string":
        return ()
    match = re.search(r"(?:either|one of|must be|should be|can be)\b[^.]*", text, re.I)
    words = tuple(_QUOTED.findall(match.group(0))) if match else ()
    return words if len(words) > 1 else ()


def _example(text: str, schema: Mapping[str, Any]) -> str | None:
    for source in (schema.get("examples"), [schema["example"]] if "example" in schema else None):
        if isinstance(source, list) and source and isinstance(source[0], str | int):
            return str(source[0])
    quoted = re.search(r"(?:such as|e\.g\.|for example|example:|like)\s*:?,?\s*" + _QUOTED.pattern, text, re.I)
    if quoted:
        return quoted.group(1)
    match = _EXAMPLE.search(text)
    return match.group(2).rstrip(".,;") if match else None


def keyed(tool: Tool) -> str:
    """Return what the first id among the parameters names: instance, of `instance_id`."""
    found = (_ID.match("_".join(words_of(name))) for name in tool.parameters.get("properties", {}))
    return next((match["entity"] for match in found if match and match["kind"].startswith("id")), "")


def nouns_of(tool: Tool) -> frozenset[str]:
    """Return the words of the parameters: they name things."""
    said = [words_of(name) for name in tool.parameters.get("properties", {})]
    ids = (w for words in said if words[-1:] in (("id",), ("number",), ("code",)) for w in words[:-1])
    return frozenset([*ids, *(words[0] for words in said if len(words) == 1)])
