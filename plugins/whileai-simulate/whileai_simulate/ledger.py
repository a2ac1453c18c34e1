"""One ledger for all sides of a run: agent, user, writer and judge, with ceilings that stop before they are passed.

Before a request the most that it may take is reserved (what is sent, by its bytes, and `max_tokens`); a request that
could pass a ceiling is not made and ends the run. Afterwards the reservation is replaced by what the server counted.
What an agent reports on its rows counts too, when its own requests cannot be seen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Completion
from whileai_simulate.defaults import BYTES_PER_TOKEN, ESTIMATE_REPLY_TOKENS
from whileai_simulate.replies import Spent
from whileai_simulate.report import used
from whileai_simulate.stopping import Stop

__all__ = ["Meter", "RunLedger", "tokens_of"]


def tokens_of(value: Any) -> int:
    """Return about how many tokens a text or a JSON value takes, rather more than fewer."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return int(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN.value) + 1


class RunLedger:
    """What the sides of a run have used.

    Args:
        tokens: Ceiling of prompt and completion tokens together, or `None`.
        usd: Ceiling in US dollars, or `None`.
    """

    def __init__(self, tokens: float | None = None, usd: float | None = None) -> None:
        self.limits = {"tokens": tokens, "usd": usd}
        self.sides: dict[str, Spent] = {}
        self.models: dict[str, str] = {}
        self._held = {"tokens": 0.0, "usd": 0.0}
        self._lock = threading.Lock()

    def meter(self, model: Any, side: str) -> Meter:
        """Return a model that keeps this ledger.

        Raises:
            ParameterError: There is a ceiling in dollars, and the model's price is unknown.
        """
        if self.limits["usd"] is not None and getattr(model, "price", None) is None:
            raise ParameterError(
                f"{model.id} ({side}) has no known price", why="a budget in usd needs one",
                fix="pass a model with price=(in, out) per million tokens, or budget={'tokens': ...}",
            )  # fmt: skip
        self.models[side] = str(model.id)
        self.sides.setdefault(side, Spent())
        return Meter(model, side, self)

    def spent(self, unit: str) -> float:
        """Return tokens (`tokens`) or US dollars (`usd`) that are used up."""
        if unit == "usd":
            return sum(s.cost_usd for s in self.sides.values())
        return float(sum(s.prompt_tokens + s.completion_tokens for s in self.sides.values()))

    def reserve(self, side: str, tokens: float, usd: float) -> None:
        """Put the most that a request may take aside.

        Raises:
            Stop: It could pass a ceiling.
        """
        with self._lock:
            for unit, more in (("tokens", tokens), ("usd", usd)):
                limit = self.limits[unit]
                spent = self.spent(unit)
                if limit is not None and spent + self._held[unit] + more > limit + 1e-12:
                    raise Stop(
                        f"budget of {limit:g} {unit}: {spent:g} spent, {self._held[unit]:g} in flight, the next "
                        f"request of the {side} takes up to {more:g}"
                    )
            self._held["tokens"] += tokens
            self._held["usd"] += usd

    def settle(self, side: str, tokens: float, usd: float, reply: Completion | None) -> None:
        """Replace a reservation by what was used; `None` when no reply came."""
        with self._lock:
            self._held["tokens"] -= tokens
            self._held["usd"] -= usd
            if reply is not None:
                self.sides.setdefault(side, Spent()).add(reply)

    def add_row(self, row: Mapping[str, Any], *, recalled: bool) -> None:
        """Count what a row reports of sides whose requests were not seen here: plain agents, and earlier sessions."""
        told = {"agent": row.get("usage"), "user": (row.get("user") or {}).get("usage")}
        with self._lock:
            for side, usage in told.items():
                if isinstance(usage, Mapping) and (recalled or side not in self.models):
                    _add_usage(self.sides.setdefault(side, Spent()), usage)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return what each side used: `{side: {model, requests, prompt_tokens, completion_tokens, cost_usd}}`."""
        out: dict[str, dict[str, Any]] = {}
        for side, spent in self.sides.items():
            if side in self.models or spent.requests or spent.prompt_tokens or spent.completion_tokens:
                out[side] = {"model": self.models.get(side), **spent.to_dict()}
        return out


def _add_usage(spent: Spent, usage: Mapping[str, Any]) -> None:
    sent, received = used(usage, "prompt_tokens", "input_tokens"), used(usage, "completion_tokens", "output_tokens")
    spent.prompt_tokens += int(sent or max(0.0, used(usage, "total_tokens") - received))
    spent.completion_tokens += int(received)
    spent.requests += int(used(usage, "requests"))
    spent.replies += 1
    spent.cost_usd += used(usage, "cost_usd", "usd", "cost")
    spent.unpriced += not any(k in usage for k in ("cost_usd", "usd", "cost"))


class Meter:
    """A model that keeps a run's ledger; everything else it has is the model's own."""

    def __init__(self, inner: Any, side: str, ledger: RunLedger) -> None:
        self.inner, self.side, self.ledger = inner, side, ledger
        self.id = inner.id
        self._most_reply = float(ESTIMATE_REPLY_TOKENS.value)

    def __repr__(self) -> str:
        return repr(self.inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        sampling: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Completion:
        """Answer as the model does.

        Raises:
            Stop: The request could pass a ceiling; it was not made.
        """
        tokens, usd = self._most(messages, tools, sampling)
        self.ledger.reserve(self.side, tokens, usd)
        reply: Completion | None = None
        try:
            reply = await self.inner.complete(messages, tools, sampling, **options)
        finally:
            self.ledger.settle(self.side, tokens, usd, reply)
        self._most_reply = max(self._most_reply, float(reply.usage.get("completion_tokens", 0)))
        return reply

    def _most(self, messages: Any, tools: Any, sampling: Mapping[str, Any] | None) -> tuple[float, float]:
        merged = {**(getattr(self.inner, "sampling", None) or {}), **(sampling or {})}
        bound = merged.get("max_tokens", merged.get("max_completion_tokens"))
        # Without max_tokens a reply has no bound; the longest so far stands for it.
        received = float(bound) if isinstance(bound, int) else self._most_reply
        sent = float(tokens_of([list(messages), list(tools)]))
        price = getattr(self.inner, "price", None) or (0.0, 0.0)
        return sent + received, (sent * price[0] + received * price[1]) / 1e6
