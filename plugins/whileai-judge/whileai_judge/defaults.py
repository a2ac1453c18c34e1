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
THRESHOLD = Sourced(1.0, "the reward from which a row counts as passed", "the row contract: full marks pass")
