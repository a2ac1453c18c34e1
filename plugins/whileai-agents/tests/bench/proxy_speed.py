"""What the recording proxy costs per request, beside the same model called in this process.

Run: ``python plugins/whileai-agents/tests/bench/proxy_speed.py [REQUESTS]``. Growth is shown twice: over the number of
conversations, and over the length of one conversation, whose whole text each request carries.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from whileai_agents import Proxy, Scripted

TOOL = {
    "type": "function",
    "function": {"name": "get_order", "description": "Look up.", "parameters": {"type": "object", "properties": {}}},
}


def answer(messages: Any, tools: Any) -> str:
    return "It has shipped and will arrive on Monday."


def in_process(n: int) -> tuple[float, float]:
    model = Scripted(answer)

    async def main() -> None:
        for i in range(n):
            await model.complete([{"role": "user", "content": f"Where is order {i}?"}], [TOOL])

    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(main())
    return time.perf_counter() - wall, time.process_time() - cpu


def through_proxy(n: int, turns: int, out: Path | None) -> tuple[float, float]:
    """Ask `n` times, in conversations of `turns` turns, over one kept connection."""
    with Proxy(Scripted(answer), out) as proxy:
        link = http.client.HTTPConnection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        wall, cpu = time.perf_counter(), time.process_time()
        messages: list[Any] = []
        for i in range(n):
            if i % turns == 0:
                messages = []
            messages.append({"role": "user", "content": f"Where is order {i}?"})
            link.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "tools": [TOOL]}))
            messages.append(json.loads(link.getresponse().read())["choices"][0]["message"])
        spent = time.perf_counter() - wall, time.process_time() - cpu
        link.close()
        assert len(proxy.rows()) == -(-n // turns)
        return spent


def main(n: int) -> None:
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; milliseconds per request, client included")
    print(f"{'':34}{'requests':>10}{'wall':>9}{'CPU':>9}")

    def line(name: str, count: int, spent: tuple[float, float]) -> None:
        print(f"{name:34}{count:>10}{1000 * spent[0] / count:>9.3f}{1000 * spent[1] / count:>9.3f}")

    line("the model in this process", n, in_process(n))
    with tempfile.TemporaryDirectory() as folder:
        for size in (n // 100, n // 10, n):
            line("proxy, in memory", size, through_proxy(size, 1, None))
        for size in (n // 100, n // 10, n):
            line("proxy, to a file", size, through_proxy(size, 1, Path(folder) / f"{size}.jsonl"))
        for turns in (1, 10, 100):
            spent = through_proxy(n // 10, turns, Path(folder) / f"turns{turns}.jsonl")
            line(f"proxy, to a file, {turns} turns each", n // 10, spent)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
