"""What a user knows is no secret of the grader: recorded agent runs must not be called leaks for listening."""

from __future__ import annotations

from typing import Any

import pytest

from whileai_guard.leaks import no_leak, quoted_privileged


def row(assistant: str, **privileged: Any) -> dict[str, Any]:
    ask = "Hi, I am mia_li_3668 and I want the cheapest flight from New York to Seattle on May 20."
    return {
        "prompt": ask,
        "final_text": assistant,
        "messages": [{"role": "user", "content": ask}, {"role": "assistant", "content": assistant}],
        "privileged": privileged,
    }


GOAL = "You are mia_li_3668. You want the cheapest flight from New York to Seattle on May 20, within 3-4 hours of noon."


def test_a_goal_in_the_ask_is_no_leak() -> None:
    assert quoted_privileged(row("Done.", goal=GOAL, user_id="mia_li_3668")) == []


def test_an_agent_that_words_the_goal_has_listened() -> None:
    said = "I looked for the cheapest flight from New York to Seattle on May 20, within 3-4 hours of noon."
    assert no_leak(row(said, goal=GOAL, reference="HAT136"))["value"] == 1.0


@pytest.mark.parametrize(
    "phrase", ["For your reference: 4 bags.", "for future reference, it is 4.", "For reference: 4."]
)
def test_for_your_reference_is_no_source(phrase: str) -> None:
    assert no_leak(row(phrase, reference="4217"))["value"] == 1.0


def test_a_reference_in_the_ask_is_still_found() -> None:
    secret = "book flight HAT136 and HAT039 and pay with the larger certificate first then the card"
    found = quoted_privileged({**row("Done.", reference=secret), "prompt": f"Please {secret}"})
    assert [q.how for q in found] == ["verbatim"]
    assert found[0].span.where == "prompt"


def test_an_agent_that_quotes_the_reference_is_still_found() -> None:
    secret = "book flight HAT136 and HAT039 and pay with the larger certificate first then the card"
    assert no_leak(row(f"I will {secret}.", reference=secret))["value"] == 0.0
    assert no_leak(row("The reference is 4217.", reference="4217"))["value"] == 0.0
