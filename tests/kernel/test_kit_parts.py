"""The conformance kit on the other kinds: each check catches the component that it was written for."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from whileai_kernel.models import Rollout
from whileai_kernel.protocols import Completion, ExportReport, FileExample, LedgerEntry, ReadProblem, Selected
from whileai_kernel.rowio import atomic_file, dumps_row, read_rows, write_rows
from whileai_kernel.rows import content_id, strip_privileged
from whileai_kernel.testing import CHECKS, check_component
from whileai_kernel.testing.acting import KEY
from whileai_kernel.testing.kit import Report, Result, Skip, Subject, run_check, run_checks

count = itertools.count()

# --- statistics ---


@dataclass
class MeanReport:
    figures: dict

    def to_dict(self):
        return self.figures

    def __str__(self):
        return " ".join(f"{k} {v}" for k, v in self.figures.items())


class Mean:
    """Right in every respect."""

    def __call__(self, rows):
        rows = list(rows)
        rewards = [r["reward"] for r in rows if r.get("reward") is not None]
        mean = sum(sorted(rewards)) / len(rewards) if rewards else None
        return MeanReport({"mean": mean, "n": len(rewards), "not_scored": len(rows) - len(rewards)})


def mean_with(change):
    """A mean that differs from the right one in one thing."""

    class Changed(Mean):
        def __call__(self, rows):
            return change(super().__call__, rows)

    return Changed


def first_row_too(mean, rows):
    rows = list(rows)
    report = mean(rows)
    report.figures["first"] = rows[0]["rollout_id"] if rows else None
    return report


def unscored_as_zero(mean, rows):
    return mean([{**r, "reward": r.get("reward") or 0.0} for r in rows])


def length_known(mean, rows):
    report = mean(rows)
    report.figures["listed"] = isinstance(rows, list)
    return report


def one_of_nothing(mean, rows):
    rows = list(rows)
    return mean(rows) if rows else MeanReport({"mean": 1.0})


def half_of_nothing(mean, rows):
    rows = list(rows)
    return mean(rows) if rows else MeanReport({"mean": 0.5})


def not_a_number_of_nothing(mean, rows):
    rows = list(rows)
    return mean(rows) if rows else MeanReport({"mean": float("nan"), "n": 0})


def marks_rows(mean, rows):
    rows = list(rows)
    for row in rows:
        row["counted"] = True
    return mean(rows)


def in_a_set(mean, rows):
    report = mean(rows)
    report.figures["set"] = {1}
    return report


STATISTICS = {
    "reports_as_plain_values": [in_a_set],
    "reads_an_iterator": [length_known],
    "ignores_the_order_of_rows": [first_row_too],
    "does_not_count_unscored_as_zero": [unscored_as_zero],
    "says_when_there_is_nothing": [one_of_nothing, not_a_number_of_nothing],
    "statistics_leave_rows_alone": [marks_rows],
}
ALSO = {in_a_set: {"says_when_there_is_nothing"}}  # what is no JSON is no JSON for no rows either

# --- selectors ---


class Scored:
    """Right in every respect: keeps the rows that passed or failed, and says why the others go."""

    def __call__(self, rows):
        rows = list(rows)
        keep = [r["reward"] is not None for r in rows]
        ledger = [
            LedgerEntry(i, r["rollout_id"], r["task_id"], k, "" if k else "not scored")
            for i, (r, k) in enumerate(zip(rows, keep, strict=True))
        ]
        return self.finish([r for r, k in zip(rows, keep, strict=True) if k], ledger)

    def finish(self, rows, ledger):
        return Selected(rows, ledger)


class NoReason(Scored):
    def finish(self, rows, ledger):
        return Selected(rows, [LedgerEntry(e.position, e.rollout_id, e.task_id, e.kept, "") for e in ledger])


class ShortLedger(Scored):
    def finish(self, rows, ledger):
        return Selected(rows, ledger[:-1])


class Edits(Scored):
    def finish(self, rows, ledger):
        return Selected([{**r, "selected": True} for r in rows], ledger)


class EditsInPlace(Scored):
    def finish(self, rows, ledger):
        for row in rows:
            row["selected"] = True
        return Selected(rows, ledger)


class KeepsAll:
    def __call__(self, rows):
        rows = list(rows)
        return Selected(rows, [LedgerEntry(i, r["rollout_id"], r["task_id"], True, "") for i, r in enumerate(rows)])


class Lottery(Scored):
    def finish(self, rows, ledger):
        number = next(count)
        return Selected(rows, [LedgerEntry(e.position, e.rollout_id, e.task_id, e.kept, f"{number}") for e in ledger])


class InventsRows(Scored):
    def finish(self, rows, ledger):
        return Selected(rows or [{"task_id": "made up", "reward": 1.0}], ledger)


SELECTORS = {
    "accounts_for_every_row": [NoReason, ShortLedger],
    "keeps_rows_as_they_are": [Edits, EditsInPlace],
    "keeps_no_unscored_row": [KeepsAll],
    "selects_the_same_twice": [Lottery],
    "selects_from_nothing": [InventsRows],
}

# --- exporters ---


class Lines:
    """Right in every respect."""

    def export(self, rows, path, *, overwrite=False, **params):
        records = (self.record(row) for row in rows)
        return ExportReport(Path(path), write_rows(path, records, overwrite=overwrite))

    def record(self, row):
        return {k: v for k, v in strip_privileged(dict(row)).items() if k in ("messages", "task_id", "lineage")}


class Leaks(Lines):
    def record(self, row):
        return {k: v for k, v in row.items() if k in ("messages", "task_id", "privileged")}


class LeaksDeep(Lines):
    def record(self, row):
        return {k: v for k, v in row.items() if k in ("messages", "task_id", "lineage")}


class LeaksReasons(Lines):
    def record(self, row):
        return strip_privileged({k: v for k, v in row.items() if k != "evidence"})


class LosesRows(Lines):
    def export(self, rows, path, **options):
        return super().export(list(rows)[1:], path, **options)


class Overwrites(Lines):
    def export(self, rows, path, *, overwrite=False, **params):
        return super().export(rows, path, overwrite=True)


class HalfAFile(Lines):
    def export(self, rows, path, *, overwrite=False, **params):
        if Path(path).exists() and not overwrite:
            raise FileExistsError(path)
        written = 0
        with Path(path).open("w", encoding="utf-8", newline="\n") as out:
            for row in rows:
                out.write(dumps_row(self.record(row)) + "\n")
                written += 1
        return ExportReport(Path(path), written)


class SwallowsErrors(Lines):
    def export(self, rows, path, **options):
        kept = []
        with contextlib.suppress(OSError):
            for row in rows:
                kept.append(row)
        return super().export(kept, path, **options)


class Stamps(Lines):
    def record(self, row):
        return {**super().record(row), "stamp": next(count)}


class RawSeparators(Lines):
    def export(self, rows, path, *, overwrite=False, **params):
        records = [json.dumps(self.record(row), ensure_ascii=False) for row in rows]
        with atomic_file(path, overwrite=overwrite) as out:
            out.write("".join(f"{r}\n" for r in records).encode())
        return ExportReport(Path(path), len(records))


class DropsCalls(Lines):
    def record(self, row):
        return {"messages": [m for m in row["messages"] if not m.get("tool_calls")]}


EXPORTERS = {
    "never_writes_private_data": [Leaks, LeaksDeep, LeaksReasons],
    "accounts_for_what_it_leaves_out": [LosesRows],
    "does_not_overwrite_by_itself": [Overwrites],
    "is_all_or_nothing": [HalfAFile, SwallowsErrors],
    "writes_the_same_bytes_twice": [Stamps],
    "survives_a_round_trip": [RawSeparators, DropsCalls],
}

# --- sources ---

OWN = b'{"acme": 1, "id": "a"}\n{"acme": 1, "id": "b"}\n{"acme": 1, "id": "c"}\n'


class Acme:
    """Right in every respect."""

    examples = (FileExample("run.jsonl", OWN, 3),)

    def sniff(self, path, head):
        return 0.9 if b'"acme"' in head else 0.0

    def read(self, path, *, on_problem):
        for record in read_rows(path, on_problem):
            yield self.row(record)

    def row(self, record):
        ids = {"task_id": record["id"], "rollout_id": content_id("rollout", record["id"])}
        return {**ids, "prompt": record["id"], "final_text": "", "reward": None, "status": "missing", "markers": {}}


class Shy(Acme):
    def sniff(self, path, head):
        return 0.1


class Greedy(Acme):
    def sniff(self, path, head):
        return 0.8


class Skips(Acme):
    def read(self, path, *, on_problem):
        rows = list(super().read(path, on_problem=on_problem))
        problem_free = b"broken" not in Path(path).read_bytes()
        yield from rows[1:] if problem_free else rows


class NoTask(Acme):
    def row(self, record):
        return {**super().row(record), "task_id": ""}


class OneId(Acme):
    def row(self, record):
        return {**super().row(record), "rollout_id": "same"}


class NotJson(Acme):
    def row(self, record):
        return {**super().row(record), "usage": {1: 2}}


class Dice(Acme):
    def row(self, record):
        return {**super().row(record), "rollout_id": f"r{next(count)}"}


class AllOrNothing(Acme):
    def read(self, path, *, on_problem):
        try:
            yield from list(map(self.row, read_rows(path)))
        except ValueError as err:
            on_problem(ReadProblem(str(path), "?", str(err)))


class Hush(Acme):
    def read(self, path, *, on_problem):
        yield from super().read(path, on_problem=lambda problem: None)


class EmptyForNothing(Acme):
    def read(self, path, *, on_problem):
        if Path(path).exists():
            yield from super().read(path, on_problem=on_problem)


SOURCES = {
    "knows_its_own_files": [Shy],
    "leaves_other_files_alone": [Greedy],
    "reads_every_record": [Skips],
    "makes_usable_rows": [NoTask, OneId, NotJson],
    "reads_the_same_twice": [Dice],
    "loses_only_the_broken_record": [AllOrNothing, Hush],
    "says_when_a_file_is_missing": [EmptyForNothing],
}

# --- models ---


class Parrot:
    """Right in every respect."""

    id = "acme/parrot"
    example_params = {"api_key": KEY}  # noqa: RUF012

    def __init__(self, api_key=None):
        self._key = lambda: api_key

    async def complete(self, messages, tools=(), sampling=None, *, schema=None, deadline_s=None):
        return Completion(self.message(messages), "stop")

    def message(self, messages):
        return {"role": "assistant", "content": messages[-1]["content"]}


class WrongRole(Parrot):
    def message(self, messages):
        return {"role": "user", "content": "x"}


class NoText(Parrot):
    def message(self, messages):
        return {"role": "assistant", "content": None}


class Appends(Parrot):
    def message(self, messages):
        messages.append({"role": "user", "content": "x"})
        return {"role": "assistant", "content": "x"}


class Bare(Parrot):
    async def complete(self, messages, *rest, **options):
        return "text"


class FreeOfCharge(Parrot):
    async def complete(self, messages, *rest, **options):
        return Completion(self.message(messages), cost_usd=0.0)


class Nameless(Parrot):
    id = ""


class Spaced(Parrot):
    id = "my model"


@dataclass
class ShowsKey(Parrot):
    api_key: str | None = None


class HoldsKey(Parrot):
    def __init__(self, api_key=None):
        self.key = api_key


MODELS = {
    "answers_with_a_message": [WrongRole, NoText, Appends, Bare, FreeOfCharge],
    "is_named": [Nameless, Spaced],
    "hides_its_key": [ShowsKey, HoldsKey],
}

# --- agents ---


def polite(messages, tools, context):
    context.call_tool(tools[0]["function"]["name"], {"order_id": "A-17"})
    return f"Hello {context.seed}, {messages[-1]['content']}"


async def polite_async(message):
    return await asyncio.sleep(0, f"You said {message}")


def one_text(message):
    assert isinstance(message, str)
    return {"final_text": message}


class RollsOut:
    def __call__(self, messages, *, context):
        return Rollout(messages=(*messages, {"role": "assistant", "content": context.task["prompt"]}))


def number(message):
    return 7


def nothing(message):
    return []


def dice(message):
    return f"{random.random()} {next(count)}"


def rewrites(message, context):
    context.task["prompt"] = "something easier"
    return "done"


AGENTS = {
    "answers_in_a_known_shape": [number, nothing],
    "answers_the_same_for_a_seed": [dice],
    "leaves_the_task_alone": [rewrites],
}

# --- writers ---


class Template:
    """Right in every respect."""

    example_situations = ({"mood": "calm"}, {"mood": "hurried"})

    def write(self, request):
        for n, situation in enumerate(request.situations):
            ask = f"I am {situation['mood']}, order {request.seed}-{n}, where is it?"
            yield self.task(n, {"task_id": content_id("task", ask), "prompt": ask, "axes": dict(situation)})

    def task(self, n, task):
        return {**task, "privileged": {"reference": f"answer {n}"}}


class Fewer(Template):
    def write(self, request):
        yield from list(super().write(request))[:-1]


class OtherSituation(Template):
    def task(self, n, task):
        return {**super().task(n, task), "axes": {"mood": "bored"}}


class EmptyAsk(Template):
    def task(self, n, task):
        return {**super().task(n, task), "prompt": " "}


class NotJsonTask(Template):
    def task(self, n, task):
        return {**super().task(n, task), "world": {"seed": {1: 2}}}


class Random(Template):
    def task(self, n, task):
        return {**super().task(n, task), "lineage": {"n": next(count)}}


class OneSeed(Template):
    def write(self, request):
        yield from super().write(type(request)(request.situations, request.tools, request.system_prompt, 0))


class OneTask(Template):
    def task(self, n, task):
        return {**super().task(n, task), "task_id": "same"}


class Tells(Template):
    def task(self, n, task):
        return {**task, "privileged": {"reference": task["prompt"][-9:]}}


WRITERS = {
    "writes_one_task_per_situation": [Fewer, OtherSituation],
    "writes_valid_tasks": [EmptyAsk, NotJsonTask],
    "writes_the_same_for_a_seed": [Random, OneSeed],
    "writes_distinct_tasks": [OneTask],
    "keeps_the_answer_out_of_the_ask": [Tells],
}

# --- commands ---

COMMAND = """
{head}
class Command:
    def add_arguments(self, parser):
        parser.add_argument("--rows", help={help!r})
    def run(self, args):
        return 0
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Make a command in a module of its own: `command("name", head, help)`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def make(name: str, head: str = "", help_: str | None = "how many"):
        (tmp_path / f"{name}.py").write_text(COMMAND.format(head=head, help=help_), encoding="utf-8")
        return importlib.import_module(name).Command

    return make


def test_commands(failed_checks, command, tmp_path):
    assert failed_checks("commands", command("kit_command_good")) == {}
    assert set(failed_checks("commands", command("kit_command_mute", help_=None))) == {"explains_itself"}
    # What counts is what a fresh interpreter loads; this one must not be left with a module that is not there.
    heavy = command("kit_command_heavy", head="import sys\nif 'pytest' not in sys.modules:\n    import litellm")
    (tmp_path / "litellm.py").write_text("", encoding="utf-8")
    assert set(failed_checks("commands", heavy)) == {"loads_light"}


# --- all kinds ---

GOOD = [
    ("statistics", Mean),
    ("selectors", Scored),
    ("exporters", Lines),
    ("sources", Acme),
    ("models", Parrot),
    ("agents", polite),
    ("agents", polite_async),
    ("agents", one_text),
    ("agents", RollsOut),
    ("writers", Template),
]
WRONG = {
    "statistics": STATISTICS,
    "selectors": SELECTORS,
    "exporters": EXPORTERS,
    "sources": SOURCES,
    "models": MODELS,
    "agents": AGENTS,
    "writers": WRITERS,
}


@pytest.mark.parametrize(("kind", "component"), GOOD, ids=lambda v: getattr(v, "__name__", v))
def test_a_right_component_passes(failed_checks, kind, component):
    assert failed_checks(kind, component) == {}


@pytest.mark.parametrize(
    ("kind", "check", "wrong"),
    [(kind, check, w) for kind, table in WRONG.items() for check, wrong in table.items() for w in wrong],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_each_check_catches_its_own(failed_checks, kind, check, wrong):
    component = mean_with(wrong) if kind == "statistics" else wrong
    assert set(failed_checks(kind, component)) == {check} | ALSO.get(wrong, set())


def test_half_of_nothing_is_caught(failed_checks):
    assert set(failed_checks("statistics", mean_with(half_of_nothing))) == {"says_when_there_is_nothing"}


def test_every_check_has_its_wrong_component():
    for kind, table in WRONG.items():
        assert list(table) == [c.__name__ for c in CHECKS[kind]]
    assert [c.__name__ for c in CHECKS["commands"]] == ["explains_itself", "loads_light"]
    assert set(CHECKS) == {*WRONG, "commands", "verifiers", "judges", "markers"}


def test_every_check_says_what_breaking_it_means():
    for checks in CHECKS.values():
        for check in checks:
            sentence = (check.__doc__ or "").strip()
            assert sentence.endswith(".") and 20 < len(sentence) < 160 and "\n" not in sentence, check


# --- the report ---


def passes(subject):
    """Nothing breaks."""


def fails(subject):
    """Something breaks."""
    raise AssertionError("here")


def exits(subject):
    """The program ends."""
    raise SystemExit(3)


def skips(subject):
    """Nobody knows."""
    raise Skip("no example")


def notes(subject):
    """It does not apply."""
    return "does not apply: no reference"


class Component:
    expected_failures = {"fails": "the library does it"}  # noqa: RUF012


def outcomes(*checks, component=None):
    report = run_checks(checks, Subject("verifiers", "x/y", component))
    return report, [r.outcome for r in report.results]


def test_outcomes():
    report, found = outcomes(passes, fails, exits, notes)
    assert found == ["passed", "failed", "failed", "passed"] and not report.ok
    assert "Something breaks. here" in str(report) and "The program ends. SystemExit: 3" in str(report)
    assert str(report).endswith("does not conform: 2 passed, 2 failed")


def test_expected_failures_are_kept_apart():
    report, found = outcomes(passes, fails, component=Component())
    assert found == ["passed", "expected failure"] and report.ok
    assert "the library does it" in str(report)
    fixed = run_check(
        type("F", (), {"__call__": lambda s, x: None, "__name__": "fails"})(), Subject("k", "i", Component())
    )
    assert fixed.outcome == "failed" and "remove it from expected_failures" in fixed.message


def test_a_report_with_skipped_checks_is_not_green():
    report, found = outcomes(passes, skips)
    assert found == ["passed", "skipped"] and not report.ok
    assert "only 1 of 2 checks ran" in str(report)
    assert not Report((), 0).ok and "no check ran" in str(Report((), 0))
    assert not Report((Result("s", "c", "passed"),), 2).ok
    assert not Report((Result("s", "c", "passed"),), 1, ("could not be made",)).ok


def test_a_report_is_plain():
    report, _ = outcomes(passes, fails)
    assert json.loads(json.dumps(report.to_dict()))["results"][1]["check"] == "fails"
    assert (report.to_dict()["ok"], report.to_dict()["planned"], report.to_dict()["ran"]) == (False, 2, 2)


def test_an_interrupt_ends_the_run():
    def interrupted(subject):
        """Stop."""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcomes(interrupted)


@dataclass
class Made:
    words: list = field(default_factory=list)
    examples = ()
    example_params = {"words": ["a"]}  # noqa: RUF012

    def __call__(self, row):
        return {"reward": None, "status": "missing"}


def test_example_parameters_make_the_component():
    report = check_component("verifiers", Made, "acme/made")
    assert {r.subject for r in report.results} == {"acme/made"}
    assert {r.outcome for r in report.results} <= {"passed", "skipped"} and not report.ok


# --- a plugin as a distribution ---

LIGHT = """
from whileai_kernel import hookimpl
{head}
@hookimpl
def wai_register_verifiers(register):
    register("exact", "{package}.exact:Exact", summary={summary!r})
"""
EXACT = """
from whileai_kernel.protocols import Example
GOLD = {"reference": "heron"}
class Exact:
    examples = (
        Example({"final_text": "heron", "privileged": GOLD}, 1.0),
        Example({"final_text": "goose", "privileged": GOLD}, 0.0),
    )
    def __call__(self, row):
        gold = (row.get("privileged") or {}).get("reference")
        if not isinstance(gold, str):
            return {"reward": None, "status": "missing"}
        return (row.get("final_text") or "").strip() == gold
"""
CHECK = """
import json, warnings
warnings.simplefilter("ignore")
from whileai_kernel.testing import check_plugin
report = check_plugin({name!r})
bad = [[r.subject, r.check] for r in report.results if r.outcome != "passed"]
print(json.dumps([report.ok, bad, len(report.results), report.planned, list(report.problems)]))
"""


def install(site, *, head="", summary="Equal.", requires=("whileai-kernel>=1.0,<2",), files=None, body=None):
    text = LIGHT.format(head=head, package="acme_graders", summary=summary) if body is None else body
    site.add("acme-graders", text, requires=requires, files={"exact.py": EXACT, **(files or {})})
    return site.run(CHECK.format(name="acme-graders")).answer


def test_a_right_plugin_passes(site):
    constant = "from whileai_kernel.defaults import Sourced\nK = Sourced(3, 'how many', 'convention, untested')\n"
    ok, bad, ran, planned, problems = install(site, files={"defaults.py": constant})
    assert (ok, bad, problems) == (True, [], []) and ran == planned == 5 + len(CHECKS["verifiers"])


@pytest.mark.parametrize(
    ("options", "check"),
    [
        ({"head": "import pydantic"}, "is_light"),
        ({"head": "import whileai_kernel.rows"}, "is_light"),
        ({"summary": " "}, "says_what_each_component_is"),
        ({"files": {"defaults.py": "K = 3\n"}}, "sources_its_constants"),
        ({"requires": ()}, "asks_for_a_range_of_kernels"),
        ({"requires": ("whileai-kernel",)}, "asks_for_a_range_of_kernels"),
        ({"requires": ("whileai-kernel==1.0.0",)}, "asks_for_a_range_of_kernels"),
        ({"requires": ("whileai-kernel>=1.0",)}, "asks_for_a_range_of_kernels"),
        ({"body": ""}, "registers_something"),
    ],
)
def test_each_check_of_plugins_catches_its_own(site, options, check):
    ok, bad, *_ = install(site, **options)
    assert not ok and bad == [["acme-graders", check]]


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"exact.py": "import library_that_nobody_has"}, "library_that_nobody_has"),
        ({"exact.py": "class Exact:\n    def __init__(self, needed): ..."}, "needs needed"),
        ({"exact.py": "class Exact:\n    def __init__(self): raise RuntimeError('no key')"}, "no key"),
    ],
)
def test_a_component_that_cannot_be_made_is_a_problem(site, files, word):
    ok, _bad, ran, planned, problems = install(site, files=files)
    assert not ok and ran < planned and word in problems[0]


def test_a_kind_without_checks_is_a_problem(site):
    spec = "from whileai_kernel.hookspecs import hookspec\n@hookspec\ndef wai_register_embedders(register):\n    'x'\n"
    body = """
from whileai_kernel import hookimpl
@hookimpl
def wai_addhooks(pluginmanager):
    from acme_graders import hooks
    pluginmanager.add_hookspecs(hooks)
@hookimpl
def wai_register_embedders(register):
    register("e", "acme_graders.exact:Exact", summary="x")
"""
    ok, _bad, _ran, _planned, problems = install(site, body=body, files={"hooks.py": spec})
    assert not ok and "no checks" in problems[0]


def test_a_plugin_that_did_not_load_is_said(site):
    site.add("acme-broken", "import module_that_nobody_has")
    done = site.run(CHECK.format(name="acme-broken"))
    assert done.code != 0 and "module_that_nobody_has" in done.err and "UnknownNameError" in done.err
