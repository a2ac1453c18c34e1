"""pass@k, pass^k, mean reward and comparisons, with intervals over tasks.

Importing the package loads no numpy and no scipy: every name is imported when it is first used.

Example:
    >>> import whileai_measure as measure
    >>> print(measure.pass_at([{"task_id": "a", "reward": 1}, {"task_id": "b", "reward": 0}]))
    pass@1 0.50 [0.00..1.00] (2 tasks, k=1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_measure.alpha import krippendorff_alpha
    from whileai_measure.changes import Change, Comparison
    from whileai_measure.columns import Columns, extract
    from whileai_measure.comparison import compare
    from whileai_measure.correction import CorrectedRate, rogan_gladen
    from whileai_measure.coverage import CoverageGap, coverage_gap
    from whileai_measure.estimators import pass_at_k, pass_hat_k
    from whileai_measure.intervals import Estimate, mean_interval
    from whileai_measure.judged import JudgeAgreement, judge_agreement
    from whileai_measure.passat import PassAt, pass_at
    from whileai_measure.power import EvalPower, HoldoutSize, detectable_effect, eval_power, holdout_size
    from whileai_measure.raters import (
        Agreement,
        Confusion,
        Effect,
        agreement,
        confusion,
        length_effect,
        position_effect,
    )
    from whileai_measure.selfcheck import SelfCheck, self_check
    from whileai_measure.sequential import ConfidenceSequence, StopWhen, stop_when
    from whileai_measure.signflip import SignFlip, sign_flip
    from whileai_measure.variance import EvalVariance, NoiseBand, eval_variance, noise_band

__all__ = [
    "Agreement",
    "Change",
    "Columns",
    "Comparison",
    "ConfidenceSequence",
    "Confusion",
    "CorrectedRate",
    "CoverageGap",
    "Effect",
    "Estimate",
    "EvalPower",
    "EvalVariance",
    "HoldoutSize",
    "JudgeAgreement",
    "NoiseBand",
    "PassAt",
    "SelfCheck",
    "SignFlip",
    "StopWhen",
    "agreement",
    "compare",
    "confusion",
    "coverage_gap",
    "detectable_effect",
    "eval_power",
    "eval_variance",
    "extract",
    "holdout_size",
    "judge_agreement",
    "krippendorff_alpha",
    "length_effect",
    "mean_interval",
    "noise_band",
    "pass_at",
    "pass_at_k",
    "pass_hat_k",
    "position_effect",
    "rogan_gladen",
    "self_check",
    "sign_flip",
    "stop_when",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".alpha": ("krippendorff_alpha",),
        ".changes": ("Change", "Comparison"),
        ".columns": ("Columns", "extract"),
        ".comparison": ("compare",),
        ".correction": ("CorrectedRate", "rogan_gladen"),
        ".coverage": ("CoverageGap", "coverage_gap"),
        ".estimators": ("pass_at_k", "pass_hat_k"),
        ".intervals": ("Estimate", "mean_interval"),
        ".judged": ("JudgeAgreement", "judge_agreement"),
        ".passat": ("PassAt", "pass_at"),
        ".power": ("EvalPower", "HoldoutSize", "detectable_effect", "eval_power", "holdout_size"),
        ".raters": ("Agreement", "Confusion", "Effect", "agreement", "confusion", "length_effect", "position_effect"),
        ".selfcheck": ("SelfCheck", "self_check"),
        ".sequential": ("ConfidenceSequence", "StopWhen", "stop_when"),
        ".signflip": ("SignFlip", "sign_flip"),
        ".variance": ("EvalVariance", "NoiseBand", "eval_variance", "noise_band"),
    },
)
