"""Signal, group size, curriculum, retirement, nested subsets, saturation, and the gate."""

from __future__ import annotations

import json
import random

import pytest

from whileai_kernel.errors import FindingsError, ParameterError
from whileai_select import (
    build_preference_pairs,
    curriculum,
    fit_saturation,
    group_signal,
    next_round,
    publish_gate,
    recommend_k,
    retire_solved,
    select,
    trim,
)  # fmt: skip
from whileai_select._rates import BetaPrior, fit_prior, wilson
from whileai_select.signal import mixed_share


def group(task, rewards, **more):
    return [
        {"task_id": task, "rollout_id": f"{task}-{i}", "index": i, "prompt": f"ask {task}", "final_text": f"answer {i}",
         "reward": r, "status": "ok" if r is not None else "missing", "markers": {}, **more}
        for i, r in enumerate(rewards)
    ]  # fmt: skip


def sampled(seed, tasks, k, a=1.0, b=1.0):
    rng = random.Random(seed)
    rows, truth = [], {}
    for t in range(tasks):
        truth[f"t{t}"] = p = rng.betavariate(a, b)
        rows += group(f"t{t}", [float(rng.random() < p) for _ in range(k)])
    return rows, truth


def test_signal_counts_live_groups_and_variance():
    signal = group_signal(
        [*group("a", [1, 0, 0, 0]), *group("b", [1.0] * 4), *group("c", [None] * 4), *group("d", [0.2, 0.6])]
    )
    assert (signal.groups, signal.live, signal.dead_rows, signal.rows, signal.unscored) == (3, 2, 4, 10, 4)
    assert signal.variance == pytest.approx((3 / 16 + 0 + 0.04) / 3)
    assert json.dumps(signal.to_dict()) and signal._repr_html_()


def test_mixed_share_is_the_closed_form_of_the_beta_binomial():
    integrate = pytest.importorskip("scipy.integrate")
    stats = pytest.importorskip("scipy.stats")
    for a, b, k in ((1.0, 1.0, 4), (0.3, 0.6, 8), (4.0, 2.0, 16)):

        def mixed(p, a=a, b=b, k=k):
            return (1 - p**k - (1 - p) ** k) * stats.beta.pdf(p, a, b)

        numeric = integrate.quad(mixed, 0, 1)[0]
        assert mixed_share(BetaPrior(a, b), k) == pytest.approx(numeric, abs=1e-6)


def test_prior_fit_recovers_what_made_the_data():
    rows, _ = sampled(1, 800, 8, a=2.0, b=4.0)
    tally = {}
    for r in rows:
        c, n = tally.get(r["task_id"], (0.0, 0.0))
        tally[r["task_id"]] = (c + r["reward"], n + 1.0)
    counts = {}
    for key in tally.values():
        counts[key] = counts.get(key, 0) + 1
    prior = fit_prior(counts)
    assert prior.a == pytest.approx(2.0, rel=0.3) and prior.b == pytest.approx(4.0, rel=0.3)


def test_recommended_k_grows_with_difficulty():
    easy = recommend_k(sampled(2, 200, 4, a=2.0, b=2.0)[0])
    hard = recommend_k(sampled(2, 200, 4, a=0.3, b=3.0)[0])
    assert 2 <= easy.k < hard.k <= 64 and "recommend k=" in str(easy) and json.dumps(easy.to_dict())
    with pytest.raises(ParameterError):
        recommend_k(group("a", [None]))


def test_share_truly_outside_the_band_is_told_and_falls_with_k():
    """Kept groups have rates that the policy samples; what the report expects is what the known truth shows."""
    told, true = [], []
    for k in (4, 8, 32):
        rows, truth = sampled(3, 800, k)
        chosen = select(rows)
        kept = {r["task_id"] for r in chosen.rows}
        true.append(sum(not 0.2 <= truth[t] <= 0.8 for t in kept) / len(kept))
        told.append(chosen.report["expected_outside_band"])
        fresh = random.Random(99)
        again = sum(sum(fresh.random() < truth[t] for _ in range(20)) / 20 for t in kept) / len(kept)
        assert chosen.report["mean_rate_kept"] == pytest.approx(again, abs=0.04)
    assert true[0] > true[1] > true[2]
    for a, b in zip(told, true, strict=True):
        assert a == pytest.approx(b, abs=0.05)


def test_retired_tasks_are_solved_for_sure():
    rows = [*group("few", [1.0] * 4), *group("many", [1.0] * 40), *group("half", [1.0, 0.0] * 20)]
    chosen = retire_solved(rows)
    assert {e.task_id for e in chosen.ledger if not e.kept} == {"many"} and wilson(4, 4)[0] == pytest.approx(
        0.51, abs=0.01
    )
    assert chosen.report["dropped"] == {"solved": 40}


def test_next_round_gives_each_row_one_reason():
    rows = [
        *group("solved", [1.0] * 40),
        *group("live", [1.0, 0.0]),
        *group("dead", [0.0] * 4),
        *group("none", [None] * 2),
    ]
    chosen = next_round(rows)
    by_task = {e.task_id: e.reason for e in chosen.ledger}
    assert by_task == {"solved": "solved", "live": "kept", "dead": "unanimous_fail", "none": "not_scored"}
    assert len(chosen.rows) + sum(chosen.report["dropped"].values()) == len(rows)
    assert [e.position for e in chosen.ledger] == list(range(len(rows)))


def test_curriculum_goes_from_easy_to_hard_and_shrinks_small_groups():
    rows = [
        *group("sure", [1.0] * 20),
        *group("lucky", [1.0]),
        *group("half", [1.0, 0.0] * 10),
        *group("hard", [0.0] * 19 + [1.0]),
    ]
    plan = curriculum(rows, stages=2)
    order = [t for s in plan.stages for t in s.tasks]
    assert order[0] == "sure" and order[-1] == "hard" and order.index("lucky") == 1
    assert "curriculum" in str(plan) and json.dumps(plan.to_dict())
    assert curriculum(rows, drop_dead=True).dead == ("sure", "lucky")
    with pytest.raises(ParameterError):
        curriculum(rows, stages=0)


def test_trimmed_subsets_are_nested_and_whole():
    rows, _ = sampled(4, 80, 4)
    parts = trim(rows, shares=(0.25, 0.5, 1.0))
    ids = {s: {r["task_id"] for r in part} for s, part in parts.items()}
    assert ids[0.25] < ids[0.5] < ids[1.0] and len(ids[0.25]) == 20 and len(parts[0.25]) == 80
    assert trim(rows[::-1], shares=(0.25,))[0.25][0]["task_id"] in ids[0.25]
    with pytest.raises(ParameterError):
        trim(rows, shares=(0.0,))


def test_saturation_finds_a_known_limit():
    sizes = [100, 200, 400, 800, 1600, 3200]
    exact = fit_saturation(sizes, [0.8 - 3.0 * s**-0.5 for s in sizes])
    assert exact.limit == pytest.approx(0.8, abs=0.005) and exact.exponent == pytest.approx(0.5, abs=0.02)
    assert exact.doubling == pytest.approx(3.0 * (3200**-0.5 - 6400**-0.5), abs=0.001)
    inside = 0
    for seed in range(60):
        rng = random.Random(seed)
        fit = fit_saturation(sizes, [0.8 - 3.0 * s**-0.5 + rng.gauss(0, 0.01) for s in sizes])
        inside += fit.low <= 0.8 <= fit.high
    assert inside >= 51  # 95 % nominal; below 51 of 60 has probability below 0.003
    with pytest.raises(ParameterError):
        fit_saturation([1, 2, 3], [0.1, 0.2, 0.3])


def names(report, level=None):
    return {f.name for f in report.findings if level in (None, f.level)}


def test_gate_for_sft():
    rows = [*group("a", [1.0, 0.0]), *group("b", [1.0], finish_reason="length"), *group("c", [None])]
    rows.append({**rows[0], "rollout_id": "copy"})
    gate = publish_gate(rows, purpose="sft", scan=False)
    assert not gate.ok and {"select/failing_rows", "select/truncated_rows"} <= names(gate, "error")
    assert {"select/unscored_rows", "select/copies"} <= names(gate, "warning")
    with pytest.raises(FindingsError, match="allow="):
        gate.require()
    allowed = publish_gate(rows, purpose="sft", scan=False, allow=["select/failing_rows", "select/truncated_rows"])
    assert allowed.ok and allowed.require() is allowed and json.dumps(allowed.to_dict()) and allowed._repr_html_()
    assert publish_gate(group("a", [1.0]), purpose="sft", scan=False).ok


def test_gate_for_rl_eval_and_preference():
    assert "select/dead_groups" in names(publish_gate(group("a", [0.0] * 4), purpose="rl", scan=False), "error")
    assert publish_gate(group("a", [0.0, 1.0]), purpose="rl", scan=False).ok
    twice = [*group("a", [1.0]), {**group("b", [1.0])[0], "prompt": "ask a"}]
    assert "select/repeated_prompts" in names(publish_gate(twice, purpose="eval"))
    torn = group(
        "a",
        [1.0, 0.0],
        messages=[{"role": "tool", "tool_call_id": "z", "content": "late"}, {"role": "assistant", "content": "x"}],
    )
    assert "select/torn_messages" in names(publish_gate(torn, purpose="rl", scan=False), "error")
    pairs = build_preference_pairs([r for t in range(10) for r in group(f"t{t}", [1.0, 0.0])]).pairs
    assert publish_gate(pairs, purpose="preference").ok
    tie = [{**pairs[0], "margin": 0.0, "rejected": pairs[0]["chosen"]}]
    assert {"select/ties", "select/same_sides"} <= names(publish_gate(tie, purpose="preference"), "error")
    assert not publish_gate([], purpose="rl").ok
    with pytest.raises(ParameterError, match="did you mean"):
        publish_gate([], purpose="evals")
