"""Models behind any OpenAI-compatible server, light.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> from whileai_openai import ChatModel
    >>> ChatModel("qwen3", base_url="http://127.0.0.1:8000/v1")
    ChatModel('endpoint:qwen3@http://127.0.0.1:8000/v1', no key)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_openai.agent import ModelAgent
    from whileai_openai.cache import Cached, Recorded
    from whileai_openai.client import ChatModel
    from whileai_openai.failures import BudgetError, ModelError
    from whileai_openai.ledger import Ceilings, Estimate, Ledger, Metered, estimate
    from whileai_openai.specs import from_spec

__all__ = [
    "BudgetError",
    "Cached",
    "Ceilings",
    "ChatModel",
    "Estimate",
    "Ledger",
    "Metered",
    "ModelAgent",
    "ModelError",
    "Recorded",
    "estimate",
    "from_spec",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".agent": ("ModelAgent",),
        ".cache": ("Cached", "Recorded"),
        ".client": ("ChatModel",),
        ".failures": ("BudgetError", "ModelError"),
        ".ledger": ("Ceilings", "Estimate", "Ledger", "Metered", "estimate"),
        ".specs": ("from_spec",),
    },
)
