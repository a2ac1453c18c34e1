"""A small HTTP/1.1 server on loopback, on a thread and an event loop of its own.

It knows nothing of models or rows: a handler gets a `Request` and returns a `Reply`. Bytes are read and written by h11,
which httpx brings anyway: it reads chunked bodies, keep-alive and broken heads exactly as the standard says, and holds
no sockets. Requests from web pages are refused: a page of any site could otherwise spend the money of this machine's
user. When a client goes away, the handler of its request is cancelled.

Example:
    >>> async def hello(request): return Reply.json({"path": request.path})
    >>> server = Server(hello)
    >>> server.start(); server.url.startswith("http://127.0.0.1:"); server.close()
    True
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import h11

from whileai_agents import defaults as d
from whileai_kernel.errors import ParameterError, WhileaiError, describe

__all__ = ["HttpError", "Reply", "Request", "Server"]

T = TypeVar("T")
_CHUNK = 2**16
_GRACE_S = 5.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


class HttpError(Exception):
    """A request that is answered with an error, in the shape that OpenAI's clients read.

    Attributes:
        status: HTTP status.
        kind: `error.type` of the body.
        headers: Further headers.
    """

    def __init__(self, status: int, message: str, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.kind, self.headers = status, kind, dict(headers or {})
        super().__init__(message)


@dataclass(slots=True)
class Request:
    """A request: header names in lower case, the path decoded and without its query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """Return the body as an object.

        Raises:
            HttpError: 400, it is none.
        """
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as err:
            raise HttpError(400, f"the body is not JSON: {err}", "invalid_request_error") from None
        if not isinstance(value, dict):
            raise HttpError(400, "the body must be a JSON object", "invalid_request_error")
        return value


@dataclass(slots=True)
class Reply:
    """What a handler answers."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
        """Return a JSON reply."""
        return cls(status, json.dumps(value).encode("ascii"), headers=dict(headers or {}))

    @classmethod
    def error(cls, err: HttpError) -> Reply:
        """Return the reply of an error."""
        body = {"error": {"message": str(err), "type": err.kind, "param": None, "code": err.kind}}
        return cls.json(body, err.status, err.headers)


Handler = Callable[[Request], Awaitable[Reply]]


class Server:
    """A server on loopback.

    Args:
        handler: Answers requests; runs on the server's own event loop.
        port: Port, or 0 for a free one.
        max_body: Bytes of a request that are read; more is answered with 413.
    """

    def __init__(self, handler: Handler, port: int = 0, *, max_body: int = d.MAX_BODY.value) -> None:
        self.handler, self.max_body = handler, max_body
        self._wanted, self.port = port, 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._error: BaseException | None = None

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start listening; returns when it does.

        Raises:
            ParameterError: The port is taken.
        """
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True, name="wai-proxy")
        self._thread.start()
        ready.wait()
        if self._error is not None:
            raise ParameterError(
                f"cannot listen on port {self._wanted}", why=describe(self._error), fix="give another port, or 0"
            ) from self._error

    def close(self) -> None:
        """Stop listening and cancel what is in flight; safe to call twice."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop ended in between
                loop.call_soon_threadsafe(stop.set)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_GRACE_S)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the server's loop."""
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise WhileaiError("the server is closed", fix="use it inside its with block")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except OSError as err:
            self._error = err
        finally:
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listening = await asyncio.start_server(self._client, "127.0.0.1", self._wanted, limit=_CHUNK)
        self.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        listening.close()
        here = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not here]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(reader, writer, self.max_body)
        try:
            while await self._exchange(link):
                pass
        except (ConnectionError, h11.RemoteProtocolError, TimeoutError, asyncio.CancelledError):
            return  # the client broke off and there is nobody to tell, or the server is being closed
        finally:
            writer.close()

    async def _exchange(self, link: _Link) -> bool:
        """Answer one request; return whether the connection goes on."""
        try:
            request = await link.receive()
        except HttpError as err:
            await link.send(Reply.error(err), close=True)
            return False
        except h11.RemoteProtocolError as err:
            if link.state.our_state is h11.IDLE:
                await link.send(Reply.error(HttpError(400, f"no HTTP: {err}", "invalid_request_error")), close=True)
            return False
        if request is None:
            return False
        work = asyncio.ensure_future(self._answer(request))
        gone = asyncio.ensure_future(link.gone())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        try:
            reply = await work
        except asyncio.CancelledError:
            return False
        return await link.send(reply)

    async def _answer(self, request: Request) -> Reply:
        refused = _foreign(request.headers)
        if refused:
            return Reply.error(HttpError(403, refused, "forbidden"))
        try:
            return await self.handler(request)
        except HttpError as err:
            return Reply.error(err)
        except Exception as err:  # noqa: BLE001 - whatever a handler raises is the request's failure, not the server's
            return Reply.error(HttpError(500, describe(err), "server_error"))


def _foreign(headers: Mapping[str, str]) -> str | None:
    """Return why a request does not come from this machine's own programs, or `None`."""
    for name in ("host", "origin"):
        value = headers.get(name)
        if value is None:
            continue
        host = urlsplit(value if "//" in value else f"//{value}").hostname
        if host not in _LOOPBACK:
            return f"{name} {value[:80]!r} is not this machine"
    return None


class _Link:
    """One connection: h11's state and the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_body: int) -> None:
        self.reader, self.writer, self.max_body = reader, writer, max_body
        self.state = h11.Connection(h11.SERVER, max_incomplete_event_size=_CHUNK)

    async def _event(self) -> Any:
        while True:
            event = self.state.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self.state.they_are_waiting_for_100_continue:
                await self._write(self.state.send(h11.InformationalResponse(status_code=100, headers=[])))
            self.state.receive_data(await self.reader.read(_CHUNK))

    async def _write(self, data: bytes | None) -> None:
        if data:
            self.writer.write(data)
            await self.writer.drain()

    async def receive(self) -> Request | None:
        """Return the next request, or `None` when the client has no more.

        Raises:
            HttpError: 413, the body is too long.
        """
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > self.max_body:
                raise HttpError(413, f"the body is longer than {self.max_body} bytes", "invalid_request_error")
        if not isinstance(event, h11.EndOfMessage):
            return None
        headers = {k.decode("ascii").lower(): v.decode("latin-1") for k, v in head.headers}
        path = unquote(head.target.decode("ascii").partition("?")[0])
        return Request(head.method.decode("ascii"), path, headers, bytes(body))

    async def gone(self) -> None:
        """Return when the client has closed the connection; what it sends meanwhile is kept."""
        while data := await self.reader.read(_CHUNK):
            self.state.receive_data(data)

    async def send(self, reply: Reply, close: bool = False) -> bool:
        """Send a reply; return whether another request may follow."""
        headers = {
            "content-type": reply.content_type,
            "content-length": str(len(reply.body)),
            "cache-control": "no-store",
            **reply.headers,
        }
        if close:
            headers["connection"] = "close"
        await self._write(self.state.send(h11.Response(status_code=reply.status, headers=list(headers.items()))))
        await self._write(self.state.send(h11.Data(data=reply.body)))
        await self._write(self.state.send(h11.EndOfMessage()))
        if close or self.state.our_state is not h11.DONE or self.state.their_state is not h11.DONE:
            return False
        self.state.start_next_cycle()
        return True
