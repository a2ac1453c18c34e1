"""What the agent was shown, and what it said at the end.

Shown is everything in the row that the agent did not write: the system prompt, the user's turns and the tools'
results. Arguments of tool calls are the agent's own words and do not count.

Example:
    >>> shown({"prompt": "Order 7?", "messages": [{"role": "tool", "content": "shipped"}]})
    ['Order 7?', 'shipped']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_kernel.messages import spoken_text, text_of

_WRITTEN_BY_OTHERS = ("system", "developer", "user", "tool")


def shown(row: Mapping[str, Any]) -> list[str]:
    """The texts that the agent read, in order, without repeats and without empty ones."""
    texts = [text_of(row.get("system_prompt")), text_of(row.get("prompt"))]
    for message in row.get("messages") or ():
        if isinstance(message, Mapping) and message.get("role") in _WRITTEN_BY_OTHERS:
            texts.append(text_of(message.get("content")))
    return list(dict.fromkeys(text for text in texts if text))


def said(row: Mapping[str, Any]) -> str:
    """The last reply without its reasoning; empty when there is none."""
    text = row.get("final_text")
    return (spoken_text(text) or "") if isinstance(text, str) else ""
