"""Conformance checks of the kinds that this plugin adds: embedders, features, guards."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

ROW: dict[str, Any] = {
    "task_id": "t",
    "prompt": "Where is my order?",
    "final_text": "It ships on Monday.",
    "reward": 1.0,
    "status": "ok",
    "markers": {},
}
TEXTS = ("Where is my order?", "It ships on Monday.", "")


def embeds_one_vector_per_text(subject: Any) -> None:
    """An embedder that loses a text compares the wrong pairs."""
    from whileai_guard.embedders import unit_rows

    vectors = unit_rows(subject.component(list(TEXTS)))
    assert vectors.shape[0] == len(TEXTS), f"{vectors.shape[0]} vectors for {len(TEXTS)} texts"


def embeds_the_same_twice(subject: Any) -> None:
    """An embedder that changes its mind makes a report that nobody can repeat."""
    from whileai_guard.embedders import unit_rows

    first, second = (unit_rows(subject.component(list(TEXTS[:2]))) for _ in range(2))
    assert abs(first - second).max() < 1e-5, "two calls gave different vectors"


def gives_finite_numbers(subject: Any) -> None:
    """A feature that is NaN on one row poisons a whole scan."""
    found = subject.component(ROW)
    values = found.values() if isinstance(found, Mapping) and "value" not in found else [found]
    for value in values:
        value = value["value"] if isinstance(value, Mapping) else value
        assert value is None or math.isfinite(float(value)), f"got {value!r}"


def leaves_the_row_alone(subject: Any) -> None:
    """A component that changes the row changes what every later one sees."""
    before = json.dumps(ROW, sort_keys=True)
    subject.component(ROW)
    assert json.dumps(ROW, sort_keys=True) == before, "the row was changed"


def reports_as_plain_values(subject: Any) -> None:
    """A report that is not JSON cannot be stored beside the run that it describes."""
    report = subject.component([ROW], against=[ROW])
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report).strip(), "the report prints nothing"


def says_when_nothing_was_compared(subject: Any) -> None:
    """A clean bill for a comparison that did not run is believed by somebody."""
    report = subject.component([ROW], against=[])
    assert getattr(report, "not_checked", ()) or getattr(report, "n_rows", 1) == 0, "nothing was said"


CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "embedders": (embeds_one_vector_per_text, embeds_the_same_twice),
    "features": (gives_finite_numbers, leaves_the_row_alone),
    "guards": (reports_as_plain_values, says_when_nothing_was_compared),
}
