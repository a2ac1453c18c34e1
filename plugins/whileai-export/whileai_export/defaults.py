"""Numbers that shape what is written, each with its meaning and its source."""

from whileai_kernel.defaults import Sourced

SHARD_BYTES = Sourced(
    500_000_000,
    "bytes of JSONL after which a new shard begins, when a folder is written",
    "convention, untested: large enough that most sets are one file, below the 5 GB limit of single-request uploads",
)
ROW_GROUP = Sourced(10_000, "rows per Parquet row group, and rows held in memory at once", "convention, untested")
QUOTE_CHARS = Sourced(24, "characters of private prose that count as a quotation, at least", "convention, untested")
QUOTE_WORDS = Sourced(5, "words of private prose that count as a quotation, at least", "convention, untested")
QUOTE_NEARNESS = Sourced(
    80,
    "characters around a quoted reference in which a word such as 'answer key' gives it away",
    "convention, untested",
)
MAX_LENGTH = Sourced(
    1024,
    "tokens after which the trainer cuts a row, when preflight is not told another length",
    "TRL 1.16 SFTConfig.max_length",
)
SHOWN_FLAGS = Sourced(5, "flagged rows that a note names one by one", "convention, untested")
HEAD_BYTES = Sourced(
    1 << 16, "bytes at the start of a file by which `wai export` asks the installed sources", "convention, untested"
)
