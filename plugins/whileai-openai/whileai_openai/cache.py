"""Replies kept in SQLite, by the whole request and the repeat index: reruns cost nothing, tests need no server.

The key is a hash of the model's id, messages, tools, sampling, schema and `repeat`; two rollouts that ask the same
question are two entries. An API key is no part of a request and reaches no file. Two equal requests in flight at the
same time are both sent.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.protocols import Completion, Model
from whileai_kernel.rows import content_id
from whileai_openai.failures import ModelError

__all__ = ["Cached", "Recorded"]

MODES = ("use", "replay", "refresh")


class Cached:
    """A model whose replies are kept.

    Args:
        inner: The model.
        path: SQLite file, made when it is not there; `":memory:"` keeps nothing.
        mode: `use`: kept replies are returned, others asked for and kept. `replay`: only kept replies, a missing
            one is an error and no request is made. `refresh`: always asked for, and kept anew.

    Attributes:
        hits: Replies that were kept.
        misses: Replies that were not.
    """

    def __init__(self, inner: Model, path: str | os.PathLike[str], mode: str = "use") -> None:
        if mode not in MODES:
            unknown_name("cache mode", mode, MODES)
        self.inner, self.id, self.mode = inner, inner.id, mode
        self.path = Path(path)
        self.hits = self.misses = 0
        self._lock = threading.Lock()
        if str(path) != ":memory:":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        self._db.execute("CREATE TABLE IF NOT EXISTS models (id TEXT PRIMARY KEY, shape TEXT NOT NULL)")
        self._named = False

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network and no file, for the conformance kit."""
        from whileai_openai.specs import Endpoint, example_params

        return {"inner": Endpoint(**example_params()), "path": ":memory:"}

    def __repr__(self) -> str:
        return f"Cached({self.inner!r}, {self.path.name!r}, mode={self.mode!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)  # price, sampling and retries, which a meter reads

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
        repeat: int = 0,
    ) -> Completion:
        """Return the kept reply, or ask and keep it.

        Args:
            messages: As `Model.complete`.
            tools: As `Model.complete`.
            sampling: As `Model.complete`.
            schema: As `Model.complete`.
            deadline_s: As `Model.complete`; no part of the key.
            repeat: Number of the sample among equal requests.

        Raises:
            ModelError: In mode `replay`, the reply is not kept (kind `not_recorded`).
        """
        merged = {**getattr(self.inner, "sampling", {}), **(sampling or {})}
        extra = getattr(self.inner, "extra", {})
        key = content_id("reply", self.id, list(messages), list(tools), merged, schema, extra, repeat)
        kept = self._get(key) if self.mode != "refresh" else None
        if kept is not None:
            self.hits += 1
            return kept
        self.misses += 1
        if self.mode == "replay":
            raise ModelError(
                f"{self.id}: the reply is not in {self.path.name}",
                why="the request differs from every recorded one",
                fix="record it once with mode='use'",
                kind="not_recorded",
            )
        reply = await self.inner.complete(messages, tools, sampling, schema=schema, deadline_s=deadline_s)
        self._put(key, reply)
        return reply

    def _get(self, key: str) -> Completion | None:
        with self._lock:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else replace(Completion(**json.loads(row[0])), attempts=0, seconds=0.0)

    def _put(self, key: str, reply: Completion) -> None:
        fields = {name: getattr(reply, name) for name in Completion.__slots__}
        text = json.dumps({**fields, "usage": dict(reply.usage)}, ensure_ascii=True, allow_nan=False)
        with self._lock:
            if not self._named:  # what a replay without the model needs to know
                shape = {"sampling": getattr(self.inner, "sampling", {}), "extra": getattr(self.inner, "extra", {})}
                self._db.execute("INSERT OR REPLACE INTO models VALUES (?, ?)", (self.id, json.dumps(shape)))
                self._named = True
            self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, text))


class _Nobody:
    """The model of a recording: a name and no server."""

    def __init__(self, name: str, shape: Mapping[str, Any]) -> None:
        self.id, self.price, self.retries = name, None, 0
        self.sampling, self.extra = shape["sampling"], shape["extra"]

    async def complete(self, *args: Any, **options: Any) -> Completion:
        raise AssertionError("a recording makes no request")


class Recorded(Cached):
    """The replies that `Cached` kept, without their model: no server, no key, and never a request.

    Args:
        path: SQLite file that `Cached` wrote.
        model: Id of the model, where the file holds the replies of several.

    Raises:
        ParameterError: There is no such file, it holds no replies, or `model` must choose between several.
    """

    def __init__(self, path: str | os.PathLike[str], model: str | None = None) -> None:
        if not Path(path).is_file():
            raise ParameterError(
                f"there is no recording {os.fspath(path)!r}", fix="record once with Cached(model, path)"
            )
        super().__init__(_Nobody("", {"sampling": {}, "extra": {}}), path, "replay")
        shapes = {name: json.loads(shape) for name, shape in self._db.execute("SELECT id, shape FROM models")}
        if model is None and len(shapes) == 1:
            model = next(iter(shapes))
        if model is None or model not in shapes:
            self.close()
            if model is not None and shapes:
                unknown_name("recorded model", model, shapes)
            held = f"replies of {', '.join(sorted(shapes))}" if shapes else "no replies"
            raise ParameterError(f"{self.path.name} holds {held}", fix="pass model=, or record once with Cached")
        self.inner = _Nobody(model, shapes[model])
        self.id = model

    def __repr__(self) -> str:
        return f"Recorded({self.path.name!r}, model={self.id!r})"
