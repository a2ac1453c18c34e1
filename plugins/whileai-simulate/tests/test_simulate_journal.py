"""The journal: kills, torn lines, full disks, other calls and other processes."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from whileai_kernel.errors import ParameterError
from whileai_simulate import seeded_agent, simulate
from whileai_simulate.journal import Journal, JournalError

PROGRAM = '''
"""A run that kills itself in the middle of rollout number `die` (0: never)."""
import os, signal, sys
from whileai_simulate import simulate

out, kind = sys.argv[1], sys.argv[3]
calls = []


def agent(message: str, *, context) -> str:
    calls.append(1)
    if len(calls) == int(sys.argv[2]):  # a constant of the module would be part of who the agent is
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{context.seed % 1000} " + context.call_tool("get_order", {"order_id": "O-1"})


class Inline:
    inline = True

    def __call__(self, message: str, *, context) -> str:
        return agent(message, context=context)


tool = {"name": "get_order", "kind": "read", "parameters": {"type": "object", "required": ["order_id"],
        "properties": {"order_id": {"type": "string"}}}}
chosen = Inline() if kind == "inline" else agent
data = simulate(chosen, tools=[tool], system_prompt="Never lie.", situations=12, repeats=3, seed=5, output=out,
                concurrency=4)
print(len(data), len(calls))
'''


def run(program: Path, out: Path, die: int, kind: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(program), str(out), str(die), kind],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def landed(journal: Path) -> set[tuple[int, int]]:
    keys = []
    for line in journal.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "i" in entry:
            keys.append((entry["p"], entry["i"]))
    assert len(keys) == len(set(keys)), "a rollout was written twice"
    return set(keys)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is a POSIX test")
@pytest.mark.parametrize("kind", ["inline", "threads"])
def test_kill_9_loses_no_finished_rollout_and_the_resumed_file_is_the_same(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    whole = tmp_path / "whole.jsonl"
    assert run(program, whole, 0, kind).stdout.split() == ["36", "36"]
    draw = random.Random(7)
    for n in range(2):
        out = tmp_path / f"cut{n}.jsonl"
        journal = tmp_path / f"cut{n}.jsonl.journal"
        die = draw.randint(2, 36)
        assert run(program, out, die, kind).returncode == -9
        safe = landed(journal)
        # Every rollout that ended before the kill is there; only those in flight (4 at most) are lost.
        assert die - 4 <= len(safe) < die
        torn = draw.randint(1, 40)
        with journal.open("r+b") as file:
            file.truncate(journal.stat().st_size - torn)
        kept = run(program, out, 0, kind)
        assert kept.returncode == 0, kept.stderr
        total, again = map(int, kept.stdout.split())
        assert total == 36
        assert again <= 36 - len(safe) + 2, "finished rollouts were run again"
        assert out.read_bytes() == whole.read_bytes()
        assert landed(journal) == set(), "what remains is a note of the finished call"


def call(**changes: Any) -> Any:
    tool = {"name": "get_order", "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
    return simulate(changes.pop("agent", seeded_agent()), **{"tools": [tool], "situations": 4, "repeats": 2, **changes})


def halfway(tmp_path: Path) -> Path:
    """A journal that holds a part of a run."""

    def stop(done: int, planned: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    data = call(checkpoint=tmp_path / "run.journal", progress=stop)
    assert len(data) == 3
    return tmp_path / "run.journal"


def test_the_same_call_resumes_and_a_finished_journal_is_only_read(tmp_path: Path) -> None:
    path = halfway(tmp_path)
    data = call(checkpoint=path)
    assert list(data) == list(call())
    lines = path.read_text(encoding="utf-8").count("\n")
    assert list(call(checkpoint=path)) == list(data)
    assert path.read_text(encoding="utf-8").count("\n") == lines


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "seed"),
        ({"situations": 5}, "situations"),
        ({"repeats": 3}, "repeats"),
        ({"agent": seeded_agent(rate=0.5)}, "agent"),
        ({"system_prompt": "Other."}, "system_prompt"),
        ({"axes": {"history": None}}, "axes"),
    ],
)
def test_another_call_is_refused_and_says_what_differs(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = halfway(tmp_path)
    with pytest.raises(JournalError, match=r"another call[\s\S]*different: .*" + words):
        call(checkpoint=path, **changes)
    assert list(call(checkpoint=path)) == list(call())


def test_another_agent_of_the_same_name_is_refused(tmp_path: Path) -> None:
    def make(word: str) -> Any:
        if word == "a":

            def agent(message: str) -> str:
                return "a"
        else:

            def agent(message: str) -> str:
                return "b" + message

        return agent  # fmt: skip

    call(agent=make("a"), checkpoint=tmp_path / "j")
    with pytest.raises(JournalError, match="agent"):
        call(agent=make("b"), checkpoint=tmp_path / "j")


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = halfway(tmp_path)
    header = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    held = Journal(path, header["fingerprint"], {}, {}, 2)
    try:
        with pytest.raises(JournalError, match="in use by another process"):
            call(checkpoint=path)
    finally:
        held.close()
    assert len(call(checkpoint=path)) == 8


def test_a_torn_last_line_is_cut_off_and_reported_and_damage_is_refused(tmp_path: Path) -> None:
    path = halfway(tmp_path)
    text = path.read_bytes()
    path.write_bytes(text[:-9])
    data = call(checkpoint=path)
    assert any("torn last line" in w for w in data.warnings)
    assert list(data) == list(call())
    lines = text.split(b"\n")
    lines[2] = lines[2][:10]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(JournalError, match="damaged at byte"):
        call(checkpoint=path)


@pytest.mark.parametrize(
    "text", ["my notes\n", "my only copy", '{"a": 1}', '{"journal":2,', "<html>\n</html>", "\n", " "]
)
def test_a_file_that_is_no_journal_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JournalError, match="no journal"):
        call(checkpoint=path)
    assert path.read_text(encoding="utf-8") == text


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/full"), Path(os.devnull)):
        with pytest.raises(JournalError, match="is no file"):
            call(checkpoint=path)


def test_a_journal_cut_off_anywhere_gives_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = list(call(checkpoint=path))
    data = path.read_bytes()
    ends = [n + 1 for n, byte in enumerate(data) if byte == 10]
    places = sorted({0, 1, 12, len(data) - 1, *ends, *(n - 1 for n in ends), *(n + 1 for n in ends[:-1])})
    for place in places:
        path.write_bytes(data[:place])
        again = call(checkpoint=path)
        assert list(again) == whole, place
        torn = place > 0 and data[place - 1] != 10
        assert any("torn last line" in w for w in again.warnings) == torn, place


@pytest.mark.parametrize(
    "line",
    ['{"p":"x","i":0,"row":{}}', '{"p":-1,"i":0,"row":{}}', '{"p":0,"i":99,"row":{}}', '{"p":0,"i":0}', "{", "7"],
)
def test_a_line_that_no_journal_has_is_torn_at_the_end_and_damage_elsewhere(line: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = list(call(checkpoint=path))
    data = path.read_bytes()
    path.write_bytes(data + line.encode() + b"\n")
    assert list(call(checkpoint=path)) == whole
    path.write_bytes(data + line.encode() + b"\n" + data.splitlines(keepends=True)[-1])
    with pytest.raises(JournalError, match="damaged"):
        call(checkpoint=path)


def test_an_output_that_exists_is_not_replaced_unasked(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text("mine\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="exists"):
        call(output=out)
    assert out.read_text(encoding="utf-8") == "mine\n"
    call(output=out, options={"overwrite": True})
    assert out.read_bytes().count(b"\n") == 8


class Counted:
    """An honest little agent that counts its calls."""

    inline = True

    def __init__(self) -> None:
        self._calls: list[int] = []

    def __call__(self, message: str, *, context: Any) -> str:
        self._calls.append(1)
        return f"answer {context.seed}"


GRADED: dict[str, Any] = {"repeat_policy": "successive", "repeats": 4, "judge": lambda row: row["seeded"] == []}


@pytest.mark.parametrize(
    "more", [{}, {"runs": 2}, GRADED, {"seeds": ["Where is it?"]}], ids=["plain", "runs", "graded", "seeds"]
)
def test_a_finished_call_is_recognised_and_answered_from_its_file(tmp_path: Path, more: dict[str, Any]) -> None:
    out = tmp_path / "rows.jsonl"
    first = call(output=out, **more)
    before = out.read_bytes()
    again = call(output=out, **more)
    assert list(again) == list(first)
    assert again.report == first.report
    assert dict(again.groups) == dict(first.groups)
    assert again.provenance == first.provenance
    assert [w for w in again.warnings if "finished before" not in w] == first.warnings
    assert len(again.warnings) == len(first.warnings) + 1
    assert out.read_bytes() == before


def test_a_finished_call_does_not_run_the_agent_again(tmp_path: Path) -> None:
    agent, out = Counted(), tmp_path / "rows.jsonl"
    call(agent=agent, output=out)
    call(agent=agent, output=out)
    assert len(agent._calls) == 8
    data = call(agent=agent, output=out, options={"collect": False})
    assert (len(data), data.report.rows, len(agent._calls)) == (0, 8, 8)
    out.unlink()
    call(agent=agent, output=out)
    assert (len(agent._calls), out.read_bytes().count(b"\n")) == (16, 8)
    call(agent=agent, output=out, options={"overwrite": True})
    assert len(agent._calls) == 24


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "seed"),
        ({"agent": seeded_agent(rate=0.5)}, "agent"),
        ({"judge": lambda row: 1.0}, "judge"),
        ({"traces": [{"prompt": "Where is it?", "reward": 0.0}]}, "traces"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_a_different_call_on_a_finished_file_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    out = tmp_path / "rows.jsonl"
    call(output=out)
    before = out.read_bytes()
    with pytest.raises(JournalError, match=r"another call[\s\S]*different: .*" + words):
        call(output=out, **changes)
    assert out.read_bytes() == before
    assert len(call(output=out, options={"overwrite": True}, **changes)) == 8


def test_other_traces_are_another_call(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    call(output=out, traces=[{"prompt": "Where is it?", "reward": 0.0}])
    with pytest.raises(JournalError, match="different: traces"):
        call(output=out, traces=[{"prompt": "Who is there?", "reward": 0.0}])


def test_a_finished_file_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    call(output=out)
    changed = out.read_bytes().replace(b"order", b"ordre", 1)
    out.write_bytes(changed)
    with pytest.raises(JournalError, match="changed since"):
        call(output=out)
    assert out.read_bytes() == changed


def test_a_run_that_is_not_finished_is_never_overwritten(tmp_path: Path) -> None:
    path = halfway(tmp_path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match="another call"):
        call(checkpoint=path, seed=1, options={"overwrite": True})
    assert path.read_bytes() == before


def test_a_full_disk_stops_the_run_and_keeps_what_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.journal"
    room = [9]
    real = Journal._write

    def write(self: Journal, entry: Any) -> Any:
        room[0] -= 1
        if room[0] < 0:
            raise JournalError("cannot write run.journal: No space left on device") from OSError(errno.ENOSPC, "full")
        return real(self, entry)

    monkeypatch.setattr(Journal, "_write", write)
    with pytest.raises(JournalError, match="No space left"):
        call(checkpoint=path)
    monkeypatch.undo()
    safe = landed(path)
    assert len(safe) >= 4
    data = call(checkpoint=path)
    assert list(data) == list(call())


FULL = """
import resource, sys
from pathlib import Path
from whileai_kernel.errors import WhileaiError
from whileai_simulate import simulate

folder = Path(sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
plain = {"situations": 8, "repeats": 2, "progress": False}


async def later(message, *, context):
    return f"{context.seed % 1000} " + "so " * 40


def now(message, *, context):
    return f"{context.seed % 1000} " + "so " * 40


refused = 0
for agent in (later, now):
    whole = list(simulate(agent, **plain))
    for size in range(200, 40_000, 2_900):
        out, checkpoint = folder / f"{agent.__name__}{size}.jsonl", folder / f"{agent.__name__}{size}.journal"
        call = {**plain, "output": out, "checkpoint": checkpoint if size % 3 else None}
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            simulate(agent, **call)
        except WhileaiError as err:
            assert "cannot write" in str(err) and "repeat the call" in str(err), err
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(simulate(agent, **call)) == whole
print(refused)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_disk_that_is_full_anywhere_in_a_run_says_so_and_the_call_resumes(tmp_path: Path) -> None:
    program = tmp_path / "full.py"
    program.write_text(FULL, encoding="utf-8")
    ran = subprocess.run([sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) >= 10


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_write_that_the_disk_refuses_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = Journal(path, "f", {}, {}, 1)
    with Path("/dev/full").open("r+b", buffering=0) as full:
        own, journal._file = journal._file, full
        with pytest.raises(JournalError, match="space"):
            journal._write({"p": 0, "task": {}})
        journal._file = own
    journal.close()
    assert path.read_text(encoding="utf-8").endswith("\n")


def test_the_file_is_what_the_data_would_write(tmp_path: Path) -> None:
    data = call(output=tmp_path / "a.jsonl", judge=lambda row: {"reward": 0.5, "reason": "half", "markers": {"m": 1}})
    data.write(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_rows_can_stream_to_a_file_without_being_kept(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    data = call(output=out, options={"collect": False})
    assert len(data) == 0
    assert data.report.rows == 8
    kept = tmp_path / "kept.jsonl"
    call(output=kept)
    assert out.read_bytes() == kept.read_bytes()
    with pytest.raises(ParameterError, match="needs output="):
        call(options={"collect": False})


@pytest.mark.parametrize("text", ["mine\n", '{"prompt": "x"}\n', "", "\xff"])
def test_a_finished_checkpoint_replaces_no_other_file(text: str, tmp_path: Path) -> None:
    """The rows are in the checkpoint; where they go the second time may be somebody's file."""
    checkpoint, out, other = tmp_path / "journal", tmp_path / "rows.jsonl", tmp_path / "other.jsonl"
    call(output=out, checkpoint=checkpoint)
    before = out.read_bytes()
    assert len(call(output=out, checkpoint=checkpoint)) == 8
    assert out.read_bytes() == before
    for path in (out, other):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(JournalError, match="is not what this call writes"):
            call(output=path, checkpoint=checkpoint)
        assert path.read_bytes() == text.encode("latin-1")
        path.unlink()
        call(output=path, checkpoint=checkpoint)
        assert path.read_bytes() == before


def test_a_run_that_ended_between_its_rows_and_its_note_is_finished_by_the_same_call(tmp_path: Path) -> None:
    out, journal = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.journal"
    call(checkpoint=tmp_path / "spare")
    call(output=out)
    before = out.read_bytes()
    journal.write_bytes((tmp_path / "spare").read_bytes())
    assert len(call(output=out)) == 8
    assert out.read_bytes() == before
    assert call(output=out).finished_before
