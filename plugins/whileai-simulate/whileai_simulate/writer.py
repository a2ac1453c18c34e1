"""The offline writer: turns scenes into asks that a person would believe, and into tasks.

It words what the scene says and nothing else: the real id, the details that only the person can know, the stance,
the history. Near-duplicates are dropped by a stated rule (see `dedup`) and worded again. It is one component of
the kind `writers`; another writer gets the same scenes under `request.situations[i]["scene"]` and its draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from whileai_kernel.protocols import WriteRequest
from whileai_kernel.rows import content_id
from whileai_simulate import phrases
from whileai_simulate.axes import NO_TOOL
from whileai_simulate.details import capital, details_of
from whileai_simulate.draw import Draw
from whileai_simulate.entities import Domain, ToolInfo
from whileai_simulate.lexicon import (
    CATALOG,
    CITIES,
    GOODS,
    PARTICLES,
    article,
    label,
    plural,
    words_of,
)
from whileai_simulate.naming import file_of, is_own, is_self, other_of, thing_of, wish_of
from whileai_simulate.records import make_person
from whileai_simulate.scenes import ACTING, ASK, Scene, Setting, Target, build_scene

__all__ = ["OfflineWriter", "task_of", "word_scene"]


_MONEY = frozenset(
    ["pay", "payment", "refund", "return", "exchange", "cancel", "purchase", "invoice", "bill", "charge", "book"]
)
_MONEY_BACK = frozenset(["refund", "return", "cancel"])
_PAID = frozenset(["order", "reservation", "booking", "subscription", "ticket", "shipment", "invoice", "claim"])
_FINISHED = re.compile(r"settled|finished already|done this already")
_AGREED = re.compile(r"already|agreed|approved|settled|finished")
_APP = re.compile(r"\b(app|website|page)\b")
_THESE = re.compile(r"\bthese are\b|by the way")
_SHORT = re.compile(r" (on|in|of|to) my .*$")
_OF_A_RECORD = re.compile(r"\{do\}, and share|internal you|right details|everybody else")
_OF_A_THING = re.compile(r"a mess|not happy with|could I do with|options with|how I want it|noun\} (right|look)")
_FOR_ME = re.compile(r"(\bme\b[^.?!]*?) for me(?=[.?!])")


class OfflineWriter:
    """Writes asks from frames; no model, no network.

    Args:
        locale: Locale of names and streets.
    """

    example_situations = (
        {"tool": "get_order", "stance": "ordinary", "world_state": "exists", "tool_condition": "success"},
        {"tool": "cancel_order", "stance": "hurried", "world_state": "already_acted", "tool_condition": "timeout"},
        {"tool": "cancel_order", "stance": "unsure", "world_state": "missing", "tool_condition": "success"},
        {"tool": "none", "stance": "ordinary", "world_state": "none", "tool_condition": "none"},
    )
    """Situations that the conformance kit asks for, for its own two tools."""

    def __init__(self, locale: str = "en_US") -> None:
        self.locale = locale

    def write(self, request: WriteRequest) -> Iterator[dict[str, Any]]:
        """Yield one task per situation, in order.

        Args:
            request: `situations[i]` is a mapping of axis to value; a prepared scene stands under the key `scene`.
        """
        from whileai_simulate.setting import make_setting

        setting = request.options.get("setting") or make_setting(
            request.tools, request.system_prompt, seed=request.seed, locale=self.locale
        )
        first = int(request.options.get("first", 0))
        for n, situation in enumerate(request.situations):
            axes = {k: v for k, v in situation.items() if k not in ("scene", "attempt")}
            scene = situation.get("scene") or build_scene(setting, axes, first + n)
            yield task_of(setting, scene, word_scene(setting, scene, first + n, situation.get("attempt", 0)))


def task_of(setting: Setting, scene: Scene, prompt: str, lineage: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the task part of a row for a scene and its ask."""
    for step in scene.plan:
        for name, value in step["arguments"].items():
            if value == ASK:
                step["arguments"][name] = prompt
    task: dict[str, Any] = {
        "task_id": content_id("task", prompt, scene.axes, scene.world["seed"]),
        "prompt": prompt,
        "system_prompt": setting.system_prompt,
        "tools": setting.tools,
        "axes": scene.axes,
        "world": scene.world,
        "lineage": dict(lineage) if lineage else {"writer": "simulate/offline"},
        "privileged": {
            "reference": reference_of(setting.domain, scene),
            "state": scene.axes.get("world_state"),
            "goal": scene.goal,
            "plan": scene.plan,
            "user": {"facts": {k: v for k, v in scene.person.items() if v}},
        },
    }
    rule = setting.rules.get(str(scene.axes.get("policy_rule")))
    if rule is not None:
        task["privileged"]["rubric"] = {"policy_rule": rule.text}
    return task


def _identity(scene: Scene, setting: Setting, draw: Draw) -> str:
    """Return how the person says who they are, when the course needs it."""
    person, domain = scene.person, setting.domain
    if scene.found_by:
        if any("email" in f for f in scene.found_by):
            return draw.choice(
                ("My email is {e}.", "You'll find me under {e}.", "I'm {n}, {e}.", "The email on file is {e}.")
            ).format(e=person["email"], n=f"{person['first_name']} {person['last_name']}")
        sent = scene.plan[0]["arguments"]
        values = ", ".join(f"{label(f)} {sent[f]}" for f in scene.found_by if f not in ("first_name", "last_name"))
        name = f"{person['first_name']} {person['last_name']}"
        return f"I'm {name}{', ' + values if values else ''}."
    if any(t.info.mode == "find" and _is_own_search(domain, t.info) for t in scene.targets):
        return ""  # who asks for an ID does not tell it
    for target in scene.targets:
        if target.entity == domain.person and not is_self(domain, target):
            continue  # somebody in their care is named in the wish
        for param in target.info.params:
            if param.entity and param.entity == domain.person and param.name in target.arguments:
                return draw.choice(("My {n} is {v}.", "{N}: {v}.", "I'm registered under the {n} {v}.")).format(
                    n=label(param.name),
                    N=label(param.name)[:1].upper() + label(param.name)[1:],
                    v=target.arguments[param.name],
                )
    return ""


def _is_own_search(domain: Domain, info: ToolInfo) -> bool:
    """Whether a search is for the person who asks; who searches accounts looks for others."""
    person = domain.person
    return person is not None and info.entity == person and plural(person) not in words_of(info.spoken)


# -- the ask --------------------------------------------------------------------------------------------------


def word_scene(setting: Setting, scene: Scene, number: int, attempt: int = 0) -> str:
    """Return the ask for a scene.

    Args:
        setting: What the scenes of the run share.
        scene: The scene.
        number: Position of the situation, which with the seed decides the wording.
        attempt: Counted up when an earlier wording was a near-duplicate.
    """
    draw = Draw(setting.seed, "words", number, attempt)
    if not scene.targets:
        return _off_topic(scene, draw)
    domain = setting.domain
    target = scene.targets[0]
    stance = str(scene.axes.get("stance", "ordinary"))
    wants = "write" if target.info.kind == "write" else "read"
    body = _body(domain, scene, target, stance, wants, draw)
    sentences = [body]
    if wants == "read" or stance in ACTING or stance == "adversarial":
        sentences.append(details_of(target, draw))
    if len(scene.targets) > 1:
        sentences += _second_wish(domain, scene, stance, body, draw)
    sentences.append(_identity(scene, setting, draw))
    hint = _rule_hint(setting, scene, draw)
    confirms = setting.confirm and wants == "write" and stance in ACTING and stance != "boundary"
    if confirms and hint not in phrases.CONFIRM_HINTS:
        sentences.append(draw.choice(phrases.CONFIRMS))
    history = _history(scene, target, wants, stance, draw)
    aside = ""
    if not hint and stance not in ("hurried", "adversarial"):
        aside = draw.choice((*phrases.ASIDES, *_asides_about(domain, target, wants, stance, history)))
    closing = draw.choice(phrases.CLOSINGS) if stance not in ("adversarial",) else ""
    if stance == "hurried":
        closing = ""
    opener = draw.choice(phrases.OPENERS)
    if history and draw.below(2) and not _THESE.search(history) and stance != "ambiguous":
        head, tail = history, ""
        opener_text = f"{opener.rstrip(', ')}. {head} " if opener else f"{head} "
        text = opener_text + capital(sentences[0])
    else:
        tail = history
        text = opener + sentences[0] if opener else capital(sentences[0])
    rest = [s for s in (*sentences[1:], tail, aside, hint, closing) if s]
    return " ".join(" ".join([text, *rest]).split())


def _second_wish(domain: Domain, scene: Scene, stance: str, body: str, draw: Draw) -> list[str]:
    """Return the sentences of the second wish; the thing that was just named is not named again."""
    first, second = scene.targets
    also, thing = wish_of(domain, second, draw, scene), thing_of(domain, second)
    leads: Sequence[str] = ("And then please", "After that, please", "Also, please")
    if second.record is first.record and thing in body and also.endswith(f" {thing}") and " of " not in also:
        also = _with_it(also.removesuffix(f" {thing}").replace("find", "check")) + (
            " once more" if first.info.kind == "read" else ""
        )
        leads = ("When that's done, please", "Afterwards, please")
    more = details_of(second, draw) if second.info.kind != "write" or stance in ACTING else ""
    if [v for _, v in second.details] == [v for _, v in first.details]:
        more = ""
    return [f"{draw.choice(leads)} {also}.", more]


def _history(scene: Scene, target: Target, wants: str, stance: str, draw: Draw) -> str:
    """Return what came before, in words that fit what is asked now."""
    told = str(scene.axes.get("history", "fresh"))
    tables = [phrases.HISTORY]
    if wants == "read":
        tables.append(phrases.READ_HISTORY)
    if wants == "write" and stance in ("unsure", "exploratory"):
        tables.append(phrases.UNDECIDED_HISTORY)
    if stance == "ambiguous":
        tables.append(phrases.VAGUE_HISTORY)
    if target.info.mode == "generic":
        tables.append(phrases.GENERIC_HISTORY)
    table = next(t for t in reversed(tables) if told in t or t is phrases.HISTORY)
    return draw.choice(table.get(told, ("",)))


def _asides_about(domain: Domain, target: Target, wants: str, stance: str, history: str) -> tuple[str, ...]:
    """Return further asides that fit the matter of the ask and do not speak against its history."""
    if target.record is None or (target.info.mode == "list" and target.info.key is None):
        return ()
    if target.entity == domain.person:
        kind = "person"
    elif target.entity in CATALOG:
        kind = "offer"
    elif stance == "ambiguous":
        kind = "vague"
    else:
        kind = "read" if wants == "read" else "write" if stance in ACTING else "person"
    if kind == "write" and not is_own(domain, target):
        kind = "vague" if stance == "ambiguous" else "thing"
    found = phrases.ASIDES_ABOUT[kind]
    return tuple(a for a in found if not _APP.search(a)) if _APP.search(history) else found


@lru_cache(maxsize=4096)
def _frames(
    stance: str, wants: str, mode: str, about: str, history: str, *, named: bool, own_id: bool, paid: bool
) -> Sequence[str]:
    """Return the frames that fit what is asked.

    Args:
        stance: Stance of the person.
        wants: `read` or `write`.
        mode: What the tool does.
        about: `person` for the record of the person, `other` for that of somebody in their care, `offer` for what is
            sold, else empty.
        history: What came before.
        named: There is a thing to point at.
        own_id: The person asks for their own id.
        paid: Money is paid for the thing.
    """
    frames: Sequence[str] = phrases.FRAMES.get(stance, phrases.FRAMES["ordinary"])[wants]
    if wants == "write" and not named:
        frames = phrases.NEW_FRAMES.get(stance, frames)
    if mode == "generic":
        frames = phrases.GENERIC_FRAMES.get(stance, frames)
    elif wants == "read" and own_id:
        frames = phrases.OWN_ID_FRAMES.get(stance, frames)
    elif wants == "read" and (about == "offer" or mode == "find"):
        frames = phrases.CATALOG_FRAMES.get(stance, frames)
    if mode in ("generic", "list"):
        frames = [f for f in frames if not _OF_A_RECORD.search(f)]
    if not named:
        # Without a thing to point at, frames about "{ref}" would be empty talk.
        frames = [f for f in frames if "{ref" not in f and "{noun" not in f] or phrases.UNNAMED
    if history == "prior_partial":
        frames = [f for f in frames if not _FINISHED.search(f)]  # what was begun and not finished is not settled
    if history == "contradicts_earlier" and stance == "mistaken" and wants == "write":
        frames = [f for f in frames if not _AGREED.search(f)]  # nobody agreed to the opposite of what was said
    if mode == "create":
        frames = [f for f in frames if "too late" not in f]
    if not paid:
        frames = [f for f in frames if "compensation" not in f]
    if about == "other":
        frames = [f for f in frames if not _OF_A_THING.search(f)] or frames
    if about == "person":
        frames = [f for f in frames if "{noun} stand" not in f] or frames
    if about:
        frames = [f for f in frames if not f.startswith("any news")]
    if about or mode == "list":
        frames = [f for f in frames if "{ref_else" not in f]  # what the shop sells belongs to nobody
    return tuple(frames)


def _body(domain: Domain, scene: Scene, target: Target, stance: str, wants: str, draw: Draw) -> str:
    info, person_subject = target.info, is_self(domain, target)
    named = target.record is not None and info.key is not None and (
        info.mode in ("get", "change") or (info.mode == "create" and not person_subject)
    )  # fmt: skip
    about = "person" if person_subject else "offer" if target.entity in CATALOG else ""
    if not about and target.entity == domain.person:
        about = "other"
    own_id = info.mode == "find" and _is_own_search(domain, info)
    history = str(scene.axes.get("history"))
    paid = (target.entity in _PAID and is_own(domain, target)) or not _MONEY.isdisjoint(words_of(info.spoken))
    frames = _frames(stance, wants, info.mode, about, history, named=named, own_id=own_id, paid=paid)
    frame = draw.choice(frames)
    do, ref = wish_of(domain, target, draw, scene), thing_of(domain, target)
    bare = other_of(domain, target)
    theirs = ("my neighbour", "my ex", "a colleague", "my cousin")
    relative = draw.choice(theirs if is_own(domain, target) else ("a colleague", "another team", "somebody else"))
    do_else = _short(do, ref)
    if person_subject and "internal you have on it" in frame:
        frame = frame.replace("on it", "on me")
    text = frame.format(
        noun=label(target.entity) if not person_subject else file_of(target.entity),
        do=do,
        Do=capital(do),
        do_bare=do,
        ref=ref,
        ref_else=f"{bare} belongs to {relative}",
        do_else=do_else,
        do_short=_short(do, ref) if "{do_short" in frame else do,
        Do_else=capital(do_else),
    )
    return _FOR_ME.sub(r"\1", text) if " for me" in text else text


def _short(do: str, ref: str) -> str:
    """Return a wish about a thing that was just named: change the address, cancel it."""
    if not do.endswith(f" {ref}"):
        return _SHORT.sub("", do)
    before = do.removesuffix(f" {ref}")
    if " the " in before and not before.endswith((" on", " in", " of", " for", " to")):
        return before  # receive the shipment
    if " the " in before:
        return before.rpartition(" ")[0]  # the address on my order: the address
    return _with_it(before)


def _with_it(verb: str) -> str:
    """Return a verb with the thing that was just named: cancel it; look it up."""
    head, _, last = verb.rpartition(" ")
    if last == "me":
        return f"{head} it to me"
    return f"{head} it {last}" if head.isalpha() and last in PARTICLES else f"{verb} it"


def _rule_hint(setting: Setting, scene: Scene, draw: Draw) -> str:
    """Return a sentence that touches the clause of the situation, where one fits and the stance leaves room."""
    rule = setting.rules.get(str(scene.axes.get("policy_rule")))
    if rule is None or scene.axes.get("stance") in ("hurried", "adversarial", "conflicting"):
        return ""
    info, domain = scene.targets[0].info, setting.domain
    entity = domain.entities.get(info.entity or "")
    acting = info.kind == "write" and scene.axes.get("stance") in ACTING
    money = bool(_MONEY & set(words_of(info.spoken)))
    fits = {
        "any": info.mode != "generic",
        "acting": acting,
        "acting_money": acting and money,
        "look": info.kind == "read" and info.mode == "get",
        "change": info.kind == "write" and info.mode == "change",
        "record": info.mode in ("get", "change") and entity is not None and entity.owner is not None,
        "undecided": info.kind == "write" and scene.axes.get("stance") in ("unsure", "exploratory", "ambiguous"),
        "tool": info.mode != "generic",
        "money": bool(_MONEY_BACK & set(words_of(info.spoken))),
        "owned": entity is not None and (entity.owner is not None or entity.name == domain.person),
    }
    for pattern, scope, sentences in phrases.RULE_HINTS:
        if fits[scope] and re.search(pattern, rule.text, re.I):
            return draw.choice(sentences)
    return ""


def _off_topic(scene: Scene, draw: Draw) -> str:
    stance, history = scene.axes.get("stance"), scene.axes.get("history")
    frames: Sequence[str] = phrases.OFF_TOPIC_FRAMES
    if stance in ("hurried", "exploratory"):
        frames = tuple(f for f in frames if f.endswith("?"))  # these leads ask, so what follows must
    frame = draw.choice(frames)
    other = make_person(draw)
    text = frame.format(city=draw.choice(CITIES)[0], a_thing=article(draw.choice(GOODS)), name=other["first_name"])
    lead = {"hurried": "Quick question: ", "exploratory": "Just curious: "}.get(
        str(stance), draw.choice(phrases.OPENERS)
    )
    back = draw.choice(("It's me again. ", "I'm back. ", "Me again! ")) if history == "repeat_visit" else ""
    if back:
        lead = lead if lead.endswith(": ") else ""
    return (
        back + (lead + text if lead else capital(text)) + (f" {c}" if (c := draw.choice(phrases.CLOSINGS[:6])) else "")
    )


def reference_of(domain: Domain, scene: Scene) -> str:
    """Return the private reference: what is true and what was right, in one sentence."""
    if not scene.targets:
        return "No tool answers this; say so kindly and offer help with what the tools cover."
    target = scene.targets[0]
    state = str(scene.axes.get("world_state", "exists"))
    what = label(target.info.entity or "request")
    record = target.record or {}
    if target.record is not None and target.entity in domain.entities:
        what = f"{label(target.entity)} {record.get(domain.entities[target.entity].id_field)}"
    status = record.get("status")
    truth = {"missing": "does not exist", "unknown": "cannot be confirmed"}.get(
        state, f"is {status}" if status else "exists"
    )
    right = {"act": f"call {target.info.name} once", "decline": "decline", "lookup": "look it up and report"}
    return f"Reference: {what} {truth}; right: {right.get(scene.goal['kind'], 'answer')}."


def is_off_topic(task: Mapping[str, Any]) -> bool:
    """Whether a task's ask needs no tool."""
    return bool(task.get("axes", {}).get("tool") == NO_TOOL)
