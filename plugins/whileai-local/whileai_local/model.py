"""`Local`: a small model in this process, as a component of kind `models`.

The file is loaded and the server started by the first request, never by making the object. Requests go through the
client of whileai-openai, so retries, deadlines, log-probabilities and error kinds are those of any other server.

Example:
    >>> Local("smollm2").id
    'local:smollm2'
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion, Model
from whileai_kernel.registry import make
from whileai_local import defaults as d
from whileai_local.server import Served, serve
from whileai_local.weights import Weights, find_weights

__all__ = ["Local"]


class Local:
    """A chat model that runs here, without a key and without a network.

    Args:
        model: `smollm2`, or the path of a GGUF file.
        sampling: Sampling parameters of every call; the call's own win.
        threads: Threads that compute; by default the cores that this process may use.
        context: Tokens of prompt and reply of one request.
        parallel: Requests that are decoded together.
        deadline_s: Seconds for one completion, the wait for a free slot included.
        schema_text: Most characters of a text in a reply that is held to a schema, where the schema names no
            `maxLength`: a small model would write until the JSON is cut. `None` leaves schemas alone.
        client: A model to ask instead of starting a server, for tests.

    Attributes:
        capabilities: What the server enforces or gives: a JSON schema, log-probabilities.

    Raises:
        ParameterError: It is neither a known name nor a GGUF file.
    """

    capabilities = frozenset({"json_schema", "logprobs"})
    price = None
    retries = 0

    def __init__(
        self,
        model: str | os.PathLike[str] = "smollm2",
        *,
        sampling: Mapping[str, Any] | None = None,
        threads: int | None = None,
        context: int = d.CONTEXT.value,
        parallel: int = d.PARALLEL.value,
        deadline_s: float = d.DEADLINE_S.value,
        schema_text: int | None = d.SCHEMA_TEXT.value,
        client: Model | None = None,
    ) -> None:
        if not os.fspath(model):
            raise ParameterError("a local model needs a name or a path", fix="local:smollm2")
        self.model = os.fspath(model)
        known = self.model == "smollm2"
        # A file is looked at now, so that its name on rows tells it from others; a package only when it is needed.
        self._weights: Weights | None = None if known else find_weights(self.model)
        self.id = f"local:{self.model if self._weights is None else self._weights.name}"
        self.sampling = dict(sampling or {})
        self.threads, self.context, self.parallel, self.deadline_s = threads, context, parallel, deadline_s
        self.schema_text = schema_text
        self._client: Any = client
        self._made_in = os.getpid()
        self._start_lock = threading.Lock()
        self._given = client is not None

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no weights, for the conformance kit."""
        from whileai_kernel.testing import ScriptedModel

        return {"model": "smollm2", "client": ScriptedModel(lambda messages: "It has shipped.")}

    def __repr__(self) -> str:
        return f"Local({self.id!r}, no key needed)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None, "_given": False, "_start_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """URL of the server, for other clients; starts it if needed."""
        return self.served.base_url

    @property
    def served(self) -> Served:
        """The running server; starts it if needed."""
        weights = self._weights or find_weights(self.model)
        return serve(weights, threads=self.threads, context=self.context, parallel=self.parallel)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> Completion:
        """Answer a conversation; see `whileai_kernel.protocols.Model`.

        Raises:
            MissingDependencyError: The wheel or the weights are not installed; the error says what to type.
        """
        client = await asyncio.to_thread(self._connect)
        merged = {**self.sampling, **(sampling or {})}
        if schema is not None and self.schema_text is not None:
            schema = bounded(schema, self.schema_text)
        reply: Completion = await client.complete(messages, tools, merged, schema=schema, deadline_s=deadline_s)
        return replace(reply, model=self.id)

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop; the server stays."""
        close = getattr(self._client, "aclose", None)
        if close is not None:
            await close()

    def _connect(self) -> Any:
        if self._given:
            return self._client
        with self._start_lock:
            if self._client is None or self._made_in != os.getpid():
                self._client = make(
                    "models",
                    "openai/endpoint",
                    model=self.id.removeprefix("local:"),
                    base_url=self.base_url,
                    provider="local",
                    key_env=(),
                    structured="json_schema",
                    concurrency=self.parallel,
                    deadline_s=self.deadline_s,
                    retries=self.retries,
                )
                self._made_in = os.getpid()
            return self._client


def bounded(schema: Any, characters: int) -> Any:
    """Return a copy of a JSON schema in which every free text has a length.

    Example:
        >>> bounded({"properties": {"why": {"type": "string"}, "ok": {"type": "string", "enum": ["Y"]}}}, 9)
        {'properties': {'why': {'type': 'string', 'maxLength': 9}, 'ok': {'type': 'string', 'enum': ['Y']}}}
    """
    if isinstance(schema, list):
        return [bounded(part, characters) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    out = {key: bounded(value, characters) for key, value in schema.items()}
    held = {"enum", "const", "maxLength", "pattern", "format"} & set(out)
    return {**out, "maxLength": characters} if out.get("type") == "string" and not held else out
