"""JSON encoders that are made once.

`json.JSONEncoder.encode` makes its C encoder anew for every value, which costs twice what encoding a small record does.

Example:
    >>> encode = prepared(json.JSONEncoder(ensure_ascii=False))
    >>> encode({"city": "Zürich", "n": 1.5}), encode("a")
    ('{"city": "Zürich", "n": 1.5}', '"a"')
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any

__all__ = ["prepared"]


def prepared(plain: json.JSONEncoder) -> Callable[[Any], str]:
    """Return a function that gives the text of `plain.encode`.

    A cycle is a `RecursionError` rather than a `ValueError`: the encoder keeps no memory of open containers. Where the
    interpreter has no C encoder, or the text is indented, `plain.encode` itself is returned.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    indented: Any = plain.indent  # the stubs of json know no indent
    if make is None or indented is not None:
        return plain.encode
    text = json.encoder.encode_basestring_ascii if plain.ensure_ascii else json.encoder.encode_basestring
    parts = make(
        None, plain.default, text, None, plain.key_separator, plain.item_separator, plain.sort_keys, plain.skipkeys,
        plain.allow_nan,
    )  # fmt: skip
    join = "".join

    def encode(value: Any) -> str:
        return join(parts(value, 0)) if isinstance(value, dict | list | tuple) else plain.encode(value)

    return encode
