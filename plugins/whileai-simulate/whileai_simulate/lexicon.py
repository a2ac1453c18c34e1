"""Words of common business domains: how things are called, which states they go through, what they cost.

Only used where schemas declare nothing: the sets are small, plain English, and every use of a guess is shown by
`preflight`. Values of people (names, streets, phones) come from faker instead.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = [
    "ADDRESS_FIELDS",
    "AIRPORTS",
    "CATALOG",
    "CITIES",
    "CLOSED_STATUSES",
    "CLOSINGS",
    "CREATE_VERBS",
    "GOODS",
    "IRREGULAR_PARTICIPLES",
    "MASS",
    "PARTLY",
    "PARTICLES",
    "PEOPLE",
    "PRICES",
    "PRICES_OF",
    "READ_VERBS",
    "SET_VERBS",
    "STATUSES",
    "WRITE_VERBS",
    "article",
    "label",
    "participle",
    "plural",
    "singular",
    "word_set",
    "words_of",
]


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


PEOPLE = (
    "user", "customer", "client", "member", "patient", "guest", "account", "subscriber", "passenger", "employee",
    "student", "tenant", "caller", "traveler", "cardholder", "policyholder", "contact",
)  # fmt: skip
"""Entity types that own other things, best first."""

CATALOG = (
    "product", "item", "flight", "airport", "hotel", "plan", "restaurant", "car", "room", "course", "book", "movie",
    "store", "branch", "doctor", "category", "sku", "article", "service",
    "depot", "warehouse", "station", "office", "clinic", "catalog",
)  # fmt: skip
"""Entity types that belong to the business and not to a person."""

READ_VERBS = frozenset(
    [
        "get",
        "find",
        "list",
        "search",
        "look",
        "lookup",
        "fetch",
        "read",
        "show",
        "check",
        "view",
        "query",
        "retrieve",
        "describe",
        "count",
        "track",
        "verify",
        "see",
        "browse",
        "locate",
        "select",
        "status",
        "compare",
        "estimate",
        "quote",
        "preview",
        "summarize",
        "summarise",
        "explain",
        "analyze",
        "analyse",
        "inspect",
    ]
)
CREATE_VERBS = frozenset(
    [
        "create",
        "book",
        "add",
        "open",
        "place",
        "submit",
        "file",
        "register",
        "make",
        "post",
        "write",
        "log",
        "start",
        "request",
        "send",
        "issue",
        "schedule",
        "reserve",
        "order",
        "apply",
        "enroll",
        "invite",
        "generate",
        "report",
        "raise",
        "record",
        "buy",
        "purchase",
    ]
)
SET_VERBS = frozenset(
    [
        "update",
        "modify",
        "change",
        "set",
        "edit",
        "rename",
        "move",
        "adjust",
        "correct",
        "amend",
        "replace",
        "patch",
        "assign",
        "reset",
    ]
)
_FURTHER_WRITES = """
cancel return exchange refund close delete remove approve reject pause resume activate deactivate suspend
enable disable block unblock lock unlock reopen reschedule confirm complete pay charge transfer escalate
archive restore renew extend upgrade downgrade merge revoke grant redeem apply dispute ship dispatch expedite
resend waive freeze void mark process release unsubscribe subscribe put
drop leave withdraw join deposit turn switch dim mute unmute follow unfollow share upload print play stop pin unpin
run deploy rollback restart reboot scale trigger launch ban promote demote link unlink connect disconnect sign
accept decline claim invite water feed clean start hold reroute redirect suggest recommend propose nominate
"""
PARTICLES = frozenset({"on", "off", "up", "down", "out", "in"})
"""Words that belong to the verb before them: turn on, check in."""
WRITE_VERBS = CREATE_VERBS | SET_VERBS | frozenset(_FURTHER_WRITES.split())

_PARTICIPLES = {
    "send": "sent", "put": "put", "pay": "paid", "freeze": "frozen", "write": "written", "buy": "bought",
    "make": "made", "set": "set", "reset": "reset", "cancel": "cancelled", "return": "returned",
    "ship": "shipped", "refund": "refunded", "book": "booked", "add": "added", "submit": "submitted",
    "log": "logged", "transfer": "transferred", "give": "given", "take": "taken", "withdraw": "withdrawn",
    "leave": "left", "hold": "held", "keep": "kept", "run": "run", "feed": "fed",
    "find": "found", "open": "opened", "edit": "edited", "do": "done", "build": "built",
    "bring": "brought", "draw": "drawn", "get": "got", "begin": "begun", "go": "gone", "sell": "sold", "lend": "lent",
    "spend": "spent", "break": "broken", "throw": "thrown", "let": "let", "shut": "shut", "split": "split",
    "cast": "cast", "cut": "cut", "win": "won", "teach": "taught", "choose": "chosen", "redo": "redone",
    "undo": "undone", "rerun": "rerun", "resend": "resent", "rebuild": "rebuilt", "see": "seen", "read": "read",
    "snapshot": "snapshotted", "wake": "woken", "overwrite": "overwritten", "speak": "spoken", "tell": "told",
}  # fmt: skip


IRREGULAR_PARTICIPLES = frozenset(done for verb, done in _PARTICIPLES.items() if done != verb)


def participle(verb: str) -> str:
    """Return the past participle of a verb: cancel, cancelled."""
    if verb in _PARTICIPLES:
        return _PARTICIPLES[verb]
    if verb.endswith("e"):
        return verb + "d"
    if len(verb) < 5 and verb[-1] not in "aeiouwxy" and [c in "aeiou" for c in verb[-3:]] == [False, True, False]:
        return f"{verb}{verb[-1]}ed"  # drop, dropped
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "ed"


STATUSES: dict[str, tuple[str, ...]] = {
    "order": ("pending", "processed", "delivered"),
    "reservation": ("confirmed", "ticketed"),
    "booking": ("confirmed", "checked in"),
    "ticket": ("open", "waiting for customer", "in review"),
    "case": ("open", "in review"),
    "invoice": ("due", "overdue", "paid"),
    "payment": ("settled", "authorised"),
    "subscription": ("active", "trial"),
    "account": ("active",),
    "appointment": ("scheduled", "confirmed"),
    "shipment": ("in transit", "out for delivery"),
    "refund": ("requested", "approved"),
    "claim": ("submitted", "in review"),
    "flight": ("on time", "boarding", "delayed"),
    "card": ("active",),
    "loan": ("current",),
    "device": ("online", "offline"),
    "product": ("available",),
    "item": ("available",),
    "user": ("active",),
    "customer": ("active",),
}
"""Ordinary statuses by entity type; other types are `active` or `open`."""

CLOSED_STATUSES = frozenset(
    {"cancelled", "closed", "deleted", "archived", "rejected", "removed", "expired", "discontinued", "deactivated"}
)
"""Statuses in which a record takes no further change."""

PARTLY = {
    "order": "delivered", "shipment": "delivered", "invoice": "paid", "payment": "settled", "product": "available",
    "item": "available", "reservation": "confirmed", "booking": "confirmed", "user": "verified",
    "customer": "verified", "account": "verified", "member": "verified", "client": "verified", "patient": "registered",
}  # fmt: skip
"""What a record is only partly, by entity type."""

CLOSINGS = {
    "order": "cancelled", "reservation": "cancelled", "booking": "cancelled", "appointment": "cancelled",
    "flight": "cancelled", "subscription": "cancelled", "product": "discontinued", "item": "discontinued",
    "user": "deactivated", "customer": "deactivated", "account": "deactivated", "member": "deactivated",
}  # fmt: skip
"""Status of a record on which somebody has acted already, by entity type."""

GOODS = (
    "desk lamp", "water bottle", "running shoes", "coffee grinder", "bluetooth speaker", "backpack", "yoga mat",
    "electric kettle", "phone case", "wireless mouse", "rain jacket", "cast-iron skillet", "bookshelf",
    "office chair", "garden hose", "hiking boots", "tea kettle", "jigsaw puzzle", "mechanical keyboard", "notebook set",
    "smart watch", "wool scarf", "air purifier", "bedside table", "camping tent", "hand mixer", "espresso cups",
    "laptop stand", "picture frame", "portable charger", "shower curtain", "soccer ball", "storage basket",
    "tablet cover", "toaster", "travel pillow", "umbrella", "vacuum cleaner", "wall clock", "winter gloves",
)  # fmt: skip
_COSTS = dict(zip(GOODS, (
    (30, 65), (12, 25), (54, 120), (24, 80), (29, 120), (34, 90), (18, 55), (24, 65), (12, 30), (18, 55), (45, 120),
    (24, 65), (64, 220), (89, 220), (18, 46), (64, 190), (24, 65), (12, 35), (54, 190), (12, 25), (119, 220), (18, 55),
    (79, 220), (54, 150), (89, 220), (24, 65), (18, 46), (24, 65), (12, 40), (18, 55), (12, 35), (18, 46), (18, 46),
    (18, 46), (24, 65), (18, 46), (12, 46), (79, 220), (18, 65), (18, 46),
), strict=True))  # fmt: skip
PRICES = (12.5, 18.99, 24.0, 29.99, 34.5, 39.99, 45.0, 54.99, 64.5, 79.99, 89.0, 119.99, 149.0, 189.5, 219.99)
PRICES_OF = {name: tuple(p for p in PRICES if low <= p <= high) for name, (low, high) in _COSTS.items()}
"""What goods cost: a water bottle is no dearer than an office chair."""

CITIES = (
    ("Austin", "TX", "787"), ("Denver", "CO", "802"), ("Seattle", "WA", "981"), ("Portland", "OR", "972"),
    ("Chicago", "IL", "606"), ("Boston", "MA", "021"), ("Phoenix", "AZ", "850"), ("Houston", "TX", "770"),
    ("San Diego", "CA", "921"), ("San Jose", "CA", "951"), ("Columbus", "OH", "432"), ("Charlotte", "NC", "282"),
    ("Nashville", "TN", "372"), ("Atlanta", "GA", "303"), ("Miami", "FL", "331"), ("Detroit", "MI", "482"),
    ("Minneapolis", "MN", "554"), ("Philadelphia", "PA", "191"), ("Pittsburgh", "PA", "152"), ("Tucson", "AZ", "857"),
    ("Omaha", "NE", "681"), ("Raleigh", "NC", "276"), ("Sacramento", "CA", "958"), ("Salt Lake City", "UT", "841"),
    ("Kansas City", "MO", "641"), ("Richmond", "VA", "232"), ("Albany", "NY", "122"), ("Buffalo", "NY", "142"),
)  # fmt: skip
AIRPORTS = (
    "SFO", "JFK", "LAX", "ORD", "DFW", "DEN", "SEA", "BOS", "ATL", "MIA", "PHX", "IAH", "EWR", "MSP", "DTW", "PHL",
    "LGA", "CLT", "LAS", "MCO",
)  # fmt: skip
ADDRESS_FIELDS = ("address1", "address2", "street", "address_line1", "address_line2", "city", "state", "country", "zip",
                  "zip_code", "postal_code", "postcode")  # fmt: skip

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=8192)
def words_of(name: str) -> tuple[str, ...]:
    """Split a name in snake, kebab, dotted or camel case into lower-case words."""
    return tuple(w.lower() for w in _SPLIT.findall(name))


def singular(word: str) -> str:
    """Return the singular of an English noun: orders, order; addresses, address; categories, category."""
    if word in ("news", "series", "species", "means"):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "status")):
        return word[:-1]
    return word


_UNCOUNTED = """
code information data content contents details equipment baggage luggage weather news mail email traffic inventory
stock history feedback insurance money progress software storage availability music advice access leave maintenance
attendance support training parking damage energy power electricity water hardware
"""
MASS = frozenset(_UNCOUNTED.split())
"""Nouns that people do not count."""

_IRREGULAR = {"person": "people", "child": "children", "status": "statuses", "man": "men", "woman": "women"}


@lru_cache(maxsize=4096)
def plural(word: str) -> str:
    """Return the plural of an English noun (of the last word, where there are several); of code, code."""
    head, space, last = word.rpartition(" ")
    if space:
        return f"{head} {plural(last)}"
    if word in MASS or word in _IRREGULAR or singular(word) != word:
        return _IRREGULAR.get(word, word)
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


_SHORTHANDS = {"id": "ID", "ids": "IDs", "isbn": "ISBN", "url": "URL", "iban": "IBAN", "sku": "SKU", "ip": "IP",
               "pin": "PIN", "vat": "VAT", "api": "API", "dob": "date of birth", "qty": "quantity",
               "cidr": "CIDR", "gps": "GPS", "usd": "USD", "eur": "EUR", "ssn": "SSN", "asn": "ASN", "ui": "UI",
               "os": "OS", "cpu": "CPU", "num": "number", "desc": "description", "addr": "address",
               "lang": "language", "sql": "SQL", "faq": "FAQ", "lat": "latitude", "lon": "longitude", "max": "maximum",
               "min": "minimum", "org": "organization", "temp": "temperature", "msg": "message", "doc": "document",
               }  # fmt: skip


_LETTERS = re.compile(r"[b-df-hj-np-tv-xz]{2,4}")
"""Words that can only be spelled: VM, DNS, PDF."""
_SHORT_UNITS = word_set("kg km cm mm mg ml lb lbs hr hrs min ft pm th st nd rd vs mr mrs dr pcs pts")


@lru_cache(maxsize=8192)
def label(name: str) -> str:
    """Return how people say a field: `zip_code`, zip code; `orderId`, order ID."""
    words = [_SHORTHANDS.get(w) or (w.upper() if _LETTERS.fullmatch(w) and w not in _SHORT_UNITS else w)
             for w in words_of(name)]  # fmt: skip
    return " ".join(words) or name


def article(noun: str) -> str:
    """Return the noun with a or an; a mass noun or a plural stays as it is."""
    last = noun.rpartition(" ")[2]
    if last in MASS or (last.endswith("s") and singular(last) != last):
        return noun
    first = noun.partition(" ")[0]
    spelled = first.isupper() and len(first) < 5
    vowel = (
        first[:1] in "AEFHILMNORSX" if spelled else noun[:1].lower() in "aeiou" and not noun.startswith(("user", "uni"))
    )
    return f"{'an' if vowel else 'a'} {noun}"
