"""Replies of models that were asked for one JSON object, read as well as can be.

What a model wrapped around it (reasoning, a code fence, a sentence before it) is ignored; the last object that has
the wanted key counts, since reasoning in plain text comes first.

Example:
    >>> read_object('Sure!\\n```json\\n{"ask": "Hi"}\\n```', "ask")
    {'ask': 'Hi'}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import WhileaiError
from whileai_kernel.messages import spoken_text, text_of
from whileai_kernel.protocols import Completion
from whileai_kernel.rows import LENGTH_REASONS

__all__ = ["ReplyError", "Spent", "read_object", "said"]

_DECODER = json.JSONDecoder()
_STARTS = 200
"""Opening braces that are tried in one reply, so that a reply of braces costs bounded time."""


class ReplyError(WhileaiError, RuntimeError):
    """A model's reply cannot be used."""


class Spent:
    """What one side of a run asked for and got."""

    __slots__ = ("completion_tokens", "cost_usd", "prompt_tokens", "replies", "requests", "unpriced")

    def __init__(self) -> None:
        self.requests = self.replies = self.prompt_tokens = self.completion_tokens = self.unpriced = 0
        self.cost_usd = 0.0

    def add(self, reply: Completion) -> None:
        """Count one reply; one from a cache (no attempt) cost nothing."""
        self.replies += 1
        self.requests += reply.attempts
        if reply.attempts:
            self.prompt_tokens += int(reply.usage.get("prompt_tokens", 0))
            self.completion_tokens += int(reply.usage.get("completion_tokens", 0))
            self.cost_usd += reply.cost_usd or 0.0
            self.unpriced += reply.cost_usd is None

    def to_dict(self) -> dict[str, Any]:
        """Return usage as rows show it; the cost is there when all of it is known."""
        out: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "requests": self.requests,
        }
        if not self.unpriced:
            out["cost_usd"] = self.cost_usd
        return out


def said(reply: Completion) -> str:
    """Return what a model said, without reasoning.

    Raises:
        ReplyError: The reply was cut, filtered, or is empty.
    """
    if reply.finish_reason in LENGTH_REASONS:
        raise ReplyError("the reply was cut by its length limit", fix="raise max_tokens")
    if reply.finish_reason == "content_filter":
        raise ReplyError("the reply was filtered")
    text = spoken_text(text_of(reply.message.get("content"))).strip()
    if not text:
        raise ReplyError("the reply is empty")
    return text


def read_object(text: str, key: str) -> dict[str, Any] | None:
    """Return the last JSON object in a text that has `key`, or `None`."""
    found: dict[str, Any] | None = None
    at, tried = text.find("{"), 0
    while at >= 0 and tried < _STARTS:
        tried += 1
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, Mapping) and key in value:
                found = dict(value)
        at = text.find("{", end)
    return found
