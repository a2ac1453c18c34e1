"""Every number of this plugin that shapes a result, with its meaning and its source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

CONCURRENCY = Sourced(8, "the most judge calls in flight at once", "convention, untested")
DEADLINE_SECONDS = Sourced(
    120.0, "seconds that one call of a judge may take before its row is a timeout", "convention, untested"
)
STOP_AFTER = Sourced(
    8,
    "a judge that fails on this many first rows, with more to come, stops the stage; no more are started "
    "before one has worked",
    "convention, untested",
)
MAX_ABANDONED = Sourced(
    64, "calls abandoned in mid-flight after which no further row is started", "convention, untested"
)
SLOW_CALL_SECONDS = Sourced(
    0.001,
    "mean seconds per plain call from which rows are spread over worker threads",
    "measured with tests/bench/judge_speed.py: below it switching threads costs more than it gains",
)
BATCH_SIZE = Sourced(32, "rows per call of a judge that grades batches and names no size", "convention, untested")
THRESHOLD = Sourced(1.0, "the reward from which a row counts as passed", "the row contract: full marks pass")
REPLY_CHARACTERS = Sourced(
    50_000,
    "characters from the end of a judge's reply that are read for its verdict; the verdict stands last",
    "convention, untested",
)
JSON_ATTEMPTS = Sourced(200, "places in a judge's reply where a JSON object is looked for", "convention, untested")
UNREAD_CRITERIA = Sourced(
    10,
    "criteria without a verdict up to which the possible rewards are enumerated (2 to that power)",
    "convention, untested",
)
QUOTED_CHARACTERS = Sourced(
    60_000, "characters of one quoted text that a judge is shown; a longer one loses its middle", "convention, untested"
)
VOTES = Sourced(1, "how often a model judge is asked about one row", "convention, untested")
EVIDENCE_CHARACTERS = Sourced(2_000, "characters of a judge's reason that are kept on a row", "convention, untested")
CONFIDENCE = Sourced(0.95, "confidence of every interval", "convention, untested")
FLIP_CEILING = Sourced(
    0.1,
    "share of pairs whose verdict follows the seat above which a report warns",
    "below the 12.9 % that lm-sys/FastChat#3911 reports as a fault of a judge",
)
LENGTH_SHARE = Sourced(0.9, "share of wins of the longer answer from which a report warns", "convention, untested")
LENGTH_PAIRS = Sourced(
    6,
    "fewest decided pairs for the warning about length",
    "exact: under a fair coin 6 of 6 in one direction has probability 0.031, 5 of 5 has 0.0625 (two-sided)",
)
KAPPA_FLOOR = Sourced(
    0.61,
    "kappa whose lower end a trusted judge reaches",
    "Landis and Koch 1977, Biometrics 33: substantial agreement starts at 0.61",
)
CHANCE_KAPPA = Sourced(
    0.21,
    "kappa below which a judge is called random",
    "Landis and Koch 1977, Biometrics 33: below 0.21 agreement is slight",
)
ERROR_CEILING = Sourced(
    0.2, "rate of false passes and of false fails whose upper end a trusted judge stays below", "convention, untested"
)
LENGTH_EFFECT = Sourced(
    0.2,
    "absolute correlation of verdict and log length, at one label, that names a length judge",
    "convention, untested",
)
CONSISTENCY_FLOOR = Sourced(
    0.8, "share of equal pairs of votes below which a judge contradicts itself", "convention, untested"
)
MIN_PER_CLASS = Sourced(
    20,
    "fewest passing and fewest failing labelled rows for a verdict on a judge",
    "measured with tests/bench/judge_trust_coverage.py: from 20 rows a class the intervals cover",
)
MIN_TASKS = Sourced(
    10,
    "fewest labelled tasks for a verdict on a judge",
    "measured with tests/bench/judge_trust_coverage.py: from 10 tasks the intervals cover",
)
YOUDEN_FLOOR = Sourced(
    0.1,
    "sensitivity plus specificity minus 1 above which a rate is turned around; near 0 it divides by noise",
    "convention, untested",
)
PROBE_ROWS = Sourced(100, "most replies per probe", "convention, untested")
PROBE_MIN_ROWS = Sourced(20, "fewest scored replies for a verdict on a probe", "convention, untested")
PROBE_CEILING = Sourced(0.1, "share of passed probe replies that is too much", "convention, untested")
