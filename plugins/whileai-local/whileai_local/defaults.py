"""Constants of the local model, each with its meaning and source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

CONTEXT = Sourced(
    4096, "tokens of prompt and reply of one request", "convention, untested; smollm2 was trained with 8192"
)
PARALLEL = Sourced(4, "requests that are decoded together", "convention, untested")
SCHEMA_TEXT = Sourced(
    160,
    "most characters of a text in a reply that is held to a schema, where the schema names no maxLength",
    "measurement: smollm2 fills an unbounded text until max_tokens cuts the JSON in the middle",
)
DEADLINE_S = Sourced(
    600.0,
    "seconds for one completion, the wait for a free slot included",
    "convention, untested; a busy laptop is slow",
)
