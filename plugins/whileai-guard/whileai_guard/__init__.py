"""Guards: markers, leaks, contamination and gamed rewards, each with the span that shows it.

The names below are loaded on first use, so importing the package costs nothing.

Example:
    >>> from whileai_guard import no_leak
    >>> no_leak({"prompt": "q", "final_text": "4", "privileged": {"reference": "4"}})["value"]
    1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whileai_kernel.lazy import lazy_names

if TYPE_CHECKING:
    from whileai_guard.contamination import decontaminate
    from whileai_guard.duplicates import near_duplicates
    from whileai_guard.honesty import failure_acknowledged
    from whileai_guard.leaks import leak_report, no_leak, quoted_privileged
    from whileai_guard.monitor import HackMonitor
    from whileai_guard.scan import hack_scan, hack_scan_diff
    from whileai_guard.splits import split_rows
    from whileai_guard.style import no_boilerplate, no_hedging, no_needless_apology, no_refusal, no_sycophancy

__all__ = [
    "HackMonitor",
    "decontaminate",
    "failure_acknowledged",
    "hack_scan",
    "hack_scan_diff",
    "leak_report",
    "near_duplicates",
    "no_boilerplate",
    "no_hedging",
    "no_leak",
    "no_needless_apology",
    "no_refusal",
    "no_sycophancy",
    "quoted_privileged",
    "split_rows",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".contamination": ("decontaminate",),
        ".duplicates": ("near_duplicates",),
        ".honesty": ("failure_acknowledged",),
        ".leaks": ("leak_report", "no_leak", "quoted_privileged"),
        ".monitor": ("HackMonitor",),
        ".scan": ("hack_scan", "hack_scan_diff"),
        ".splits": ("split_rows",),
        ".style": ("no_boilerplate", "no_hedging", "no_needless_apology", "no_refusal", "no_sycophancy"),
    },
)
