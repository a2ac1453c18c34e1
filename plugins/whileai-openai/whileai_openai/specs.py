"""Providers and their specs: `openai:<model>`, `vllm:<model>@<url>`, `ollama:<model>`, `endpoint:<model>@<url>`.

Example:
    >>> from_spec("ollama:llama3.2")
    ChatModel('ollama:llama3.2@http://127.0.0.1:11434/v1', no key)
"""

from __future__ import annotations

import os
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_openai.client import ChatModel

__all__ = ["VLLM", "Endpoint", "Ollama", "OpenAI", "from_spec"]

OPENAI_URL = "https://api.openai.com/v1"
OLLAMA_URL = "http://127.0.0.1:11434/v1"
VLLM_URL = "http://127.0.0.1:8000/v1"


def example_params() -> dict[str, Any]:
    """Return parameters of a model that answers without a network, for the conformance kit."""
    import httpx

    message = {"role": "assistant", "content": "It has shipped."}
    reply: dict[str, Any] = {"model": "example", "choices": [{"message": message, "finish_reason": "stop"}]}
    reply["usage"] = {"prompt_tokens": 9, "completion_tokens": 4}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=reply))
    return {
        "model": "example",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key": "kit-secret-key",
        "transport": transport,
    }


class _ByName:
    """Makes a ChatModel; a class so that the registry passes parameters to it."""

    example_params = staticmethod(example_params)

    def __new__(cls, model: str, *, base_url: str | None = None, **options: Any) -> Any:
        return cls.build(model, base_url, options)

    @staticmethod
    def build(model: str, base_url: str | None, options: dict[str, Any]) -> ChatModel:
        raise NotImplementedError


class OpenAI(_ByName):
    """A model of the OpenAI API; the key comes from `OPENAI_API_KEY`, the URL from `OPENAI_BASE_URL` if set."""

    @staticmethod
    def build(model: str, base_url: str | None, options: dict[str, Any]) -> ChatModel:
        """Return the model."""
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        fixed: dict[str, Any] = {
            "provider": "openai",
            "key_env": ("OPENAI_API_KEY",),
            "max_tokens_key": "max_completion_tokens",
        }
        fixed |= {"key_required": True, "structured": "json_schema"}
        return ChatModel(model, base_url=url, **{**fixed, **options})


class VLLM(_ByName):
    """A model behind a vLLM server; token ids are asked for, so that trainers get what was sampled."""

    @staticmethod
    def build(model: str, base_url: str | None, options: dict[str, Any]) -> ChatModel:
        """Return the model."""
        extra = {"return_token_ids": True, **(options.pop("extra", None) or {})}
        fixed = {"provider": "vllm", "key_env": ("VLLM_API_KEY",), "extra": extra, "structured": "json_schema"}
        return ChatModel(model, base_url=base_url or VLLM_URL, **{**fixed, **options})


class Ollama(_ByName):
    """A model of an Ollama server on this machine, or where `OLLAMA_BASE_URL` says."""

    @staticmethod
    def build(model: str, base_url: str | None, options: dict[str, Any]) -> ChatModel:
        """Return the model."""
        url = base_url or os.environ.get("OLLAMA_BASE_URL") or OLLAMA_URL
        return ChatModel(model, base_url=url, **{"provider": "ollama", "structured": "json_schema", **options})


class Endpoint(_ByName):
    """A model behind any OpenAI-compatible server; the key comes from `WHILEAI_API_KEY` if set.

    What the server holds a reply to is not known: say `structured="json_schema"` or `"json_object"` where it does.
    """

    @staticmethod
    def build(model: str, base_url: str | None, options: dict[str, Any]) -> ChatModel:
        """Return the model."""
        if base_url is None:
            raise ParameterError(
                "an endpoint needs its URL", why="no server is a default", fix="endpoint:<model>@http://host:port/v1"
            )
        return ChatModel(
            model, base_url=base_url, **{"provider": "endpoint", "key_env": ("WHILEAI_API_KEY",), **options}
        )


PROVIDERS: dict[str, type[_ByName]] = {"openai": OpenAI, "vllm": VLLM, "ollama": Ollama, "endpoint": Endpoint}


def from_spec(spec: str, **options: Any) -> ChatModel:
    """Return the model of a spec.

    Args:
        spec: `provider:model` or `provider:model@url`. The model may hold colons and slashes; the URL begins with http.
        options: Further arguments of `ChatModel`.

    Raises:
        ParameterError: The provider is unknown, or the model or URL is missing.
        SettingsError: A key is needed and not set.
    """
    provider, _, rest = spec.partition(":")
    if provider not in PROVIDERS:
        unknown_name("model provider", provider, PROVIDERS)
    head, at, url = rest.rpartition("@http")
    model, base_url = (head, f"http{url}") if at else (rest, None)
    if not model:
        raise ParameterError(f"{spec!r} names no model", fix=f"for example {provider}:qwen3")
    made: ChatModel = PROVIDERS[provider](model, base_url=base_url, **options)
    return made
