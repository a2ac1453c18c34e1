"""A real small model offline: llama.cpp in this process, with an OpenAI-compatible server on loopback.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> import whileai_local
    >>> whileai_local.Local("smollm2")
    Local('local:smollm2', no key needed)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_local.model import Local
    from whileai_local.server import Served, serve
    from whileai_local.weights import Weights, find_weights

__all__ = ["Local", "Served", "Weights", "find_weights", "serve"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".model": ("Local",),
        ".server": ("Served", "serve"),
        ".weights": ("Weights", "find_weights"),
    },
)
