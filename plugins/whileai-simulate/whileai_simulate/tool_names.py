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
_ENDS = """
create get add delete remove update edit modify set lookup find search fetch read show view cancel stop start close
open send submit approve reject mark assign move rename restart describe merge enable disable unlock activate
deactivate suspend resume pause invite register verify retrieve reschedule calculate convert execute configure resize
"""
_SHORT = {"calc": "calculate", "exec": "execute", "config": "configure", "gen": "generate", "del": "delete",
          "upd": "update", "init": "start", "fetchall": "fetch", "reg": "register", "qry": "query"}  # fmt: skip
"""Verbs as programmers cut them."""
_LAST = frozenset(_ENDS.split()) & _VERBS
"""Verbs that are one at the end of a name too; `access_log` and `bank_transfer` are things."""
_WHOLE = word_set("detail details info information status history summary")
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
    known = next((v for v in (verb, singular(verb), verb.removesuffix("es")) if v in _VERBS), None)
    if known is None and rest[0] in _BEFORE_THINGS and not is_thing(verb):
        known = singular(verb)
    said = _TAIL.sub("", " ".join(rest))
    if known is None or not said or _ABOUT_CALLS & set(re.findall(r"[a-z]+", said)):
        return ""
    return f"{known} {said}"


@lru_cache(maxsize=4096)
def verb_first(name: str, description: str = "", namespace: str = "", about: str = "") -> tuple[str, ...]:
    """Return the words of a tool's name with what it does first.

    Args:
        name: Name of the tool.
        description: Its description, which settles what the name leaves open.
        namespace: First word that all tools share; it says nothing about this one.
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
    told = description.split(None, 1)[0].lower() if description else ""
    verbs = [i for i, w in enumerate(words) if i and told in (w, w + "s", w + "es")]
    if words[0] in _VERBS and not (words[0] in STATUSES and verbs):
        if words[0] in STATUSES and words[-1] in _WHOLE:
            return ("get", *words)  # order_details
        last = words[0] in STATUSES and len(words) > 1 and words[-1] in _LAST
        return (words[-1], *words[:-1]) if last else words  # order_cancel, but cancel_order
    if (
        not verbs
        and len(words) > 1
        and (words[-1] in _LAST or (words[-1] == "list" and plural(words[-2]) == words[-2]))
    ):
        verbs = [len(words) - 1]
    if not verbs:
        verbs = [i for i, w in enumerate(words) if i and w in _LAST]
    if verbs:
        return (words[verbs[0]], *words[: verbs[0]], *words[verbs[0] + 1 :])
    stem = words[-1].removesuffix("ing")
    if stem != words[-1] and stem in _VERBS and words[:-1]:
        return (stem, *words[:-1])  # gym_class_booking
    done = imperative(description)
    if done and set(words) <= set(re.findall(r"[a-z]+", done)) and done.split()[0] not in words:
        return (done.split()[0], *words)  # snapshot, which takes a snapshot
    return ("get", *words) if is_thing(words[0]) else words
