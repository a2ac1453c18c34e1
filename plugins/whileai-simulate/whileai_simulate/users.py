"""A scripted user for conversations of several turns: has a goal, patience, and a stop rule.

It answers questions from what the person of the task knows, confirms what it asked for, and ends the talk when the
agent reports without asking. Agreeing to an action is not the end: the agent always gets the turn after a yes.
Hidden reasoning never reaches it: the engine hands over what was said, not what was thought.

Example:
    >>> user = ScriptedUser({"email": "ana@example.com"}, agree=True)
    >>> user.reply("What is your email?"), user.reply("Shall I cancel it? (yes/no)"), user.reply("Done.")
    ('My email is ana@example.com.', 'Yes, please go ahead.', None)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_kernel.errors import WhileaiError
from whileai_simulate.defaults import USER_PATIENCE
from whileai_simulate.lexicon import label, words_of
from whileai_simulate.scenes import ACTING
from whileai_simulate.stopping import Stop

__all__ = ["ScriptedUser", "UserFailure", "ask_user", "make_user"]

_CONFIRM = re.compile(
    r"\b(confirm|shall i|should i|do you want|would you like|proceed|go ahead|yes/no|is that (ok|right|correct)|"
    r"are you sure)\b",
    re.I,
)
_ASKS = re.compile(r"\?|\bplease (provide|tell|share|give|send)\b|\bcould you (provide|tell|share|give)\b", re.I)


@dataclass(frozen=True, slots=True)
class UserFailure:
    """A user that did not answer: its own failure, never the agent's (`error["by"]` is `user`)."""

    error: dict[str, Any]

    @classmethod
    def of(cls, err: BaseException) -> UserFailure:
        """Return the failure of an exception."""
        text = f"{err.what}{f' ({err.why})' if err.why else ''}" if isinstance(err, WhileaiError) else str(err)
        error: dict[str, Any] = {"type": type(err).__name__, "message": f"the simulated user: {text}"[:2000]}
        error["by"] = "user"
        if getattr(err, "permanent", False) is True:
            error["permanent"] = True
        return cls(error)


def ask_user(user: Any, spoken: str) -> Any:
    """Return what a user says to `spoken`: text, `None` at the end, a `UserFailure`, or an awaitable of these."""
    try:
        answer = user.reply(spoken)
    except Stop:
        raise
    except Exception as err:  # noqa: BLE001 - whatever the user raises is recorded as its failure
        return UserFailure.of(err)
    return _awaited(answer) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except Stop:
        raise
    except Exception as err:  # noqa: BLE001 - as above
        return UserFailure.of(err)


class ScriptedUser:
    """Answers from known facts.

    Args:
        facts: What the person can tell, by field name.
        agree: Whether the person says yes when asked to confirm.
        patience: Answers before it gives up.
    """

    def __init__(self, facts: Mapping[str, Any], agree: bool, patience: int = USER_PATIENCE.value) -> None:
        self.facts = dict(facts)
        self.agree, self.patience = agree, patience
        self.said = 0
        self.ended_by = "user_stop"
        self.decisions: list[str] = []

    def record(self) -> dict[str, Any]:
        """Return who the user was, for the row."""
        return {"kind": "scripted", "said": self.said, "decisions": list(self.decisions)}

    def reply(self, spoken: str) -> str | None:
        """Return what the person says next, or `None` when the talk is over (see `ended_by`)."""
        if not _ASKS.search(spoken) and not _CONFIRM.search(spoken):
            self.ended_by = "user_stop"
            self.decisions.append("done")
            return None
        if self.said >= self.patience:
            self.ended_by = "patience"
            self.decisions.append("give_up")
            return None
        self.said += 1
        self.decisions.append("continue")
        wanted = self._asked_for(spoken)
        if wanted:
            return " ".join(
                f"My {label(k)} is {self.facts[k]}." if not k.startswith("the ") else f"{k} is {self.facts[k]}."
                for k in wanted
            )
        if _CONFIRM.search(spoken):
            return "Yes, please go ahead." if self.agree else "No, please don't change anything."
        return "That's all I can tell you."

    def _asked_for(self, spoken: str) -> list[str]:
        heard = set(words_of(spoken))
        found = []
        for name in self.facts:
            words = [w for w in words_of(name) if w not in ("id", "first", "last", "1", "2")] or words_of(name)
            if words and all(w in heard for w in words):
                found.append(name)
        if "name" in heard and "first_name" in self.facts:
            found += [n for n in ("first_name", "last_name") if n not in found]
        return found[:4]


def make_user(task: Mapping[str, Any], index: int, patience: int = USER_PATIENCE.value) -> ScriptedUser:
    """Return the user of a task: facts from its plan, agreement from its stance."""
    private = task.get("privileged") or {}
    facts = dict((private.get("user") or {}).get("facts") or private.get("person") or {})
    for step in private.get("plan", ()):
        facts.update({k: v for k, v in step["arguments"].items() if isinstance(v, str | int | float)})
    agree = str(task.get("axes", {}).get("stance", "ordinary")) in ACTING
    return ScriptedUser(facts, agree, patience)
