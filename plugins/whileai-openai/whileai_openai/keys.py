"""API keys that say where they came from and nothing else.

Example:
    >>> Key("sk-secret", "OPENAI_API_KEY")
    Key(from OPENAI_API_KEY)
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from whileai_kernel.errors import SettingsError

__all__ = ["Key", "find_key", "redact"]


class Key:
    """A secret; its repr, str and pickle hold its source only."""

    __slots__ = ("_value", "source")

    def __init__(self, value: str, source: str) -> None:
        self._value, self.source = value, source

    def reveal(self) -> str:
        """Return the secret, for the request header."""
        return self._value

    def __repr__(self) -> str:
        return f"Key(from {self.source})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _from_env, (self.source,)


def _from_env(source: str) -> Key:
    value = os.environ.get(source)
    if not value:
        raise SettingsError(
            f"the key from {source} is not here", why="keys are never pickled", fix="set the environment variable"
        )
    return Key(value, source)


def find_key(given: str | None, names: Iterable[str], *, required: bool, who: str) -> Key | None:
    """Return the key given as an argument, else the first environment variable that is set.

    Args:
        given: Key from the call.
        names: Environment variables, in order.
        required: Whether a missing key is an error now, before any request.
        who: The model's id, for the error.

    Raises:
        SettingsError: No key, and one is required; or the key holds characters that no header carries.
    """
    names = list(names)
    found = Key(given, "the api_key argument") if given else None
    if found is None:
        found = next((Key(os.environ[n], n) for n in names if os.environ.get(n)), None)
    if found is None and required:
        raise SettingsError(
            f"{who} needs an API key",
            why=f"none was given and {' and '.join(names)} is not set",
            fix=f"export {names[0]}=..., or pass api_key=",
        )
    if found is not None and not (found.reveal().isascii() and found.reveal().isprintable()):
        raise SettingsError(
            f"the key from {found.source} holds a character that no header carries",
            why="usually a line end or a typographic quote from copying",
            fix="set it again",
        )
    return found


def redact(text: str, key: Key | None) -> str:
    """Return `text` without the key."""
    return text if key is None else text.replace(key.reveal(), "[key]")
