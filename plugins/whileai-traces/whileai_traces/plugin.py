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
    (
        "prompt_completion",
        "formats.tables:PromptCompletion",
        "Prompt and completion columns: CSV, JSONL, Parquet",
        "parquet",
    ),
    ("inspect", "formats.evals:InspectLog", "Logs of inspect-ai: .eval and JSON", "zstd"),
    ("lm_eval", "formats.evals:LmEvalSamples", "Samples of lm-evaluation-harness", None),
    ("promptfoo", "formats.evals:PromptfooResults", "Results of promptfoo", None),
    ("verifiers", "formats.verifiers:VerifiersResults", "Traces and results of verifiers", None),
    ("otel", "formats.spans:OtelGenAI", "OpenTelemetry GenAI spans: OTLP JSON and SDK JSON", None),
    ("openinference", "formats.openinference:OpenInference", "OpenInference spans", None),
    ("langfuse", "formats.platforms:Langfuse", "Exports of Langfuse", None),
    ("langsmith", "formats.platforms:LangSmith", "Exports of LangSmith", None),
    ("agents_sdk", "formats.platforms:AgentsSDK", "Traces of the OpenAI Agents SDK", None),
)


@hookimpl
def wai_register_sources(register: Any) -> None:
    """Register the formats that can be read."""
    for name, target, summary, needs in SOURCES:
        register(name, f"whileai_traces.{target}", summary=summary, needs=needs)


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register `wai convert`."""
    register(
        "convert",
        "whileai_traces.command:ConvertCommand",
        summary="Turn recorded runs into rows or a trainer's format.",
    )
