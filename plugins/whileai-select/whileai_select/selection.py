"""`select`: one front door for the selectors, by mode.

Example:
    >>> rows = [{"task_id": "t", "prompt": "q", "final_text": "a", "reward": 0, "status": "ok", "markers": {}}] * 4
    >>> print(select(rows, mode="rl").report["summary"])
    select rl: kept 0 of 4 rows in 0 of 1 tasks | dropped: unanimous_fail 4
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel.errors import unknown_name
from whileai_kernel.protocols import Selected
from whileai_select.rl import select_rl
from whileai_select.sft import select_sft

MODES: dict[str, Callable[..., Selected]] = {"rl": select_rl, "sft": select_sft}


def select(rows: Iterable[Mapping[str, Any]] | str | Path, mode: str = "rl", **options: Any) -> Selected:
    """Select the rows that teach, with a reason for each row that is left out.

    Args:
        rows: Rows, a dataset, or the path of a JSONL file.
        mode: `"rl"` (whole groups with signal, see `select_rl`) or `"sft"` (rejection sampling, see `select_sft`),
            or the name of any registered selector.
        **options: Arguments of that selector.

    Returns:
        `Selected` with the kept rows in input order, one ledger entry per input row, and a report whose
        `"summary"` is one line.

    Raises:
        ParameterError: Unknown mode or option; the message names the nearest match.
        RowError: A row has no task or a reward that is not a number in [0, 1].
    """
    chosen: Callable[..., Selected] | None = MODES.get(mode)
    if chosen is None:
        chosen = _registered(mode)
    check_options(chosen, mode, options)
    return chosen(rows, **options)


def _registered(mode: str) -> Callable[..., Selected]:
    from whileai_kernel import entries, make

    names = {*MODES, *(name for entry in entries("selectors") for name in (entry.name, entry.id))}
    if not isinstance(mode, str) or mode not in names:
        unknown_name("mode", str(mode), names)
    made: Callable[..., Selected] = make("selectors", mode)
    return made


def check_options(function: Callable[..., Any], mode: str, options: Mapping[str, Any]) -> None:
    """Raise when an option is not an argument of the selector.

    Raises:
        ParameterError: With the nearest match.
    """
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [name for name in parameters if name != "rows"]
    for name in options:
        if name not in known:
            unknown_name(f"option of mode {mode!r}", name, known)
