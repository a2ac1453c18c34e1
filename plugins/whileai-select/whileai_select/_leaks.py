"""The leak test that selection uses: the marker on the row, else the registered marker, else nothing.

Selection does not know how to find a leak; the guard plugin does. A row that was marked already is believed.
Otherwise the registered marker `guard/no_leak` is asked, when it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from whileai_kernel.errors import UnknownNameError

MARKER = "no_leak"


class LeakTest:
    """Callable on a row: `True` when the row leaks its private reference.

    Attributes:
        available: Whether a marker for leaks is installed; without it only rows that carry the marker are tested.
    """

    def __init__(self) -> None:
        self._marker = _find()
        self.available = self._marker is not None

    def __call__(self, row: Mapping[str, Any]) -> bool:
        value = (row.get("markers") or {}).get(MARKER)
        if value is None and self._marker is not None and row.get("privileged"):
            value = self._marker(row)
        if isinstance(value, Mapping):
            value = value.get("value")
        return value is not None and float(value) < 0.5


def _find() -> Callable[[Mapping[str, Any]], Any] | None:
    from whileai_kernel import make

    try:
        found: Callable[[Mapping[str, Any]], Any] = make("markers", f"guard/{MARKER}")
    except UnknownNameError:
        return None
    return found
