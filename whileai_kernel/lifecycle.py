"""Typed emitters over the life-cycle hooks, and the two records they carry: Stage and Finding.

Observers see what happens and cannot break it: one that raises is recorded on the stage and warned about once,
and the stage goes on, unless it raised `StopStage`. Checks (`wai_check_rows`) return Findings; an error-level
Finding stops the stage unless the caller allows it by name.

Example:
    >>> with stage("grade", rows=2) as st:
    ...     emit_row({"task_id": "t"}, st)
    >>> st.rows_seen, st.observer_errors
    (1, [])
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from whileai_kernel.errors import FindingsError, StopStage, describe, unknown_name
from whileai_kernel.plugins import PluginWarning, manager, short_name

__all__ = ["Finding", "ObserverError", "Stage", "StopStage", "check_rows", "emit_row", "emit_row_failed", "stage"]


_LEVELS = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        name: Stable name, for example `"guard/reference_quoted"`; callers allow a finding by it.
        level: `"info"`, `"warning"`, or `"error"`, which stops the stage.
        message: One sentence: what it means for the training run.
        fix: What to do about it.
        count: Number of rows concerned.
        rows: Ids or positions of some of them.
    """

    name: str
    level: Literal["info", "warning", "error"]
    message: str
    fix: str = ""
    count: int = 0
    rows: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            unknown_name("level", str(self.level), _LEVELS)

    def __str__(self) -> str:
        return f"[{self.level}] {self.name}: {self.message}{f' ({self.count} rows)' if self.count else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {**asdict(self), "rows": list(self.rows)}


@dataclass(frozen=True, slots=True)
class ObserverError:
    """An observer that raised: its plugin, the hook, and the error."""

    plugin: str
    hook: str
    error: BaseException


@dataclass(slots=True)
class Stage:
    """One run of simulate, grade, measure, select or export, as the observers see it.

    Attributes:
        name: Name of the stage.
        info: What the stage was called with, for people and logs.
        rows_seen: Rows emitted so far.
        rows_failed: Failed rows emitted so far.
        observer_errors: Observers that raised, each once per hook; each was warned about once.
    """

    name: str
    info: Mapping[str, Any] = field(default_factory=dict)
    rows_seen: int = 0
    rows_failed: int = 0
    observer_errors: list[ObserverError] = field(default_factory=list)
    _row_hooks: bool | None = None


def _emit(st: Stage, hook: str, **kwargs: Any) -> None:
    for impl in reversed(getattr(manager().pm.hook, hook).get_hookimpls()):
        try:
            impl.function(**{name: kwargs[name] for name in impl.argnames})
        except StopStage:
            raise
        except Exception as err:  # noqa: BLE001 - an observer may raise anything and must not break the stage
            if any(e.plugin == impl.plugin_name and e.hook == hook for e in st.observer_errors):
                continue  # a million rows must not keep a million errors
            st.observer_errors.append(ObserverError(impl.plugin_name, hook, err))
            text = f"observer {impl.plugin_name} raised in {hook}: {describe(err)}; the stage goes on"
            warnings.warn(text, PluginWarning, stacklevel=3)


@contextmanager
def stage(name: str, **info: Any) -> Iterator[Stage]:
    """Run a block as a stage: `wai_stage_start` before it, `wai_stage_end` after it, also when it raises."""
    st = Stage(name, info)
    _emit(st, "wai_stage_start", stage=st)
    try:
        yield st
    except BaseException as err:
        _emit(st, "wai_stage_end", stage=st, error=err)
        raise
    _emit(st, "wai_stage_end", stage=st, error=None)


def emit_row(row: Mapping[str, Any], st: Stage) -> None:
    """Tell the observers that a row is finished. Costs nothing when nobody observes rows."""
    st.rows_seen += 1
    if st._row_hooks is None:
        st._row_hooks = bool(manager().pm.hook.wai_row.get_hookimpls())
    if st._row_hooks:
        _emit(st, "wai_row", row=row, stage=st)


def emit_row_failed(row: Mapping[str, Any], st: Stage, error: BaseException) -> None:
    """Tell the observers that a row failed."""
    st.rows_failed += 1
    _emit(st, "wai_row_failed", row=row, stage=st, error=error)


def check_rows(rows: Sequence[Mapping[str, Any]], st: Stage, allow: Collection[str] = ()) -> list[Finding]:
    """Ask every check about the rows.

    Args:
        rows: Rows that are about to leave the stage.
        st: The stage.
        allow: Names of findings that do not stop the stage.

    Returns:
        All findings, errors first. A check that raises is itself an error-level finding `<plugin>/check_failed`:
        an unchecked file must not look like a clean one.

    Raises:
        FindingsError: An error-level finding is not allowed by name.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    found: list[Finding] = []
    for impl in reversed(manager().pm.hook.wai_check_rows.get_hookimpls()):
        kwargs: dict[str, Any] = {"rows": rows, "stage": st}
        try:
            answer: Any = impl.function(**{name: kwargs[name] for name in impl.argnames})
            for finding in answer or ():
                if not isinstance(finding, Finding):
                    raise TypeError(f"a check returns a list of Findings, not of {type(finding).__name__}")
                found.append(finding)
        except StopStage:
            raise
        except Exception as err:  # noqa: BLE001 - recorded as a finding that stops the stage
            name = f"{short_name(impl.plugin_name)}/check_failed"
            found.append(Finding(name, "error", f"the check raised {describe(err)}", "mend or uninstall the plugin"))
    found.sort(key=lambda f: _LEVELS.index(f.level))
    stopping = [f for f in found if f.level == "error" and f.name not in allowed]
    if stopping:
        names = ", ".join(repr(f.name) for f in stopping)
        raise FindingsError(
            f"{st.name} stopped: {stopping[0].message}",
            why="; ".join(str(f) for f in stopping),
            fix=f"{stopping[0].fix or 'mend the rows'}; or pass allow=[{names}] to go on",
            findings=stopping,
        )
    return found
