"""Settings of the kernel, read from the environment once per call and never at import.

Example:
    >>> Settings.from_env({"WHILEAI_PLUGINS": "verify, measure"}).plugins
    ('verify', 'measure')
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from whileai_kernel.errors import SettingsError

__all__ = ["Settings"]

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower()
    if text not in _TRUE + _FALSE:
        raise SettingsError(f"{name}={env[name]!r} is neither on nor off", fix=f"set {name}=1 or {name}=0, or unset it")
    return text in _TRUE


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says.

    Attributes:
        plugins: Names from `WHILEAI_PLUGINS` (comma-separated): only these plugins are loaded; an empty value
            loads none. `None` when the variable is not set: all are loaded.
        strict_plugins: `WHILEAI_STRICT_PLUGINS`: a plugin that fails raises instead of being recorded.
    """

    plugins: tuple[str, ...] | None = None
    strict_plugins: bool = False

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the settings.

        Args:
            env: The environment; `os.environ` by default.

        Raises:
            SettingsError: A variable has a value that cannot be used.
        """
        env = os.environ if env is None else env
        names = env.get("WHILEAI_PLUGINS")
        plugins = None if names is None else tuple(n.strip() for n in names.split(",") if n.strip())
        return cls(plugins=plugins, strict_plugins=_flag(env, "WHILEAI_STRICT_PLUGINS"))
