"""What can go wrong with an agent that was written elsewhere: a failed rollout with its reason."""

from __future__ import annotations

import importlib
from typing import Any

from whileai_kernel.errors import MissingDependencyError, WhileaiError

__all__ = ["AgentError", "need"]


class AgentError(WhileaiError, RuntimeError):
    """An agent gave no answer.

    Attributes:
        permanent: No other rollout can fare better: a wrong key, a program that does not exist.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(what, why, fix)


def need(module: str, extra: str) -> Any:
    """Import a library that an extra brings.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingDependencyError(
            f"this needs the module {module!r}", "it is not installed", f'pip install "whileai-agents[{extra}]"'
        ) from err
