"""Dataset, defaults, settings, errors; the examples in the docstrings; what importing the kernel costs."""

from __future__ import annotations

import copy
import doctest
import functools
import importlib
import json
import pickle
import pkgutil
import types
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import whileai_kernel
from whileai_kernel import errors
from whileai_kernel.dataset import Dataset
from whileai_kernel.defaults import Sourced, constants
from whileai_kernel.errors import (
    DeadlineError,
    FindingsError,
    MissingDependencyError,
    ParameterError,
    PluginError,
    RowError,
    SchemaVersionError,
    SettingsError,
    StopStage,
    UnknownNameError,
    WhileaiError,
    describe,
    nearest,
    unknown_name,
)
from whileai_kernel.lifecycle import Finding
from whileai_kernel.protocols import ExportReport, LedgerEntry, Selected
from whileai_kernel.rowio import read_rows
from whileai_kernel.settings import Settings

PREFIX = "whileai_kernel."
MODULES = sorted(m.name.removeprefix(PREFIX) for m in pkgutil.walk_packages(whileai_kernel.__path__, PREFIX))


# --- docstrings ---


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples_in_docstrings_run(name, fresh_registry):
    module = importlib.import_module(f"whileai_kernel.{name}".rstrip("."))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0
    assert (module.__doc__ or "").strip()


@pytest.mark.parametrize("name", ["", *MODULES])
def test_all_names_exist(name):
    module = importlib.import_module(f"whileai_kernel.{name}".rstrip("."))
    assert [n for n in getattr(module, "__all__", []) if not hasattr(module, n)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_every_lazy_name_is_the_one_of_its_module():
    for name in whileai_kernel.__all__:
        assert getattr(whileai_kernel, name) is not None
    assert set(whileai_kernel.__all__) <= set(dir(whileai_kernel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        whileai_kernel.nothing  # noqa: B018


def test_importing_the_kernel_loads_nothing_heavy(child):
    program = "import sys, json, whileai_kernel, whileai_kernel.registry, whileai_kernel.rowio, whileai_kernel.tools\n"
    program += "import whileai_kernel.messages, whileai_kernel.lifecycle, whileai_kernel.defaults\n"
    program += "print(json.dumps([n for n in ('pydantic', 'numpy', 'asyncio', 'http') if n in sys.modules]))"
    assert child(program).answer == []


# --- dataset ---


class Scored(Dataset):
    """A dataset with more to it."""

    report: Mapping = {}

    @functools.cached_property
    def mean(self) -> float:
        return sum(r["n"] for r in self.rows) / len(self.rows)


def data(n: int = 4, cls: type[Dataset] = Dataset):
    rows = [{"task_id": f"t{i // 2}", "n": i} for i in range(n)]
    return cls(rows, provenance={"source": "by hand"}, warnings=["few rows"])


def test_a_dataset_is_like_a_list():
    made = data()
    rows = made.rows
    assert len(made) == 4 and list(made) == rows and made[0] is rows[0] and made[-1] is rows[-1]
    assert rows[1] in made and made.index(rows[2]) == 2 and list(reversed(made)) == rows[::-1]
    assert made == rows and made == data() and made != data(3) and made != 3
    assert bool(made) and not Dataset()
    assert repr(made) == "Dataset(4 rows, 2 tasks, 1 warnings)"
    with pytest.raises(IndexError):
        made[4]
    with pytest.raises(TypeError):
        hash(made)


@pytest.mark.parametrize("cls", [Dataset, Scored])
def test_slices_and_filters_keep_class_provenance_and_warnings(cls):
    made = data(cls=cls)
    made.report = {"kept": 4}
    for part in (made[1:3], made.filter(lambda r: 0 < r["n"] < 3), made.replace(made.rows[1:3])):
        assert type(part) is cls and [r["n"] for r in part] == [1, 2]
        assert (part.provenance, part.warnings, part.report) == (made.provenance, made.warnings, {"kept": 4})
        part.provenance["x"] = 1
        part.warnings.append("more")
    assert made.provenance == {"source": "by hand"} and made.warnings == ["few rows"] and len(made) == 4
    assert made[::-2] == [made[3], made[1]]


def test_what_was_worked_out_is_not_carried_to_other_rows():
    made = data(cls=Scored)
    assert made.mean == 1.5
    assert made[2:].mean == 2.5 and made.filter(lambda r: r["n"] == 0).mean == 0 and made.mean == 1.5


@pytest.mark.parametrize("cls", [Dataset, Scored])
def test_datasets_travel(cls):
    made = data(cls=cls)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert type(again) is cls and again == made and again.provenance == made.provenance


def test_rows_of_any_iterable_and_a_list_of_ones_own():
    rows = [{"task_id": "a"}]
    made = Dataset(iter(rows))
    rows.append({"task_id": "b"})
    assert len(made) == 1
    assert Dataset(data()).rows == data().rows


def test_writing(tmp_path):
    path = tmp_path / "x.jsonl"
    assert data().write(path) == 4
    assert [r["n"] for r in read_rows(path)] == [0, 1, 2, 3]
    with pytest.raises(FileExistsError):
        data().write(path, overwrite=False)


# --- defaults ---


def test_a_constant_needs_meaning_and_source():
    assert Sourced(1, "m", "s").value == 1
    for meaning, source in (("", "s"), ("m", " "), ("  ", "s")):
        with pytest.raises(ValueError, match="meaning and a source"):
            Sourced(1, meaning, source)
    with pytest.raises(AttributeError):
        Sourced(1, "m", "s").value = 2


def test_constants_of_a_module():
    module = types.ModuleType("defaults")
    module.B, module.A, module.lower = Sourced(1, "b", "s"), Sourced((2,), "a", "s"), Sourced(3, "c", "s")
    module.PLAIN = 7
    assert [(r.plugin, r.name, r.value, r.meaning) for r in constants(module, "x")] == [
        ("x", "A", (2,), "a"),
        ("x", "B", 1, "b"),
    ]


COLLECT = """
import json, warnings
warnings.simplefilter("ignore")
from whileai_kernel.defaults import collect
rows = collect()
from whileai_kernel.plugins import manager
import sys
modules = sorted(n for n in sys.modules if n.startswith("acme"))
failed = [[f.distribution, f.stage] for f in manager().failures]
print(json.dumps([[r.plugin, r.name, r.source] for r in rows] + [modules, failed]))
"""


def test_collect_reads_every_plugin_and_nothing_else_of_it(site):
    constant = "from whileai_kernel.defaults import Sourced\nK = Sourced(3, 'how many', 'convention, untested')\n"
    site.add("acme-b", "", files={"defaults.py": constant, "heavy.py": ""})
    site.add("acme-a", "", files={"heavy.py": ""})
    site.add("acme-broken", "import module_that_nobody_has", files={"defaults.py": constant})
    site.add("acme-odd", "", files={"defaults.py": "1 / 0"})
    *rows, modules, failed = site.run(COLLECT).answer
    assert [r[:2] for r in rows] == [
        ["kernel", "PASS_TOLERANCE"],
        ["kernel", "REWARD_TOLERANCE"],
        ["kernel", "THRESHOLD"],
        ["acme-b", "K"],
    ]
    assert all(r[2] for r in rows)
    assert not any(name.endswith(".heavy") for name in modules) and "acme_b.defaults" in modules
    assert "acme_broken.defaults" not in modules
    assert failed == [["acme-broken", "import"], ["acme-odd", "defaults"]]


# --- settings ---


@pytest.mark.parametrize(
    ("env", "plugins"),
    [
        ({}, None),
        ({"WHILEAI_PLUGINS": ""}, ()),
        ({"WHILEAI_PLUGINS": " , "}, ()),
        ({"WHILEAI_PLUGINS": "a, b,,c "}, ("a", "b", "c")),
    ],
)
def test_plugins_setting(env, plugins):
    assert Settings.from_env(env) == Settings(plugins=plugins)


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("1", True),
        (" TRUE ", True),
        ("yes", True),
        ("on", True),
        ("", False),
        ("0", False),
        ("No", False),
        ("off", False),
    ],
)
def test_flags(text, on):
    assert Settings.from_env({"WHILEAI_STRICT_PLUGINS": text}).strict_plugins is on


@pytest.mark.parametrize("text", ["2", "maybe", "y"])
def test_flags_that_cannot_be_read(text):
    with pytest.raises(SettingsError, match=f"WHILEAI_STRICT_PLUGINS='{text}'") as caught:
        Settings.from_env({"WHILEAI_STRICT_PLUGINS": text})
    assert "WHILEAI_STRICT_PLUGINS=1" in caught.value.fix


def test_the_environment_is_read_at_the_call(monkeypatch):
    monkeypatch.setenv("WHILEAI_PLUGINS", "x")
    assert Settings.from_env().plugins == ("x",)
    monkeypatch.delenv("WHILEAI_PLUGINS")
    assert Settings.from_env().plugins is None


# --- errors ---

ERRORS = [getattr(errors, n) for n in errors.__all__ if isinstance(getattr(errors, n), type)]


def test_the_hierarchy():
    assert all(issubclass(e, WhileaiError) for e in ERRORS)
    for cls, builtin in [
        (ParameterError, ValueError),
        (ParameterError, TypeError),
        (SettingsError, ValueError),
        (RowError, ValueError),
        (SchemaVersionError, RowError),
        (UnknownNameError, LookupError),
        (PluginError, RuntimeError),
        (MissingDependencyError, ImportError),
        (DeadlineError, TimeoutError),
        (FindingsError, RuntimeError),
    ]:
        assert issubclass(cls, builtin)
    assert not issubclass(StopStage, ValueError | RuntimeError)


@pytest.mark.parametrize("cls", ERRORS)
def test_three_parts(cls):
    assert str(cls("what", "why", "fix")) == "what\n  why: why\n  fix: fix"
    assert str(cls("what", fix="fix")) == "what\n  fix: fix"
    assert str(cls("what")) == "what"


@pytest.mark.parametrize("cls", ERRORS)
def test_errors_travel_between_processes(cls):
    made = cls("what", "why", "fix")
    made.add_note("seen on a worker")
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert type(again) is cls and str(again) == str(made) and again.args == made.args
        assert again.__notes__ == ["seen on a worker"]


def test_row_errors_name_the_place_once():
    error = RowError("bad", "why", "fix", row=3, field="a.b")
    assert str(error).startswith("row 3 field a.b: bad\n")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.row, again.field, again.problem) == (str(error), 3, "a.b", "bad")
    assert str(RowError("bad", row=0)) == "row 0: bad" and str(RowError("bad", field="x")) == "field x: bad"
    moved = SchemaVersionError("bad", "why", field="v").at(row=7)
    assert type(moved) is SchemaVersionError and str(moved) == "row 7 field v: bad\n  why: why"
    assert str(moved.at(field="w", row=0)) == "row 0 field w: bad\n  why: why"


def test_findings_travel_with_their_error():
    error = FindingsError("stopped", findings=[Finding("a/b", "error", "m")])
    assert pickle.loads(pickle.dumps(error)).findings == error.findings


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("rll", ["rl", "sft"], ["rl"]),
        ("RL", ["rl", "sft"], ["rl"]),
        ("zzz", ["rl"], []),
        ("", ["rl"], []),
        ("x", [], []),
        ("Read", iter(["read", "read"]), ["read"]),
    ],
)
def test_nearest(name, names, found):
    assert nearest(name, names) == found


def test_unknown_names():
    with pytest.raises(ParameterError) as caught:
        unknown_name("mode", "rll", ["sft", "rl", "rl"])
    assert str(caught.value) == "unknown mode 'rll'\n  why: known: rl, sft\n  fix: did you mean 'rl'?"
    with pytest.raises(ParameterError, match="use one of: rl"):
        unknown_name("mode", "zzz", ["rl"])
    with pytest.raises(ParameterError, match="known: none"):
        unknown_name("mode", "zzz", [])


def test_describe():
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(ValueError()) == "ValueError"
    assert describe(KeyError("k")) == "KeyError: 'k'"
    assert describe(ValueError("x" * 99), limit=20) == "ValueError: xxxxxxxx"


@given(st.text(), st.text(), st.text())
def test_errors_never_fail_to_print(what, why, fix):
    error = WhileaiError(what, why, fix)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert json.dumps(str(error))


def test_a_report_of_an_export_is_short_in_a_notebook_whatever_its_details_hold():
    details = {"big": ["x"] * 9999}
    report = ExportReport(Path("out/train.jsonl"), 3, {"no <reply>": 2}, ("read it with datasets",), details)
    assert repr(report) == "<ExportReport wrote 3 rows to train.jsonl (left out: 2 no <reply>)>"
    assert report._repr_html_() == (
        "<pre>wrote 3 rows to train.jsonl (left out: 2 no &lt;reply&gt;)\n  read it with datasets</pre>"
    )


def test_a_selection_says_in_one_line_what_was_left_out_and_why():
    ledger = [LedgerEntry(i, f"r{i}", "t", i == 0, "kept" if i == 0 else f"reason {i // 3}") for i in range(5)]
    chosen = Selected([{"rollout_id": "r0"}], ledger)
    assert str(chosen) == "kept 1 of 5 rows (left out: 2 reason 0, 2 reason 1)"
    assert repr(chosen) == f"<Selected {chosen}>"
    assert str(Selected([], [])) == "kept 0 of 0 rows"
