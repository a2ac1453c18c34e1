"""Files that trainers read as meant.

The names below are loaded when they are first used, so that importing the package loads nothing.

Example:
    >>> import pathlib, tempfile
    >>> from whileai_export import export
    >>> rows = [{"task_id": "t", "prompt": "2+2?", "final_text": "4", "reward": 1.0, "status": "ok"}]
    >>> export(rows, pathlib.Path(tempfile.mkdtemp()) / "train.jsonl", to="trl").written
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_export.api import export
    from whileai_export.encoders import encode, encode_tools
    from whileai_export.preflight import Preflight, preflight_export
    from whileai_kernel.protocols import ExportReport

__all__ = ["ExportReport", "Preflight", "encode", "encode_tools", "export", "preflight_export"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".api": ("export",),
        ".encoders": ("encode", "encode_tools"),
        ".preflight": ("Preflight", "preflight_export"),
        "whileai_kernel.protocols": ("ExportReport",),
    },
)
