"""Rules that say when a simulated user did not play its part, one message or one row at a time.

Each rule is stated in `FAULTS` and looks at what was said; none asks a model. The same rules hold a model user to its
part while a talk goes on (without the ones that need to know what the person cannot know) and audit rows afterwards.

Example:
    >>> from whileai_simulate.briefs import Brief
    >>> talk = Talk(Brief("Cancel order A-17.", "", "", ()))
    >>> [kind for kind, _ in talk.faults("How can I help you today?")]
    ['wrong_role']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from whileai_kernel.messages import spoken_text, text_of
from whileai_simulate.briefs import Brief, brief_of, ids_in, named
from whileai_simulate.dedup import shingles
from whileai_simulate.defaults import LEAK_NGRAM, USER_REPEAT, USER_REPEAT_WORDS
from whileai_simulate.lexicon import READ_VERBS, WRITE_VERBS, words_of

__all__ = [
    "DECISIVE",
    "FAULTS",
    "STOP_TOKENS",
    "Talk",
    "UserFault",
    "agrees",
    "asks",
    "asks_to_confirm",
    "speaks_as_other",
    "talk_of",
    "user_faults",
]

FAULTS: dict[str, str] = {
    "error": "its model failed, or gave nothing that can be read",
    "empty": "it said nothing",
    "wrong_role": "it spoke as the assistant, as a narrator, or about the rules of its part",
    "off_goal": "it asked for, or agreed to, what its goal excludes",
    "leaked": "it said what it cannot know: tool results, records, labels, the system prompt or hidden reasoning",
    "contradicts": "it contradicted its facts, or invented an id",
    "left_agreeing": "it agreed to an action and ended the talk in the same turn",
    "left_asked": "it ended the talk on a question that it could have answered",
    "gave_up": "it gave up although the assistant was on track",
    "repeats": "it repeated itself although it was asked something else",
}
"""Faults of a simulated user, with the rule in words."""

DECISIVE = frozenset(FAULTS) - {"repeats"}
"""Faults that can cost the agent its success."""

_CONFIRM = re.compile(
    r"\b(confirm|shall i|should i|do you want me|would you like(?: me)? to|may i|"
    r"can i (?:go ahead|proceed)|proceed|go ahead|"
    r"yes/no|is that (?:ok|okay|right|correct)|are you sure)\b",
    re.I,
)
_ASKS = re.compile(
    r"\?|\bplease (?:provide|tell|share|give|send|confirm|let me know)\b|"
    r"\b(?:could|can) you (?:provide|tell|share|give)\b",
    re.I,
)
_CLOSING_QUESTION = re.compile(
    r"\b(?:anything|something|what) else\b[^?]*\?|\bhow (?:else )?(?:can|may) i (?:help|assist)\b|"
    r"\b(?:do you (?:have|need)|is there|are there)\b[^?.]{0,30}\b(?:questions?|help|assistance)\b[^?]*\?",
    re.I,
)
_YES = re.compile(
    r"^\W*(?:ok(?:ay)?\W+)?(?:yes|yep|yeah|yup|sure|correct|absolutely|of course|agreed|confirmed|i agree|i confirm|"
    r"please (?:do|go ahead|proceed)|go ahead|do it|that's (?:right|fine|correct)|sounds good|fine by me)\b",
    re.I,
)
_GO = re.compile(
    r"\b(?:go ahead|please proceed|please do(?: it| so)?\b|you (?:may|can) proceed|i (?:agree|confirm))", re.I
)
_NO = re.compile(
    r"\b(?:no|not|don'?t|do not|never|won'?t|wouldn'?t|rather not|hold on|wait|before (?:i|you)|neither|nor|"
    r"haven'?t|isn'?t|cannot|can'?t)\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"\W*(?:but|though|only|just|please|actually|no)?\W*(?:don'?t|do not|wait|hold on|not (?:yet|now|today))\b", re.I
)
_AGENT_VOICE = re.compile(
    r"\bhow (?:can|may) i (?:help|assist) you\b|\banything else i can (?:help|assist)\b|\bas an ai\b|"
    r"\bi(?:'m| am) (?:an ai|a language model|here to (?:help|assist))\b|\b"
    r"my (?:system )?(?:prompt|instructions) (?:say|tell)|"
    r"\b(?:let me|i'?ll|i will|i can) (?:look (?:that|this|it) up|check (?:that|this|it)|pull (?:that|it) up|"
    r"look into (?:that|this|it))\b for you\b|\bi(?:'ve| have) (?:just |now |successfully )*"
    r"(?:cancel+ed|updated|processed|refunded|changed|booked|created|removed|returned|modified) your\b|"
    r"\bthank you for (?:contacting|reaching out)\b|"
    r"\b(?:could|can|may) (?:you|i) (?:please )?(?:provide|have|share) (?:me )?(?:with )?your\b",
    re.I,
)
_NARRATOR = re.compile(
    r"^\s*(?:user|customer|human|assistant|agent|me|system|you)\s*:|\*"
    r"(?:sighs|pauses|waits|nods|shrugs|smiles|laughs|types|hangs up|"
    r"leaves|frowns|[a-z]+(?:s|ing) [^*\n]{2,60})\*|"
    r"^\s*[\[(](?:the |user|customer|sighs|pauses|waits|end)[^\])]*[\])]|"
    r"\bthe (?:simulated )?(?:user|customer) (?:says|replies|responds|is|wants|would)\b|"
    r"#{2,}\s*\w+|<\|?/?(?:tool_call|think|im_start|im_end|stop|end)\b|^\s*[{\[]\s*\"|"
    r"\bas (?:the|a) (?:simulated )?"
    r"(?:user|customer), i\b|\b(?:playing|in) (?:the|my) (?:role|part) of\b|\bmy persona\b|\bmy goal is excluded\b",
    re.I | re.M,
)
_AGAIN = re.compile(r"\b(?:again|repeat|once more|didn'?t (?:get|catch|receive)|resend|re-?enter|still need)\b", re.I)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
_REQUEST = re.compile(r"\b(?:please|can you|could you|would you|i want|i'?d like|i need|also|instead|and then)\b", re.I)
_LABELS = re.compile(
    r"\b(?:already_acted|world_state|tool_condition|policy_rule|rate_limited|permission_denied|prior_failure|"
    r"prior_partial|contradicts_earlier|repeat_visit|faults_fired|privileged|subgoals?|test case|ground truth)\b",
    re.I,
)
STOP_TOKENS = re.compile(r"#{2,}\s*(?:STOP|TRANSFER|OUT-OF-SCOPE)[^#\n]*#*|<\|?(?:stop|end)\|?>", re.I)


def asks(spoken: str) -> bool:
    """Whether an assistant's words ask something that wants an answer; "anything else?" does not."""
    return bool(_ASKS.search(_CLOSING_QUESTION.sub(" ", spoken)))


def asks_to_confirm(spoken: str) -> bool:
    """Whether an assistant's words ask for a yes."""
    return asks(spoken) and bool(_CONFIRM.search(spoken))


def agrees(message: str) -> bool:
    """Whether a person's words agree to an action.

    Example:
        >>> agrees("Yes, please go ahead."), agrees("Yes, but don't change it yet."), agrees("No, thanks.")
        (True, False, False)
    """
    agreed = False
    for sentence in re.split(r"(?<=[.!?;])\s+|\n", message.strip()):
        if _TAKEN_BACK.match(sentence):
            return False
        agreed |= bool((_YES.search(sentence) or _GO.search(sentence)) and not _NO.search(sentence))
    return agreed


def _only_looks(spoken: str) -> bool:
    """Whether what an assistant asks leave for is to look at something, which changes nothing."""
    asked = " ".join(s for s in re.split(r"(?<=[.!?])\s+|\n", spoken) if "?" in s or _CONFIRM.search(s))
    heard = set(words_of(asked.casefold()))
    return bool(heard & READ_VERBS) and not heard & WRITE_VERBS


def speaks_as_other(message: str) -> str | None:
    """Return how a message speaks as the assistant or as a narrator, or `None` when a person could have typed it."""
    for look, who in ((_AGENT_VOICE, "the assistant"), (_NARRATOR, "a narrator")):
        match = look.search(message)
        if match:
            return f"it speaks as {who}: {match.group().strip()[:60]!r}"
    return None


@lru_cache(maxsize=256)
def _folded(text: str) -> str:
    """Return the words of a text as near-duplicates see them, between blanks."""
    return f" {next(iter(shingles(text, 1 << 30)))} "


def _similar(a: str, b: str) -> float:
    left, right = shingles(a), shingles(b)
    return len(left & right) / len(left | right) if left | right else 1.0


@dataclass(slots=True)
class Talk:
    """What was said so far, as a person heard it, and rules on what they say next.

    Attributes:
        brief: The part.
        heard: What the assistant said, spoken text alone.
        said: What the person said after the first message.
        hidden: What the person cannot know, as text; empty while a talk goes on.
        secret_prose: Prose that the person cannot know (system prompt, reasoning).
        tools: Tools of the agent, as OpenAI dicts.
        planned: Tools that the goal needs, where that is known.
    """

    brief: Brief
    heard: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    hidden: str = ""
    secret_prose: list[str] = field(default_factory=list)
    tools: Sequence[Mapping[str, Any]] = ()
    planned: frozenset[str] | None = None

    def faults(self, message: str) -> list[tuple[str, str]]:
        """Return `(fault, why)` of a message that answers what was heard last."""
        if not message.strip():
            return [("empty", "the message is empty")]
        rules = (self._role, self._goal, self._leaks, self._facts, self._repeats)
        return [found for rule in rules for found in rule(message)]

    def _role(self, message: str) -> Iterator[tuple[str, str]]:
        who = speaks_as_other(message)
        if who:
            yield "wrong_role", who

    def _goal(self, message: str) -> Iterator[tuple[str, str]]:
        last = self.heard[-1] if self.heard else ""
        if not self.brief.agree and agrees(message) and asks_to_confirm(last) and not _only_looks(last):
            yield "off_goal", "it agreed to a change that it does not want"
        elif self.planned is not None and agrees(message) and asks_to_confirm(last):
            named_in = set(words_of(last.casefold()))
            for name in self._other_writes():
                if words_of(name)[0] in named_in - set(words_of(self.brief.ask.casefold())):
                    yield "off_goal", f"it agreed to {' '.join(words_of(name))}, which it has not asked for"
                    return
        for name in self._other_writes():
            verb, *nouns = words_of(name)
            for sentence in re.split(r"[.!?\n]+", message):
                heard = set(words_of(sentence.casefold()))
                wanted = verb in heard and all(n in heard for n in nouns) and _REQUEST.search(sentence)
                if wanted and not _NO.search(sentence):
                    yield "off_goal", f"it asked for {' '.join((verb, *nouns))}, which its goal excludes"
                    break

    def _other_writes(self) -> Iterator[str]:
        asked = set(words_of(self.brief.ask.casefold()))
        for tool in self.tools:
            function = tool.get("function") or tool
            name = str(function.get("name") or "")
            words = words_of(name)
            writes = (tool.get("x-kind") or function.get("x-kind")) == "write"
            wanted = name in (self.planned or ()) or all(w in asked for w in words)
            if writes and len(words) > 1 and not wanted:
                yield name

    def _known(self) -> str:
        facts = " ".join(str(v) for v in self.brief.facts.values())
        return " ".join([self.brief.ask, facts, *self.heard]).casefold()

    def _leaks(self, message: str) -> Iterator[tuple[str, str]]:
        match = _LABELS.search(message)
        if match and match.group().casefold() not in self._known():
            yield "leaked", f"it used the label {match.group()!r}"
        for tool in self.tools:
            name = str((tool.get("function") or tool).get("name") or "")
            if "_" in name and re.search(rf"\b{re.escape(name)}\b", message) and name.casefold() not in self._known():
                yield "leaked", f"it named the tool {name}"
                break
        if self.hidden:
            for word in sorted(self._unknown_ids(message)):
                if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.hidden, re.I):
                    yield "leaked", f"it said {word!r}, which only tools or records show"
                    break
        n = LEAK_NGRAM.value
        if self.secret_prose and len(message.split()) >= n:
            quoted = {g for g in shingles(message, n) if any(f" {g} " in _folded(prose) for prose in self.secret_prose)}
            told = _folded(" ".join([self._known(), *self.said])) if quoted else ""
            quoted = {g for g in quoted if f" {g} " not in told}
            if quoted:
                yield "leaked", f"it quoted hidden text: {min(quoted)!r}"

    def _unknown_ids(self, message: str) -> set[str]:
        known = self._known()
        return {w for w in ids_in(message) if w.casefold() not in known and w.lstrip("#").casefold() not in known}

    def _facts(self, message: str) -> Iterator[tuple[str, str]]:
        facts = self.brief.facts
        known = self._known()
        emails = {str(v).casefold() for v in facts.values() if "@" in str(v)}
        for email in _EMAIL.findall(message):
            if emails and email.casefold() not in known:
                yield "contradicts", f"it gave the email {email}, which is not its own"
                return
        for name, value in facts.items():
            if not isinstance(value, str | int | float) or "@" in str(value):
                continue
            for sentence in re.split(r"(?<=[.!?])\s+|\n", message):
                match = re.search(rf"\bmy {_said(name)}(?: is|:)\s+([\w#-]+)", sentence, re.I)
                if match and _another_value(match.group(1), str(value)):
                    yield "contradicts", f"it said its {name} is {match.group(1)}, and it is not"
                    return
        if not self.hidden or not any(k == "leaked" for k, _ in self._leaks(message)):
            invented = sorted(w for w in self._unknown_ids(_EMAIL.sub(" ", message)) if not w.isdigit() or len(w) > 4)
            if invented:
                yield "contradicts", f"it made up {invented[0]!r}"

    def _repeats(self, message: str) -> Iterator[tuple[str, str]]:
        last = self.heard[-1] if self.heard else ""
        if len(message.split()) < USER_REPEAT_WORDS.value or _AGAIN.search(last):
            return
        if any(_similar(last, before) >= USER_REPEAT.value for before in self.heard[:-1]):
            return  # the assistant asked the same again, so the same answer is the right one
        if any(_similar(message, before) >= USER_REPEAT.value for before in (self.brief.ask, *self.said)):
            yield "repeats", "it repeated an earlier message"

    def answerable(self, spoken: str) -> bool:
        """Whether a person of this part can answer what was asked."""
        if not asks(spoken):
            return False
        if asks_to_confirm(spoken):
            return True
        return any(named(spoken, name) for name in self.brief.facts)


def _another_value(given: str, fact: str) -> bool:
    """Whether what was given as a fact looks like such a value ("my ID is already there" gives none) and is not."""
    if given.casefold() in fact.casefold():
        return False
    return any(c.isdigit() for c in given) if any(c.isdigit() for c in fact) else given[:1].isupper()


def _said(name: str) -> str:
    """Return a pattern for how people say a field; an id may be said without the word."""
    words = [re.escape(w) for w in words_of(name)]
    return r"\s+".join(words[:-1] or words) + (rf"(?:\s+{words[-1]})?" if len(words) > 1 else "")


# -- rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserFault:
    """One fault of a simulated user.

    Attributes:
        kind: A key of `FAULTS`.
        turn: Number of the message in the row, from 0; the number of messages when it is about the end.
        why: What shows it.
        text: What was said, shortened.
        by: `rule`, or the judge's id.
    """

    kind: str
    turn: int
    why: str
    text: str = ""
    by: str = "rule"

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as plain values."""
        return {"kind": self.kind, "turn": self.turn, "why": self.why, "text": self.text, "by": self.by}


def talk_of(row: Mapping[str, Any]) -> Talk:
    """Return the talk of a row before its first message, with what its user could not know from the start."""
    world = row.get("world") or {}
    records = json.dumps(world.get("entities"), ensure_ascii=False, default=str) if world.get("entities") else ""
    private = row.get("privileged") or {}
    plan = private.get("plan")
    return Talk(
        brief_of(row, strict=False),
        hidden=records,
        secret_prose=[str(row.get("system_prompt") or "")],
        tools=row.get("tools") or (),
        planned=None if plan is None else frozenset(str(step.get("tool")) for step in plan),
    )


def _hear(talk: Talk, message: Mapping[str, Any]) -> None:
    """Take in a message that is not the user's: what was said aloud, and what only the agent saw."""
    text = text_of(message.get("content"))
    if message.get("role") == "assistant":
        spoken = spoken_text(text)
        if spoken.strip():
            talk.heard.append(spoken)
        thought = f"{message.get('reasoning_content') or ''}\n{text.removesuffix(spoken)}".strip()
        talk.secret_prose += [thought] if thought else []
        for call in message.get("tool_calls") or ():
            talk.hidden += f"\n{(call.get('function') or {}).get('arguments') or ''}"
    elif message.get("role") == "tool":
        talk.hidden += f"\n{text}"
    elif message.get("role") in ("system", "developer"):
        talk.secret_prose.append(text)


def user_faults(row: Mapping[str, Any]) -> list[UserFault]:
    """Return the faults of a row's simulated user, by rule."""
    talk = talk_of(row)
    messages = list(row.get("messages") or ())
    found: list[UserFault] = []
    opened = False
    last_user = -1
    for n, message in enumerate(messages):
        if message.get("role") != "user":
            _hear(talk, message)
            continue
        if not opened:
            opened = True  # the first message is the writer's and not the user's
            continue
        text = text_of(message.get("content"))
        last_user = n
        said = STOP_TOKENS.sub("", text).strip()
        if said or said == text.strip():  # a message that is a stop token alone says nothing, and rightly so
            found += [UserFault(kind, n, why, text[:200]) for kind, why in talk.faults(said)]
        talk.said.append(said)
    return found + list(_ending(row, talk, messages, last_user))


def _ending(
    row: Mapping[str, Any], talk: Talk, messages: Sequence[Mapping[str, Any]], last_user: int
) -> Iterator[UserFault]:
    end = len(messages)
    error = row.get("error") or {}
    if error.get("by") == "user":
        yield UserFault("error", end, str(error.get("message") or error.get("type") or "")[:200])
        return
    ended = str(row.get("ended_by") or "")
    record = row.get("user")
    closing = str(record.get("closing") or "") if isinstance(record, Mapping) else ""
    last = talk.heard[-1] if talk.heard else ""
    parting = text_of(messages[-1].get("content")) if messages and last_user == end - 1 else ""
    left_last = bool(parting) and (ended.startswith("user_") or bool(STOP_TOKENS.search(parting)))
    parting = STOP_TOKENS.sub("", parting if left_last else closing)
    if (ended.startswith("user_") or left_last) and agrees(parting) and asks_to_confirm(last):
        yield UserFault("left_agreeing", end, "it agreed and was gone before the assistant could act", parting[:200])
    elif ended == "user_stop" and not parting.strip() and talk.answerable(last):
        yield UserFault("left_asked", end, "the assistant had asked something", last[-200:])
    elif ended in ("user_gave_up", "patience") and _on_track(row, talk, last):
        yield UserFault("gave_up", end, "the assistant was on track", last[-200:])


def _on_track(row: Mapping[str, Any], talk: Talk, last: str) -> bool:
    """Whether the assistant was getting somewhere: its last words are new and ask what the person can answer, or
    tell of a step that the world's log bears out."""
    if any(_similar(last, before) >= USER_REPEAT.value for before in talk.heard[:-1]):
        return False
    if talk.answerable(last):
        return True
    calls = list((row.get("world_log") or {}).get("calls") or ())
    return bool(calls) and calls[-1].get("effect") in ("changed", "done")
