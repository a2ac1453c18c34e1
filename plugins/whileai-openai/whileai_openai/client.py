"""`ChatModel`: one model behind an OpenAI-compatible server.

Retries are owned here and nowhere else: transient failures only, full jitter, `Retry-After` honoured, every request
counted on the completion or on the error. One deadline holds for the whole call. Clients, semaphores and limiters
belong to the running event loop, so one object serves scripts, notebooks and several loops. It does not cache, meter
or stream; `cache.Cached` and `ledger.Metered` wrap any model.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.protocols import Completion
from whileai_openai import defaults as d
from whileai_openai.failures import ModelError, from_status
from whileai_openai.keys import Key, find_key, redact
from whileai_openai.wire import STRUCTURED, Parsed, parse_all, request_body

if TYPE_CHECKING:
    import httpx
    from aiolimiter import AsyncLimiter
    from tenacity import RetryCallState

    from whileai_openai.ledger import Estimate

__all__ = ["ChatModel", "estimate_tokens"]

_Loop = asyncio.AbstractEventLoop


@dataclass
class _PerLoop:
    """What belongs to one event loop."""

    client: httpx.AsyncClient
    gate: asyncio.Semaphore
    requests: AsyncLimiter | None = None
    tokens: AsyncLimiter | None = None


@dataclass
class _Shared:
    """Per loop and host: the semaphore that all models of one host share."""

    gates: weakref.WeakKeyDictionary[_Loop, dict[tuple[str, int], asyncio.Semaphore]] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def gate(self, loop: _Loop, host: str, n: int) -> asyncio.Semaphore:
        return self.gates.setdefault(loop, {}).setdefault((host, n), asyncio.Semaphore(n))


_SHARED = _Shared()


def estimate_tokens(value: Any, chars_per_token: float = d.CHARS_PER_TOKEN.value) -> int:
    """Return an upper estimate of the tokens of a text or of JSON values, from its characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return int(len(text) / chars_per_token) + 1


class ChatModel:
    """A chat model behind an OpenAI-compatible server.

    Args:
        model: Name of the model, as the server knows it.
        base_url: URL up to and including `/v1`.
        api_key: Key; by default the first of `key_env` that is set.
        key_env: Environment variables to look in.
        key_required: A missing key is an error when the object is made, before any request.
        provider: Prefix of the id, for example `vllm`.
        sampling: Sampling parameters of every call; the call's own win.
        price: US dollars per million prompt and completion tokens, or `None` when unknown.
        retries: Requests beyond the first for one completion.
        deadline_s: Seconds for one completion.
        concurrency: Requests in flight per host.
        requests_per_minute: Limit of this object, or `None`.
        tokens_per_minute: Limit of this object by estimated tokens, or `None`.
        structured: What the server holds a reply to: `json_schema`, `json_object` or `none`.
        max_tokens_key: `max_tokens` or `max_completion_tokens`.
        extra: Further keys of every request body.
        headers: Further headers of every request.
        transport: An `httpx` transport, for tests and special networks.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        key_env: Sequence[str] = (),
        key_required: bool = False,
        provider: str = "endpoint",
        sampling: Mapping[str, Any] | None = None,
        price: tuple[float, float] | None = None,
        retries: int = d.RETRIES.value,
        deadline_s: float = d.DEADLINE_S.value,
        concurrency: int = d.HOST_CONCURRENCY.value,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        structured: str = "none",
        max_tokens_key: str = "max_tokens",
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not model or not isinstance(model, str):
            raise ParameterError("a model needs a name", fix="for example vllm:qwen3@http://127.0.0.1:8000/v1")
        if not base_url.startswith(("http://", "https://")):
            raise ParameterError(f"base_url {base_url!r} is no http URL", fix="it usually ends in /v1")
        if (
            isinstance(retries, bool)
            or not isinstance(retries, int)
            or retries < 0
            or deadline_s <= 0
            or concurrency < 1
        ):
            raise ParameterError("retries >= 0, deadline_s > 0 and concurrency >= 1 are needed")
        if structured not in STRUCTURED:
            unknown_name("structured output", structured, STRUCTURED)
        self.structured = structured
        self.model, self.base_url, self.provider = model, base_url.rstrip("/"), provider
        self.id = f"{provider}:{model}" if provider == "openai" else f"{provider}:{model}@{self.base_url}"
        self.key: Key | None = find_key(api_key, key_env, required=key_required, who=self.id)
        self.sampling, self.price = dict(sampling or {}), price
        self.retries, self.deadline_s, self.concurrency = retries, deadline_s, concurrency
        self.requests_per_minute, self.tokens_per_minute = requests_per_minute, tokens_per_minute
        self.max_tokens_key, self.extra, self.headers = max_tokens_key, dict(extra or {}), dict(headers or {})
        self.transport = transport
        self.failed: ModelError | None = None
        self._loops: weakref.WeakKeyDictionary[_Loop, _PerLoop] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        key = f"key from {self.key.source}" if self.key else "no key"
        return f"{type(self).__name__}({self.id!r}, {key})"

    @property
    def capabilities(self) -> frozenset[str]:
        """What the server holds a reply to, as far as it is known: `json_schema` and `json_object`, or nothing."""
        return {
            "json_schema": frozenset({"json_schema", "json_object"}),
            "json_object": frozenset({"json_object"}),
        }.get(self.structured, frozenset())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loops": None, "transport": None, "failed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._loops = weakref.WeakKeyDictionary()

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
            ModelError: No completion came; `kind`, `status_code` and `attempts` say why and after how many requests.
            ParameterError: `n` was asked for; one call gives one reply.
        """
        if (sampling or {}).get("n", self.sampling.get("n", 1)) not in (1, None):
            raise ParameterError(
                "complete gives one reply", why="n asks for several, and the others would be lost",
                fix="leave n out and repeat the call, or use samples(messages, n)",
            )  # fmt: skip
        return (await self._ask(messages, tools, sampling, schema, deadline_s))[0]

    async def samples(
        self,
        messages: Sequence[Mapping[str, Any]],
        n: int,
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> list[Completion]:
        """Return `n` replies to one conversation with one request, for servers that share the work on the prompt.

        Usage, cost and requests of all stand on the first; the others have none, so that sums are right.

        Args:
            messages: As `complete`.
            n: Number of replies; a server that does not know `n` gives fewer.
            tools: As `complete`.
            sampling: As `complete`.
            schema: As `complete`.
            deadline_s: As `complete`.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ParameterError(f"n must be a whole number from 1, not {n!r}", fix="pass n=4")
        return await self._ask(messages, tools, {**(sampling or {}), "n": n}, schema, deadline_s)

    def estimate(
        self, calls: int, messages: Sequence[Any], tools: Sequence[Any] = (), sampling: Mapping[str, Any] | None = None
    ) -> Estimate:
        """Return what `calls` calls like this one may use; see `ledger.estimate`."""
        from whileai_openai.ledger import estimate

        return estimate(self, calls, messages, tools, sampling)

    async def _ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        sampling: Mapping[str, Any] | None,
        schema: Mapping[str, Any] | None,
        deadline_s: float | None,
    ) -> list[Completion]:
        if self.failed is not None:
            raise self._again(self.failed)
        body = request_body(
            self.model,
            messages,
            tools,
            {**self.sampling, **(sampling or {})},
            schema,
            structured=self.structured,
            max_tokens_key=self.max_tokens_key,
            extra=self.extra,
        )
        seconds = self.deadline_s if deadline_s is None else deadline_s
        begin, made = time.monotonic(), [0]
        try:
            async with asyncio.timeout(seconds):
                parsed = await self._with_retries(body, begin + seconds, made)
        except TimeoutError as err:
            raise ModelError(
                f"{self.id} did not answer within {seconds:g} s",
                why=f"{made[0]} requests were made",
                fix="raise deadline_s, or lower max_tokens",
                kind="timeout",
                attempts=made[0],
            ) from err
        except ModelError as err:
            err.attempts = made[0]
            if err.permanent:
                self.failed = err
            raise
        cost, seconds = self._cost(parsed[0]["usage"]), time.monotonic() - begin
        first = Completion(**parsed[0], cost_usd=cost, attempts=made[0], seconds=seconds)
        free = {"usage": {}, "cost_usd": 0.0, "attempts": 0, "seconds": seconds}
        return [first, *(Completion(**{**choice, **free}) for choice in parsed[1:])]

    async def aclose(self) -> None:
        """Close the connections that belong to the running event loop."""
        here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.client.aclose()

    def _again(self, first: ModelError) -> ModelError:
        return ModelError(
            first.what, f"{first.why} (no request was made: it failed like this before)", first.fix,
            kind=first.kind, status_code=first.status_code,
        )  # fmt: skip

    def _cost(self, usage: Mapping[str, int]) -> float | None:
        if self.price is None or "prompt_tokens" not in usage or "completion_tokens" not in usage:
            return None
        return (usage["prompt_tokens"] * self.price[0] + usage["completion_tokens"] * self.price[1]) / 1e6

    def _here(self) -> _PerLoop:
        import httpx
        from aiolimiter import AsyncLimiter

        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            headers = {"accept": "application/json", **self.headers}
            if self.key is not None:
                headers["authorization"] = f"Bearer {self.key.reveal()}"
            client = httpx.AsyncClient(
                headers=headers,
                transport=self.transport,
                timeout=httpx.Timeout(None, connect=d.CONNECT_S.value),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=self.concurrency),
            )
            rpm, tpm = self.requests_per_minute, self.tokens_per_minute
            host = httpx.URL(self.base_url).netloc.decode("ascii", "replace")
            found = self._loops[loop] = _PerLoop(
                client,
                _SHARED.gate(loop, host, self.concurrency),
                AsyncLimiter(rpm, 60.0) if rpm else None,
                AsyncLimiter(tpm, 60.0) if tpm else None,
            )
        return found

    async def _with_retries(self, body: dict[str, Any], until: float, made: list[int]) -> list[Parsed]:
        from tenacity import AsyncRetrying, retry_if_exception

        def enough(state: RetryCallState) -> bool:
            asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None) or 0.0
            wait = max(state.upcoming_sleep, asked)
            too_late = asked > d.RETRY_AFTER_MAX_S.value or time.monotonic() + wait >= until
            return too_late or state.attempt_number > self.retries

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda err: isinstance(err, ModelError) and err.transient),
            stop=enough,
            wait=_wait,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                return await self._once(body, made)
        raise AssertionError("tenacity either returns or raises")

    async def _once(self, body: dict[str, Any], made: list[int]) -> list[Parsed]:
        import httpx

        here = self._here()
        if here.requests is not None:
            await here.requests.acquire()
        if here.tokens is not None:
            asked = estimate_tokens(body["messages"]) + int(body.get(self.max_tokens_key) or 0)
            await here.tokens.acquire(min(asked, here.tokens.max_rate))
        async with here.gate:
            if self.failed is not None:
                raise self._again(self.failed)
            made[0] += 1
            try:
                reply = await here.client.post(f"{self.base_url}/chat/completions", json=body)
            except (httpx.HTTPError, httpx.StreamError, OSError) as err:
                raise ModelError(
                    f"{self.id} could not be reached",
                    why=redact(f"{type(err).__name__}: {err}", self.key),
                    fix="check that the server runs and the URL is right",
                    kind="connection",
                ) from None
        return self._read(reply)

    def _read(self, reply: httpx.Response) -> list[Parsed]:
        text = redact(reply.text, self.key)
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError):
            payload = None
        if reply.status_code != 200:
            raise from_status(reply.status_code, payload, text, reply.headers, self.id)
        if payload is None:
            raise ModelError(
                f"{self.id} sent no JSON", why=text[:200] or "an empty body", fix="check the base URL", kind="malformed"
            )
        return parse_all(payload, self.id)


def _wait(state: RetryCallState) -> float:
    """Return seconds to wait: what the server asked for, else exponential back-off with full jitter."""
    asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
    if asked is not None:
        return float(asked)
    bound = min(d.WAIT_MAX_S.value, d.WAIT_BASE_S.value * 2 ** (state.attempt_number - 1))
    return random.uniform(0.0, bound)  # spreads clients in time; no result depends on it
