"""Wrong words in the shell: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import WhileaiError
from whileai_simulate.cli import SimulateCommand


def wai(*words: str) -> int:
    command = SimulateCommand()
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(words))


FILES: dict[str, bytes] = {
    "bad.json": b"{bad", "five.json": b"5", "text.json": b'"text"', "strings.json": b'["get_order"]',
    "unnamed.json": b'[{"parameters": {}}]', "binary.json": b"\xff\xfe\x00", "policy.md": b"Never lie.",
    "binary.md": b"\xff\xfe", "empty.json": b"",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tools", "bad.json"], "is no JSON"),
        (["--tools", "empty.json"], "is no JSON"),
        (["--tools", "policy.md"], "is no JSON"),
        (["--tools", "five.json"], "holds no list of tools but int"),
        (["--tools", "text.json"], "holds no list of tools but str"),
        (["--tools", "strings.json"], "cannot make a tool from str"),
        (["--tools", "unnamed.json"], "name"),
        (["--tools", "binary.json"], "is no text"),
        (["--tools", "tools"], "is no file"),
        (["--policy", "binary.md"], "is no text"),
        (["--rubric", "binary.md", "--judge", "openai:x"], "is no text"),
        (["--mode", "rll"], "did you mean 'rl'"),
        (["--repeat-policy", "fixd"], "did you mean 'fixed'"),
        (["--user", "scriptd"], "did you mean 'scripted'"),
        (["--judge", "simulate/outcom"], "did you mean 'simulate/outcome'"),
        (["--deadline", "nan"], "deadline_s must be"),
        (["--budget", "0"], "budget rollouts must be"),
        (["--max-tokens", "0"], "budget tokens must be"),
        (["--patience", "0"], "patience must be"),
        (["--out", "."], "is a directory"),
        (["--out", ""], "output must be a path"),
    ],
)
def test_wrong_words_are_answered_in_a_sentence(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WhileaiError) as caught:
        wai("--agent", "honest", "--situations", "2", "--quiet", *words)
    assert said in str(caught.value)


def test_tools_stand_in_any_file_of_json(tmp_path: Path, capsys: Any) -> None:
    for text in ('{"name": "get_order"}', '[{"name": "get_order"}]', '{"tools": [{"name": "get_order"}]}'):
        path = tmp_path / "tools.schema"
        path.write_text(text, encoding="utf-8")
        assert wai("--agent", "honest", "--tools", str(path), "--preflight") == 0
        assert "get_order: read" in capsys.readouterr().out
