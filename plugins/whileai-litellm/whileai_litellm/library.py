"""litellm itself: imported once, late, and quietly; and what can be known about it without importing it.

Three things are set before it is imported, and only where the user has not: no price map from the network, no `.env`
file read into the process, no hints printed beside errors.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
from pathlib import Path
from typing import Any

from whileai_kernel.errors import MissingDependencyError, PluginError

__all__ = ["load", "price_of"]

_INSTALL = 'pip install "whileai-litellm[litellm]"'
_FLOOR = (1, 90)


def load() -> Any:
    """Return the module litellm; the first call imports it, which takes seconds.

    Raises:
        MissingDependencyError: It is not installed.
        PluginError: Its version is outside the range that is known to be safe.
    """
    return _imported()


@functools.cache
def _imported() -> Any:
    try:
        version = importlib.metadata.version("litellm")
    except importlib.metadata.PackageNotFoundError as err:
        raise MissingDependencyError(
            "this model needs litellm", why="it is not installed", fix=f"{_INSTALL} (272 MB)"
        ) from err
    check_version(version)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").addFilter(_quiet)
    return litellm


def check_version(version: str) -> None:
    """Refuse versions below the floor: among them are two that were published by a thief.

    Raises:
        PluginError: The version is refused.
    """
    parts = version.split(".")
    known = [int(part) for part in parts[:2] if part.isdigit()]
    if len(known) < 2 or tuple(known) < _FLOOR or known[0] >= 2:
        raise PluginError(
            f"litellm {version} is not used",
            why="the safe range is >=1.90,<2; 1.82.7 and 1.82.8 held a credential stealer",
            fix=f"{_INSTALL} --upgrade",
        )


def _quiet(record: logging.LogRecord) -> bool:
    """Drop what it logs whenever it is used from a second event loop, as every script with two runs does."""
    return not record.getMessage().startswith("LoggingWorker: event loop changed")


@functools.cache
def _prices() -> dict[str, Any]:
    """Return the price map that the wheel ships, read without importing the library."""
    spec = importlib.util.find_spec("litellm")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / "model_prices_and_context_window_backup.json"
        if path.is_file():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
    return {}


def price_of(model: str) -> tuple[float, float] | None:
    """Return US dollars per million prompt and completion tokens, or `None` when they are unknown.

    Args:
        model: Name as litellm spells it, with or without its provider.
    """
    for name in (model, model.partition("/")[2]):
        entry = _prices().get(name)
        if isinstance(entry, dict):
            sent, received = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
            if isinstance(sent, int | float) and isinstance(received, int | float) and (sent or received):
                return sent * 1e6, received * 1e6
    return None
