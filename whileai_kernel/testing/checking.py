"""Running the conformance kit: on an object, a registered component, a plugin; from Python and as a test.

Example:
    >>> from whileai_kernel.protocols import Example
    >>> def shout(row): return (row.get("final_text") or "").isupper()
    >>> shout.examples = [Example({"final_text": "YES"}, 1.0), Example({"final_text": "no"}, 0.0)]
    >>> check_component("verifiers", shout).ok
    True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whileai_kernel.errors import MissingDependencyError, UnknownNameError, WhileaiError, nearest
from whileai_kernel.plugins import Plugin, manager, normalise
from whileai_kernel.registry import Entry, entries, kinds, make
from whileai_kernel.testing.acting import AGENT_CHECKS, COMMAND_CHECKS, MODEL_CHECKS, WRITER_CHECKS
from whileai_kernel.testing.data import EXPORTER_CHECKS, SELECTOR_CHECKS, SOURCE_CHECKS, STATISTIC_CHECKS
from whileai_kernel.testing.distribution import PLUGIN_CHECKS
from whileai_kernel.testing.grading import JUDGE_CHECKS, MARKER_CHECKS, VERIFIER_CHECKS
from whileai_kernel.testing.kit import Check, Report, Result, Subject, run_checks

__all__ = [
    "CHECKS",
    "check_component",
    "check_entry",
    "check_plugin",
    "conformance_test",
    "example_params",
    "find_plugin",
]

CHECKS: dict[str, tuple[Check, ...]] = {
    "models": MODEL_CHECKS,
    "agents": AGENT_CHECKS,
    "writers": WRITER_CHECKS,
    "sources": SOURCE_CHECKS,
    "verifiers": VERIFIER_CHECKS,
    "judges": JUDGE_CHECKS,
    "markers": MARKER_CHECKS,
    "statistics": STATISTIC_CHECKS,
    "selectors": SELECTOR_CHECKS,
    "exporters": EXPORTER_CHECKS,
    "commands": COMMAND_CHECKS,
}
"""Checks of each kind."""


def check_component(kind: str, component: Any, name: str = "component") -> Report:
    """Check an object that is not registered.

    Args:
        kind: The kind whose contract it is held to.
        component: The component, or a class that is made without parameters.
        name: What the report calls it.
    """
    target = component
    if isinstance(component, type):
        params = example_params(component)
        subject = Subject(kind, name, component(**params), lambda: component(**params), target)
    else:
        subject = Subject(kind, name, component, None, target)
    return run_checks(CHECKS[kind], subject)


def example_params(target: Any) -> dict[str, Any]:
    """Return the parameters that a target is checked with: its `example_params`, a mapping or a function."""
    given = getattr(target, "example_params", None) or {}
    return dict(given() if callable(given) else given)


def check_entry(entry: Entry) -> Report:
    """Check a registered component; one that cannot be made is a problem of the report, not an error."""
    checks = CHECKS.get(entry.kind) or manager().pm.hook.wai_conformance_checks(kind=entry.kind)
    if not checks:
        return Report((), 0, (f"{entry.id}: kind {entry.kind!r} has no checks; implement wai_conformance_checks",))
    try:
        target = entry.load()
        params = example_params(target)
        component = make(entry.kind, entry.id, **params)
    except MissingDependencyError as err:
        if entry.needs is None:
            return Report((), len(checks), (f"{entry.kind} {entry.id}: {err}",))
        # A declared extra that is not installed is no fault of the plugin; the report says what was not checked.
        return Report((Result(entry.id, "every check", "skipped", f"{err.what}; {err.fix}"),), 0)
    except WhileaiError as err:
        return Report((), len(checks), (f"{entry.kind} {entry.id}: {err}",))
    except Exception as err:  # noqa: BLE001 - a component may raise anything when it is made
        return Report((), len(checks), (f"{entry.kind} {entry.id}: {type(err).__name__}: {err}",))
    subject = Subject(entry.kind, entry.id, component, lambda: make(entry.kind, entry.id, **params), target)
    return run_checks(checks, subject)


def find_plugin(name: str) -> Plugin:
    """Return an installed plugin by short name or distribution name.

    Raises:
        UnknownNameError: It is not installed, or failed to load (the failure is in the message).
    """
    for plugin in manager().plugins:
        if normalise(name) in (plugin.name, normalise(plugin.distribution)):
            return plugin
    near = nearest(name, [p.name for p in manager().plugins])
    failures = manager().failure_text()
    raise UnknownNameError(
        f"no plugin {name!r} is loaded",
        why=f"loaded: {', '.join(p.name for p in manager().plugins) or 'none'}"
        + (f"; plugins that failed: {failures}" if failures else ""),
        fix=f"did you mean {near[0]!r}?" if near else f"pip install whileai-{normalise(name).removeprefix('whileai-')}",
    )


def check_plugin(name: str) -> Report:
    """Check a plugin and every component that it registers.

    Args:
        name: Short name or distribution name.

    Raises:
        UnknownNameError: As `find_plugin`.
    """
    plugin = find_plugin(name)
    reports = [run_checks(PLUGIN_CHECKS, Subject("plugins", plugin.distribution, plugin))]
    reports += [check_entry(e) for kind in kinds() for e in entries(kind) if e.plugin == plugin]
    own = (plugin.distribution, normalise(plugin.distribution))
    failed = tuple(str(f) for f in manager().failures if f.distribution in own)
    return Report(
        tuple(r for report in reports for r in report.results),
        sum(report.planned for report in reports),
        failed + tuple(p for report in reports for p in report.problems),
    )


def conformance_test(name: str) -> Callable[[], None]:
    """Return a test function for a plugin's own suite: it fails with the report unless the plugin conforms."""

    def test_conformance() -> None:
        report = check_plugin(name)
        assert report.ok, f"\n{report}"

    test_conformance.__doc__ = f"The plugin {name} passes the conformance kit."
    return test_conformance
