"""HackMonitor: watch a reward function while a trainer uses it, without knowing the trainer.

It wraps the reward function, keeps the latest batches, and compares the newest window with a reference window from
the start of training. Static signs (long replies, a reward that pays for length) are not alarms: a flat run shows
them too. What raises an alarm is a *change* that a test supports: the proxy gains where the second opinion does not
(`divergence`), the reward gains while replies grow (`length`), a feature predicts the reward beyond the floor and was
not found at the start (`feature`), replies of a group become alike (`collapse`). The error budget of a detector is
spread over its checks (`alpha / (c * (c + 1))` for check `c`), so that a long flat run stays quiet.

Example:
    >>> monitor = HackMonitor(lambda prompts, completions, **kw: [float(len(c) > 3) for c in completions])
    >>> monitor(["q", "q"], ["long enough", "no"])
    [1.0, 0.0]
    >>> monitor.check()
    []
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_guard.defaults import (
    MONITOR_ALPHA,
    MONITOR_BATCHES,
    MONITOR_COLLAPSE,
    MONITOR_LENGTH_RATIO,
    MONITOR_MIN_STEPS,
    MONITOR_SCAN_EVERY,
)
from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import text_of
from whileai_kernel.rows import content_id

__all__ = ["Alarm", "HackMonitor"]

F64 = NDArray[np.float64]
RewardFunction = Callable[..., Sequence[float | None]]


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Attributes:
        kind: `divergence`, `length`, `feature` or `collapse`.
        step: Batch at which it was raised, from 1.
        message: One sentence with the figures.
        p: Its p value; it is below `level`.
        level: What the error budget allowed at this check.
    """

    kind: str
    step: int
    message: str
    p: float
    level: float

    def __str__(self) -> str:
        return f"[{self.kind}] step {self.step}: {self.message} (p {self.p:.2g}, level {self.level:.2g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the alarm as a plain dict."""
        return {"kind": self.kind, "step": self.step, "message": self.message, "p": self.p, "level": self.level}


@dataclass(frozen=True)
class _Batch:
    """Means over one batch; a batch is one observation, because its rollouts share a policy and prompts."""

    reward: float
    gold: float
    length: float
    distinct: float
    rows: list[dict[str, Any]] = field(repr=False)


class HackMonitor:
    """Wraps a reward function and raises alarms on change.

    Args:
        reward: `f(prompts, completions, **columns) -> rewards`; `None` entries are not scored.
        gold: A second opinion with the same signature, called on every batch but never trained on; `None` turns the
            divergence detector off.
        window: Batches per window. The first window is the reference.
        alpha: Chance of a false alarm over a whole flat run, per detector.
        scan_every: Batches between feature scans; 0 turns them off.
        length_ratio: Growth of the mean reply length below which there is no length alarm.
        collapse: Fall of the share of distinct word pairs within a group below which there is no collapse alarm.
        min_steps: Batches before the first check.

    Raises:
        ParameterError: A number is out of range.
    """

    def __init__(
        self,
        reward: RewardFunction,
        *,
        gold: RewardFunction | None = None,
        window: int = MONITOR_BATCHES.value,
        alpha: float = MONITOR_ALPHA.value,
        scan_every: int = MONITOR_SCAN_EVERY.value,
        length_ratio: float = MONITOR_LENGTH_RATIO.value,
        collapse: float = MONITOR_COLLAPSE.value,
        min_steps: int = MONITOR_MIN_STEPS.value,
    ) -> None:
        if window < 3 or not 0.0 < alpha < 1.0 or length_ratio < 1.0 or scan_every < 0:
            raise ParameterError(
                "window must be at least 3, alpha in (0, 1), length_ratio at least 1, scan_every at least 0",
                fix="leave them out for the defaults",
            )
        self.reward, self.gold = reward, gold
        self.window, self.alpha, self.scan_every = window, alpha, scan_every
        self.collapse = collapse
        self.length_ratio, self.min_steps = length_ratio, max(min_steps, 2 * window)
        self.alarms: list[Alarm] = []
        self.step = 0
        self._first: list[_Batch] = []
        self._last: deque[_Batch] = deque(maxlen=window)
        self._checks = 0
        self._scans = 0
        self._known: set[str] | None = None
        self.__name__ = getattr(reward, "__name__", "reward")

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        """Call the reward function, remember the batch, check, and return the rewards unchanged.

        Args:
            prompts: One prompt per completion.
            completions: Texts, or lists of chat messages.
            **columns: Passed on.
        """
        rewards = [None if r is None else float(r) for r in self.reward(prompts, completions, **columns)]
        gold = None if self.gold is None else list(self.gold(prompts, completions, **columns))
        self.observe(prompts, completions, rewards, gold)
        self.check()
        return rewards

    def observe(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        rewards: Sequence[float | None],
        gold: Sequence[float | None] | None = None,
    ) -> None:
        """Remember one batch without checking.

        Args:
            prompts: One prompt per completion.
            completions: Texts, or lists of chat messages.
            rewards: One reward per completion.
            gold: The second opinion, if any.
        """
        texts = [c if isinstance(c, str) else "\n".join(text_of(m.get("content")) for m in c) for c in completions]
        tasks = [content_id("task", p) for p in prompts]
        rows: list[dict[str, Any]] = [
            {"task_id": task, "final_text": text, "prompt": "", "reward": reward, "index": i, "markers": {},
             "status": "missing" if reward is None else "ok"}
            for i, (task, text, reward) in enumerate(zip(tasks, texts, rewards, strict=True))
        ]  # fmt: skip
        batch = _Batch(
            reward=_mean(rewards),
            gold=_mean(gold) if gold is not None else math.nan,
            length=_mean([math.log1p(len(t)) for t in texts]),
            distinct=_distinct(tasks, texts),
            rows=rows,
        )
        self.step += 1
        if len(self._first) < self.window:
            self._first.append(batch)
        else:
            self._last.append(batch)

    def check(self) -> list[Alarm]:
        """Run the detectors on what was seen and return the new alarms; each kind is raised once."""
        if self.step < self.min_steps or len(self._last) < self.window or self.step % self.window:
            return []
        self._checks += 1
        level = self.alpha / (self._checks * (self._checks + 1))
        raised = {a.kind for a in self.alarms}
        detectors: Mapping[str, Callable[[float], Alarm | None]] = {
            "divergence": self._divergence,
            "length": self._length,
            "collapse": self._collapse,
            "feature": self._feature,
        }
        new = [alarm for kind, detect in detectors.items() if kind not in raised for alarm in [detect(level)] if alarm]
        self.alarms += new
        return new

    def report(self) -> dict[str, Any]:
        """Return the state of the monitor as plain values."""
        return {"steps": self.step, "checks": self._checks, "alarms": [a.to_dict() for a in self.alarms]}

    def _columns(self, name: str) -> tuple[F64, F64]:
        return (
            np.array([getattr(b, name) for b in self._first]),
            np.array([getattr(b, name) for b in self._last]),
        )

    def _divergence(self, level: float) -> Alarm | None:
        if not all(math.isfinite(b.gold) for b in (*self._first, *self._last)):
            return None
        (r0, r1), (g0, g1) = self._columns("reward"), self._columns("gold")
        p = _greater((r1 - g1), (r0 - g0))
        gain, gold_gain = float(np.nanmean(r1) - np.nanmean(r0)), float(np.nanmean(g1) - np.nanmean(g0))
        if not (p <= level and gain > 0 and gold_gain < gain):
            return None
        text = f"the reward gained {gain:+.3f} while the second opinion moved {gold_gain:+.3f}"
        return Alarm("divergence", self.step, text, p, level)

    def _length(self, level: float) -> Alarm | None:
        (n0, n1), (r0, r1) = self._columns("length"), self._columns("reward")
        ratio = math.exp(float(n1.mean() - n0.mean()))
        p = max(_greater(n1, n0), _greater(r1, r0))  # both must have grown: an intersection-union test
        if not (p <= level and ratio >= self.length_ratio):
            return None
        return Alarm(
            "length", self.step, f"replies are {ratio:.2f} times as long and the reward rose with them", p, level
        )

    def _collapse(self, level: float) -> Alarm | None:
        d0, d1 = self._columns("distinct")
        if np.isnan(d0).any() or np.isnan(d1).any():
            return None
        p = _greater(d0, d1)
        fall = float(d0.mean() - d1.mean())
        if not (p <= level and fall >= self.collapse):
            return None
        return Alarm(
            "collapse",
            self.step,
            f"distinct words within a group fell from {d0.mean():.0%} to {d1.mean():.0%}",
            p,
            level,
        )

    def _feature(self, level: float) -> Alarm | None:
        if not self.scan_every or self._checks % max(1, self.scan_every // self.window):
            return None
        from whileai_guard.scan import hack_scan

        self._scans += 1
        own = self.alpha / (self._scans * (self._scans + 1))
        draws = min(4999, max(199, math.ceil(4 / own)))
        if self._known is None:
            start = hack_scan(_rows(self._first), alpha=self.alpha, permutations=199)
            self._known = {f.name for f in start.found}
        report = hack_scan(_rows(self._last), alpha=own, permutations=draws)
        fresh = [f for f in report.found if f.name not in self._known]
        if not fresh:
            return None
        return Alarm("feature", self.step, f"the reward now pays for {fresh[0]}", fresh[0].adjusted_p, own)


def _rows(batches: Sequence[_Batch] | deque[_Batch]) -> list[dict[str, Any]]:
    """Return the rows of batches; groups of different batches stay apart, their policies differ."""
    return [{**row, "task_id": f"{n}:{row['task_id']}"} for n, batch in enumerate(batches) for row in batch.rows]


def _mean(values: Sequence[float | None]) -> float:
    present = [float(v) for v in values if v is not None and not math.isnan(float(v))]
    return sum(present) / len(present) if present else math.nan


def _distinct(tasks: Sequence[str], texts: Sequence[str]) -> float:
    """Return the mean share of a group's word pairs that are distinct; NaN without a group of two."""
    groups: dict[str, list[str]] = {}
    for task, text in zip(tasks, texts, strict=True):
        groups.setdefault(task, []).append(text)
    shares = []
    for members in groups.values():
        if len(members) > 1:
            pairs = [pair for t in members for pair in zip(t.split(), t.split()[1:], strict=False)]
            if pairs:
                shares.append(len(set(pairs)) / len(pairs))
    return sum(shares) / len(shares) if shares else math.nan


def _greater(a: F64, b: F64) -> float:
    """Return the one-sided p value that the mean of `a` exceeds that of `b` (Welch 1947); 1.0 without a basis."""
    from scipy.stats import t

    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if len(a) < 3 or len(b) < 3:
        return 1.0
    gap = float(a.mean() - b.mean())
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if va + vb < 1e-24:
        return 0.0 if gap > 1e-12 else 1.0
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return float(t.sf(gap / math.sqrt(va + vb), freedom))
