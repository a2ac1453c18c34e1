"""Verifiers: rewards that are programs."""

from __future__ import annotations

import importlib
import typing as _typing

_HOMES = {
    "All": "combine", "Any": "combine", "Arguments": "calls", "Called": "calls", "CodeExec": "code",
    "ExactMatch": "text", "FinalState": "state", "FormatTags": "rules", "Gate": "combine", "Includes": "text",
    "JSONField": "structure", "JSONSchema": "structure", "JSONValid": "structure", "MathEqual": "matheq",
    "MultipleChoice": "choice", "Not": "combine", "NotCalled": "calls", "Numeric": "number", "Regex": "text",
    "RuleChecks": "rules", "SQL": "sql", "Sequence": "calls", "Weighted": "combine", "audit": "auditing",
    "null_agents": "auditing", "averify_rows": "batch", "verifier": "decorate", "verify_rows": "batch",
}  # fmt: skip

__all__ = list(_HOMES)


def __getattr__(name: str) -> _typing.Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
