"""llama.cpp in this process, behind an OpenAI-compatible server on a free port of loopback.

One server per file and setting, started when it is first asked for, shared by everything in the process and closed at
exit. A forked child starts its own.

Example:
    >>> serve.__name__
    'serve'
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whileai_kernel.errors import MissingDependencyError, ParameterError
from whileai_local import defaults as d
from whileai_local.weights import Weights

__all__ = ["Served", "available_cores", "close_all", "serve"]


@dataclass(frozen=True, slots=True)
class Served:
    """A running server.

    Attributes:
        base_url: URL up to and including `/v1`.
        threads: Threads that it computes with.
        context: Tokens of one request.
        parallel: Requests that it decodes together.
    """

    base_url: str
    threads: int
    context: int
    parallel: int
    handle: Any = field(repr=False, compare=False)


_lock = threading.Lock()
_running: dict[tuple[Path, str | None, int, int, int], Served] = {}


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def serve(
    weights: Weights,
    *,
    threads: int | None = None,
    context: int = d.CONTEXT.value,
    parallel: int = d.PARALLEL.value,
) -> Served:
    """Return the server of a model, started if it is not running yet.

    Args:
        weights: The model.
        threads: Threads that compute; by default the cores that this process may use.
        context: Tokens of prompt and reply of one request.
        parallel: Requests that are decoded together; each has its own context.

    Raises:
        MissingDependencyError: The wheel with llama.cpp is not installed.
        ParameterError: A number is below 1, or the file cannot be loaded.
    """
    count = available_cores() if threads is None else threads
    for name, value in (("threads", count), ("context", context), ("parallel", parallel)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be a whole number from 1, not {value!r}", fix=f"pass {name}=2")
    key = (weights.path, weights.template, count, context, parallel)
    with _lock:
        if key not in _running:
            _running[key] = _start(weights, count, context, parallel)
        return _running[key]


def _start(weights: Weights, threads: int, context: int, parallel: int) -> Served:
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as err:
        raise MissingDependencyError(
            f"local:{weights.name} needs llama.cpp", why="the package xllamacpp is not installed",
            fix='pip install "whileai-local[server]"',
        ) from err  # fmt: skip
    params = xllamacpp.CommonParams()
    params.model.path = str(weights.path)
    params.model_alias = {weights.name}
    params.n_ctx, params.n_parallel = context * parallel, parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja, params.warmup, params.ui, params.fit_params = True, False, False, False
    params.verbosity = 0  # errors only: the library writes to standard error itself
    if weights.template is not None:
        params.chat_template = weights.template
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as err:
        raise ParameterError(
            f"{weights.path.name} cannot be loaded", why=str(err) or type(err).__name__,
            fix="check that it is the GGUF file of a chat model, and that it fits in memory",
        ) from err  # fmt: skip
    return Served(f"{server.listening_address}/v1", threads, context, parallel, server)


def close_all() -> None:
    """Close every server of this process; the next request starts one anew."""
    with _lock:
        _running.clear()  # a server stops when its last reference goes


def _in_child() -> None:
    """Forget the servers of the parent: their threads do not exist here, and waiting for them would hang."""
    global _lock
    _lock = threading.Lock()
    for served in _running.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(served.handle))
    _running.clear()


atexit.register(close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
