"""Does a judge agree with the labels: accuracy, kappa, AC1, and effects that have nothing to do with quality.

Labels are any hashable values; `None` is "not scored" and is counted, never read as a label. A high accuracy says
little where almost every label is the same, so each report carries what always answering the usual label would score,
and kappa and AC1 beside each other: kappa falls towards 0 at extreme prevalence even where two raters nearly always
agree.

Example:
    >>> print(agreement([1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0, 1, 1]))
    accuracy 0.75 [0.41..0.93], kappa 0.50 [-0.24..0.95], AC1 0.50 [-0.28..0.96] (8 items)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_measure.alpha import absent
from whileai_measure.chance import cluster_codes, design_effect, posterior_interval
from whileai_measure.defaults import BOOTSTRAP_DRAWS, CONFIDENCE, SEED
from whileai_measure.intervals import Estimate, check_confidence, mean_interval, wilson

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

__all__ = [
    "Agreement",
    "Confusion",
    "Effect",
    "agreement",
    "confusion",
    "length_effect",
    "position_effect",
]

INTERVALS = ("posterior", "delta")
EXTREME = 0.9  # share of one label from which a note warns that accuracy and kappa mislead; a text, not a result


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two raters on the same items.

    Attributes:
        items: Items that both labelled.
        left_out: Items without a label on one side.
        labels: Labels that occur.
        table: Counts, shape (labels, labels): rows are the first rater.
        accuracy: Share of equal labels.
        kappa: Cohen's kappa, weighted if asked for.
        ac1: Gwet's AC1.
        usual: Accuracy of always answering the second rater's most common label.
        weights: `None`, `linear` or `quadratic`.
        notes: What a reader must know.
    """

    items: int
    left_out: int
    labels: tuple[Any, ...]
    table: tuple[tuple[int, ...], ...]
    accuracy: Estimate
    kappa: Estimate
    ac1: Estimate
    usual: float | None
    weights: str | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        name = f"kappa ({self.weights})" if self.weights else "kappa"
        text = f"accuracy {self.accuracy}, {name} {self.kappa}, AC1 {self.ac1} ({self.items} items)"
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        return {
            "items": self.items,
            "left_out": self.left_out,
            "labels": [label if isinstance(label, str | int | float) else repr(label) for label in self.labels],
            "table": [list(row) for row in self.table],
            "accuracy": self.accuracy.to_dict(),
            "kappa": self.kappa.to_dict(),
            "ac1": self.ac1.to_dict(),
            "usual": self.usual,
            "weights": self.weights,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Confusion:
    """Verdicts of a judge against the truth.

    Attributes:
        true_pass: Judge passes, truth passes.
        false_pass: Judge passes, truth fails.
        true_fail: Judge fails, truth fails.
        false_fail: Judge fails, truth passes.
        left_out: Items not scored on one side.
        sensitivity: Share of true passes that the judge passes.
        specificity: Share of true fails that the judge fails.
    """

    true_pass: int
    false_pass: int
    true_fail: int
    false_fail: int
    left_out: int
    sensitivity: Estimate
    specificity: Estimate

    def __str__(self) -> str:
        return (
            f"sensitivity {self.sensitivity}, specificity {self.specificity} "
            f"(passes: {self.true_pass} right, {self.false_fail} missed; "
            f"fails: {self.true_fail} right, {self.false_pass} missed)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return out | {"sensitivity": self.sensitivity.to_dict(), "specificity": self.specificity.to_dict()}


@dataclass(frozen=True, slots=True)
class Effect:
    """A share that would be one half without the effect, as a difference from it.

    Attributes:
        name: What was measured.
        share: The share with its interval.
        effect: share - 0.5.
        low: Lower bound of the effect.
        high: Upper bound.
        items: Decided items.
        ties: Items without a preference.
        consistent: Share of swapped pairs with the same winner, for positions.
    """

    name: str
    share: Estimate
    effect: float | None
    low: float | None
    high: float | None
    items: int
    ties: int
    consistent: float | None = None

    def __str__(self) -> str:
        if self.effect is None:
            return f"{self.name} n/a (0 decided)"
        tail = "" if self.consistent is None else f", same winner after a swap {self.consistent:.2f}"
        return f"{self.name} {self.effect:+.2f} [{self.low:+.2f}..{self.high:+.2f}] ({self.items} decided{tail})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"share": self.share.to_dict()}


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + check_confidence(confidence) / 2))


def share_estimate(hits: Sequence[bool], codes: Ints, confidence: float) -> Estimate:
    """Return a share of items with its Wilson interval over clusters of them; no interval for no items."""
    import numpy as np

    n, units = len(hits), len(np.unique(codes))
    if n == 0:
        return Estimate(None, None, None, 0, 0, None, "wilson", confidence)
    if units < n:
        return mean_interval([float(hit) for hit in hits], clusters=codes.tolist(), ceiling=n, confidence=confidence)
    share = sum(hits) / n
    low, high = wilson(share, n, _z(confidence))
    return Estimate(share, float(low), float(high), n, n, float(n), "wilson", confidence)


def _paired_labels(first: Sequence[Any], second: Sequence[Any]) -> tuple[list[tuple[Any, Any]], Bools]:
    """Return the pairs of labels that are both there, and which items they are."""
    import numpy as np

    if isinstance(first, str | bytes) or isinstance(second, str | bytes):
        raise ParameterError("labels must be lists, one entry per item, not text")
    a, b = list(first), list(second)
    if len(a) != len(b):
        raise ParameterError(f"{len(a)} labels against {len(b)}", why="both raters label the same items in one order")
    kept = np.array([not (absent(x) or absent(y)) for x, y in zip(a, b, strict=True)], dtype=bool)
    pairs = [(x, y) for x, y, keep in zip(a, b, kept.tolist(), strict=True) if keep]
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if not isinstance(x, Hashable) or not isinstance(y, Hashable):
            raise ParameterError(f"the label of item {i} is not usable as a label: {x!r:.40} or {y!r:.40}")
    return pairs, kept


def agreement(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    weights: str | None = None,
    labels: Sequence[Any] | None = None,
    clusters: Sequence[Any] | None = None,
    interval: str = "posterior",
    confidence: float = CONFIDENCE.value,
    draws: int = BOOTSTRAP_DRAWS.value,
    seed: int = SEED.value,
) -> Agreement:
    """Return how far two raters agree.

    Args:
        first: One label per item; `None` or NaN is not scored.
        second: The other rater, in the same order.
        weights: `linear` or `quadratic` weights for kappa of ordered labels.
        labels: Order of the labels; default sorted.
        clusters: One label per item; items with one label (rollouts of one task) are one independent unit.
        interval: Of kappa and AC1: `posterior` (see `chance`), or `delta`, the large-sample formula of the text books,
            which covers far too little at 20 items.
        confidence: Level of the intervals.
        draws: Draws behind `posterior`.
        seed: Seed of the draws.

    Raises:
        ParameterError: Lengths differ, a label is not among `labels`, or weights are unknown.

    Source: Cohen 1960, 1968 (kappa); Gwet 2008 (AC1); `delta` is the delta method on the multinomial table (Fleiss,
    Cohen and Everitt 1969 for kappa).
    """
    import numpy as np

    if weights not in (None, "linear", "quadratic"):
        unknown_name("weights", str(weights), ["linear", "quadratic"])
    if interval not in INTERVALS:
        unknown_name("interval", str(interval), INTERVALS)
    check_confidence(confidence)
    pairs, kept = _paired_labels(first, second)
    left_out = len(kept) - len(pairs)
    codes = cluster_codes(clusters, len(kept))[kept]
    seen = {x for pair in pairs for x in pair}
    order = (
        list(labels)
        if labels is not None
        else sorted(seen, key=lambda v: (str(type(v) is str), v) if not isinstance(v, bool | int | float) else ("", v))
    )
    if extra := [x for x in seen if x not in order]:
        raise ParameterError(f"label {extra[0]!r} is not among labels", fix="complete labels=")
    place = {label: i for i, label in enumerate(order)}
    n, q = len(pairs), max(len(order), 2)  # where one label occurs, the other one is there to be given
    table = np.zeros((q, q))
    cells = np.array([place[x] * q + place[y] for x, y in pairs], dtype=np.int64)
    for x, y in pairs:
        table[place[x], place[y]] += 1
    notes = [f"{left_out} items not scored on one side and left out"] if left_out else []
    usual = float(table.sum(axis=0).max() / n) if n else None
    if usual is not None and usual >= EXTREME:
        notes.append(
            f"{usual:.0%} of the items have one label: always answering it scores as much, "
            "and kappa is unstable; read AC1"
        )
    cost = _weights(q, weights)

    def corrected(statistic: Callable[[Floats], Floats]) -> Estimate:
        return _chance_corrected(table, cells, codes, statistic, interval, confidence, draws, seed)

    kappa = corrected(lambda p: _kappa(p, cost))
    if n and kappa.value is None:
        notes.append("kappa does not exist: both raters gave one and the same label throughout")
    return Agreement(
        items=n,
        left_out=left_out,
        labels=tuple(order),
        table=tuple(tuple(int(v) for v in row[: len(order)]) for row in table[: len(order)]),
        accuracy=share_estimate([x == y for x, y in pairs], codes, confidence),
        kappa=kappa,
        ac1=corrected(_ac1),
        usual=usual,
        weights=weights,
        notes=tuple(notes),
    )


def _weights(q: int, kind: str | None) -> Floats:
    import numpy as np

    i, j = np.indices((q, q))
    gap: Floats = np.abs(i - j).astype(np.float64) / max(q - 1, 1)
    if kind is None:
        gap = np.sign(gap)
    return np.square(gap) if kind == "quadratic" else gap


def _kappa(p: Floats, cost: Floats) -> Floats:
    """Return kappa of tables of shares, shape (..., labels, labels)."""
    import numpy as np

    expected = np.einsum("...i,ij,...j->...", p.sum(axis=-1), cost, p.sum(axis=-2))
    seen = (p * cost).sum(axis=(-2, -1))
    return np.where(expected > 1e-15, 1.0 - seen / np.maximum(expected, 1e-300), np.nan)


def _ac1(p: Floats) -> Floats:
    """Return AC1 of tables of shares, shape (..., labels, labels)."""
    import numpy as np

    share = (p.sum(axis=-2) + p.sum(axis=-1)) / 2
    chance = (share * (1 - share)).sum(axis=-1) / (p.shape[-1] - 1)
    out: Floats = (np.trace(p, axis1=-2, axis2=-1) - chance) / (1 - chance)
    return out


def _chance_corrected(
    table: Floats,
    cells: Ints,
    codes: Ints,
    statistic: Callable[[Floats], Floats],
    interval: str,
    confidence: float,
    draws: int,
    seed: int,
) -> Estimate:
    """Return a statistic of a table of counts with its interval; `cells` and `codes` are those of each item."""
    import numpy as np

    n, units = int(table.sum()), len(np.unique(codes))
    value = float(statistic(table / n)) if n else float("nan")
    if value != value:
        return Estimate(None, None, None, n, units, None, interval, confidence)
    p, step = table / n, 1e-6
    moves = np.eye(p.size).reshape(p.size, *p.shape) * step
    gradient = (statistic(p + moves) - statistic(p - moves)) / (2 * step)  # central differences, one per cell
    effect = design_effect(gradient[cells], codes)
    if interval == "posterior":
        shares = np.full(p.size, 1.0 / p.size)
        low, high = posterior_interval(
            table.ravel(),
            shares,
            lambda w: statistic(w.reshape(-1, *p.shape)),
            value,
            units=units,
            effect=effect,
            confidence=confidence,
            draws=draws,
            seed=seed,
        )
    else:
        flat = p.ravel()
        variance = float((flat * gradient**2).sum() - (flat * gradient).sum() ** 2) / n * effect
        half = _z(confidence) * max(variance, 0.0) ** 0.5
        low, high = value - half, value + half
        if half < 1e-9:  # perfect agreement: bounded by what one disagreement among n + z^2 items would do
            z2 = _z(confidence) ** 2
            low = value - (value + 1.0) * z2 / (n + z2)
    return Estimate(value, max(low, -1.0), min(high, 1.0), n, units, None, interval, confidence)


def confusion(
    judged: Sequence[Any],
    truth: Sequence[Any],
    *,
    threshold: float = 1.0,
    clusters: Sequence[Any] | None = None,
    confidence: float = CONFIDENCE.value,
) -> Confusion:
    """Return how a judge's passes and fails stand against the truth.

    Args:
        judged: Rewards or booleans of the judge; `None` is not scored.
        truth: Rewards or booleans of the truth, in the same order.
        threshold: Reward from which a value passes.
        clusters: One label per item; items with one label (rollouts of one task) are one independent unit.
        confidence: Level of the intervals.

    Raises:
        ParameterError: Lengths differ, or a value is no number.
    """
    import numpy as np

    check_confidence(confidence)
    pairs, kept = _paired_labels(judged, truth)
    codes = cluster_codes(clusters, len(kept))[kept]
    for pair in pairs:
        for value in pair:
            if not isinstance(value, int | float):
                raise ParameterError(f"a verdict must be a number or a boolean, not {value!r:.40}")
    passes = [(float(x) >= threshold - 1e-9, float(y) >= threshold - 1e-9) for x, y in pairs]
    tp, fp = passes.count((True, True)), passes.count((True, False))
    tn, fn = passes.count((False, False)), passes.count((False, True))
    good = np.array([y for _, y in passes], dtype=bool)
    return Confusion(
        tp,
        fp,
        tn,
        fn,
        len(kept) - len(pairs),
        share_estimate([x for x, y in passes if y], codes[good], confidence),
        share_estimate([not x for x, y in passes if not y], codes[~good], confidence),
    )


def _effect(name: str, hits: int, n: int, ties: int, confidence: float, consistent: float | None = None) -> Effect:
    import numpy as np

    share = share_estimate([True] * hits + [False] * (n - hits), np.arange(n), confidence)
    if share.value is None or share.low is None or share.high is None:
        return Effect(name, share, None, None, None, 0, ties, consistent)
    return Effect(name, share, share.value - 0.5, share.low - 0.5, share.high - 0.5, n, ties, consistent)


def position_effect(
    winners: Sequence[str | None], swapped: Sequence[str | None], *, confidence: float = CONFIDENCE.value
) -> Effect:
    """Return how far a pairwise judge prefers the answer that it sees first.

    Args:
        winners: Winner of each pair, `"a"`, `"b"`, or `None` for a tie, with a shown first.
        swapped: Winner of the same pairs with b shown first; still named `"a"` or `"b"`.
        confidence: Level.

    Returns:
        Share of pairs whose verdict followed the first seat, among those whose verdict changed with the seats, minus
        one half; a pair with the same winner both times says nothing about seats and counts in `consistent`.

    Raises:
        ParameterError: Lengths differ, or a winner is neither a, b nor None.
    """
    if len(winners) != len(swapped):
        raise ParameterError(f"{len(winners)} verdicts against {len(swapped)} after the swap")
    first = second = same = ties = 0
    for i, (x, y) in enumerate(zip(winners, swapped, strict=True)):
        if x not in ("a", "b", None) or y not in ("a", "b", None):
            raise ParameterError(f"the winner of pair {i} must be 'a', 'b' or None, not {x!r} or {y!r}")
        if x is None or y is None:
            ties += 1
        elif x == y:
            same += 1
        elif x == "a":
            first += 1  # a won in front, b won in front
        else:
            second += 1
    decided = same + first + second
    return _effect("first seat", first, first + second, ties, confidence, same / decided if decided else None)


def length_effect(
    lengths_a: Sequence[float],
    lengths_b: Sequence[float],
    winners: Sequence[str | None],
    *,
    confidence: float = CONFIDENCE.value,
) -> Effect:
    """Return how far a pairwise judge prefers the longer answer: share of decided pairs won by it, minus one half.

    Longer answers may be better; the effect shows by how much the judge would have to be wrong, not that it is.

    Args:
        lengths_a: Length of answer a of each pair, in any unit.
        lengths_b: Length of answer b.
        winners: `"a"`, `"b"`, or `None` for a tie.
        confidence: Level.

    Raises:
        ParameterError: Lengths differ, or a winner is neither a, b nor None.
    """
    if not len(lengths_a) == len(lengths_b) == len(winners):
        raise ParameterError("lengths and winners must have one entry per pair")
    longer = decided = ties = 0
    for i, (x, y, winner) in enumerate(zip(lengths_a, lengths_b, winners, strict=True)):
        if winner not in ("a", "b", None):
            raise ParameterError(f"the winner of pair {i} must be 'a', 'b' or None, not {winner!r}")
        if winner is None or x == y:
            ties += 1
            continue
        decided += 1
        longer += (x > y) == (winner == "a")
    return _effect("longer answer", longer, decided, ties, confidence)
