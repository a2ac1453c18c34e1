"""The plugin as others see it: conformance, commands, the recorded runs of a real agent, the seeded agent."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from pathlib import Path

import pytest

from whileai_guard import decontaminate, hack_scan, leak_report
from whileai_guard.commands import Decontaminate, Scan
from whileai_guard.plugin import MARKERS
from whileai_kernel import entries, make, testing
from whileai_kernel.testing import check_component, check_entry

SHIPS_STATIC = importlib.util.find_spec("wordllama") is not None


def shared_data(name):
    roots = [Path(os.environ["WHILEAI_SHARED"])] if os.environ.get("WHILEAI_SHARED") else []
    roots += [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data" / name).exists():
            return root / "data" / name
    pytest.skip(f"shared/data/{name} is not here")


@pytest.mark.parametrize("kind", ["markers", "statistics", "guards", "commands", "embedders"])
def test_every_component_conforms(kind, monkeypatch):
    # A megabyte through every marker takes half a minute; one of them, the slowest, stands for all here.
    slow = tuple(c for c in testing.CHECKS["markers"] if c.__name__ != "marks_a_megabyte")
    monkeypatch.setitem(testing.CHECKS, "markers", slow)
    own = [e for e in entries(kind) if e.id.startswith("guard/")]
    assert own
    for entry in own:
        if entry.kind == "embedders" and not SHIPS_STATIC:
            continue
        report = check_entry(entry)
        assert not [r for r in report.results if r.outcome != "passed"], str(report)


def test_a_megabyte_ends():
    report = check_component("markers", make("markers", "guard/no_leak"), "guard/no_leak")
    assert not [r for r in report.results if r.outcome != "passed"], str(report)


def test_markers_are_made_by_name():
    assert {e.name for e in entries("markers") if e.id.startswith("guard/")} == {n for n, _, _ in MARKERS}
    assert make("markers", "guard/no_boilerplate", polite_close=True)(
        {"prompt": "q", "final_text": "Is there anything else I can help you with?"}
    )["value"] == 0.0  # fmt: skip


def run(command, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(w) for w in words]))


def test_commands(tmp_path, capsys):
    rows = [
        {"schema_version": 1, "task_id": f"t{t}", "rollout_id": f"{t}.{i}", "index": i,
         "prompt": f"number {t} of the many prompts in this little file", "final_text": "word " * (2 + 3 * i),
         "reward": float(i > 1), "status": "ok", "markers": {}}
        for t in range(20) for i in range(4)
    ]  # fmt: skip
    train, evals = tmp_path / "train.jsonl", tmp_path / "eval.jsonl"
    train.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    evals.write_text(
        json.dumps({**rows[8], "task_id": "e", "prompt": rows[8]["prompt"].upper()}) + "\n", encoding="utf-8"
    )
    assert run(Scan(), train) == 1 and "suspected_hack" in capsys.readouterr().out
    assert run(Scan(), train, "--endorse", "length.*", "phrase*", "counts.*", "position.*", "--json") == 0
    assert json.loads(capsys.readouterr().out)["regime"] == "train"
    assert run(Scan(), train, "--before", train) == 0 and "unmoved" in capsys.readouterr().out
    clean, page = tmp_path / "clean.jsonl", tmp_path / "report.html"
    assert run(Decontaminate(), train, "--against", evals, "-o", clean, "--report", page) == 1
    assert "4 of 80 rows left out" in capsys.readouterr().out and "<mark>" in page.read_text(encoding="utf-8")
    assert len(clean.read_text(encoding="utf-8").splitlines()) == 76
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    assert run(Decontaminate(), train, "--against", empty) == 2


def gsm8k():
    lines = shared_data("gsm8k_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_real_questions_do_not_hit_each_other_and_planted_copies_do():
    questions = [r["question"] for r in gsm8k()]
    train, evals = questions[:1000], questions[1000:]
    assert decontaminate(train, evals).flagged == []
    planted = [f"Solve this problem step by step.\n\n{q}\n\nGive the number only." for q in evals[:50]]
    report = decontaminate([*train, *planted], evals)
    assert report.flagged == list(range(1000, 1050))
    assert {h.against for h in report.hits} == set(range(50))


def test_scan_of_recorded_solutions_runs_and_names_a_regime():
    models = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    rows = [
        {"task_id": f"q{n}", "index": i, "prompt": r["question"], "final_text": r[m]["solution"], "status": "ok",
         "reward": float(r[m]["is_correct"]), "markers": {}}
        for n, r in enumerate(gsm8k()[:400]) for i, m in enumerate(models)
    ]  # fmt: skip
    report = hack_scan(rows, permutations=99)
    # The index is the model here, and the large verified one is right most often: the scan must see that.
    assert report.regime == "suspected_hack" and "position.index" in {f.name for f in report.found}


def test_recorded_agent_runs_are_not_called_leaks():
    raw = json.loads(shared_data("tau_bench_airline_gpt4o.json").read_text(encoding="utf-8"))
    rows = [
        {"task_id": str(r["task_id"]), "prompt": r["traj"][1]["content"], "messages": r["traj"], "reward": r["reward"],
         "privileged": {"reference": r["info"]["task"]["actions"]}}
        for r in raw
    ]  # fmt: skip
    report = leak_report(rows)
    assert report.n_private == 200 and len(report.rows) <= 10
