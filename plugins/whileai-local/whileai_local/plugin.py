"""The light module of whileai-local: what it adds, as strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel import hookimpl

if TYPE_CHECKING:
    from whileai_kernel.protocols import Register


@hookimpl
def wai_register_models(register: Register) -> None:
    """Register the local model."""
    register(
        "local",
        "whileai_local.model:Local",
        summary="A small model in this process, offline: smollm2, or a GGUF file.",
        needs="server",
        capabilities={"json_schema", "logprobs"},
    )


@hookimpl
def wai_resolve(kind: str, ref: object) -> object | None:
    """Make a model, or an agent that is one, of `local:smollm2` or `local:/path/model.gguf`."""
    if kind not in ("models", "agents") or not isinstance(ref, str) or not ref.startswith("local:"):
        return None
    from whileai_local.model import Local

    model = Local(ref.removeprefix("local:"))
    if kind == "models":
        return model
    from whileai_kernel import make

    agent: object = make("agents", "openai/model", model=model)
    return agent
