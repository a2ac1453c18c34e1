"""A component whose declared extra is not installed is reported as not checked, and does not fail its plugin."""

from __future__ import annotations

import sys

import pytest

from whileai_kernel.plugins import Plugin
from whileai_kernel.registry import Entry
from whileai_kernel.testing import check_entry


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "needy_part.py").write_text("import a_library_that_nobody_has\nPart = print\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "needy_part:Part"
    sys.modules.pop("needy_part", None)


def entry(target, needs):
    return Entry("verifiers", "part", Plugin("acme", "whileai-acme", "1.0", "acme.plugin"), target, "A part.", needs)


def test_a_missing_extra_is_not_checked_and_says_what_to_install(module):
    report = check_entry(entry(module, "extra"))
    assert [r.outcome for r in report.results] == ["skipped"]
    assert 'pip install "whileai-acme[extra]"' in report.results[0].message
    assert (report.planned, report.problems) == (0, ())


def test_a_missing_library_without_an_extra_is_a_problem(module):
    report = check_entry(entry(module, None))
    assert not report.ok
    assert "a_library_that_nobody_has" in report.problems[0]
