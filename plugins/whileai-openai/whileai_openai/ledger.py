"""A ledger of what a run asked for and got, and ceilings that stop before they are passed.

Works around any model of the kernel's protocol. Before a call, the most that it may cost is reserved; a call that
could pass a ceiling is not made. After it, the reservation is replaced by what the server counted.

Example:
    >>> Ceilings(tokens=1000).tokens
    1000
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion, Model
from whileai_openai.client import estimate_tokens
from whileai_openai.failures import BudgetError

__all__ = ["Ceilings", "Estimate", "Ledger", "Metered", "estimate"]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Ceilings of a run; `None` is no ceiling.

    Attributes:
        requests: HTTP requests, retries included.
        tokens: Prompt and completion tokens together.
        usd: US dollars; needs a model with a known price.
    """

    requests: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(slots=True)
class Ledger:
    """What a run asked for and got.

    Attributes:
        requests: HTTP requests, retries included.
        completions: Replies.
        failures: Calls without a reply.
        prompt_tokens: Tokens sent, as servers counted them.
        completion_tokens: Tokens received.
        cost_usd: Known cost.
        unpriced: Replies whose cost is unknown; while it is not 0, `cost_usd` is a lower bound.
        refused: Calls that were not made because of a ceiling.
    """

    requests: int = 0
    completions: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    refused: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        price = (
            f"${self.cost_usd:.4f}"
            if not self.unpriced
            else f"at least ${self.cost_usd:.4f}"
            if self.cost_usd
            else "cost unknown"
        )
        asked = f"{self.completions} replies, {self.failures} failures, {self.requests} requests"
        return f"{asked}, {self.tokens} tokens, {price}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run may use, before its first call.

    Attributes:
        calls: Replies; requests may be more, when servers fail.
        tokens: Prompt and completion tokens together.
        usd: US dollars; `None` when the price is unknown.
        bounded: Whether replies have a `max_tokens`. Without one, `tokens` and `usd` are those of the prompts alone.
    """

    calls: int
    tokens: int
    usd: float | None
    bounded: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        if self.bounded:
            price = "cost unknown" if self.usd is None else f"at most ${self.usd:.4f}"
            return f"{self.calls} calls, at most {self.tokens} tokens, {price}"
        price = "cost unknown" if self.usd is None else f"${self.usd:.4f}"
        return f"{self.calls} calls, {self.tokens} prompt tokens ({price}) and replies without a bound: set max_tokens"


def estimate(
    model: Any,
    calls: int,
    messages: Sequence[Any],
    tools: Sequence[Any] = (),
    sampling: Mapping[str, Any] | None = None,
) -> Estimate:
    """Return what `calls` calls like this one may use, from the characters of the request and `max_tokens`.

    Args:
        model: The model; its `price` and `sampling` are read.
        calls: Number of calls.
        messages: A typical conversation.
        tools: Tools of the calls.
        sampling: Sampling of the calls.
    """
    most = {**(getattr(model, "sampling", None) or {}), **(sampling or {})}.get("max_tokens")
    sent, received = estimate_tokens([list(messages), list(tools)]), int(most or 0)
    price = getattr(model, "price", None)
    usd = None if price is None else calls * (sent * price[0] + received * price[1]) / 1e6
    return Estimate(calls, calls * (sent + received), usd, bounded=most is not None)


@dataclass(slots=True)
class _Reserved:
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(repr=False)
class Metered:
    """A model with a ledger and ceilings.

    Args:
        inner: The model.
        ceilings: What the run may use.
        ledger: Share one ledger between several models of a run.
    """

    inner: Model
    ceilings: Ceilings = field(default_factory=Ceilings)
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self.id = self.inner.id
        self._lock = threading.Lock()
        self._held = _Reserved()
        if self.ceilings.usd is not None and getattr(self.inner, "price", None) is None:
            raise ParameterError(
                f"{self.id} has no known price",
                why="a ceiling in dollars needs one",
                fix="pass price=(in, out) per million",
            )

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network, for the conformance kit."""
        from whileai_openai.specs import Endpoint, example_params

        return {"inner": Endpoint(**example_params())}

    def __repr__(self) -> str:
        return f"Metered({self.inner!r}, {self.ceilings!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)  # price, sampling, retries and capabilities

    def _worst(self, messages: Any, tools: Any, sampling: Mapping[str, Any] | None) -> _Reserved:
        merged = {**getattr(self.inner, "sampling", {}), **(sampling or {})}
        most = merged.get("max_tokens")
        bounded = self.ceilings.tokens is not None or self.ceilings.usd is not None
        if bounded and not isinstance(most, int):
            raise ParameterError(
                "a ceiling in tokens or dollars needs max_tokens", why="a reply has no bound without it",
                fix="pass sampling={'max_tokens': 512}",
            )  # fmt: skip
        sent, received = estimate_tokens([list(messages), list(tools)]), int(most or 0)
        attempts = int(getattr(self.inner, "retries", 0)) + 1
        price = getattr(self.inner, "price", None) or (0.0, 0.0)
        return _Reserved(attempts, sent + received, (sent * price[0] + received * price[1]) / 1e6)

    def estimate(
        self, calls: int, messages: Sequence[Any], tools: Sequence[Any] = (), sampling: Mapping[str, Any] | None = None
    ) -> Estimate:
        """Return what `calls` calls like this one may use; see `estimate`."""
        return estimate(self.inner, calls, messages, tools, sampling)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Completion:
        """Answer as the inner model does, unless the call could pass a ceiling.

        Raises:
            BudgetError: The call was not made.
        """
        worst = self._worst(messages, tools, sampling)
        self._reserve(worst)
        try:
            reply = await self.inner.complete(messages, tools, sampling, **options)
        except BaseException as err:
            made = getattr(err, "attempts", 0)  # the model may be another plugin's, with an error class of its own
            self._settle(worst, attempts=made if isinstance(made, int) else 0, reply=None)
            raise
        self._settle(worst, attempts=reply.attempts, reply=reply)
        return reply

    def _reserve(self, worst: _Reserved) -> None:
        with self._lock:
            for name, used, held, more in (
                ("requests", self.ledger.requests, self._held.requests, worst.requests),
                ("tokens", self.ledger.tokens, self._held.tokens, worst.tokens),
                ("usd", self.ledger.cost_usd, self._held.usd, worst.usd),
            ):
                limit = getattr(self.ceilings, name)
                if limit is not None and used + held + more > limit:
                    self.ledger.refused += 1
                    raise BudgetError(
                        f"the ceiling of {limit:g} {name} could be passed",
                        why=f"{used:g} used, {held:g} in flight, up to {more:g} for this call",
                        fix="raise the ceiling, or lower max_tokens or retries",
                    )
            self._held.requests += worst.requests
            self._held.tokens += worst.tokens
            self._held.usd += worst.usd

    def _settle(self, worst: _Reserved, attempts: int, reply: Completion | None) -> None:
        with self._lock:
            self._held.requests -= worst.requests
            self._held.tokens -= worst.tokens
            self._held.usd -= worst.usd
            self.ledger.requests += attempts
            if reply is None:
                self.ledger.failures += 1
                return
            self.ledger.completions += 1
            if reply.attempts:  # a reply from a cache cost nothing
                self.ledger.prompt_tokens += reply.usage.get("prompt_tokens", 0)
                self.ledger.completion_tokens += reply.usage.get("completion_tokens", 0)
                self.ledger.cost_usd += reply.cost_usd or 0.0
                self.ledger.unpriced += reply.cost_usd is None
