"""JSON text as tools show it: non-ASCII letters stand for themselves.

`json.JSONEncoder.encode` makes its C encoder anew for every value, which costs twice what encoding a record does;
here it is made once. Where the interpreter has no C encoder the plain one is used; the text is the same.

Example:
    >>> encode({"city": "Zürich", "n": 1.5})
    '{"city": "Zürich", "n": 1.5}'
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any

__all__ = ["encode"]

_PLAIN = json.JSONEncoder(ensure_ascii=False)


def _made_once() -> Callable[[Any], str]:
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    text: Any = getattr(json.encoder, "encode_basestring", None)
    if make is None or text is None:
        return _PLAIN.encode
    # Without its memory of open containers it cannot see a cycle; a RecursionError says so then.
    parts = make(None, _PLAIN.default, text, None, ": ", ", ", False, False, True)
    join = "".join

    def encode_containers(value: Any) -> str:
        return join(parts(value, 0)) if type(value) is dict or type(value) is list else _PLAIN.encode(value)

    return encode_containers


encode = _made_once()
"""Return the JSON text of a value; raises `TypeError` for what JSON has no form for."""
