"""The light module of whileai-export: what it adds, as strings."""

from typing import Any

from whileai_kernel import hookimpl

EXPORTERS = (
    ("chat", "Chat", "OpenAI chat JSONL with task, reward and group figures"),
    ("openai", "OpenAI", "OpenAI fine-tuning files, weights per message"),
    ("trl", "TRL", "TRL and Hugging Face templates"),
    ("anthropic", "Anthropic", "Anthropic messages with blocks"),
    ("sharegpt", "ShareGPT", "ShareGPT conversations"),
)


@hookimpl
def wai_register_exporters(register: Any) -> None:
    """Register the targets that rows can be written for."""
    for name, attribute, summary in EXPORTERS:
        register(name, f"whileai_export.exporters:{attribute}", summary=summary)


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register `wai export`."""
    register("export", "whileai_export.command:ExportCommand", summary="Write rows for a trainer.")
