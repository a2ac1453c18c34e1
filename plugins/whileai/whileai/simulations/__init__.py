"""The same names as `whileai`: `import whileai.simulations as wai` works too."""

from __future__ import annotations

from typing import Any

import whileai
from whileai import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(whileai, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
