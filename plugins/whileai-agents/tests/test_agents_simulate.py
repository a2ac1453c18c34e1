"""Agents that were written elsewhere take part in `simulate`, faults included, as an agent in this process does.

The oracle: the same scripted model asked by the engine itself, which runs the tools. Every row must have the same
messages, faults, calls and changes in the world, however the agent was driven.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from whileai_agents import Proxy, Scripted
from whileai_agents.scripted import call
from whileai_kernel.messages import text_of
from whileai_kernel.tools import tool

pytestmark = pytest.mark.integration
simulate = pytest.importorskip("whileai_simulate").simulate

SYSTEM = "Help customers with orders. Cancel only after you have looked."


@tool(kind="read")
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order by id."""
    raise NotImplementedError


@tool(kind="write")
def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise NotImplementedError


def script(messages: Any, tools: Any) -> Any:
    """Look, then cancel when asked to, then say what came back."""
    ask = next(text_of(m["content"]) for m in messages if m["role"] == "user")
    results = [text_of(m["content"]) for m in messages if m["role"] == "tool"]
    found = re.search(r"[#A-Z]+[-_]?\d+[A-Z0-9-]*", ask)
    order = {"order_id": found.group(0) if found else "A-1"}
    if not results:
        return call("get_order", order, 0)
    if len(results) == 1 and "cancel" in ask.lower():
        return call("cancel_order", order, 1)
    return f"I looked: {' '.join(results)[:300]}"


def run(agent: Any, situations: int = 8, user: str = "none", deadline_s: float = 120.0) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the frameworks' own
        data = simulate(
            agent, tools=[get_order, cancel_order], system_prompt=SYSTEM, situations=situations, repeats=2, seed=5,
            progress=False, deadline_s=deadline_s, options={"give_up_after": 0, "user": user},
        )  # fmt: skip
    return list(data.rows)


COMPARED = (
    "task_id",
    "index",
    "messages",
    "final_text",
    "outcome",
    "faults_fired",
    "world_log",
    "usage",
    "finish_reason",
)


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: row.get(key) for key in COMPARED} for row in rows]


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    model = Scripted(script)

    async def engine(messages: Any, tools: Any, context: Any) -> Any:
        reply = await model.complete(messages, tools)
        usage = {**reply.usage, "requests": 1}
        return {"messages": [reply.message], "usage": usage, "finish_reason": reply.finish_reason}

    rows = run(engine)
    assert any(row["faults_fired"] for row in rows), "the study needs a fault"
    assert any(len(row["messages"]) > 5 for row in rows), "and a rollout with two calls"
    assert {row["outcome"] for row in rows} == {"completed"}
    return shown(rows)


PROGRAM = """
import json, os, sys, urllib.request

def post(url, body):
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())))

def rpc(method, **params):
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(os.environ["WHILEAI_MCP_URL"], asked)["result"]

messages = json.load(sys.stdin)["messages"]
tools = []
for t in rpc("tools/list")["tools"]:
    function = {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]}
    tools.append({"type": "function", "function": function})
while True:
    body = {"model": "any", "messages": messages, "tools": tools}
    message = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for c in message["tool_calls"]:
        made = rpc("tools/call", name=c["function"]["name"], arguments=json.loads(c["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": c["id"], "content": made["content"][0]["text"]})
print(message["content"])
"""


def test_an_unmodified_program(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(PROGRAM, encoding="utf-8")
    out = tmp_path / "recorded.jsonl"
    with Proxy(Scripted(script), out) as proxy:
        rows = run(proxy.agent([sys.executable, str(tmp_path / "my_agent.py")]))
        recorded = proxy.rows()
    assert shown(rows) == expected
    assert {row["policy"]["name"] for row in rows} == {"my_agent.py"}
    # The proxy's own rows are the same rollouts.
    by_place = {(row["task_id"], row["index"]): row for row in recorded}
    assert len(by_place) == len(recorded) == len(rows)
    for row in rows:
        other = by_place[row["task_id"], row["index"]]
        for key in ("messages", "usage", "final_text", "faults_fired", "axes", "prompt", "system_prompt", "tools"):
            assert other[key] == row[key], key
    assert "privileged" not in out.read_text(encoding="utf-8")
    with Proxy(Scripted(script)) as proxy:
        run(proxy.agent([sys.executable, str(tmp_path / "my_agent.py")]))
        again = {row["rollout_id"] for row in proxy.rows()}
    assert again == {row["rollout_id"] for row in recorded}, "the same run gives the same ids"


def openai_agents() -> Any:
    return pytest.importorskip("agents").Agent(name="helper")


def pydantic_ai() -> Any:
    return pytest.importorskip("pydantic_ai").Agent(name="helper")


def langgraph(messages: Any, rollout: Any) -> Any:
    graph = pytest.importorskip("langgraph.graph")
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    langchain_openai = pytest.importorskip("langchain_openai")
    tools = pytest.importorskip("langchain_core.tools")

    def refuse(order_id: str) -> str:
        raise RuntimeError("the graph's own function must not run")

    made = [
        tools.StructuredTool(name=t.name, description=t.description, args_schema=t.parameters, func=refuse)
        for t in (get_order, cancel_order)
    ]
    model = langchain_openai.ChatOpenAI(model="m", base_url=rollout.base_url, api_key="-").bind_tools(made)

    async def act(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    built = graph.StateGraph(graph.MessagesState)
    built.add_node("act", act)
    built.add_node("tools", prebuilt.ToolNode(made))
    built.add_edge(graph.START, "act")
    built.add_conditional_edges("act", prebuilt.tools_condition)
    built.add_edge("tools", "act")
    return built.compile()


@pytest.mark.parametrize("framework", ["openai-agents", "openai-agents responses", "pydantic-ai", "langgraph"])
def test_agents_of_frameworks(framework: str, expected: list[dict[str, Any]]) -> None:
    with Proxy(Scripted(script)) as proxy:
        if framework == "langgraph":
            pytest.importorskip("langgraph")
            pytest.importorskip("langchain_openai")
            agent = proxy.agent(langgraph)
        elif framework == "pydantic-ai":
            agent = proxy.agent(pydantic_ai())
        else:
            agent = proxy.agent(openai_agents(), responses="responses" in framework)
        rows = run(agent)
    assert shown(rows) == expected


@pytest.mark.parametrize("framework", ["openai-agents", "pydantic-ai", "langgraph"])
def test_objects_with_a_model_of_their_own_are_read_as_exactly(framework: str, expected: list[dict[str, Any]]) -> None:
    """Nothing of ours stands between: what the framework itself reports becomes the row."""
    with Proxy(Scripted(script)) as server:  # only the model's server here
        if framework == "openai-agents":
            sdk, openai = pytest.importorskip("agents"), pytest.importorskip("openai")
            client = openai.AsyncOpenAI(base_url=server.base_url, api_key="-")
            agent = sdk.Agent(name="helper", model=sdk.OpenAIChatCompletionsModel("m", client))
        elif framework == "pydantic-ai":
            library = pytest.importorskip("pydantic_ai")
            models = pytest.importorskip("pydantic_ai.models.openai")
            providers = pytest.importorskip("pydantic_ai.providers.openai")
            provider = providers.OpenAIProvider(base_url=server.base_url, api_key="-")
            agent = library.Agent(models.OpenAIChatModel("m", provider=provider), name="helper")
        else:
            pytest.importorskip("langgraph")
            pytest.importorskip("langchain_openai")
            agent = langgraph([], server)
        rows = run(agent)
    for row in rows:
        assert row["outcome"] == "completed", row.get("error")
    assert shown(rows) == expected


def test_a_framework_with_a_model_of_its_own_needs_no_proxy() -> None:
    library = pytest.importorskip("pydantic_ai")
    test_model = pytest.importorskip("pydantic_ai.models.test")
    rows = run(library.Agent(test_model.TestModel(), name="offline", instructions="Be brief."))
    for row in rows:
        assert row["outcome"] == "completed", row.get("error")
        assert row["policy"] == {"name": "offline", "framework": "pydantic-ai"}
        assert [c["tool"] for c in row["world_log"]["calls"]] == ["get_order", "cancel_order"]
        assert row["usage"]["requests"] == 2


def test_own_tools_stay_and_named_ones_are_the_worlds() -> None:
    library = pytest.importorskip("pydantic_ai")
    called: list[str] = []

    def get_order(order_id: str) -> str:
        """Own function behind the world's name."""
        raise AssertionError

    def today() -> str:
        """Own tool."""
        called.append("today")
        return "Monday"

    def wants_both(messages: Any, tools: Any) -> Any:
        names = sorted(t["function"]["name"] for t in tools)
        assert names == ["get_order", "today"]
        results = [m for m in messages if m["role"] == "tool"]
        return [call("today", {}, 0), call("get_order", {"order_id": "A-1"}, 1), "done"][len(results)]

    with Proxy(Scripted(wants_both)) as proxy:
        rows = run(proxy.agent(library.Agent(name="h", tools=[get_order, today])))
    assert {row["outcome"] for row in rows} == {"completed"}, rows[0].get("error")
    assert len(called) == len(rows)
    assert {c["tool"] for row in rows for c in row["world_log"]["calls"]} == {"get_order"}


def test_the_same_for_the_openai_agents_sdk_and_its_handoffs() -> None:
    sdk = pytest.importorskip("agents")

    @sdk.function_tool
    def get_order(order_id: str) -> str:
        """Own function behind the world's name."""
        raise AssertionError

    helper = sdk.Agent(name="specialist", instructions="Look.", tools=[get_order])
    front = sdk.Agent(name="front", instructions="Hand over.", handoffs=[helper])

    def hands_over(messages: Any, tools: Any) -> Any:
        names = [t["function"]["name"] for t in tools]
        results = [m for m in messages if m["role"] == "tool"]
        if not results:
            return call(next(n for n in names if n.startswith("transfer")), {}, 0)
        if len(results) == 1:
            assert "get_order" in names
            return call("get_order", {"order_id": "A-1"}, 1)
        return "done"

    with Proxy(Scripted(hands_over)) as proxy:
        rows = run(proxy.agent(front))
    assert {(row["outcome"], row["final_text"]) for row in rows} == {("completed", "done")}, rows[0].get("error")
    assert {c["tool"] for row in rows for c in row["world_log"]["calls"]} == {"get_order"}
    assert helper.tools[0].on_invoke_tool is get_order.on_invoke_tool, "the object is never changed"


def test_structured_output_is_the_final_text() -> None:
    library = pytest.importorskip("pydantic_ai")
    pydantic = pytest.importorskip("pydantic")
    Answer = pydantic.create_model("Answer", status=(str, ...))

    def answers(messages: Any, tools: Any) -> Any:
        return call("final_result", {"status": "shipped"})

    with Proxy(Scripted(answers)) as proxy:
        rows = run(proxy.agent(library.Agent(name="h", output_type=Answer)))
    assert {row["outcome"] for row in rows} == {"completed"}, rows[0].get("error")
    assert {row["final_text"] for row in rows} == {'{"status": "shipped"}'}


def failing(messages: Any, tools: Any) -> Any:
    raise RuntimeError("the model is down")


@pytest.mark.parametrize("framework", ["openai-agents", "pydantic-ai", "langgraph", "program"])
def test_a_failure_of_a_framework_is_a_failed_rollout_with_its_reason(framework: str, tmp_path: Path) -> None:
    with Proxy(Scripted(failing)) as proxy:
        if framework == "program":
            (tmp_path / "my_agent.py").write_text(PROGRAM, encoding="utf-8")
            agent = proxy.agent([sys.executable, str(tmp_path / "my_agent.py")])
        elif framework == "langgraph":
            pytest.importorskip("langgraph")
            pytest.importorskip("langchain_openai")
            agent = proxy.agent(langgraph)
        else:
            agent = proxy.agent(openai_agents() if framework == "openai-agents" else pydantic_ai())
        rows = run(agent)
        recorded = proxy.rows()
    assert len(rows) == 16
    for row in rows:
        assert (row["outcome"], row["final_text"]) == ("failed", None)
        assert "500" in row["error"]["message"]
    assert len(recorded) == 16
    assert {row["error"]["message"] for row in recorded} == {"RuntimeError: the model is down"}
    assert all(row["conversation"]["requests"] == 1 for row in recorded) or framework == "langgraph"


def test_a_framework_that_never_ends_is_stopped() -> None:
    with Proxy(Scripted(lambda messages, tools: call("get_order", {"order_id": "A-1"}, len(messages)))) as proxy:
        rows = run(proxy.agent(openai_agents(), max_turns=3))
    assert {row["error"]["type"] for row in rows} == {"MaxTurnsExceeded"}


def test_a_program_without_a_proxy_and_one_that_hangs(tmp_path: Path) -> None:
    path = tmp_path / "my_agent.py"
    path.write_text(
        "import json, sys, threading\n"
        "asked = json.load(sys.stdin)\n"
        "if asked['rollout']['index'] == 1:\n"
        "    threading.Event().wait()\n"
        "print(json.dumps({'final_text': asked['task']['prompt']}))\n",
        encoding="utf-8",
    )
    rows = run(f"exec:{sys.executable} {path}", situations=2, deadline_s=4.0)
    assert [row["outcome"] for row in rows] == ["completed", "failed"] * 2
    assert [row["ended_by"] for row in rows] == ["agent", "deadline"] * 2
    assert rows[0]["final_text"] == rows[0]["prompt"]


def talks(messages: Any, tools: Any) -> Any:
    """Ask back once, then look, then report with a question, so that the user goes on."""
    results = [text_of(m["content"]) for m in messages if m["role"] == "tool"]
    if sum(m["role"] == "user" for m in messages) == 1:
        return "Could you confirm the order id?"
    return f"I looked: {results[-1][:100]} Anything else?" if results else call("get_order", {"order_id": "A-1"})


@pytest.mark.parametrize("framework", ["program", "openai-agents", "pydantic-ai", "langgraph"])
def test_conversations_of_several_turns(framework: str, tmp_path: Path) -> None:
    model = Scripted(talks)

    async def engine(messages: Any, tools: Any, context: Any) -> Any:
        reply = await model.complete(messages, tools)
        usage = {**reply.usage, "requests": 1}
        return {"messages": [reply.message], "usage": usage, "finish_reason": reply.finish_reason}

    with Proxy(model) as proxy:
        if framework == "program":
            (tmp_path / "my_agent.py").write_text(PROGRAM, encoding="utf-8")
            agent = proxy.agent([sys.executable, str(tmp_path / "my_agent.py")])
        elif framework == "langgraph":
            pytest.importorskip("langgraph")
            pytest.importorskip("langchain_openai")
            agent = proxy.agent(langgraph)
        else:
            agent = proxy.agent(openai_agents() if framework == "openai-agents" else pydantic_ai())
        rows = run(agent, situations=3, user="scripted")
        recorded = proxy.rows()
    expected = run(engine, situations=3, user="scripted")
    assert min(len(row["messages"]) for row in expected) > 7
    assert shown(rows) == shown(expected)
    assert len(recorded) == len(rows), "all turns of a rollout are one conversation"


def test_a_helper_agent_is_a_row_beside_the_rollout() -> None:
    sdk = pytest.importorskip("agents")
    helper = sdk.Agent(name="helper", instructions="You help.")
    front = sdk.Agent(name="front", instructions="You lead.", tools=[helper.as_tool("ask_helper", "Ask the helper.")])

    def both(messages: Any, tools: Any) -> Any:
        if messages[0]["content"] == "You help.":
            return "found it"
        results = [m for m in messages if m["role"] == "tool"]
        return f"helper: {results[-1]['content']}" if results else call("ask_helper", {"input": "look"})

    with Proxy(Scripted(both)) as proxy:
        rows = run(proxy.agent(front), situations=2)
        recorded = proxy.rows()
    assert {(row["outcome"], row["final_text"]) for row in rows} == {("completed", "helper: found it")}
    assert {row["usage"]["requests"] for row in rows} == {3}, "the helper's requests are paid for too"
    helpers = [row for row in recorded if row["system_prompt"] == "You help."]
    leaders = {row["rollout_id"] for row in recorded if row["system_prompt"] == "You lead."}
    assert (len(helpers), len(leaders)) == (4, 4)
    assert {row["conversation"].get("beside") for row in helpers} | {
        row["conversation"].get("beside") for row in recorded if row["rollout_id"] in leaders
    } - {None}, "they are linked"
    assert all(row["task_id"] not in {r["task_id"] for r in rows} for row in helpers)


def test_inside_a_running_loop(expected: list[dict[str, Any]]) -> None:
    async def cell() -> Any:
        with Proxy(Scripted(script)) as proxy:
            return run(proxy.agent(drive))

    assert len(asyncio.run(cell())) == 16


def drive(messages: Any, rollout: Any) -> str:
    import httpx

    reply = httpx.post(f"{rollout.base_url}/chat/completions", json={"messages": messages}).json()
    return f"done {json.dumps(reply)[:20]}"
