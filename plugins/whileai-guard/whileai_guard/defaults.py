"""Sourced constants of whileai-guard: every number that shapes a marker, a finding or a report."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

HEDGES_PER_SENTENCE = Sourced(2, "this many weak hedges in one sentence mark a row as hedging", "convention, untested")
HEDGES_PER_TEXT = Sourced(3, "this many weak hedges in one message mark a row as hedging", "convention, untested")
QUOTE_WORDS = Sourced(
    8,
    "consecutive words of a private text that count as a quotation of it",
    "Brown et al. 2020 (GPT-3, arXiv:2005.14165) appendix C uses 8 to 13-grams for overlap; 8 is their lower bound",
)
DISTINCT_CHARS = Sourced(
    8,
    "a private token with letters and digits and at least this many characters is recognisable on its own",
    "convention, untested",
)
SHARED_REWARD_ROWS = Sourced(
    4,
    "from this many scored rows on, one shared reward is reported",
    "convention, untested",
)
FINDING_EXAMPLES = Sourced(5, "rows that a finding names at most", "convention, untested")
