"""Answers of tools that look up a fact and not a record: the weather in a city, an exchange rate, a distance.

A fact has no id, nobody owns it, and nothing can be done to it, so no state of the world applies. The answer says what
was asked and a plausible value; the same arguments in the same task get the same answer.

Example:
    >>> from whileai_simulate.draw import Draw
    >>> sorted(fact_of("weather", {"city": "Boston"}, None, Draw(0)))
    ['city', 'conditions', 'temperature', 'unit']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_simulate.draw import Draw
from whileai_simulate.lexicon import words_of
from whileai_simulate.records import make_person, value_for

__all__ = ["PLACES", "fact_of"]

PLACES = frozenset({"city", "location", "place", "town", "country", "region", "state", "area", "destination"})
"""Parameters that people put into a sentence with "in"."""

_WEATHER = frozenset({"weather", "forecast", "temperature"})
_CONDITIONS = ("sunny", "cloudy", "light rain", "partly cloudy", "windy", "showers", "fog")
_NUMBERS = {
    "rate": (5, 180, 100), "price": (300, 90_000, 100), "cost": (300, 90_000, 100), "fee": (100, 9_000, 100),
    "distance": (20, 5_000, 10), "balance": (100, 500_000, 100), "score": (1, 100, 1),
    "quote": (400, 30_000, 100), "estimate": (400, 30_000, 100), "premium": (1_000, 30_000, 100),
    "population": (10_000, 900_000, 1), "shipping": (400, 9_000, 100), "fare": (300, 9_000, 100),
    "toll": (100, 2_000, 100), "tax": (100, 9_000, 100), "stock": (0, 80, 1), "inventory": (0, 80, 1),
    "quantity": (0, 80, 1), "count": (1, 80, 1), "amount": (300, 90_000, 100), "total": (300, 90_000, 100),
}  # fmt: skip
_STATES = {
    "traffic": ("light", "moderate", "heavy"), "quality": ("good", "fair", "moderate"),
    "availability": ("good", "limited", "none left"),
}  # fmt: skip
_PLAIN = ("normal", "as usual", "unchanged")
"""What is said of a fact that nothing explains."""


def fact_of(noun: str, arguments: Mapping[str, Any], returns: Mapping[str, Any] | None, draw: Draw) -> Any:
    """Return a plausible answer.

    Args:
        noun: What is looked up, for example `weather`.
        arguments: Arguments of the call.
        returns: Declared result schema, or `None`.
        draw: Where the values come from.
    """
    if returns and (returns.get("properties") or returns.get("type") not in (None, "object")):
        return value_for(noun.replace(" ", "_"), {**returns, "x-root": returns}, draw, make_person(draw))
    words = set(words_of(noun))
    if words & _WEATHER:
        warm = "fahrenheit" in str(arguments.get("unit", arguments.get("units", "celsius"))).casefold()
        degrees = draw.between(2, 31)
        told = {"temperature": round(degrees * 9 / 5 + 32) if warm else degrees, "conditions": draw.choice(_CONDITIONS)}
        return {**arguments, "unit": "fahrenheit" if warm else "celsius", **told}
    for word, (low, high, parts) in _NUMBERS.items():
        if word in words:
            number = draw.between(low, high)
            return {**arguments, noun.replace(" ", "_"): number if parts == 1 else round(number / parts, 2)}
    amount = next((v for v in arguments.values() if isinstance(v, int | float) and not isinstance(v, bool)), None)
    if "currency" in words and amount is not None:
        return {**arguments, "converted_amount": round(amount * draw.between(50, 180) / 100, 2)}
    if "time" in words:
        return {**arguments, "time": f"{draw.below(24):02}:{draw.below(60):02}"}
    into = next((v for k, v in arguments.items() if "language" in words_of(k) and isinstance(v, str)), None)
    text = arguments.get("text")
    if into is not None and isinstance(text, str):
        return {**arguments, "translation": f"{text} ({into})"}
    states = next((told for word, told in _STATES.items() if word in words), _PLAIN)
    return {**arguments, noun.replace(" ", "_"): draw.choice(states)}
