"""How large a run should be, from the agent's own grid: the array, the repeats, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_simulate.checks import check_number, is_number
from whileai_simulate.covering import covering_array
from whileai_simulate.defaults import INTERVAL_HALF_WIDTH
from whileai_simulate.options import preset
from whileai_simulate.setting import make_setting

__all__ = ["Recommendation", "recommend"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A size for a run.

    Attributes:
        situations: Tasks.
        repeats: Rollouts per task.
        rollouts: Both multiplied.
        array_rows: Situations that pairwise coverage takes.
        precision_tasks: Tasks that an interval of the wanted half width takes.
        usd: Cost, when the price of a rollout is given.
        seconds: Wall time, when the time of a rollout is given.
        reason: Why this size.
    """

    situations: int
    repeats: int
    rollouts: int
    array_rows: int
    precision_tasks: int
    usd: float | None
    seconds: float | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        cost = f", about ${self.usd:.2f}" if self.usd is not None else ""
        took = f", about {self.seconds:.0f} s" if self.seconds is not None else ""
        size = f"situations={self.situations}, repeats={self.repeats}: {self.rollouts} rollouts"
        return f"{size}{cost}{took} ({self.reason})"

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>"


def recommend(
    tools: Iterable[Any],
    system_prompt: str | None = None,
    *,
    mode: str = "rl",
    half_width: float = INTERVAL_HALF_WIDTH.value,
    strength: int = 2,
    rollout_usd: float | None = None,
    rollout_s: float | None = None,
    concurrency: int = 16,
) -> Recommendation:
    """Size a run.

    Args:
        tools: Tools of the agent.
        system_prompt: The policy.
        mode: Preset that names the repeats.
        half_width: Wanted half width of the 95 % interval of pass@1, in (0, 0.5].
        strength: Strength of the covering array.
        rollout_usd: Price of one rollout.
        rollout_s: Seconds of one rollout.
        concurrency: Rollouts in flight at once.

    Returns:
        The larger of what coverage and what precision take. Precision is planned for the worst case, tasks that
        always pass or always fail (variance 1/4 between tasks), where repeats do not help.

    Raises:
        ParameterError: A number is out of range, or the mode is unknown.
    """
    if not is_number(half_width) or not 0 < half_width <= 0.5:
        raise ParameterError(f"half_width must be in (0, 0.5], not {half_width!r}", fix="pass half_width=0.1")
    check_number("concurrency", concurrency, 1, whole=True, fix="pass concurrency=16")
    for name, value in (("rollout_usd", rollout_usd), ("rollout_s", rollout_s)):
        if value is not None:
            check_number(name, value, 0, fix=f"pass what one rollout takes, or leave {name} out")
    setting = make_setting(tools, system_prompt)
    array = covering_array(setting.axes.values, strength=strength, forbidden=setting.axes.forbidden)
    precise = math.ceil(0.25 * (1.959964 / half_width) ** 2)
    repeats = int(preset(mode)["repeats"])
    tasks = max(len(array.rows), precise)
    rollouts = tasks * repeats
    reason = "pairwise coverage" if len(array.rows) >= precise else f"pass@1 within {half_width:.0%}"
    usd = None if rollout_usd is None else round(rollouts * rollout_usd, 4)
    seconds = None if rollout_s is None else rollouts * rollout_s / concurrency
    return Recommendation(tasks, repeats, rollouts, len(array.rows), precise, usd, seconds, reason)
