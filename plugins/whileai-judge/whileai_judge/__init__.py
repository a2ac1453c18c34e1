"""The grading pipeline and the judges.

Importing this package imports nothing of it; names are loaded when they are first used.

Example:
    >>> import whileai_judge
    >>> rows = [{"task_id": "t", "final_text": "4"}]
    >>> graded = whileai_judge.grade(rows, lambda row: row["final_text"] == "4")
    >>> graded[0]["reward"]
    1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_judge.compare import compare_judges
    from whileai_judge.correct import corrected_pass_rate
    from whileai_judge.labels import annotator_agreement, attach_labels, gold_of
    from whileai_judge.model_judge import Judge
    from whileai_judge.pairs import ModelPairJudge, pairwise
    from whileai_judge.parsing import parse_score, parse_verdict
    from whileai_judge.pipeline import JudgeError, agrade, grade
    from whileai_judge.probes import judge_probes
    from whileai_judge.rubric import Criterion, Rubric
    from whileai_judge.trust import judge_trust

__all__ = [
    "Criterion",
    "Judge",
    "JudgeError",
    "ModelPairJudge",
    "Rubric",
    "agrade",
    "annotator_agreement",
    "attach_labels",
    "compare_judges",
    "corrected_pass_rate",
    "gold_of",
    "grade",
    "judge_probes",
    "judge_trust",
    "pairwise",
    "parse_score",
    "parse_verdict",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".compare": ("compare_judges",),
        ".correct": ("corrected_pass_rate",),
        ".labels": ("annotator_agreement", "attach_labels", "gold_of"),
        ".model_judge": ("Judge",),
        ".pairs": ("ModelPairJudge", "pairwise"),
        ".parsing": ("parse_score", "parse_verdict"),
        ".pipeline": ("JudgeError", "agrade", "grade"),
        ".probes": ("judge_probes",),
        ".rubric": ("Criterion", "Rubric"),
        ".trust": ("judge_trust",),
    },
)
