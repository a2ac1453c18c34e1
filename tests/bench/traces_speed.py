"""How fast recorded runs are read: the public tau-bench file, and chat JSON Lines of many short conversations.

python tests/bench/traces_speed.py [--rows 200000] [--file PATH]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

NAME = "tau_bench_airline_gpt4o.json"


def public_file() -> Path | None:
    places = [Path(os.environ["WHILEAI_SHARED"])] if os.environ.get("WHILEAI_SHARED") else []
    places += [parent / "shared" for parent in Path(__file__).resolve().parents]
    return next((p / "data" / NAME for p in places if (p / "data" / NAME).is_file()), None)


def main() -> None:
    from whileai_traces import iter_rows, read

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--file", type=Path, default=public_file())
    args = parser.parse_args()
    if args.file is None:
        print(f"{NAME} is not here; set WHILEAI_SHARED or pass --file")
    else:
        times, cpu = [], []
        for _ in range(6):
            start, used = time.perf_counter(), time.process_time()
            data = read(args.file)
            times.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
        best = f"best {min(times[1:]):.2f} s (CPU {min(cpu[1:]):.2f} s)"
        print(f"{args.file.name}: {len(data)} rows, first {times[0]:.2f} s (CPU {cpu[0]:.2f} s), then {best} of 5")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.jsonl"
        chat = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
        line = json.dumps({"messages": chat}) + "\n"
        with path.open("w", encoding="utf-8", newline="\n") as out:
            for _ in range(args.rows):
                out.write(line)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start, used = time.perf_counter(), time.process_time()
        count = sum(1 for _ in iter_rows(path, "chat"))
        seconds, used = time.perf_counter() - start, time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        speed = f"{count / used:,.0f} rows per CPU second"
        print(f"chat JSONL: {count:,} rows in {seconds:.1f} s, {speed}, peak +{peak - before:.0f} MB")


if __name__ == "__main__":
    main()
