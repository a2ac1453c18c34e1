"""What agents say that they used: it may be anything, and never pays for what others used."""

from __future__ import annotations

from typing import Any

import pytest

from whileai_simulate import simulate
from whileai_simulate.ledger import RunLedger


@pytest.mark.parametrize("told", [-5, -1e9, float("inf"), float("-inf"), float("nan"), True, "7", None, [1], 1e18])
@pytest.mark.parametrize("name", ["total_tokens", "prompt_tokens", "completion_tokens", "cost_usd"])
def test_what_is_no_count_counts_nothing(name: str, told: Any) -> None:
    ledger = RunLedger(100, 1.0)
    ledger.add_row({"usage": {"total_tokens": 40, "cost_usd": 0.5}}, recalled=False)
    ledger.add_row({"usage": {name: told}}, recalled=False)
    assert ledger.spent("tokens") == 40
    assert ledger.spent("usd") == 0.5


def test_a_budget_that_nothing_reports_to_is_warned_about() -> None:
    """An agent that says nothing of its tokens cannot be held to them; the user is told."""
    silent = simulate(lambda message: "ok", situations=4, repeats=1, budget={"tokens": 100}, progress=False)
    assert any("budget of 100 tokens: no row and no model reports any" in w for w in silent.warnings)

    def telling(message: str) -> dict[str, Any]:
        return {"final_text": "ok", "usage": {"total_tokens": 10, "cost_usd": 0.1}}

    for budget in ({"tokens": 1000}, {"usd": 10.0}):
        data = simulate(telling, situations=4, repeats=1, budget=budget, progress=False)
        assert not any("held nothing" in w for w in data.warnings)


def test_a_ceiling_that_was_passed_is_told_and_held_once_the_most_is_known() -> None:
    """Nobody can know what a plain agent will use; what it may use at most, its owner can say."""

    def growing() -> Any:
        calls = [0]

        def agent(message: str) -> dict[str, Any]:
            calls[0] += 1
            return {"final_text": "ok", "usage": {"total_tokens": 10 if calls[0] < 4 else 60}}

        return agent

    call: dict[str, Any] = {
        "situations": 20,
        "repeats": 1,
        "concurrency": 4,
        "budget": {"tokens": 75},
        "progress": False,
    }
    passed = simulate(growing(), **call)
    assert passed.report.tokens > 75
    assert any("budget of 75 tokens was passed" in w and "rollout_tokens" in w for w in passed.warnings)
    held = simulate(growing(), **call, options={"rollout_tokens": 60})
    assert held.report.tokens <= 75
    assert not any("was passed" in w for w in held.warnings)
