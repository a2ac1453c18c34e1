"""Find, check, load and isolate plugins; keep the table of what failed and why.

A plugin is a distribution with one entry point in the group `whileai.plugins.v1`, whose value is its light
module. The identity is the distribution: two distributions may claim one entry-point name. A plugin that does
not import, or implements a hook that this kernel lacks, is recorded and warned about once, and the rest runs.

Environment: `WHILEAI_PLUGINS=a,b` loads only those (empty: none), read before anything is imported;
`WHILEAI_STRICT_PLUGINS=1` makes failures raise.

Example:
    >>> [p.name for p in manager().plugins if p.name == "nobody"]
    []
"""

from __future__ import annotations

import importlib
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import pluggy

from whileai_kernel import hookspecs
from whileai_kernel.errors import PluginError
from whileai_kernel.settings import Settings

__all__ = ["API", "GROUP", "Failure", "Manager", "Plugin", "PluginWarning", "manager", "reset"]

API = 1
"""Major version of the plugin API; it is part of the entry-point group, so other versions are never imported."""

GROUP = f"whileai.plugins.v{API}"
_ANY_GROUP = re.compile(r"whileai\.plugins\.v(\d+)$")


class PluginWarning(UserWarning):
    """A plugin failed; the rest runs."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded plugin: short name (the prefix of its full ids), distribution, version, light module."""

    name: str
    distribution: str
    version: str
    module: str
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A plugin, or one hook of it, that could not be used."""

    distribution: str
    version: str
    stage: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.stage}): {self.message}"


def normalise(name: str) -> str:
    """Return a distribution name in its normal form (lower case, single hyphens)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def short_name(distribution: str) -> str:
    """Return the plugin name of a distribution: its normal form without the prefix `whileai-`."""
    name = normalise(distribution)
    return name.removeprefix("whileai-") or name


def kernel_requirement(requires: Iterable[str]) -> str:
    """Return what a distribution's metadata asks of the kernel, for example `whileai-kernel>=2`, or `""`."""
    for line in requires:
        requirement = line.split(";")[0].strip()
        found = re.match(r"([A-Za-z0-9._-]+)\s*(.*)$", requirement)
        if found and normalise(found.group(1)) == "whileai-kernel":
            return f"whileai-kernel{found.group(2).strip('() ').replace(' ', '')}"
    return ""


class Manager:
    """Loads the plugins of one interpreter and calls their hooks. Use `manager()` for the shared one."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_env()
        self.plugins: list[Plugin] = []
        self.failures: list[Failure] = []
        self.pm = pluggy.PluginManager(hookspecs.PROJECT)
        self.pm.add_hookspecs(hookspecs)
        self.pm.hook.wai_addhooks.call_historic(kwargs={"pluginmanager": self.pm})
        self._load()

    def _entry_points(self) -> Iterator[tuple[int, metadata.EntryPoint, metadata.Distribution]]:
        # entry_points() reads one small file per distribution and keeps the first of a name on the path
        everything = metadata.entry_points()
        for group in sorted(everything.groups):
            version = _ANY_GROUP.match(group)
            for point in everything.select(group=group) if version else ():
                if version and point.dist is not None:
                    yield int(version.group(1)), point, point.dist

    def _load(self) -> None:
        allowed = None if self.settings.plugins is None else {normalise(n) for n in self.settings.plugins}
        if allowed is not None and not allowed:
            return
        found = sorted(self._entry_points(), key=lambda item: (normalise(item[2].metadata["Name"]), item[1].name))
        wanted = set(allowed or ())
        for api, point, dist in found:
            name = dist.metadata["Name"]
            names = {normalise(name), short_name(name)}
            if allowed is not None and not names & allowed:
                continue
            wanted -= names
            if api != API:
                newer = kernel_requirement(dist.requires or ()) or "whileai-kernel"
                message = f"is made for plugin API v{api}, this kernel has v{API}; it was not imported"
                self._fail(dist, "api", message, f"pip install -U {newer if api > API else name}")
            else:
                self._load_one(point, dist)
        for missing in sorted(wanted):
            self._record(
                Failure(
                    missing,
                    "-",
                    "settings",
                    "is named in WHILEAI_PLUGINS but is not installed",
                    f"pip install whileai-{missing}",
                )
            )
        self.pm.hook.wai_configure(settings=self.settings)

    def _load_one(self, point: metadata.EntryPoint, dist: metadata.Distribution) -> None:
        name = dist.metadata["Name"]
        requires = tuple(dist.requires or ())
        if self.pm.has_plugin(normalise(name)):
            self._fail(
                dist,
                "entry point",
                f"has a second entry point {point.name!r}; the first is used",
                "keep one entry point",
            )
            return
        try:
            module = importlib.import_module(point.value.partition(":")[0])
        except KeyboardInterrupt:
            raise
        except BaseException as err:  # noqa: BLE001 - isolation: a plugin may raise anything, SystemExit too
            self._fail(dist, "import", f"does not import: {type(err).__name__}: {err}", f"pip install -U {name}")
            return
        unknown = [hook for hook in self._hooks_of(module) if not hasattr(self.pm.hook, hook)]
        try:
            self.pm.register(module, name=normalise(name))
            # A plugin may add the hooks that it implements itself, so look again after wai_addhooks has run.
            lacking = [
                h for h in unknown if getattr(self.pm.hook, h, None) is None or not getattr(self.pm.hook, h).has_spec()
            ]
            if lacking:
                self.pm.unregister(name=normalise(name))
                asked = kernel_requirement(requires)
                names = ", ".join(sorted(lacking))
                message = (
                    f"implements {names}, which kernel {kernel_version()} lacks; it asks for {asked or 'a newer one'}"
                )
                self._fail(dist, "hooks", message, f"pip install -U {asked or 'whileai-kernel'}")
                return
        except Exception as err:  # noqa: BLE001 - a wrong signature, or an error in wai_addhooks
            if self.pm.has_plugin(normalise(name)):
                self.pm.unregister(name=normalise(name))
            self._fail(dist, "register", f"does not register: {type(err).__name__}: {err}", f"pip install -U {name}")
            return
        short = short_name(name)
        if any(p.name == short for p in self.plugins):
            short = normalise(name)
        self.plugins.append(Plugin(short, name, dist.version, module.__name__, requires))

    def _hooks_of(self, module: Any) -> list[str]:
        return [
            attr
            for attr in dir(module)
            if attr.startswith("wai_")
            and (opts := self.pm.parse_hookimpl_opts(module, attr)) is not None
            and not opts.get("optionalhook")
        ]

    def _fail(self, dist: metadata.Distribution, stage: str, message: str, fix: str) -> None:
        self._record(Failure(dist.metadata["Name"], dist.version, stage, message, fix))

    def _record(self, failure: Failure) -> None:
        if self.settings.strict_plugins:
            raise PluginError(f"plugin {failure}", why="WHILEAI_STRICT_PLUGINS is on", fix=failure.fix)
        self.failures.append(failure)
        warnings.warn(f"plugin {failure}", PluginWarning, stacklevel=2)

    def call_register(self, kind: str, make_register: Callable[[Plugin], Callable[..., None]]) -> None:
        """Call `wai_register_<kind>` of each plugin on its own, so that one that raises costs only itself.

        Args:
            kind: The kind, for example `"verifiers"`.
            make_register: Gives the `register` function that a plugin is called with.
        """
        hook = getattr(self.pm.hook, f"wai_register_{kind}")
        by_name = {normalise(p.distribution): p for p in self.plugins}
        for impl in reversed(hook.get_hookimpls()):
            plugin = by_name.get(impl.plugin_name)
            if plugin is None:
                plugin = Plugin(impl.plugin_name, impl.plugin_name, "-", impl.plugin_name)
            try:
                register = make_register(plugin)
                impl.function(*(register for _ in impl.argnames))
            except Exception as err:  # noqa: BLE001 - isolation: recorded, warned about, repeated in lookups
                stage, message = f"wai_register_{kind}", f"{type(err).__name__}: {err}"
                fix = f"pip install -U {plugin.distribution}"
                self._record(Failure(plugin.distribution, plugin.version, stage, message, fix))

    def failure_text(self) -> str:
        """Return the failures as one text for an error message, or `""`."""
        return "; ".join(str(f) for f in self.failures)


def kernel_version() -> str:
    """Return the version of the installed kernel."""
    return metadata.version("whileai-kernel")


_lock = threading.RLock()
_manager: Manager | None = None


def manager() -> Manager:
    """Return the shared manager; the first call loads the plugins."""
    global _manager
    with _lock:
        if _manager is None:
            _manager = Manager()
        return _manager


def reset() -> None:
    """Unload all plugins, so that the next lookup finds them anew (for tests and long-lived notebooks)."""
    global _manager
    with _lock:
        if _manager is not None:
            _manager.pm.hook.wai_unconfigure()
        _manager = None
    from whileai_kernel import registry

    registry.forget()
