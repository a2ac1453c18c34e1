"""The light module of whileai-litellm: what it adds, as strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register

_PREFIXES = ("anthropic", "bedrock", "gemini", "fireworks", "litellm")


@hookimpl
def wai_register_models(register: Register) -> None:
    """Register the providers."""
    home = "whileai_litellm.providers"
    register("anthropic", f"{home}:Anthropic", needs="litellm", summary="A Claude model; key from ANTHROPIC_API_KEY.")
    register("bedrock", f"{home}:Bedrock", needs="litellm", summary="A model of AWS Bedrock; credentials as AWS tools.")
    register("gemini", f"{home}:Gemini", needs="litellm", summary="A Gemini model; key from GEMINI_API_KEY.")
    register("fireworks", f"{home}:Fireworks", needs="litellm", summary="A Fireworks model; FIREWORKS_API_KEY.")
    register("litellm", f"{home}:LiteLLM", needs="litellm", summary="Any model that litellm knows, by its name there.")


@hookimpl
def wai_resolve(kind: str, ref: object) -> object | None:
    """Make a model, or an agent that is one, of a spec such as `anthropic:claude-sonnet-4-5`."""
    if kind not in ("models", "agents") or not isinstance(ref, str):
        return None
    prefix, _, name = ref.partition(":")
    if prefix not in _PREFIXES or not name:
        return None
    from whileai_litellm.providers import from_spec

    if kind == "models":
        return from_spec(ref)
    from whileai_kernel import make

    agent: object = make("agents", "openai/model", model=from_spec(ref))
    return agent
