"""Before against after on the same tasks: a paired comparison whose verdict and interval agree.

Tasks are paired by id, rollouts are averaged within their task first. The verdict is that of a sign-flip test, exact
where it can be enumerated; the interval excludes zero exactly when the test rejects. What did not pair, and what else
differs between the two sides and could explain the change, is said, and where it can explain all of it the answer is
"not comparable".

Example:
    >>> def rows(rewards): return [{"task_id": f"t{i}", "reward": r} for i, r in enumerate(rewards)]
    >>> print(compare(rows([0, 0, 0, 0, 0, 1, 0, 0]), rows([1, 1, 1, 1, 1, 1, 1, 1])))
    improved: pass@1 0.12 -> 1.00, +0.88 [+0.28..+1.00], p=0.016 (8 paired tasks)
"""

from __future__ import annotations

from collections.abc import Sequence

from whileai_kernel.errors import unknown_name
from whileai_measure.changes import ALLOWED, Comparison
from whileai_measure.columns import Label, RowsLike, extract
from whileai_measure.defaults import (
    AGREE_PSEUDO,
    CONFIDENCE,
    EQUIVALENCE_ALPHA,
    EXACT_TASKS,
    MIN_SHARED,
    PERMUTATION_DRAWS,
    SEED,
    SHARE_GAP,
)
from whileai_measure.intervals import check_confidence
from whileai_measure.paired import Sides, levels_and_p, metric_names, paired_tests, unpaired_tests
from whileai_measure.verdict import judge, noise_floors, reasons_against, verdict_of

__all__ = ["compare"]


def compare(
    before: RowsLike,
    after: RowsLike,
    *,
    target: str = "pass@1",
    must_not_regress: Sequence[str] | str = (),
    proxy: str | None = None,
    adjust: str | None = None,
    paired: bool = True,
    run_std: float | None = None,
    run_std_runs: int | None = None,
    seed_std: float | None = None,
    seed_runs: int | None = None,
    margin: float | None = None,
    allow: Sequence[str] = (),
    threshold: float | None = None,
    cluster: Label | None = None,
    confidence: float = CONFIDENCE.value,
    min_shared: float = MIN_SHARED.value,
    share_gap: float = SHARE_GAP.value,
    pseudo: float = AGREE_PSEUDO.value,
    equivalence_alpha: float = EQUIVALENCE_ALPHA.value,
    draws: int = PERMUTATION_DRAWS.value,
    exact_tasks: int = EXACT_TASKS.value,
    seed: int = SEED.value,
) -> Comparison:
    """Compare two sets of rows on pass@1, mean reward (where rewards are fractions) and every marker that both have.

    Args:
        before: Rows of the first policy: rows, an iterator, a path or a table.
        after: Rows of the second policy.
        target: Metric that the verdict is about.
        must_not_regress: Further metrics whose regression counts as one.
        proxy: Metric that was trained on; where it rose and the target did not follow, `over_optimised` is set.
        adjust: `"holm"` adjusts over all metrics; the error of the family is reported either way.
        paired: Pair by task id. `False` compares means of two different task sets and says so.
        run_std: Standard deviation of the whole metric between re-runs of one policy (see `eval_variance`).
        run_std_runs: Re-runs that `run_std` was estimated from; sets its t quantile.
        seed_std: The same between training seeds; kept apart, because it is another source of noise.
        seed_runs: Seeds that `seed_std` was estimated from.
        margin: Size of a difference that would matter; the sentence then says whether the data rule it out.
        allow: Reasons among `ALLOWED` that shall not make the sides "not comparable".
        threshold: Reward from which a rollout passes, instead of the row's own.
        cluster: Label of tasks that are one independent unit; differences are averaged within it first.
        confidence: Level of the intervals; 1 - confidence is the size of the test.
        min_shared: Refuse when less than this share of all tasks is on both sides.
        share_gap: Difference in truncated or scored share that is never held against the comparison.
        pseudo: Pseudo differences in the least width of the interval.
        equivalence_alpha: Error rate of "no difference larger than X".
        draws: Sign patterns drawn where they are not enumerated.
        exact_tasks: Up to this many tasks all sign patterns are enumerated.
        seed: Seed of the draws.

    Returns:
        The comparison.

    Raises:
        RowError: A row cannot be read.
        ParameterError: An argument has no meaning here, or names a metric that neither side has.
    """
    check_confidence(confidence)
    if adjust not in (None, "holm"):
        unknown_name("adjustment", str(adjust), ["holm"])
    for name in allow:
        if name not in ALLOWED:
            unknown_name("reason", name, ALLOWED)
    guarded = (must_not_regress,) if isinstance(must_not_regress, str) else tuple(must_not_regress)
    labels = {} if cluster is None else {"cluster": cluster}
    a = extract(before, threshold=threshold, markers=True, context=True, labels=labels)
    b = extract(after, threshold=threshold, markers=True, context=True, labels=labels)
    names = metric_names(a, b, (target, *guarded, proxy))
    for name in (target, *guarded, *((proxy,) if proxy else ())):
        if name not in names:
            unknown_name("metric", name, names)
    floors = noise_floors(run_std, run_std_runs, seed_std, seed_runs, confidence)
    sides = Sides(a, b)
    tests = (
        paired_tests(sides, names, cluster is not None, draws, exact_tasks, seed)
        if paired
        else unpaired_tests(a, b, names)
    )
    levels, adjusted = levels_and_p(tests, confidence, adjust)
    changes = {}
    for name in names:
        change = tests[name].finish(levels[name], adjusted[name], pseudo, equivalence_alpha)
        changes[name] = judge(change, floors, margin, confidence, equivalence_alpha)
    reasons = reasons_against(sides, changes[target], paired, min_shared, share_gap, tuple(allow))
    return verdict_of(sides, changes, target, guarded, proxy, paired, reasons, floors, adjust, confidence)
