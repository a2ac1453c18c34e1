"""Names that the project's own plugins offer, so that an unknown name can say what to install.

Only for error messages: nothing is looked up here. A test keeps it complete.
"""

from __future__ import annotations

__all__ = ["KNOWN"]

KNOWN: dict[str, dict[str, tuple[str, ...]]] = {}
"""Kind -> plugin name -> bare names."""
