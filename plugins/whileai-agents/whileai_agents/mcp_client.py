"""The tools of an MCP server as tools of a task: over HTTP or stdio, with either major of the SDK.

One connection per server, on a thread and an event loop of its own, so that a tool is an ordinary function. A result
is its text; a result that says that it is an error raises `McpToolError` with the server's text, which a world answers
with as it does for any tool that raises. Names are snake_case in the SDK 2.x and camelCase in 1.x; both are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from whileai_agents import defaults as d
from whileai_agents.driver import split_command
from whileai_agents.failures import AgentError, need
from whileai_kernel.errors import DeadlineError, ParameterError, describe
from whileai_kernel.tools import Tool, as_tool

__all__ = ["McpToolError", "McpTools", "mcp_tools"]


class McpToolError(AgentError):
    """A tool of an MCP server answered that it failed."""


class McpTools(list[Tool]):
    """Tools of an MCP server: a list, with the connection behind it.

    Use it in a `with` block, or call `close()`; it also closes when nobody has any of its tools any more.
    """

    def __init__(self, connection: _Connection, listed: Sequence[Any]) -> None:
        super().__init__()
        self.connection = connection
        self.extend(_tool(item, self) for item in listed)  # each tool holds the list, and so the connection
        self._finalizer = weakref.finalize(self, connection.close)

    def __enter__(self) -> McpTools:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and end a server that was started for it; safe to call twice."""
        self._finalizer()


def mcp_tools(server: Any, *, deadline_s: float = d.TOOL_DEADLINE_S.value) -> McpTools:
    """Return the tools of an MCP server.

    Args:
        server: `"http://..."` (streamable HTTP), a command (`"python server.py"` or a list of arguments; stdio), or a
            server object of the SDK in this process.
        deadline_s: Seconds for connecting, and for each call.

    Returns:
        The tools, in the server's order; calling one calls the server. `readOnlyHint` tells reads from writes.

    Raises:
        MissingDependencyError: The SDK is not installed.
        AgentError: The server cannot be reached or started.
        DeadlineError: It does not answer in time.
    """
    need("mcp", "mcp")
    connection = _Connection(server, deadline_s)
    try:
        return McpTools(connection, connection.start())
    except BaseException:
        connection.close()
        raise


def _either(item: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(item, name, None)) is not None), None)


def _tool(item: Any, owner: McpTools) -> Tool:
    hints = _either(item, "annotations")
    read_only = None if hints is None else _either(hints, "read_only_hint", "readOnlyHint")
    described = as_tool(
        {
            "name": item.name,
            "description": item.description or "",
            "parameters": dict(_either(item, "input_schema", "inputSchema") or {}),
        }
    )
    kind = None if read_only is None else ("read" if read_only else "write")
    returns = _either(item, "output_schema", "outputSchema")
    return Tool(
        described.name,
        described.description,
        described.parameters,
        dict(returns) if returns else None,
        kind,  # type: ignore[arg-type]
        _caller(owner, item.name),
        is_stub=False,
    )


def _caller(owner: McpTools, name: str) -> Callable[..., str]:
    def called(**arguments: Any) -> str:
        return owner.connection.call(name, arguments)

    called.__name__ = called.__qualname__ = name
    return called


class _Connection:
    """A session on a loop of its own; entered and left in one task, as the SDK wants it."""

    def __init__(self, server: Any, deadline_s: float) -> None:
        self.server, self.deadline_s = server, deadline_s
        self.name = server if isinstance(server, str) else getattr(server, "name", None) or str(server)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._session: Any = None
        self._listed: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="wai-mcp")

    def start(self) -> list[Any]:
        self._thread.start()
        if not self._ready.wait(self.deadline_s):
            raise DeadlineError(f"MCP server {self.name} did not answer within {self.deadline_s:g} s")
        if self._error is not None:
            raise AgentError(
                f"MCP server {self.name} cannot be reached", why=_innermost(self._error), fix="check URL or command"
            ) from self._error
        return self._listed

    def close(self) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop ended in between
                loop.call_soon_threadsafe(stop.set)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as err:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self._error = err
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with _session(self.server) as session:
            self._session = session
            cursor: str | None = None
            while True:
                page = await session.list_tools(**({"cursor": cursor} if cursor else {}))
                self._listed += page.tools
                cursor = _either(page, "next_cursor", "nextCursor")
                if not cursor:
                    break
            self._ready.set()
            await self._stop.wait()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        if self._loop is None or self._loop.is_closed() or not self._thread.is_alive():
            raise AgentError(f"the connection to MCP server {self.name} is closed")
        work = asyncio.run_coroutine_threadsafe(self._session.call_tool(name, arguments), self._loop)
        try:
            result = work.result(self.deadline_s)
        except TimeoutError as err:
            work.cancel()
            raise DeadlineError(f"{name} of MCP server {self.name} gave no result in {self.deadline_s:g} s") from err
        text = _text_of(result)
        if _either(result, "is_error", "isError"):
            raise McpToolError(text or f"{name} failed without a word")
        return text


def _text_of(result: Any) -> str:
    texts = [part.text for part in result.content if getattr(part, "type", None) == "text"]
    if texts:
        return "\n".join(texts)
    structured = _either(result, "structured_content", "structuredContent")
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    kinds = ", ".join(str(getattr(part, "type", type(part).__name__)) for part in result.content)
    return f"[{kinds}]" if kinds else ""


def _innermost(err: BaseException) -> str:
    while isinstance(err, BaseExceptionGroup) and err.exceptions:
        err = err.exceptions[0]
    return describe(err)


def _command(server: Any) -> list[str]:
    words = split_command(server) if isinstance(server, str) else [str(word) for word in server]
    if not words:
        raise ParameterError("an MCP server needs a command or a URL", fix="for example 'mcp:python server.py'")
    return words


@contextlib.asynccontextmanager
async def _session(server: Any) -> AsyncIterator[Any]:
    """Open a session with whichever major of the SDK is installed."""
    mcp = need("mcp", "mcp")
    url = server if isinstance(server, str) and server.startswith(("http://", "https://")) else None
    plain = isinstance(server, str | list | tuple)
    words = _command(server) if url is None and plain else []
    if hasattr(mcp, "Client"):
        target: Any = url or (mcp.StdioServerParameters(command=words[0], args=words[1:]) if plain else server)
        async with mcp.Client(target) as client:
            yield client
        return
    async with contextlib.AsyncExitStack() as stack:
        if url is not None:
            http = need("mcp.client.streamable_http", "mcp")
            connect = getattr(http, "streamable_http_client", None) or http.streamablehttp_client
            reader, writer, *_ = await stack.enter_async_context(connect(url))
        elif plain:
            parameters = mcp.StdioServerParameters(command=words[0], args=words[1:])
            reader, writer = await stack.enter_async_context(mcp.stdio_client(parameters))
        else:
            memory = need("mcp.shared.memory", "mcp")
            inner = getattr(server, "_mcp_server", server)  # FastMCP holds the server that the helper wants
            yield await stack.enter_async_context(memory.create_connected_server_and_client_session(inner))
            return
        session = await stack.enter_async_context(mcp.ClientSession(reader, writer))
        await session.initialize()
        yield session
