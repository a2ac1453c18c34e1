"""The light module of whileai-openai: what it adds, as strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register

_PREFIXES = ("openai", "vllm", "ollama", "endpoint")


@hookimpl
def wai_register_models(register: Register) -> None:
    """Register the providers and the wrappers."""
    register("openai", "whileai_openai.specs:OpenAI", summary="A model of the OpenAI API; key from OPENAI_API_KEY.")
    register("vllm", "whileai_openai.specs:VLLM", summary="A model behind a vLLM server, with token ids.")
    register("ollama", "whileai_openai.specs:Ollama", summary="A model of a local Ollama server.")
    register("endpoint", "whileai_openai.specs:Endpoint", summary="A model behind any OpenAI-compatible server.")
    register("cached", "whileai_openai.cache:Cached", summary="Another model with its replies kept in SQLite.")
    register("metered", "whileai_openai.ledger:Metered", summary="Another model with a ledger and ceilings.")


@hookimpl
def wai_register_agents(register: Register) -> None:
    """Register the agent that is a model."""
    register("model", "whileai_openai.agent:ModelAgent", summary="A chat model with the task's tools.")


@hookimpl
def wai_resolve(kind: str, ref: object) -> object | None:
    """Make a model, or an agent that is one, of a spec such as `vllm:qwen3@http://127.0.0.1:8000/v1`.

    A model object of any plugin is an agent too: `simulate(wai.Endpoint("qwen3", base_url=...))`.
    """
    if kind == "agents" and not isinstance(ref, str) and callable(getattr(ref, "complete", None)):
        from whileai_openai.agent import ModelAgent

        model: Any = ref
        return ModelAgent(model)
    if kind not in ("models", "agents") or not isinstance(ref, str):
        return None
    if ref.partition(":")[0] not in _PREFIXES or not ref.partition(":")[2]:
        return None
    from whileai_openai.agent import ModelAgent
    from whileai_openai.specs import from_spec

    return from_spec(ref) if kind == "models" else ModelAgent(from_spec(ref))
