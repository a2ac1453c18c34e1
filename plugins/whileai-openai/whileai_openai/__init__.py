"""Models behind any OpenAI-compatible server, light.

The names below are imported when they are first used, so importing the package costs nothing.

Example:
    >>> from whileai_openai import ChatModel
    >>> ChatModel("qwen3", base_url="http://127.0.0.1:8000/v1")
    ChatModel('endpoint:qwen3@http://127.0.0.1:8000/v1', no key)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai_openai.agent import ModelAgent
    from whileai_openai.cache import Cached, Recorded
    from whileai_openai.client import ChatModel
    from whileai_openai.failures import BudgetError, ModelError
    from whileai_openai.ledger import Ceilings, Estimate, Ledger, Metered, estimate
    from whileai_openai.specs import from_spec

_HOME = {
    "BudgetError": "failures",
    "Cached": "cache",
    "Ceilings": "ledger",
    "ChatModel": "client",
    "Estimate": "ledger",
    "Ledger": "ledger",
    "Metered": "ledger",
    "ModelAgent": "agent",
    "ModelError": "failures",
    "Recorded": "cache",
    "estimate": "ledger",
    "from_spec": "specs",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
