"""The light module of whileai-measure: what it adds, as strings."""

from __future__ import annotations

from typing import Any

from whileai_kernel import hookimpl


@hookimpl
def wai_register_statistics(register: Any) -> None:
    """Register the statistics."""
    register("pass_at", "whileai_measure.passat:pass_at", summary="pass@1, pass^k, pass@k with intervals over tasks.")
    register(
        "judge_agreement",
        "whileai_measure.judged:judge_agreement",
        summary="A scorer against labels: accuracy, kappa, AC1, and the pass rate corrected for its errors.",
    )
    register("coverage_gap", "whileai_measure.coverage:coverage_gap", summary="Situations and tools never reached.")


@hookimpl
def wai_register_commands(register: Any) -> None:
    """Register the sub-commands of `wai`."""
    register("pass-at", "whileai_measure.cli:PassAt", summary="Print pass@1, pass^k and pass@k of a file of rows.")
    register("compare", "whileai_measure.cli:Compare", summary="Compare two files of rows on the same tasks.")
    register("holdout-size", "whileai_measure.cli:HoldoutSize", summary="How many tasks an eval needs.")
    register("self-check", "whileai_measure.cli:SelfCheck", summary="Check intervals and tests by simulation.")
