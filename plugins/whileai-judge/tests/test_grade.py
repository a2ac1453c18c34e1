"""The grading pipeline: verdicts on copies, statuses, history, counts, references, hooks."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge import JudgeError, agrade, grade
from whileai_judge.seeded import seeded
from whileai_kernel import hookimpl, make, register_local
from whileai_kernel.dataset import Dataset
from whileai_kernel.errors import (
    AmbiguousNameError,
    FindingsError,
    ParameterError,
    RowError,
    UnknownNameError,
)
from whileai_kernel.lifecycle import Finding, StopStage
from whileai_kernel.models import Judgment
from whileai_kernel.plugins import manager
from whileai_kernel.rows import KEY_ORDER, make_rows
from whileai_kernel.testing import conformance_test


def rows_of(*texts):
    return make_rows([f"question {i}" for i in range(len(texts))], list(texts))


def rewards(data):
    return [row["reward"] for row in data]


RETURNS = [True, False, 1, 0, 0.25, "yes", None, math.nan, math.inf, 1.5, -1, [], {"score": 0.5, "reason": "half"}]
RETURNS += [{"reward": None, "status": "abstained"}, {"reward": 1, "markers": {"m": 0.5, "bad": 7}}, {}, {"x": 1}]
EXPECTED = [1.0, 0.0, 1.0, 0.0, 0.25, None, None, None, None, None, None, None, 0.5, None, 1.0, None, None]
STATUS = ["ok"] * 5 + ["invalid", "missing", "invalid", "invalid", "invalid", "invalid", "invalid", "ok"]
STATUS += ["abstained", "ok", "invalid", "invalid"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("concurrency", [1, 7])
def test_every_kind_of_return_value_becomes_its_status_and_never_zero(asynchronous, concurrency):
    rows = rows_of(*[str(i) for i in range(len(RETURNS))])

    def plain(row):
        return RETURNS[int(row["final_text"])]

    async def coroutine(row):
        return plain(row)

    data = grade(rows, coroutine if asynchronous else plain, concurrency=concurrency)
    assert rewards(data) == EXPECTED
    assert [row["status"] for row in data] == STATUS
    assert data[12]["reason"] == "half"
    assert data[14]["markers"] == {"m": 0.5, "bad": None}
    assert data[16]["evidence"] == {"x": 1}


def test_exceptions_and_deadlines_are_statuses_and_the_row_is_kept():
    release = threading.Event()

    def judge(row):
        if row["final_text"] == "raise":
            raise ValueError("cannot read it")
        if row["final_text"] == "hang":
            release.wait(20)
        return 1

    try:
        data = grade(rows_of("a", "raise", "hang", "b"), judge, deadline=0.1)
    finally:
        release.set()
    assert rewards(data) == [1.0, None, None, 1.0]
    assert [row["status"] for row in data] == ["ok", "error", "timeout", "ok"]
    assert data[1]["reason"] == "ValueError: cannot read it"
    assert "0.1 s" in data[2]["reason"]
    assert data.provenance["grade"]["counts"] == {
        "rows": 4, "scored": 2, "ok": 2, "error": 1, "timeout": 1, "mean": 1.0, "bounds": [0.5, 1.0],
    }  # fmt: skip


def test_the_input_is_never_changed_and_nothing_is_shared():
    rows = rows_of("a", "b")
    rows[0]["markers"] = {"kept": 1.0}
    rows[0]["axes"] = {"nested": {"list": [1]}}
    before = copy.deepcopy(rows)
    state = {"list": [1]}

    def vandal(row):
        row["messages"].append({"role": "user", "content": "mine"})
        row["markers"]["mine"] = 1.0
        row.pop("prompt")
        return {"reward": 1, "state": state}

    data = grade(rows, vandal)
    assert rows == before
    assert [m["content"] for m in data[0]["messages"]] == [m["content"] for m in before[0]["messages"]]
    assert data[0]["markers"] == {"kept": 1.0}
    data[0]["axes"]["nested"]["list"].append(2)
    data[0]["evidence"]["state"]["list"].append(2)
    assert rows == before
    assert state == {"list": [1]}
    assert data[1]["evidence"]["state"] == {"list": [1]}


def test_an_earlier_verdict_moves_to_judgments_oldest_first():
    rows = rows_of("a")
    first = grade(rows, lambda row: {"reward": 0.25, "reason": "one", "n": 1})
    second = grade(first, lambda row: {"reward": 0.5, "reason": "two"})
    third = grade(second, lambda row: None)
    fourth = grade(third, lambda row: 1.0, threshold=0.9)
    row = fourth[0]
    assert (row["reward"], row["status"], row["threshold"]) == (1.0, "ok", 0.9)
    assert "reason" not in row
    assert "evidence" not in row
    assert [(j["reward"], j["status"]) for j in row["judgments"]] == [(0.25, "ok"), (0.5, "ok"), (None, "missing")]
    assert row["judgments"][0]["evidence"] == {"n": 1}
    assert row["judgments"][0]["reason"] == "one"
    assert "judgments" not in first[0]
    known = [key for key in row if key in KEY_ORDER]
    assert known == sorted(known, key=KEY_ORDER.index)


def test_markers_are_merged_and_the_new_one_wins():
    rows = rows_of("a")
    rows[0]["markers"] = {"old": 1.0, "both": 0.0}
    data = grade(rows, lambda row: {"reward": 1, "markers": {"both": 1.0, "new": None}})
    assert data[0]["markers"] == {"old": 1.0, "both": 1.0, "new": None}


def test_a_second_scorer_can_stand_beside_the_first():
    first = grade(rows_of("a", "b"), lambda row: row["final_text"] == "a")
    both = grade(first, lambda row: 0.5, primary=False)
    assert rewards(both) == [1.0, 0.0]
    assert [j["reward"] for row in both for j in row["judgments"]] == [0.5, 0.5]
    assert rewards(first) == [1.0, 0.0]
    assert len(both.provenance["grade_beside"]) == 1


def test_a_judgment_object_keeps_its_own_scorer():
    verdict = Judgment(reward=0.5, status="ok", scorer={"id": "me", "kind": "human"})
    assert grade(rows_of("a"), lambda row: verdict)[0]["scorer"] == {"id": "me", "kind": "human"}


@given(st.lists(st.sampled_from([True, 0, 0.5, None, "x", math.nan]), max_size=25), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_the_fast_path_gives_what_the_kernel_gives(verdicts, concurrency):
    """Each value once plain, once wrapped in a dict: the same reward and status."""
    rows = rows_of(*[str(i) for i in range(len(verdicts))])
    plain = grade(rows, lambda row: verdicts[int(row["final_text"])], concurrency=concurrency)
    wrapped = grade(rows, lambda row: {"reward": verdicts[int(row["final_text"])]}, concurrency=1)
    assert [(r["reward"], r["status"]) for r in plain] == [(r["reward"], r["status"]) for r in wrapped]
    assert all(type(r["reward"]) in (float, type(None)) for r in plain)


def test_counts_show_what_was_not_scored_and_its_bound():
    """Verdicts 1, unreadable, 0: mean 0.5 over 2, and the truth lies between 1/3 and 2/3."""
    replies = {"0": 1, "1": "oops", "2": 0}
    data = grade(rows_of("0", "1", "2"), lambda row: replies[row["final_text"]])
    counts = data.provenance["grade"]["counts"]
    assert (counts["mean"], counts["scored"], counts["invalid"]) == (0.5, 2, 1)
    assert counts["bounds"] == pytest.approx([1 / 3, 2 / 3])
    assert any("1 of 3 rows are not scored (1 invalid)" in w and "0.333 to 0.667" in w for w in data.warnings)


def test_one_value_on_every_row_is_warned_about_once():
    data = grade(rows_of(*"abcdefghijklmnopqrst"), lambda row: 0)
    assert sum("scored rows" in w and "reward 0" in w for w in data.warnings) == 1
    assert not any("reward" in w for w in grade(rows_of("a", "b"), lambda row: row["final_text"] == "a").warnings)


def test_grading_again_drops_the_warnings_of_the_first_verdict():
    rows = Dataset(rows_of("a", "b"), warnings=["from the simulation"], provenance={"simulate": 1})
    first = grade(rows, lambda row: None)
    second = grade(first, lambda row: row["final_text"] == "a")
    assert any("not scored" in w for w in first.warnings)
    assert second.warnings == ["from the simulation"]
    assert second.provenance["simulate"] == 1
    assert rows.warnings == ["from the simulation"]


def test_a_judge_that_fails_on_every_first_row_stops_early_with_one_error():
    calls = []

    def judge(row):
        calls.append(1)
        raise KeyError("reply")

    with pytest.raises(JudgeError) as raised:
        grade(rows_of(*["x"] * 50), judge)
    assert len(calls) == 8
    assert "KeyError" in raised.value.why
    assert raised.value.fix
    assert isinstance(raised.value.__cause__, KeyError)
    assert len(grade(rows_of(*["x"] * 50), judge, stop_after=None)) == 50


def test_names_files_and_objects_all_work(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def ends_well(row):\n    return row['final_text'].endswith('b')\n", encoding="utf-8")

    class Longer:
        threshold = 0.5
        scorer_kind = "reward_model"
        version = "7"

        def __init__(self, n):
            self.n = n

        async def __call__(self, row):
            return min(1.0, len(row["final_text"]) / self.n)

    rows = rows_of("a", "bb")
    by_file = grade(rows, f"{file}:ends_well")
    assert rewards(by_file) == [0.0, 1.0]
    assert by_file[0]["scorer"]["id"] == f"{file}:ends_well"
    by_object = grade(rows, Longer(2))
    assert rewards(by_object) == [0.5, 1.0]
    assert by_object[0]["threshold"] == 0.5
    assert by_object[0]["scorer"]["kind"] == "reward_model"
    assert by_object[0]["scorer"]["version"] == "7"
    register_local("verifiers", "longer_than_one", lambda row: len(row["final_text"]) > 1)
    by_name = grade(rows, "longer_than_one")
    assert rewards(by_name) == [0.0, 1.0]
    register_local("judges", "longest", Longer)
    made = make("judges", "longest", n=4)
    by_make = grade(rows, made)
    assert by_make[0]["scorer"]["id"] == "here/longest"
    assert by_make[0]["scorer"]["params"] == {"n": 4}
    by_module = grade(rows, "whileai_judge.seeded:seeded")
    assert [row["status"] for row in by_module] == ["missing", "missing"]


class Batches:
    """A judge of batches that fails on the batch with an "x" and miscounts the one with a "y"."""

    def __init__(self, batch_size):
        self.batch_size, self.sizes = batch_size, []

    def grade_batch(self, rows):
        self.sizes.append(len(rows))
        texts = [row.pop("final_text") for row in rows]
        if "x" in texts:
            raise ValueError("no")
        return [text == "a" for text in texts][: 1 if "y" in texts else None]


def test_judges_of_batches_get_batches_and_a_bad_one_costs_its_rows_alone():
    rows = rows_of(*"abaxbabyb")
    judge = Batches(2)
    data = grade(rows, judge, concurrency=1)
    assert judge.sizes == [2, 2, 2, 2, 1]
    assert rewards(data) == [1.0, 0.0, None, None, 0.0, 1.0, None, None, 0.0]
    assert {row["status"] for row in data if row["reward"] is None} == {"error"}
    assert "1 verdicts for 2 rows" in data[6]["reason"]
    assert all("final_text" in row for row in rows)

    class Later(Batches):
        async def grade_batch(self, rows):
            return super().grade_batch(rows)

    assert rewards(grade(rows, Later(3))) == [1.0, 0.0, 1.0, None, None, None, None, None, None]
    with pytest.raises(JudgeError, match="first 8 of 40"):
        grade(rows_of(*"x" * 40), Batches(2))
    with pytest.raises(ParameterError, match="batch_size"):
        grade(rows, Batches(0))


def test_names_that_do_not_work_say_what_does():
    rows = rows_of("a")
    register_local("verifiers", "twice", lambda row: 1)
    register_local("judges", "twice", lambda row: 0)
    with pytest.raises(AmbiguousNameError, match="twice"):
        grade(rows, "twice")
    with pytest.raises(UnknownNameError) as unknown:
        grade(rows, "seded")
    assert "seeded" in str(unknown.value)
    with pytest.raises(ParameterError, match="class"):
        grade(rows, Judgment)
    with pytest.raises(ParameterError, match="function of one row"):
        grade(rows, 3)
    with pytest.raises(RowError, match="row 1"):
        grade([{"prompt": "x"}, "not a row"], lambda row: 1)
    with pytest.raises(RowError, match="many rows"):
        grade({"prompt": "x"}, lambda row: 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": True},
        {"deadline": 0},
        {"deadline": math.nan},
        {"threshold": 1.5},
        {"threshold": "1"},
        {"stop_after": 0},
        {"max_abandoned": "8"},
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ParameterError):
        grade(rows_of("a"), lambda row: 1, **wrong)


def test_rows_may_come_from_an_iterator_and_from_a_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    Dataset(rows_of("a", "b")).write(path)
    assert rewards(grade(path, lambda row: 1)) == [1.0, 1.0]
    assert rewards(grade(iter(rows_of("a", "b")), lambda row: 1)) == [1.0, 1.0]
    assert grade([], lambda row: 1).warnings == ["nothing to grade: there are no rows"]
    assert pickle.loads(pickle.dumps(grade(path, lambda row: 1))).rows == grade(path, lambda row: 1).rows


def test_works_inside_a_running_loop_twice_and_without_blocking_it_with_agrade():
    async def judge(row):
        await asyncio.sleep(0)
        return row["final_text"] == "a"

    rows = rows_of("a", "b", "a")

    async def notebook():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        inside = [grade(rows, judge).rows, grade(rows, judge).rows]
        mine = asyncio.get_running_loop()

        async def on_my_loop(row):
            assert asyncio.get_running_loop() is mine
            return await judge(row)

        before = ticks
        awaited = await agrade(rows, on_my_loop)
        assert ticks > before
        awaited_plain = await agrade(rows, lambda row: row["final_text"] == "a")
        ticking.cancel()
        return inside, awaited, awaited_plain

    inside, awaited, plain = asyncio.run(notebook())
    expected = [1.0, 0.0, 1.0]
    assert [row["reward"] for row in inside[0]] == expected
    assert inside[0] == inside[1] == grade(rows, judge).rows
    assert rewards(awaited) == rewards(plain) == expected


def test_agrade_raises_what_grade_raises_and_can_be_cancelled():
    def fails(row):
        raise OSError("down")

    ended = []

    async def waits(row):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ended.append(row["final_text"])
            raise

    async def program():
        with pytest.raises(JudgeError):
            await agrade(rows_of(*["x"] * 20), fails)
        with pytest.raises(UnknownNameError):
            await agrade(rows_of("x"), "nobody/nothing")
        task = asyncio.create_task(agrade(rows_of("x", "y"), waits))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(15):
            while len(ended) < 2:
                await asyncio.sleep(0.01)

    asyncio.run(program())
    assert sorted(ended) == ["x", "y"]


class Observer:
    def __init__(self, stop_at=None):
        self.seen, self.failed, self.stages, self.stop_at = [], [], [], stop_at
        self.findings = []

    @hookimpl
    def wai_stage_start(self, stage):
        self.stages.append(("start", stage.name))

    @hookimpl
    def wai_stage_end(self, stage, error):
        self.stages.append(("end", stage.rows_seen, stage.rows_failed, type(error).__name__))

    @hookimpl
    def wai_row(self, row, stage):
        self.seen.append(row["final_text"])
        if row["final_text"] == self.stop_at:
            raise StopStage("enough")

    @hookimpl
    def wai_row_failed(self, row, stage, error):
        self.failed.append((row["final_text"], type(error).__name__))

    @hookimpl
    def wai_check_rows(self, rows, stage):
        return self.findings


@pytest.fixture
def observe():
    added = []

    def add(observer):
        manager().pm.register(observer, name=f"observer-{len(added)}")
        added.append(observer)
        return observer

    yield add
    for observer in added:
        manager().pm.unregister(observer)


def test_observers_see_every_row_in_order(observe):
    observer = observe(Observer())

    def judge(row):
        if row["final_text"] == "c":
            raise ValueError("no")
        return 1

    grade(rows_of(*"abcd"), judge, concurrency=3)
    assert observer.seen == ["a", "b", "d"]
    assert observer.failed == [("c", "ValueError")]
    assert observer.stages == [("start", "grade"), ("end", 3, 1, "NoneType")]


def test_an_observer_may_stop_the_stage(observe):
    observer = observe(Observer(stop_at="b"))
    with pytest.raises(StopStage):
        grade(rows_of(*"abcd"), lambda row: 1)
    assert observer.stages[-1][-1] == "StopStage"


def test_a_finding_that_stops_the_stage_does_not_lose_the_verdicts(observe):
    observer = observe(Observer())
    observer.findings = [Finding("acme/leak", "error", "the rows leak"), Finding("acme/odd", "warning", "odd")]
    with pytest.raises(FindingsError) as stopped:
        grade(rows_of("a", "b"), lambda row: row["final_text"] == "a")
    assert rewards(stopped.value.dataset) == [1.0, 0.0]
    allowed = grade(rows_of("a", "b"), lambda row: row["final_text"] == "a", allow=["acme/leak"])
    assert sum("acme/" in text for text in allowed.warnings) == 2


def test_the_seeded_judge_is_the_oracle_of_the_seeded_agent():
    rows = [{"task_id": "t", "prompt": "q", "final_text": "x", "seeded": s} for s in ([], ["hedging"], ["a", "b"])]
    rows += [{"task_id": "t", "prompt": "q", "final_text": "x"}, {"task_id": "t", "seeded": "hedging"}]
    data = grade(rows, "seeded")
    assert rewards(data) == [1.0, 0.0, 0.0, None, None]
    assert [row["status"] for row in data] == ["ok", "ok", "ok", "missing", "invalid"]
    assert data[2]["evidence"] == {"labels": ["a", "b"]}
    assert data[0]["scorer"]["id"] == "judge/seeded"
    assert data[0]["scorer"]["kind"] == "rule"
    for example in seeded.examples:
        assert grade([example.row], seeded)[0]["reward"] == example.reward


def test_the_same_rows_whatever_the_hash_seed_and_the_concurrency():
    program = textwrap.dedent(
        """
        import json, sys, time
        from whileai_judge import grade
        from whileai_kernel.rows import make_rows
        rows = make_rows([f"q{i}" for i in range(40)], [str(i) for i in range(40)])
        def judge(row):
            time.sleep(0.0005 * (int(row["final_text"]) % 5))
            return {"reward": int(row["final_text"]) % 3 / 2, "markers": {"a": 1, "b": 0}, "z": {"k", "l"}}
        print(json.dumps(grade(rows, judge, concurrency=int(sys.argv[1])).rows, sort_keys=False))
        """
    )
    outputs = set()
    for seed, concurrency in (("0", "1"), ("1", "8"), ("2", "3")):
        done = subprocess.run(
            [sys.executable, "-c", program, concurrency],
            capture_output=True, text=True, timeout=60, env={"PYTHONHASHSEED": seed, "PATH": ""},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_importing_the_package_is_light():
    code = "import sys, whileai_judge, whileai_judge.plugin; print([m for m in sys.modules if m in "
    code += "('numpy','scipy','pydantic','torch','asyncio')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


test_conformance = conformance_test("judge")


@pytest.mark.parametrize("how", ["plain", "async", "batch"])
def test_a_rollout_that_its_simulated_user_spoiled_is_not_scored_and_no_call_is_made_for_it(how):
    rows = make_rows(["a", "b", "c"], ["x", "y", "z"])
    rows[1] |= {"outcome": "failed", "error": {"type": "UserFailure", "message": "no answer", "by": "user"}}
    rows[2] |= {"outcome": "failed", "error": {"type": "ValueError", "message": "oops"}}
    seen = []

    def plain(row):
        seen.append(row["prompt"])
        return 1.0

    async def waits(row):
        return plain(row)

    class Batch:
        def grade_batch(self, batch):
            return [plain(row) for row in batch]

        def __call__(self, row):
            return plain(row)

    data = grade(rows, {"plain": plain, "async": waits, "batch": Batch()}[how])
    assert sorted(seen) == ["a", "c"]
    assert [row["reward"] for row in data] == [1.0, None, 1.0]
    assert data[1]["status"] == "error"
    assert data[1]["reason"] == "the simulated user failed: no answer"
    assert data.provenance["grade"]["counts"]["scored"] == 2
