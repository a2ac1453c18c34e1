"""Preflight with a judge: agents that do nothing, and what they are paid. The progress bar, which stays quiet."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import types
import warnings
from typing import Any

import pytest

from whileai_kernel.tools import tool
from whileai_simulate import Outcome, preflight
from whileai_simulate.baseline import NULL_ANSWERS, null_baseline
from whileai_simulate.progress import make_progress


@tool(kind="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id."""
    ...


@tool(kind="write")
def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    ...


TOOLS = [get_order, cancel_order]

JUDGES: dict[str, tuple[Any, set[str]]] = {
    "pays nobody": (lambda row: 0.0, set()),
    "pays everybody": (lambda row: 1.0, {"empty", "constant", "refusal"}),
    "pays silence": (lambda row: not row["final_text"], {"empty"}),
    "pays claims": (lambda row: "done" in row["final_text"].casefold(), {"constant"}),
    "pays manners": (lambda row: 0.3 if "sorry" in row["final_text"] else 0.0, {"refusal"}),
    "pays a tool call": (lambda row: bool(row["world_log"]["calls"]), set()),
    "by the state": (Outcome(), set()),
}


@pytest.mark.parametrize("name", JUDGES)
def test_preflight_says_which_do_nothing_agents_a_judge_pays(name: str) -> None:
    judge, wanted = JUDGES[name]
    found = preflight(TOOLS, "Always verify the order.", judge=judge)
    assert {n.agent for n in found.nulls if n.example} == wanted
    assert all(n.rows > 20 for n in found.nulls)
    assert all(any(agent in w and "does nothing" in w for w in found.warnings) for agent in wanted)
    assert len(found.warnings) == len(wanted)
    assert all(w in str(found) for w in found.warnings)
    assert [n["agent"] for n in found.to_dict()["nulls"]] == list(NULL_ANSWERS)


def test_a_judge_that_raises_is_reported_and_not_taken_for_a_good_one() -> None:
    def judge(row: Any) -> float:
        raise ValueError("no key")

    found = preflight(TOOLS, judge=judge)
    assert len(found.warnings) == 3
    assert all("no key" in w for w in found.warnings)


def test_without_a_judge_nothing_is_graded() -> None:
    assert preflight(TOOLS).nulls == ()
    assert "does nothing" not in str(preflight(TOOLS))


def test_the_mean_is_that_of_the_scored_situations() -> None:
    (empty, constant, refusal) = null_baseline(lambda row: 0.25, TOOLS, situations=12)
    for result in (empty, constant, refusal):
        assert result.mean == 0.25
        assert (result.scored, result.paid) == (result.rows, 0)


# -- progress -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notebook", [False, True])
def test_a_bar_never_warns_about_missing_widgets(notebook: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] in ("tqdm", "ipywidgets")]:
        monkeypatch.delitem(sys.modules, name)
    if notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    real_import, real_find = builtins.__import__, importlib.util.find_spec

    def no_widgets(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "ipywidgets":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_widgets)
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n == "ipywidgets" else real_find(n, *a))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bar = make_progress(True, 4)
        bar.update(4, 4)
        bar.close()
