"""Guards: markers, leaks, contamination and gamed rewards, each with the span that shows it.

The names below are loaded on first use, so importing the package costs nothing.

Example:
    >>> from whileai_guard import no_leak
    >>> no_leak({"prompt": "q", "final_text": "4", "privileged": {"reference": "4"}})["value"]
    1.0
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "near_duplicates": "whileai_guard.duplicates",
    "HackMonitor": "whileai_guard.monitor",
    "hack_scan": "whileai_guard.scan",
    "hack_scan_diff": "whileai_guard.scan",
    "leak_report": "whileai_guard.leaks",
    "split_rows": "whileai_guard.splits",
    "decontaminate": "whileai_guard.contamination",
    "failure_acknowledged": "whileai_guard.honesty",
    "no_boilerplate": "whileai_guard.style",
    "no_hedging": "whileai_guard.style",
    "no_leak": "whileai_guard.leaks",
    "no_needless_apology": "whileai_guard.style",
    "no_refusal": "whileai_guard.style",
    "no_sycophancy": "whileai_guard.style",
    "quoted_privileged": "whileai_guard.leaks",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
