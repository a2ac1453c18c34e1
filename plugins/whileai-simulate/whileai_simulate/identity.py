"""Who takes part in a run, and what tells one call from another: the agent, the writer, and their fingerprints."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import ParameterError, UnknownNameError
from whileai_kernel.registry import resolve, spec_of
from whileai_simulate.agents import PreparedAgent, prepare
from whileai_simulate.fingerprint import fingerprint
from whileai_simulate.options import Options
from whileai_simulate.sides import UserSide, is_model, model_of, resolved_model
from whileai_simulate.writer import OfflineWriter

__all__ = ["agent_identity", "identity_of", "make_agent", "make_writer", "plain_options"]

_QUIET = frozenset({"collect", "overwrite", "give_up_after", "share_tolerance", "allow", "user"})


def plain_options(options: Options) -> dict[str, Any]:
    """Return the options that shape rows as plain values, without memory addresses."""
    out: dict[str, Any] = {}
    for name in Options.__slots__:
        value = getattr(options, name)
        if name in _QUIET:
            continue
        if name in ("execute", "faults") and isinstance(value, Mapping):
            out[name] = {key: agent_identity(getattr(v, "result", v), None) for key, v in sorted(value.items())}
        elif isinstance(value, type):
            out[name] = f"{value.__module__}.{value.__qualname__}@{fingerprint(value)}"
        elif isinstance(value, str | int | float | bool | type(None)):
            out[name] = value
        else:
            out[name] = repr(value)
    return out


def make_agent(agent: Any, options: Options) -> PreparedAgent:
    """Return the agent of a callable, of a reference, or of an object that a plugin knows how to drive, prepared."""
    found = agent if callable(agent) or agent is None else resolve("agents", agent)
    if inspect.isclass(found):
        raise ParameterError(f"the agent is a class ({found.__name__})", fix=f"pass an instance: {found.__name__}()")
    return prepare(found, options.agent_name or (agent if isinstance(agent, str) else None))


def make_writer(writer: Any, user: UserSide | None = None, locale: str = "en_US") -> Any:
    """Return the writer of an object, a name, or a model.

    Args:
        writer: `False` for the offline writer, a registered name, the spec of a model, a model, a writer, or `True`
            for the model that plays the user.
        user: Who plays the user.
        locale: Locale of names and streets.

    Raises:
        ParameterError: There is no such writer, or `True` is passed and no model plays the user.
    """
    if writer is False or writer is None:
        return OfflineWriter(locale)
    if writer is True:
        writer = model_of(user.player) if user is not None else None
        if writer is None:
            raise ParameterError(
                "simulator=True needs a model-backed writer",
                why="no model plays the user, so there is none to write with",
                fix="pass simulator='openai:<model>' (or another spec, or a model), or simulator=False for offline",
            )
    if isinstance(writer, str):
        try:
            writer = resolve("writers", writer)
        except UnknownNameError:
            if ":" not in writer:
                raise
            choices = "False, the name of a writer, or a model such as 'openai:<model>'"
            writer = resolved_model(writer, "writer", choices)
    if is_model(writer) and not callable(getattr(writer, "write", None)):
        from whileai_simulate.model_writer import ModelWriter

        writer = ModelWriter(writer, locale=locale)
    if inspect.isclass(writer) or not callable(getattr(writer, "write", None)):
        raise ParameterError(
            f"{writer!r:.60} is no writer", why="a writer has write(request)",
            fix="pass simulator=False, the name of a writer, or a model such as 'openai:<model>'",
        )  # fmt: skip
    return writer


def identity_of(component: Any) -> str | None:
    """Return what tells one judge, user or writer from another: its version where it has one, else its code."""
    if component is None:
        return None
    version = getattr(component, "version", None)
    return version if isinstance(version, str) and version else agent_identity(component, None)


def agent_identity(agent: Any, prepared: PreparedAgent | None) -> str:
    """Return what tells one agent from another: name, code and parameters; no memory address."""
    found = prepared.fn if prepared is not None else agent
    base = getattr(found, "func", found)
    code_of = base if inspect.isroutine(base) else type(base)
    where = f"{getattr(code_of, '__module__', '')}.{getattr(code_of, '__qualname__', type(base).__name__)}"
    digest = hashlib.sha256(f"{fingerprint(found)}{spec_of(found)}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{where}@{digest}"
