"""Which conversation a request belongs to, and the row that a conversation is.

A program sends the whole conversation with each request. A request whose messages begin with all of an earlier
conversation (up to its last reply) continues it. One that shares with an earlier conversation at least one reply, and
then differs, is a branch: a row of its own that names the row that it left, and where. Everything else begins a
conversation. Messages are compared by what they say (role, spoken text, calls with decoded arguments, ids), since
programs write them back in other ways: a null for an empty text, other spaces in the arguments. What stands on the row
is the reply as the model gave it.

Example:
    >>> book = Book()
    >>> ask = [{"role": "user", "content": "hi"}]
    >>> first = book.land(ask, {"role": "assistant", "content": "yes?"})
    >>> more = [*ask, {"role": "assistant", "content": "yes?"}, {"role": "user", "content": "bye"}]
    >>> book.land(more, {"role": "assistant", "content": "bye"}) is first, len(first.messages)
    (True, 4)
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.messages import Message, parse_arguments, spoken_text, text_of

__all__ = ["Book", "Conversation", "said"]

Chain = list[bytes]


def said(message: Mapping[str, Any]) -> list[Any]:
    """Return what a message says, as values that are equal for equal messages."""
    role = message.get("role")
    text = text_of(message.get("content"))
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = function.get("arguments")
        decoded = parse_arguments(arguments)
        calls.append([call.get("id") or "", function.get("name"), arguments if decoded is None else decoded])
    return [
        "system" if role == "developer" else role,
        (spoken_text(text) if role == "assistant" else text).strip(),
        calls,
        message.get("tool_call_id") or "",
        message.get("content_parts") or [],
    ]


def _chain(messages: Sequence[Mapping[str, Any]], before: bytes = b"") -> Chain:
    """Return a digest of each prefix of a conversation."""
    out = []
    for message in messages:
        text = json.dumps(said(message), sort_keys=True)
        before = hashlib.sha256(before + text.encode("ascii")).digest()[:16]
        out.append(before)
    return out


@dataclass(eq=False)
class Conversation:
    """One conversation: what was said, and what the model's replies came with.

    Attributes:
        messages: All messages, replies as the model gave them.
        number: Number of the conversation within its book, from 0.
        branch: The conversation that this one left, and after how many messages; `None` when it left none.
        replies: Per reply: position of its message, and the `Completion`.
        shared_replies: How many of them, the first ones, a branch has from the conversation that it left.
        requests: Requests of the program that belong here, failed ones included.
        failures: Those that failed.
        error: Error of the last request, or `None`.
        extra: What the owner of the book keeps with it.
    """

    messages: list[Message]
    number: int
    branch: tuple[Conversation, int] | None = None
    replies: list[tuple[int, Any]] = field(default_factory=list)
    shared_replies: int = 0
    requests: int = 0
    failures: int = 0
    error: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    chain: Chain = field(default_factory=list)


class Book:
    """The conversations of one rollout, or of all programs that name none.

    Args:
        limit: Conversations that are remembered, the latest ones; `None` for all.
        one_rollout: All belong to one rollout, so that the very same request again is a branch, and not another try of
            the same task.
    """

    def __init__(self, limit: int | None = None, one_rollout: bool = False) -> None:
        self.limit, self.one_rollout, self.count = limit, one_rollout, 0
        self.open: OrderedDict[int, Conversation] = OrderedDict()
        self._tips: dict[bytes, list[Conversation]] = {}
        self._prefixes: dict[bytes, Conversation] = {}

    def land(
        self,
        asked: Sequence[Message],
        reply: Message | None,
        completion: Any = None,
        error: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Take in a request with its reply, or with the error that came instead; return its conversation."""
        chain = _chain(asked)
        found = self._continued(chain) or self._begun(asked, chain)
        self._forget_tip(found)
        known = len(found.chain)
        found.messages += [dict(m) for m in asked[len(found.messages) :]]
        found.chain += chain[len(found.chain) :]
        found.requests += 1
        if reply is None:
            found.failures += 1
            found.error = dict(error or {})
        else:
            found.error = None
            found.replies.append((len(found.messages), completion))
            found.chain += _chain([reply], found.chain[-1] if found.chain else b"")
            found.messages.append(dict(reply))
        for prefix in found.chain[known:]:
            self._prefixes.setdefault(prefix, found)
        self._tips.setdefault(found.chain[-1], []).append(found)
        self.open[found.number] = found
        self.open.move_to_end(found.number)
        self._shrink()
        return found

    def _continued(self, chain: Chain) -> Conversation | None:
        for prefix in reversed(chain):
            if self._tips.get(prefix):
                return self._tips[prefix][0]
        return None

    def _begun(self, asked: Sequence[Message], chain: Chain) -> Conversation:
        new = Conversation([], self.count)
        self.count += 1
        for length in range(len(chain), 0, -1):
            root = self._prefixes.get(chain[length - 1])
            if root is not None:
                shared = [reply for reply in root.replies if reply[0] < length]
                again = self.one_rollout and length == len(asked)
                if shared or again:  # a shared prompt alone is another try of the same task
                    new.branch = (root, length)
                    new.messages = [dict(m) for m in root.messages[:length]]
                    new.chain = chain[:length]
                    new.replies, new.shared_replies = shared, len(shared)
                break
        return new

    def _forget_tip(self, found: Conversation) -> None:
        if found.chain and found in self._tips.get(found.chain[-1], ()):
            self._tips[found.chain[-1]].remove(found)
            if not self._tips[found.chain[-1]]:
                del self._tips[found.chain[-1]]

    def _shrink(self) -> None:
        while self.limit is not None and len(self.open) > self.limit:
            _, old = self.open.popitem(last=False)
            self._forget_tip(old)
            for prefix in old.chain:
                if self._prefixes.get(prefix) is old:
                    del self._prefixes[prefix]
