"""`LiteLLMModel`: one model that litellm reaches.

litellm is imported by the first request. It makes exactly one request per call (`max_retries=0`, and never
`num_retries`, which needs a library that it does not require); retries are owned here: transient failures only, full
jitter, `Retry-After` honoured, every request counted on the completion or on the error. One deadline holds for the
whole call. A credential that is missing fails the first call, before any request.
"""

from __future__ import annotations

import asyncio
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion
from whileai_litellm import defaults as d
from whileai_litellm.credentials import source_of
from whileai_litellm.failures import ModelError, from_exception, redact, secrets_of
from whileai_litellm.library import load, price_of
from whileai_litellm.wire import Malformed, parse, request

__all__ = ["LiteLLMModel"]

Ask = Callable[..., Awaitable[Any]]


class LiteLLMModel:
    """A chat model of any provider that litellm reaches.

    Args:
        model: Name as litellm spells it, `provider/model`.
        name: Id on rows, for example `anthropic:claude-sonnet-4-5`; by default `litellm:<model>`.
        api_key: Key; by default litellm takes what the environment has.
        key_env: Environment variables of which one must be set; empty: litellm is asked which the model needs.
        base_url: URL of the provider, where it is another than usual.
        structured: The provider holds replies to a JSON schema.
        sampling: Sampling parameters of every call; the call's own win.
        price: US dollars per million prompt and completion tokens; by default litellm's bundled map, `None` if unknown.
        retries: Requests beyond the first for one completion.
        deadline_s: Seconds for one completion.
        concurrency: Requests in flight of this object.
        check_credentials: Look for a credential before the first request; false where none can be seen, as with the
            role of a cloud machine.
        extra: Further arguments of `litellm.acompletion`.
        ask: A function to call instead of `litellm.acompletion`, for tests.
    """

    def __init__(
        self,
        model: str,
        *,
        name: str | None = None,
        api_key: str | None = None,
        key_env: Sequence[str] = (),
        base_url: str | None = None,
        structured: bool = False,
        sampling: Mapping[str, Any] | None = None,
        price: tuple[float, float] | None = None,
        retries: int = d.RETRIES.value,
        deadline_s: float = d.DEADLINE_S.value,
        concurrency: int = d.CONCURRENCY.value,
        check_credentials: bool = True,
        extra: Mapping[str, Any] | None = None,
        ask: Ask | None = None,
    ) -> None:
        if not model or not isinstance(model, str) or any(c.isspace() for c in model):
            raise ParameterError(f"{model!r} is no model", fix="for example anthropic:claude-sonnet-4-5")
        whole = isinstance(retries, int) and not isinstance(retries, bool)
        if not whole or retries < 0 or deadline_s <= 0 or concurrency < 1:
            raise ParameterError("retries >= 0, deadline_s > 0 and concurrency >= 1 are needed")
        self.model, self.id = model, name or f"litellm:{model}"
        self.key_env, self.base_url, self.structured = tuple(key_env), base_url, structured
        self.sampling, self.extra, self.given_price = dict(sampling or {}), dict(extra or {}), price
        self.retries, self.deadline_s, self.concurrency = retries, deadline_s, concurrency
        self.check_credentials = check_credentials
        self.failed: ModelError | None = None
        self._ask, self._checked = ask, False
        self._key = _Secret(api_key)
        self._gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        source = "the api_key argument" if self._key else source_of(self.key_env)
        where = f"key from {source}" if source else "no key found" if self.key_env else "key from the environment"
        return f"LiteLLM({self.id!r}, {where})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_gates": None, "_ask": None, "failed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._gates = weakref.WeakKeyDictionary()

    @property
    def capabilities(self) -> frozenset[str]:
        """What the provider holds a reply to: `json_schema`, or nothing that is known."""
        return frozenset({"json_schema"}) if self.structured else frozenset()

    @property
    def price(self) -> tuple[float, float] | None:
        """US dollars per million prompt and completion tokens, or `None` when they are unknown."""
        return self.given_price or price_of(self.model)

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
            MissingDependencyError: litellm is not installed.
            ParameterError: `n` was asked for; one call gives one reply.
        """
        if self.failed is not None:
            raise self._again(self.failed)
        merged = {**self.sampling, **(sampling or {})}
        if merged.get("n", 1) not in (1, None):
            raise ParameterError("complete gives one reply", why="n asks for several", fix="repeat the call instead")
        ask = self._ask or (await asyncio.to_thread(load)).acompletion
        self._check()
        asked = {**request(messages, tools, merged, schema, self.structured), **self.extra}
        seconds = self.deadline_s if deadline_s is None else deadline_s
        begin, made = time.monotonic(), [0]
        try:
            async with asyncio.timeout(seconds):
                reply, parts = await self._with_retries(ask, asked, begin + seconds, made)
        except TimeoutError:
            raise ModelError(
                f"{self.id} did not answer within {seconds:g} s",
                why=f"{made[0]} requests were made",
                fix="raise deadline_s, or lower max_tokens",
                kind="timeout",
                attempts=made[0],
            ) from None
        except ModelError as err:
            err.attempts = made[0]
            if err.permanent:
                self.failed = err
            raise
        took = time.monotonic() - begin
        return Completion(**parts, cost_usd=self._cost(reply, parts["usage"]), attempts=made[0], seconds=took)

    def _again(self, first: ModelError) -> ModelError:
        return ModelError(
            first.what, f"{first.why} (no request was made: it failed like this before)", first.fix,
            kind=first.kind, status_code=first.status_code,
        )  # fmt: skip

    def _check(self) -> None:
        """Look for a credential, once."""
        if self._checked or not self.check_credentials or self._key:
            return
        missing: list[str] = []
        if self.key_env:
            missing = [] if source_of(self.key_env) else [self.key_env[0]]
        elif self._ask is None and self.base_url is None:
            known = load().validate_environment(self.model)
            missing = [] if known.get("keys_in_environment") else [str(m) for m in known.get("missing_keys") or ()]
        if missing:
            self.failed = ModelError(
                f"{self.id} needs a key", why=f"{' and '.join(missing)} is not set; no request was made",
                fix=f"export {missing[0]}=..., or pass api_key=", kind="auth",
            )  # fmt: skip
            raise self.failed
        self._checked = True

    def _cost(self, reply: Any, usage: Mapping[str, int]) -> float | None:
        if self.given_price is not None:
            if "prompt_tokens" not in usage or "completion_tokens" not in usage:
                return None
            sent, received = self.given_price
            return (usage["prompt_tokens"] * sent + usage["completion_tokens"] * received) / 1e6
        hidden = getattr(reply, "_hidden_params", None)
        cost = hidden.get("response_cost") if isinstance(hidden, Mapping) else None
        return float(cost) if isinstance(cost, int | float) and cost > 0 else None

    async def _with_retries(
        self, ask: Ask, asked: dict[str, Any], until: float, made: list[int]
    ) -> tuple[Any, dict[str, Any]]:
        for attempt in range(self.retries + 1):
            try:
                return await self._once(ask, asked, until, made)
            except ModelError as err:
                wait = err.retry_after if err.retry_after is not None else _back_off(attempt)
                hopeless = wait > d.RETRY_AFTER_MAX_S.value or time.monotonic() + wait >= until
                if not err.transient or attempt == self.retries or hopeless:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt either returns or raises")

    async def _once(self, ask: Ask, asked: dict[str, Any], until: float, made: list[int]) -> tuple[Any, dict[str, Any]]:
        where: dict[str, Any] = {"api_key": self._key.reveal()} if self._key else {}
        if self.base_url is not None:
            where["api_base"] = self.base_url
        gate = self._gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.concurrency))
        async with gate:
            if self.failed is not None:
                raise self._again(self.failed)
            made[0] += 1
            left = max(0.1, until - time.monotonic())
            try:
                reply = await ask(model=self.model, max_retries=0, timeout=left, **where, **asked)
            except Exception as err:  # noqa: BLE001 - litellm raises many things; each gets a kind
                raise from_exception(err, self.id, self._secrets()) from None
        try:
            return reply, _clean(parse(reply), self._secrets())
        except Malformed as err:
            raise ModelError(
                f"{self.id} sent no completion", why=redact(str(err), self._secrets()),
                fix="check that the URL is the provider's", kind="malformed",
            ) from None  # fmt: skip

    def _secrets(self) -> list[str]:
        return secrets_of(self._key.reveal())


class _Secret:
    """A key whose repr and pickle do not hold it."""

    __slots__ = ("_value",)

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __bool__(self) -> bool:
        return bool(self._value)

    def reveal(self) -> str | None:
        """Return the key."""
        return self._value

    def __repr__(self) -> str:
        return "_Secret([key])" if self._value else "_Secret(None)"

    def __reduce__(self) -> tuple[Any, tuple[None]]:
        return _Secret, (None,)  # the process that reads it takes its key from its own environment


def _clean(value: Any, secrets: Sequence[str]) -> Any:
    """Return a reply without secrets: a model may repeat what a broken gateway put into its prompt."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, dict):
        return {k: _clean(v, secrets) for k, v in value.items()}
    return [_clean(v, secrets) for v in value] if isinstance(value, list) else value


def _back_off(attempt: int) -> float:
    """Return seconds to wait when the server names none: exponential with full jitter."""
    bound = min(d.WAIT_MAX_S.value, d.WAIT_BASE_S.value * 2**attempt)
    return random.uniform(0.0, bound)  # spreads clients in time; no result depends on it
