"""Every number that shapes a result here, with its meaning and its source."""

from __future__ import annotations

from whileai_kernel.defaults import Sourced

__all__ = [
    "KEY_LENGTH",
    "MAX_BODY",
    "MAX_OUTPUT",
    "MAX_TURNS",
    "OPEN_CONVERSATIONS",
    "OPEN_ROLLOUTS",
    "TOOL_DEADLINE_S",
    "TOOL_THREADS",
]

MAX_TURNS = Sourced(30, "replies of the model before a framework's own loop is stopped", "convention, untested")
MAX_OUTPUT = Sourced(16 * 2**20, "bytes that a program or an endpoint may answer with", "convention, untested")
MAX_BODY = Sourced(64 * 2**20, "bytes of a request that the proxy reads", "convention, untested")
KEY_LENGTH = Sourced(
    16, "characters from which a bearer token is removed from recorded text too", "convention, untested"
)
OPEN_CONVERSATIONS = Sourced(
    10_000, "conversations that a proxy with a file keeps in memory, the latest ones", "convention, untested"
)
OPEN_ROLLOUTS = Sourced(1024, "rollouts of an agent whose base URLs stay open, the latest ones", "convention, untested")
TOOL_DEADLINE_S = Sourced(60.0, "seconds for one call of an MCP tool server", "convention, untested")
TOOL_THREADS = Sourced(64, "tool calls that run at once, over all rollouts", "convention, untested")
