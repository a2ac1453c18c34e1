"""Models of every provider that litellm reaches.

The names below are imported when they are first used, and litellm itself when the first request is made.

Example:
    >>> import whileai_litellm
    >>> whileai_litellm.from_spec("anthropic:claude-sonnet-4-5", api_key="sk-1").id
    'anthropic:claude-sonnet-4-5'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_litellm.failures import ModelError
    from whileai_litellm.model import LiteLLMModel
    from whileai_litellm.providers import from_spec

_HOME = {"LiteLLMModel": "model", "ModelError": "failures", "from_spec": "providers"}

__all__ = ["LiteLLMModel", "ModelError", "from_spec"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
