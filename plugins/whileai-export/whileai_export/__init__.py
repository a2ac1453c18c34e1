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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_export.api import export
    from whileai_export.encoders import encode, encode_tools
    from whileai_export.preflight import Preflight, preflight_export
    from whileai_kernel.protocols import ExportReport

__all__ = ["ExportReport", "Preflight", "encode", "encode_tools", "export", "preflight_export"]

_HOME = {
    "ExportReport": "whileai_kernel.protocols",
    "Preflight": "whileai_export.preflight",
    "encode": "whileai_export.encoders",
    "encode_tools": "whileai_export.encoders",
    "export": "whileai_export.api",
    "preflight_export": "whileai_export.preflight",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
