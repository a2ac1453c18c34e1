"""What litellm raises, as one error with a kind; no text of it holds a secret.

The kinds are those of every model plugin, and so are the attributes: an engine reads `permanent`, a ledger `attempts`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from whileai_kernel.errors import ModelError

__all__ = ["ModelError", "from_exception", "redact", "secrets_of"]

_CONTEXT = re.compile(r"context[ _](?:length|size|window)|maximum context|too many tokens|prompt is too long", re.I)
_TOOLS = re.compile(r"\btools?\b.*(not support|unsupported|not enabled|requires)|tool[- _]choice.*requires", re.I)
_BROKEN = re.compile(
    r"json|expecting |invalid response object|empty or invalid response|'choices' that is not|no choices|no message",
    re.IGNORECASE,
)
_LINE = re.compile(r"connect|disconnect|payload is not completed|incomplete|timed out|reset by peer|broken pipe", re.I)
_PREFIX = re.compile(r"^(?:litellm\.)?\w+(?:Error|Timeout)?: (?:(?:litellm\.)?\w+: )*(?:\w+Exception - )?")
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
_TEXT_LIMIT = 500  # characters of a provider's message that are kept
_SHORTEST_SECRET = 8  # a shorter value is a word that texts hold anyway


def secrets_of(given: str | None, environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the texts that no message may hold: the key that was given, and what the environment calls a secret.

    Example:
        >>> secrets_of("sk-given-1", {"OPENAI_API_KEY": "sk-2-secret", "HOME": "/home/me"})
        ['sk-2-secret', 'sk-given-1']
    """
    environ = os.environ if environ is None else environ
    found = {v for k, v in environ.items() if _SECRET.search(k.upper()) and len(v) >= _SHORTEST_SECRET}
    return sorted(found | ({given} if given else set()), key=lambda s: (-len(s), s))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def from_exception(err: BaseException, who: str, secrets: Iterable[str]) -> ModelError:
    """Return the error of an exception that litellm raised.

    Args:
        err: The exception.
        who: The model's id.
        secrets: Texts that the message may not hold.
    """
    name = type(err).__name__
    status = getattr(err, "status_code", None)
    status = status if isinstance(status, int) else None
    text = str(getattr(err, "message", None) or err)
    text = redact(_PREFIX.sub("", text.partition("Traceback (most")[0]).strip()[:_TEXT_LIMIT], secrets)
    kind, fix = _kind(name, status, text, str(_code(err)))
    shown = f"{who} answered {status}" if status is not None and kind not in ("connection", "malformed") else who
    what = {
        "connection": f"{who} could not be reached",
        "malformed": f"{who} sent no completion",
        "timeout": f"{who} timed out",
    }.get(kind, shown if shown != who else f"{who} failed")
    return ModelError(what, text or name, fix, kind=kind, status_code=status, retry_after=_retry_after(err))


def _code(err: BaseException) -> Any:
    body = getattr(err, "body", None)
    return body.get("code") or body.get("type") if isinstance(body, Mapping) else getattr(err, "code", None)


def _kind(name: str, status: int | None, text: str, code: str) -> tuple[str, str]:
    if name in ("AuthenticationError", "PermissionDeniedError") or status in (401, 403):
        return "auth", "check the API key and what it may use"
    if "insufficient_quota" in f"{code} {text}" or name in ("BudgetExceededError", "PaymentRequiredError"):
        return "quota", "the account has no credit left"
    if name in ("NotFoundError", "LiteLLMUnknownProvider") or status == 404 or "LLM Provider NOT provided" in text:
        return "not_found", "check the model name: it is <provider>/<model> as litellm spells it"
    if name == "ContextWindowExceededError" or status == 413 or (status == 400 and _CONTEXT.search(text)):
        return "context_length", "shorten the conversation, or lower max_tokens"
    if (name == "UnsupportedParamsError" and "tool" in text.lower()) or (status in (400, 422) and _TOOLS.search(text)):
        return "no_tools", "this model takes no tools: use one that has tool calling"
    if status == 429 or name == "RateLimitError":
        return "rate_limited", "lower the concurrency"
    if status in (400, 422):
        return "bad_request", "read the provider's message; the request is not retried"
    if _BROKEN.search(text) or name in ("TypeError", "KeyError", "AttributeError", "IndexError", "ValueError"):
        return "malformed", "try again later, or check the URL"
    if name in ("APIConnectionError", "ConnectionError", "OSError") or _LINE.search(text):
        return "connection", "check the network, and that the provider's URL is right"
    if status is None or status >= 500 or status in (408, 409, 425):
        return "server", "try again later"
    return "bad_request", "read the provider's message; the request is not retried"


def _retry_after(err: BaseException) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    places = (getattr(err, "response", None), err)
    for headers in (
        *(getattr(place, "headers", None) for place in places),
        getattr(err, "litellm_response_headers", None),
    ):
        if not isinstance(headers, Mapping):
            continue
        lower = {str(k).lower(): str(v) for k, v in headers.items()}
        given = lower.get("retry-after")
        try:
            if "retry-after-ms" in lower:
                return max(0.0, float(lower["retry-after-ms"]) / 1000.0)
            if given is None:
                continue
            if given.strip().replace(".", "", 1).isdigit():
                return float(given)
            when = parsedate_to_datetime(given)
            when = when if when.tzinfo else when.replace(tzinfo=UTC)
            return max(0.0, (when - datetime.now(UTC)).total_seconds())
        except (TypeError, ValueError):
            return None  # an unreadable header is as good as none: the ordinary back-off applies
    return None
