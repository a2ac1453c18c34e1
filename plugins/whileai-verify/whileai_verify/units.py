"""Units that an answer may carry: name to `(dimension, factor)`. Only what is listed is a unit."""

from __future__ import annotations

__all__ = ["UNITS"]


UNITS: dict[str, tuple[str, float]] = {}


def _add(dimension: str, factor: float, *names: str) -> None:
    for name in names:
        UNITS[name] = (dimension, factor)


_add("length", 1e-3, "mm", "millimeter", "millimeters", "millimetre", "millimetres")
_add("length", 1e-2, "cm", "centimeter", "centimeters", "centimetre", "centimetres")
_add("length", 1.0, "m", "meter", "meters", "metre", "metres")
_add("length", 1e3, "km", "kilometer", "kilometers", "kilometre", "kilometres")
_add("length", 0.0254, "inch", "inches")
_add("length", 0.3048, "ft", "foot", "feet")
_add("length", 0.9144, "yd", "yard", "yards")
_add("length", 1609.344, "mile", "miles")
_add("mass", 1e-3, "mg", "milligram", "milligrams")
_add("mass", 1.0, "g", "gram", "grams")
_add("mass", 1e3, "kg", "kilogram", "kilograms")
_add("mass", 453.59237, "lb", "lbs", "pound", "pounds")
_add("mass", 28.349523125, "oz", "ounce", "ounces")
_add("time", 1.0, "s", "sec", "second", "seconds")
_add("time", 60.0, "minute", "minutes", "mins")
_add("time", 3600.0, "h", "hr", "hrs", "hour", "hours")
_add("time", 86400.0, "day", "days")
_add("time", 604800.0, "week", "weeks")
_add("volume", 1e-3, "ml", "milliliter", "milliliters")
_add("volume", 1.0, "l", "liter", "liters", "litre", "litres")
_add("money", 1.0, "usd", "dollar", "dollars")
_add("money", 0.01, "cent", "cents")
_add("angle", 1.0, "degree", "degrees")
_add("celsius", 1.0, "celsius")
_add("fahrenheit", 1.0, "fahrenheit")
_add("speed", 0.44704, "mph")
_add("speed", 1 / 3.6, "km/h", "kph")
_add("speed", 1.0, "m/s")
for _name in ("cm", "m", "km", "mm", "ft", "feet", "inch", "inches", "meters", "centimeters", "miles", "units"):
    for _power, _word in ((2, "square"), (3, "cubic")):
        _base = UNITS.get(_name, ("units", 1.0))
        _add(f"{_base[0]}^{_power}", _base[1] ** _power, f"{_name}^{_power}", f"{_word} {_name}")
_add("units", 1.0, "unit", "units")
