"""Stages, observers and checks: who observes cannot break, who checks cannot be skipped."""

from __future__ import annotations

import warnings

import pluggy
import pytest

from whileai_kernel import hookimpl, plugins
from whileai_kernel.errors import FindingsError, ParameterError, WhileaiError
from whileai_kernel.lifecycle import Finding, Stage, StopStage, check_rows, emit_row, emit_row_failed, stage
from whileai_kernel.plugins import Manager, PluginWarning
from whileai_kernel.settings import Settings

ROWS = [{"task_id": "a"}, {"task_id": "b"}]


@pytest.fixture
def observe(monkeypatch):
    """Register observers, given as functions by hook, as one plugin: `observe(wai_row=...)`."""
    manager = Manager(Settings(plugins=()))
    monkeypatch.setattr(plugins, "_manager", manager)
    assert isinstance(manager.pm, pluggy.PluginManager)

    def add(plugin: str = "acme-watch", **hooks) -> None:
        body = type("Observer", (), {name: staticmethod(hookimpl(fn)) for name, fn in hooks.items()})
        manager.pm.register(body, name=plugin)

    return add


def test_observers_see_the_whole_stage(observe):
    seen: list = []
    observe(
        wai_stage_start=lambda stage: seen.append(("start", stage.name, dict(stage.info))),
        wai_row=lambda row: seen.append(("row", row["task_id"])),
        wai_row_failed=lambda stage, error: seen.append(("failed", str(error))),
        wai_stage_end=lambda error, stage: seen.append(("end", stage.rows_seen, stage.rows_failed, error)),
    )
    with stage("grade", rows=2) as st:
        for row in ROWS:
            emit_row(row, st)
        emit_row_failed(ROWS[0], st, ValueError("x"))
    assert seen == [
        ("start", "grade", {"rows": 2}),
        ("row", "a"),
        ("row", "b"),
        ("failed", "x"),
        ("end", 2, 1, None),
    ]


def test_the_end_is_told_why(observe):
    ends: list = []
    observe(wai_stage_end=lambda error: ends.append(error))
    for error in (ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)), stage("grade"):
            raise error
    assert [type(e) for e in ends] == [ValueError, KeyboardInterrupt]


def test_nobody_observes(observe):
    with stage("grade") as st:
        emit_row(ROWS[0], st)
        emit_row_failed(ROWS[0], st, ValueError())
    assert (st.rows_seen, st.rows_failed, st.observer_errors) == (1, 1, [])


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [ValueError("mine"), Unspeakable(), RuntimeError()])
def test_an_observer_that_raises_is_recorded_and_warned_about_once(observe, error):
    def fail(row):
        raise error

    seen: list = []
    observe("acme-bad", wai_row=fail)
    observe("acme-good", wai_row=lambda row: seen.append(row))
    with (
        pytest.warns(PluginWarning, match=r"acme-bad raised in wai_row: .*; the stage goes on") as caught,
        stage("g") as st,
    ):
        for _ in range(100):
            emit_row(ROWS[0], st)
    assert len(caught) == 1 and len(seen) == 100 and st.rows_seen == 100
    assert [(e.plugin, e.hook, e.error) for e in st.observer_errors] == [("acme-bad", "wai_row", error)]


def test_each_hook_of_an_observer_is_warned_about(observe):
    def fail(stage):
        raise ValueError(stage.name)

    observe(wai_stage_start=fail, wai_stage_end=fail, wai_row=fail)
    with pytest.warns(PluginWarning) as caught, stage("g") as st:
        emit_row(ROWS[0], st)
        emit_row(ROWS[0], st)
    assert len(caught) == 3
    assert [e.hook for e in st.observer_errors] == ["wai_stage_start", "wai_row", "wai_stage_end"]


@pytest.mark.parametrize("hook", ["wai_stage_start", "wai_row", "wai_row_failed", "wai_stage_end"])
def test_stop_stage_stops(observe, hook):
    def stop():
        raise StopStage("enough", fix="look")

    ends: list = []
    observe("acme-stop", **{hook: stop})
    observe("zzz-watch", wai_stage_end=lambda error: ends.append(error))
    with pytest.raises(StopStage, match="enough"), stage("g") as st:
        emit_row(ROWS[0], st)
        emit_row_failed(ROWS[0], st, ValueError())
    assert hook in ("wai_stage_start", "wai_stage_end") or isinstance(ends[0], StopStage)
    assert issubclass(StopStage, WhileaiError)


def test_an_interrupt_of_the_user_is_no_observer_error(observe):
    def interrupt():
        raise KeyboardInterrupt

    observe(wai_row=interrupt)
    with pytest.raises(KeyboardInterrupt), stage("g") as st:
        emit_row(ROWS[0], st)


# --- checks ---

INFO, WARNING = Finding("a/info", "info", "i"), Finding("a/warn", "warning", "w")
ERROR, OTHER = Finding("b/leak", "error", "the key leaks", "drop it", 3, ("r1", 2)), Finding("c/gone", "error", "gone")


def test_findings_are_sorted_and_returned(observe):
    observe("a", wai_check_rows=lambda rows, stage: [INFO, WARNING])
    observe("b", wai_check_rows=lambda rows: (f for f in [ERROR]))
    observe("c", wai_check_rows=lambda: None)
    with stage("export") as st:
        assert check_rows(ROWS, st, allow=["b/leak"]) == [ERROR, WARNING, INFO]


def test_an_error_stops_the_stage_and_says_how_to_go_on(observe):
    observe(wai_check_rows=lambda: [INFO, ERROR, OTHER])
    with pytest.raises(FindingsError) as caught:
        check_rows(ROWS, Stage("export"))
    error = caught.value
    assert error.findings == (ERROR, OTHER)
    assert str(error).startswith("export stopped: the key leaks\n")
    assert "[error] b/leak: the key leaks (3 rows)" in error.why and "c/gone" in error.why
    assert error.fix == "drop it; or pass allow=['b/leak', 'c/gone'] to go on"
    with pytest.raises(FindingsError, match="gone"):
        check_rows(ROWS, Stage("export"), allow=["b/leak"])
    assert check_rows(ROWS, Stage("export"), allow=("b/leak", "c/gone")) == [ERROR, OTHER, INFO]


def test_one_name_to_allow_is_that_name_and_no_part_of_it(observe):
    observe(wai_check_rows=lambda: [Finding("b", "error", "m")])
    with pytest.raises(FindingsError):
        check_rows(ROWS, Stage("export"), allow="b/leak")
    assert len(check_rows(ROWS, Stage("export"), allow="b")) == 1


def partly():
    yield WARNING
    raise ValueError("half way")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: [{"name": "x"}], "not of dict"),
        (lambda: "text", "not of str"),
        (lambda: INFO, "TypeError"),
        (lambda: 7, "TypeError"),
        (lambda: [Finding("x", "fatal", "m")], "unknown level"),
        (partly, "half way"),
    ],
)
def test_a_check_that_fails_is_an_error_finding(observe, answer, word):
    observe("whileai-guard", wai_check_rows=answer)
    observe("zzz", wai_check_rows=lambda: [INFO])
    with pytest.raises(FindingsError, match=word) as caught:
        check_rows(ROWS, Stage("export"))
    assert [f.name for f in caught.value.findings] == ["guard/check_failed"]
    found = check_rows(ROWS, Stage("export"), allow=["guard/check_failed"])
    assert found[0].name == "guard/check_failed" and found[-1] == INFO
    assert (WARNING in found) == (answer is partly)


def test_a_check_may_stop_the_stage(observe):
    def stop():
        raise StopStage("no")

    observe(wai_check_rows=stop)
    with pytest.raises(StopStage):
        check_rows(ROWS, Stage("export"), allow=["acme-watch/check_failed"])


def test_findings_print_and_become_plain(observe):
    assert str(ERROR) == "[error] b/leak: the key leaks (3 rows)" and str(INFO) == "[info] a/info: i"
    assert ERROR.to_dict() == {
        "name": "b/leak",
        "level": "error",
        "message": "the key leaks",
        "fix": "drop it",
        "count": 3,
        "rows": ["r1", 2],
    }
    with pytest.raises(ParameterError, match="did you mean 'error'"):
        Finding("x", "eror", "m")


def test_warnings_as_errors_reach_the_user_once(observe):
    observe(wai_row=lambda: 1 / 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PluginWarning), stage("g") as st:
            emit_row(ROWS[0], st)
        emit_row(ROWS[0], st)
