"""What an ask that a model wrote has to satisfy before a run may use it, as rules over the scene that it words.

Ids that it names exist and are the person's to know; what the right course needs is told exactly; no label of an axis,
no tool, no hidden state and no reference is given away; a person speaks, and in the language that was asked for.
Near-duplicates are the business of the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from whileai_simulate.axes import AXIS_NAMES, HISTORIES, WORLD_STATES
from whileai_simulate.briefs import ids_in
from whileai_simulate.faults import FAULTS
from whileai_simulate.language import language_problem
from whileai_simulate.lexicon import label, words_of
from whileai_simulate.scenes import Scene, Setting
from whileai_simulate.user_faults import speaks_as_other

__all__ = ["ask_problems", "kept_texts"]

_MOST_WORDS = 60
"""Words that an ask may have beyond three times those of its plain version."""

_LABEL_WORDS = re.compile(
    r"\b(?:adversarial|exploratory|world[ _]state|tool[ _]condition|policy[ _]rule|test (?:case|scenario|condition)|"
    r"scenario|persona|simulat\w+|roleplay|role-play|rollout|stance|ground truth|reference answer|mock)\b",
    re.I,
)
_PLACEHOLDER = re.compile(r"\[[^\]\n]{1,40}\]|<[a-z][^>\n]{0,40}>|\{[^}\n]{0,60}\}|\bX{3,}\b|_{3,}", re.I)
_META = re.compile(
    r"\b(?:here(?:'s| is) (?:the|a|my) (?:message|ask|version|rewrite)|first message|plain version|rewritten|"
    r"the (?:customer|user|person|client) (?:is|wants|asks|would|needs|has|writes)|"
    r"(?:he|she|they) (?:wants?|asks?) to)\b",
    re.I,
)
_CONTENT = re.compile(r"[^\W\d_]{4,}")
_EMPTY = re.compile("this|that|with|from|have|please|could|would|what|when|your|about|hello|there|thanks|thank")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")


def kept_texts(scene: Scene, draft: str) -> list[str]:
    """Return what of the plain version has to stand in the ask exactly: ids, addresses, and details that a call needs.

    Args:
        scene: The scene.
        draft: Its plain version.
    """
    kept = set(_EMAIL.findall(draft)) | ids_in(_EMAIL.sub(" ", draft))
    for target in scene.targets:
        for value in (*target.arguments.values(), *(v for _, v in target.details)):
            for leaf in _leaves(value):
                text = str(leaf)
                told = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", draft)
                if told and len(text) > 1 and text != draft and not isinstance(leaf, bool):
                    kept.add(text)
    if scene.found_by:
        kept |= {str(v) for v in (scene.person.get(f) for f in scene.found_by) if v and str(v) in draft}
    # What is part of something longer that is kept anyway need not be said twice.
    return sorted(k for k in kept if not any(k != other and k in other for other in kept))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def ask_problems(
    ask: str, *, setting: Setting, scene: Scene, draft: str, reference: str = "", language: str = "English"
) -> list[str]:
    """Return what is wrong with an ask, as sentences that a writer can act on; empty when it may be used.

    Args:
        ask: The ask.
        setting: What the scenes of the run share.
        scene: The scene that it words.
        draft: The plain version of it.
        reference: The private reference of the task.
        language: Language that was asked for, as `language.language_problem` takes it.
    """
    if not ask.strip():
        return ["the message is empty"]
    limit = 3 * len(draft.split()) + _MOST_WORDS
    found = [
        *([f"it has more than {limit} words"] if len(ask.split()) > limit else []),
        *_missing(ask, setting, scene, draft, language),
        *_invented(ask, scene, draft),
        *_labels(ask, setting, scene, draft, reference),
        *_voice(ask, draft),
    ]
    wrong = language_problem(ask, language)
    return [*found, wrong] if wrong else found


def _missing(ask: str, setting: Setting, scene: Scene, draft: str, language: str) -> Iterator[str]:
    folded = ask.casefold()
    content = [{w for w in _CONTENT.findall(text.casefold()) if not _EMPTY.fullmatch(w)} for text in (ask, draft)]
    if language == "English" and content[1] and not content[0] & content[1]:
        yield "it has nothing of the plain version"
    for text in kept_texts(scene, draft):
        if text.casefold() not in folded:
            yield f"{text!r} is missing"
    for target in scene.targets[:1]:
        noun = label(target.entity) if target.entity in setting.domain.entities else ""
        words = [w for w in words_of(noun) if w != "id"]
        told = [w for w in words if w in set(words_of(draft.casefold()))]
        if told and not ids_in(draft) and not any(w.rstrip("s") in folded for w in told):
            yield f"it does not say that it is about the {noun}"


def _invented(ask: str, scene: Scene, draft: str) -> Iterator[str]:
    known = draft.casefold()
    mine = {str(v).casefold() for v in scene.person.values()}
    for email in _EMAIL.findall(ask):
        if email.casefold() not in known and email.casefold() not in mine:
            yield f"it makes up the address {email!r}"
    for word in sorted(ids_in(_EMAIL.sub(" ", ask))):
        if word.casefold() in known or word.casefold().lstrip("#") in known:
            continue
        if any(word.casefold() in text for text in mine):
            continue
        shown = any(word.casefold() in str(leaf).casefold() for leaf in _leaves(scene.world.get("entities") or {}))
        yield f"it tells {word!r}, which only the records show" if shown else f"it makes up {word!r}"


def _labels(ask: str, setting: Setting, scene: Scene, draft: str, reference: str) -> Iterator[str]:
    known, folded = draft.casefold(), ask.casefold()
    values = [str(v) for some in (*setting.axes.values.values(), WORLD_STATES, HISTORIES, FAULTS) for v in some]
    names = [*setting.domain.tools, *AXIS_NAMES, *setting.axes.values, *values]
    for name in names:
        if "_" in name and name.casefold() in folded and name.casefold() not in known:
            yield f"it names {name!r}"
            break
    match = _LABEL_WORDS.search(ask)
    if match and match.group().casefold() not in known:
        yield f"it says {match.group()!r}, which no person would"
    if reference and len(reference) > 3 and reference.casefold() in folded:
        yield "it quotes the reference"
    target = scene.targets[0] if scene.targets else None
    status = str((target.record or {}).get("status") or "") if target else ""
    said = status.replace("_", " ").casefold()
    done = str(target.info.done or "").replace("_", " ").casefold() if target else ""
    if len(said) > 3 and said != done:  # what the person wants done may be said
        look = re.compile(rf"\b{re.escape(said)}\b")
        if look.search(folded) and not look.search(known):
            yield f"it tells the status {said!r}, which only the records show"


def _voice(ask: str, draft: str) -> Iterator[str]:
    who = speaks_as_other(ask)
    if who:
        yield who
    for look in (_META, _PLACEHOLDER):
        match = look.search(ask)
        if match and match.group().casefold() not in draft.casefold():
            yield f"no person would type {match.group()!r}"
            return
