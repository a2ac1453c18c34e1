"""Speed of the simulator: rollouts per second, growth with size, memory, and idle time of the engine.

    python tests/bench/simulate_speed.py [--quick]

Prints figures and asserts nothing: a clock is not a test. `growth` is the time per rollout at a size, relative to the
smallest size; 1.0 is linear. The machine line lets figures from two machines be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from whileai_simulate import seeded_agent, simulate
from whileai_simulate.covering import covering_array
from whileai_simulate.setting import make_setting

REPEATS = 4


def make_tools(count: int) -> list[dict[str, Any]]:
    """Return tools of a made-up domain: per noun one reading and four writing tools."""
    nouns = ("order", "ticket", "invoice", "shipment", "device", "lease", "policy", "claim", "card", "loan")
    verbs = (("get", "read"), ("cancel", "write"), ("update", "write"), ("close", "write"), ("renew", "write"))
    out = []
    for noun in nouns:
        for verb, kind in verbs:
            look = f"Such as '{noun[0].upper()}-10001'."
            properties: dict[str, Any] = {f"{noun}_id": {"type": "string", "description": look}}
            if verb == "update":
                properties["note"] = {"type": "string"}
            schema = {"type": "object", "properties": properties, "required": list(properties)}
            out.append(
                {"name": f"{verb}_{noun}", "kind": kind, "description": f"{verb} a {noun}", "parameters": schema}
            )
    return out[:count]


def clock(rollouts: int, tools: list[dict[str, Any]], repeats: int = REPEATS, **call: Any) -> tuple[float, float]:
    """Return wall and processor seconds of one run."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    data = simulate(
        seeded_agent(), tools=tools, situations=max(1, rollouts // repeats), repeats=repeats, progress=False, **call
    )
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert data.report.rows == rollouts
    return wall, cpu


def speed(sizes: list[int]) -> None:
    """Print rollouts per second by size, number of tools and rollouts per situation."""
    sys.stdout.write("seeded agent, rows kept in memory; growth is the time per rollout, relative to 1,000 rollouts\n")
    sys.stdout.write("  repeats  tools  rollouts   wall s    cpu s  rollouts/s (wall)  rollouts/s (cpu)  growth\n")
    for repeats, chosen in ((REPEATS, sizes), (1, [sizes[2]]), (8, sizes[2:])):
        for count in (1, 20, 50):
            tools = make_tools(count)
            clock(8, tools)
            first = 0.0
            for size in chosen:
                wall, cpu = clock(size, tools, repeats)
                per = cpu / size
                first = first or (per if size >= 1000 else 0.0)
                growth = f"{per / first:6.2f}" if first else "     -"
                sys.stdout.write(
                    f"  {repeats:7}  {count:5}  {size:8}  {wall:7.2f}  {cpu:7.2f}  {size / wall:17.0f}  "
                    f"{size / cpu:16.0f}  {growth}\n"
                )


MEMORY = """
import re, resource, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from simulate_speed import make_tools, clock
clock({size}, make_tools(20), **({{}} if {out!r} == "" else dict(output={out!r}, options={{"collect": False}})))
status = Path("/proc/self/status")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if status.exists():  # ru_maxrss of a child starts at that of its parent
    peak = int(re.search(r"VmHWM:\\s*(\\d+)", status.read_text())[1])
print(peak // 1024)
"""


def memory(size: int) -> None:
    """Print the largest resident memory with rows kept and with rows streamed to a file."""
    with tempfile.TemporaryDirectory() as folder:
        for label, rollouts, out in (
            ("kept", size, ""),
            ("streamed", size, f"{folder}/a.jsonl"),
            ("streamed, a tenth", size // 10 // REPEATS * REPEATS, f"{folder}/b.jsonl"),
        ):
            code = MEMORY.format(here=str(Path(__file__).parent), size=rollouts, out=out)
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
            )
            sys.stdout.write(f"  {label:18} {rollouts:8} rollouts: {done.stdout.strip()} MiB\n")


def streamed(sizes: list[int]) -> None:
    """Print what the interpreter allocates while rows stream to a file: the peak, and what each task adds to it.

    The near-duplicate filter looks back on a window of asks, which the second size fills: what a task adds beyond
    that is what stays of it.
    """
    before = (0, 0)
    with tempfile.TemporaryDirectory() as folder:
        for tasks in [8, *sizes]:
            gc.collect()
            tracemalloc.start()
            out = f"{folder}/{tasks}.jsonl"
            data = simulate(
                seeded_agent(), tools=make_tools(20), situations=tasks, repeats=1, progress=False, output=out,
                options={"collect": False},
            )  # fmt: skip
            held, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert data.report.rows == tasks
            if tasks > 8:
                more = f", {(peak - before[1]) / (tasks - before[0]):.0f} bytes per further task" if before[0] else ""
                sys.stdout.write(
                    f"  {tasks:6} tasks: peak {peak / 2**20:.2f} MiB, at the end {held / 2**20:.2f} MiB{more}\n"
                )
                before = (tasks, peak)
            Path(out).unlink()


def waiting() -> None:
    """Print how close the engine comes to the ideal time for agents that only wait."""

    async def agent(message: str) -> str:
        await asyncio.sleep(0.05)
        return "ok"

    def blocking(message: str) -> str:
        time.sleep(0.05)
        return "ok"

    tools = make_tools(1)
    for label, chosen in (("async", agent), ("sync", blocking)):
        took = []
        for _ in range(9):
            gc.collect()
            begin = time.perf_counter()
            simulate(chosen, tools=tools, situations=256, repeats=1, concurrency=32, progress=False)
            took.append((time.perf_counter() - begin) / 0.4)
        sys.stdout.write(
            f"  {label:6} {min(took):.3f} x the ideal 0.4 s at best, {statistics.median(took):.3f} in the median of 9\n"
        )


def arrays() -> None:
    """Print how long the covering array of a large grid takes."""
    policy = "\n".join(f"- Agents must never do thing number {i} without asking." for i in range(100))
    begin = time.process_time()
    setting = make_setting(make_tools(50), policy)
    middle = time.process_time()
    array = covering_array(setting.axes.values, forbidden=setting.axes.forbidden)
    end = time.process_time()
    sizes = sorted((len(v) for v in setting.axes.values.values()), reverse=True)
    sys.stdout.write(
        f"  50 tools x 100 rules: {len(array.rows)} rows ({len(array.rows) / (sizes[0] * sizes[1]):.3f} x the largest "
        f"product), {array.covered}/{array.planned} pairs, {end - middle:.2f} s (reading {middle - begin:.2f} s)\n"
    )


def distinct() -> None:
    """Print how many of 10,000 situations have an ask of their own."""
    for count in (1, 50):
        data = simulate(seeded_agent(), tools=make_tools(count), situations=10_000, repeats=1, progress=False)
        asks = len({row["prompt"] for row in data})
        sys.stdout.write(f"  {count:2} tools: {asks} distinct asks of 10000, {json.dumps(dict(data.report.wording))}\n")


def machine() -> None:
    """Print how fast this machine is right now, so that figures can be compared."""
    begin = time.process_time()
    total = 0
    for i in range(5_000_000):
        total += i
    spent = time.process_time() - begin
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    sys.stdout.write(f"machine: {spent / 5e6 * 1e9:.0f} ns per loop of one addition, load {load:.1f}\n")


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes up to 10,000 and no memory runs")
    quick = parser.parse_args().quick
    machine()
    speed([64, 1000, 10_000] if quick else [64, 1000, 10_000, 100_000])
    sys.stdout.write("covering array\n")
    arrays()
    sys.stdout.write("agents that wait 50 ms, 256 rollouts, concurrency 32\n")
    waiting()
    sys.stdout.write("situations\n")
    distinct()
    if not quick:
        sys.stdout.write("resident memory, 20 tools\n")
        memory(40_000)
    sys.stdout.write("memory that a run which streams allocates, 20 tools\n")
    streamed([500, 5000] if quick else [500, 5000, 50_000])
    machine()


if __name__ == "__main__":
    main()
