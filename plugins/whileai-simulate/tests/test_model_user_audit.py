"""`audit_user`: planted faults of users are found, and what only looks like one is not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.testing import ScriptedModel
from whileai_simulate import UserAudit, audit_user, simulate
from whileai_simulate.audit import wilson_over_tasks
from whileai_simulate.user_faults import DECISIVE, FAULTS, user_faults

TOOLS = [
    {"type": "function", "function": {"name": "get_order", "parameters": {}}, "x-kind": "read"},
    {"type": "function", "function": {"name": "cancel_order", "parameters": {}}, "x-kind": "write"},
    {"type": "function", "function": {"name": "update_address", "parameters": {}}, "x-kind": "write"},
]
FACTS = {"first_name": "Ana", "email": "ana@example.com", "zip": "90210", "order_id": "ORD-1704"}
ASK = "Please cancel my order ORD-1704."
CONFIRM = "I found ORD-1704. Shall I cancel it? (yes/no)"


def row(*said: str, stance: str = "ordinary", **more: Any) -> dict[str, Any]:
    """A failed row: the agent and the user take turns after the ask, the agent first."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Only the supervisor of the night shift may approve a waiver of the fee."},
        {"role": "user", "content": ASK},
    ]
    for n, text in enumerate(said):
        messages.append({"role": "user" if n % 2 else "assistant", "content": text})
    plan = [{"tool": "cancel_order", "arguments": {"order_id": "ORD-1704", "payment": "card_5521877"}}]
    return {
        "task_id": "t", "rollout_id": "r", "prompt": ASK, "messages": messages, "tools": TOOLS, "reward": 0.0,
        "system_prompt": messages[0]["content"], "axes": {"stance": stance}, "ended_by": "user_stop",
        "world": {"entities": {"order": {"ORD-1704": {"payment": "card_5521877", "tracking": "TRK90817"}}}},
        "privileged": {"plan": plan, "user": {"facts": FACTS}, "goal": {}}, "user": {"kind": "model"}, **more,
    }  # fmt: skip


def calls(*results: str) -> list[dict[str, Any]]:
    made = [{"id": f"c{n}", "type": "function", "function": {"name": "get_order", "arguments": "{}"}} for n in range(1)]
    return [
        {"role": "assistant", "content": "", "tool_calls": made},
        *({"role": "tool", "tool_call_id": "c0", "content": r} for r in results),
    ]


def with_result(text: str, *said: str) -> dict[str, Any]:
    made = row(*said)
    made["messages"][2:2] = calls(text)
    return made


PLANTED: list[tuple[str, dict[str, Any]]] = [
    ("empty", row("What is your email?", "   ", "Sorry?")),
    ("wrong_role", row(CONFIRM, "How can I help you today?", "Sorry?")),
    ("wrong_role", row(CONFIRM, "I have cancelled your order.", "Sorry?")),
    ("wrong_role", row("Your email?", "As an AI I do not have an email.", "Sorry?")),
    ("wrong_role", row("Your email?", "*sighs and looks away* ana@example.com", "Thanks.")),
    ("wrong_role", row("Your email?", "User: ana@example.com", "Thanks.")),
    ("wrong_role", row("Your email?", "[The customer hands over the email]", "Thanks.")),
    ("wrong_role", row("Your email?", "The user would give ana@example.com.", "Thanks.")),
    ("wrong_role", row("Your email?", '{"message": "ana@example.com"}', "Thanks.")),
    ("off_goal", row(CONFIRM, "Yes, go ahead.", "Done.", stance="unsure")),
    ("off_goal", row(CONFIRM, "Sure, please do it.", "Done.", stance="exploratory")),
    ("off_goal", row(CONFIRM, "Yes. And please update my address to 12 Elm Street, too.", "Done.")),
    ("off_goal", row("Shall I update the address of the account to the new one? (yes/no)", "Yes, please.", "Done.")),
    ("leaked", with_result('{"tracking": "TRK90817"}', CONFIRM, "The tracking number is TRK90817, yes.", "Done.")),
    ("leaked", row(CONFIRM, "Yes, and refund card_5521877.", "Done.")),
    ("leaked", row(CONFIRM, "Yes, call cancel_order for me.", "Done.")),
    ("leaked", row(CONFIRM, "It was already_acted on, I think.", "Done.")),
    ("leaked", row(CONFIRM, "Only the supervisor of the night shift may approve a waiver, right?", "Done.")),
    ("leaked", row("<think>the refund needs a code that nobody may ever hear about</think>Your email?",
                   "ana@example.com, and the refund needs a code that nobody may ever hear about.", "Done.")),
    ("contradicts", row("What is your email?", "My email is bob@example.com.", "Thanks.")),
    ("contradicts", row("What is your zip?", "My zip is 10001.", "Thanks.")),
    ("contradicts", row("Which order?", "I meant ORD-9999.", "Thanks.")),
    ("contradicts", row("Your first name?", "My first name is Robert.", "Thanks.")),
    ("left_agreeing", row(CONFIRM, "Yes, go ahead. ###STOP###")),
    ("left_agreeing", row(CONFIRM, "Yes, please.")),
    ("left_agreeing", row(CONFIRM, user={"kind": "model", "closing": "Yes, do it, bye."})),
    ("left_asked", row("What is your email?")),
    ("left_asked", row("I can do that. Shall I go ahead? (yes/no)")),
    ("gave_up", row("Thanks, I have it. What is your email?", ended_by="user_gave_up")),
    ("gave_up", row(CONFIRM, ended_by="patience")),
    ("gave_up", row("I have done it, one moment for the receipt.", ended_by="user_gave_up",
                    world_log={"calls": [{"tool": "cancel_order", "effect": "changed"}]})),
    ("repeats", row("Is the reason a late delivery?", "I would really like this done today.",
                    "Is it a wrong size then?", "I would really like this done today.", "Hm.")),
    ("error", row(CONFIRM, ended_by="error", outcome="failed", error={"type": "X", "message": "m", "by": "user"})),
]  # fmt: skip

CLEAN: list[dict[str, Any]] = [
    row(CONFIRM, "Yes, please go ahead.", "Your order ORD-1704 is cancelled."),
    row("What is your email?", "ana@example.com", "Thanks. Shall I cancel it?", "Yes.", "Done."),
    row("Please confirm your zip code.", "My zip is 90210.", "Done."),
    row("Shall I cancel it?", "Yes.", "And the invoice too, shall I?", "No, only the order.", "Done."),
    row("Shall I cancel it?", "Yes, go ahead.", "Are you sure you want me to?", "Yes, go ahead.", "Done."),
    row("Is the reason a late delivery?", "I would really like this done today.", "Sorry, could you say that again?",
        "I would really like this done today.", "Done."),
    row("What is your email, please?", "I do not want to give my email here.", "What is your email, please?",
        "I do not want to give my email here.", "I cannot go on."),
    row("Shall I update your address as well?", "No, please don't update my address.", "Done."),
    row("Shall I look it up? (yes/no)", "Yes, please.", "It stands at pending.", stance="unsure"),
    row(CONFIRM, "No, I haven't decided yet.", "As you wish.", stance="unsure"),
    row(CONFIRM, "Please don't change anything yet.", "As you wish.", stance="exploratory"),
    row("What is the tracking number?", "I don't know the tracking number.", "Shall I go on without?", "Yes.", "Done."),
    row("Your order has the tracking number TRK90817. Shall I cancel it?", "Yes, TRK90817 can go back.", "Done."),
    row("Your email?", "My email is the one on file.", "I need it.", "It's ana@example.com.", "Done."),
    row("Your ID?", "My order ID is in my first message.", "Right. Shall I go ahead?", "Yes.", "Done."),
    row(CONFIRM, "Thank you for your patience. Yes, cancel it.", "Done."),
    row(CONFIRM, "Yes.", "Done. Is there anything else I can help you with?"),
    row("It is cancelled. Anything else?", user={"kind": "model", "closing": "No, that's all, thanks."}),
    row("Your order is cancelled.", user={"kind": "model", "closing": "Yes, perfect, thank you!"}),
    row("I cannot cancel it, it has been shipped.", ended_by="user_gave_up"),
    row("Please wait.", "How long?", "Please wait.", ended_by="user_gave_up"),
    row(CONFIRM, "Yes, please.", ended_by="max_turns"),
    row(CONFIRM, "Yes! *very* much so, it is a total waste.", "Done."),
    row(CONFIRM, "Great (and thanks for checking) - yes.", "Done."),
    row(CONFIRM, "Skip the checks, yes, do it now!", "I cannot skip them.", stance="adversarial"),
    row(CONFIRM, "Yes. It cost me 45.00 and I waited 12 days, since 10:30 that day.", "Done."),
    row("Could you tell me why?", "Could you tell me what reasons there are?", "Late or wrong size.", "Late.", "Done."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "made"), PLANTED)
def test_planted_faults_are_found(kind: str, made: dict[str, Any]) -> None:
    assert kind in {f.kind for f in user_faults(made)}


def test_every_kind_of_fault_is_planted() -> None:
    assert {kind for kind, _ in PLANTED} == set(FAULTS)


@pytest.mark.parametrize("made", CLEAN)
def test_what_only_looks_like_a_fault_is_none(made: dict[str, Any]) -> None:
    assert [(f.kind, f.why) for f in user_faults(made)] == []


def test_recall_and_precision_over_a_mixed_set() -> None:
    rows = [{**r, "task_id": f"p{n}"} for n, (_, r) in enumerate(PLANTED)]
    rows += [{**r, "task_id": f"c{n}"} for n, r in enumerate(CLEAN)]
    audit = audit_user(rows)
    wanted = {n for n, (kind, _) in enumerate(PLANTED)}
    found = {r.position for r in audit.found}
    assert found == wanted
    assert audit.blamed == sum(kind in DECISIVE for kind, _ in PLANTED)
    assert audit.failures == len(rows)
    assert audit.low < audit.share < audit.high  # type: ignore[operator]


def test_users_of_the_offline_engine_have_no_faults() -> None:
    """The scripted user keeps to its facts, in worlds of every kind, with an agent that asks."""

    def agent(messages: list[dict[str, Any]]) -> str:
        asked = sum(m["role"] == "assistant" for m in messages)
        return ["Thanks. What is your email?", "Thank you. Shall I go ahead? (yes/no)", "All done."][asked]

    tools = [{"name": n, "kind": k, "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
             for n, k in (("get_order", "read"), ("cancel_order", "write"))]  # fmt: skip
    rows = simulate(agent, tools=tools, situations=60, repeats=1, user="scripted", options={"patience": 5}, seed=2)
    for made in rows:
        made["reward"] = 0.0
    adversarial = [r for r in rows if r["axes"]["stance"] == "adversarial"]
    audit = audit_user([r for r in rows if r not in adversarial])
    assert audit.failures > 40
    wrong = [(f.kind, f.why) for r in audit.found for f in r.faults if f.kind != "off_goal"]
    assert wrong == []
    reads = {r["task_id"] for r in rows if "cancel" not in r["prompt"]}
    assert {r.task_id for r in audit.found} <= reads, "agreeing is off the goal of an ask to look, and of no other"


# -- the report -------------------------------------------------------------------------------------------------


def test_what_counts() -> None:
    planted = row(CONFIRM, "Yes, please.")
    rows = [
        {**planted, "task_id": "a"},
        {**planted, "task_id": "a", "reward": 1.0},
        {**planted, "task_id": "b", "reward": None},
        {**CLEAN[0], "task_id": "c"},
        {"task_id": "d", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}], "reward": 0.0},
    ]
    audit = audit_user(iter(rows))
    assert (audit.rows, audit.talks, audit.failures, audit.unscored, audit.blamed, audit.tasks) == (5, 4, 2, 1, 1, 2)
    assert (audit.share, audit.passed_with_fault) == (0.5, 1)
    assert audit.faults == {"left_agreeing": 3}
    assert audit.in_failures == {"left_agreeing": 1}
    json.dumps(audit.to_dict(), allow_nan=False)
    text = str(audit)
    assert "1 of 2 failures have a fault of the simulated user (0.50 [" in text
    assert "ended by: user_stop 100%" in text
    assert "left_agreeing, row 0, message 4 (rule)" in text
    assert "<pre>" in audit._repr_html_()


def test_nothing_to_audit_is_said() -> None:
    assert "nothing to audit" in str(audit_user([]))
    assert audit_user([]).share is None
    assert "no failures among 1 talks" in str(audit_user([{**CLEAN[0], "reward": 1.0}]))
    with pytest.raises(ParameterError, match="confidence"):
        audit_user([], confidence=95)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"messages": None},
        {"messages": [{"role": "user"}] * 3},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}] * 2},
        {"user": "ana", "messages": []},
        {"user": {}, "privileged": {"user": "ana"}},
        {"user": {}, "privileged": {"user": {"user_id": 3}, "plan": None}, "world": None},
    ],
)
def test_rows_of_other_tools_end_no_audit(odd: dict[str, Any]) -> None:
    assert isinstance(audit_user([{"task_id": "t", "prompt": "p", "reward": 0.0, **odd}]), UserAudit)


def test_the_interval_is_over_tasks() -> None:
    good, bad = CLEAN[0], row(CONFIRM, "Yes, please.")
    rows = [{**(bad if t < 5 else good), "task_id": f"t{t}"} for t in range(10)]
    once, often = audit_user(rows), audit_user([r for r in rows for _ in range(10)])
    assert once.share == often.share == 0.5
    assert often.high - often.low >= once.high - once.low - 1e-9, "more rollouts of the same tasks are no more tasks"


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_own_interval_is_an_interval(values: list[float]) -> None:
    mean, low, high = wilson_over_tasks(values)
    assert 0.0 <= low <= mean <= high <= 1.0
    assert low < high, "never of no width"


def test_own_interval_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = [0.0, 0.0, 0.25, 1.0, 0.5, 0.0, 1.0, 0.75]
    n, mean = len(values), sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (n - 1) / n
    size = max(n, mean * (1 - mean) / variance)
    q = stats.t.ppf(0.975, n - 1)
    root = (mean * (1 - mean) / size + q * q / (4 * size * size)) ** 0.5
    centre, half = (mean + q * q / (2 * size)) / (1 + q * q / size), q / (1 + q * q / size) * root
    assert wilson_over_tasks(values) == pytest.approx((mean, centre - half, centre + half), abs=1e-9)
    from whileai_simulate.audit import _t_quantile

    for df in (1, 2, 3, 4, 7, 30, 401):
        assert _t_quantile(df, 0.975) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-7)


def test_the_measure_plugin_works_the_interval_out_where_it_is_installed() -> None:
    measure = pytest.importorskip("whileai_measure")
    rows = [{**(row(CONFIRM, "Yes, please.") if t < 3 else CLEAN[0]), "task_id": f"t{t}"} for t in range(12)]
    audit = audit_user(rows)
    assert audit.interval_by == "measure/pass_at"
    want = measure.pass_at([{"task_id": f"t{t}", "reward": float(t < 3)} for t in range(12)], k=1).pass_1
    assert (audit.share, audit.low, audit.high) == (want.value, want.low, want.high)


# -- the judge --------------------------------------------------------------------------------------------------


def test_a_judge_adds_what_rules_cannot_see() -> None:
    failed, fine = {**CLEAN[1], "task_id": "a"}, {**CLEAN[0], "task_id": "b", "reward": 1.0}
    found = {"faults": [{"fault": "off_goal", "turn": 3, "why": "it wanted a horse"}, {"fault": "no such", "turn": 1}]}
    model = ScriptedModel(lambda m: "I think\n" + json.dumps(found), name="judge-1")
    audit = audit_user([failed, fine], judge=model)
    assert len(model.calls) == 1, "failed talks alone"
    assert audit.judge == "judge-1"
    assert [(f.kind, f.turn, f.by) for r in audit.found for f in r.faults] == [("off_goal", 3, "judge-1")]
    assert audit.blamed == 1
    shown = json.dumps(model.calls[0]["messages"])
    for secret in ("TRK90817", "supervisor", "cancel_order"):
        assert secret not in shown


def test_a_judge_that_cannot_be_read_is_counted_and_one_that_never_answers_raises() -> None:
    answers = iter(["what?", '{"faults": []}'])
    audit = audit_user([CLEAN[0], CLEAN[1]], judge=ScriptedModel(lambda m: next(answers)), concurrency=1)
    assert audit.judge_unread == 1
    assert "1 answers could not be read" in str(audit)
    with pytest.raises(WhileaiError, match="failed at every one of 2 talks"):
        audit_user([CLEAN[0], CLEAN[1]], judge=ScriptedModel(lambda m: "no"))


# -- recorded talks of another tool ------------------------------------------------------------------------------


def shared_file(name: str) -> Path:
    root = os.environ.get("WHILEAI_SHARED")
    places = [Path(root)] if root else [p / "shared" for p in Path(__file__).resolve().parents]
    for place in places:
        if (place / "data" / name).is_file():
            return place / "data" / name
    pytest.skip(f"shared/data/{name} is absent; set WHILEAI_SHARED to the folder that holds data/")


def test_two_hundred_recorded_talks() -> None:
    """Read by hand: both talks that the rules mark have the fault (a birth date made up; gone in the agreeing turn)."""
    rows = []
    for record in json.loads(shared_file("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8")):
        task, talk = record["info"]["task"], record["traj"]
        ask = next(m["content"] for m in talk if m["role"] == "user")
        own = {"goal": task["instruction"], "facts": {"notes": task["instruction"], "user_id": task["user_id"]}}
        rows.append({"task_id": str(record["task_id"]), "prompt": ask, "messages": talk, "reward": record["reward"],
                     "privileged": {"user": own}})  # fmt: skip
    audit = audit_user(rows)
    assert (audit.rows, audit.failures) == (200, 116)
    assert [(r.position, f.kind, f.turn) for r in audit.found for f in r.faults] == [
        (12, "left_agreeing", 16),
        (196, "contradicts", 19),
    ]
    # The same talks with the last two turns cut away and a stop put behind the yes: found in every one of them.
    cut, n = [], 0
    for made in rows:
        messages = made["messages"]
        yes = [
            i
            for i, m in enumerate(messages)
            if m["role"] == "user"
            and str(m["content"]).startswith("Yes, please")
            and "?" in str(messages[i - 1]["content"])
        ]
        if yes:
            n += 1
            stop = {"role": "user", "content": f"{messages[yes[0]]['content']} ###STOP###"}
            cut.append({**made, "messages": [*messages[: yes[0]], stop], "reward": 0.0})
    assert n > 20
    assert audit_user(cut).in_failures.get("left_agreeing", 0) >= 0.9 * n
