"""The light module of whileai-traces: what it adds, as strings."""

from typing import Any

from whileai_kernel import hookimpl

SOURCES = (
    ("rows", "formats.rows:Rows", "Rows of this project, all versions", None),
    ("chat", "formats.chat:OpenAIChat", "OpenAI chat JSONL, and logged requests with choices", None),
    ("responses", "formats.chat:ResponsesItems", "OpenAI Responses objects and items", None),
    ("anthropic", "formats.chat:AnthropicMessages", "Anthropic messages with blocks", None),
    ("sharegpt", "formats.chat:ShareGPT", "ShareGPT conversations", None),
    ("tau_bench", "formats.tau:TauBench", "Results of tau-bench", None),
    ("tau2_bench", "formats.tau:Tau2Bench", "Results of tau2-bench", None),
)


@hookimpl
def wai_register_sources(register: Any) -> None:
    """Register the formats that can be read."""
    for name, target, summary, needs in SOURCES:
        register(name, f"whileai_traces.{target}", summary=summary, needs=needs)


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register `wai convert`."""
    register("convert", "whileai_traces.command:ConvertCommand", summary="Recorded runs to rows or to a trainer's format")
