"""How the name of a tool is read: what it does first, then to what.

Names come in all shapes: `cancel_order`, `vm.stop`, `crm_lead_create`, `stock_lookup`, `recommendations`. Each is
turned into words with the verb first, so that everything else reads one shape. Where the name has no verb, the
description may; where neither has one, a tool that is named like a thing looks that thing up.

Example:
    >>> verb_first("vm.stop"), verb_first("lead_create"), verb_first("recommendations")
    (('stop', 'vm'), ('create', 'lead'), ('get', 'recommendations'))
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from whileai_simulate.lexicon import (
    CATALOG,
    MASS,
    PEOPLE,
    READ_VERBS,
    STATUSES,
    WRITE_VERBS,
    plural,
    singular,
    word_set,
    words_of,
)

__all__ = ["imperative", "is_verb", "namespace_of", "verb_first"]

_VERBS = READ_VERBS | WRITE_VERBS | word_set("recommend suggest take do perform build calculate compute")
_NOUNS_TOO = word_set("""
order book report request record log issue file post charge claim return transfer place track count quote estimate
status schedule purchase refund exchange query review check print link water feed lock block play run release process
upgrade start dispute deposit share change put pin drop hold upload update pay make order access stop switch turn mute
see look select locate compare preview build do take downgrade
""")
"""Verbs that are things as well; at the end of a name they are things, unless the description says otherwise."""
_ENDS = """
create get add delete remove update edit modify set lookup find search fetch read show view cancel stop start close
open send submit approve reject mark assign move rename restart describe merge enable disable unlock activate
deactivate suspend resume pause invite register verify retrieve reschedule calculate convert execute configure resize
"""
_SHORT = {"calc": "calculate", "exec": "execute", "config": "configure", "gen": "generate", "del": "delete",
          "upd": "update", "init": "start", "fetchall": "fetch", "reg": "register", "qry": "query"}  # fmt: skip
"""Verbs as programmers cut them."""
_LAST = (frozenset(_ENDS.split()) & _VERBS) | (_VERBS - _NOUNS_TOO)
"""Verbs that are one at the end of a name too; `access_log` and `bank_transfer` are things."""
_WHOLE = word_set("detail details info information status history summary")
_PARTS = _WHOLE | word_set(
    "balance limit score points price rate cost fee level usage location count total list report statement owner type "
    "state weather forecast amount quote estimate schedule inventory"
)
"""Words that name a part of a thing, and are not what is done to it."""
_THING_ENDINGS = ("tion", "sion", "ment", "ance", "ence", "ity", "ness", "ship", "age", "ics", "ure", "ings")
_VERBS_LIKE_THINGS = word_set(
    "mention position transition manage package message age configure capture measure arrange engage implement "
    "insure ensure secure balance"
)
_BEFORE_THINGS = word_set("a an the all one some every new money")
_PLAIN_SENTENCE = re.compile(r"[A-Z][a-z]+(?:,? [a-z][a-z'-]*){1,7}")
_TAIL = re.compile(
    r",? (?:for an?|for the|of the|by|given|using|based on|if|when|with the|from an?|to an?|in an?)\b.*$"
)
_ABOUT_CALLS = word_set("user users caller api endpoint id ids given specified json tool function parameter")


def is_verb(word: str) -> bool:
    """Whether a word is known as something that one does."""
    return word in _VERBS


def is_thing(word: str) -> bool:
    """Whether a word is a noun by its look or by the lexicon: recommendations, availability, order."""
    if word in MASS or word in STATUSES or word in PEOPLE or word in CATALOG:
        return True
    if word in _VERBS or word in _VERBS_LIKE_THINGS:
        return False
    return word.endswith(_THING_ENDINGS) or (len(word) > 4 and plural(word) == word and singular(word) != word)


def namespace_of(names: Iterable[str]) -> str:
    """Return the first word that most tools share (`crm` of `crm_lead_create`) and that is no verb, or ""."""
    firsts = [words[0] for words in map(words_of, names) if len(words) > 2 and "." not in words]
    if not firsts:
        return ""
    word, count = Counter(firsts).most_common(1)[0]
    return word if count > 1 and 2 * count >= len(firsts) and word not in _VERBS else ""


def _is_headline(words: list[str]) -> bool:
    """Whether a sentence says what a tool is (Report of the trips) and not what it does (Report a trip)."""
    return len(words) > 1 and words[0] in _NOUNS_TOO and words[1] in ("of", "for", "from", "on", "about")


@lru_cache(maxsize=4096)
def imperative(description: str) -> str:
    """Return what a description says is done, as people would ask for it: "search tracks, albums and artists".

    Only a plain first sentence that starts with a verb is taken; else the text is empty.
    """
    first = re.split(r"[.;:(\n]", description.strip(), maxsplit=1)[0].strip()
    if not _PLAIN_SENTENCE.fullmatch(first):
        return ""
    verb, *rest = first.split()
    verb = verb.lower()
    if _is_headline([verb, *rest]):
        return ""
    known = next((v for v in (verb, singular(verb), verb.removesuffix("es")) if v in _VERBS), None)
    if known is None and rest[0] in _BEFORE_THINGS and not is_thing(verb):
        known = singular(verb)
    said = _TAIL.sub("", " ".join(rest))
    if known is None or not said or _ABOUT_CALLS & set(re.findall(r"[a-z]+", said)):
        return ""
    return f"{known} {said}"


@lru_cache(maxsize=4096)
def verb_first(
    name: str, description: str = "", namespace: str = "", about: str = "", nouns: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the words of a tool's name with what it does first.

    Args:
        name: Name of the tool.
        description: Its description, which settles what the name leaves open.
        namespace: First word that all tools share; it says nothing about this one.
        nouns: Words of its parameters, which are things.
        about: What an id among the parameters names, if any: the service before the dot is not what is acted on.
    """
    spaces = re.split(r"[./:]|__", name)
    words = tuple(_SHORT.get(w, w) for w in words_of(spaces[-1]))
    before = words_of(spaces[-2]) if len(spaces) > 1 else ()
    if namespace and len(words) > 2 and words[0] == namespace:
        words = words[1:]
    if not words:
        return words_of(name)
    if before:  # service.operation: the operation starts with its verb
        verb, rest = (words[0], words[1:]) if not is_thing(words[0]) else ("get", words)
        if about and not rest:
            return (verb,)
        return (verb, *(w for w in before if w not in rest and singular(w) not in rest), *rest)
    at = _verb_at(words, description)
    if at is None and about and words[-1] in _VERBS - _PARTS and (is_thing(words[0]) or words[0] == "time"):
        at = len(words) - 1  # time_track, of a task
    if at is not None:
        return (words[at], *words[:at], *words[at + 1 :])
    if (
        len(words) > 1 and singular(words[0]) in nouns
    ):  # loan_renew does something to a loan; freezer_inventory shows a part
        cut = len(about.split("_")) if "_".join(words).startswith(f"{about}_") else 1
        rest = words[cut:]
        if rest and rest[0] not in _PARTS and not is_thing(rest[0]):
            return (rest[0], *words[:cut], *rest[1:])
        return ("get", *words)
    stem = words[-1].removesuffix("ing")
    if stem != words[-1] and stem in _VERBS and words[:-1]:
        return (stem, *words[:-1])  # gym_class_booking
    done = imperative(description)
    if done and set(words) <= set(re.findall(r"[a-z]+", done)) and done.split()[0] not in words:
        return (done.split()[0], *words)  # snapshot, which takes a snapshot
    if {"name", "title"} & nouns and len(words) == 1:
        return ("create", *words)  # what gets a name is made: a geofence
    if len(words) > 1 and words[-1] in _PARTS:
        return ("get", *words)
    return ("get", *words) if is_thing(words[0]) or words[0] in STATUSES else words


def _verb_at(words: tuple[str, ...], description: str) -> int | None:
    """Return where the verb stands in a name, or `None` where no word of it is known as one."""
    sentence = re.findall(r"[a-z]+", description.split(".")[0].lower())
    told = next((i for i, w in enumerate(words) if i and sentence and sentence[0] in (w, w + "s", w + "es")), None)
    if _is_headline(sentence):
        told = None  # a report of the trips
    first, last = words[0], words[-1]
    if first in _VERBS:
        if first in STATUSES and last in _WHOLE:
            return None  # order_details
        if told is not None and first in _NOUNS_TOO and first in sentence:
            return told  # hold_place, which places a hold
        return len(words) - 1 if len(words) > 1 and first in STATUSES and last in _LAST else 0  # order_cancel
    if told is not None:
        return told
    if len(words) > 1 and (last in _LAST or (last == "list" and plural(words[-2]) == words[-2])):
        return len(words) - 1
    return next((i for i, w in enumerate(words) if i and w in _LAST), None)
