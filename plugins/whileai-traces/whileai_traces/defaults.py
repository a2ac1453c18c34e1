"""Numbers that shape what is read, each with its meaning and its source."""

from whileai_kernel.defaults import Sourced

HEAD_BYTES = Sourced(
    1 << 16,
    "bytes at the start of a file (decompressed) that detection looks at",
    "measurement: one run of the public tau-bench airline file takes 8 to 44 KB, 17 KB in the middle",
)
READ_BYTES = Sourced(
    1 << 20,
    "bytes of a JSON array that are read at a time; memory holds these and one element",
    "measurement: the public tau-bench airline file takes 25 ms with 64 KiB, 20 ms with 1 MiB, 20 ms with 4 MiB",
)
LINE_BYTES = Sourced(
    1 << 26, "longest first line of JSON Lines; a longer one is read as an array or an object", "convention, untested"
)
CERTAIN = Sourced(0.9, "confidence of a format whose own marker is in the file", "convention, untested")
LIKELY = Sourced(0.6, "confidence of a format whose shape fits and which others can share", "convention, untested")
NAMED = Sourced(0.5, "confidence of a table whose columns are named like prompt and completion", "convention, untested")
POSSIBLE = Sourced(0.3, "confidence of a format that can only be guessed", "convention, untested")
LEAST = Sourced(0.2, "below this confidence a file is not read without a format= argument", "convention, untested")
SHOWN_PROBLEMS = Sourced(
    20, "records with problems that are named in the warnings; all are in the provenance", "convention, untested"
)
ENUM_VALUES = Sourced(6, "most values that an inferred enum may have", "convention, untested")
ENUM_REPEATS = Sourced(
    5,
    "calls per distinct text from which an argument is taken for an enum",
    "measurement: on the 200 recorded airline runs it finds cabin and flight_type, and no id, airport or date",
)
