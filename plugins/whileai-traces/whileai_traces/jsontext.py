"""JSON text: one decoder for everything that is read, and the pieces of arrays that are damaged or cut off.

Example:
    >>> [piece for _, piece in split_array('[{"a": 1}, {"b": tru}, {"c": ')]
    ['{"a": 1}', ' {"b": tru}', ' {"c": ']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["DECODER", "STRING_END", "STRUCTURE", "loads", "split_array"]

STRUCTURE = re.compile(r'["{}\[\],]')
STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def _constant(name: str) -> str:
    # NaN and the infinities are no JSON. As text they survive; as a reward they become "invalid", never a number.
    return name


DECODER = json.JSONDecoder(parse_constant=_constant)


def loads(text: str) -> Any:
    """Read one JSON text; NaN and the infinities come back as text, since rows cannot hold them."""
    return DECODER.decode(text)


def split_array(text: str) -> Iterator[tuple[int, str]]:
    """Yield `(offset, text)` of each element of a JSON array that may be damaged or cut off."""
    depth = 0
    start = -1
    position = 0
    while True:
        match = STRUCTURE.search(text, position)
        if match is None:
            break
        char, position = match.group(), match.end()
        if char == '"':
            end = STRING_END.match(text, position)
            if end is None:
                break
            position = end.end()
        elif char in "{[":
            depth += 1
            if depth == 1:
                start = position
        elif char in "}]":
            depth -= 1
            if depth <= 0:
                piece = text[start : position - 1]
                if start >= 0 and piece.strip():
                    yield start, piece
                return
        elif depth == 1:
            yield start, text[start : position - 1]
            start = position
    if start >= 0 and text[start:].strip():
        yield start, text[start:]
