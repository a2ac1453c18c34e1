"""Tool schemas from observed calls: what a simulation needs when only recordings of an agent are there.

Example:
    >>> call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": '{"k": 1}'}}
    >>> rows = [{"messages": [{"role": "assistant", "content": "", "tool_calls": [call]},
    ...                       {"role": "tool", "tool_call_id": "a", "content": '{"ok": true}'}]}]
    >>> tools_from_traces(rows)[0]["function"]["parameters"]["properties"]
    {'k': {'type': 'integer'}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_kernel.messages import tool_calls
from whileai_traces.defaults import ENUM_REPEATS, ENUM_VALUES

__all__ = ["tools_from_traces"]


def tools_from_traces(
    rows: Iterable[Mapping[str, Any]],
    *,
    enum_values: int = ENUM_VALUES.value,
    enum_repeats: int = ENUM_REPEATS.value,
) -> list[dict[str, Any]]:
    """Infer the tools of an agent from its recorded calls.

    Recorded schemas win: a tool that a row declares is returned as declared. For the others each argument gets the
    types that were seen, is required when every call had it, and is an enum when few short texts repeat often.

    Args:
        rows: Rows with messages.
        enum_values: Most values that an enum may have.
        enum_repeats: Calls per value that make an enum, at least.

    Returns:
        OpenAI tool dicts in order of first appearance, `x-returns` from the results that were JSON, and
        `x-observed` with the number of calls. They can be passed to `simulate(tools=...)`.
    """
    declared: dict[str, dict[str, Any]] = {}
    seen: dict[str, list[dict[str, Any]]] = {}
    results: dict[str, list[Any]] = {}
    for row in rows:
        for tool in row.get("tools") or ():
            declared.setdefault(tool["function"]["name"], dict(tool))
        for call in tool_calls(row.get("messages") or ()):
            if call.name:
                seen.setdefault(call.name, []).append(call.arguments or {})
                if call.result is not None:
                    results.setdefault(call.name, []).append(call.result)
    pool: dict[str, set[str]] = {}
    for group in seen.values():
        for arguments in group:
            for key, value in arguments.items():
                if isinstance(value, str):
                    pool.setdefault(key, set()).add(value)
    rule = _EnumRule(enum_values, enum_repeats, pool)
    out = []
    for name in dict.fromkeys([*declared, *seen]):
        if name in declared:
            out.append(declared[name])
            continue
        parameters = _object_schema(seen[name], rule)
        tool = {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}
        returned = [v for text in results.get(name, ()) if isinstance(v := _json(text), dict)]
        if returned:
            tool["x-returns"] = _object_schema(returned, rule)
        tool["x-observed"] = len(seen[name])
        out.append(tool)
    return out


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


@dataclass(frozen=True, slots=True)
class _EnumRule:
    """When an argument is an enum: few texts, each repeated, under that argument name in every tool."""

    values: int
    repeats: int
    pool: Mapping[str, set[str]]

    def holds(self, key: str, texts: set[str], count: int) -> bool:
        everywhere = self.pool.get(key, texts)
        return len(texts) > 1 and len(everywhere) <= self.values and count >= self.repeats * len(texts)


def _object_schema(objects: list[dict[str, Any]], rule: _EnumRule) -> dict[str, Any]:
    keys = list(dict.fromkeys(key for item in objects for key in item))
    properties = {key: _schema(key, [item[key] for item in objects if key in item], rule) for key in keys}
    required = [key for key in keys if all(key in item for item in objects)]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _schema(key: str, values: list[Any], rule: _EnumRule) -> dict[str, Any]:
    types = list(dict.fromkeys(_type(v) for v in values))
    if "number" in types and "integer" in types:
        types.remove("integer")
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else sorted(types)}
    texts = {v for v in values if isinstance(v, str)}
    if types == ["string"] and rule.holds(key, texts, len(values)):
        schema["enum"] = sorted(rule.pool.get(key, texts) | texts)
    objects = [v for v in values if isinstance(v, dict)]
    if objects:
        inner = _object_schema(objects, rule)
        schema |= {k: inner[k] for k in ("properties", "required") if k in inner}
    items = [item for v in values if isinstance(v, list) for item in v]
    if items:
        schema["items"] = _schema("", items, rule)
    return schema
