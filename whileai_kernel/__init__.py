"""The kernel of whileai: rows, hooks, registry. It holds no engine, statistic, prompt or model.

Importing it loads nothing; every name below is imported when it is first used.

Example:
    >>> from whileai_kernel import hookimpl
    >>> @hookimpl
    ... def wai_register_verifiers(register):
    ...     register("shared", "acme_graders.shared:Shared", summary="Words shared with the reference.")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_kernel.dataset import Dataset
    from whileai_kernel.defaults import Sourced
    from whileai_kernel.errors import WhileaiError
    from whileai_kernel.hookspecs import hookimpl
    from whileai_kernel.lifecycle import Finding, Stage, StopStage
    from whileai_kernel.models import Judgment, Marker, Rollout, Task, from_row, to_row
    from whileai_kernel.registry import Entry, Spec, entries, lookup, make, register_local, resolve, spec_of
    from whileai_kernel.rows import SCHEMA_VERSION, make_rows
    from whileai_kernel.tools import Tool, as_tool, as_tools, tool

__all__ = [
    "SCHEMA_VERSION",
    "Dataset",
    "Entry",
    "Finding",
    "Judgment",
    "Marker",
    "Rollout",
    "Sourced",
    "Spec",
    "Stage",
    "StopStage",
    "Task",
    "Tool",
    "WhileaiError",
    "as_tool",
    "as_tools",
    "entries",
    "from_row",
    "hookimpl",
    "lookup",
    "make",
    "make_rows",
    "register_local",
    "resolve",
    "spec_of",
    "to_row",
    "tool",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".dataset": ("Dataset",),
        ".defaults": ("Sourced",),
        ".errors": ("WhileaiError",),
        ".hookspecs": ("hookimpl",),
        ".lifecycle": ("Finding", "Stage", "StopStage"),
        ".models": ("Judgment", "Marker", "Rollout", "Task", "from_row", "to_row"),
        ".registry": ("Entry", "Spec", "entries", "lookup", "make", "register_local", "resolve", "spec_of"),
        ".rows": ("SCHEMA_VERSION", "make_rows"),
        ".tools": ("Tool", "as_tool", "as_tools", "tool"),
    },
)
