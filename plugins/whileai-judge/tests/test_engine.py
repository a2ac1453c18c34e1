"""The engine: order, bounds, deadlines, loops, early stop."""

from __future__ import annotations

import asyncio
import functools
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_judge.engine import AllFailed, is_async, run_calls, shared_loop

WAIT = 20.0  # seconds that a hanging call would hang; tests end long before


def values(outcomes):
    return [outcome.value for outcome in outcomes]


def hang(release: threading.Event):
    release.wait(WAIT)


@pytest.fixture
def release():
    event = threading.Event()
    yield event
    event.set()


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 9), st.booleans())
@settings(max_examples=30, deadline=None)
def test_order_and_values_do_not_depend_on_concurrency(items, concurrency, asynchronous):
    async def later(x):
        for _ in range(x):
            await asyncio.sleep(0)
        return x * 2

    def now(x):
        return x * 2

    outcomes = run_calls(later if asynchronous else now, items, concurrency=concurrency)
    assert values(outcomes) == [x * 2 for x in items]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_more_calls_in_flight_than_allowed_and_as_many_as_allowed(asynchronous):
    """A barrier of 4 opens only when 4 calls are in flight; a fifth would be counted."""
    barrier = threading.Barrier(4, timeout=WAIT)
    lock = threading.Lock()
    now, most = 0, 0
    gate = {"count": 0, "event": None}

    def enter():
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)

    def leave():
        nonlocal now
        with lock:
            now -= 1

    def plain(x):
        enter()
        barrier.wait()
        leave()
        return x

    async def coroutine(x):
        enter()
        if gate["event"] is None or gate["event"].is_set():
            gate["event"] = asyncio.Event()
        gate["count"] += 1
        if gate["count"] % 4 == 0:
            gate["event"].set()
        await gate["event"].wait()
        leave()
        return x

    function = coroutine if asynchronous else plain
    assert values(run_calls(function, range(16), concurrency=4, stop_after=4)) == list(range(16))
    assert most == 4


def test_a_plain_call_that_overstays_is_a_timeout_and_the_others_are_graded(release):
    def sometimes(x):
        if x % 10 == 3:
            hang(release)
        return x

    kinds = Counter(o.kind for o in run_calls(sometimes, range(40), deadline=0.1))
    assert kinds == {"timeout": 4, "value": 36}


def test_a_coroutine_that_overstays_is_cancelled():
    ended = []

    async def sometimes(x):
        try:
            if x == 3:
                await asyncio.sleep(WAIT)
        except asyncio.CancelledError:
            ended.append(x)
            raise
        return x

    outcomes = list(run_calls(sometimes, range(8), deadline=0.1))
    assert [o.kind for o in outcomes] == ["value"] * 3 + ["timeout"] + ["value"] * 4
    assert ended == [3]


def test_a_coroutine_that_blocks_its_loop_costs_the_calls_beside_it_and_no_more(release):
    async def blocks(x):
        if x == 9:
            hang(release)  # not awaited: the loop stands still
        await asyncio.sleep(0.001)
        return x

    outcomes = list(run_calls(blocks, range(40), deadline=0.1, concurrency=4))
    kinds = [o.kind for o in outcomes]
    assert kinds[9] == "timeout"
    assert 1 <= kinds.count("timeout") <= 4
    assert kinds.count("value") == 40 - kinds.count("timeout")


def test_a_coroutine_that_swallows_its_cancellation_is_given_up():
    stop = []

    async def stubborn(x):
        while x == 3 and not stop:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return x

    outcomes = list(run_calls(stubborn, range(8), deadline=0.05))
    stop.append(True)
    assert [o.kind for o in outcomes].count("timeout") == 1
    assert outcomes[3].kind == "timeout"


def test_a_late_call_that_came_back_before_the_watch_is_still_a_timeout():
    """The verdict must not depend on when the watch looked."""

    def slow(_):
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            pass

    assert [o.kind for o in run_calls(slow, range(2), deadline=0.01)] == ["timeout", "timeout"]


@pytest.mark.parametrize("raised", [ValueError("no"), KeyError(1), SystemExit(3), TimeoutError("inner")])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_is_raised_becomes_an_outcome(raised, asynchronous):
    def plain(x):
        if x == 1:
            raise raised
        return x

    async def coroutine(x):
        return plain(x)

    outcomes = list(run_calls(coroutine if asynchronous else plain, range(4)))
    assert [o.kind for o in outcomes] == ["value", "error", "value", "value"]
    assert outcomes[1].error is raised


def test_a_plain_function_that_returns_an_awaitable_is_awaited_within_the_deadline():
    async def later(x):
        if x == 2:
            await asyncio.sleep(WAIT)
        return x + 1

    outcomes = list(run_calls(lambda x: later(x), range(4), deadline=0.1))
    assert [o.kind for o in outcomes] == ["value", "value", "timeout", "value"]
    assert values(outcomes)[:2] == [1, 2]


def test_stops_when_every_one_of_the_first_calls_fails_and_starts_no_more():
    calls = []

    def fails(x):
        calls.append(x)
        raise RuntimeError("401")

    with pytest.raises(AllFailed) as stopped:
        list(run_calls(fails, range(50), concurrency=16, stop_after=8))
    assert len(calls) == 8
    assert len(stopped.value.outcomes) == 8


def test_asks_for_no_more_than_the_first_before_one_has_worked():
    """50 rows, every request refused, 16 in flight: at most 16 requests leave."""
    calls = []

    async def refused(x):
        calls.append(x)
        await asyncio.sleep(0.001)
        raise PermissionError("401")

    with pytest.raises(AllFailed):
        list(run_calls(refused, range(50), concurrency=16, stop_after=16))
    assert len(calls) <= 16


def test_one_success_among_the_first_opens_the_rest():
    def mostly(x):
        if x < 7:
            raise RuntimeError("cold")
        return x

    kinds = [o.kind for o in run_calls(mostly, range(20), stop_after=8)]
    assert kinds == ["error"] * 7 + ["value"] * 13


def test_few_rows_that_all_fail_are_outcomes_not_an_error():
    def fails(_):
        raise RuntimeError("no")

    assert [o.kind for o in run_calls(fails, range(8), stop_after=8)] == ["error"] * 8
    assert [o.kind for o in run_calls(fails, range(9), stop_after=None)] == ["error"] * 9


def test_abandons_only_so_many_and_says_which_were_not_called(release):
    def hangs(x):
        return x if x < 4 else hang(release)

    outcomes = list(run_calls(hangs, range(100), deadline=0.05, max_abandoned=6, concurrency=2))
    kinds = Counter(o.kind for o in outcomes)
    assert len(outcomes) == 100
    assert kinds["value"] == 4
    assert 6 <= kinds["timeout"] <= 8
    assert kinds["skipped"] == 96 - kinds["timeout"]


def test_runs_inside_a_running_loop_and_twice_with_one_client():
    """A client bound to the first loop works the second time: it is the same loop."""

    class Client:
        loop = None

        async def ask(self, x):
            loop = asyncio.get_running_loop()
            self.loop = self.loop or loop
            assert self.loop is loop
            return x

    client = Client()

    async def notebook():
        return values(run_calls(client.ask, range(8), concurrency=4))

    assert asyncio.run(notebook()) == list(range(8))
    assert values(run_calls(client.ask, range(8), concurrency=4)) == list(range(8))


def test_a_judge_that_runs_calls_itself_does_not_wait_for_its_own_loop():
    async def inner(x):
        return x

    async def outer(x):
        return sum(values(run_calls(inner, range(x))))

    assert values(run_calls(outer, range(5))) == [0, 0, 1, 3, 6]


def test_calls_nested_three_deep_through_loops_and_threads_end_and_leave_no_loop_behind():
    async def leaf(x):
        return x

    def middle(x):  # a plain call, in a worker thread, below a coroutine that blocks its loop
        return sum(values(run_calls(leaf, range(x))))

    async def top(x):
        return sum(values(run_calls(middle, range(x), concurrency=2)))

    assert values(run_calls(top, range(6), concurrency=3)) == [0, 0, 0, 1, 4, 10]
    loops = [thread for thread in threading.enumerate() if thread.name == "whileai-judge-loop"]
    assert values(run_calls(top, range(6))) == [0, 0, 0, 1, 4, 10]
    assert [thread for thread in threading.enumerate() if thread.name == "whileai-judge-loop"] == loops


def test_the_shared_loop_is_another_thread():
    loop = shared_loop()
    assert loop.is_running()
    assert loop is shared_loop()


def test_many_fast_rows_use_one_thread_and_no_hop_per_row():
    threads: Counter[int] = Counter()

    def fast(x):
        threads[threading.get_ident()] += 1
        return x

    n = 20_000
    assert sum(values(run_calls(fast, range(n)))) == n * (n - 1) // 2
    assert len(threads) < 64  # a pool that hops would still be few; what counts is that a thread takes many rows
    assert max(threads.values()) > 100


def test_dropping_the_iterator_stops_new_calls():
    calls = []
    outcomes = run_calls(lambda x: calls.append(x), range(100_000), stop_after=None)
    next(outcomes)
    outcomes.close()
    seen = len(calls)
    assert seen < 100_000


def test_is_async_sees_through_partials_and_objects():
    async def judge(row, scale):
        return scale

    class Callable:
        async def __call__(self, row):
            return 1

    assert is_async(functools.partial(judge, scale=1))
    assert is_async(Callable())
    assert not is_async(lambda row: 1)


def test_the_process_ends_although_calls_still_hang():
    code = (
        "import threading, asyncio\n"
        "from whileai_judge.engine import run_calls\n"
        "async def a(x): await asyncio.sleep(600 if x == 1 else 0)\n"
        "def f(x): threading.Event().wait(600 if x == 1 else 0)\n"
        "print([o.kind for o in run_calls(f, range(2), deadline=0.05)])\n"
        "print([o.kind for o in run_calls(a, range(2), deadline=0.05)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.split("\n")[:2] == ["['value', 'timeout']"] * 2
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_ends_a_run_at_once_although_calls_hang():
    code = (
        "import asyncio, threading\n"
        "from whileai_judge import grade\n"
        "async def judge(row):\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "def plain(row):\n"
        "    print('ready', flush=True)\n"
        "    threading.Event().wait(600)\n"
        "rows = [{'task_id': 't', 'final_text': 'x'}]\n"
        "for one in (judge, plain):\n"
        "    try:\n"
        "        grade(rows, one)\n"
        "    except KeyboardInterrupt:\n"
        "        print('stopped', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(2):
        assert process.stdout.readline().strip() == b"ready"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().strip() == b"stopped"
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
