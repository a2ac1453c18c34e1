"""What is inferred from tools, and what is a guess."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypedDict

import pytest

from whileai_kernel.tools import tool
from whileai_simulate import preflight
from whileai_simulate.axes import build_axes, policy_rules
from whileai_simulate.entities import read_domain


def shared_data() -> Path:
    root = os.environ.get("WHILEAI_SHARED")
    places = [Path(root)] if root else [p / "shared" for p in Path(__file__).resolve().parents]
    for place in places:
        if (place / "data").is_dir():
            return place / "data"
    pytest.skip("the folder shared/data is absent; set WHILEAI_SHARED to the folder that holds data/")


def tau2(name: str) -> tuple[list[dict[str, Any]], str]:
    data = shared_data()
    tools = json.loads((data / f"tau2_{name}_tools.json").read_text(encoding="utf-8"))
    return tools, (data / f"tau2_{name}_policy.md").read_text(encoding="utf-8")


def test_retail_tools() -> None:
    tools, _ = tau2("retail")
    domain = read_domain(tools)
    assert domain.person == "user"
    assert {n: (i.mode, i.entity) for n, i in domain.tools.items()} == {
        "calculate": ("generic", None),
        "cancel_pending_order": ("change", "order"),
        "exchange_delivered_order_items": ("change", "order"),
        "find_user_id_by_name_zip": ("find", "user"),
        "find_user_id_by_email": ("find", "user"),
        "get_order_details": ("get", "order"),
        "get_product_details": ("get", "product"),
        "get_item_details": ("get", "item"),
        "get_user_details": ("get", "user"),
        "list_all_product_types": ("list", "product"),
        "modify_pending_order_address": ("change", "order"),
        "modify_pending_order_items": ("change", "order"),
        "modify_pending_order_payment": ("change", "order"),
        "modify_user_address": ("change", "user"),
        "return_delivered_order_items": ("change", "order"),
        "transfer_to_human_agents": ("generic", None),
    }
    assert domain.tools["cancel_pending_order"].needs == "pending"
    assert domain.tools["cancel_pending_order"].done == "cancelled"
    assert domain.entities["order"].owner == "user"
    assert domain.entities["product"].owner is None
    assert domain.tools["cancel_pending_order"].params[1].options == ("no longer needed", "ordered by mistake")


def test_every_clause_of_a_policy_is_a_value() -> None:
    _, policy = tau2("retail")
    rules = policy_rules(policy)
    assert len(rules) >= 30
    assert len({r.value for r in rules}) == len(rules)
    many = "\n".join(f"- Agents must never do thing number {i}." for i in range(300))
    assert len(policy_rules(many)) == 300
    assert policy_rules("Help customers with orders.") == []
    assert policy_rules(None) == []


class Order(TypedDict):
    order_id: str
    state: str
    lines: list[str]


def test_declared_results_win_and_names_are_only_a_stated_fallback() -> None:
    @tool(kind="read")
    def fetch(order_id: str) -> Order:
        """Fetch one."""
        ...

    @tool
    def cancel_order(order_id: str) -> dict[str, Any]:
        """Cancel."""
        ...

    report = preflight([fetch, cancel_order])
    assert {"state", "lines"} <= set(report.entities["order"]["fields"])
    assert report.tools["fetch"]["kind"] == "read"
    assert any(g.startswith("cancel_order: kind 'write' is guessed") for g in report.guesses)
    assert not any(g.startswith("fetch: kind") for g in report.guesses)
    assert "guess:" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["person"] is None


@pytest.mark.parametrize(
    ("name", "params", "mode", "entity"),
    [
        ("getOrder", {"orderId": "string"}, "get", "order"),
        ("get_ticket", {"id": "string"}, "get", "ticket"),
        ("get-invoice", {"invoice_number": "string"}, "get", "invoice"),
        ("list_invoices", {"customer_id": "string"}, "list", "invoice"),
        ("search_hotels", {"city": "string"}, "find", "hotel"),
        ("close_account", {"account_id": "integer"}, "change", "account"),
        ("create_ticket", {"customer_id": "string", "subject": "string"}, "create", "ticket"),
        ("issue_refund", {"order_id": "string", "amount": "number"}, "create", "refund"),
        ("send_email", {"to": "string", "body": "string"}, "create", "email"),
    ],
)
def test_common_shapes(name: str, params: dict[str, str], mode: str, entity: str) -> None:
    properties = {k: {"type": t} for k, t in params.items()}
    schema = {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(params)}}
    info = read_domain([schema]).tools[name]
    assert (info.mode, info.entity) == (mode, entity)


def test_axes_can_be_pinned_dropped_and_added() -> None:
    domain = read_domain([{"name": "get_order", "parameters": {"properties": {"order_id": {"type": "string"}}}}])
    axes = build_axes(domain, None, changes={"stance": ["hurried"], "history": None, "channel": ["chat", "email"]})
    assert axes.values["stance"] == ["hurried"]
    assert "history" not in axes.values
    assert axes.values["channel"] == ["chat", "email"]
    with pytest.raises(ValueError, match="hurried"):
        build_axes(domain, None, changes={"stance": ["hurry"]})
    with pytest.raises(ValueError, match="unknown axis"):
        build_axes(domain, None, changes={"mood": None})
