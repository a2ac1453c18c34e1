"""Providers by name, and their specs: `anthropic:<model>`, `bedrock:<model>`, `gemini:<model>`, `fireworks:<model>`,
`litellm:<provider/model>`.

Example:
    >>> from_spec("fireworks:accounts/fireworks/models/qwen3-8b", api_key="fw-1").model
    'fireworks_ai/accounts/fireworks/models/qwen3-8b'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_litellm.credentials import AWS
from whileai_litellm.model import LiteLLMModel

__all__ = ["Anthropic", "Bedrock", "Fireworks", "Gemini", "LiteLLM", "from_spec"]


async def _example_ask(**asked: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "It has shipped."}
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    return {"model": "example", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


class LiteLLM:
    """Any model by litellm's own name for it; a class so that the registry passes parameters to it."""

    prefix: ClassVar[str] = "litellm"
    path: ClassVar[str] = ""
    key_env: ClassVar[Sequence[str]] = ()
    structured: ClassVar[bool] = False

    def __new__(cls, model: str, **options: Any) -> Any:
        """Return the model; the options are those of `LiteLLMModel`."""
        if not model:
            raise ParameterError(f"{cls.prefix}: names no model", fix=f"for example {cls.prefix}:the-model")
        fixed = {"name": f"{cls.prefix}:{model}", "key_env": cls.key_env, "structured": cls.structured}
        return LiteLLMModel(f"{cls.path}{model}", **{**fixed, **options})

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters of a model that answers without a network, for the conformance kit."""
        return {"model": "example/example", "api_key": "kit-secret-key", "ask": _example_ask}


class Anthropic(LiteLLM):
    """A Claude model of the Anthropic API; the key comes from `ANTHROPIC_API_KEY`."""

    prefix, path, key_env, structured = "anthropic", "anthropic/", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), True


class Bedrock(LiteLLM):
    """A model of AWS Bedrock; credentials come from where AWS tools take them."""

    prefix, path, key_env = "bedrock", "bedrock/", AWS


class Gemini(LiteLLM):
    """A Gemini model of Google's AI Studio; the key comes from `GEMINI_API_KEY` or `GOOGLE_API_KEY`."""

    prefix, path, key_env, structured = "gemini", "gemini/", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), True


class Fireworks(LiteLLM):
    """A model of Fireworks; the key comes from `FIREWORKS_API_KEY` or `FIREWORKS_AI_API_KEY`."""

    prefix, path, structured = "fireworks", "fireworks_ai/", True
    key_env = ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")


PROVIDERS: dict[str, type[LiteLLM]] = {p.prefix: p for p in (Anthropic, Bedrock, Gemini, Fireworks, LiteLLM)}


def from_spec(spec: str, **options: Any) -> LiteLLMModel:
    """Return the model of a spec.

    Args:
        spec: `provider:model`; with `litellm:`, the model is litellm's own name, for example `litellm:groq/llama-3.3`.
        options: Further arguments of `LiteLLMModel`.

    Raises:
        ParameterError: The provider is unknown, or the model is missing.
    """
    provider, _, model = spec.partition(":")
    if provider not in PROVIDERS:
        unknown_name("model provider", provider, PROVIDERS)
    made: LiteLLMModel = PROVIDERS[provider](model, **options)
    return made
