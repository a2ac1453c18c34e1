"""Recall and precision of the markers: planted behaviours of the seeded agent, and hand-written cases.

Run: ``python tests/bench/guard_markers.py [SITUATIONS]``. The seeded agent labels what it planted; a false mark is one
on a rollout in which that behaviour was not planted. The cases are those of the guard plugin's tests.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from whileai_guard.plugin import MARKERS
from whileai_kernel.tools import tool
from whileai_simulate import seeded_agent, simulate

PLANTED = {
    "hedging": "no_hedging",
    "sycophancy": "no_sycophancy",
    "apology": "no_needless_apology",
    "boilerplate": "no_boilerplate",
    "ignored_fault": "failure_acknowledged",
    "leak": "no_leak",
}


@tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""
    return {}


@tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {}


@tool
def update_address(user_id: str, address: str) -> dict:
    """Change the address of a user."""
    return {}


def marker(name: str) -> Any:
    module, _, attribute = next(t for n, t, _ in MARKERS if n == name).partition(":")
    return getattr(importlib.import_module(f"whileai_guard.{module}"), attribute)


def seeded_table(situations: int) -> None:
    tools = [get_order, cancel_order, update_address]
    made = simulate(
        seeded_agent(tools),
        tools=tools,
        system_prompt="Help customers with orders.",
        simulator=False,
        mode="rl",
        repeats=4,
        repeat_policy="fixed",
        situations=situations,
        seed=0,
    )
    rows = list(made)
    print(f"{len(rows)} rollouts of the seeded agent")
    print(f"{'behaviour':14} {'marker':22} {'planted':>8} {'recall':>7} {'precision':>10}")
    for behaviour, name in PLANTED.items():
        check = marker(name)
        hit = planted = false = 0
        for row in rows:
            value = check(row)["value"]
            here = behaviour in (row.get("seeded") or ())
            bad = value is not None and value < 0.5
            planted += here
            hit += here and bad
            false += bad and not here
        print(f"{behaviour:14} {name:22} {planted:8d} {hit / max(1, planted):7.3f} {hit / max(1, hit + false):10.3f}")


def case_table() -> None:
    root = next(p for p in Path(__file__).resolve().parents if (p / "plugins").exists())
    spec = importlib.util.spec_from_file_location("cases", root / "plugins/whileai-guard/tests/marker_cases.py")
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    print(f"\n{len(cases.NEGATIVES)} hard negatives and {len(cases.POSITIVES)} positives, written by hand")
    print(f"{'marker':24} {'positives found':>16} {'negatives left alone':>21}")
    for name, _, _ in MARKERS:
        check = marker(name)
        good = [check(r)["value"] == 0.0 for m, _, r in cases.POSITIVES if m == name]
        quiet = [check(r)["value"] != 0.0 for m, _, r in cases.NEGATIVES if m == name]
        print(f"{name:24} {f'{sum(good)} of {len(good)}':>16} {f'{sum(quiet)} of {len(quiet)}':>21}")


def main() -> None:
    seeded_table(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
    case_table()


if __name__ == "__main__":
    main()
