"""What each kind of component must do: the protocols, and the small records that cross plugin borders.

Protocols over base classes: a component needs no import from here, it only has to fit. A registered target that
is a class is instantiated with the parameters of `make`; any other callable is the component itself.

Example:
    >>> def shared(row):
    ...     return set(row["final_text"].split()) & set(row["privileged"]["reference"].split()) != set()
    >>> isinstance(shared, Verifier)
    True
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "MESSAGE_LISTS",
    "Agent",
    "AgentContext",
    "Command",
    "Completion",
    "Example",
    "ExportReport",
    "Exporter",
    "FileExample",
    "Judge",
    "LedgerEntry",
    "Marker",
    "Model",
    "ReadProblem",
    "Register",
    "Report",
    "Selected",
    "Selector",
    "Source",
    "Statistic",
    "Verifier",
    "WriteRequest",
    "Writer",
]

RowLike = Mapping[str, Any]
# Names of an agent's only parameter that mean the whole conversation; see `Agent`.
MESSAGE_LISTS = ("messages", "history", "conversation", "chat", "dialogue", "turns")


class Register(Protocol):
    """What a `wai_register_<kind>` hook is given."""

    def __call__(
        self,
        name: str,
        target: str,
        *,
        summary: str = "",
        needs: str | None = None,
        capabilities: Collection[str] = frozenset(),
    ) -> None:
        """Register a component by name.

        Args:
            name: Bare name, unique within the plugin and kind; the full id is `<plugin>/<name>`.
            target: `"package.module:attribute"`, imported when the component is first made.
            summary: One line for lists and `--help`.
            needs: Extra of the distribution that brings the libraries which the target imports.
            capabilities: Words that callers may ask for, for example `"batch"`.
        """


@dataclass(frozen=True, slots=True)
class Example:
    """An input with its right answer, which a component ships so that it can be checked.

    Attributes:
        row: Input row.
        reward: Expected reward (verifier, judge) or value (marker); `None` is "not scored".
    """

    row: RowLike
    reward: float | None


@dataclass(frozen=True, slots=True)
class FileExample:
    """A small file in a source's own format, which the source ships so that it can be checked.

    Attributes:
        name: File name, with the ending that such files have.
        content: The bytes of the file.
        rows: Number of rows that it holds.
    """

    name: str
    content: bytes
    rows: int


class AgentContext(Protocol):
    """What an engine hands to an agent that has a parameter named `context`.

    Attributes:
        task: The task as the agent may see it: never `privileged`.
        index: Number of the rollout within its task.
        seed: Seed of this rollout; an agent that draws numbers draws them from here.
        tools: Tools of the task, as `tools.Tool`.
        deadline_s: Seconds that the rollout may take, or `None`.
    """

    task: RowLike
    index: int
    seed: int
    tools: Sequence[Any]
    deadline_s: float | None

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Call a tool in the world of the task and return the text of its result; faults happen here."""

    async def acall_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Call a tool as `call_tool` does, from an async agent: an own tool that waits does not hold up the others."""


@runtime_checkable
class Agent(Protocol):
    """Answers a user: `f(message)`, `f(messages)`, `f(messages, tools)`, each with `context` if named; may be async.

    With two parameters the first is the list of messages. A single one is the list when its name is in `MESSAGE_LISTS`
    or its annotation says list; under any other name it is the text of the user's last message. An exception whose
    attribute `permanent` is true (a wrong key, a missing program) says that no other rollout can fare better.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return text, `{"steps", "final_text"}`, a list of messages, or a Rollout."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply of a model.

    Attributes:
        message: The assistant message, in the one message model.
        finish_reason: Why it ended, as the server says; `None` is unknown.
        model: The model that answered, as the server names it.
        usage: Tokens as the server counts them: `prompt_tokens`, `completion_tokens`.
        cost_usd: Cost in US dollars; `None` is unknown, never 0 for unknown.
        logprobs: Log-probabilities of the reply's tokens, as the server gives them.
        prompt_ids: Token ids of the prompt, when the server gives them.
        completion_ids: Token ids of the reply, when the server gives them.
        attempts: Requests that were made for it; 0 when it came from a cache.
        seconds: Wall-clock seconds, waits included.
    """

    message: dict[str, Any]
    finish_reason: str | None = None
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    logprobs: Any = None
    prompt_ids: Sequence[int] | None = None
    completion_ids: Sequence[int] | None = None
    attempts: int = 1
    seconds: float = 0.0


@runtime_checkable
class Model(Protocol):
    """A chat model behind some server or library; its repr never shows a key."""

    id: str

    async def complete(
        self,
        messages: Sequence[RowLike],
        tools: Sequence[RowLike] = (),
        sampling: RowLike | None = None,
        *,
        schema: RowLike | None = None,
        deadline_s: float | None = None,
    ) -> Completion:
        """Answer a conversation.

        Args:
            messages: Messages in the one message model.
            tools: OpenAI tool dicts; keys that begin with `x-` are not sent.
            sampling: `temperature`, `top_p`, `max_tokens`, `seed`, `stop`, `logprobs` and what the server knows.
            schema: JSON schema that the reply must satisfy, where the server can hold it to one.
            deadline_s: Seconds for the whole call, retries and waits included.
        """


@runtime_checkable
class Verifier(Protocol):
    """A program that grades a row: deterministic, never changes the row, never passes an empty answer."""

    def __call__(self, row: RowLike, /) -> Any:
        """Return a verdict that `verdicts.to_judgment` reads; may be async."""


@runtime_checkable
class Judge(Protocol):
    """A model or a person that grades a row; what cannot be read is not scored."""

    def __call__(self, row: RowLike, /) -> Any:
        """Return a verdict that `verdicts.to_judgment` reads; may be async."""


@runtime_checkable
class Marker(Protocol):
    """An observation on a row: 1.0 is the good outcome; `None` when it does not apply."""

    def __call__(self, row: RowLike, /) -> float | Mapping[str, Any] | None:
        """Return a value in [0, 1], `None`, or `{"value": ..., "evidence": ...}`."""


class Report(Protocol):
    """What a statistic returns: prints itself on one line and becomes a plain dict."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""


@runtime_checkable
class Statistic(Protocol):
    """Rows in, a report out; says how many rows it rests on and how many it could not use."""

    def __call__(self, rows: Iterable[RowLike], /, **params: Any) -> Report:
        """Return the report."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What happened to one input row of a selection, and the one reason why."""

    position: int
    rollout_id: str
    task_id: str
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection: kept rows (the input objects, unchanged), one ledger entry per input row, and figures."""

    rows: Sequence[RowLike]
    ledger: Sequence[LedgerEntry]
    report: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        left = Counter(entry.reason for entry in self.ledger if not entry.kept)
        why = ", ".join(f"{n} {reason}" for reason, n in left.most_common())
        return f"kept {len(self.rows)} of {len(self.ledger)} rows{f' (left out: {why})' if why else ''}"

    def __repr__(self) -> str:
        return f"<Selected {self}>"


@runtime_checkable
class Selector(Protocol):
    """Rows in, kept rows and a ledger out."""

    def __call__(self, rows: Iterable[RowLike], /, **params: Any) -> Selected:
        """Return the selection; entries of the ledger are in input order."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, what it left out and why, and how a trainer reads it.

    Attributes:
        path: File or folder that was written.
        written: Records written.
        dropped: Number of rows left out, by reason.
        notes: Sentences for people, for example which trainer switch enforces the loss mask.
        details: Further figures of the exporter.
    """

    path: Path
    written: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "path": str(self.path),
            "written": self.written,
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "details": dict(self.details),
        }

    def __str__(self) -> str:
        left = ", ".join(f"{n} {reason}" for reason, n in self.dropped.items())
        tail = "".join(f"\n  {note}" for note in self.notes)
        return f"wrote {self.written} rows to {self.path.name}{f' (left out: {left})' if left else ''}{tail}"

    def __repr__(self) -> str:
        return f"<ExportReport {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


@runtime_checkable
class Exporter(Protocol):
    """Rows to a file; never writes `privileged`; atomic."""

    def export(self, rows: Iterable[RowLike], path: Path, *, overwrite: bool = False, **params: Any) -> ExportReport:
        """Write the rows and report."""


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """A record that a source could not read: where it stands and why; the other records are read."""

    path: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.where}: {self.message}"


@runtime_checkable
class Source(Protocol):
    """Reads a foreign file as rows; recognises it by content."""

    def sniff(self, path: Path, head: bytes) -> float:
        """Return how sure it is that the file is its own, from 0 (not) to 1, from the first bytes."""

    def read(self, path: Path, *, on_problem: Callable[[ReadProblem], None]) -> Iterator[dict[str, Any]]:
        """Yield rows; a record that cannot be read costs that record alone and is reported."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What a situation writer is asked for.

    Attributes:
        situations: Values of the axes, one mapping per task.
        tools: Tools of the agent, as `tools.Tool`.
        system_prompt: What the agent is told.
        seed: Seed of the whole set; the same request gives the same tasks.
        options: Options of the writer.
    """

    situations: Sequence[Mapping[str, Any]]
    tools: Sequence[Any] = ()
    system_prompt: str | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Writer(Protocol):
    """Writes one task per situation, in order."""

    def write(self, request: WriteRequest) -> Iterator[dict[str, Any]]:
        """Yield tasks as the task part of a flat row."""


@runtime_checkable
class Command(Protocol):
    """A sub-command of `wai`; heavy imports belong inside `run`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work and return the exit code."""
