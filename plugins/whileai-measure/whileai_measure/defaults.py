"""Constants of whileai-measure: every number that shapes a result, with its meaning and its source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

CONFIDENCE = Sourced(0.95, "share of intervals that hold the true value; tests use 1 minus it", "convention, untested")
SMALL_TASKS = Sourced(
    5,
    "below this many tasks an interval is never narrower than that of independent pass/fail rollouts: a sample of 4 or "
    "fewer misses one half of a population of tasks in 12 % of cases or more, so its spread says little",
    "measurement: tests/bench/measure_calibration.py, fractions of a two-point population at 3 tasks",
)
EXACT_END = Sourced(
    3.0,
    "with this many effective passes or fewer (or fails or fewer) the bound at that end is the exact one, not Wilson's",
    "Brown, Cai and DasGupta 2001, section 4.1.2 (modified Wilson); checked by tests/bench/measure_calibration.py",
)
FREEDOM_POWER = Sourced(
    4.0,
    "the t quantile has (units - 1) / (1 - known^this) degrees of freedom, known being how near the effective size is "
    "to that of exchangeable rollouts",
    "measurement: tests/bench/measure_calibration.py; with 2 the fractions of Beta(1,9) with 8 rollouts cover 0.932 at "
    "5 and 8 tasks, with 4 they cover 0.937 and 0.938",
)
FREEDOM_GAIN = Sourced(
    2.0,
    "most times as many degrees of freedom as units - 1 (from 10 units on, a fifth of the units)",
    "measurement: tests/bench/measure_calibration.py; without a limit pass@1 of 8 tasks with one rollout covers"
    " 0.925 at Beta(.5,.5)",
)
MODEL_SHARE = Sourced(
    0.25,
    "weight of the fitted beta-binomial's variance of pass^k and pass@k beside the variance seen, where it is larger: "
    "rare tasks carry the value, and the sample often lacks them",
    "measurement: tests/bench/measure_calibration.py; without it pass^4 of 8 rollouts covers 0.916 at Beta(1,9) and "
    "200 tasks, 0.911 at Beta(2,2) and 10 tasks; with it 0.980 and 0.934",
)
BOOTSTRAP_DRAWS = Sourced(
    2000,
    "resamples of tasks for the bootstrap kinds of interval",
    "Efron and Tibshirani 1993, section 13.3: 1,000 or more for percentiles",
)
PERMUTATION_DRAWS = Sourced(
    9999,
    "drawn sign patterns of the paired test; a p-value near 0.05 has a standard error of 0.002",
    "Davison and Hinkley 1997, section 4.2.5 (n + 1 a multiple of 1/alpha)",
)
EXACT_TASKS = Sourced(
    16, "up to this many differing tasks all sign patterns are enumerated (65,536)", "convention, untested"
)
SEED = Sourced(0, "seed of resampling and sign flips: the same input gives the same interval", "convention, untested")
MIN_SHARED = Sourced(
    0.5,
    "a comparison is refused when fewer than this share of all tasks is on both sides",
    "public reports: two runs that share 7 of 41 tasks are different exams; the value is convention, untested",
)
SHARE_GAP = Sourced(
    0.02,
    "difference in truncated or scored share below which it is not held against a comparison",
    "convention, untested",
)
POWER = Sourced(0.8, "chance of detecting the effect when planning an eval", "convention, untested")
AGREE_PSEUDO = Sourced(
    1.0,
    "pseudo differences of size 1 (half each way) in a paired interval: no zero width where tasks agree",
    "Agresti and Min 2005, section 4 (half a count in each cell of the paired table)",
)
EQUIVALENCE_ALPHA = Sourced(
    0.05, "error rate of the statement 'no difference larger than X' (two one-sided tests)", "Schuirmann 1987"
)
CS_GRID = Sourced(
    1000, "grid points of the betting confidence sequence on [0, 1]", "Waudby-Smith and Ramdas 2024, section 4.2"
)
CS_TRUNCATION = Sourced(
    0.5,
    "largest share of the capital that is bet in one step",
    "Waudby-Smith and Ramdas 2024, section B.1 (1/2 or 3/4)",
)
SELF_CHECK_TRIALS = Sourced(
    1000,
    "simulated evaluations per line of self_check: a coverage of 0.95 has a standard error of 0.007",
    "convention, untested",
)
ICC = Sourced(
    0.4,
    "share of the variance of a rollout's pass that lies between tasks, for planning without rows",
    "measurement: 0.398 on 200 recorded tau-bench airline runs of one agent (50 tasks, 4 trials)",
)
SELF_CHECK_DRAWS = Sourced(
    999, "sign patterns of each simulated comparison in self_check", "Davison and Hinkley 1997, section 4.2.5"
)
PRIOR_SLIGHT = Sourced(
    0.2,
    "items that the first prior of a chance-corrected agreement weighs, spread over the cells of the table",
    "measurement: tests/bench/measure_agreement.py; with it kappa covers 0.946 or more at 20 items over its grid",
)
PRIOR_JEFFREYS = Sourced(
    2.0,
    "items that the second prior weighs: half an item in each of four cells",
    "Jeffreys 1946 for the two-by-two table",
)
