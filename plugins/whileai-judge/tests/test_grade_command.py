"""`wai grade FILE` as the command that it registers."""

from __future__ import annotations

import argparse

import pytest

from whileai_judge import Judge
from whileai_judge.grade_command import GradeCommand
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel import register_local
from whileai_kernel.errors import WhileaiError
from whileai_kernel.rowio import read_rows, write_rows
from whileai_kernel.rows import make_rows
from whileai_kernel.testing import ScriptedModel


def run(*words):
    parser = argparse.ArgumentParser()
    command = GradeCommand()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def files(tmp_path):
    write_rows(tmp_path / "rows.jsonl", make_rows(["a?", "b?", "c?"], ["yes", "no", "hm"]))
    (tmp_path / "mine.py").write_text(
        "def yes(row):\n    return {'yes': 1, 'no': 0}.get(row['final_text'])\n", encoding="utf-8"
    )
    return tmp_path


def test_grades_a_file_and_writes_the_rows(files, capsys):
    out = files / "graded.jsonl"
    assert run(files / "rows.jsonl", "--judge", f"{files / 'mine.py'}:yes", "--out", out) == 0
    printed = capsys.readouterr()
    assert "mean reward 0.500 over 2 of 3 rows" in printed.out
    assert "wrote 3 rows" in printed.out
    assert "1 of 3 rows are not scored" in printed.err
    assert [row["reward"] for row in read_rows(out)] == [1.0, 0.0, None]


def test_keeps_the_verdict_and_the_file_unless_told(files, capsys):
    judge = f"{files / 'mine.py'}:yes"
    out = files / "graded.jsonl"
    run(files / "rows.jsonl", "--judge", judge, "--out", out)
    with pytest.raises(WhileaiError):
        run(files / "rows.jsonl", "--judge", judge, "--out", out)
    both = files / "both.jsonl"
    assert run(out, "--judge", "seeded", "--beside", "--out", both) == 0
    assert [row["reward"] for row in read_rows(both)] == [1.0, 0.0, None]
    assert all(row["judgments"][-1]["scorer"]["id"] == "judge/seeded" for row in read_rows(both))
    assert run(out, "--judge", judge, "--out", out, "--overwrite") == 0


def test_a_rubric_file_and_a_model(files, capsys):
    model = ScriptedModel(lambda prompt: verdict_line(prompt, "PASS" if quoted_block(prompt) == "yes" else "FAIL"))
    register_local("models", "reads", model)
    (files / "polite.md").write_text("Says yes.\n", encoding="utf-8")
    out = files / "judged.jsonl"
    rubric = ("--rubric", files / "polite.md")
    assert run(files / "rows.jsonl", *rubric, "--judge", "here/reads", "--out", out) == 0
    rows = list(read_rows(out))
    assert [row["reward"] for row in rows] == [1.0, 0.0, 0.0]
    assert rows[0]["scorer"]["id"] == "judge/polite"
    (files / "empty.md").write_text(" \n", encoding="utf-8")
    with pytest.raises(WhileaiError, match="empty"):
        run(files / "rows.jsonl", "--rubric", files / "empty.md", "--judge", "here/reads")


def test_a_rubric_text_is_prose_or_criteria():
    listed = Judge("# Polite\n\n- [hard] asks: Asks.\n- [pitfall] Guesses.\n", ScriptedModel([]))
    assert [c.kind for c in listed.rubric.criteria] == ["hard", "pitfall"]
    assert Judge("Be polite:\n- say please\n", ScriptedModel([])).rubric.startswith("Be polite")


def test_the_environment_names_the_judge_when_the_command_does_not(files, monkeypatch, capsys):
    monkeypatch.delenv("WHILEAI_JUDGE", raising=False)
    with pytest.raises(SystemExit):
        run(files / "rows.jsonl")
    assert "--judge" in capsys.readouterr().err
    monkeypatch.setenv("WHILEAI_JUDGE", "here/reads")
    register_local("judges", "reads", lambda row: 1.0)
    assert run(files / "rows.jsonl") == 0
    assert "here/reads" in capsys.readouterr().out
