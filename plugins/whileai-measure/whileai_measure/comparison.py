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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_measure.columns import Columns, Label, RowsLike, extract, safe
from whileai_measure.defaults import (
    AGREE_PSEUDO,
    CONFIDENCE,
    EQUIVALENCE_ALPHA,
    EXACT_TASKS,
    MIN_SHARED,
    NAMES_SHOWN,
    PERMUTATION_DRAWS,
    SEED,
    SHARE_GAP,
)
from whileai_measure.intervals import check_confidence, mean_interval, t_quantile
from whileai_measure.signflip import SignFlip, least_tasks, sign_flips

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

__all__ = ["ALLOWED", "VERDICTS", "Change", "Comparison", "compare"]

VERDICTS = ("improved", "regressed", "no difference detected", "within noise", "inconclusive", "not comparable")
"""The words of a verdict."""

ALLOWED = ("scoring", "prompts", "truncation", "graded", "shared")
"""Reasons for "not comparable" that a caller may wave through with `allow=`."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one metric.

    Attributes:
        metric: `pass@1`, `mean reward`, or the name of a marker.
        tasks: Paired tasks (both sides together where unpaired).
        before: Mean over these tasks before.
        after: Mean over these tasks after.
        delta: after - before.
        low: Lower bound of delta.
        high: Upper bound of delta.
        p_value: Two-sided p-value, before adjustment.
        p_adjusted: After Holm's adjustment; the same as `p_value` without it.
        confidence: Level of the interval; above the level asked for where the adjustment asks for more.
        verdict: One of `VERDICTS`.
        sentence: Why.
        no_larger_than: Size of a difference that the data rule out (two one-sided tests), or `None`.
        method: The test.
        mcnemar: Discordant counts and McNemar's exact and mid p, where there is one rollout per task.
        deltas: Difference of each paired task, for plots.
    """

    metric: str
    tasks: int
    before: float | None
    after: float | None
    delta: float | None
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    confidence: float
    verdict: str
    sentence: str
    no_larger_than: float | None = None
    method: str = "sign-flip"
    mcnemar: dict[str, float] | None = None
    deltas: tuple[float, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        if (
            self.delta is None
            or self.before is None
            or self.low is None
            or self.high is None
            or self.p_adjusted is None
        ):
            return f"{self.metric} n/a: {self.sentence}"
        kind = "tasks" if "unpaired" in self.method else "paired tasks"
        size = f"{self.before:.2f} -> {self.after:.2f}, {self.delta:+.2f} [{self.low:+.2f}..{self.high:+.2f}]"
        return f"{self.metric} {size}, p={self.p_adjusted:.2g} ({self.tasks} {kind})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serialisable values, without the differences of single tasks."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "deltas"}


@dataclass(frozen=True)
class Comparison:
    """Before against after.

    Attributes:
        verdict: Verdict on the target, one of `VERDICTS`.
        sentence: Why.
        target: Metric that the verdict is about.
        changes: Every metric by name.
        paired: Tasks were paired.
        shared: Tasks on both sides.
        unpaired_before: Task ids that only the first side has.
        unpaired_after: Task ids that only the second side has.
        regressions: Metrics of `must_not_regress` (and the target) that regressed.
        over_optimised: The proxy rose and the target did not.
        family_error: Largest chance of one false alarm or more over all metrics tested.
        reasons: Differences between the sides that could explain the change.
        notes: What a reader must know.
        floors: Noise floors that were applied, by name.
    """

    verdict: str
    sentence: str
    target: str
    changes: dict[str, Change]
    paired: bool
    shared: int
    unpaired_before: tuple[str, ...]
    unpaired_after: tuple[str, ...]
    regressions: tuple[str, ...]
    over_optimised: bool
    family_error: float
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floors: dict[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 without a regression, 1 with one, 2 where the sides are not comparable."""
        if self.verdict == "not comparable":
            return 2
        return 1 if self.regressions else 0

    @property
    def change(self) -> Change | None:
        """The change of the target, `None` where nothing could be computed."""
        return self.changes.get(self.target)

    def __str__(self) -> str:
        target = self.change
        lines = [f"{self.verdict}: {target if target is not None else self.sentence}"]
        if target is not None and self.verdict not in ("improved", "regressed"):
            lines.append(f"  {self.sentence}")
        width = max((len(name) for name in self.changes), default=0)
        for name, change in self.changes.items():
            if name != self.target:
                lines.append(f"  {change.verdict:<22} {name:<{width}} {str(change).removeprefix(name + ' ')}")
        if self.regressions:
            lines.append(f"  regressed: {', '.join(safe(name) for name in self.regressions)}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        out = {name: value for name, value in self.__dict__.items() if name != "changes"}
        out = {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}
        out["changes"] = {name: change.to_dict() for name, change in self.changes.items()}
        out["exit_code"] = self.exit_code
        return out

    def plot(self) -> str:
        """Return an SVG of the changes with their intervals and of the paired differences of the target."""
        from whileai_measure.plots import comparison_plot

        return comparison_plot(self)

    def _repr_html_(self) -> str:
        from whileai_measure.plots import comparison_html

        return comparison_html(self)


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
    names = _metric_names(a, b, (target, *guarded, proxy))
    for name in (target, *guarded, *((proxy,) if proxy else ())):
        if name not in names:
            unknown_name("metric", name, names)
    floors = _floors(run_std, run_std_runs, seed_std, seed_runs, confidence)
    sides = _Sides(a, b)
    tests = (
        _paired_tests(sides, names, cluster is not None, draws, exact_tasks, seed) if paired else _unpaired(a, b, names)
    )
    levels, adjusted = _levels(tests, confidence, adjust)
    changes = {}
    for name in names:
        change = tests[name].finish(levels[name], adjusted[name], pseudo, equivalence_alpha)
        changes[name] = _judge(change, floors, margin, confidence, equivalence_alpha)
    reasons = _reasons(sides, changes[target], paired, min_shared, share_gap, tuple(allow))
    return _verdict(sides, changes, target, guarded, proxy, paired, reasons, floors, adjust, confidence)


class _Sides:
    """Both sides and which of their tasks pair."""

    def __init__(self, a: Columns, b: Columns) -> None:
        import numpy as np

        self.a, self.b = a, b
        place = {task: i for i, task in enumerate(b.tasks)}
        pairs = [(i, place[task]) for i, task in enumerate(a.tasks) if task in place]
        self.in_a = np.array([i for i, _ in pairs], dtype=np.int64)
        self.in_b = np.array([j for _, j in pairs], dtype=np.int64)
        both = {a.tasks[i] for i in self.in_a.tolist()}
        self.only_a = tuple(t for t in a.tasks if t not in both)
        self.only_b = tuple(t for t in b.tasks if t not in both)


def _metric_names(a: Columns, b: Columns, asked: Sequence[str | None]) -> list[str]:
    import numpy as np

    names = ["pass@1"]
    rewards = [side.reward[side.scored] for side in (a, b)]
    if "mean reward" in asked or any(np.any((r != 0) & (r != 1)) for r in rewards):
        names.append("mean reward")
    return names + [name for name in a.markers if name in b.markers and name not in names]


def _column(side: Columns, name: str) -> Floats:
    return side.passed if name == "pass@1" else side.reward if name == "mean reward" else side.markers[name]


@dataclass(frozen=True)
class _Test:
    """One metric before its level is known."""

    metric: str
    before: Floats
    after: Floats
    flip: SignFlip | None
    units: Floats
    single: bool = False

    @property
    def p_value(self) -> float:
        if self.flip is not None:
            return self.flip.p_value
        return _mover_p(self.before, self.after) if len(self.before) and len(self.after) else 1.0

    def finish(self, confidence: float, adjusted: float, pseudo: float, alpha: float) -> Change:
        if not len(self.before) or not len(self.after):
            text = f"{self.metric} is not there on both sides of any task"
            return Change(self.metric, 0, *(None,) * 7, confidence, "inconclusive", text)
        before, after = float(self.before.mean()), float(self.after.mean())
        if self.flip is None:
            low, high = _mover(self.before, self.after, confidence)
            low90, high90 = _mover(self.before, self.after, 1 - 2 * alpha)
            tasks, method = len(self.before) + len(self.after), "unpaired (difference of two intervals)"
        else:
            low, high = _widened(self.flip, self.units, confidence, pseudo)
            low90, high90 = _widened(self.flip, self.units, 1 - 2 * alpha, pseudo)
            tasks = len(self.before)
            method = "sign-flip, exact" if self.flip.exact else f"sign-flip, {self.flip.patterns - 1} drawn"
        bound = max(abs(low90), abs(high90))
        return Change(
            metric=self.metric,
            tasks=tasks,
            before=before,
            after=after,
            delta=after - before,
            low=low,
            high=high,
            p_value=self.p_value,
            p_adjusted=adjusted,
            confidence=confidence,
            verdict="",
            sentence="",
            no_larger_than=bound if bound < 1.0 else None,
            method=method,
            mcnemar=_mcnemar(self.before, self.after) if self.single else None,
            deltas=tuple((self.after - self.before).tolist()) if self.flip is not None else (),
        )


def _paired_tests(
    sides: _Sides, names: Sequence[str], clustered: bool, draws: int, exact_tasks: int, seed: int
) -> dict[str, _Test]:
    import numpy as np

    out: dict[str, _Test] = {}
    groups: dict[bytes, list[str]] = {}
    columns: dict[str, tuple[Floats, Floats, Any]] = {}
    cluster = _cluster_codes(sides) if clustered else None
    for name in names:
        x = sides.a.task_means(_column(sides.a, name))[sides.in_a]
        y = sides.b.task_means(_column(sides.b, name))[sides.in_b]
        both = ~np.isnan(x) & ~np.isnan(y)
        columns[name] = (x[both], y[both], both)
        groups.setdefault(np.packbits(both).tobytes(), []).append(name)
    for members in groups.values():  # metrics that rest on the same tasks share their sign patterns
        both = columns[members[0]][2]
        deltas = np.column_stack([columns[m][1] - columns[m][0] for m in members])
        if cluster is not None:
            _, code = np.unique(cluster[both], return_inverse=True)
            size = np.bincount(code)
            # The mean over tasks is a weighted mean over clusters: scaled sums keep it, and flip as one unit.
            deltas = np.column_stack([np.bincount(code, weights=d) for d in deltas.T]) * (
                len(size) / max(size.sum(), 1)
            )
        flips = sign_flips(deltas, draws=draws, exact_tasks=exact_tasks, seed=seed)
        for name, flip, units in zip(members, flips, deltas.T, strict=True):
            single = name == "pass@1" and cluster is None and _one_each(sides, both)
            out[name] = _Test(name, columns[name][0], columns[name][1], flip, units, single)
    return {name: out[name] for name in names}


def _cluster_codes(sides: _Sides) -> Any:
    import numpy as np

    labels = sides.a.task_labels("cluster", "cluster")
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(labels[i], len(codes)) for i in sides.in_a.tolist()], dtype=np.int64)


def _one_each(sides: _Sides, both: Any) -> bool:
    n_a, n_b = sides.a.counts()[0][sides.in_a][both], sides.b.counts()[0][sides.in_b][both]
    return bool(len(n_a) and (n_a == 1).all() and (n_b == 1).all())


def _mcnemar(before: Floats, after: Floats) -> dict[str, float]:
    """Return discordant counts with McNemar's exact and mid p-value.

    Source: McNemar 1947; Fagerland, Lydersen and Laake 2013 (mid p).
    """
    from scipy.stats import binom

    lost, won = int(((before == 1) & (after == 0)).sum()), int(((before == 0) & (after == 1)).sum())
    n, k = lost + won, min(lost, won)
    exact = min(1.0, 2.0 * float(binom.cdf(k, n, 0.5)))
    mid = 1.0 if lost == won else 2.0 * float(binom.cdf(k, n, 0.5)) - float(binom.pmf(k, n, 0.5))
    return {"lost": lost, "won": won, "p_exact": exact, "p_mid": mid}


def _widened(flip: SignFlip, units: Floats, confidence: float, pseudo: float) -> tuple[float, float]:
    """Return the inverted test, made at least as wide as the adjusted interval of Agresti and Min.

    A shift of all differences is a strong model: where most tasks agree exactly, inverting the test alone would claim
    to know the mean far too well. A bound never moves across zero, so that interval and test keep agreeing.
    """
    import numpy as np

    low, high = flip.interval(confidence)
    n = len(units)
    if n > 1:
        size = n + 2.0 * pseudo
        mean = float(units.sum()) / size
        variance = (float(np.square(units).sum()) + pseudo) / size - mean * mean
        half = t_quantile(n, confidence) * np.sqrt(max(variance, 0.0) / size)
        if not (low > 0 >= mean - half):
            low = min(low, mean - half)
        if not (high < 0 <= mean + half):
            high = max(high, mean + half)
    return float(max(low, -1.0)), float(min(high, 1.0))


def _unpaired(a: Columns, b: Columns, names: Sequence[str]) -> dict[str, _Test]:
    import numpy as np

    out = {}
    for name in names:
        x, y = a.task_means(_column(a, name)), b.task_means(_column(b, name))
        out[name] = _Test(name, x[~np.isnan(x)], y[~np.isnan(y)], None, np.zeros(0))
    return out


def _mover(before: Floats, after: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of a difference of two independent means from their own intervals.

    Source: Newcombe 1998, method 10, with the interval of `intervals` for each side.
    """
    x, y = mean_interval(before, confidence=confidence), mean_interval(after, confidence=confidence)
    down_x, up_x = x.arms
    down_y, up_y = y.arms
    delta = float(after.mean() - before.mean())
    low, high = delta - (down_y**2 + up_x**2) ** 0.5, delta + (up_y**2 + down_x**2) ** 0.5
    return max(low, -1.0), min(high, 1.0)


def _mover_p(before: Floats, after: Floats) -> float:
    """Return 1 minus the largest level whose interval excludes zero, by bisection."""
    inside, outside = 1.0 - 1e-9, 0.0
    for _ in range(40):
        middle = (inside + outside) / 2
        low, high = _mover(before, after, middle) if middle > 0 else (0.0, 0.0)
        if low > 0 or high < 0:
            outside = middle
        else:
            inside = middle
    return 1.0 - outside


def _levels(
    tests: Mapping[str, _Test], confidence: float, adjust: str | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the level of each interval and the (adjusted) p-values, so that the two agree.

    Source: Holm 1979. A rejected hypothesis of rank j has the level 1 - alpha / (m - j + 1); those that are kept share
    the level of the first one that is kept.
    """
    p = {name: test.p_value for name, test in tests.items()}
    if adjust is None:
        return dict.fromkeys(p, confidence), p
    order = sorted(p, key=lambda name: p[name])
    alpha, m = 1.0 - confidence, len(order)
    levels, adjusted, highest, stopped = {}, {}, 0.0, None
    for j, name in enumerate(order):
        highest = max(highest, min(1.0, p[name] * (m - j)))
        adjusted[name] = highest
        if stopped is None and highest > alpha:
            stopped = alpha / (m - j)
        levels[name] = 1.0 - (stopped if stopped is not None else alpha / (m - j))
    return levels, adjusted


def _floors(
    run_std: float | None, run_runs: int | None, seed_std: float | None, seed_runs: int | None, confidence: float
) -> dict[str, float]:
    from whileai_measure.variance import noise_band

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


def _judge(
    change: Change, floors: Mapping[str, float], margin: float | None, confidence: float, alpha: float
) -> Change:
    """Return the change with its verdict and the sentence that explains it."""
    if change.delta is None or change.low is None or change.high is None:
        return change
    need = least_tasks(confidence)
    paired = "unpaired" not in change.method
    if paired and change.tasks < need:
        text = f"{change.tasks} paired tasks are too few: below {need} no result could be told from chance"
        return replace(change, verdict="inconclusive", sentence=text)
    size = f"{change.delta:+.3f} [{change.low:+.3f}..{change.high:+.3f}]"
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
        ruled = f"no difference larger than {change.no_larger_than:.3f} (error {alpha:.0%})"
    if margin is not None:
        inside = change.no_larger_than is not None and change.no_larger_than <= margin
        ruled += f": {'equivalent' if inside else 'not shown to be equivalent'} at the margin of {margin:g}"
    return replace(change, verdict="no difference detected", sentence=f"{size} holds zero; {ruled}")


def _reasons(
    sides: _Sides, change: Change, paired: bool, min_shared: float, gap: float, allow: tuple[str, ...]
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
        names = _few(differing)
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


def _few(names: Iterable[str]) -> str:
    names = list(names)
    limit = NAMES_SHOWN.value
    shown = ", ".join(safe(n, 40) for n in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _verdict(
    sides: _Sides,
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
            f"{len(names)} only {where} ({_few(names)})"
            for names, where in ((sides.only_a, "before"), (sides.only_b, "after"))
            if names
        ]
        notes.append(f"not paired and left out: {', '.join(parts)}")
    for side, where in ((sides.a, "before"), (sides.b, "after")):
        notes += [f"{where}: {note}" for note in side.left_out()]
    lost = [n for n in (*sides.a.markers, *sides.b.markers) if n not in changes]
    if lost:
        notes.append(f"markers on one side only: {_few(dict.fromkeys(lost))}")
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
