"""Constants of the models behind litellm, each with its meaning and source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

RETRIES = Sourced(4, "requests beyond the first for one completion, on transient failures", "convention, untested")
WAIT_BASE_S = Sourced(
    0.5,
    "seconds of the first back-off; doubled each time, drawn by full jitter",
    "AWS Architecture Blog 2015, Exponential Backoff and Jitter (full jitter)",
)
WAIT_MAX_S = Sourced(30.0, "longest back-off in seconds when the server names none", "convention, untested")
RETRY_AFTER_MAX_S = Sourced(
    300.0, "longest Retry-After in seconds that is waited for; a longer one fails at once", "convention, untested"
)
DEADLINE_S = Sourced(120.0, "seconds for one completion, retries and waits included", "convention, untested")
CONCURRENCY = Sourced(32, "requests in flight of one model object", "convention, untested")
