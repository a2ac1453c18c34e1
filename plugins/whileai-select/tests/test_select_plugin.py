"""The plugin as others see it: conformance, the command, and the recorded data of others."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from whileai_kernel import entries
from whileai_kernel.testing import check_entry
from whileai_select import build_preference_pairs, publish_gate, select
from whileai_select.commands import Select


def shared_data(name):
    roots = [Path(os.environ["WHILEAI_SHARED"])] if os.environ.get("WHILEAI_SHARED") else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data" / name).exists():
            return root / "data" / name
    pytest.skip(f"shared/data/{name} is not here")


@pytest.mark.parametrize("kind", ["selectors", "statistics", "commands"])
def test_every_component_conforms(kind):
    own = [e for e in entries(kind) if e.id.startswith("select/")]
    assert own
    for entry in own:
        report = check_entry(entry)
        assert not [r for r in report.results if r.outcome != "passed"], str(report)


def test_command(tmp_path, capsys):
    rows = [
        {"schema_version": 1, "task_id": f"t{t}", "rollout_id": f"{t}.{i}", "index": i, "prompt": "q",
         "final_text": f"a {i}", "reward": float(i < t), "status": "ok", "markers": {}}
        for t in range(5) for i in range(4)
    ]  # fmt: skip
    file, out, ledger = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "ledger.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")

    def run(*words):
        command, parser = Select(), argparse.ArgumentParser()
        command.add_arguments(parser)
        return command.run(parser.parse_args([str(w) for w in words]))

    assert run(file, "-o", out, "--ledger", ledger) == 0
    assert "kept 12 of 20 rows in 3 of 5 tasks" in capsys.readouterr().out
    assert len(out.read_text(encoding="utf-8").splitlines()) == 12
    reasons = Counter(json.loads(line)["reason"] for line in ledger.read_text(encoding="utf-8").splitlines())
    assert reasons == {"kept": 12, "unanimous_fail": 4, "unanimous_pass": 4}
    assert run(file, "--mode", "sft", "--json") == 0 and json.loads(capsys.readouterr().out)["kept"] == 4
    assert run(file, "--band", "0.9", "0.95") == 1


def gsm8k(n):
    models = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    lines = shared_data("gsm8k_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()[:n]
    return [
        {"task_id": f"q{q}", "rollout_id": f"q{q}.{i}", "index": i, "prompt": record["question"],
         "final_text": record[m]["solution"], "reward": float(record[m]["is_correct"]), "status": "ok", "markers": {},
         "policy": {"name": m}, "privileged": {"reference": record["ground_truth"]}}
        for q, record in enumerate(json.loads(line) for line in lines) for i, m in enumerate(models)
    ]  # fmt: skip


def tau():
    seen = Counter()
    rows = []
    for record in json.loads(shared_data("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8")):
        task = str(record["task_id"])
        rows.append(
            {"task_id": task, "rollout_id": f"{task}.{seen[task]}", "index": seen[task], "status": "ok", "markers": {},
             "prompt": next(m["content"] for m in record["traj"] if m["role"] == "user"), "messages": record["traj"],
             "final_text": next((m["content"] for m in reversed(record["traj"]) if m["role"] == "assistant"), None),
             "reward": float(record["reward"])}
        )  # fmt: skip
        seen[task] += 1
    return rows


@pytest.mark.parametrize("rows", [lambda: gsm8k(300), tau], ids=["gsm8k", "tau-bench"])
def test_recorded_data_goes_through_selection_pairs_and_gate(rows):
    rows = rows()
    for mode in ("rl", "sft", "next_round"):
        chosen = select(rows, mode=mode)
        assert [e.position for e in chosen.ledger] == list(range(len(rows)))
        assert len(chosen.rows) + sum(chosen.report["dropped"].values()) == len(rows)
        assert [e.rollout_id for e in chosen.ledger if e.kept] == [r["rollout_id"] for r in chosen.rows]
    made = build_preference_pairs(rows, per_task=None)
    fates = Counter(e.reason for e in made.ledger)
    assert sum(fates.values()) == len(rows) and fates["chosen"] == fates["rejected"] == len(made.pairs)
    # The simulated users of tau-bench open every trial in other words, so its rollouts share no prompt to compare on.
    if rows[0]["task_id"] == "q0":
        assert len(made.pairs) > 100
    else:
        assert fates["no_shared_prefix"] > 50
    for pair in made.pairs:
        assert pair["chosen_reward"] > pair["rejected_reward"]
        assert pair["chosen"][0]["role"] == pair["rejected"][0]["role"] == "assistant"
    kept = select(rows, mode="rl").rows
    gate = publish_gate(kept, purpose="rl", scan=False)
    # A worked solution may equal the reference solution word for word, and then the guard speaks up.
    stopping = {f.name for f in gate.findings if f.level == "error"}
    assert stopping <= {"select/torn_messages", "guard/leaked_reference"}, str(gate)
    assert str(publish_gate(made.pairs, purpose="preference"))


def test_models_of_different_strength_are_a_mixed_calibration():
    report = select(gsm8k(200)).report
    assert report["calibration"]["mixed"] and len(report["calibration"]["policies"]) == 4
