"""A run of the OpenAI Agents SDK against a scripted server on loopback: what its own trace export holds is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

agents = pytest.importorskip("agents")

from whileai_kernel.messages import tool_calls  # noqa: E402
from whileai_kernel.testing import ModelServer, Request, completion_body  # noqa: E402
from whileai_traces import read  # noqa: E402

pytestmark = pytest.mark.integration


def answer(request: Request) -> dict[str, Any]:
    """Two calls at once for a question, then an answer with the first result."""
    results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
    if results:
        return completion_body(f"It is {results[0]}.", model="m", usage=(3, 2))
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "add", "arguments": json.dumps({"a": 2, "b": n})}}
        for n in (2, 0)
    ]
    return completion_body({"content": None, "tool_calls": calls}, model="m", usage=(3, 2))


@pytest.fixture
def server() -> Iterator[str]:
    with ModelServer(answer) as running:
        yield running.url


def test_a_run_of_the_agents_sdk_is_one_conversation(tmp_path: Path, server: str) -> None:
    import openai
    from agents.tracing import TracingProcessor, set_trace_processors

    exported: list[Any] = []

    class Keep(TracingProcessor):
        def on_trace_start(self, trace: Any) -> None:
            exported.append(trace.export())

        def on_trace_end(self, trace: Any) -> None: ...

        def on_span_start(self, span: Any) -> None: ...

        def on_span_end(self, span: Any) -> None:
            exported.append(span.export())

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    @agents.function_tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def run() -> str:
        async with openai.AsyncOpenAI(base_url=server, api_key="none") as client:
            model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
            agent = agents.Agent(name="Adder", instructions="Be brief.", tools=[add], model=model)
            with agents.trace("sums"):
                done = await agents.Runner.run(agent, "2+2?")
        return str(done.final_output)

    set_trace_processors([Keep()])
    try:
        assert asyncio.run(run()) == "It is 4."
    finally:
        set_trace_processors([])
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(e) + "\n" for e in exported), encoding="utf-8")
    (row,) = data = read(path)
    assert data.provenance["formats"] == {"traces/agents_sdk": 1}
    assert not data.warnings
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert [(c.id, c.arguments, c.result) for c in tool_calls(row["messages"])] == [
        ("c2", {"a": 2, "b": 2}, "4"),
        ("c0", {"a": 2, "b": 0}, "2"),
    ]
    assert (row["final_text"], row["policy"]) == ("It is 4.", {"model": "m"})
