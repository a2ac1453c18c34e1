"""A scripted model server on loopback: what has to be tested over HTTP is tested over HTTP.

It speaks the chat-completions wire format, and every misbehaviour that a script makes up: statuses, headers, bodies
that are no JSON, connections that are cut. It does not judge the request; a test does, with `requests`.

Example:
    >>> import json, urllib.request
    >>> with ModelServer(["It has shipped.", Reply(429, "slow down", {"retry-after": "1"})]) as server:
    ...     asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Where is it?"}]}).encode()
    ...     with urllib.request.urlopen(f"{server.url}/chat/completions", asked) as got:
    ...         json.load(got)["choices"][0]["message"]["content"]
    'It has shipped.'
    >>> server.requests[0].body["model"], server.requests[0].path
    ('m', '/v1/chat/completions')
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

__all__ = ["ModelServer", "Reply", "Request", "completion_body"]

_NO_MORE = "the script of the server holds no further reply"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent.

    Attributes:
        body: The decoded JSON, or the bytes where they are none.
        headers: Headers by name in lower case.
        number: Number of the request at this server, from 0.
        path: Path of the URL.
        at_s: When it was read, in seconds of `time.monotonic()`.
    """

    body: Any
    headers: Mapping[str, str]
    number: int
    path: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers, down to the bytes.

    Attributes:
        status: HTTP status.
        body: Text or bytes, sent as they are; anything else is sent as JSON.
        headers: Headers; `content-type` (JSON) and `content-length` are sent where they are not given.
        cut: Close the connection in the middle: the headers announce more than the body holds.
    """

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


def completion_body(
    message: str | Mapping[str, Any] = "It has shipped.",
    *,
    model: str = "served",
    usage: tuple[int, int] = (10, 4),
    **choice: Any,
) -> dict[str, Any]:
    """Return the body of a chat completion.

    Args:
        message: The assistant's text, or fields of its message.
        model: The model that the reply names.
        usage: Prompt tokens and completion tokens.
        **choice: Further fields of the choice, for example `finish_reason` or `logprobs`. The finish reason follows the
            message where it is not given.
    """
    said = {"content": message} if isinstance(message, str) else dict(message)
    said = {"role": "assistant", **said}
    finish = "tool_calls" if said.get("tool_calls") else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": said, "finish_reason": finish, **choice}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)},
    }


class ModelServer:
    """A server on a free port of 127.0.0.1, while the `with` block lasts.

    An answer is a `Reply`, a text or a message of the assistant (a mapping with `role`), or the whole body of a
    completion (any other mapping).

    Args:
        answer: A function of the `Request` that returns an answer, or answers in order. A function runs in a thread of
            its request, so it may wait; what it raises is answered with status 500 and raised at the end of the block.

    Attributes:
        url: Base URL of a model, with `/v1`.
        origin: The URL without a path; every path is answered.
        requests: What was asked, in order.
        most_in_flight: The most requests that waited for their answers at one time.
    """

    def __init__(self, answer: Callable[[Request], Any] | Iterable[Any]) -> None:
        self.requests: list[Request] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._answer = answer if callable(answer) else _in_order(answer)
        self._errors: list[BaseException] = []
        self._http = _Http(("127.0.0.1", 0), _handler(self._reply))
        self.origin = f"http://127.0.0.1:{self._http.server_port}"
        self.url = f"{self.origin}/v1"

    def __repr__(self) -> str:
        return f"ModelServer({self.url!r}, requests={len(self.requests)})"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.end()
        if self._errors and error is None:
            raise self._errors[0]

    def _reply(self, path: str, headers: Mapping[str, str], raw: bytes) -> Reply:
        with self._lock:
            request = Request(_decoded(raw), headers, len(self.requests), path, time.monotonic())
            self.requests.append(request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return _as_reply(self._answer(request))
        except Exception as err:  # noqa: BLE001 - a script may raise anything, an assertion above all
            self._errors.append(err)
            return Reply(500, {"error": {"message": f"{type(err).__name__}: {err}"}})
        finally:
            with self._lock:
                self._in_flight -= 1


def _in_order(answers: Iterable[Any]) -> Callable[[Request], Any]:
    given = list(answers)
    more = Reply(500, {"error": {"message": f"{_NO_MORE}: it held {len(given)}"}})
    return lambda request: given[request.number] if request.number < len(given) else more


def _as_reply(answer: Any) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str) or (isinstance(answer, Mapping) and "role" in answer):
        return Reply(body=completion_body(answer))
    if isinstance(answer, Mapping):
        return Reply(body=answer)
    raise TypeError(f"the script of the server returned {type(answer).__name__}: return a Reply, a text or a mapping")


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


class _Http(ThreadingHTTPServer):
    """A threading server that can end the connections that clients keep, and takes clients that give up as usual."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.kept: set[Any] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.kept.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.kept.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def end(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in tuple(self.kept):
            with suppress(OSError):  # the client closed it first
                connection.shutdown(socket.SHUT_RDWR)


def _handler(reply_to: Callable[[str, Mapping[str, str], bytes], Reply]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two packets, and a client waits for the second

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = reply_to(self.path, headers, self.rfile.read(int(headers.get("content-length", 0))))
            body = reply.body if isinstance(reply.body, str | bytes) else json.dumps(reply.body)
            raw = body.encode() if isinstance(body, str) else body
            length = len(raw) + (1000 if reply.cut else 0)
            self.send_response(reply.status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(length),
                **reply.headers,
            }.items():
                self.send_header(name, value)
            self.close_connection = self.close_connection or reply.cut
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            """Say nothing on the terminal."""

    return Handler
