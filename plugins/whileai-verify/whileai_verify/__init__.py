"""Verifiers: rewards that are programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_verify.auditing import audit, null_agents
    from whileai_verify.batch import averify_rows, verify_rows
    from whileai_verify.calls import Arguments, Called, NotCalled, Sequence
    from whileai_verify.choice import MultipleChoice
    from whileai_verify.code import CodeExec
    from whileai_verify.combine import All, Any, Gate, Not, Weighted
    from whileai_verify.decorate import verifier
    from whileai_verify.matheq import MathEqual
    from whileai_verify.number import Numeric
    from whileai_verify.rules import FormatTags, RuleChecks
    from whileai_verify.sql import SQL
    from whileai_verify.state import FinalState
    from whileai_verify.structure import JSONField, JSONSchema, JSONValid
    from whileai_verify.text import ExactMatch, Includes, Regex

__all__ = [
    "SQL",
    "All",
    "Any",
    "Arguments",
    "Called",
    "CodeExec",
    "ExactMatch",
    "FinalState",
    "FormatTags",
    "Gate",
    "Includes",
    "JSONField",
    "JSONSchema",
    "JSONValid",
    "MathEqual",
    "MultipleChoice",
    "Not",
    "NotCalled",
    "Numeric",
    "Regex",
    "RuleChecks",
    "Sequence",
    "Weighted",
    "audit",
    "averify_rows",
    "null_agents",
    "verifier",
    "verify_rows",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".auditing": ("audit", "null_agents"),
        ".batch": ("averify_rows", "verify_rows"),
        ".calls": ("Arguments", "Called", "NotCalled", "Sequence"),
        ".choice": ("MultipleChoice",),
        ".code": ("CodeExec",),
        ".combine": ("All", "Any", "Gate", "Not", "Weighted"),
        ".decorate": ("verifier",),
        ".matheq": ("MathEqual",),
        ".number": ("Numeric",),
        ".rules": ("FormatTags", "RuleChecks"),
        ".sql": ("SQL",),
        ".state": ("FinalState",),
        ".structure": ("JSONField", "JSONSchema", "JSONValid"),
        ".text": ("ExactMatch", "Includes", "Regex"),
    },
)
