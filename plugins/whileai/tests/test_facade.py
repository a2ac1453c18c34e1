"""The front door: lazy names, the alias package, the fluent objects, the demo."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import whileai as wai
import whileai.simulations as alias


def scored() -> wai.ScoredData:
    prompts = [f"task {t}" for t in range(4) for _ in range(4)]
    rewards = [1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0]
    return wai.rows(prompts, [f"answer {i}" for i in range(16)], rewards, finish_reasons=["stop"] * 16)


@pytest.mark.parametrize("name", wai.__all__)
def test_every_public_name_resolves_and_is_the_same_in_the_alias(name: str) -> None:
    value = getattr(wai, name)
    assert value is not None
    assert getattr(alias, name) is value


def test_the_alias_has_all_names() -> None:
    assert set(wai.__all__) <= set(dir(alias))


def test_unknown_name_says_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"did you mean wai\.simulate"):
        _ = wai.simulat  # type: ignore[attr-defined]


def test_a_missing_dunder_is_an_ordinary_attribute_error() -> None:
    assert not hasattr(wai, "__wrapped__")


def test_importing_the_front_door_loads_no_plugin_and_no_library() -> None:
    code = "import sys, whileai; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"pydantic", "numpy", "scipy", "faker", "whileai_simulate", "whileai_measure", "whileai_judge"}
    assert not heavy & set(loaded)
    assert "whileai.data" not in loaded


def test_rows_pass_rate_by_hand() -> None:
    # task means 0.5, 1, 0, 0.75: their mean is 0.5625
    report = scored().pass_at.to_dict()
    assert "0.56" in str(scored().pass_at)
    assert report


def test_pass_at_is_computed_once_and_not_carried_to_other_rows() -> None:
    data = scored()
    assert data.pass_at is data.pass_at
    regraded = data.grade(lambda row: 1.0)
    assert "pass@1 1.00" in str(regraded.pass_at)
    assert "pass@1 0.56" in str(data.pass_at)


def test_grading_copies() -> None:
    data = scored()
    before = json.dumps(data.rows)
    data.grade(lambda row: {"reward": 0.25, "reason": "a quarter"})
    assert json.dumps(data.rows) == before


def test_selection_accounts_for_every_row() -> None:
    chosen = scored().select(mode="rl")
    assert isinstance(chosen, wai.Selection)
    assert len(chosen.ledger) == 16
    assert len(chosen) + sum(chosen.dropped.values()) == 16
    # the all-pass and the all-fail task carry no gradient
    assert {row["prompt"] for row in chosen} == {"task 0", "task 3"}
    assert str(chosen).startswith("kept 8 of 16 rows in 2 tasks")


def test_selection_rows_are_copies() -> None:
    data = scored()
    data.select(mode="rl")[0]["prompt"] = "changed"
    assert all(row["prompt"] != "changed" for row in data)


def test_unknown_mode_names_the_modes() -> None:
    with pytest.raises(wai.WhileaiError, match="rl"):
        scored().select(mode="rll")


def test_export_and_read_back(tmp_path: Path) -> None:
    data = scored()
    report = data.select(mode="rl").export(tmp_path / "train.jsonl")
    assert report.written == 8
    assert len((tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()) == 8
    data.write(tmp_path / "rows.jsonl")
    again = wai.read(tmp_path / "rows.jsonl")
    assert isinstance(again, wai.ScoredData)
    assert [dict(row) for row in again] == data.rows


def test_data_objects_pickle_with_what_they_carry() -> None:
    chosen = scored().select(mode="rl")
    again = pickle.loads(pickle.dumps(chosen))
    assert again == chosen
    assert again.ledger == chosen.ledger
    assert type(again) is wai.Selection


def test_slices_keep_the_class() -> None:
    assert type(scored()[2:4]) is wai.ScoredData


def test_demo_prints_every_step_and_the_same_twice() -> None:
    from whileai.demo import Demo

    def text() -> str:
        import argparse

        parser = argparse.ArgumentParser()
        Demo().add_arguments(parser)
        out = io.StringIO()
        with redirect_stdout(out):
            assert Demo().run(parser.parse_args([])) == 0
        return out.getvalue()

    first = text()
    assert first == text()
    for step in ("1 simulate", "2 grade", "3 measure", "pass@1", "4 select", "5 export", "wrote"):
        assert step in first
