"""A real small model offline: llama.cpp in this process, with an OpenAI-compatible server on loopback.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> import whileai_local
    >>> whileai_local.Local("smollm2")
    Local('local:smollm2', no key needed)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_local.model import Local
    from whileai_local.server import Served, serve
    from whileai_local.weights import Weights, find_weights

_HOME = {
    "Local": "model",
    "Served": "server",
    "Weights": "weights",
    "find_weights": "weights",
    "serve": "server",
}

__all__ = ["Local", "Served", "Weights", "find_weights", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
