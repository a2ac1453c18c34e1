"""Standard output that never stops a command: any encoding, and readers that leave early.

Reports carry characters such as arrows and accents. On a stream whose encoding lacks one (cp1252, ASCII) it is
written as its plain ASCII form instead, and as an escape where it has none. Nothing here opens a file.

Example:
    >>> ascii_form("caf\u00e9 \u2192 \u2713")
    'cafe -> ok'
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from typing import TextIO

_HANDLER = "whileai_ascii"
_FORMS = {
    "\u2192": "->", "\u2190": "<-", "\u2194": "<->", "\u21d2": "=>", "\u2713": "ok", "\u2714": "ok", "\u2717": "x",
    "\u2718": "x", "\u2026": "...", "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u2018": "'", "\u2019": "'",
    "\u201c": '"', "\u201d": '"', "\u2022": "*", "\u00b7": "*", "\u00d7": "x", "\u00b1": "+/-", "\u2264": "<=",
    "\u2265": ">=", "\u2260": "!=", "\u2248": "~", "\u2502": "|", "\u2500": "-", "\u2588": "#", "\u00a0": " ",
}  # fmt: skip


def ascii_form(text: str) -> str:
    """Write ``text`` in ASCII: known symbols by name, letters without accents, the rest as escapes."""
    return "".join(_plain(char) for char in text)


def _plain(char: str) -> str:
    if char in _FORMS:
        return _FORMS[char]
    if char.isascii():
        return char
    folded = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode("ascii")
    return folded or char.encode("ascii", "backslashreplace").decode("ascii")


def _handle(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_form(error.object[error.start : error.end]), error.end


def make_tolerant(stream: TextIO | None) -> None:
    """Let ``stream`` write what its encoding lacks in ASCII; streams that cannot be told are left as they are."""
    codecs.register_error(_HANDLER, _handle)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_HANDLER)


def drop_output() -> None:
    """Point standard output at the null device, so that the flush at exit does not raise again."""
    with open(os.devnull, "w", encoding="utf-8", newline="\n") as null:  # noqa: PTH123 - os.devnull is a name
        os.dup2(null.fileno(), sys.stdout.fileno())
