"""The sub-commands, through argparse as the `wai` command calls them."""

import argparse
import json
from pathlib import Path

import pytest

from whileai_measure.cli import Compare, HoldoutSize, PassAt, SelfCheck


def run(command: object, *argv: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(list(argv))))


def write(path: Path, tasks: dict[str, list[float | None]]) -> str:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for task, rewards in tasks.items():
            for i, reward in enumerate(rewards):
                file.write(json.dumps({"task_id": task, "rollout_id": f"{task}{i}", "reward": reward}) + "\n")
    return str(path)


def test_pass_at_prints_the_line_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "rows.jsonl", {"a": [1, 1], "b": [0, 1], "c": [1, None]})
    assert run(PassAt(), path) == 0
    out = capsys.readouterr().out
    assert out.startswith("pass@1 0.83 [") and "1 of 6 rows not scored" in out
    assert run(PassAt(), path, "--json", "-k", "1", "2") == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 3


def test_compare_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    low = write(tmp_path / "low.jsonl", {f"t{i}": [0] for i in range(8)})
    high = write(tmp_path / "high.jsonl", {f"t{i}": [1] for i in range(8)})
    other = write(tmp_path / "other.jsonl", {f"u{i}": [1] for i in range(8)})
    assert run(Compare(), low, high) == 0
    assert "improved" in capsys.readouterr().out
    assert run(Compare(), high, low, "--json") == 1
    assert json.loads(capsys.readouterr().out)["exit_code"] == 1
    assert run(Compare(), low, other) == 2
    assert run(Compare(), low, high, "--must-not-regress", "pass@1") == 0


def test_holdout_size_and_self_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(HoldoutSize(), "0.1", "--baseline", "0.5", "-k", "4") == 0
    assert "tasks detect +0.10" in capsys.readouterr().out
    assert run(HoldoutSize(), "0.1", "--baseline", "0.95") == 2
    rows = write(tmp_path / "rows.jsonl", {f"t{i}": [i % 2, 1] for i in range(20)})
    assert run(HoldoutSize(), "0.1", "--rows", rows, "--json") == 0
    capsys.readouterr()
    assert run(SelfCheck(), "--tasks", "3", "6", "--trials", "100") == 0
    assert "false alarms" in capsys.readouterr().out


def test_every_registered_target_exists() -> None:
    import importlib

    from whileai_measure import plugin

    targets: list[str] = []

    def register(name: str, target: str, *, summary: str = "") -> None:
        assert summary
        targets.append(target)

    plugin.wai_register_commands(register)
    plugin.wai_register_statistics(register)
    for target in targets:
        module, _, attribute = target.partition(":")
        assert hasattr(importlib.import_module(module), attribute)
