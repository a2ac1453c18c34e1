"""Is there a credential, and where does it come from? Asked before the first request, because litellm answers a
missing key with an error of the kind that is worth a retry.

Example:
    >>> source_of(("ANTHROPIC_API_KEY",), {"ANTHROPIC_API_KEY": "sk-1"})
    'ANTHROPIC_API_KEY'
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["AWS", "source_of"]

AWS = (
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables from which AWS tools take credentials, besides their file."""


def source_of(names: Sequence[str], environ: Mapping[str, str] | None = None) -> str | None:
    """Return the name of the first variable that is set, for AWS also its credentials file; `None` when there is none.

    Args:
        names: Environment variables, in order.
        environ: The environment; `os.environ` by default.
    """
    environ = os.environ if environ is None else environ
    found = next((name for name in names if environ.get(name)), None)
    if found is None and tuple(names) == AWS:
        home = environ.get("HOME") or environ.get("USERPROFILE") or ""
        file = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path(home) / ".aws" / "credentials")
        return "the AWS credentials file" if file.is_file() else None
    return found
