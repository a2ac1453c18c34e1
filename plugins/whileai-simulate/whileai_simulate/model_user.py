"""A simulated user on a model: goal, persona, patience, and a stop rule by structured decision.

The model is told what a person would know (`briefs`) and what was said aloud; the reasoning of the agent, its tool
calls and their results never reach it. It answers with a message and a decision. A decision to end does not count in
a turn that agrees to something or tells what was asked for, since the agent has yet to act on it. A reply that breaks
the part (see `user_faults`) is asked for again a few times, and then taken as it is, for `audit_user` to find. What the
model fails at is raised, and recorded as the user's failure.

Example:
    >>> from whileai_kernel.testing import ScriptedModel
    >>> ModelUser(ScriptedModel(['{"message": "A-17.", "agrees": false, "decision": "continue"}']))
    ModelUser('scripted')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from whileai_kernel.errors import ParameterError
from whileai_kernel.protocols import Model
from whileai_kernel.registry import resolve
from whileai_kernel.rows import content_id
from whileai_simulate.briefs import Brief, brief_of
from whileai_simulate.defaults import USER_MAX_TOKENS, USER_PATIENCE, USER_RETRIES
from whileai_simulate.prompts import DECISIONS, USER_SCHEMA, USER_TEMPLATE, user_messages
from whileai_simulate.replies import ReplyError, Spent, read_object, said
from whileai_simulate.user_faults import STOP_TOKENS, Talk, agrees, asks, asks_to_confirm

__all__ = ["ModelUser", "UserTalk"]

_LABELLED = re.compile(r"^\s*(?:user|customer|me|you)\s*:\s*", re.I)


class ModelUser:
    """A user on a model, for the argument `user` of `simulate`.

    Args:
        model: A model, or its spec, for example `openai:gpt-5-mini`.
        sampling: Sampling of every reply; `max_tokens` and `seed` are filled in where they are missing.
        persona: How every person is, instead of what the stance of the task suggests.
        patience: Answers before it gives up; by default the run's option, and the task's own wins.
        retries: Further requests for a message that cannot be used.
        deadline_s: Seconds for one reply; by default the model's own.
        structured: Ask for JSON by a schema; by default where the model's `capabilities` have `json_schema`.
        seeded: Send a seed of the rollout, so that a server that honours seeds repeats itself.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        sampling: Mapping[str, Any] | None = None,
        persona: str | None = None,
        patience: int | None = None,
        retries: int = USER_RETRIES.value,
        deadline_s: float | None = None,
        structured: bool | None = None,
        seeded: bool = True,
    ) -> None:
        self.model: Any = resolve("models", model)
        if not callable(getattr(self.model, "complete", None)):
            raise ParameterError(
                f"{type(self.model).__name__} is not a model", why="a user calls model.complete(messages)",
                fix="pass user='scripted', a model, or a spec such as 'openai:<model>'",
            )  # fmt: skip
        if patience is not None and (isinstance(patience, bool) or not isinstance(patience, int) or patience < 1):
            raise ParameterError(f"patience must be a whole number from 1, not {patience!r}", fix="pass patience=4")
        self.sampling = {
            "max_tokens": USER_MAX_TOKENS.value, **dict(getattr(self.model, "sampling", None) or {}), **(sampling or {})
        }  # fmt: skip
        self.persona, self.patience, self.retries, self.deadline_s = persona, patience, retries, deadline_s
        self.structured = "json_schema" in getattr(self.model, "capabilities", ()) if structured is None else structured
        self.seeded = seeded

    def __repr__(self) -> str:
        return f"ModelUser({self.model.id!r})"

    @property
    def version(self) -> str:
        """Hash of what shapes its words: the prompt, the model, its sampling and the arguments."""
        own = [self.persona, self.patience, self.retries, self.structured, self.seeded]
        return content_id("user", USER_TEMPLATE, self.model.id, self.sampling, own)

    def start(self, task: Mapping[str, Any], seed: int, patience: int = USER_PATIENCE.value) -> UserTalk:
        """Return the user of one rollout.

        Args:
            task: The task; `briefs.brief_of` says what of it is read.
            seed: Seed of the rollout.
            patience: The run's patience.
        """
        return UserTalk(self, brief_of(task), seed, patience)


class UserTalk:
    """The user of one rollout.

    Attributes:
        ended_by: Why it ended the talk: `user_stop`, `user_gave_up` or `patience`.
        spent: What its model was asked for.
    """

    def __init__(self, user: ModelUser, brief: Brief, seed: int, patience: int) -> None:
        if user.persona is not None:
            brief = Brief(**{**{n: getattr(brief, n) for n in Brief.__slots__}, "persona": user.persona})
        self.user, self.seed = user, seed
        self.patience = brief.patience or user.patience or patience
        self.talk = Talk(brief)
        self.lines: list[tuple[str, str]] = [("you", brief.ask)]
        self.spent = Spent()
        self.decisions: list[str] = []
        self.retried = self.held = 0
        self.closing = ""
        self.ended_by = "user_stop"

    def record(self) -> dict[str, Any]:
        """Return who the user was and what it spent, for the row; the agent's usage stands apart."""
        out: dict[str, Any] = {
            "kind": "model",
            "model": self.user.model.id,
            "version": self.user.version,
            "said": len(self.talk.said),
            "decisions": list(self.decisions),
            "held": self.held,
            "retried": self.retried,
            "usage": self.spent.to_dict(),
        }
        return {**out, "closing": self.closing} if self.closing else out

    async def reply(self, spoken: str) -> str | None:
        """Return what the person says next, or `None` when the talk is over (see `ended_by`).

        Args:
            spoken: What the agent said aloud.

        Raises:
            ReplyError: No reply of the model can be used.
            Exception: Whatever the model raises.
        """
        self.talk.heard.append(spoken)
        self.lines.append(("assistant", spoken))
        if len(self.talk.said) >= self.patience:
            self.ended_by = "patience"
            self.decisions.append("give_up")
            return None
        message, decision, agreed = await self._turn()
        if decision != "continue" and self._must_wait(message, agreed, spoken):
            self.held += 1
            decision = "continue"
        self.decisions.append(decision)
        if decision != "continue":
            self.closing = message
            self.ended_by = "user_stop" if decision == "done" else "user_gave_up"
            return None
        self.talk.said.append(message)
        self.lines.append(("you", message))
        return message

    def _must_wait(self, message: str, agreed: bool, spoken: str) -> bool:
        """Whether the agent has to get the turn after this message: it agrees, or it tells what was asked for."""
        if not message:
            return False
        if (agreed and asks(spoken)) or (agrees(message) and asks_to_confirm(spoken)):
            return True
        told = message.casefold()
        return asks(spoken) and any(
            len(str(v)) > 2 and str(v).casefold() in told for v in self.talk.brief.facts.values()
        )

    async def _turn(self) -> tuple[str, str, bool]:
        """Ask for a message until one can be used; the last one is taken as it is, when it is one at all."""
        notes: list[str] = []
        best: tuple[str, str, bool] | None = None
        for attempt in range(self.user.retries + 1):
            reply = await self._ask(notes, attempt)
            self.spent.add(reply)
            try:
                found = _read(said(reply), last=attempt == self.user.retries)
            except ReplyError as err:
                notes = [err.what]
            else:
                best = found
                notes = self._wrong(found)
                if not notes:
                    return found
            self.retried += attempt < self.user.retries
        if best is None or not (best[0] or best[1] != "continue"):
            raise ReplyError(
                "no reply of the user's model can be used", why=notes[0],
                fix="use a model that follows instructions, or raise max_tokens",
            )  # fmt: skip
        return best

    def _wrong(self, found: tuple[str, str, bool]) -> list[str]:
        message, decision, _ = found
        if decision != "continue" and not message:
            return []
        return [why for _, why in self.talk.faults(message)]

    async def _ask(self, notes: list[str], attempt: int) -> Any:
        sampling = dict(self.user.sampling)
        if self.user.seeded:
            sampling.setdefault("seed", (self.seed + len(self.lines) * 8 + attempt) % 2**31)
        options: dict[str, Any] = {"schema": USER_SCHEMA} if self.user.structured else {}
        if self.user.deadline_s is not None:
            options["deadline_s"] = self.user.deadline_s
        return await self.user.model.complete(
            user_messages(self.talk.brief, self.lines, notes), (), sampling, **options
        )


def _read(text: str, last: bool) -> tuple[str, str, bool]:
    """Return message, decision and whether it agrees.

    Plain text is a message of a model that cannot write JSON; it is taken when there is no further attempt, and it
    never ends a talk.
    """
    value = read_object(text, "message")
    if value is None:
        if not last or text.lstrip().startswith(("{", "[", "```")):
            raise ReplyError("it is not the JSON object that was asked for")
        value = {"message": text}
    message = value.get("message")
    decision = str(value.get("decision") or "continue").strip().lower()
    if not isinstance(message, str):
        message = ""
    if decision not in DECISIONS:
        raise ReplyError(f"the decision {decision[:30]!r} is none of {', '.join(DECISIONS)}")
    message = STOP_TOKENS.sub("", _LABELLED.sub("", message)).strip()
    return message, decision, value.get("agrees") is True
