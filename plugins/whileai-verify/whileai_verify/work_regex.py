"""Worker side of `text.Regex`: one match."""

from __future__ import annotations

import re
from typing import Any


def work(argument: Any) -> bool:
    """Return whether `[pattern, flags, mode, text]` matches."""
    pattern, flags, mode, text = argument
    compiled = re.compile(pattern, flags)
    return (compiled.search(text) if mode == "search" else compiled.fullmatch(text)) is not None
