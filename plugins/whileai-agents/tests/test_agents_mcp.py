"""MCP both ways, with whichever major of the SDK is installed: our server to its client, its servers to our client."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from whileai_agents import Proxy, mcp_tools
from whileai_agents.mcp_client import McpToolError
from whileai_agents.mcp_server import VERSIONS
from whileai_kernel import resolve
from whileai_kernel.errors import MissingDependencyError, WhileaiError
from whileai_kernel.testing.acting import reference_tools

pytestmark = pytest.mark.integration


class World:
    """A world with a fault."""

    def __init__(self) -> None:
        self.fired: list[Any] = []
        self.calls: list[Any] = []

    def call(self, name: str, arguments: Any) -> str:
        self.calls.append((name, arguments))
        if name == "cancel_order":
            self.fired.append({"kind": "timeout", "tool": name})
            return '{"error": "timeout"}'
        if name == "get_order":
            return json.dumps({"order_id": arguments["order_id"], "status": "shipped"})
        return '{"error": "there is no such tool"}'


def post(url: str, message: Any) -> tuple[int, Any]:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data)) as reply:
            text = reply.read()
            return reply.status, json.loads(text) if text else None
    except urllib.error.HTTPError as err:
        return err.code, json.loads(err.read())


@pytest.fixture
def served() -> Any:
    world = World()
    with Proxy() as proxy:
        rollout = proxy.rollout(task={"prompt": "q"}, tools=reference_tools(), call_tool=world.call, world=world)
        yield rollout, world


def test_the_protocol_by_hand(served: Any) -> None:
    rollout, world = served

    def ask(method: str, **params: Any) -> Any:
        status, answer = post(rollout.mcp_url, {"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        assert (status, answer["id"], answer["jsonrpc"]) == (200, 7, "2.0")
        return answer.get("result", answer.get("error"))

    assert ask("initialize", protocolVersion=VERSIONS[0])["protocolVersion"] == VERSIONS[0]
    assert ask("initialize", protocolVersion="1999-01-01")["protocolVersion"] == VERSIONS[-1]
    assert ask("ping") == {}
    tools = ask("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["get_order", "cancel_order"]
    assert [tool["annotations"]["readOnlyHint"] for tool in tools] == [True, False]
    assert ask("tools/call", name="cancel_order", arguments={"order_id": "A"}) == {
        "content": [{"type": "text", "text": '{"error": "timeout"}'}],
        "isError": False,
    }
    assert ask("tools/call", name="get_order", arguments={})["isError"] is True  # the world itself raised
    assert ask("resources/list")["code"] == -32601
    assert ask("tools/call")["code"] == -32602
    assert world.fired == [{"kind": "timeout", "tool": "cancel_order"}]


def test_odd_requests_to_the_server(served: Any) -> None:
    rollout, _ = served
    url = rollout.mcp_url
    assert post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
    assert post(url, b"{")[0] == 400
    assert post(url, 7)[1]["error"]["code"] == -32600
    status, both = post(url, [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "n"}])
    assert (status, both) == (200, [{"jsonrpc": "2.0", "id": 1, "result": {}}])
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(url)
    rollout.close()
    assert post(url, {"jsonrpc": "2.0", "id": 1, "method": "ping"})[0] == 410


def test_a_rollout_without_tools_has_no_server() -> None:
    with Proxy() as proxy:
        assert post(proxy.rollout().mcp_url, {"jsonrpc": "2.0", "id": 1, "method": "ping"})[0] == 404


# -- with the SDK ---------------------------------------------------------------------------------------------

SERVER = """
try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

server = MCPServer("orders")

@server.tool()
def get_order(order_id: str) -> str:
    "Look up an order by id."
    if order_id == "missing":
        raise ToolError("order not found")
    return f"{order_id} has shipped"

@server.tool()
def add(a: int, b: int) -> int:
    "Add."
    return a + b

if __name__ == "__main__":
    server.run()
"""


def test_the_sdks_client_reads_our_server(served: Any) -> None:
    pytest.importorskip("mcp")
    rollout, world = served
    with mcp_tools(rollout.mcp_url) as tools:
        assert [tool.name for tool in tools] == ["get_order", "cancel_order"]
        assert [tool.kind for tool in tools] == ["read", "write"]
        assert [tool.parameters for tool in tools] == [tool.parameters for tool in reference_tools()]
        assert json.loads(tools[0](order_id="A-1")) == {"order_id": "A-1", "status": "shipped"}
        assert tools[1](order_id="A-1") == '{"error": "timeout"}', "a fault is the text that the world answers with"
    assert world.calls == [("get_order", {"order_id": "A-1"}), ("cancel_order", {"order_id": "A-1"})]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    pytest.importorskip("mcp")
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


def check(tools: Any) -> None:
    get_order, add = tools
    assert get_order.description == "Look up an order by id."
    assert get_order.parameters["required"] == ["order_id"]
    assert get_order.kind is None, "nothing is known about it"
    assert get_order(order_id="A-1") == "A-1 has shipped"
    assert add(a=2, b=3) == "5"
    with pytest.raises(McpToolError, match="order not found"):
        get_order(order_id="missing")
    with pytest.raises(McpToolError):
        add(a="two", b=3)
    assert not get_order.is_stub


def test_a_server_over_stdio(program: Path) -> None:
    with mcp_tools([sys.executable, str(program)]) as tools:
        check(tools)
    with pytest.raises(WhileaiError, match="closed"):
        tools[0](order_id="A-1")


def test_a_tool_keeps_its_connection_and_nothing_else_does(program: Path) -> None:
    import gc

    tools = mcp_tools([sys.executable, str(program)])
    thread, taken = tools.connection._thread, list(tools)
    del tools
    gc.collect()
    assert taken[1](a=1, b=1) == "2"
    taken.clear()
    gc.collect()
    assert not thread.is_alive()


def test_a_server_in_this_process(program: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "server"}
    exec(SERVER, namespace)
    with mcp_tools(namespace["server"]) as tools:
        check(tools)


def test_a_reference_stands_for_tools(program: Path) -> None:
    with resolve("agents", f"mcp:{sys.executable} {program}") as tools:
        assert [tool.name for tool in tools] == ["get_order", "add"]


def test_tools_work_inside_a_running_loop_and_from_threads(program: Path) -> None:
    async def main(tools: Any) -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(tools[1], a=n, b=1) for n in range(8)))

    with mcp_tools([sys.executable, str(program)]) as tools:
        assert asyncio.run(main(tools)) == [str(n + 1) for n in range(8)]


def test_a_server_that_is_not_there() -> None:
    pytest.importorskip("mcp")
    with pytest.raises(WhileaiError, match="cannot be reached") as caught:
        mcp_tools("http://127.0.0.1:9/mcp")
    assert caught.value.fix
    with pytest.raises(WhileaiError, match="cannot be reached"):
        mcp_tools([sys.executable, "-c", "raise SystemExit(3)"])


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingDependencyError, match="mcp") as caught:
        mcp_tools("http://127.0.0.1:9/mcp")
    assert caught.value.fix == 'pip install "whileai-agents[mcp]"'
