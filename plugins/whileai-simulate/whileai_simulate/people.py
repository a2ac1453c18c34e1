"""People of the simulated world: names, streets and numbers from faker, in profiles whose parts agree.

They are drawn once per process into pools: a faker call costs 0.2 ms, which a run of 10,000 rollouts a second cannot
pay.

Example:
    >>> person = make_person(Draw(0))
    >>> person["email"].split("@")[0].startswith(person["first_name"].lower())
    True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.lexicon import CITIES

__all__ = ["Record", "letters", "make_person", "one_line", "pools"]

Record = dict[str, Any]
_POOL = 400
_MAILS = ("example.com", "example.org", "example.net")


@lru_cache(maxsize=4)
def pools(locale: str = "en_US") -> tuple[list[str], list[str], list[str]]:
    """First names, last names and streets of a locale, the same in every process."""
    from faker import Faker

    fake = Faker(locale, use_weighting=False)
    fake.seed_instance(20240515)

    def pool(make: Callable[[], str]) -> list[str]:
        return list(dict.fromkeys(make() for _ in range(_POOL)))

    return pool(fake.first_name), pool(fake.last_name), pool(fake.street_name)


def make_person(draw: Draw, locale: str = "en_US") -> Record:
    """Return a profile whose parts agree: the email carries the name, the zip code belongs to the city."""
    firsts, lasts, streets = pools(locale)
    choice, below = draw.choice, draw.below
    first, last = choice(firsts), choice(lasts)
    city, state, zip3 = choice(CITIES)
    digits = 1000 + below(9000)
    plain = letters(last)
    return {
        "first_name": first,
        "last_name": last,
        "email": f"{first.lower()}.{plain}{digits % 100}@{choice(_MAILS)}",
        "phone": f"+1-555-{100 + below(900)}-{digits}",
        "address1": f"{12 + below(969)} {choice(streets)}",
        "address2": f"Apt {1 + below(48)}" if below(2) else "",
        "city": city,
        "state": state,
        "zip": f"{zip3}{1 + below(99):02}",
        "country": "USA",
    }


@lru_cache(maxsize=4096)
def letters(name: str) -> str:
    """Return the letters of a name as they stand in addresses and ids."""
    return re.sub(r"[^a-z]", "", name.lower())


def one_line(person: Mapping[str, Any]) -> str:
    """Return the address of a person in one line."""
    second = f", {person['address2']}" if person["address2"] else ""
    return f"{person['address1']}{second}, {person['city']}, {person['state']} {person['zip']}"
