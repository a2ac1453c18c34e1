"""One agent, written once in each framework and once as a plain program, gives the same row through the proxy.

The rule by which rows are compared: `rollout_id` and the rollout's name are left out, and call ids are numbered in the
order in which they appear. Nothing else is changed: messages, tools, usage, sampling, finish reason, texts are equal.
"""

from __future__ import annotations

import asyncio
import copy
import json
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from whileai_agents import Proxy, Rollout, Scripted
from whileai_kernel.protocols import Completion

pytestmark = pytest.mark.integration
SYSTEM = "Help customers with orders."
ASK = "Where are orders A-1 and A-2?"
SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string", "description": "Id of the order."}},
    "required": ["order_id"],
    "additionalProperties": False,  # pydantic-ai writes it into every schema that it can
}
TOOL = {
    "type": "function",
    "function": {"name": "get_order", "description": "Look up an order by id.", "parameters": SCHEMA},
}


def script(messages: Any, tools: Any) -> Completion:
    """Two calls at once, then one that fails, then an answer; arguments are written in an odd way on purpose."""
    results = [m for m in messages if m["role"] == "tool"]
    asked = {0: ["A-1", "A-2"], 2: ["A-3"]}.get(len(results), [])
    calls = []
    for n, order in enumerate(asked):
        function = {"name": "get_order", "arguments": f'{{"order_id":"{order}" }}'}
        calls.append({"id": f"c{len(results)}{n}", "type": "function", "function": function})
    text = "" if calls else " and ".join(m["content"] for m in results)
    message: dict[str, Any] = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": 10 * (len(results) + 1), "completion_tokens": 3}
    return Completion(message, "tool_calls" if calls else "stop", "scripted", usage)


def get_order(order_id: str) -> str:
    return json.dumps({"error": "no such order"} if order_id == "A-3" else {"order_id": order_id, "status": "shipped"})


# -- the agent, five times ------------------------------------------------------------------------------------


def plain_http(rollout: Rollout) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
    while True:
        body = json.dumps({"model": "m", "messages": messages, "tools": [TOOL]}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{rollout.base_url}/chat/completions", body)) as reply:
            message = json.load(reply)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            result = get_order(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def plain_http_streaming(rollout: Rollout) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]
    while True:
        body = json.dumps({"model": "m", "messages": messages, "tools": [TOOL], "stream": True}).encode()
        text, calls = "", {}
        with urllib.request.urlopen(urllib.request.Request(f"{rollout.base_url}/chat/completions", body)) as reply:
            for line in reply:
                if line.startswith(b"data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    text += delta.get("content") or ""
                    calls.update({part["index"]: part for part in delta.get("tool_calls") or ()})
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [{k: v for k, v in calls[n].items() if k != "index"} for n in sorted(calls)]
        messages.append(message)
        if not calls:
            return
        for call in message["tool_calls"]:
            result = get_order(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def openai_agents(rollout: Rollout, responses: bool = False, stream: bool = False) -> None:
    sdk = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")

    async def invoke(_: Any, arguments: str) -> str:
        return get_order(**json.loads(arguments))

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=rollout.base_url, api_key="-") as client:
            model_class = sdk.OpenAIResponsesModel if responses else sdk.OpenAIChatCompletionsModel
            function = TOOL["function"]
            tool = sdk.FunctionTool(function["name"], function["description"], SCHEMA, invoke, strict_json_schema=False)  # type: ignore[index]
            agent = sdk.Agent(name="helper", instructions=SYSTEM, tools=[tool], model=model_class("m", client))
            config = sdk.RunConfig(tracing_disabled=True)
            if stream:
                result = sdk.Runner.run_streamed(agent, ASK, run_config=config)
                async for _ in result.stream_events():
                    continue
            else:
                await sdk.Runner.run(agent, ASK, run_config=config)

    asyncio.run(main())


def langgraph(rollout: Rollout) -> None:
    graph = pytest.importorskip("langgraph.graph")
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    langchain_openai = pytest.importorskip("langchain_openai")
    tools = pytest.importorskip("langchain_core.tools")
    function: Any = TOOL["function"]
    tool = tools.StructuredTool(
        name=function["name"], description=function["description"], args_schema=SCHEMA, func=get_order
    )
    model = langchain_openai.ChatOpenAI(model="m", base_url=rollout.base_url, api_key="-").bind_tools([tool])

    def act(state: Any) -> Any:
        return {"messages": [model.invoke([{"role": "system", "content": SYSTEM}, *state["messages"]])]}

    built = graph.StateGraph(graph.MessagesState)
    built.add_node("act", act)
    built.add_node("tools", prebuilt.ToolNode([tool]))
    built.add_edge(graph.START, "act")
    built.add_conditional_edges("act", prebuilt.tools_condition)
    built.add_edge("tools", "act")
    built.compile().invoke({"messages": [{"role": "user", "content": ASK}]})


def pydantic_ai(rollout: Rollout) -> None:
    library = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    function: Any = TOOL["function"]
    tool = library.Tool.from_schema(get_order, function["name"], function["description"], SCHEMA)
    model = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(base_url=rollout.base_url, api_key="-"))
    library.Agent(model, instructions=SYSTEM, tools=[tool]).run_sync(ASK)


AGENTS: dict[str, Callable[[Rollout], None]] = {
    "plain HTTP": plain_http,
    "plain HTTP, streaming": plain_http_streaming,
    "OpenAI Agents SDK, chat": openai_agents,
    "OpenAI Agents SDK, chat, streaming": lambda rollout: openai_agents(rollout, stream=True),
    "OpenAI Agents SDK, responses": lambda rollout: openai_agents(rollout, responses=True),
    "OpenAI Agents SDK, responses, streaming": lambda rollout: openai_agents(rollout, responses=True, stream=True),
    "LangGraph": langgraph,
    "pydantic-ai": pydantic_ai,
}

EXPECTED_MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASK},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call 0", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id":"A-1" }'}},
            {"id": "call 1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id":"A-2" }'}},
        ],
    },
    {"role": "tool", "tool_call_id": "call 0", "content": '{"order_id": "A-1", "status": "shipped"}'},
    {"role": "tool", "tool_call_id": "call 1", "content": '{"order_id": "A-2", "status": "shipped"}'},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call 2", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id":"A-3" }'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call 2", "content": '{"error": "no such order"}'},
    {
        "role": "assistant",
        "content": '{"order_id": "A-1", "status": "shipped"} and {"order_id": "A-2", "status": "shipped"}'
        ' and {"error": "no such order"}',
    },
]


def normalised(row: dict[str, Any]) -> dict[str, Any]:
    """Apply the rule that the module's docstring states."""
    row = copy.deepcopy(row)
    del row["rollout_id"], row["conversation"]["rollout"]
    numbers: dict[str, str] = {}
    for message in row["messages"]:
        for call in message.get("tool_calls") or ():
            call["id"] = numbers.setdefault(call["id"], f"call {len(numbers)}")
        if "tool_call_id" in message:
            message["tool_call_id"] = numbers[message["tool_call_id"]]
    return row


def record(agent: Callable[[Rollout], None]) -> dict[str, Any]:
    with Proxy(Scripted(script)) as proxy, proxy.rollout(task={"task_id": "orders", "prompt": ASK}) as rollout:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the frameworks' own
            agent(rollout)
        rows = proxy.rows()
    assert len(rows) == 1, "one conversation is one row"
    return normalised(rows[0])


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return record(plain_http)


def test_the_plain_program_gives_the_row_written_out_by_hand(expected: dict[str, Any]) -> None:
    assert expected["messages"] == EXPECTED_MESSAGES
    assert expected["tools"] == [TOOL]
    # Three replies: 10, 30 and 40 tokens of prompt, 3 of completion each.
    assert expected["usage"] == {"prompt_tokens": 80, "completion_tokens": 9, "requests": 3}
    assert (expected["finish_reason"], expected["outcome"]) == ("stop", "completed")
    assert (expected["task_id"], expected["index"], expected["prompt"]) == ("orders", 0, ASK)
    assert expected["final_text"] == EXPECTED_MESSAGES[-1]["content"]


@pytest.mark.parametrize("name", AGENTS)
def test_every_framework_gives_the_same_row(name: str, expected: dict[str, Any]) -> None:
    assert record(AGENTS[name]) == expected
