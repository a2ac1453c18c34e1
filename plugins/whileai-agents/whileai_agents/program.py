"""An agent that is a program: JSON on stdin, its answer on stdout, its rollout in the environment.

The program is started for each turn. It finds the conversation on stdin, its model at `OPENAI_BASE_URL` (when a model
is given here) and the tools of its world, faults included, at `WHILEAI_MCP_URL`. It answers with text, or with
`{"final_text": ...}` or `{"messages": [...]}`; what went through the proxy need not be reported. A deadline, an
interrupt and the end of the turn kill its whole process group.

Example:
    >>> ProgramAgent(["python", "my_agent.py"]).name
    'my_agent.py'
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_agents import defaults as d
from whileai_agents.driver import Driver, read_reply, request_of, split_command
from whileai_agents.failures import AgentError
from whileai_agents.proxying import Proxy
from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import Message

__all__ = ["ProgramAgent", "read_output"]

_CODE = 2**20  # bytes up to which a file is taken for code
_TAIL = 2000  # characters of what a program wrote to stderr that an error shows


class ProgramAgent:
    """A program as an agent.

    Args:
        argv: The program and its arguments, as a list or as one line.
        model: The model that the program finds at `OPENAI_BASE_URL`, or its spec; `None` leaves its environment alone.
        proxy: A running proxy, instead of `model`.
        env: Further environment variables.
        cwd: Working directory.
        name: Name on the rows; by default the program's.
        max_output: Bytes that it may write to stdout.
    """

    def __init__(
        self,
        argv: Sequence[str] | str,
        model: Any = None,
        *,
        proxy: Proxy | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
        max_output: int = d.MAX_OUTPUT.value,
    ) -> None:
        words = split_command(argv) if isinstance(argv, str) else [str(word) for word in argv]
        if not words:
            raise ParameterError("a program needs a name", fix="for example exec:python my_agent.py")
        self.argv = tuple(words)
        self.env, self.cwd, self.max_output = dict(env or {}), None if cwd is None else str(cwd), max_output
        self.code = _digest([Path(self.cwd or ".") / word for word in words])
        self.driver = Driver(model, proxy)
        plain = [word for word in words if not word.startswith("-")]
        script = next((word for word in plain[1:] if word.endswith((".py", ".js", ".ts", ".sh"))), None)
        self.name = name or Path(script or words[0]).name
        self.model_id = self.driver.model_id
        self.policy = self.driver.policy(self.name)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no file and no network, for the conformance kit."""
        from whileai_agents.scripted import Scripted, lookup

        return {"argv": [sys.executable, "-c", _EXAMPLE], "model": Scripted(lookup)}

    def __repr__(self) -> str:
        return f"ProgramAgent({list(self.argv)!r})"

    async def __call__(self, messages: list[Message], context: Any) -> Any:
        """Run the program for one turn."""
        rollout = self.driver.rollout(context)
        asked = request_of(messages, context, rollout, self.driver.has_model)
        environment = {**os.environ, **self.driver.environment(rollout), **self.env}
        text = await self._run(json.dumps(asked).encode("ascii"), environment)
        return read_reply(read_output(text), rollout, messages, self.driver.has_model)

    async def _run(self, given: bytes, environment: Mapping[str, str]) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(environment),
                cwd=self.cwd,
                start_new_session=os.name == "posix",
            )
        except OSError as err:
            raise AgentError(
                f"{self.argv[0]!r} cannot be started", why=str(err), fix="check the command", permanent=True
            ) from err
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            _, out, complaints = await asyncio.gather(
                _feed(process.stdin, given), _read(process.stdout, self.max_output), _tail(process.stderr)
            )
            code = await process.wait()
        finally:
            await _end(process)
        if code != 0:
            lines = complaints.strip().splitlines()
            raise AgentError(
                f"the program {self.name} ended with exit code {code}: {lines[-1] if lines else 'it wrote no reason'}",
                why=complaints.strip()[-_TAIL:],
                fix="run it by hand with a conversation on stdin",
            )
        return out.decode("utf-8", "replace")


def _digest(paths: Iterable[Path]) -> str:
    """Return a hash of the files among the arguments, so that a journal is not resumed with another program."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            if path.is_file() and path.stat().st_size <= _CODE:
                digest.update(path.read_bytes())
        except (OSError, ValueError):
            continue  # no path at all, or none that can be read: then its name is what is known of it
    return digest.hexdigest()[:16]


_ANSWERS = frozenset({"final_text", "messages", "steps", "error", "choices", "role"})


def read_output(text: str) -> Any:
    """Read what a program wrote: an answer as JSON, logs with such JSON as the last line, or text.

    JSON that is no answer is text: an agent may well be asked for JSON.
    """
    text = text.strip()
    for part in (text, text.rpartition("\n")[2]):
        if part.startswith(("{", "[")):
            try:
                value = json.loads(part)
            except (ValueError, RecursionError):
                continue
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, dict) and ("role" in first if isinstance(value, list) else _ANSWERS & set(first)):
                return value
    return text


async def _feed(stream: asyncio.StreamWriter, data: bytes) -> None:
    try:
        stream.write(data)
        await stream.drain()
    except ConnectionError:
        return  # the program does not read its input, and need not
    finally:
        stream.close()


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    out = bytearray()
    while data := await stream.read(2**16):
        out += data
        if len(out) > limit:
            raise AgentError(f"the program wrote more than {limit} bytes", fix="write logs to stderr")
    return bytes(out)


async def _tail(stream: asyncio.StreamReader) -> str:
    out = b""
    while data := await stream.read(2**16):
        out = (out + data)[-4 * _TAIL :]
    return out.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the program and whatever it has started and left behind, and close its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    # No public way closes the pipes, which a process outside the group may still hold.
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()


_EXAMPLE = """
import json, os, sys, urllib.request
asked = json.load(sys.stdin)
body = json.dumps({"model": "any", "messages": asked["messages"]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
reply = json.load(urllib.request.urlopen(request))
print(reply["choices"][0]["message"]["content"])
"""
