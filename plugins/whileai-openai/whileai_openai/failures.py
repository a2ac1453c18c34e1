"""What can go wrong between a request and a reply, as one error with a kind.

`transient` failures are retried by the client, and by nobody else; `permanent` ones (a wrong key, a model that does
not exist) fail every further call of the same model at once, without a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import ModelError, WhileaiError

__all__ = ["BudgetError", "ModelError", "from_status"]

_CONTEXT = re.compile(r"context[ _](?:length|size|window)|maximum context|too many tokens|prompt is too long", re.I)
_TOOLS = re.compile(r"\btools?\b.*(not support|unsupported|not enabled|requires)|tool[- _]choice.*requires", re.I)
_TEXT_LIMIT = 500  # characters of a server's message that are kept


class BudgetError(WhileaiError, RuntimeError):
    """A call was not made because it could pass a ceiling."""


def from_status(status: int, payload: Any, text: str, headers: Mapping[str, str], who: str) -> ModelError:
    """Return the error of a reply that is no completion.

    Args:
        status: HTTP status.
        payload: The decoded body, or `None` when it is not JSON.
        text: The body as text, with the key removed.
        headers: Reply headers.
        who: The model's id.
    """
    inner = payload.get("error", payload) if isinstance(payload, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner)}
    message = str(inner.get("message") or text or "no message")[:_TEXT_LIMIT]
    code = str(inner.get("code") or inner.get("type") or "")
    kind, fix = _kind(status, code, message)
    return ModelError(
        f"{who} answered {status}",
        why=message,
        fix=fix,
        kind=kind,
        status_code=status,
        retry_after=_retry_after(headers),
    )


def _kind(status: int, code: str, message: str) -> tuple[str, str]:
    if status in (401, 403):
        return "auth", "check the API key and what it may use"
    if "insufficient_quota" in code:
        return "quota", "the account has no credit left"
    if status == 404:
        return "not_found", "check the model name and the base URL (it usually ends in /v1)"
    if status == 413 or code == "context_length_exceeded" or (status == 400 and _CONTEXT.search(message)):
        return "context_length", "shorten the conversation, or lower max_tokens"
    if status in (400, 422) and _TOOLS.search(message):
        return "no_tools", "this server refuses tools: start it with tool calling on, or use a model that has it"
    if status == 429:
        return "rate_limited", "lower the concurrency, or set requests_per_minute"
    if status in (408, 409, 425) or status >= 500:
        return "server", "try again later"
    return "bad_request", "read the server's message; the request is not retried"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    milliseconds, given = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000.0)
        if given is None:
            return None
        if given.strip().replace(".", "", 1).isdigit():
            return float(given)
        when = parsedate_to_datetime(given)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None  # an unreadable header is as good as none: the ordinary back-off applies
