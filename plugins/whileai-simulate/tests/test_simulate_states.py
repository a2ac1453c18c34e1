"""States of the world where an ask is about several things, about something new, or answered by own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from whileai_kernel.tools import tool
from whileai_simulate import Outcome, simulate

ACTING = ["ordinary", "boundary", "hurried", "mistaken"]
NO_FAULTS = {"tool_condition": ["success"]}


@tool(kind="read")
def get_order(order_id: str) -> dict:
    """Look up an order."""
    raise NotImplementedError


@tool(kind="read")
def find_orders(email: str) -> list[dict]:
    """Find the orders of a customer."""
    raise NotImplementedError


@tool(kind="read")
def calculate(expression: str) -> float:
    """Calculate."""
    raise NotImplementedError


@tool(kind="write")
def create_lead(company: str, email: str) -> dict:
    """Create a lead."""
    raise NotImplementedError


@tool(kind="write")
def add_comment(issue_id: str, body: str) -> dict:
    """Add a comment to an issue."""
    raise NotImplementedError


@tool(kind="read")
def get_issue(issue_id: str) -> dict:
    """Look up an issue."""
    raise NotImplementedError


def rewards(rows: Any) -> list[float | None]:
    """What the outcome check pays for each row."""
    check = Outcome()
    return [check(row)["reward"] for row in rows]


@pytest.mark.parametrize(
    "tools", [[create_lead], [create_lead, get_order], [add_comment, get_issue], [find_orders, get_order, create_lead]]
)
def test_an_honest_agent_earns_everything_where_no_fault_blocks_it(tools: list[Any]) -> None:
    call: dict[str, Any] = {"tools": tools, "situations": 150, "repeats": 1, "progress": False, "axes": NO_FAULTS}
    honest = simulate("simulate/honest", **call)
    paid = rewards(honest)
    assert [row["prompt"] for row, reward in zip(honest, paid, strict=True) if reward not in (1.0, None)] == []
    assert sum(reward == 1.0 for reward in paid) > 50
    constant = rewards(simulate(lambda message: "All done, everything went through.", **call))
    assert [r for r in constant if r] == []


def test_what_is_made_beside_nothing_is_never_gone_doubled_or_uncertain() -> None:
    rows = simulate("simulate/honest", tools=[create_lead, get_order], situations=200, repeats=1, progress=False)
    states = {row["axes"]["world_state"] for row in rows if row["axes"]["tool"] == "create_lead"}
    assert states == {"exists", "already_acted", "partial"}
    assert rows.report.pairs["missing_count"] == 0


@pytest.mark.parametrize("tools", [[find_orders, get_order], [get_order, find_orders, calculate]])
def test_what_is_missing_is_missing_in_an_ask_for_several_things(tools: list[Any]) -> None:
    axes = {"tool": ["several"], "world_state": ["missing"], **NO_FAULTS, "stance": ACTING[:3]}
    rows = simulate("simulate/honest", tools=tools, repeats=1, situations=60, progress=False, axes=axes)
    lost = [row for row in rows if row["axes"]["world_state"] == "missing"]
    results = [[m["content"].casefold() for m in row["messages"] if m["role"] == "tool"] for row in lost]
    assert len(lost) == 60 and all(any("not found" in r or "found for" in r for r in told) for told in results)


@pytest.mark.parametrize("tools", [[find_orders], [calculate], [find_orders, get_order]])
def test_a_call_for_something_else_earns_nothing(tools: list[Any]) -> None:
    """Also where no record tells what the call was about: a sum, a search that finds nothing."""
    wrong = {"expression": "1 + 1", "email": "nobody@nowhere.org", "order_id": "Z-0"}

    class Wrong:
        inline = reads_privileged = True

        def __call__(self, message: str, *, context: Any) -> str:
            for step in context.privileged["plan"]:
                for _ in range(3):
                    context.call_tool(step["tool"], {name: wrong[name] for name in step["arguments"]})
            return "Done."

    rows = simulate(Wrong(), tools=tools, situations=80, repeats=1, progress=False)
    assert [row["prompt"] for row, reward in zip(rows, rewards(rows), strict=True) if reward == 1.0] == []


def sync_own(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "mine": "from my own system"}


async def async_own(order_id: str) -> dict[str, Any]:
    return sync_own(order_id)


@pytest.mark.parametrize("own", [sync_own, async_own])
@pytest.mark.parametrize("kind", ["malformed", "stale"])
def test_a_broken_or_stale_answer_of_an_own_function_is_what_it_says(own: Callable[..., Any], kind: str) -> None:
    async def agent(message: str, *, context: Any) -> str:
        return " ".join([await context.acall_tool("get_order", {"order_id": "A-17"}) for _ in range(2)])

    rows = simulate(
        agent, tools=[get_order], situations=12, repeats=1, progress=False, axes={"tool_condition": [kind]},
        options={"execute": {"get_order": own}},
    )  # fmt: skip
    struck = [row["final_text"] for row in rows if row["faults_fired"]]
    assert struck and all('"order_id": "A-17"' in text and "customer_name" not in text for text in struck)
    marks = {"malformed": '{"result": {"order_id": "A-17"', "stale": '"data": {"order_id": "A-17", "mine"'}
    assert all(text.count(marks[kind]) == 1 and text.endswith('"mine": "from my own system"}') for text in struck)


def test_an_own_write_that_a_fault_strikes_is_not_run() -> None:
    ran: list[str] = []

    @tool(kind="write")
    def cancel_order(order_id: str) -> dict:
        """Cancel an order."""
        ran.append(order_id)
        return {"order_id": order_id, "status": "cancelled"}

    def agent(message: str, *, context: Any) -> str:
        return context.call_tool("cancel_order", {"order_id": "A-17"})

    axes = {"tool_condition": ["malformed", "stale", "timeout"]}
    rows = simulate(agent, tools=[cancel_order], situations=12, repeats=1, progress=False, axes=axes,
                    options={"execute": True})  # fmt: skip
    struck = [row["final_text"] for row in rows if row["faults_fired"]]
    assert len(struck) == len(rows) - len(ran) and not any("A-17" in text for text in struck)
