"""Progress of a run: a bar (tqdm) on a terminal or in a notebook, a callable, or silence."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable
from typing import Any

from whileai_kernel.errors import StopStage

__all__ = ["Progress", "make_progress"]


class Progress:
    """Where counts go; by default nowhere.

    Args:
        show: Called with `(done, planned)`.
        end: Called once at the end.
    """

    def __init__(self, show: Callable[[int, int], Any] | None = None, end: Callable[[], Any] | None = None) -> None:
        self._show, self._end = show, end

    def update(self, done: int, planned: int) -> None:
        """Show that `done` of `planned` rollouts have landed.

        A display that raises is told once and left alone from then on: it ends no run, unless it raises `StopStage`.
        """
        if self._show is None:
            return
        try:
            self._show(done, planned)
        except StopStage:
            raise
        except Exception as err:  # noqa: BLE001 - whoever watches does not decide
            self._show = None
            warnings.warn(
                f"progress: {type(err).__name__}: {err}; it is not called again", RuntimeWarning, stacklevel=2
            )

    def close(self) -> None:
        """End the display."""
        if self._end is not None:
            self._end()


def make_progress(wanted: bool | Callable[[int, int], Any] | None, planned: int) -> Progress:
    """Return the progress display of a run.

    Args:
        wanted: A callable `(done, planned)`; `False` for silence; `True` for a bar; `None` for a bar where a
            person watches: a terminal or a notebook, and a run of more than a moment.
        planned: Rollouts planned so far.
    """
    if callable(wanted):
        return Progress(wanted)
    if wanted is False or (wanted is None and not _watched()):
        return Progress()
    # Imported by name: the library ships no types, and stubs would be one more package to install. Its `auto` module
    # warns in a notebook without ipywidgets, where the plain bar does as well.
    widgets = "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None
    module = importlib.import_module("tqdm.notebook" if widgets else "tqdm")
    bar = module.tqdm(total=planned, unit=" rollouts", leave=False, delay=0.5)

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return Progress(show, bar.close)


def _watched() -> bool:
    if "ipykernel" in sys.modules:
        return True
    return bool(sys.stderr is not None and sys.stderr.isatty())
