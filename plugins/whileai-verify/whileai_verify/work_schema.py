"""Worker side of `structure.JSONSchema` for schemas with regular expressions."""

from __future__ import annotations

from typing import Any

import jsonschema  # noqa: F401 - loaded before the first deadline runs

from whileai_verify.structure import schema_problem


def work(argument: Any) -> str | None:
    """Return the problem of `[value, schema_text]`, or `None`."""
    value, schema_text = argument
    return schema_problem(value, schema_text)
