"""The sandbox: levels, layers, limits, leftovers, and that values and verdicts cannot be forged."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whileai_kernel import entries, make
from whileai_kernel.errors import ParameterError
from whileai_verify import CodeExec, sandbox
from whileai_verify.code import same_output, same_typed
from whileai_verify.codetext import find_code
from whileai_verify.isolation import LEVELS, landlock_abi
from whileai_verify.sandbox import Limits, LocalSandbox, SandboxError, SandboxJob, SandboxResult, strongest_level
from whileai_verify.wire import CannotCrossError, decode, encode

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the local sandbox needs Linux")

PLUS_ONE = {"final_text": "def f(x): return x + 1", "privileged": {"tests": "assert f(1) == 2"}}


def program(source: str, **kwargs: Any) -> SandboxResult:
    return LocalSandbox().run(
        SandboxJob({"solution.py": source}, "solution.py", stdin=kwargs.pop("stdin", b""), **kwargs)
    )


def test_evidence_names_the_level_and_its_layers() -> None:
    got = CodeExec()(PLUS_ONE)
    assert got["isolation"] == strongest_level()
    if got["isolation"] == "namespaces":
        assert {"mount", "network", "process", "ipc", "seccomp", "rlimits"} <= set(got["layers"])
    if landlock_abi():
        assert "landlock" in got["layers"] or got["isolation"] == "process"


@pytest.fixture
def at_level(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that the machine's strongest level is another one."""

    def use(level: str) -> None:
        if LEVELS.index(level) < LEVELS.index(strongest_level()):
            pytest.skip(f"this machine does not have the level {level}")
        monkeypatch.setattr(sandbox, "_LEVEL", [level])
        try:
            program("")
        except SandboxError as error:
            pytest.skip(f"the level {level} cannot be used here: {error.what}")

    return use


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_passes_honest_code_and_fails_the_rest(level: str, at_level: Any) -> None:
    at_level(level)
    assert CodeExec()(PLUS_ONE)["reward"] == 1.0
    assert CodeExec()(PLUS_ONE)["isolation"] == level
    for bad in (
        "def f(x): return 0",
        "import os\nos._exit(0)",
        "class T:\n  def __eq__(s,o): return True\ndef f(x): return T()",
    ):
        assert CodeExec()({**PLUS_ONE, "final_text": bad})["reward"] == 0.0


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_files_and_network_are_out_of_reach(level: str, at_level: Any, tmp_path: Path) -> None:
    at_level(level)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    source = f"""
import os, socket
for path in ({str(secret)!r}, '/etc/passwd', '/root', '/home'):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print('read', path)
    except OSError:
        pass
try:
    open({str(tmp_path / "planted")!r}, 'w').write('x')
    print('wrote')
except OSError:
    pass
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', 9))
    print('connected')
except PermissionError:
    pass
print('end')
"""
    assert program(source).stdout == b"end\n"
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_other_processes_are_out_of_reach(level: str, at_level: Any) -> None:
    at_level(level)
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        source = f"""
import os, signal
for pid in ({victim.pid}, os.getppid(), -{victim.pid}):
    try:
        os.kill(pid, 0)
        print('reached', pid) if pid > 1 else None
    except (PermissionError, ProcessLookupError):
        pass
print('end')
"""
        assert program(source).stdout == b"end\n"
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_a_required_level_that_is_not_there_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_LEVEL", ["process"])
    got = CodeExec(isolation="namespaces")(PLUS_ONE)
    assert (got["reward"], got["status"]) == (None, "error")
    assert "required" in got["reason"]
    with pytest.raises(ParameterError, match="isolation"):
        CodeExec(isolation="namespace")  # type: ignore[arg-type]


def test_limits_are_checked() -> None:
    with pytest.raises(ParameterError, match="time_s"):
        Limits(time_s=0)
    with pytest.raises(ParameterError, match="limits"):
        CodeExec(limits={"seconds": 1})


def test_environment_and_directory_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret-value")
    got = program("import os\nprint(sorted(os.environ), os.listdir('.'))").stdout.decode()
    assert "API_KEY" not in got
    assert "['solution.py']" in got


def test_a_program_at_its_limits() -> None:
    small = Limits(time_s=1)
    assert program("while True: pass", limits=small).stopped == "time"
    assert program("import os\nwhile True: os.write(1, b'x' * 4096)", limits=Limits(output_kb=64)).stopped == "output"
    assert program("print(len(bytearray(10**9)))", limits=Limits(memory_mb=256)).exit == 1
    assert program("import sys; sys.exit(3)").exit == 3
    assert program("import sys; print(sys.stdin.read())", stdin=b"\xff\x00").stdout == b"\xff\x00\n"


def test_nothing_outlives_a_candidate() -> None:
    marker = f"marker-{os.getpid()}"
    source = f"""
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(100)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)', {marker!r}], start_new_session=True)
def f(x): return x + 1
"""
    row = {"final_text": source, "privileged": {"tests": "assert f(1) == 2"}}
    CodeExec()(row)
    until = time.monotonic() + 20
    while _alive(marker) and time.monotonic() < until:
        os.sched_yield()
    assert not _alive(marker)


def _alive(marker: str) -> bool:
    for pid in Path("/proc").iterdir():
        if pid.name.isdigit() and int(pid.name) != os.getpid():
            try:
                if marker.encode() in (pid / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


def test_same_verdict_from_threads_and_inside_a_loop() -> None:
    verifier = CodeExec()

    async def inside() -> Any:
        return await asyncio.gather(*[asyncio.to_thread(verifier, PLUS_ONE) for _ in range(3)])

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: verifier(PLUS_ONE), range(8)))
    got += asyncio.run(inside())
    got.append(verifier(PLUS_ONE))
    assert all(g == got[0] for g in got)


def test_the_server_is_replaced_after_it_was_killed() -> None:
    assert CodeExec()(PLUS_ONE)["reward"] == 1.0
    for server in list(sandbox._SERVERS.values()):
        server.process.kill()
        server.process.wait()
    assert CodeExec()(PLUS_ONE)["reward"] == 1.0


def test_after_a_fork_a_new_server_is_used() -> None:
    code = """
import os, sys
from whileai_verify import CodeExec
row = {"final_text": "def f(x): return x + 1", "privileged": {"tests": "assert f(1) == 2"}}
assert CodeExec()(row)["reward"] == 1.0
pid = os.fork()
if pid == 0:
    os._exit(0 if CodeExec()(row)["reward"] == 1.0 else 1)
ok = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert ok and CodeExec()(row)["reward"] == 1.0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_tests_that_cannot_run_are_not_scored() -> None:
    for tests in ("import module_that_does_not_exist", "assert f(1) ==", "x = 1", ""):
        got = CodeExec()({"final_text": "def f(x): return x + 1", "privileged": {"tests": tests}})
        assert got["reward"] is None, tests


def test_other_backends_plug_in() -> None:
    class Remote:
        def run(self, job: SandboxJob) -> SandboxResult:
            return SandboxResult("remote", ("machine",), results={"t": ""})

    got = CodeExec(sandbox=Remote())(PLUS_ONE)
    assert (got["reward"], got["isolation"]) == (1.0, "remote")
    assert [e.name for e in entries("sandboxes")] == ["local"]
    assert isinstance(make("sandboxes", "verify/local"), LocalSandbox)

    class Broken:
        def run(self, job: SandboxJob) -> SandboxResult:
            raise SandboxError("no machine")

    assert CodeExec(sandbox=Broken())(PLUS_ONE)["status"] == "error"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(plain)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_values_cross_unchanged(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert back == value
    assert same_typed(back, value)


def test_what_is_not_plain_does_not_cross() -> None:
    class Lie(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    assert type(decode(encode(Lie(0)))) is int
    with pytest.raises(CannotCrossError):
        encode(object())
    deep: list[Any] = []
    for _ in range(1_000):
        deep = [deep]
    with pytest.raises(CannotCrossError):
        encode(deep)
    for data in ({"q": 1}, {"n": ["x", ["__class__"], [1]]}, {"t": 1}, {"i": "zz"}, {"T": "open"}, {"a": 1, "b": 2}):
        with pytest.raises(CannotCrossError):
            decode(data)


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        (True, 1, False),
        (1, True, False),
        (2.0, 2, False),
        (2, 2.0, True),
        ("2", 2, False),
        ((1, 2), [1, 2], True),
        ([1, 2], (1, 2), False),
        ({"a": 1}, {"a": 1}, True),
        ({1: "a"}, {"1": "a"}, False),
        ({True: "a"}, {1: "a"}, False),
        (None, "None", False),
        ([], "", False),
        (float("nan"), float("nan"), True),
        ([1, [2.0]], [1, [2]], False),
    ],
)
def test_typed_comparison(got: Any, expected: Any, same: bool) -> None:
    assert same_typed(got, expected) is same


def test_output_comparison() -> None:
    assert same_output(b"a \r\nb\n\n", "a\nb")
    assert not same_output(b"b\na", "a\nb")
    assert not same_output(b" a", "a")


def test_code_is_found() -> None:
    reply = (
        "Helper:\n```python\n# file: pkg/util.py\nX = 1\n```\nMain:\n```py\ndef f(): return 1\n```\n```bash\nls\n```"
    )
    code = find_code(reply, "f")
    assert code is not None
    assert set(code.files) == {"pkg/util.py", "solution.py"}
    assert find_code("```python\n# file: ../../etc/x.py\ndef f(): pass\n```", "f").files.keys() == {"solution.py"}  # type: ignore[union-attr]
    assert find_code("", None) is None
    assert find_code(">>> x", None) is not None
