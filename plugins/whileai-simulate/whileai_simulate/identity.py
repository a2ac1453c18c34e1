"""Who takes part in a run, and what tells one call from another: the agent, the writer, and their fingerprints."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.registry import resolve, spec_of
from whileai_simulate.agents import PreparedAgent, prepare
from whileai_simulate.options import Options

__all__ = ["agent_identity", "make_agent", "make_writer", "plain_options"]

_QUIET = frozenset({"collect", "overwrite", "give_up_after", "share_tolerance", "allow", "agent_name"})


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
            out[name] = f"{value.__module__}.{value.__qualname__}"
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


def make_writer(writer: Any) -> Any:
    """Return the writer of an object or name."""
    if writer is True:
        raise ParameterError(
            "simulator=True needs a model-backed writer",
            why="this plugin writes offline",
            fix="pass simulator=False, or the name of an installed writer (see: wai plugins)",
        )
    return resolve("writers", writer) if isinstance(writer, str) else writer


def agent_identity(agent: Any, prepared: PreparedAgent | None) -> str:
    """Return what tells one agent from another: name, code and parameters; no memory address."""
    found = prepared.fn if prepared is not None else agent
    spec = spec_of(found)
    base = getattr(found, "func", found)
    code_of = base if inspect.isroutine(base) else type(base)
    try:
        code = inspect.getsource(code_of)
    except (OSError, TypeError):
        raw = getattr(base, "__code__", None)
        code = f"{raw.co_code.hex()}{raw.co_names}" if raw is not None else ""
    params: dict[str, Any] = {}
    for key, value in sorted(getattr(found, "__dict__", {}).items()) if not inspect.isroutine(found) else ():
        if isinstance(value, str | int | float | bool | tuple | type(None)):
            params[key] = value
    where = f"{getattr(code_of, '__module__', '')}.{getattr(code_of, '__qualname__', type(base).__name__)}"
    digest = hashlib.sha256(f"{code}{params}{spec}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{where}@{digest}"
