"""What a script of a model judge needs: the texts that the prompt quotes, and the line that it asks for.

Example:
    >>> from whileai_kernel.testing import ScriptedModel
    >>> polite = ScriptedModel(lambda messages: verdict_line(messages, "PASS"))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whileai_kernel.messages import text_of

__all__ = ["quoted_block", "verdict_line"]

Prompt = str | Sequence[Mapping[str, Any]]
"""What a model judge is asked: the messages, or their text."""

_BLOCK = re.compile(r"<<<(?P<name>[A-Z]+) (?P<token>[0-9a-f]+)\n(?P<body>.*?)\n(?P=name) (?P=token)>>>", re.DOTALL)


def quoted_block(prompt: Prompt, name: str = "REPLY") -> str | None:
    """A text that a judge's prompt quotes (``REPLY``, ``CONVERSATION``, ``REFERENCE``, ``FIRST``, ``SECOND``)."""
    return next((m["body"] for m in _BLOCK.finditer(_text(prompt)) if m["name"] == name), None)


def verdict_line(prompt: Prompt, verdict: str) -> str:
    """An answer with the last line that the prompt asks for."""
    marker = re.findall(r"^(VERDICT [0-9a-f]+): \.\.\.$", _text(prompt), re.MULTILINE)
    return f"By the rule of the script.\n{marker[-1] if marker else 'VERDICT'}: {verdict}"


def _text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(text_of(message.get("content")) for message in prompt)
