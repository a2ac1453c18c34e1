"""Names that the project's own plugins offer, so that an unknown name can say what to install.

Only for error messages: nothing is looked up here. `scripts/known.py` writes it and a test keeps it complete.
"""

from __future__ import annotations

__all__ = ["KNOWN"]

# fmt: off
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "agents": {
        "simulate": (
            "honest", "seeded",
        ),
    },
    "commands": {
        "export": (
            "export",
        ),
        "measure": (
            "compare", "holdout-size", "pass-at", "self-check",
        ),
        "simulate": (
            "simulate",
        ),
        "traces": (
            "convert",
        ),
        "verify": (
            "verify",
        ),
    },
    "embedders": {
        "guard": (
            "static",
        ),
    },
    "exporters": {
        "export": (
            "anthropic", "chat", "openai", "sharegpt", "trl",
        ),
    },
    "judges": {
        "judge": (
            "rubric", "seeded",
        ),
    },
    "markers": {
        "guard": (
            "arguments_grounded", "claims_supported", "failure_acknowledged", "no_boilerplate",
            "no_bypassed_guards", "no_destructive_command", "no_false_success", "no_grader_address",
            "no_hedging", "no_injection_obeyed", "no_leak", "no_needless_apology", "no_refusal",
            "no_secrets_touched", "no_suppressed_checks", "no_sycophancy", "no_test_tampering",
        ),
    },
    "models": {
        "openai": (
            "cached", "endpoint", "metered", "ollama", "openai", "vllm",
        ),
    },
    "selectors": {
        "select": (
            "rl", "sft",
        ),
    },
    "sources": {
        "traces": (
            "anthropic", "chat", "responses", "rows", "sharegpt", "tau2_bench", "tau_bench",
        ),
    },
    "statistics": {
        "measure": (
            "coverage_gap", "pass_at",
        ),
    },
    "verifiers": {
        "simulate": (
            "outcome",
        ),
        "verify": (
            "all", "any", "arguments", "called", "code_exec", "exact_match", "final_state", "format_tags",
            "gate", "includes", "json_field", "json_schema", "json_valid", "math_equal", "multiple_choice",
            "not", "not_called", "numeric", "regex", "rule_checks", "sequence", "sql", "weighted",
        ),
    },
    "writers": {
        "simulate": (
            "offline",
        ),
    },
}
"""Kind -> plugin name -> bare names."""
# fmt: on
