"""How people name things and wishes: my order #W4821345, cancel my order #W4821345, look up my profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from whileai_simulate import phrases
from whileai_simulate.draw import Draw
from whileai_simulate.entities import Domain, Param, ToolInfo
from whileai_simulate.facts import PLACES
from whileai_simulate.lexicon import (
    CATALOG,
    CREATE_VERBS,
    MASS,
    PARTICLES,
    SET_VERBS,
    STATUSES,
    article,
    label,
    participle,
    plural,
    singular,
    word_set,
    words_of,
)
from whileai_simulate.scenes import Scene, Target
from whileai_simulate.tool_names import imperative

__all__ = [
    "aspect_of",
    "file_of",
    "is_own",
    "is_self",
    "is_spoken_in",
    "is_sum",
    "object_of",
    "other_of",
    "thing_of",
    "wish_of",
]

_FILLERS = "by for of to from with in on at and the a id ids all"
_ASPECT_STOP = frozenset(_FILLERS.split())
_VAGUE = ("details", "detail", "info", "information", "types", "type", "data")
_FILES = {"account": "account", "patient": "patient file", "member": "membership", "subscriber": "subscription",
          "contact": "contact card"}  # fmt: skip


@lru_cache(maxsize=4096)
def aspect_of(name: str, entity_name: str) -> str:
    """Return what of the entity a tool is about (address, items, status), from its name; empty when all of it."""
    words = words_of(name)[1:]
    entity = entity_name.split("_")
    singulars = [re.sub(r"s$", "", w) for w in words]
    for i in range(len(words)):
        if singulars[i : i + len(entity)] == [re.sub(r"s$", "", e) for e in entity]:
            rest = words[i + len(entity) :]
            break
    else:
        # The tool does not name the record: what it names is a part of it (the contact details of a patient).
        rest = words
        if entity_name and words and words[-1] in _VAGUE:
            return " ".join(w for w in words if w not in _ASPECT_STOP)
    kept = []
    for word in rest:
        if word in ("by", "for", "of", "to", "from", "with"):
            break
        if word not in _ASPECT_STOP and word not in _VAGUE:
            kept.append(word)
    text = " ".join(kept)
    return {"baggages": "baggage", "payments": "payment"}.get(text, text)


def file_of(person: str) -> str:
    """Return what people call what a business has on file about them: profile, account, patient file."""
    return _FILES.get(person, "profile")


def thing_of(domain: Domain, target: Target) -> str:
    """Return how the person names the record: my order #W4821345, product 6086499569, my account."""
    if target.thing is None:
        target.thing = _thing_of(domain, target)
    return target.thing


def _thing_of(domain: Domain, target: Target) -> str:
    record = target.record
    noun = label(target.entity)
    if record is None or target.entity not in domain.entities:
        return noun
    entity = domain.entities[target.entity]
    key = record[entity.id_field]
    known = str(key)
    if is_self(domain, target):
        return f"my {file_of(target.entity)}"
    if target.entity == domain.person:
        return f"{noun} {known}"
    if target.info.mode == "find" or target.info.key is None:
        return noun
    if known.casefold().startswith(f"{noun.casefold()}-"):
        return known  # ASN-59950 says what it is
    return f"{'my ' if is_own(domain, target) else ''}{noun} {known}"


_HAD = """
subscription playlist membership profile parcel package loan policy prescription card transaction charge visit lesson
deposit wallet cart wishlist warranty contract lease rental trip ride delivery meeting calendar
"""
_POSSESSED = frozenset([*STATUSES, *_HAD.split()]) - frozenset([*CATALOG, "device"])
"""Things that people call their own; a sensor, a machine or a case file is just named."""
_OVERSEES = word_set("approve reject review assign audit triage moderate deny grant resolve process escalate")
"""What people do to the things of others."""


_BY_STAFF = word_set(
    "record mark notify grade admit discharge prescribe diagnose promote terminate hire onboard expel evict"
)
"""What is done to people by those who look after them."""


def is_self(domain: Domain, target: Target) -> bool:
    """Whether the record is the file of the person who asks, and not of somebody in their care."""
    return target.entity == domain.person and target.info.spoken.partition("_")[0] not in _BY_STAFF


def is_own(domain: Domain, target: Target) -> bool:
    """Whether the person would call the record their own."""
    entity = target.entity
    if entity in CATALOG or target.info.spoken.partition("_")[0] in _OVERSEES:
        return False
    known = domain.entities.get(entity)
    return entity.rpartition("_")[2] in _POSSESSED or bool(known and known.owner)


def other_of(domain: Domain, target: Target) -> str:
    """Return how the person names the record when it is not their own: order #W4821345."""
    thing = thing_of(domain, target)
    return thing[3:] if thing.startswith("my ") else thing


def wish_of(domain: Domain, target: Target, draw: Draw, scene: Scene) -> str:
    """Return the wanted action as a verb phrase."""
    info, ref = target.info, thing_of(domain, target)
    aspect = aspect_of(info.spoken, info.entity or "")
    words = words_of(info.spoken)
    verb = " ".join(words[: 2 if len(words) > 2 and words[1] in PARTICLES and words[2] not in ("the", "a") else 1])
    if info.mode == "generic":
        return _generic_do(info, target, draw)
    if info.wish:
        return _described(info, target, ref)
    if info.kind == "read":
        return _read_do(domain, target, aspect, ref, draw)
    if info.mode == "create":
        return _create_do(domain, target, verb, ref)
    lines = _lines(target)
    if lines and aspect in ("items", "item", "products"):
        return f"{'change' if verb in ('modify', 'update') else verb} {lines} in {ref}"
    verb = f"{verb} {_GOVERNED[verb]}" if verb in _GOVERNED else verb
    spoken = {"modify": "change", "update": "update", "set": "set", "edit": "edit"}.get(verb, verb)
    put = "" if " " in verb else _put_into(info.spoken, info.entity or "")
    if put:
        return f"{spoken} {put} {ref}"
    if aspect == "payment" and spoken in ("change", "update"):
        aspect = "payment method"
    key = info.key or ""
    if aspect and _names_aspect(info.spoken, key, target.entity) and target.record and target.entity in domain.entities:
        known = target.record[domain.entities[target.entity].id_field]
        return f"{spoken} the {aspect} {known}"  # the number is that of the shipment which is received
    if aspect and is_self(domain, target):
        return f"{spoken} my {aspect}"
    if is_self(domain, target) and verb in _OWN:
        return f"complete my {_OWN[verb]}"
    if aspect:
        if verb in CREATE_VERBS:
            return f"{verb} {article(aspect)} {_JOINED.get(verb, 'for')} {ref}"
        if spoken == "assign":
            return f"assign {article(aspect)} to {ref}"
        if verb in _BY_STAFF:
            return f"{spoken} the {aspect} of {ref}"
        if spoken == "take":
            return f"take {article(aspect)} of {ref}"
        some = "" if aspect in MASS and verb not in SET_VERBS else "the "
        return f"{spoken} {some}{aspect} {_joint(verb, spoken)} {ref}"
    return f"{spoken} {ref}"


def _joint(verb: str, spoken: str) -> str:
    """Return the word between a part and its whole: the address on my order, the waitlist for event EVE-1."""
    if spoken == "pay":
        return "of"
    return "on" if verb in SET_VERBS or verb in ("do", "run", "perform", "execute", "start", "stop") else "for"


def _described(info: ToolInfo, target: Target, ref: str) -> str:
    """Return the wish in the words of the description: open the valves of field F-12."""
    if target.record is None or info.key is None:
        return info.wish
    named = re.compile(rf"\b(?:an?|the|its|this) (?:\w+ )?{re.escape(label(target.entity))}\b")
    return named.sub(ref, info.wish) if named.search(info.wish) else f"{info.wish} for {ref}"


@lru_cache(maxsize=1024)
def _names_aspect(name: str, key: str, entity: str) -> bool:
    """Whether the key is a number or code by which the thing of the tool's name goes (receive_shipment, asn_number)."""
    words = words_of(name)
    by_number = words_of(key)[-1:] in (("number",), ("code",), ("ref",), ("reference",))
    one = len(words) == 2 and singular(words[1]) == words[1] and words[1] not in MASS
    return by_number and one and words[0] not in SET_VERBS and entity not in words


@lru_cache(maxsize=1024)
def _put_into(name: str, entity: str) -> str:
    """Return what is put into a record or taken out of it: an item to (my cart), a guest from (my booking)."""
    words = words_of(name)[1:]
    at = next((i for i, w in enumerate(words) if w in ("to", "from", "into", "in", "on")), 0)
    if not at or entity.split("_")[0] not in [re.sub(r"s$", "", w) for w in words[at:]]:
        return ""
    return f"{article(' '.join(words[:at]))} {words[at]}"


_GOVERNED = {"dispose": "of", "respond": "to", "reply": "to", "subscribe": "to", "unsubscribe": "from", "object": "to",
             "consent": "to", "agree": "to", "bid": "on", "vote": "on", "react": "to", "connect": "to"}  # fmt: skip
"""Prepositions that verbs ask for."""
_OWN = {"enroll": "enrollment", "register": "registration", "subscribe": "subscription"}
"""What people do with themselves, as a thing that they and others can complete."""
_JOINED = {"invite": "to", "add": "to", "send": "for", "post": "on", "attach": "to", "submit": "for", "leave": "on"}


def _create_do(domain: Domain, target: Target, verb: str, ref: str) -> str:
    info = target.info
    named = [w for w in words_of(info.spoken)[1:] if w != "new"]
    cut = next((i for i, w in enumerate(named) if w in ("for", "to", "from", "by", "on", "with", "in")), len(named))
    kind = label("_".join(named[:cut])) or label(info.entity or "record")
    thing = article(kind)
    if verb in ("send", "issue"):
        to_me = " to me" if any(p.name == info.key and p.entity == domain.person for p in info.params) else ""
        return f"have {thing} {participle(verb)}{to_me}"
    do = f"{verb} {thing}"
    if info.key is None or target.entity in ("", info.entity) or target.record is None or is_self(domain, target):
        return do
    return f"{do} {'on' if kind in ('comment', 'note', 'review') else _JOINED.get(verb, 'for')} {ref}"


def _lines(target: Target) -> str:
    """Return the names of the chosen lines of the record: the desk lamp and the backpack."""
    if not target.record or "items" not in target.record:
        return ""
    ids = next(
        (v for p, v in ((p, target.arguments.get(p.name)) for p in target.info.params) if p.many and not p.role and v),
        None,
    )
    names = [
        str(line["name"]) for line in target.record["items"]
        if isinstance(line, Mapping) and "name" in line and ids and set(map(str, ids)) & {str(v) for v in line.values()}
    ]  # fmt: skip
    return " and ".join(f"the {n}" for n in dict.fromkeys(names))


def _read_do(domain: Domain, target: Target, aspect: str, ref: str, draw: Draw) -> str:
    info = target.info
    noun = label(info.entity or "record")
    if info.mode == "list":
        many = plural(noun) if info.key is None or plural(noun.rpartition(" ")[2]) in words_of(info.spoken) else noun
        if info.key and is_self(domain, target) and many == noun and plural(noun) != noun:
            return draw.choice(_SHOW).format(a=f"my {many}")
        if info.key and is_self(domain, target):
            return draw.choice(("list my {m}", "show me my {m}", "pull up my {m}", "look up my {m}")).format(m=many)
        if info.key and many == noun and plural(noun) != noun:
            leads = ("look up the {m} for {r}", "show me the {m} for {r}", "pull up the {m} for {r}")
            return draw.choice(leads).format(m=many, r=ref)
        if info.key:
            return draw.choice(("list the {m} for {r}", "show me all {m} for {r}", "look up the {m} for {r}")).format(
                m=many, r=ref
            )
        if many.rpartition(" ")[2] in MASS:
            return draw.choice(("show me the {m}", "look up the {m}", "pull up the {m}")).format(m=many)
        return draw.choice(
            (
                "list all {m}",
                "show me the full list of {m}",
                "tell me which {m} you have",
                "give me an overview of your {m}",
            )
        ).format(m=many)
    if info.mode == "find":
        return _find_do(domain, info, noun, draw)
    known = _is_told(aspect)
    if aspect and is_self(domain, target):
        return draw.choice(_TELL if known else _SHOW).format(a=f"my {aspect}")
    if aspect:
        return draw.choice(_TELL if known else _SHOW).format(a=f"the {aspect} of {ref}")
    verb = info.spoken.partition("_")[0]
    if verb in _WORKS:
        return f"{verb} {ref}"
    return f"{draw.choice(phrases.LOOK_VERBS)} {ref}"


_TELL = ("check {a}", "tell me {a}", "look up {a}", "find out {a}")
_SHOW = ("look up {a}", "pull up {a}", "show me {a}", "have a look at {a}")
_VALUES = word_set("""
balance limit score points credit price rate weather temperature forecast total amount count level usage status address
location position date time name email phone number age size weight owner fee fees cost deadline availability eta
""")
_WORKS = word_set("summarize summarise explain analyze analyse inspect compare")
"""What a tool that only looks does with a record beyond showing it."""


@lru_cache(maxsize=1024)
def _is_told(aspect: str) -> bool:
    """Whether an aspect can be told in a word, as a balance or a status can, and an agreement cannot."""
    return aspect.rpartition(" ")[2] in _VALUES


def _find_do(domain: Domain, info: ToolInfo, noun: str, draw: Draw) -> str:
    own = info.entity is not None and info.entity == domain.person and plural(noun) not in words_of(info.spoken)
    if "id" in words_of(info.spoken):
        return draw.choice(("find {o}{n} ID", "look up {o}{n} ID", "tell me {o}{n} ID")).format(
            o="my " if own else "the ", n=noun
        )
    if own:
        return draw.choice(("find my {n}", "look me up")).format(n=file_of(info.entity or ""))
    said = imperative(info.tool.description or "")
    if said and plural(noun) not in words_of(info.spoken):
        return said
    many, alone = _sought(info.spoken, noun)
    if many.rpartition(" ")[2] in _COLLECTIONS:
        return draw.choice(("search the {m}", "look through the {m}", "have a look in the {m}")).format(
            m=singular(many)
        )
    if alone:
        return draw.choice(("find the {m}", "look up the {m}", "show me the {m}", "pull up the {m}")).format(m=many)
    return (
        draw.choice(("find {m}", "look for {m}", "search for {m}", "check which {m} there are")).format(m=many)
        if (many.rpartition(" ")[2] not in MASS)
        else draw.choice(("look for {m}", "search for {m}", "find the {m}")).format(m=many)
    )


_COLLECTIONS = word_set("catalogs catalogues inventories databases directories archives indexes libraries")


@lru_cache(maxsize=1024)
def _sought(name: str, noun: str) -> tuple[str, bool]:
    """Return what a search is for (one-stop flights), and whether it is one thing (the file contents)."""
    words = words_of(name)
    cut = next((i for i, w in enumerate(words) if i and w in ("by", "for", "in", "with", "of")), len(words))
    named = [{"onestop": "one-stop"}.get(w, w) for w in words[1:cut] if w not in _ASPECT_STOP and w not in _VAGUE]
    text = " ".join(named) or noun
    looks = words[0] not in ("find", "search", "list", "browse", "query")
    alone = looks and (text.rpartition(" ")[2] in MASS or plural(text) != text)
    return (text if alone or plural(text) == text else plural(text)), alone


def is_spoken_in(param: Param, value: Any) -> bool:
    """Whether an argument of a fact is named in the wish itself (the weather in Boston) and not in its own sentence."""
    if param.name == "destination":
        return False  # it goes with where one starts
    text = isinstance(value, str) and not param.schema.get("enum") and not param.options
    return text and (param.name in PLACES or words_of(param.name)[-1] in ("name", "symbol", "ticker", "title"))


def object_of(target: Target) -> tuple[Param, Any] | None:
    """Return the argument that a bare verb takes (irrigate, field F-12), or `None`; it stands in the wish itself."""
    info = target.info
    if info.mode != "generic" or "_" in info.spoken:
        return None
    for param, value in target.details:
        if param.required:
            plain = isinstance(value, str) and "enum" not in param.schema and len(words_of(param.name)) == 1
            short = plain and len(str(value)) < 30 and " " not in str(value) and words_of(param.name)[-1] not in _TEXTS
            return (param, value) if short and not param.options else None
    return None


_TEXTS = word_set("text content message body query prompt sentence document url note comment")


def is_sum(info: ToolInfo) -> bool:
    """Whether a tool works out an expression, which then is all that there is to say."""
    verb = info.spoken.partition("_")[0]
    return verb in ("calculate", "compute", "evaluate") and len(info.params) == 1 and info.kind != "write"


def _generic_do(info: ToolInfo, target: Target, draw: Draw) -> str:
    words = words_of(info.spoken)
    if "human" in words or ("transfer" in words and "agent" in "".join(words)):
        return draw.choice(("put me through to a person", "let me talk to a human", "connect me to a human agent"))
    if is_sum(info):
        text = next((str(v) for v in target.arguments.values()), "")
        return draw.choice(("work out {t}", "calculate {t}", "tell me what {t} is")).format(t=text)
    bare = object_of(target)
    if bare is not None:
        return f"{words[0]} {label(bare[0].name)} {bare[1]}"
    if info.wish:
        return info.wish
    rest = label("_".join(words[1:]))
    if info.kind == "read" and rest:
        told = next(((p, v) for p, v in target.details if is_spoken_in(p, v)), None)
        about = "" if told is None else f" {'in' if told[0].name in PLACES else 'for'} {told[1]}"
        told_so = ("check", "look up", "tell me", "find out", "get me", "have a look at")
        lead = draw.choice(told_so if _is_told(rest) else ("check", "look up", "have a look at", "pull up"))
        return f"{lead} the {rest}{about}"
    if not rest:
        first = next((p for p in info.params if p.required and p.schema.get("type") == "string"), None)
        return f"{words[0]} {article(label(first.name))}" if first else words[0]
    fixed = rest.rpartition(" ")[2] not in MASS and (words[0] in SET_VERBS or words[0] in ("calculate", "compute"))
    return f"{words[0]} {f'the {rest}' if fixed else article(rest)}"
