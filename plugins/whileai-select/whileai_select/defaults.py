"""Sourced constants of whileai-select: every number that shapes a selection."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

BAND_LOW = Sourced(
    0.2,
    "tasks whose pass rate is below this are left out of an RL selection as too hard",
    "DAPO (Yu et al. 2025, arXiv:2503.14476) section 3.2 drops accuracy 0 and 1 only; the inner bound is "
    "convention, untested",
)
BAND_HIGH = Sourced(
    0.8,
    "tasks whose pass rate is above this are left out of an RL selection as too easy",
    "as BAND_LOW; convention, untested",
)
MIN_GROUP = Sourced(
    2,
    "a group needs this many usable rollouts, because a group-relative advantage of one reward is 0",
    "Shao et al. 2024 (DeepSeekMath, arXiv:2402.03300) section 4.1: advantage = (r - mean) / std over the group",
)
MIN_VARIANCE = Sourced(
    1e-12,
    "a group whose reward variance is at most this has no signal",
    "measurement: variance of equal float64 rewards in [0, 1] stays below 1e-30; the bound only absorbs rounding",
)
PENALTY_REWARD = Sourced(
    0.0,
    "reward written on truncated or failed rows when they are to be penalised",
    "convention, untested",
)
CONFIDENCE = Sourced(0.95, "level of the interval that is shown beside a measured rate", "convention, untested")
IN_BAND_PROBABILITY = Sourced(
    0.5,
    "with rate='probability', a task is kept when its rate lies in the band with at least this probability",
    "convention, untested",
)
SFT_K = Sourced(1, "completions kept per task by rejection sampling", "convention, untested")
SEED = Sourced(0, "seed of every hash-based draw", "convention, untested")
