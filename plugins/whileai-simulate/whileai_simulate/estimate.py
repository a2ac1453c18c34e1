"""What a run is about to ask models for, before the first request: requests, tokens, cost where a price is known.

It is a rough figure and says what it assumes; what cannot be known is said to be unknown. Ceilings are held by the
ledger and not by this.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whileai_simulate.defaults import ESTIMATE_REPLY_TOKENS, ESTIMATE_TURNS, WRITER_RETRIES
from whileai_simulate.ledger import tokens_of

__all__ = ["RunEstimate", "SideEstimate", "estimate_run"]


@dataclass(frozen=True, slots=True)
class SideEstimate:
    """One side that is a model.

    Attributes:
        side: `agent`, `user`, `writer` or `judge`.
        model: The model's id.
        least: Fewest requests.
        most: Most requests, retries of the client apart.
        tokens: About how many tokens it takes.
        usd: About what it costs, or `None` when no price is known.
    """

    side: str
    model: str
    least: int
    most: int
    tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimate of a run: one entry per side that is a model."""

    sides: tuple[SideEstimate, ...]
    rollouts: int
    assumes: str
    budget: str

    @property
    def usd(self) -> float | None:
        """About what all sides cost, or `None` when the price of one is unknown."""
        known = [s.usd for s in self.sides]
        return None if None in known else sum(u for u in known if u is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        sides = [{n: getattr(s, n) for n in SideEstimate.__slots__} for s in self.sides]
        return {
            "rollouts": self.rollouts, "sides": sides, "usd": self.usd, "assumes": self.assumes, "budget": self.budget
        }  # fmt: skip

    def __str__(self) -> str:
        cells = [("side", "model", "requests", "tokens", "cost")]
        for s in self.sides:
            span = f"{s.least:,}" if s.least == s.most else f"{s.least:,} to {s.most:,}"
            cells.append((s.side, s.model, span, f"about {s.tokens:,}", _usd(s.usd)))
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        head = f"estimate for up to {self.rollouts:,} rollouts, before the first request ({self.assumes}):"
        return "\n".join([head, *(f"  {line}" for line in lines), f"  in all: {_usd(self.usd)}; {self.budget}"])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _usd(value: float | None) -> str:
    return "cost unknown" if value is None else f"about ${value:.4f}"


def estimate_run(
    models: Sequence[tuple[str, Any]],
    *,
    rollouts: int,
    written: int,
    patience: int,
    max_turns: int,
    texts: dict[str, Any],
    has_user: bool,
    budget: str,
    turns: int = ESTIMATE_TURNS.value,
    reply_tokens: int = ESTIMATE_REPLY_TOKENS.value,
) -> RunEstimate:
    """Return the estimate of a run.

    Args:
        models: `(side, model)` of every side that is a model.
        rollouts: Rollouts that may run.
        written: Asks that a model writer writes.
        patience: Answers of the user.
        max_turns: Replies of the agent per rollout at most.
        texts: What each side is sent every time, as text or JSON values.
        has_user: Whether somebody answers the agent.
        budget: The ceilings, in words.
        turns: Replies of the agent per rollout that are assumed.
        reply_tokens: Tokens per reply that are assumed.
    """
    turns = min(turns + (1 if has_user else 0), max_turns)
    sides = []
    for side, model in models:
        least, most, about = {
            "agent": (rollouts, rollouts * max_turns, rollouts * turns),
            "user": (0, rollouts * (min(patience, max_turns) + 1), rollouts * 2),
            "writer": (written, written * (WRITER_RETRIES.value + 1), written),
            "judge": (rollouts, rollouts, rollouts),
        }[side]
        # A conversation is sent again with every request: on average half of what is said in it.
        grown = {"agent": turns - 1, "user": 2, "writer": 0, "judge": 2 * turns}[side] * reply_tokens
        sent = tokens_of(texts.get(side) or "") + grown
        price = getattr(model, "price", None)
        usd = None if price is None else about * (sent * price[0] + reply_tokens * price[1]) / 1e6
        sides.append(SideEstimate(side, str(model.id), least, most, about * (sent + reply_tokens), usd))
    assumes = f"{turns} replies per rollout, {reply_tokens} tokens per reply, no retries"
    return RunEstimate(tuple(sides), rollouts, assumes, budget)
