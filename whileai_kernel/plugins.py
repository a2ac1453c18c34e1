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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import pluggy

from whileai_kernel import hookspecs
from whileai_kernel.errors import PluginError, describe
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
        self._drop_lacking()

    def _entry_points(self) -> Iterator[tuple[int, metadata.EntryPoint, metadata.Distribution]]:
        seen: set[str] = set()
        for dist in metadata.distributions():
            # Looked for before anything is parsed: the metadata of others is not read, and may be broken.
            if "whileai.plugins.v" not in (dist.read_text("entry_points.txt") or ""):
                continue
            name = normalise(dist.metadata["Name"])
            if name in seen:
                continue  # the first one on the path is the one that imports
            seen.add(name)
            try:
                points = list(dist.entry_points)
            except Exception as err:  # noqa: BLE001 - a malformed file raises whatever its parser raises
                self.record(Plugin(name, name, dist.version, "-"), "entry point", f"cannot be read: {describe(err)}")
                continue
            for point in points:
                version = _ANY_GROUP.match(point.group)
                if version:
                    yield int(version.group(1)), point, dist

    def _load(self) -> None:
        allowed = None if self.settings.plugins is None else {normalise(n) for n in self.settings.plugins}
        if allowed is not None and not allowed:
            return
        found = sorted(self._entry_points(), key=lambda item: (normalise(item[2].metadata["Name"]), item[1].name))
        taken = {normalise(dist.metadata["Name"]) for _, _, dist in found} | {"here"}
        wanted = set(allowed or ())
        for api, point, dist in found:
            name, full = dist.metadata["Name"], normalise(dist.metadata["Name"])
            short = short_name(name)
            if allowed is not None and not {full, short} & allowed:
                continue
            wanted -= {full, short}
            module, requires = point.value.partition(":")[0].strip(), tuple(dist.requires or ())
            plugin = Plugin(full if short in taken else short, name, dist.version, module, requires)
            if api != API:
                newer = kernel_requirement(plugin.requires) or "whileai-kernel"
                message = f"is made for plugin API v{api}, this kernel has v{API}; it was not imported"
                self.record(plugin, "api", message, f"pip install -U {newer if api > API else name}")
            elif self.pm.has_plugin(full):
                message = f"has a second entry point {point.name!r}; the first is used"
                self.record(plugin, "entry point", message, "keep one entry point")
            else:
                self._load_one(plugin)
        for missing in sorted(wanted):
            message = "is named in WHILEAI_PLUGINS but is not installed"
            self.record(
                Plugin(missing, missing, "-", "-"), "settings", message, f"pip install whileai-{short_name(missing)}"
            )

    def _load_one(self, plugin: Plugin) -> None:
        stage, name = "import", normalise(plugin.distribution)
        try:
            module = importlib.import_module(plugin.module)
            stage = "register"
            self.pm.register(module, name=name)
        except KeyboardInterrupt:
            raise
        except BaseException as err:  # noqa: BLE001 - isolation: a plugin may raise anything, SystemExit too
            if self.pm.has_plugin(name):
                self.pm.unregister(name=name)
            self.record(plugin, stage, f"does not {stage}: {describe(err)}")
            return
        self.plugins.append(plugin)

    def _drop_lacking(self) -> None:
        # After all have loaded, since a plugin may add the hooks that another one implements.
        for plugin in list(self.plugins):
            module = self.pm.get_plugin(normalise(plugin.distribution))
            lacking = [hook for hook in self._hooks_of(module) if not getattr(self.pm.hook, hook).has_spec()]
            if lacking:
                self.pm.unregister(module)
                self.plugins.remove(plugin)
                asked = kernel_requirement(plugin.requires)
                message = f"implements {', '.join(sorted(lacking))}, which kernel {kernel_version()} lacks"
                message += f"; it asks for {asked or 'a newer one'}"
                self.record(plugin, "hooks", message, f"pip install -U {asked or 'whileai-kernel'}")

    def _hooks_of(self, module: Any) -> list[str]:
        return [
            attr
            for attr in dir(module)
            if attr.startswith("wai_")
            and (opts := self.pm.parse_hookimpl_opts(module, attr)) is not None
            and not opts.get("optionalhook")
        ]

    def record(self, plugin: Plugin, stage: str, message: str, fix: str = "") -> None:
        """Record that a plugin failed, and warn once; in strict mode raise.

        Raises:
            PluginError: `WHILEAI_STRICT_PLUGINS` is on.
        """
        fix = fix or f"pip install -U {plugin.distribution}"
        failure = Failure(plugin.distribution, plugin.version, stage, message, fix)
        if self.settings.strict_plugins:
            raise PluginError(f"plugin {failure}", why="WHILEAI_STRICT_PLUGINS is on", fix=fix)
        if failure not in self.failures:
            self.failures.append(failure)
            warnings.warn(f"plugin {failure}", PluginWarning, stacklevel=2)

    def call_each(
        self,
        hook: str,
        arguments: Callable[[Plugin], Mapping[str, Any]],
        answers: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> Iterator[Any]:
        """Call a hook of each plugin on its own, so that one that raises costs only itself.

        Args:
            hook: Name of the hook.
            arguments: Gives what a plugin is called with.
            answers: Exceptions that are meant for the caller, and no fault of the plugin.

        Yields:
            Answers other than `None`, plugins in the order in which they were loaded.
        """
        by_name = {normalise(p.distribution): p for p in self.plugins}
        for impl in reversed(getattr(self.pm.hook, hook).get_hookimpls()):
            name = impl.plugin_name
            plugin = by_name.get(name) or Plugin(name, name, "-", name)
            try:
                given = arguments(plugin)
                answer = impl.function(**{argument: given[argument] for argument in impl.argnames})
            except answers:
                raise
            except (Exception, SystemExit) as err:  # noqa: BLE001 - isolation: recorded, warned about, repeated in lookups
                self.record(plugin, hook, describe(err))
                continue
            if answer is not None:
                yield answer

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
            made = _manager = Manager()
            try:
                list(made.call_each("wai_configure", lambda _: {"settings": made.settings}))
            except PluginError:  # strict mode: the next call raises again
                _manager = None
                raise
        return _manager


def reset() -> None:
    """Unload all plugins, so that the next lookup finds them anew (for tests and long-lived notebooks)."""
    global _manager
    with _lock:
        old, _manager = _manager, None
        list(old.call_each("wai_unconfigure", lambda _: {}) if old is not None else ())
    from whileai_kernel import registry

    registry.forget()
