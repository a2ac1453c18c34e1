"""The sub-commands, through argparse as the `wai` command calls them."""

import argparse
import json
from pathlib import Path

import pytest

from whileai_measure.cli import PassAt


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
