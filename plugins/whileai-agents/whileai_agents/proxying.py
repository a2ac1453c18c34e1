"""The recording proxy: an OpenAI-compatible server on loopback in front of any model, which keeps what is said.

A program that takes a base URL takes part without a change. Chat completions and the Responses API are served, whole
and as events, and `/v1/models`. Each conversation becomes a row, written as it grows; a rollout has a base URL of its
own, and beside it the tools of its world as an MCP server. Retries belong to the model: errors are passed on with their
status, and clients are told not to try again.

Example:
    >>> from whileai_agents.scripted import Scripted
    >>> with Proxy(Scripted(lambda messages, tools: "hello")) as proxy:
    ...     proxy.base_url.endswith("/v1"), proxy.rows()
    (True, [])
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from whileai_agents import chat, mcp_server, responses
from whileai_agents import defaults as d
from whileai_agents.ask import Ask
from whileai_agents.conversations import Book, Conversation
from whileai_agents.recording import Recorder, note, redact, row_of
from whileai_agents.rollout import Rollout
from whileai_agents.rowfile import RowFile
from whileai_agents.server import HttpError, Reply, Request, Server
from whileai_kernel.errors import ParameterError, WhileaiError, describe
from whileai_kernel.messages import Message, text_of
from whileai_kernel.protocols import Completion
from whileai_kernel.registry import resolve
from whileai_kernel.rows import content_id

__all__ = ["Proxy", "proxy"]


_PATH = re.compile(
    r"(?:/r/(?P<rollout>[^/]+))?(?:/v1)?/(?P<what>chat/completions|responses|models|mcp|tasks)(?:/(?P<rest>.+))?/?"
)
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,120}")
_KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class Proxy:
    """A recording proxy.

    Args:
        model: A model, or its spec, for example `vllm:qwen3@http://127.0.0.1:8000/v1`; `None` serves tools alone.
        out: JSONL file for the rows, continued when it exists; `None` keeps them in memory.
        sampling: Sampling parameters of every request, for example `{"logprobs": True}`; the program's own win.
        port: Port on loopback, or 0 for a free one.
        deadline_s: Seconds for one reply of the model; by default the model's own.
        make_rollout: Called for a rollout that a URL names and nobody made: returns `task`, `index`, `tools`,
            `call_tool` and `world` for it, or `None` to refuse. By default such a rollout is just recorded. Its
            `listing(url)`, when it has one, answers `/tasks`.
        remember: Conversations kept in memory when there is a file.
    """

    def __init__(
        self,
        model: Any = None,
        out: str | os.PathLike[str] | None = None,
        *,
        sampling: Mapping[str, Any] | None = None,
        port: int = 0,
        deadline_s: float | None = None,
        make_rollout: Callable[[str], Mapping[str, Any] | None] | None = None,
        remember: int = d.OPEN_CONVERSATIONS.value,
    ) -> None:
        self.model: Any = None if model is None else resolve("models", model)
        if self.model is not None and not callable(getattr(self.model, "complete", None)):
            raise ParameterError(f"{model!r:.80} is no model", fix="give a spec, or an object with complete(...)")
        self.sampling, self.deadline_s = dict(sampling or {}), deadline_s
        self._out = out
        self._make_rollout = make_rollout
        self._recorder = Recorder()
        self._book = Book(remember if out is not None else None)
        self._rollouts: OrderedDict[str, Rollout] = OrderedDict()
        self._over: set[str] = set()
        self._earlier: OrderedDict[str, list[Message]] = OrderedDict()
        self._remember = remember
        self._server = Server(self._handle, port)
        self._threads = ThreadPoolExecutor(d.TOOL_THREADS.value, thread_name_prefix="wai-tool")
        self._lock = threading.Lock()
        self._count = self._made = 0
        self._started = self._closed = False

    # -- for people ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Proxy:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self.base_url if self._started and not self._closed else "not running"
        return f"Proxy({where}, model={self._model_id!r})"

    def start(self) -> Proxy:
        """Open the file and start listening; `with Proxy(...)` does it."""
        with self._lock:
            if not self._started:
                if self._out is not None:
                    self._recorder = Recorder(RowFile(self._out))
                try:
                    self._server.start()
                except BaseException:
                    self._recorder.close()
                    raise
                self._started = True
        return self

    def close(self) -> None:
        """Stop serving and close the file; safe to call twice."""
        self._closed = True
        self._server.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._recorder.close()

    @property
    def _model_id(self) -> str | None:
        return None if self.model is None else str(self.model.id)

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return self._server.url

    @property
    def base_url(self) -> str:
        """Base URL for programs that name no rollout."""
        return f"{self._server.url}/v1"

    @property
    def recovered_bytes(self) -> int:
        """Bytes of a torn last line that were cut off the file when it was opened."""
        return self._recorder.file.recovered_bytes if self._recorder.file is not None else 0

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows so far, one per conversation; conversations that go on grow."""
        return self._recorder.rows()

    def rollout(
        self,
        context: Any = None,
        *,
        name: str | None = None,
        task: Mapping[str, Any] | None = None,
        index: int | None = None,
        tools: Sequence[Any] = (),
        call_tool: Callable[[str, Any], str] | None = None,
        world: Any = None,
    ) -> Rollout:
        """Begin a rollout with a base URL of its own.

        Args:
            context: The `context` that `simulate` gives its agents: brings task, index, tools and world.
            name: Name in the URLs; by default the task and the index where they make one, else a number.
            task: The task; `privileged` is left out.
            index: Number of the rollout within its task; by default counted.
            tools: Tools that the MCP endpoint offers.
            call_tool: `call_tool(name, arguments) -> str` of the world behind them.
            world: The world; its `fired` faults go on the rows.

        Raises:
            ParameterError: The name is taken or not fit for a URL.
        """
        self.start()
        if context is not None:
            task, index = context.task, context.index
            tools, call_tool = context.tools or (task or {}).get("tools") or (), context.call_tool
            world = getattr(context, "world", None)
        with self._lock:
            if name is None:
                name = self._free_name((task or {}).get("task_id"), index)
            if not _NAME.fullmatch(name) or name in self._rollouts or name in self._over:
                raise ParameterError(f"rollout name {name!r:.80} is taken or no URL part", fix="use letters and digits")
            made = Rollout(
                name, self._server.url, task=task, index=index, tools=tools, call_tool=call_tool, world=world,
                threads=self._threads, on_close=self._forget,
            )  # fmt: skip
            self._rollouts[name] = made
        return made

    def _free_name(self, task_id: Any, index: int | None) -> str:
        """Return a name that is not taken: the same for the same rollout, so that ids of rows repeat with a run."""
        wanted = f"{task_id}.{index}" if task_id and index is not None else ""
        if not _NAME.fullmatch(wanted):
            wanted = ""
        name = wanted
        while not name or name in self._rollouts or name in self._over:
            self._made += 1
            name = f"{wanted}-{self._made}" if wanted else f"{self._made}"
        return name

    def agent(self, what: Any, **options: Any) -> Any:
        """Return an agent for `simulate` whose model is this proxy.

        Args:
            what: A program (`"exec:python my_agent.py"` or a list), the URL of an endpoint, an agent of a framework, or
                a function `f(messages, rollout)` that drives one with `rollout.base_url`.
            options: Options of the agent, for example `max_turns`.
        """
        from whileai_agents.agents import agent_of

        found = agent_of(what, proxy=self, **options)
        if found is None:
            raise ParameterError(
                f"{what!r:.80} is no agent that can be driven here",
                fix="give 'exec:...', a URL, an agent of a framework, or f(messages, rollout)",
            )
        return found

    def _forget(self, rollout: Rollout) -> None:
        with self._lock:
            if self._rollouts.pop(rollout.name, None) is not None:
                self._over.add(rollout.name)

    # -- requests -----------------------------------------------------------------------------------------------

    async def _handle(self, request: Request) -> Reply:
        found = _PATH.fullmatch(request.path)
        if found is None:
            raise HttpError(404, f"{request.path!r:.80} is not served here", "not_found_error")
        what = found["what"]
        rollout = self._find(found["rollout"]) if found["rollout"] else None
        listing = getattr(self._make_rollout, "listing", None)
        if what == "tasks" and rollout is None and listing is not None:
            return Reply.json(listing(self._server.url))
        if what == "mcp" and rollout is not None:
            if not rollout.tools:
                raise HttpError(404, "this rollout has no tools to serve", "not_found_error")
            return await mcp_server.serve(rollout, request)
        if what == "models" and request.method == "GET" and self.model is not None:
            card = {"id": self._model_id, "object": "model", "created": 0, "owned_by": "whileai"}
            return Reply.json(card if found["rest"] else {"object": "list", "data": [card]})
        if what in ("chat/completions", "responses") and request.method == "POST" and not found["rest"]:
            if self.model is None:
                raise HttpError(404, "this proxy has no model: it serves tools alone", "not_found_error")
            return await (self._chat if what == "chat/completions" else self._responses)(request, rollout)
        raise HttpError(404, f"{request.method} {request.path!r:.80} is not served here", "not_found_error")

    def _find(self, name: str) -> Rollout:
        with self._lock:
            found, over = self._rollouts.get(name), name in self._over
        if over:
            raise HttpError(410, f"rollout {name!r} is over", "rollout_over")
        if found is not None:
            return found
        if not _NAME.fullmatch(name):
            raise HttpError(404, f"{name!r:.80} is no name of a rollout", "not_found_error")
        if self._make_rollout is None:
            return self.rollout(name=name)
        parts = self._make_rollout(name)
        if parts is None:
            raise HttpError(404, f"there is no task for rollout {name!r}", "not_found_error")
        return self.rollout(name=name, **parts)

    async def _chat(self, request: Request, rollout: Rollout | None) -> Reply:
        body = request.json()
        ask = chat.read_chat(body)
        number, reply = await self._complete(ask, request, rollout)
        answer = chat.to_chat(reply, number, str(self._model_id))
        if ask.stream:
            return Reply(200, chat.events(answer, ask.usage_in_stream), "text/event-stream")
        return Reply.json(answer)

    async def _responses(self, request: Request, rollout: Rollout | None) -> Reply:
        body = request.json()
        ask = responses.read_responses(body, self._earlier)
        number, reply = await self._complete(ask, request, rollout)
        answer = responses.to_response(reply, number, str(self._model_id), body)
        self._earlier[answer["id"]] = [*ask.messages[body.get("instructions") is not None :], reply.message]
        while len(self._earlier) > self._remember:
            self._earlier.popitem(last=False)
        if ask.stream:
            return Reply(200, responses.events(answer), "text/event-stream")
        return Reply.json(answer)

    async def _complete(self, ask: Ask, request: Request, rollout: Rollout | None) -> tuple[int, Completion]:
        """Ask the model and record what came of it."""
        self._count += 1
        number = self._count
        secrets = _secrets(request.headers)
        sampling = {**self.sampling, **ask.sampling}
        try:
            reply: Completion = await self.model.complete(
                ask.messages, ask.tools, sampling, schema=ask.schema, deadline_s=self.deadline_s
            )
        except asyncio.CancelledError:
            error = {"type": "ClientGoneError", "message": "the program went away before the model had answered"}
            self._record(ask, None, error, secrets, rollout)
            raise
        except Exception as err:
            self._record(ask, None, _error_of(err), secrets, rollout)
            raise _http_error(err, secrets) from err
        self._record(ask, reply, None, secrets, rollout)
        return number, reply

    def _record(
        self,
        ask: Ask,
        reply: Completion | None,
        error: Mapping[str, Any] | None,
        secrets: Sequence[str],
        rollout: Rollout | None,
    ) -> None:
        asked = redact(ask.messages, secrets) if secrets else ask.messages
        message = None if reply is None else (redact(reply.message, secrets) if secrets else reply.message)
        book = self._book if rollout is None else rollout.book
        found = book.land(asked, message, reply, redact(error, secrets))
        if "head" not in found.extra:
            found.extra["head"] = self._head(found, rollout)
        note(found, ask, redact([_known(tool, rollout) for tool in ask.tools], secrets))
        if rollout is not None and rollout.belongs(found):
            rollout.main = found
        head = {**found.extra["head"], "conversation": self._place(found, rollout)}
        policy = {"name": self._model_id, "model": self._model_id, "sampling": found.extra["sampling"]}
        head["policy"] = policy
        if rollout is not None and rollout.world is not None:
            head["faults_fired"] = rollout.fired
        self._recorder.put(found, row_of(found, head, rollout.task if rollout is not None else {}))

    def _head(self, conversation: Conversation, rollout: Rollout | None) -> dict[str, Any]:
        """Return the identity of a new conversation: of its task, and of itself."""
        own = rollout is None or not rollout.task or rollout.belongs(conversation)
        task = rollout.task if rollout is not None and own else {}
        asked = [text_of(m.get("content")) for m in conversation.messages if m.get("role") == "user"]
        prompt = str(task.get("prompt") or (asked[-1] if asked else ""))
        task_id = str(task.get("task_id") or content_id("task", prompt))
        if rollout is not None and own:
            if rollout.index is None:
                rollout.index = self._recorder.next_index(task_id)
            index = rollout.index
        else:
            index = self._recorder.next_index(task_id)
        name = rollout.name if rollout is not None else ""
        rollout_id = content_id("rollout", task_id, index, name, conversation.number, self._model_id)
        return {"task_id": task_id, "rollout_id": rollout_id, "index": index, "prompt": prompt}

    def _place(self, found: Conversation, rollout: Rollout | None) -> dict[str, Any]:
        """Return where a conversation belongs."""
        place: dict[str, Any] = {"number": found.number, "requests": found.requests}
        if found.failures:
            place["failures"] = found.failures
        if rollout is not None:
            place["rollout"] = rollout.name
            first = next(iter(rollout.book.open.values()))
            if found is not first:
                place["beside"] = first.extra["head"]["rollout_id"]
        if found.branch is not None:
            root, length = found.branch
            place["branch_of"], place["branch_at"] = root.extra["head"]["rollout_id"], length
        return place


def _known(tool: dict[str, Any], rollout: Rollout | None) -> dict[str, Any]:
    """Return a tool with what only the world says about it (`x-kind`, `x-returns`), when it is the world's own."""
    own = (t.to_openai() for t in (rollout.tools if rollout is not None else ()))
    return next((t for t in own if t["function"] == tool["function"]), tool)


def _secrets(headers: Mapping[str, str], length: int = d.KEY_LENGTH.value) -> list[str]:
    """Return what a program authenticates with, when it is long enough to be a real key."""
    values = [headers.get(name, "").removeprefix("Bearer ").strip() for name in _KEY_HEADERS]
    return [value for value in values if len(value) >= length]


def _error_of(err: Exception) -> dict[str, Any]:
    what = f"{err.what} ({err.why})" if isinstance(err, WhileaiError) and err.why else describe(err)
    out: dict[str, Any] = {"type": type(err).__name__, "message": what}
    status = getattr(err, "status_code", None)
    if isinstance(status, int):
        out["status_code"] = status
    if getattr(err, "permanent", False) is True:
        out["permanent"] = True
    return out


_STATUS = {"timeout": 504, "connection": 502, "malformed": 502, "not_recorded": 502}


def _http_error(err: Exception, secrets: Sequence[str]) -> HttpError:
    """Return a model's failure as the answer to the program: the status that the server gave, else one that fits."""
    kind = str(getattr(err, "kind", "") or ("timeout" if isinstance(err, TimeoutError) else "server_error"))
    status = getattr(err, "status_code", None)
    if not isinstance(status, int) or not 400 <= status <= 599:
        status = _STATUS.get(kind, 500)
    headers = {"x-should-retry": "false"}  # the model has retried already; OpenAI's clients honour this
    after = getattr(err, "retry_after", None)
    if isinstance(after, int | float):
        headers["retry-after"] = f"{after:g}"
    return HttpError(status, redact(_error_of(err)["message"], secrets), kind, headers)


@contextmanager
def proxy(
    model: Any = None,
    out: str | os.PathLike[str] | None = None,
    *,
    sampling: Mapping[str, Any] | None = None,
    port: int = 0,
    deadline_s: float | None = None,
) -> Iterator[Proxy]:
    """Run a recording proxy in front of a model for the length of a `with` block.

    Args:
        model: A model, or its spec, for example `vllm:qwen3@http://127.0.0.1:8000/v1`.
        out: JSONL file for the rows, continued when it exists; `None` keeps them in memory.
        sampling: Sampling parameters of every request, for example `{"logprobs": True}`; the program's own win.
        port: Port on loopback, or 0 for a free one.
        deadline_s: Seconds for one reply of the model; by default the model's own.

    Raises:
        ParameterError: The model is none, or the port is taken.
        FileThereError: Another process writes the file.
    """
    with Proxy(model, out, sampling=sampling, port=port, deadline_s=deadline_s) as running:
        yield running
