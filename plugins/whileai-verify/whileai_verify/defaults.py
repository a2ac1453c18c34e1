"""Every number of this plugin that shapes a verdict, with its meaning and its source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

FLOAT_NOISE = Sourced(
    1e-12,
    "relative difference that printing or parsing a double may cause; never applied to two integers",
    "measurement: repr of sums of 1,000 doubles differs by at most 2e-13 relative; one rounding is 2^-53 (IEEE 754)",
)
REL_TOL = Sourced(0.0, "relative tolerance of Numeric, on the size of the reference", "convention, untested")
ABS_TOL = Sourced(0.0, "absolute tolerance of Numeric, in the unit of the reference", "convention, untested")
MAX_NUMBER_CHARS = Sourced(
    1_000,
    "a literal longer than this many characters is not read as a number",
    "measurement: the 5,276 GSM8K solutions hold no answer above 16 characters; Fraction of 1,000 digits takes 20 us",
)
MAX_EXPONENT = Sourced(
    10_000,
    "largest decimal exponent that is expanded to an exact fraction",
    "convention, untested",
)
MATH_REL_TOL = Sourced(
    1e-9,
    "relative tolerance of MathEqual when two expressions are compared by value",
    "convention, untested",
)
MATH_DIGITS = Sourced(
    6,
    "significant digits that a decimal needs to stand for a value that no decimal equals (1/3, pi)",
    "the 6 decimals of math-verify 0.9.0 (float_rounding), read as significant digits so that size does not matter",
)
DEADLINE_S = Sourced(
    5.0,
    "seconds that one evaluation of a reply may take in a worker process",
    "the 5 s default of math-verify 0.9.0 (parsing_timeout, timeout_seconds)",
)
START_S = Sourced(
    90.0,
    "seconds that a worker process may take to import its libraries before the first evaluation",
    "measurement: sympy and math-verify import in 2.9 s with and 9 s without byte code on two shared cores",
)
WORKERS = Sourced(2, "worker processes of a pool, each evaluating one reply at a time", "convention, untested")
WORKER_MEMORY_MB = Sourced(
    2_048,
    "address space in MiB of one evaluation in a worker process",
    "convention, untested",
)
MAX_MATH_CHARS = Sourced(
    4_000,
    "an answer longer than this many characters is not read as mathematics",
    "measurement: no answer of the corpus is above 200 characters; the parser takes 40 ms at 4,000",
)
REGEX_INLINE_STEPS = Sourced(
    2_000_000,
    "matching steps (upper bound) up to which a pattern runs in the calling thread; above it, in a worker",
    "measurement: re performs about 50 million steps a second here, so the bound is 40 ms",
)
MAX_JSON_SCAN = Sourced(
    20_000_000,
    "characters that the search for JSON inside prose may read in total, retries included",
    "measurement: 0.2 s in the C scanner",
)
TIE_CONFIDENCE = Sourced(0.95, "confidence of the intervals that audit and null_agents print", "convention, untested")
NULL_AGENT_LIMIT = Sourced(
    0.0,
    "mean reward of an agent that does nothing above which a verifier is flagged",
    "convention, untested",
)
ROW_THREADS = Sourced(4, "rows that verify_rows grades at once", "convention, untested")

CODE_TIME_S = Sourced(10.0, "wall-clock seconds for one candidate, all its tests together", "convention, untested")
CODE_CPU_S = Sourced(10, "CPU seconds for one candidate process", "convention, untested")
CODE_MEMORY_MB = Sourced(
    512,
    "address space in MiB of a candidate process, and memory in MiB of all its processes together",
    "convention, untested",
)
CODE_PROCESSES = Sourced(16, "processes and threads that a candidate may have alive", "convention, untested")
CODE_OUTPUT_KB = Sourced(1_024, "KiB of standard output read from a candidate; more fails it", "convention, untested")
CODE_FILE_MB = Sourced(16, "MiB of one file that a candidate may write", "convention, untested")
CODE_DISK_MB = Sourced(64, "MiB of the candidate's temporary directory", "convention, untested")
CODE_VALUE_KB = Sourced(
    8_192, "KiB of one value that crosses from a candidate to the comparison outside", "convention, untested"
)
CODE_FLOAT_TOL = Sourced(
    0.0, "relative tolerance when a returned float is compared with an expected float", "convention, untested"
)
SQL_DEADLINE_S = Sourced(5.0, "seconds for one query", "convention, untested")
SQL_ROWS = Sourced(100_000, "rows of a result set above which a query fails", "convention, untested")
SQL_FLOAT_TOL = Sourced(1e-9, "relative tolerance of floats in result sets", "convention, untested")
STATE_FLOAT_TOL = Sourced(0.0, "relative tolerance of numbers in end states", "convention, untested")
