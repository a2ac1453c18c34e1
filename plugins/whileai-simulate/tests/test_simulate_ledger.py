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
