"""An agent behind a URL: its own JSON protocol, or a server that speaks chat completions.

`http://host/path` is sent, for each turn of a rollout, a POST with the object below and answers with text, with
`{"final_text": ...}`, `{"messages": [...]}` or `{"steps": [...], "final_text": ...}`::

    {"messages": [...], "tools": [...], "task": {"task_id", "prompt", ...}, "rollout": {"name", "index", "seed"},
     "mcp_url": "http://127.0.0.1:.../mcp", "base_url": "http://127.0.0.1:.../v1"}

A URL that ends in `/v1` or `/chat/completions` is an OpenAI-compatible server; a fragment names the model
(`http://host/v1#my-agent`), and tool calls that it returns are run in the world. Nothing is sent twice: a second try
could act twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from whileai_agents import defaults as d
from whileai_agents.driver import Driver, read_reply, request_of
from whileai_agents.failures import AgentError
from whileai_agents.proxying import Proxy
from whileai_agents.recording import redact
from whileai_kernel.errors import ParameterError, describe
from whileai_kernel.messages import Message

if TYPE_CHECKING:
    import httpx

__all__ = ["EndpointAgent"]

_KEY = "WHILEAI_AGENT_KEY"
_PERMANENT = (401, 403, 404, 405)


class EndpointAgent:
    """An agent behind a URL.

    Args:
        url: Where it listens.
        model: The model that it finds at the `base_url` of its requests, or its spec; `None` when it has its own.
        proxy: A running proxy, instead of `model`.
        headers: Further headers. A bearer token is taken from `WHILEAI_AGENT_KEY` when that is set.
        name: Name on the rows; by default the URL without its query.
        max_output: Bytes that it may answer with.
    """

    def __init__(
        self,
        url: str,
        model: Any = None,
        *,
        proxy: Proxy | None = None,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        max_output: int = d.MAX_OUTPUT.value,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ParameterError(f"{url!r:.80} is no http URL", fix="for example http://127.0.0.1:9000/agent")
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise ParameterError("the URL holds a password", why="it would stand on every row", fix="pass headers=")
        self.url, _, self.served = url.partition("#")
        bare = self.url.partition("?")[0].rstrip("/")
        self.chat = bare.endswith(("/v1", "/chat/completions"))
        if self.chat and not bare.endswith("/chat/completions"):
            self.url = f"{bare}/chat/completions"
        self.name = name or bare
        self.driver = Driver(model, proxy)
        self.model_id = self.driver.model_id
        self.policy = self.driver.policy(self.name)
        if self.served:
            self.policy["model"] = self.served
        self.max_output = max_output
        self._headers = dict(headers or {})
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network beyond loopback, for the conformance kit."""
        from whileai_agents.scripted import Scripted

        running = Proxy(Scripted(lambda messages, tools: "It has shipped."))
        running.start()
        agent_url = running.base_url  # a proxy is an OpenAI-compatible server too
        _KEPT[agent_url] = running
        return {"url": f"{agent_url}#scripted"}

    def __repr__(self) -> str:
        return f"EndpointAgent({self.name!r})"

    def _client(self) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            # The deadline of the rollout ends a call; a slow agent is no broken one.
            found = self._clients[loop] = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=10.0))
        return found

    async def __call__(self, messages: list[Message], context: Any) -> Any:
        """Send one turn and read the answer."""
        rollout = self.driver.rollout(context)
        asked = request_of(messages, context, rollout, self.driver.has_model)
        if self.chat:
            tools = [{k: v for k, v in tool.items() if not k.startswith("x-")} for tool in asked["tools"]]
            asked = {"model": self.served or "default", "messages": asked["messages"]}
            if tools:
                asked["tools"] = tools
        answer = await self._post(asked)
        if self.chat:
            if not isinstance(answer, Mapping) or not answer.get("choices"):
                raise AgentError(f"{self.name} answered without choices", why=str(answer)[:200])
            return _turn_of(answer)
        return read_reply(answer, rollout, messages, self.driver.has_model)

    async def _post(self, asked: Mapping[str, Any]) -> Any:
        import httpx

        key = os.environ.get(_KEY)
        headers = {**({"authorization": f"Bearer {key}"} if key else {}), **self._headers}
        secrets = [value for value in (key, *self._headers.values()) if value and len(value) >= d.KEY_LENGTH.value]
        body = bytearray()
        try:
            async with self._client().stream("POST", self.url, json=dict(asked), headers=headers) as reply:
                async for data in reply.aiter_bytes():
                    body += data
                    if len(body) > self.max_output:
                        raise AgentError(f"{self.name} answered with more than {self.max_output} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as err:
            why = redact(describe(err), secrets)
            raise AgentError(f"{self.name} could not be reached: {why}", fix="check that it runs") from None
        text = redact(body.decode("utf-8", "replace"), secrets)
        if reply.status_code != 200:
            raise AgentError(
                f"{self.name} answered {reply.status_code}: {text[:300]}",
                fix=f"a bearer token is taken from {_KEY}" if reply.status_code in (401, 403) else "",
                permanent=reply.status_code in _PERMANENT,
            )
        if "json" not in reply.headers.get("content-type", "json"):
            return text.strip()
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text.strip()


def _turn_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat completion as an agent of `simulate` returns its turn."""
    choice = answer["choices"][0]
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        raise AgentError("the first choice has no message", why=str(choice)[:200])
    message = {k: v for k, v in choice["message"].items() if v is not None or k == "content"}
    out: dict[str, Any] = {"messages": [{"role": "assistant", **message}], "finish_reason": choice.get("finish_reason")}
    usage = answer.get("usage")
    if isinstance(usage, Mapping):
        out["usage"] = {k: v for k, v in usage.items() if isinstance(v, int | float)}
    if choice.get("logprobs"):
        out["logprobs"] = choice["logprobs"]
    return out


_KEPT: dict[str, Proxy] = {}
