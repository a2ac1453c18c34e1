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
PAIR_MARGIN = Sourced(
    1e-9,
    "least reward difference of a preference pair; below it the two are a tie",
    "measurement: differences of float64 rewards that are meant to be equal stay below 1e-12",
)
PAIR_LENGTH_RATIO = Sourced(
    1.5,
    "most that one side of a pair may be longer than the other",
    "Park et al. 2024 (arXiv:2403.19159) section 3 shows DPO exploiting length; the bound is convention, untested",
)
PAIRS_PER_TASK = Sourced(1, "preference pairs taken per task", "convention, untested")
CONFOUND_ALPHA = Sourced(
    0.05, "family-wise error of the confound tests of a pair set (Holm 1979)", "convention, untested"
)
SOLVED_RATE = Sourced(
    0.9, "a task is retired when the lower end of its rate's interval is at least this", "convention, untested"
)
TARGET_SIGNAL = Sourced(
    0.8,
    "share of the groups that can ever carry a gradient which the recommended group size should reach",
    "convention, untested",
)
MAX_K = Sourced(64, "largest group size that is considered", "convention, untested")
TRIM_SHARES = Sourced((0.125, 0.25, 0.5, 1.0), "shares of the tasks in the nested subsets", "convention, untested")
CURRICULUM_STAGES = Sourced(3, "stages of a curriculum, from easy to hard", "convention, untested")
DEAD_GROUPS = Sourced(
    0.5, "share of groups without a reward difference from which the gate warns", "convention, untested"
)
