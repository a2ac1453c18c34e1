"""What people put into fields that no schema explains: a repository is billing-service, a symptom a headache.

Looked up by the words of the field's name, last word first, and for names and titles by what the record is. A field
that nothing here knows gets a plain word and never random letters.

Example:
    >>> from whileai_simulate.draw import Draw
    >>> word_for(("from", "branch"), "branch", Draw(0)) in ("main", "develop", "release-2.4")
    True
    >>> number_for(("duration", "minutes"), 15, 40, Draw(0)) in (15, 20, 30)
    True
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from whileai_simulate.draw import Draw
from whileai_simulate.lexicon import GOODS, label, word_set

__all__ = ["QUERIES", "is_explained", "number_for", "plain_word", "usual_word", "word_for"]

_MAIN_BRANCHES = ("main", "develop", "release-2.4")
_BRANCHES = ("feature/login", "feature/export", "fix/typo", "feature/search", "fix/timeout", "feature/dark-mode")
_REPOSITORIES = ("billing-service", "web-shop", "mobile-app", "data-pipeline", "docs-site", "design-system",
                 "auth-gateway", "inventory-api", "report-builder", "mail-worker")  # fmt: skip
_OWNERS = ("acme-labs", "northwind", "blue-harbor", "riverside-dev", "greenfield", "oak-and-iron", "lumen-works")
_FILES = ("src/main.py", "README.md", "docs/setup.md", "config/settings.yaml", "tests/test_login.py", "package.json",
          "src/mail/worker.py", "docs/faq.md")  # fmt: skip
_MEETINGS = ("project kick-off", "weekly sync", "budget review", "design review", "sprint planning", "team lunch",
             "quarterly planning", "onboarding session", "release check-in", "supplier call")  # fmt: skip
_ISSUES = ("login page stays blank", "export fails for large files", "wrong total on the invoice page",
           "search ignores accents", "typo on the start page", "app crashes on startup", "dates are off by a day",
           "password mail never arrives", "upload stops at 99 percent")  # fmt: skip
_CHANGES = ("fix the login redirect", "add a retry to the uploader", "speed up the search", "update the setup guide",
            "remove the old importer", "translate the start page")  # fmt: skip
_TASKS = ("call the plumber", "renew the passport", "prepare the slides", "order new chairs", "write the report",
          "book the venue", "review the contract")  # fmt: skip
_TOPICS = ("parental leave", "travel expenses", "password reset", "holiday calendar", "remote work", "parking",
           "data retention", "onboarding", "health insurance", "printer setup")  # fmt: skip
_MATTERS = ("remote work", "health insurance", "public transport", "renewable energy", "staff training")
_STATEMENTS = ("SELECT count(*) FROM orders", "SELECT name FROM customers LIMIT 10")
_ROOMS = ("Maple", "Harbor", "Summit", "Juniper", "Riverside", "Birch", "Lakeview")
_TEAMS = ("sales", "support", "finance", "marketing", "research", "logistics", "legal")
_COMPANIES = ("Northfield Trading", "Harbor Supplies", "Cedar & Sons", "Lakeside Foods", "Brightway", "Oakridge Tools")
_SONGS = ("Morning Light", "Paper Boats", "Long Way Home", "City of Glass", "Slow River", "Northern Skies")
_FILMS = ("The Quiet Harbor", "Second Summer", "Glass Mountain", "The Long Platform", "Winter Orchard")
_COURSES = ("Statistics I", "Spanish for beginners", "First aid", "Web design", "Modern history")
_SUBJECTS = ("algebra", "chemistry", "Spanish", "statistics", "essay writing")
_MAILS = ("change of plans", "question about Friday", "short update", "thanks for your help")
_DISHES = ("lentil soup", "mushroom risotto", "fish tacos", "vegetable curry", "lasagna", "pancakes")

_TITLES: dict[str, Sequence[str]] = {
    "meeting": _MEETINGS, "event": _MEETINGS, "call": _MEETINGS, "invite": _MEETINGS, "session": _MEETINGS,
    "calendar": _MEETINGS, "issue": _ISSUES, "bug": _ISSUES, "ticket": _ISSUES, "incident": _ISSUES, "case": _ISSUES,
    "request": _CHANGES, "commit": _CHANGES, "task": _TASKS, "todo": _TASKS, "reminder": _TASKS, "card": _TASKS,
    "document": _TOPICS, "page": _TOPICS, "article": _TOPICS, "note": _TOPICS, "post": _TOPICS, "wiki": _TOPICS,
    "file": _FILES, "song": _SONGS, "track": _SONGS, "album": _SONGS, "playlist": _SONGS, "movie": _FILMS,
    "film": _FILMS, "show": _FILMS, "book": _FILMS, "recipe": _DISHES, "dish": _DISHES, "meal": _DISHES,
    "repository": _REPOSITORIES, "repo": _REPOSITORIES, "project": _REPOSITORIES, "branch": _BRANCHES,
    "room": _ROOMS, "team": _TEAMS, "department": _TEAMS, "group": _TEAMS, "channel": _TEAMS, "company": _COMPANIES,
    "supplier": _COMPANIES, "vendor": _COMPANIES, "store": _COMPANIES, "restaurant": _COMPANIES, "hotel": _COMPANIES,
    "course": _COURSES, "class": _COURSES, "tutor": _SUBJECTS, "lesson": _SUBJECTS, "tutoring": _SUBJECTS,
    "catalog": _FILMS, "purchase": _FILMS, "library": _FILMS,
    "message": _MAILS, "email": _MAILS, "mail": _MAILS, "notification": _MAILS,
    "product": GOODS, "item": GOODS, "order": GOODS, "sku": GOODS,
}  # fmt: skip
"""Names and titles, by what the record is."""

_LOOKED_FOR: dict[str, Sequence[str]] = {
    "code": ("retry_with_backoff", "parse_date", "read_config", "max_connections", "send_mail", "load_settings"),
    "content": ("retry_with_backoff", "parse_date", "read_config", "max_connections", "send_mail", "load_settings"),
    "restaurant": ("Italian", "Thai", "vegan", "sushi", "steakhouse", "brunch"),
    "recipe": _DISHES, "flight": ("Denver", "Boston", "Seattle", "Miami"), "hotel": ("Denver", "Boston", "Seattle"),
    "job": ("nurse", "electrician", "data analyst", "welder", "teacher"),
}  # fmt: skip

_REMARKS = ("any update on this?", "this is still happening", "thanks, that fixed it", "please have a look")
_REPORTS = ("it happens every time", "started after the last update", "only on mobile", "see the attached log")
_SAID: dict[str, Sequence[str]] = {
    "comment": _REMARKS, "review": ("friendly and quick", "took too long", "exactly as described"),
    "issue": _REPORTS, "bug": _REPORTS, "incident": _REPORTS, "request": ("ready for review", "small fix, no risk"),
    "meeting": ("agenda follows", "please bring your notes"), "event": ("agenda follows", "please bring your notes"),
    "transaction": ("I don't recognise this charge", "I was charged twice", "the amount is wrong"),
    "charge": ("I don't recognise this charge", "I was charged twice", "the amount is wrong"),
    "document": ("first draft", "final version"), "page": ("first draft", "final version"),
}  # fmt: skip
"""What people write into bodies and comments, by what the record is."""

QUERIES = frozenset({"query", "keyword", "keywords", "search", "text", "term", "q"})
"""Names of parameters that search in the text of records."""

_WORDS: dict[str, Sequence[str]] = {
    "owner": _OWNERS, "org": _OWNERS, "organization": _OWNERS, "organisation": _OWNERS, "namespace": _OWNERS,
    "workspace": _OWNERS, "repo": _REPOSITORIES, "repository": _REPOSITORIES, "project": _REPOSITORIES,
    "path": _FILES, "file": _FILES, "filename": _FILES, "filepath": _FILES, "branch": _BRANCHES,
    "ref": _MAIN_BRANCHES, "base": _MAIN_BRANCHES, "head": _BRANCHES, "version": ("1.4.2", "2.0.1", "3.1.0", "2.4.0"),
    "snippet": ("retry_with_backoff(send)", "return parse_date(text)", "load_settings(path)", "max_connections = 20"),
    "label": ("urgent", "review", "later", "team", "follow-up"), "tag": ("urgent", "review", "later", "team"),
    "symptom": ("headache", "sore throat", "back pain", "skin rash", "dizziness", "cough", "fever", "knee pain"),
    "medication": ("ibuprofen", "metformin", "lisinopril", "amoxicillin", "cetirizine", "omeprazole"),
    "allergy": ("penicillin", "peanuts", "latex", "pollen"), "diagnosis": ("migraine", "sinusitis", "sprained ankle"),
    "provider": ("Harbor Health", "Northfield Mutual", "Cedar Insurance", "Lakeside Cover", "Union Care"),
    "pharmacy": ("Corner Pharmacy", "Lakeside Pharmacy", "Main Street Pharmacy"),
    "clinic": ("Lakeside Clinic", "Northfield Clinic", "Cedar Hill Clinic"),
    "doctor": ("Dr. Alvarez", "Dr. Chen", "Dr. Novak", "Dr. Okafor", "Dr. Lindqvist"),
    "specialty": ("cardiology", "dermatology", "pediatrics", "orthopedics"),
    "department": _TEAMS, "team": _TEAMS, "channel": _TEAMS, "group": _TEAMS, "company": _COMPANIES,
    "employer": _COMPANIES, "vendor": _COMPANIES, "supplier": _COMPANIES, "merchant": _COMPANIES,
    "brand": _COMPANIES, "manufacturer": _COMPANIES, "restaurant": _COMPANIES,
    "model": ("X200", "Pro 14", "Mini 3", "Series 5"), "device": ("office printer", "front door camera", "router"),
    "host": ("web-01", "db-02", "cache-01"), "server": ("web-01", "db-02", "cache-01"),
    "hostname": ("web-01", "db-02", "cache-01"), "service": ("checkout", "search", "mail", "login"),
    "environment": ("staging", "production", "test"), "env": ("staging", "production", "test"),
    "cuisine": ("Italian", "Thai", "Mexican", "Indian"), "dish": _DISHES, "food": _DISHES, "recipe": _DISHES,
    "ingredient": ("chickpeas", "spinach", "salmon", "rice"), "genre": ("jazz", "folk", "comedy", "crime"),
    "artist": ("The Paper Kites", "Nora Lind", "Static Bloom", "Harbor Lights"), "song": _SONGS, "track": _SONGS,
    "album": _SONGS, "playlist": ("road trip", "Sunday morning", "workout", "dinner"), "movie": _FILMS, "film": _FILMS,
    "book": _FILMS, "language": ("English", "Spanish", "French", "German"), "locale": ("en-US", "es-ES", "de-DE"),
    "symbol": ("AAPL", "MSFT", "KO", "IBM", "AMZN", "NKE"), "ticker": ("AAPL", "MSFT", "KO", "IBM", "AMZN", "NKE"),
    "skill": ("welding", "bookkeeping", "first aid"), "role": ("viewer", "editor", "manager"),
    "position": ("nurse", "electrician", "data analyst"), "job": ("nurse", "electrician", "data analyst"),
    "course": _COURSES, "class": _COURSES, "room": _ROOMS, "venue": _ROOMS, "office": _ROOMS,
    "building": ("north building", "main building", "annex"), "zone": ("north", "south", "east", "west"),
    "region": ("Midwest", "New England", "Pacific Northwest", "Gulf Coast"), "area": ("downtown", "the north side"),
    "plan": ("basic", "standard", "premium"), "tier": ("basic", "standard", "premium"),
    "format": ("pdf", "csv", "xlsx"), "unit": ("metric", "imperial"), "coupon": ("SPRING15", "WELCOME10", "THANKS5"),
    "office_branch": ("Central", "Northside", "Harbor", "Old Town"),
    "author": ("A. Lindqvist", "M. Okafor", "J. Novak"),
    "breed": ("beagle", "tabby", "collie"), "pet": ("Milo", "Luna", "Biscuit"),
    "vehicle": ("Honda Civic", "Ford F-150"),
    "car": ("Honda Civic", "Ford Focus", "Toyota Corolla"), "make": ("Honda", "Ford", "Toyota"),
    "word": ("serendipity", "brisk", "meadow", "candid"), "capital": ("Madrid", "Ottawa", "Lima"),
    "sku": ("LMP-204", "BTL-118", "KTL-332"), "warehouse": ("Reno", "Dayton", "Tulsa"),
    "visibility": ("private", "public"),
    "finding": ("within the normal range", "slightly raised", "nothing unusual"),
    "semester": ("Fall 2024", "Spring 2025"), "term": ("Fall 2024", "Spring 2025"),
    "answer": ("yes", "no"), "feedback": ("friendly and quick", "took too long"),
}  # fmt: skip
_BEFORE: dict[str, Mapping[str, Sequence[str]]] = {
    "branch": dict.fromkeys(("from", "base", "source", "target", "parent", "into"), _MAIN_BRANCHES),
    "currency": {"from": ("USD",), "base": ("USD",), "source": ("USD",), "to": ("EUR", "GBP", "JPY", "CAD"),
                 "target": ("EUR", "GBP", "JPY", "CAD")},
    "language": {"from": ("English",), "source": ("English",), "to": ("Spanish", "French", "German"),
                 "target": ("Spanish", "French", "German")},
}  # fmt: skip
"""Words that a first word narrows: from_branch, to_currency."""

_ALIASES = {
    "medicine": "medication", "drug": "medication", "insurer": "provider", "physician": "doctor", "colour": "color",
    "speciality": "specialty", "breakfast": "dish", "environments": "env", "stock": "ticker", "symptoms": "symptom",
    "labels": "label", "tags": "tag", "target": "base", "sha": "ref", "payer": "provider", "dest": "zone",
}  # fmt: skip
_GRADES = ("standard", "regular", "basic")
_GRADED = word_set("""
type kind category mode level style tone quality grade class option method scheme theme variant package edition setting
strategy profile template preset shape policy scope
""")
"""Fields that name one of a few kinds, which nearly everything has as standard."""
_SENTENCES = ("please see my last email", "the details are in my last email", "I wrote about it last week",
              "I can explain it on the phone")  # fmt: skip
_SPOKEN = word_set("""
explanation justification remark remarks instruction instructions observation observations feedback rationale
motivation clarification reply response description note notes comment comments details
""")
_SPOKEN_OF = re.compile(r"\b(text|message|explain|explanation|describe|words|note|comment|reason)\b", re.I)
_NAMES = ("Atlas", "Juniper", "Orion", "Maple", "Summit", "Harbor", "Falcon", "Willow")
"""Names that people give to all kinds of things."""

_NUMBERS: dict[str, tuple[int, ...]] = {
    "minutes": (15, 20, 30, 45, 60, 90, 120), "duration": (15, 30, 45, 60, 90), "hours": (1, 2, 3, 4, 8),
    "mg": (5, 10, 20, 25, 50, 100, 200, 250, 500), "dosage": (5, 10, 20, 25, 50, 100), "dose": (5, 10, 20, 25, 50),
    "year": (2019, 2020, 2021, 2022, 2023), "age": (24, 31, 38, 46, 57, 63), "capacity": (4, 6, 8, 10, 12, 20),
    "floor": (1, 2, 3, 4, 5, 6), "percent": (5, 10, 15, 20, 25), "percentage": (5, 10, 15, 20, 25),
    "discount": (5, 10, 15, 20, 25), "rating": (3, 4, 5), "stars": (3, 4, 5), "limit": (5, 10, 20, 50),
    "size": (10, 20, 50), "page": (1, 2, 3), "weight": (2, 5, 8, 12, 20), "kg": (2, 5, 8, 12, 20),
    "km": (5, 10, 25, 50), "miles": (5, 10, 25, 50), "radius": (5, 10, 25, 50), "priority": (1, 2, 3),
    "temperature": (18, 19, 20, 21, 22), "brightness": (20, 40, 60, 80), "volume": (20, 30, 40, 60),
    "degrees": (18, 19, 20, 21, 22), "usage": (12, 18, 24, 31), "points": (120, 250, 400), "score": (62, 71, 84),
    **dict.fromkeys(("income", "salary", "revenue", "budget", "loan", "principal", "value", "mortgage", "turnover"),
                    (5000, 12_000, 24_000, 36_000, 48_000, 60_000)),
    "odometer": (18_000, 42_500, 73_000), "mileage": (18_000, 42_500, 73_000),
    "port": (22, 80, 443, 5432, 8080),
    "months": (1, 3, 6, 12), "weeks": (1, 2, 3, 4), "seconds": (10, 30, 60), "level": (1, 2, 3),
}  # fmt: skip


_CODE_KINDS = "branch repository repo issue request commit content file code release workflow deployment"
_OF_CODE = frozenset(_CODE_KINDS.split())
_LIMITS = (100, 200, 300, 500)


def word_for(words: Sequence[str], about: str, draw: Draw) -> str | None:
    """Return what people write into a field, or `None` when its name says nothing.

    Args:
        words: Words of the field's name.
        about: Entity type of the record, for names and titles.
        draw: Where the choice comes from.
    """
    if not words:
        return None
    last = words[-1]
    kind = about.rpartition("_")[2]
    if "sql" in (last, kind) and last in ("sql", "statement", "query", "code"):
        return draw.choice(_STATEMENTS)
    if last in QUERIES and not (last == "text" and kind in _SAID):
        return draw.choice(_LOOKED_FOR.get(kind) or _TITLES.get(kind, _MATTERS if kind else GOODS))
    if last == "subject" and kind not in _TITLES:
        return draw.choice(_MAILS)
    if last == "owner" and kind not in _OF_CODE:
        return None
    if last in ("title", "subject", "topic", "headline"):
        return draw.choice(_TITLES.get(kind, _MATTERS))
    if last in ("body", "text", "content", "comment", "description", "message") and kind in _SAID:
        return draw.choice(_SAID[kind])
    if last == "name":
        named = words[-2] if len(words) > 1 else kind
        return draw.choice(_WORDS.get(named) or _TITLES.get(named, _NAMES))
    for word in reversed(words):
        key = _ALIASES.get(word, word)
        if key in ("branch", "base", "head", "ref") and kind not in _OF_CODE:
            key = "office_branch"
        narrowed = _BEFORE.get(key, {}).get(words[0])
        if narrowed:
            return draw.choice(narrowed)
        if key in _WORDS:
            return draw.choice(_WORDS[key])
    return None


_NUMBERED = word_set("""
field bin dock door zone shelf rack gate bay network line lane slot aisle locker desk seat table plot unit well tank
pen barn cell section sector cabinet box crate container pallet batch lot shed pump valve channel circuit panel pier
berth ward bed wing hall stall court site station
""")
_USUAL = ("same as last time", "the usual one")


def is_explained(words: Sequence[str], description: str) -> bool:
    """Whether `plain_word` has something to say of a field but that it is as usual."""
    known = _NUMBERED | _GRADED | _SPOKEN
    if words and label(words[-1]).isupper():
        return True  # what is spelled is a number: an ISBN, a VIN
    return (
        bool(words and words[-1] in known) or words[:1] in (("from",), ("to",)) or bool(_SPOKEN_OF.search(description))
    )


def usual_word(draw: Draw) -> str:
    """Return what a person says of something that nobody can guess."""
    return draw.choice(_USUAL)


def plain_word(words: Sequence[str], description: str, draw: Draw) -> str:
    """Return a text for a field that nothing explains: a remark that fits everywhere, a grade, or a short code.

    Args:
        words: Words of the field's name.
        description: What the schema says about it.
        draw: Where the choice comes from.
    """
    last = words[-1] if words else ""
    if last in _SPOKEN or _SPOKEN_OF.search(description):
        return draw.choice(_SENTENCES)
    if not last or last in _GRADED:
        return draw.choice(_GRADES)
    if label(last).isupper():
        return f"{'978' if last == 'isbn' else ''}{draw.between(10**9, 10**10 - 1)}"
    noun = next((w for w in reversed(words) if w not in _LITTLE), last)
    return f"{noun[0].upper()}-{draw.between(11, 48)}"  # a field, a crop, a bin: businesses number what they have


_LITTLE = word_set("from to by on in at of for new old with the a")


def number_for(words: Sequence[str], low: float | None, high: float | None, draw: Draw) -> int | None:
    """Return a round number that people would give for a field, within bounds, or `None` when its name says nothing."""
    for word in (*(w for w in words if w in ("odometer", "mileage")), *reversed(words)):
        pool = _LIMITS if word == "limit" and len(words) > 1 and words[0] != "page" else _NUMBERS.get(word)
        if pool is not None:
            fit = [n for n in pool if (low is None or n >= low) and (high is None or n <= high)]
            if fit and (high is None or low is None or max(fit) - low >= (high - low) / 20 or word == "port"):
                return draw.choice(fit)
            break
    if low is None and high is None and words[0] in ("yearly", "annual"):
        return draw.choice((1200, 2400, 3500, 4800))
    if low is None and high is None and words[-1] in _MEASURED:
        return draw.choice((20, 50, 100, 200, 250, 400))
    if low is None or high is None or high - low < 20:
        return None
    fit = [n for n in _ROUND if low <= n <= high and n - low >= (high - low) / 20]  # what spans much is told roundly
    return draw.choice(fit) if fit else None


_MEASURED = word_set("kwh kw gb mb ml sqft sqm watts calories steps words liters litres grams pages")
_ROUND = (1, 2, 5, *range(10, 100, 10), 100, 200, 250, 300, 400, 500, 750, *range(1000, 10_000, 1000))
