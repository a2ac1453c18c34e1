"""Models of every provider that litellm reaches.

The names below are imported when they are first used, and litellm itself when the first request is made.

Example:
    >>> import whileai_litellm
    >>> whileai_litellm.from_spec("anthropic:claude-sonnet-4-5", api_key="sk-1").id
    'anthropic:claude-sonnet-4-5'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_litellm.failures import ModelError
    from whileai_litellm.model import LiteLLMModel
    from whileai_litellm.providers import from_spec

__all__ = ["LiteLLMModel", "ModelError", "from_spec"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".failures": ("ModelError",),
        ".model": ("LiteLLMModel",),
        ".providers": ("from_spec",),
    },
)
