"""Every hook, typed and documented: the contract between the kernel and a plugin, in one file.

A plugin implements any subset, each with any subset of the arguments, in its *light module*: a module that
imports `hookimpl` and the standard library, and registers strings.

| hook | when it is called |
| --- | --- |
| `wai_register_<kind>` | once, when a component of that kind is first looked up |
| `wai_addhooks` | once, when plugins are loaded: add a kind or hooks of your own |
| `wai_configure`, `wai_unconfigure` | after plugins are loaded; when they are unloaded |
| `wai_stage_start`, `wai_stage_end` | around simulate, grade, measure, select, export |
| `wai_row`, `wai_row_failed` | as each row of a stage is finished, or fails |
| `wai_check_rows` | before rows leave a stage: return Findings; an error-level one stops it |
| `wai_conformance_checks` | when a component of a kind that a plugin added is checked |
| `wai_resolve` | a reference that is no registered name: the first answer wins |

All are synchronous and called with keywords.

Example:
    A light module::

        from whileai_kernel import hookimpl

        @hookimpl
        def wai_register_verifiers(register):
            register("shared", "acme_graders.shared:Shared", summary="Words shared with the reference.")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from whileai_kernel.lifecycle import Finding, Stage
    from whileai_kernel.protocols import Register
    from whileai_kernel.settings import Settings

__all__ = ["KINDS", "PROJECT", "hookimpl", "hookspec"]

PROJECT = "whileai"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

KINDS = (
    "models",
    "agents",
    "writers",
    "sources",
    "verifiers",
    "judges",
    "markers",
    "statistics",
    "selectors",
    "exporters",
    "commands",
)
"""Kinds that the kernel knows. A plugin adds a kind by adding a hook `wai_register_<kind>` in `wai_addhooks`."""


@hookspec
def wai_register_models(register: Register) -> None:
    """Register models: chat models behind a server or a library, see `protocols.Model`."""


@hookspec
def wai_register_agents(register: Register) -> None:
    """Register agents: callables that answer a user, see `protocols.Agent`."""


@hookspec
def wai_register_writers(register: Register) -> None:
    """Register situation writers: what turns a situation into a task, see `protocols.Writer`."""


@hookspec
def wai_register_sources(register: Register) -> None:
    """Register sources: readers of foreign files, see `protocols.Source`."""


@hookspec
def wai_register_verifiers(register: Register) -> None:
    """Register verifiers: programs that grade a row, see `protocols.Verifier`."""


@hookspec
def wai_register_judges(register: Register) -> None:
    """Register judges: models or people that grade a row, see `protocols.Judge`."""


@hookspec
def wai_register_markers(register: Register) -> None:
    """Register markers: observations on a row, 1.0 is good, see `protocols.Marker`."""


@hookspec
def wai_register_statistics(register: Register) -> None:
    """Register statistics: rows in, a report out, see `protocols.Statistic`."""


@hookspec
def wai_register_selectors(register: Register) -> None:
    """Register selectors: rows in, kept rows and a ledger out, see `protocols.Selector`."""


@hookspec
def wai_register_exporters(register: Register) -> None:
    """Register exporters: rows to a file that a trainer reads, see `protocols.Exporter`."""


@hookspec
def wai_register_commands(register: Register) -> None:
    """Register sub-commands of `wai`, see `protocols.Command`; the summary is the line in `wai --help`."""


@hookspec(historic=True)
def wai_addhooks(pluginmanager: pluggy.PluginManager) -> None:
    """Add hook specifications of your own with `pluginmanager.add_hookspecs(module)`."""


@hookspec
def wai_configure(settings: Settings) -> None:
    """Called once after all plugins are loaded."""


@hookspec
def wai_unconfigure() -> None:
    """Called once when the plugins are unloaded."""


@hookspec
def wai_stage_start(stage: Stage) -> None:
    """A stage begins."""


@hookspec
def wai_stage_end(stage: Stage, error: BaseException | None) -> None:
    """A stage ended; `error` is what ended it early, else `None`."""


@hookspec
def wai_row(row: Mapping[str, Any], stage: Stage) -> None:
    """A row of the stage is finished. The row is shared: read it, do not change it."""


@hookspec
def wai_row_failed(row: Mapping[str, Any], stage: Stage, error: BaseException) -> None:
    """A row of the stage failed; the stage goes on."""


@hookspec
def wai_check_rows(rows: Sequence[Mapping[str, Any]], stage: Stage) -> Sequence[Finding] | None:
    """Look at rows before they leave a stage and return what you found."""


@hookspec(firstresult=True)
def wai_conformance_checks(kind: str) -> Sequence[Any] | None:
    """Return the conformance checks of a kind that the plugin added (see `whileai_kernel.testing`), else `None`."""


@hookspec(firstresult=True)
def wai_resolve(kind: str, ref: object) -> object | None:
    """Turn a reference into a component of the kind, or return `None`.

    The reference is a text such as `"hub:owner/name"`, or an object that is no callable (an agent of some framework).
    A `WhileaiError` that you raise reaches the caller: the reference is yours, and something about it is wrong.
    """
