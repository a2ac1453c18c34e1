"""Is the judge the model that it judges, or of its family?

Models prefer their own answers (Panickssery et al. 2024, "LLM Evaluators Recognize and Favor Their Own
Generations"), so the relation is part of every verdict. It is read from names, which is all there is: a fine-tune with
a name of its own looks unrelated.

Example:
    >>> relation_of("openai:gpt-5-mini", "gpt-5-mini"), relation_of("gpt-5", "gpt-4o"), relation_of("gpt-5", None)
    ('same model', 'same family', 'unknown')
"""

from __future__ import annotations

import re
from typing import Any

_WORD = re.compile(r"[a-z]+")
_NOT_A_FAMILY = frozenset(("the", "my", "local", "model", "ft", "base", "instruct", "chat"))


def model_name(model: Any) -> str:
    """The name of a model: its ``id``, ``model`` or ``name``, else its type."""
    for attribute in ("id", "model", "name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return type(model).__name__


def bare_name(name: str) -> str:
    """A model's name without provider and address: of ``vllm:org/qwen3-8b@http://host`` it is ``qwen3-8b``."""
    return re.split(r"[:/]", name.casefold().partition("@")[0])[-1]


def family_of(name: str) -> str:
    """The first word of a model's bare name: ``gpt-5-mini`` and ``gpt-4o`` are ``gpt``."""
    words = [word for word in _WORD.findall(bare_name(name)) if word not in _NOT_A_FAMILY]
    return words[0] if words else bare_name(name)


def relation_of(judge: str, policy: str | None) -> str:
    """``same model``, ``same family``, ``unrelated``, or ``unknown`` when the row does not name its model."""
    if not policy:
        return "unknown"
    if bare_name(judge) == bare_name(policy):
        return "same model"
    return "same family" if family_of(judge) == family_of(policy) else "unrelated"
