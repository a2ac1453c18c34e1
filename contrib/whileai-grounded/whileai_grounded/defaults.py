"""The numbers of this plugin, with meaning and source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

MIN_QUOTE_WORDS = Sourced(
    3, "a quotation of fewer words is taken for a name or for scare quotes, and not checked", "convention, untested"
)
MAX_QUOTES = Sourced(
    200, "a reply with more quotations is not scored: checking them all would not end soon", "convention, untested"
)
COUNTING_LIMIT = Sourced(
    10,
    "whole numbers up to this one are taken for counting (two options, step 3), and not checked",
    "convention, untested",
)
SHOWN_FIGURES = Sourced(20, "most figures that the evidence of a mark lists", "convention, untested")
