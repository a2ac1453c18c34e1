"""JSON text as tools show it: non-ASCII letters stand for themselves.

Example:
    >>> encode({"city": "Zürich", "n": 1.5})
    '{"city": "Zürich", "n": 1.5}'
"""

from __future__ import annotations

import json

from whileai_kernel.encoding import prepared

__all__ = ["encode"]

encode = prepared(json.JSONEncoder(ensure_ascii=False))
"""Return the JSON text of a value; raises `TypeError` for what JSON has no form for."""
