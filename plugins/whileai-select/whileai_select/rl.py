"""Selection for group-relative RL: whole groups, with signal, inside a difficulty band.

The order is the point. Rates are measured first, over every scored rollout that the policy produced, so that a
kept group's rate is the rate that the policy samples. Then single rows that cannot be used go (failed, truncated,
not scored, leaked, empty), then groups without a reward difference, then groups outside the band, and last, whole
groups beyond the target size. It does not look at the text to decide whether a reply is complete, and does not
thin duplicates inside a group unless asked: two equal rollouts are two samples.

Example:
    >>> def row(i, reward, **more):
    ...     return {"task_id": "t", "rollout_id": f"r{i}", "prompt": "q", "final_text": f"a{i}", "reward": reward,
    ...             "status": "ok" if reward is not None else "missing", "markers": {}, **more}
    >>> chosen = select_rl([row(0, 1), row(1, 0), row(2, None), row(3, 0, finish_reason="length")])
    >>> [entry.reason for entry in chosen.ledger]
    ['kept', 'kept', 'not_scored', 'truncated']
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.protocols import Selected
from whileai_kernel.rows import passed
from whileai_select._eligible import SCREEN_CHOICES, Screen, screen_rows
from whileai_select._ledger import Book
from whileai_select._rates import BetaPrior, fit_prior, resolution, wilson
from whileai_select._report import calibration, summary_line
from whileai_select._rows import call_names, draw, read_all, task_keys
from whileai_select.defaults import (
    BAND_HIGH,
    BAND_LOW,
    CONFIDENCE,
    IN_BAND_PROBABILITY,
    MIN_GROUP,
    MIN_VARIANCE,
    PENALTY_REWARD,
    SEED,
)

__all__ = ["GroupRate", "select_rl"]

Row = Mapping[str, Any]
STRATA = ("faults", "tools", "difficulty")


@dataclass(frozen=True)
class GroupRate:
    """What the scored rollouts of one task say.

    Attributes:
        n: Scored rollouts (failed runs are not the policy's sample and do not count).
        successes: Passing rollouts, or the sum of rewards where rewards are fractions.
        rate: `successes / n`; 0.0 when `n` is 0.
    """

    n: int
    successes: float
    rate: float


def select_rl(
    rows: Iterable[Row] | str | Path,
    *,
    band: tuple[float, float] = (BAND_LOW.value, BAND_HIGH.value),
    rate: str = "measured",
    measure: str = "auto",
    failed: str = "drop",
    truncated: str = "drop",
    unscored: str = "drop",
    leaks: str = "drop",
    junk: str = "drop",
    duplicates: str = "keep",
    partial: str = "keep",
    min_group: int = MIN_GROUP.value,
    min_variance: float = MIN_VARIANCE.value,
    penalty: float = PENALTY_REWARD.value,
    in_band_probability: float = IN_BAND_PROBABILITY.value,
    size: int | None = None,
    stratify: Sequence[str] = STRATA,
    seed: int = SEED.value,
    confidence: float = CONFIDENCE.value,
    stamp: bool = False,
) -> Selected:
    """Keep the groups that carry a gradient and are neither too hard nor too easy.

    Args:
        rows: Rows, a dataset, or the path of a JSONL file.
        band: Lowest and highest rate that is kept, both included.
        rate: Which rate meets the band. `"measured"` is successes / rollouts; `"shrunken"` is its posterior mean
            under a beta prior fitted to all tasks; `"probability"` keeps a task when its rate lies in the band with
            at least `in_band_probability`.
        measure: `"pass"` (share of rollouts at or above their threshold), `"mean"` (mean reward), or `"auto"`: mean
            reward when some reward is a fraction, else pass.
        failed: Runs that broke: `"drop"`, `"keep"`, or `"penalise"` (reward becomes `penalty`, the old verdict moves to
            `judgments`).
        truncated: Replies that were cut, by finish reason: as `failed`.
        unscored: `"drop"`, or `"keep"` (they travel with their group and count in no rate).
        leaks: `"drop"` or `"keep"` rows whose markers or text show the private reference in a reply or prompt.
        junk: `"drop"` or `"keep"` rows without visible text or tool call.
        duplicates: `"keep"` (two equal rollouts are two samples) or `"drop"` later copies within a task.
        partial: `"keep"` what remains of a group that lost rows, or `"drop"` the group.
        min_group: Usable rollouts that a group needs.
        min_variance: A group with at most this reward variance has no signal.
        penalty: Reward of penalised rows, in [0, 1].
        in_band_probability: For `rate="probability"`.
        size: Most rows to keep; whole groups, so that slightly fewer may come. `None` keeps all.
        stratify: Which of `"faults"`, `"tools"`, `"difficulty"` keep their proportions when `size` cuts.
        seed: Seed of the draw within strata.
        confidence: Level of the intervals in the report.
        stamp: Return copies of the kept rows with the measured rate, and how it was measured, in
            `lineage.selection`; by default the kept rows are the input objects (penalised ones excepted).

    Returns:
        `Selected`: kept rows in input order, one ledger entry per input row, and the report; its `rates` hold
        `[successes, rollouts]` of every task.

    Raises:
        ParameterError: An argument has an unknown or impossible value.
        RowError: A row has no task, or a reward that is neither `None` nor a number in [0, 1].
    """
    _check(rate, measure, partial, stratify, band, min_group, size)
    found = read_all(rows)
    keys = task_keys(found)
    screen = Screen(failed, truncated, unscored, leaks, junk, duplicates, penalty)
    book = Book(found, keys)
    out, rewards, notes = screen_rows(book, screen)
    groups: dict[str, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        groups[key].append(position)

    fractional = any(r is not None and 0.0 < r < 1.0 for r in rewards)
    by_mean = measure == "mean" or (measure == "auto" and fractional)
    rates = {key: _rate(out, rewards, members, book, by_mean) for key, members in groups.items()}
    prior = fit_prior(Counter((g.successes, float(g.n)) for g in rates.values())) if groups else BetaPrior(1.0, 1.0)
    outside = _band_test(rate, band, prior, in_band_probability)
    for key, members in groups.items():
        reason = _group_reason(members, rewards, out, book, rates[key], min_group, min_variance, partial, outside)
        if reason:
            for position in members:
                book.drop(position, reason)
    if size is not None:
        _cut_to_size(book, out, groups, rates, band, size, tuple(stratify), seed)

    report = _report(book, groups, rates, band, rate, by_mean, prior, confidence, notes)
    report["calibration"] = calibration(found, book.kept(), rate, "mean reward" if by_mean else "pass rate")
    report["summary"] = summary_line("rl", report)
    kept = [
        _stamped(out[i], rates[keys[i]], prior, band, rate, report["rate_of"]) if stamp else out[i] for i in book.kept()
    ]
    return Selected(rows=kept, ledger=book.entries(), report=report)


def _check(
    rate: str,
    measure: str,
    partial: str,
    stratify: Sequence[str],
    band: tuple[float, float],
    min_group: int,
    size: int | None,
) -> None:
    for noun, value, known in (
        ("rate", rate, ("measured", "shrunken", "probability")),
        ("measure", measure, ("auto", "pass", "mean")),
        ("partial", partial, SCREEN_CHOICES["partial"]),
    ):
        if value not in known:
            unknown_name(noun, value, known)
    for name in stratify:
        if name not in STRATA:
            unknown_name("stratum", name, STRATA)
    if len(band) != 2 or not 0.0 <= band[0] <= band[1] <= 1.0:
        raise ParameterError(f"band must be (low, high) within [0, 1], not {band!r}", fix="pass band=(0.2, 0.8)")
    if min_group < 1:
        raise ParameterError(f"min_group must be at least 1, not {min_group}", fix="pass min_group=2")
    if size is not None and size < 0:
        raise ParameterError(f"size must be None or at least 0, not {size}", fix="pass size=1000")


def _rate(
    out: Sequence[Row], rewards: Sequence[float | None], members: Sequence[int], book: Book, by_mean: bool
) -> GroupRate:
    scored = [i for i in members if rewards[i] is not None and book.reasons[i] != "failed"]
    if by_mean:
        total = float(sum(rewards[i] or 0.0 for i in scored))
    else:
        total = float(sum(bool(passed(out[i])) for i in scored))
    return GroupRate(len(scored), total, total / len(scored) if scored else 0.0)


def _band_test(
    rate: str, band: tuple[float, float], prior: BetaPrior, probability: float
) -> Callable[[GroupRate], str | None]:
    slack = 1e-12  # 0.2 as 1/5 and 0.2 as a sum of floats are one rate

    def by_value(value: float) -> str | None:
        if value < band[0] - slack:
            return "too_hard"
        return "too_easy" if value > band[1] + slack else None

    def test(group: GroupRate) -> str | None:
        if rate == "measured":
            return by_value(group.rate)
        mean = prior.mean(group.successes, group.n)
        if rate == "shrunken":
            return by_value(mean)
        if prior.inside(group.successes, group.n, band) >= probability:
            return None
        return "too_hard" if mean < sum(band) / 2 else "too_easy"

    return test


def _group_reason(
    members: Sequence[int],
    rewards: Sequence[float | None],
    out: Sequence[Row],
    book: Book,
    group: GroupRate,
    min_group: int,
    min_variance: float,
    partial: str,
    outside: Callable[[GroupRate], str | None],
) -> str | None:
    """Return why the rows that remain of a group are dropped, or `None`."""
    usable = [i for i in members if book.alive(i) and rewards[i] is not None]
    if not any(book.alive(i) for i in members):
        return None
    if partial == "drop" and any(not book.alive(i) for i in members):
        return "partial_group"
    if len(usable) < min_group:
        return "group_too_small"
    values = [rewards[i] or 0.0 for i in usable]
    mean = sum(values) / len(values)
    if sum((v - mean) ** 2 for v in values) / len(values) <= min_variance:
        passes = {passed(out[i]) for i in usable}
        if passes == {True}:
            return "unanimous_pass"
        return "unanimous_fail" if mean <= min_variance else "no_variance"
    return outside(group)


def _stratum(
    members: Sequence[int], out: Sequence[Row], group: GroupRate, band: tuple[float, float], stratify: tuple[str, ...]
) -> tuple[Any, ...]:
    parts: list[Any] = []
    for name in stratify:
        if name == "faults":
            row = out[members[0]]
            planned = (row.get("world") or {}).get("faults")
            parts.append(bool(planned) or any(out[i].get("faults_fired") for i in members))
        elif name == "tools":
            parts.append(tuple(sorted({n for i in members for n in call_names(out[i])})))
        else:
            width = (band[1] - band[0]) / 3 or 1.0
            parts.append(min(2, max(0, int((group.rate - band[0]) / width))))
    return tuple(parts)


def _cut_to_size(
    book: Book,
    out: Sequence[Row],
    groups: Mapping[str, list[int]],
    rates: Mapping[str, GroupRate],
    band: tuple[float, float],
    size: int,
    stratify: tuple[str, ...],
    seed: int,
) -> None:
    """Drop whole groups until at most `size` rows remain, each stratum keeping its share.

    Groups are ordered by their relative place within their stratum, so a smaller size keeps a subset of what a
    larger one keeps.
    """
    strata: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    alive = {key: [i for i in members if book.alive(i)] for key, members in groups.items()}
    for key, members in alive.items():
        if members:
            strata[_stratum(members, out, rates[key], band, stratify)].append(key)
    order: list[tuple[float, float, str]] = []
    for names in strata.values():
        names.sort(key=lambda key: draw(seed, "size", key))
        order += [((i + 0.5) / len(names), draw(seed, "tie", key), key) for i, key in enumerate(names)]
    total, full = 0, False
    for _, _, key in sorted(order):
        full = full or total + len(alive[key]) > size
        if full:
            for position in alive[key]:
                book.drop(position, "over_target")
        else:
            total += len(alive[key])


def _report(
    book: Book,
    groups: Mapping[str, list[int]],
    rates: Mapping[str, GroupRate],
    band: tuple[float, float],
    rate: str,
    by_mean: bool,
    prior: BetaPrior,
    confidence: float,
    notes: list[str],
) -> dict[str, Any]:
    kept = book.kept()
    kept_tasks = list(dict.fromkeys(book.keys[i] for i in kept))
    sizes = Counter(len(members) for members in groups.values())
    usual = max(sizes, key=lambda n: (sizes[n], n)) if sizes else 0
    outside = [1 - prior.inside(rates[k].successes, rates[k].n, band) for k in kept_tasks]
    intervals = [wilson(rates[k].successes, rates[k].n, confidence) for k in kept_tasks]
    alive = Counter(book.keys[i] for i in kept)
    return {
        "mode": "rl",
        "rows": len(book.rows),
        "kept": len(kept),
        "tasks": len(groups),
        "kept_tasks": len(kept_tasks),
        "dropped": book.dropped(),
        "dropped_tasks": dict(
            Counter(
                next(r for r in (book.reasons[i] for i in reversed(members)) if r)
                for key, members in groups.items()
                if key not in alive
            )
        ),
        "partial_groups": sum(alive[k] < len(groups[k]) for k in kept_tasks),
        "group_sizes": dict(sorted(sizes.items())),
        "band": list(band),
        "rate": rate,
        "rate_of": "mean reward" if by_mean else "pass rate",
        "mean_rate": sum(g.rate for g in rates.values()) / len(rates) if rates else None,
        "mean_rate_kept": sum(rates[k].rate for k in kept_tasks) / len(kept_tasks) if kept_tasks else None,
        "resolution": resolution(usual, band, confidence),
        "surely_in_band": sum(lo >= band[0] and hi <= band[1] for lo, hi in intervals),
        "expected_outside_band": sum(outside) / len(outside) if outside else None,
        "prior": {"a": prior.a, "b": prior.b},
        "notes": notes,
        "rates": {key: [group.successes, group.n] for key, group in rates.items()},
    }


def _stamped(
    row: Row, group: GroupRate, prior: BetaPrior, band: tuple[float, float], rate: str, rate_of: str
) -> dict[str, Any]:
    stamp = {
        "selector": "select/rl",
        "rate": round(group.rate, 6),
        "rate_of": rate_of,
        "rollouts": group.n,
        "shrunken": round(prior.mean(group.successes, group.n), 6),
        "band": list(band),
        "by": rate,
        "policy": (row.get("policy") or {}).get("version") or (row.get("policy") or {}).get("name"),
    }
    return {**row, "lineage": {**(row.get("lineage") or {}), "selection": stamp}}
