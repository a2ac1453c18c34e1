"""Errors that say what happened, why, and what to type next.

One small hierarchy: everything the toolkit raises on purpose is a `WhileaiError`, and each class also derives
from the built-in exception that a caller would catch without knowing this package (`ValueError`, `LookupError`,
`ImportError`, `TimeoutError`). Nothing here logs or formats for a terminal; the CLI does that.

Example:
    >>> err = ParameterError("unknown mode 'rll'", why="modes are rl, sft", fix="pass mode='rl'")
    >>> print(err)
    unknown mode 'rll'
      why: modes are rl, sft
      fix: pass mode='rl'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NoReturn

__all__ = [
    "AmbiguousNameError",
    "DeadlineError",
    "FileThereError",
    "FindingsError",
    "MissingDependencyError",
    "ModelError",
    "ParameterError",
    "PluginError",
    "RowError",
    "SchemaVersionError",
    "SettingsError",
    "StopStage",
    "UnknownNameError",
    "WhileaiError",
    "describe",
    "nearest",
    "unknown_name",
]


class WhileaiError(Exception):
    """Base of every error raised on purpose.

    Args:
        what: One sentence: what happened.
        why: The reason, or the fact that shows it. May be empty.
        fix: What to type or change next. May be empty.
    """

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions with extra arguments do not unpickle by default, and worker processes send these back.
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(cls: type[WhileaiError], state: dict[str, Any]) -> WhileaiError:
    err = cls.__new__(cls)
    err.__dict__.update(state)
    err.args = (state.get("what", ""),)
    return err


class ParameterError(WhileaiError, ValueError, TypeError):
    """An argument has a name, type or value that the call does not accept."""


class ModelError(WhileaiError, RuntimeError):
    """A completion that did not come: what every model plugin raises, and engines and ledgers read.

    Attributes:
        kind: `auth`, `not_found`, `quota`, `bad_request`, `context_length`, `no_tools`, `rate_limited`, `server`,
            `connection`, `timeout`, `malformed` or `not_recorded`.
        status_code: HTTP status, or `None`.
        attempts: Requests that were made.
        retry_after: Seconds that the server asked to wait, or `None`.
    """

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        kind: str = "bad_request",
        status_code: int | None = None,
        attempts: int = 0,
        retry_after: float | None = None,
    ) -> None:
        self.kind, self.status_code = kind, status_code
        self.attempts, self.retry_after = attempts, retry_after
        super().__init__(what, why, fix)

    @property
    def transient(self) -> bool:
        """Whether the same request may work a moment later."""
        return self.kind in ("rate_limited", "server", "connection", "malformed")

    @property
    def permanent(self) -> bool:
        """Whether every further request of this model will fail the same way."""
        return self.kind in ("auth", "not_found", "quota")


class SettingsError(WhileaiError, ValueError):
    """An environment variable or setting has a value that cannot be used."""


class RowError(WhileaiError, ValueError):
    """A row cannot be used as it is.

    Attributes:
        problem: What is wrong, without the place.
        row: Position (0-based) or id of the row, when known.
        field: Dotted path of the field, for example `messages[2].content`.
    """

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, row: int | str | None = None, field: str | None = None
    ) -> None:
        self.row, self.field, self.problem = row, field, what
        where = " ".join(
            part for part in ("" if row is None else f"row {row}", f"field {field}" if field else "") if part
        )
        super().__init__(f"{where}: {what}" if where else what, why, fix)

    def at(self, *, row: int | str | None = None, field: str | None = None) -> RowError:
        """Return the same error at a place that the caller knows better; what is left out stays."""
        row, field = self.row if row is None else row, self.field if field is None else field
        return type(self)(self.problem, self.why, self.fix, row=row, field=field)


class SchemaVersionError(RowError):
    """A row was written by a newer (or an unknown) version of the schema."""


class UnknownNameError(WhileaiError, LookupError):
    """No component, tool or option has the name that was asked for."""


class AmbiguousNameError(WhileaiError, LookupError):
    """More than one plugin offers the bare name that was asked for."""


class PluginError(WhileaiError, RuntimeError):
    """A plugin could not be imported or registered."""


class MissingDependencyError(WhileaiError, ImportError):
    """A component needs a library that is not installed."""


class FileThereError(WhileaiError, FileExistsError):
    """A file exists and was not to be replaced."""


class DeadlineError(WhileaiError, TimeoutError):
    """Work did not end within its deadline."""


class FindingsError(WhileaiError, RuntimeError):
    """A check found something that stops the stage.

    Attributes:
        findings: The error-level findings, in the order in which they were reported.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", *, findings: Iterable[Any] = ()) -> None:
        self.findings = tuple(findings)
        super().__init__(what, why, fix)


class StopStage(WhileaiError):
    """Raised by a life-cycle observer to end a stage on purpose; every other observer error is only recorded."""


def describe(error: BaseException, limit: int = 2_000) -> str:
    """Return `Type: text` of an error on one line, cut at `limit`; also of one whose text cannot be made."""
    try:
        text = " ".join(str(error).split())
    except Exception as err:  # noqa: BLE001 - a foreign __str__ may raise anything
        text = f"its text raised {type(err).__name__}"
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__)[:limit]


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three of `names` that look most like `name`, best first (difflib, cutoff 0.6)."""
    pool = list(dict.fromkeys(names))
    by_folded = {n.casefold(): n for n in pool}
    return [by_folded[m] for m in difflib.get_close_matches(name.casefold(), list(by_folded), n=3, cutoff=0.6)]


def unknown_name(noun: str, name: str, names: Iterable[str], error: type[WhileaiError] | None = None) -> NoReturn:
    """Raise the error for a name that is not one of `names`, with the nearest matches.

    Args:
        noun: What the name stands for, for example `"mode"`.
        name: The name that was given.
        names: The names that exist.
        error: Class of the error; `ParameterError` by default.

    Raises:
        ParameterError: Always, unless another class is given.
    """
    known = sorted(set(names))
    near = nearest(str(name), known)
    every = ", ".join(known) or "none"
    fix = f"did you mean {near[0]!r}?" if near else f"use one of: {every}"
    raise (error or ParameterError)(f"unknown {noun} {name!r}", why=f"known: {every}", fix=fix)
