"""What the numbers of a comparison mean: verdict words, noise floors, and what else could explain the change.

Example:
    >>> {name: round(band, 3) for name, band in noise_floors(0.02, 5, None, None, 0.95).items()}
    {'re-runs': 0.079}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from whileai_kernel.errors import ParameterError
from whileai_measure.blocks import few
from whileai_measure.changes import Change, Comparison
from whileai_measure.columns import Columns, safe
from whileai_measure.intervals import shown_digits
from whileai_measure.signflip import least_tasks
from whileai_measure.variance import noise_band

if TYPE_CHECKING:
    from whileai_measure.paired import Sides

__all__ = ["judge", "noise_floors", "reasons_against", "verdict_of"]


def noise_floors(
    run_std: float | None, run_runs: int | None, seed_std: float | None, seed_runs: int | None, confidence: float
) -> dict[str, float]:
    """Return the noise bands by source, those that were given.

    Args:
        run_std: Standard deviation between re-runs.
        run_runs: Re-runs behind it.
        seed_std: Standard deviation between training seeds.
        seed_runs: Seeds behind it.
        confidence: Level.

    Raises:
        ParameterError: A number of runs without their standard deviation.
    """
    floors = {}
    for name, std, runs in (("re-runs", run_std, run_runs), ("training seeds", seed_std, seed_runs)):
        if std is None:
            if runs is not None:
                raise ParameterError(
                    f"a number of {name} without their standard deviation", fix="pass both, or neither"
                )
            continue
        floors[name] = noise_band(std, runs, confidence=confidence).band
    return floors


def judge(change: Change, floors: Mapping[str, float], margin: float | None, confidence: float, alpha: float) -> Change:
    """Return the change with its verdict and the sentence that explains it."""
    if change.delta is None or change.low is None or change.high is None:
        return change
    need = least_tasks(confidence)
    paired = "unpaired" not in change.method
    if paired and change.tasks < need:
        text = f"{change.tasks} paired tasks are too few: below {need} no result could be told from chance"
        return replace(change, verdict="inconclusive", sentence=text)
    n = shown_digits(change.high - change.low, change.low, change.high, least=3)
    size = f"{change.delta:+.{n}f} [{change.low:+.{n}f}..{change.high:+.{n}f}]"
    if change.low > 0 or change.high < 0:
        covering = [(name, band) for name, band in floors.items() if abs(change.delta) <= band]
        if covering:
            name, band = covering[0]
            text = f"{size} is told from chance between tasks, but {name} alone move the metric by up to {band:.3f}"
            return replace(change, verdict="within noise", sentence=text)
        word = "improved" if change.delta > 0 else "regressed"
        text = (
            f"{change.metric} {word} by {size}: a change of sign by task would do this in {change.p_value:.2g} of cases"
        )
        return replace(change, verdict=word, sentence=text)
    if change.no_larger_than is None:
        ruled = "the data rule out no difference of any size"
    else:
        ruled = f"no difference larger than {change.no_larger_than:.{n}f} (error {alpha:.0%})"
    if margin is not None:
        inside = change.no_larger_than is not None and change.no_larger_than <= margin
        ruled += f": {'equivalent' if inside else 'not shown to be equivalent'} at the margin of {margin:g}"
    return replace(change, verdict="no difference detected", sentence=f"{size} holds zero; {ruled}")


def reasons_against(
    sides: Sides, change: Change, paired: bool, min_shared: float, gap: float, allow: tuple[str, ...]
) -> dict[str, tuple[bool, str]]:
    """Return by reason whether it stops the comparison, and its sentence."""
    a, b = sides.a, sides.b
    found: dict[str, tuple[bool, str]] = {}
    size = abs(change.delta) if change.delta is not None else 0.0
    detected = change.verdict in ("improved", "regressed", "within noise")
    shared = len(sides.in_a)
    every = len(a.tasks) + len(b.tasks) - shared
    if paired and every and shared < min_shared * every:
        text = f"only {shared} tasks are on both sides of {len(a.tasks)} before and {len(b.tasks)} after"
        found["shared"] = (True, f"{text}: another exam, not a change")
    if a.scorers.keys() != b.scorers.keys() and a.scorers and b.scorers:
        found["scoring"] = _scoring(a, b)
    differing = [t for t, h in a.prompts.items() if t in b.prompts and b.prompts[t] != h] if paired else []
    if differing:
        share = len(differing) / max(shared, 1)
        names = few(differing)
        text = f"{len(differing)} of {shared} shared tasks have another prompt ({names})"
        found["prompts"] = (share >= min_shared or (detected and share >= size), text)
    cut_a, cut_b = (float(s.truncated.mean()) if len(s.code) else 0.0 for s in (a, b))
    if abs(cut_a - cut_b) > gap:
        text = f"{cut_a:.0%} of the rows were cut by the length limit before, {cut_b:.0%} after"
        found["truncation"] = (detected and abs(cut_a - cut_b) >= size, text)
    scored_a, scored_b = (float(s.scored.mean()) if len(s.code) else 0.0 for s in (a, b))
    if abs(scored_a - scored_b) > gap:
        text = f"{scored_a:.0%} of the rows are scored before, {scored_b:.0%} after"
        found["graded"] = (detected and abs(scored_a - scored_b) >= size, text)
    return {name: (stops and name not in allow, text) for name, (stops, text) in found.items()}


def _scoring(a: Columns, b: Columns) -> tuple[bool, str]:
    def shown(side: Columns) -> str:
        names = {f"{who or 'unnamed'}{f' {v}' if v else ''}, threshold {limit:g}" for who, v, limit in side.scorers}
        return "; ".join(sorted(safe(name, 80) for name in names)[:3])

    unnamed = {who for who, *_ in a.scorers} == {""} or {who for who, *_ in b.scorers} == {""}
    same_limit = {limit for *_, limit in a.scorers} == {limit for *_, limit in b.scorers}
    text = f"scored by {shown(a)} before and by {shown(b)} after"
    return not (unnamed and same_limit), text


def verdict_of(
    sides: Sides,
    changes: dict[str, Change],
    target: str,
    guarded: tuple[str, ...],
    proxy: str | None,
    paired: bool,
    reasons: Mapping[str, tuple[bool, str]],
    floors: dict[str, float],
    adjust: str | None,
    confidence: float,
) -> Comparison:
    """Return the comparison: the verdict on the target, regressions, and notes."""
    change = changes[target]
    verdict, sentence = change.verdict, change.sentence
    stopping = [text for stops, text in reasons.values() if stops]
    regressions = tuple(name for name in dict.fromkeys((target, *guarded)) if changes[name].verdict == "regressed")
    over = proxy is not None and changes[proxy].verdict == "improved" and change.verdict != "improved"
    alpha, m = 1.0 - confidence, len(changes)
    family = alpha if adjust else min(1.0, m * alpha)
    notes = [text for stops, text in reasons.values() if not stops]
    if stopping:
        verdict, sentence, regressions = "not comparable", "; ".join(stopping), ()
    if not paired:
        notes.append("unpaired: two task sets are compared by their means, which needs far more tasks than pairing")
    elif sides.only_a or sides.only_b:
        parts = [
            f"{len(names)} only {where} ({few(names)})"
            for names, where in ((sides.only_a, "before"), (sides.only_b, "after"))
            if names
        ]
        notes.append(f"not paired and left out: {', '.join(parts)}")
    for side, where in ((sides.a, "before"), (sides.b, "after")):
        notes += [f"{where}: {note}" for note in side.left_out()]
    for name in guarded:
        if changes[name].verdict == "inconclusive":
            notes.append(f"must not regress, and could not be tested: {safe(name)}: {changes[name].sentence}")
    lost = [n for n in (*sides.a.markers, *sides.b.markers) if n not in changes]
    if lost:
        notes.append(f"markers on one side only: {few(dict.fromkeys(lost))}")
    if m > 1:
        how = "held by Holm's adjustment" if adjust else "without adjustment; adjust='holm' holds it at alpha"
        notes.append(f"{m} metrics tested: at most {family:.0%} chance of a false alarm among them, {how}")
    if over:
        notes.append(f"over-optimised: {safe(str(proxy))} rose and {safe(target)} did not follow")
    return Comparison(
        verdict=verdict,
        sentence=sentence,
        target=target,
        changes=changes,
        paired=paired,
        shared=len(sides.in_a),
        unpaired_before=sides.only_a,
        unpaired_after=sides.only_b,
        regressions=regressions,
        over_optimised=over,
        family_error=family,
        reasons=tuple(text for _, text in reasons.values()),
        notes=tuple(notes),
        floors=floors,
    )
