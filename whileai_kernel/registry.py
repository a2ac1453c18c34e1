"""Components by kind and name: lazy targets, `make`, and the `Spec` that says how an object was made.

A full id is `<plugin>/<name>`; a bare name works while one plugin alone offers it. Nothing is imported before a
component is made. Components of a notebook are registered with `register_local` under the plugin name `here`.

Example:
    >>> def always(row): return 1.0
    >>> register_local("verifiers", "always", always)
    >>> make("verifiers", "always") is always, spec_of(always).id
    (True, 'here/always')
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from whileai_kernel.errors import (
    AmbiguousNameError,
    MissingDependencyError,
    ParameterError,
    PluginError,
    UnknownNameError,
    WhileaiError,
    describe,
    nearest,
    unknown_name,
)
from whileai_kernel.hookspecs import KINDS
from whileai_kernel.plugins import Plugin, manager
from whileai_kernel.rows import content_id

__all__ = ["Entry", "Spec", "entries", "forget", "kinds", "lookup", "make", "register_local", "resolve", "spec_of"]

LOCAL = Plugin("here", "here", "-", "here")


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered component: where it comes from and what it is, without having imported it."""

    kind: str
    name: str
    plugin: Plugin
    target: str
    summary: str = ""
    needs: str | None = None
    capabilities: frozenset[str] = frozenset()
    local: Any = None

    @property
    def id(self) -> str:
        """Full id: `<plugin>/<name>`."""
        return f"{self.plugin.name}/{self.name}"

    def load(self) -> Any:
        """Import the target and return it.

        Raises:
            MissingDependencyError: The target needs a library that is not installed.
            PluginError: The target does not import, or has no such attribute.
        """
        if self.local is not None:
            return self.local
        module_name, _, attribute = self.target.partition(":")
        upgrade = f"pip install -U {self.plugin.distribution}"
        who = f"{self.kind[:-1]} {self.id} of {self.plugin.distribution} {self.plugin.version}"
        try:
            found: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                found = getattr(found, part)
        except ModuleNotFoundError as err:
            missing = err.name or "a module"
            if missing.partition(".")[0] == module_name.partition(".")[0]:
                raise PluginError(f"{who} has no target {self.target!r}", str(err), upgrade) from err
            extra = f'"{self.plugin.distribution}[{self.needs}]"' if self.needs else None
            fix = f"pip install {extra or missing.partition('.')[0].replace('_', '-')}"
            raise MissingDependencyError(f"{who} needs the module {missing!r}", "it is not installed", fix) from err
        except (Exception, SystemExit) as err:
            raise PluginError(f"{who} does not load from {self.target!r}", describe(err), upgrade) from err
        return found


@dataclass(frozen=True, slots=True)
class Spec:
    """How a component was made; judgments store it."""

    kind: str
    id: str
    version: str
    params: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain values."""
        return {"kind": self.kind, "id": self.id, "version": self.version, "params": dict(self.params)}


_lock = threading.RLock()
_tables: dict[str, dict[str, Entry]] = {}
_local: dict[str, dict[str, Entry]] = {}
# For objects that take no attribute; the object is kept so that its id stays its own.
_specs: dict[int, tuple[Any, Spec]] = {}


def forget() -> None:
    """Drop what plugins registered, so that the next lookup asks them again; local components stay."""
    with _lock:
        _tables.clear()


def kinds() -> list[str]:
    """Return the kinds that exist: the kernel's and those that plugins added."""
    hooks = vars(manager().pm.hook)
    added = {n.removeprefix("wai_register_") for n in hooks if n.startswith("wai_register_")}
    return [*KINDS, *sorted(added - set(KINDS))]


def _table(kind: str) -> dict[str, Entry]:
    manager()  # before the lock: loading plugins holds a lock of its own
    with _lock:
        if kind not in _tables:
            if kind not in kinds():
                unknown_name("kind", kind, kinds(), UnknownNameError)
            table: dict[str, Entry] = {}

            def bind(plugin: Plugin) -> dict[str, Any]:
                def register(
                    name: str,
                    target: str,
                    *,
                    summary: str = "",
                    needs: str | None = None,
                    capabilities: Collection[str] = frozenset(),
                ) -> None:
                    if not isinstance(target, str) or ":" not in target:
                        raise ParameterError(
                            f"target of {name!r} must be 'package.module:attribute', not {target!r:.80}",
                            why="a light module registers strings",
                        )
                    entry = Entry(kind, name, plugin, target, summary, needs, frozenset(capabilities))
                    if entry.id in table:
                        raise ParameterError(f"{name!r} is registered twice", why="names are unique within a plugin")
                    table[entry.id] = entry

                return {"register": register}

            list(manager().call_each(f"wai_register_{kind}", bind))
            _tables[kind] = table
        return {**_tables[kind], **_local.get(kind, {})}


def entries(kind: str) -> list[Entry]:
    """Return the components of a kind, sorted by id.

    Raises:
        UnknownNameError: There is no such kind.
    """
    return [entry for _, entry in sorted(_table(kind).items())]


def register_local(kind: str, name: str, component: Any, *, summary: str = "", replace: bool = True) -> None:
    """Register a component of this process, for example from a notebook cell, as `here/<name>`.

    Raises:
        UnknownNameError: There is no such kind.
        ParameterError: The name is taken and `replace` is false.
    """
    _table(kind)
    entry = Entry(kind, name, LOCAL, f"here:{name}", summary, local=component)
    with _lock:
        if not replace and entry.id in _local.get(kind, {}):
            raise ParameterError(f"{entry.id} is registered already", fix="pass replace=True, or use another name")
        _local.setdefault(kind, {})[entry.id] = entry


def lookup(kind: str, name: str) -> Entry:
    """Return the entry of a full id or of a bare name.

    Raises:
        AmbiguousNameError: Two plugins offer the bare name; the error lists both.
        UnknownNameError: Nobody offers it; the error has near matches, plugin failures and what to install.
    """
    table = _table(kind)
    if name in table:
        return table[name]
    matches = [entry for entry in table.values() if entry.name == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = sorted(entry.id for entry in matches)
        raise AmbiguousNameError(
            f"{kind[:-1]} {name!r} is offered by more than one plugin",
            why=f"found {', '.join(ids)}",
            fix=f"use the full id, for example {ids[0]!r}",
        )
    _unknown(kind, name, table)


def _known(kind: str) -> dict[str, list[str]]:
    """Return which of the project's own plugins offers which names; `scripts/known.py` writes the file."""
    text = resources.files("whileai_kernel").joinpath("known.json").read_text(encoding="utf-8")
    names: dict[str, list[str]] = json.loads(text).get(kind, {})
    return names


def _unknown(kind: str, name: str, table: dict[str, Entry]) -> NoReturn:
    near = nearest(name, [*table, *(e.name for e in table.values())])
    why = [f"installed: {', '.join(sorted(table)) or 'none'}"]
    failures = manager().failure_text()
    if failures:
        why.append(f"plugins that failed: {failures}")
    fix = [f"did you mean {' or '.join(repr(n) for n in near)}?"] if near else []
    plugin, _, bare = name.rpartition("/")
    offered = [f"whileai-{p}" for p, ids in _known(kind).items() if bare in ids and plugin in ("", p)]
    installed = {p.distribution for p in manager().plugins}
    bring = [d for d in offered if d not in installed]
    if not bring and plugin and plugin not in {p.name for p in manager().plugins}:
        bring = [f"whileai-{plugin}"]
    fix += [f"pip install {d}" for d in bring]
    if not fix:
        fix = ["see the names with: wai plugins, or install the plugin that has it (pip install whileai-<plugin>)"]
    raise UnknownNameError(f"unknown {kind[:-1]} {name!r}", why="; ".join(why), fix="; ".join(fix))


def make(kind: str, name: str, /, **params: Any) -> Any:
    """Make a component: a class is instantiated with the parameters, any other callable gets them bound.

    Args:
        kind: The kind, for example `"verifiers"`.
        name: Full id or bare name.
        params: Parameters of the component.

    Returns:
        The component, with its `Spec` stamped on it (read it with `spec_of`).

    Raises:
        ParameterError: A parameter does not exist (the nearest one is named) or a required one is missing.
        UnknownNameError: As `lookup`.
        AmbiguousNameError: As `lookup`.
        MissingDependencyError: The component needs a library that is not installed.
    """
    entry = lookup(kind, name)
    target = entry.load()
    spec = Spec(kind, entry.id, entry.plugin.version, _public(params))
    component = _build(target, params, entry.id)
    if component is target and spec_of(target) not in (None, spec):  # a function under two names keeps its first spec
        component = functools.partial(target)
    stamp(component, spec)
    return component


def _build(target: Any, params: dict[str, Any], who: str) -> Any:
    """Instantiate a class, or bind the parameters of any other callable."""
    _check_params(target, params, who)
    if isinstance(target, type):
        return target(**params)
    return functools.partial(target, **params) if params else target


_SECRET = re.compile(r"(^|_)(api_?key|key|token|secret|password|passwd|credentials?|authorization)$", re.IGNORECASE)


def _public(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as a Spec may show them: judgments store specs, so a key must not get there."""
    return {name: "[hidden]" if _SECRET.search(name) else value for name, value in params.items()}


def _check_params(target: Any, params: dict[str, Any], who: str) -> None:
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return  # a built-in without a signature checks its own arguments
    any_name = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    named = [n for n, p in signature.parameters.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for name in params:
        if name not in named and not any_name:
            near = nearest(name, named)
            raise ParameterError(
                f"{who} has no parameter {name!r}",
                why=f"its parameters are {', '.join(named) or 'none'}",
                fix=f"did you mean {near[0]!r}?" if near else "leave it out",
            )
    missing = [n for n in named if n not in params and signature.parameters[n].default is inspect.Parameter.empty]
    if missing and isinstance(target, type):
        why, fix = "required parameters have no default", f"make(..., {missing[0]}=...)"
        raise ParameterError(f"{who} needs {', '.join(missing)}", why, fix)


def stamp(component: Any, spec: Spec) -> None:
    """Remember how a component was made."""
    try:
        component.__wai_spec__ = spec
    except Exception:  # noqa: BLE001 - a foreign __setattr__ may raise anything
        with _lock:
            _specs[id(component)] = (component, spec)


def spec_of(component: Any) -> Spec | None:
    """Return how a component was made, or `None` when it was not made by the registry."""
    spec = getattr(component, "__wai_spec__", None)
    if isinstance(spec, Spec):
        return spec
    kept = _specs.get(id(component))
    return kept[1] if kept is not None and kept[0] is component else None


def resolve(kind: str, ref: Any, /, **params: Any) -> Any:
    """Turn a reference into a component.

    Args:
        kind: The kind, for example `"judges"`.
        ref: A component (returned as it is), a registered name, `"path/file.py:function"`,
            `"package.module:attribute"`, or anything that a plugin's `wai_resolve` understands, objects that are no
            callable included (an agent of some framework).
        params: Parameters of the component.

    Raises:
        ParameterError: The reference is empty, or parameters were given for an object.
        UnknownNameError: Nothing answers to the reference.
        PluginError: The file or module cannot be imported.
    """
    if not isinstance(ref, str):
        if ref is None or params:
            raise ParameterError(f"cannot make a {kind[:-1]} from {ref!r:.60} with parameters {sorted(params)}")
        return ref if callable(ref) else _asked(kind, ref, ref)
    head, colon, attribute = ref.rpartition(":")
    if colon and (head.endswith(".py") or "/" in head or os.sep in head) and Path(head).suffix == ".py":
        return _bound(kind, ref, getattr_of(_import_file(Path(head)), attribute, ref), params)
    if ref in _table(kind) or any(e.name == ref for e in _table(kind).values()):
        return make(kind, ref, **params)
    answer = _asked(kind, ref)
    if answer is not None:
        return answer
    if colon and all(part.isidentifier() for part in head.split(".")):
        try:
            module = importlib.import_module(head)
        except ModuleNotFoundError as err:
            fix = _model_fix(head, attribute) or "check the module name, or pip install it"
            raise PluginError(f"{ref!r} does not import", why=str(err), fix=fix) from err
        return _bound(kind, ref, getattr_of(module, attribute, ref), params)
    return make(kind, ref, **params)


def _model_fix(provider: str, model: str) -> str:
    """What to type where a reference reads like the spec of a model: a provider's name is no module to install."""
    installed = {plugin.name for plugin in manager().plugins}
    known = [plugin for plugin, names in _known("models").items() if provider in names]
    if known and not installed & set(known):
        return f"pip install whileai-{known[0]}"
    near = nearest(provider, [entry.name for entry in _table("models").values()])
    return f"did you mean {f'{near[0]}:{model}'!r}?" if near and near[0] != provider else ""


def _asked(kind: str, ref: Any, default: Any = None) -> Any:
    """Return what the first plugin that understands a reference makes of it.

    A `WhileaiError` is its answer too: the reference is understood, and something about it is wrong (a key is not set).
    """
    for answer in manager().call_each("wai_resolve", lambda _: {"kind": kind, "ref": ref}, WhileaiError):
        return answer
    return default


def getattr_of(module: Any, attribute: str, ref: str) -> Any:
    """Return an attribute of a module, or raise an error that names the nearest one."""
    if not hasattr(module, attribute):
        near = nearest(attribute, [n for n in dir(module) if not n.startswith("_")])
        raise UnknownNameError(
            f"{ref!r}: no {attribute!r} in {module.__name__}",
            fix=f"did you mean {near[0]!r}?" if near else "check the name after the colon",
        )
    return getattr(module, attribute)


def _bound(kind: str, ref: str, target: Any, params: dict[str, Any]) -> Any:
    component = _build(target, params, ref)
    if component is not target:
        stamp(component, Spec(kind, ref, "-", _public(params)))
    return component


def _import_file(path: Path) -> Any:
    full = path.resolve()
    if not full.is_file():
        raise PluginError(f"{path} is not a file", fix="give the path of a .py file, then ':' and a name")
    name = content_id(f"_whileai_file_{full.stem}", str(full))
    with _lock:  # so that no other thread sees the module half made
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, full)
        if spec is None or spec.loader is None:
            raise PluginError(f"{path} cannot be imported", fix="give a .py file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as err:
            del sys.modules[name]
            if isinstance(err, Exception | SystemExit):
                raise PluginError(f"{path} does not import", why=describe(err), fix="run the file with python") from err
            raise
        return module
