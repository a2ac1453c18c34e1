"""The tools of a rollout as an MCP server: the streamable HTTP transport, one JSON answer per request.

Written out rather than taken from the SDK: it is four methods without state, the SDK brings a web framework and two
incompatible majors, and clients of both majors speak to it. What a tool of the world answers, faults included, is the
text of the result exactly; a call that the world cannot take is a result with `isError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from whileai_agents.rollout import Rollout
from whileai_agents.server import HttpError, Reply, Request
from whileai_kernel.errors import WhileaiError

__all__ = ["VERSIONS", "serve"]

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that are spoken; another one is answered with the last, as the protocol wants."""

_METHOD_NOT_FOUND, _INVALID_PARAMS, _INVALID_REQUEST = -32601, -32602, -32600


async def serve(rollout: Rollout, request: Request) -> Reply:
    """Answer a request to the MCP endpoint of a rollout."""
    if request.method == "DELETE":
        return Reply(200)
    if request.method != "POST":  # no server-initiated messages, so there is no stream to open
        raise HttpError(405, "only POST: this server sends nothing of its own", "invalid_request_error")
    try:
        message = json.loads(request.body)
    except (ValueError, RecursionError):
        return Reply.json(_error(None, -32700, "the body is not JSON"), 400)
    if isinstance(message, list):
        answers = [a for m in message if (a := await _answer(rollout, m)) is not None]
        return Reply.json(answers) if answers else Reply(202)
    answer = await _answer(rollout, message)
    return Reply(202) if answer is None else Reply.json(answer)


def _error(number: Any, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


async def _answer(rollout: Rollout, message: Any) -> dict[str, Any] | None:
    if not isinstance(message, Mapping) or not isinstance(message.get("method"), str):
        known = isinstance(message, Mapping) and ("result" in message or "error" in message)
        return None if known else _error(None, _INVALID_REQUEST, "no JSON-RPC request")
    if "id" not in message:
        return None  # a notification
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        asked = params.get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "whileai-world", "version": "1.0.0"},
        }
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {"tools": [_listed(tool) for tool in rollout.tools]}
    elif method == "tools/call":
        if not isinstance(params.get("name"), str):
            return _error(message["id"], _INVALID_PARAMS, "name must be text")
        result = await _called(rollout, params["name"], params.get("arguments") or {})
    else:
        return _error(message["id"], _METHOD_NOT_FOUND, f"{method} is not offered here")
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _listed(tool: Any) -> dict[str, Any]:
    listed = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
    if tool.kind is not None:
        listed["annotations"] = {"readOnlyHint": tool.kind != "write"}
    return listed


async def _called(rollout: Rollout, name: str, arguments: Any) -> dict[str, Any]:
    try:
        text, failed = await rollout.call(name, arguments), False
    except WhileaiError as err:
        text, failed = err.what, True
    except Exception as err:  # noqa: BLE001 - whatever a tool raises is the result of the call
        text, failed = f"{type(err).__name__}: {err}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}
