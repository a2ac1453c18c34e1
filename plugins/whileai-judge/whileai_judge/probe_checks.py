"""What every probe of judges must do: the conformance checks of the kind ``probes``."""

from __future__ import annotations

import copy
from typing import Any

from whileai_kernel.testing.kit import Check, Subject

_ROW: dict[str, Any] = {
    "task_id": "t",
    "prompt": "Where is my order number seven?",
    "final_text": "It is lost somewhere.",
    "messages": [
        {"role": "user", "content": "Where is my order number seven?"},
        {"role": "assistant", "content": "It is lost somewhere."},
    ],
}


def gives_a_text(subject: Subject) -> None:
    """A probe without a text probes nothing."""
    text = subject.component(copy.deepcopy(_ROW))
    assert isinstance(text, str), f"on a plain row it gave {text!r}"
    assert text.strip(), "on a plain row its text is blank"


def is_repeatable(subject: Subject) -> None:
    """A probe that changes from call to call compares two judges on two different texts."""
    first, second = subject.component(copy.deepcopy(_ROW)), subject.fresh()(copy.deepcopy(_ROW))
    assert first == second, f"{first!r} and then {second!r}"


def does_what_it_declares(subject: Subject) -> None:
    """A probe that keeps the reply is tried on failing replies only, another on all: the two must not be mixed up."""
    reply = _ROW["final_text"]
    text = subject.component(copy.deepcopy(_ROW))
    keeps = bool(subject.attribute("keeps_reply", False))
    found = "not " if keeps else ""
    assert (reply in text) == keeps, f"keeps_reply is {keeps}, but the reply is {found}in its text"


def survives_odd_rows(subject: Subject) -> None:
    """A row without a prompt or a reply must not end the probing of the others."""
    for row in ({}, {"prompt": None, "final_text": None}, {"prompt": [], "final_text": ""}):
        text = subject.component(row)
        assert text is None or isinstance(text, str), f"on {row} it gave {text!r}"


def leaves_the_row_alone(subject: Subject) -> None:
    """A probe that changes the row changes what the next probe sees."""
    row = copy.deepcopy(_ROW)
    subject.component(row)
    assert row == _ROW, "the row was changed"


PROBE_CHECKS: tuple[Check, ...] = (
    gives_a_text,
    is_repeatable,
    does_what_it_declares,
    survives_odd_rows,
    leaves_the_row_alone,
)
