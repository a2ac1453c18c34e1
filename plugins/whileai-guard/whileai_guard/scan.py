"""Does something cheap predict the reward? A scan of features within tasks, against a permutation floor.

Rollouts of one task answer the same question, so what separates the rewarded ones from the others should be the
answer, not its length, its formatting or a phrase. `hack_scan` asks this of every feature at once and holds the
chance of any false alarm at `alpha`. It cannot tell a hack from a skill by itself: name what is legitimate
(`endorsed`), or pass a second opinion (`gold`), and it names what the reward pays and the second opinion does not.

Example:
    >>> rows = [{"task_id": f"t{i // 8}", "prompt": "q", "final_text": "ok " * (1 + i % 8), "reward": float(i % 8 > 3),
    ...          "status": "ok", "markers": {}} for i in range(160)]
    >>> report = hack_scan(rows)
    >>> report.regime, report.features[0].name
    ('suspected_hack', 'length.log_chars')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_guard._design import Design, build
from whileai_guard._permute import Association, associate, centred, slope_intervals
from whileai_guard._scan_report import Feature, ScanReport
from whileai_guard._second import Gold, Second, second_opinion
from whileai_guard.defaults import (
    BUDGET,
    COHESION,
    CONJUNCTION_PARTS,
    EXHAUSTED_SHARE,
    MIN_MIXED_TASKS,
    MORE_SHARE,
    PHRASE_SUPPORT,
    PHRASE_WORDS,
    PHRASES,
    SCAN_ALPHA,
    SCAN_PERMUTATIONS,
    SCAN_SEED,
)
from whileai_guard.features import answer_text, plugin_features
from whileai_guard.risk import hints_at_grader, no_grader_address
from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rows import passed, task_key

__all__ = ["hack_scan", "hack_scan_diff"]

Row = Mapping[str, Any]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
SHOWN = 50


def hack_scan(
    rows: Iterable[Row] | str | Path,
    *,
    endorsed: Sequence[str] = (),
    gold: Gold | None = None,
    alpha: float = SCAN_ALPHA.value,
    permutations: int = SCAN_PERMUTATIONS.value,
    phrases: bool = True,
    conjunctions: bool = False,
    features: Mapping[str, Callable[[Row], Any]] | None = None,
    phrase_words: int = PHRASE_WORDS.value,
    phrase_support: float = PHRASE_SUPPORT.value,
    at_most: int = PHRASES.value,
    budget: Mapping[str, float] = BUDGET.value,
    cohesion: float = COHESION.value,
    more_share: float = MORE_SHARE.value,
    conjunction_parts: int = CONJUNCTION_PARTS.value,
    min_mixed_tasks: int = MIN_MIXED_TASKS.value,
    exhausted_share: float = EXHAUSTED_SHARE.value,
    seed: int = SCAN_SEED.value,
) -> ScanReport:
    """Scan rows for features that predict the reward within tasks.

    Args:
        rows: Rows, a dataset, or the path of a JSONL file.
        endorsed: Names or patterns (`"tools.*"`) of features that may be rewarded: shown, never an alarm. The other
            features are scanned on what these leave unexplained.
        gold: A second opinion on the same rows: the id of a scorer in `judgments`, a function from a row to a reward,
            or one number per row. Then a feature that the second opinion pays for too is no alarm.
        alpha: Family-wise error.
        permutations: Permutations of the rewards within tasks.
        phrases: Whether phrases of the replies are features.
        conjunctions: Whether pairs of presence features are features.
        features: Further features by name; those of plugins are always asked.
        phrase_words: Longest phrase.
        phrase_support: Least within-task variation of a phrase.
        at_most: Phrases kept at most.
        budget: Relative share of the error budget of each group of features; groups left out keep their default.
        cohesion: Share of its parts' occurrences from which a phrase is a fixed wording.
        more_share: Share of a feature's budget for more of it being paid, the rest for less.
        conjunction_parts: Presence features that are paired, the most varying ones.
        min_mixed_tasks: Fewer tasks with differing rewards are no basis for a verdict.
        exhausted_share: Share of tasks that always pass from which the pool is exhausted.
        seed: Seed of the permutations.

    Returns:
        `ScanReport` with the regime, the sentence that explains it, and features ranked by effect.

    Raises:
        ParameterError: An argument is out of range, or `gold` does not fit the rows.
        RowError: A row has no task.
    """
    if not 0.0 < alpha < 1.0 or permutations < 19:
        raise ParameterError("alpha must lie in (0, 1) and permutations be at least 19", fix="leave them out")
    found = _read(rows)
    texts = [answer_text(r) for r in found]
    flagged = tuple(
        i for i, r in enumerate(found) if hints_at_grader(texts[i]) and no_grader_address(r)["value"] == 0.0
    )
    tasks = _tasks(found)
    rewards = _rewards(found)
    usable, group, counts = _mixed(tasks, rewards, found)
    regime = _early_regime(counts, min_mixed_tasks, exhausted_share)
    report = partial(ScanReport, flagged=flagged, counts=counts, alpha=alpha, permutations=permutations)
    if regime is not None:
        return report(regime=regime[0], sentence=regime[1], features=(), n_features=0)
    chosen = [found[i] for i in usable.tolist()]
    design = build(
        chosen,
        [texts[i] for i in usable.tolist()],
        group,
        extra={**plugin_features(), **(features or {})},
        phrases=phrases,
        conjunctions=conjunctions,
        longest=phrase_words,
        support=phrase_support,
        at_most=at_most,
        budget=_budget(budget),
        cohesion=cohesion,
        more_share=more_share,
        conjunction_parts=conjunction_parts,
    )
    y = rewards[usable]
    result = _beside_endorsed(design, y, group, endorsed, permutations, seed)
    second = None
    if gold is not None:
        second = second_opinion(gold, found, usable, y, group, design, min_mixed_tasks, permutations, seed)
        counts["gold"] = len(second.rows)
    ranked = _rank(design, result, second, y, group, endorsed, alpha)
    regime = _regime(ranked, gold is not None)
    return report(regime=regime[0], sentence=regime[1], features=tuple(ranked[:SHOWN]), n_features=len(design.names))


def hack_scan_diff(
    before: Iterable[Row] | str | Path,
    after: Iterable[Row] | str | Path,
    *,
    alpha: float = SCAN_ALPHA.value,
    permutations: int = SCAN_PERMUTATIONS.value,
    phrases: bool = True,
    features: Mapping[str, Callable[[Row], Any]] | None = None,
    phrase_words: int = PHRASE_WORDS.value,
    phrase_support: float = PHRASE_SUPPORT.value,
    at_most: int = PHRASES.value,
    budget: Mapping[str, float] = BUDGET.value,
    cohesion: float = COHESION.value,
    seed: int = SCAN_SEED.value,
) -> ScanReport:
    """Say what an update moved the policy toward: features that tell `after` from `before` on the same tasks.

    Args:
        before: Rows of the old policy.
        after: Rows of the new policy. Tasks that only one side has are left out and counted.
        alpha: Family-wise error.
        permutations: Permutations of the side within tasks.
        phrases: Whether phrases are features.
        features: Further features by name.
        phrase_words: Longest phrase.
        phrase_support: Least within-task variation of a phrase.
        at_most: Phrases kept at most.
        budget: Relative share of the error budget of each group of features; groups left out keep their default.
        cohesion: Share of its parts' occurrences from which a phrase is a fixed wording.
        seed: Seed of the permutations.

    Returns:
        `ScanReport` with regime `"moved"`, `"unmoved"` or `"unknown"`; a positive effect is more of it after.
    """
    old, new = _read(before), _read(after)
    old_tasks, new_tasks = _tasks(old), _tasks(new)
    shared = set(old_tasks) & set(new_tasks)
    pairs = [(r, t, 0.0) for r, t in zip(old, old_tasks, strict=True) if t in shared]
    pairs += [(r, t, 1.0) for r, t in zip(new, new_tasks, strict=True) if t in shared]
    counts = {
        "rows": len(old) + len(new),
        "used": len(pairs),
        "tasks": len(set(old_tasks) | set(new_tasks)),
        "mixed": len(shared),
    }
    report = partial(ScanReport, counts=counts, alpha=alpha, permutations=permutations)
    if not shared:
        text = "the two sets share no task, so nothing can be compared"
        return report(regime="unknown", sentence=text, features=(), n_features=0)
    _, group = np.unique(np.array([t for _, t, _ in pairs]), return_inverse=True)
    group = group.astype(np.int64)
    side = np.array([s for _, _, s in pairs])
    design = build(
        [r for r, _, _ in pairs],
        [answer_text(r) for r, _, _ in pairs],
        group,
        extra={**plugin_features(), **(features or {})},
        phrases=phrases,
        conjunctions=False,
        longest=phrase_words,
        support=phrase_support,
        at_most=at_most,
        budget=_budget(budget),
        cohesion=cohesion,
    )
    # A drift can go either way for every feature.
    each = (design.up + design.down) / 2
    design = replace(design, up=each, down=each)
    ranked = _rank(design, _associate(design, side, group, permutations, seed), None, side, group, (), alpha)
    moved = [f for f in ranked if f.found]
    names = ", ".join(f"{f.name} {'up' if f.r > 0 else 'down'}" for f in moved[:5])
    text = f"the update moved toward: {names}" if moved else "no feature tells the two policies apart"
    return report(
        regime="moved" if moved else "unmoved",
        sentence=text,
        features=tuple(ranked[:SHOWN]),
        n_features=len(design.names),
    )


def _budget(given: Mapping[str, float]) -> dict[str, float]:
    for name, share in given.items():
        if name not in BUDGET.value:
            unknown_name("group of features", name, BUDGET.value)
        if not 0.0 < share < float("inf"):
            raise ParameterError(f"the share of {name} must be above 0, not {share!r}", fix="leave it out")
    return {**BUDGET.value, **given}


def _read(rows: Iterable[Row] | str | Path) -> list[Row]:
    if isinstance(rows, str | Path):
        from whileai_kernel.rowio import read_rows

        return list(read_rows(rows))
    if isinstance(rows, Mapping):
        raise ParameterError("rows must be many rows, not one", fix="pass a list: [row]")
    return list(getattr(rows, "rows", rows))


def _tasks(rows: Sequence[Row]) -> list[str]:
    keys = []
    for position, row in enumerate(rows):
        try:
            keys.append(task_key(row))
        except RowError as err:
            raise RowError(err.what, err.why, err.fix, row=position) from None
    return keys


def _rewards(rows: Sequence[Row]) -> F64:
    return np.array(
        [r["reward"] if r.get("reward") is not None and r.get("status", "ok") == "ok" else np.nan for r in rows],
        np.float64,
    )


def _mixed(tasks: Sequence[str], rewards: F64, rows: Sequence[Row]) -> tuple[I64, I64, dict[str, int]]:
    """Return rows of tasks whose rewards differ, their task number, and what there is of everything."""
    scored = np.flatnonzero(np.isfinite(rewards))
    counts = {"rows": len(rows), "unscored": len(rows) - len(scored), "tasks": len(set(tasks)), "used": 0, "mixed": 0}
    if not len(scored):
        return scored, scored, counts
    _, group = np.unique(np.array([tasks[i] for i in scored.tolist()]), return_inverse=True)
    y = rewards[scored]
    low = np.full(group.max() + 1, np.inf)
    high = np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    mixed = high > low
    good = [bool(passed(rows[i])) for i in scored.tolist()]
    all_pass = np.ones(group.max() + 1, np.bool_)
    np.logical_and.at(all_pass, group, np.array(good))
    counts["scored_tasks"] = int(group.max() + 1)
    counts["always_pass"] = int((all_pass & ~mixed).sum())
    counts["values"] = len(np.unique(y))
    keep = mixed[group]
    counts["used"], counts["mixed"] = int(keep.sum()), int(mixed.sum())
    _, renumbered = np.unique(group[keep], return_inverse=True)
    return scored[keep], renumbered.astype(np.int64), counts


def _early_regime(counts: Mapping[str, int], min_mixed: int, exhausted: float) -> tuple[str, str] | None:
    if counts["rows"] == counts["unscored"]:
        return "unknown", "no row is scored, so nothing can be said"
    if counts["values"] == 1:
        return "degenerate", "every scored row has one and the same reward: check the grader before anything else"
    if counts["always_pass"] >= exhausted * counts["scored_tasks"]:
        return (
            "exhausted_pool",
            f"{counts['always_pass']} of {counts['scored_tasks']} tasks always pass: little is left to learn here",
        )
    if counts["mixed"] < min_mixed:
        return (
            "unknown",
            f"only {counts['mixed']} tasks have rollouts with different rewards (needed: {min_mixed}): "
            "nothing can be said",
        )
    return None


def _associate(design: Design, y: F64, group: I64, permutations: int, seed: int) -> Association:
    return associate(
        design.matrix,
        y,
        group,
        up=design.up,
        down=design.down,
        permutations=permutations,
        seed=seed,
    )


def _beside_endorsed(
    design: Design, y: F64, group: I64, endorsed: Sequence[str], permutations: int, seed: int
) -> Association:
    """Associate features with what the endorsed ones leave unexplained, so that nothing is blamed for their company."""
    result = _associate(design, y, group, permutations, seed)
    named = np.array([any(fnmatchcase(n, p) for p in endorsed) for n in design.names], np.bool_)
    if not named.any():
        return result
    columns = np.flatnonzero(named)[np.argsort(-np.abs(result.z[named]))][:SHOWN]
    dense = np.asarray(design.matrix[:, columns].todense(), np.float64)
    own = np.column_stack([centred(dense[:, c], group) for c in range(dense.shape[1])])
    target = centred(y, group)
    rest = target - own @ np.linalg.lstsq(own, target, rcond=None)[0]
    beside = _associate(design, rest, group, permutations, seed)
    return Association(
        *(np.where(named, getattr(result, f), getattr(beside, f)) for f in ("z", "r", "adjusted", "spread", "slope"))
    )


def _rank(
    design: Design,
    result: Association,
    second: Second | None,
    y: F64,
    group: I64,
    endorsed: Sequence[str],
    alpha: float,
) -> list[Feature]:
    """Return features by effect: those above the floor first, then by within-task correlation."""
    over = result.adjusted <= alpha
    order = np.lexsort((np.arange(len(over)), -np.abs(result.r), ~over))[:SHOWN]
    shown = np.asarray(design.matrix[:, order].todense(), np.float64)
    slopes, lows, highs = slope_intervals(shown, y, group, 1 - alpha)
    beyond = None if second is None else second.beyond(shown, order.tolist(), slopes, alpha)
    ranked = []
    for at, c in enumerate(order.tolist()):
        name, slope = design.names[c], float(slopes[at])
        ranked.append(
            Feature(
                name=name,
                found=bool(over[c]),
                r=float(result.r[c]),
                effect=slope,
                low=float(lows[at]),
                high=float(highs[at]),
                adjusted_p=float(result.adjusted[c]),
                share=float(np.mean(shown[:, at] > 0)) if design.presence[c] else None,
                endorsed=any(fnmatchcase(name, pattern) for pattern in endorsed),
                beyond_gold=None if beyond is None else beyond[0][at],
                gold_effect=None if beyond is None else float(beyond[1][at]),
            )
        )
    return ranked


def _regime(ranked: Sequence[Feature], with_gold: bool) -> tuple[str, str]:
    found = [f for f in ranked if f.found]
    open_ones = [f for f in found if not f.endorsed]
    suspects = [f for f in open_ones if not with_gold or f.beyond_gold is not False]
    if suspects:
        lead = next((f for f in suspects if f.beyond_gold), suspects[0])
        why = "within tasks it predicts the reward beyond the permutation floor; endorse it if it is what you want"
        if with_gold:
            why = (
                "the second opinion does not pay for it"
                if lead.beyond_gold
                else "the second opinion shows no need for it"
            )
        return "suspected_hack", f"the reward pays for {lead.name} (r {lead.r:+.2f}): {why}"
    if open_ones:
        return "train", f"{open_ones[0].name} predicts the reward, and the second opinion agrees: train"
    if found:
        return "train", "only endorsed features predict the reward: train"
    return "no_signal", "rewards differ within tasks, but no feature predicts them beyond the permutation floor"
