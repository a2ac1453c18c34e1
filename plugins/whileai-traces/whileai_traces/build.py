"""A recorded conversation becomes a row: the one place where every format ends.

What is here: bringing the messages to the one model, refusing what could only be guessed, marking what is
incomplete, turning recorded scores into judgments with their scorer named, ids, and the order of keys. What is
not here: the shape of any format.

Example:
    >>> from pathlib import Path
    >>> build = RowBuilder("mine", Path("runs.jsonl"), on_problem=print)
    >>> row = build.row("line 1", [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
    ...                 scores=[Score("mine/right", True)])
    >>> row["prompt"], row["final_text"], row["reward"], row["scorer"]["id"]
    ('2+2?', '4', 1.0, 'mine/right')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whileai_kernel.errors import RowError
from whileai_kernel.messages import final_text_of, normalise_messages, text_of, validate_messages
from whileai_kernel.protocols import ReadProblem
from whileai_kernel.rows import SCHEMA_VERSION, Row, content_id, ordered
from whileai_kernel.tools import as_tool
from whileai_kernel.verdicts import jsonable, to_judgment
from whileai_traces.files import OnProblem

__all__ = ["RowBuilder", "Score", "leftovers", "openai_tool"]

REFUSED = ("ambiguous_result", "duplicate_call_id")
"""Problems that make a record unusable: going on would mean to guess which result belongs to which call."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score as a tool recorded it.

    Attributes:
        scorer: Name of the scorer, with the format in front: `"inspect/match"`.
        value: What was recorded: anything that `whileai_kernel.verdicts.to_judgment` reads. What is no number in
            [0, 1] becomes a judgment that is not scored, with the recorded value as evidence.
        kind: `rule`, `judge`, `reward_model` or `human`.
        version: Version of the scorer, when it is known.
        reason: What the scorer said.
        evidence: What else was recorded with the score.
        threshold: Reward from which the tool counted a pass, when it said so.
    """

    scorer: str
    value: Any
    kind: str = "rule"
    version: str | None = None
    reason: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None

    def columns(self) -> Row:
        """Return the judgment as keys of the flat row."""
        verdict: dict[str, Any] = {"reward": self.value, "reason": self.reason, **self.evidence}
        if self.threshold is not None:
            verdict["threshold"] = self.threshold
        scorer = {"id": self.scorer, "version": self.version, "kind": self.kind}
        columns = to_judgment(verdict, scorer)[0].columns()
        if columns["status"] == "invalid" and self.value is not None:
            columns["evidence"] = {**columns.get("evidence", {}), "recorded": jsonable(self.value)}
        return columns


def leftovers(record: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Return the keys of a record that its reader did not use."""
    known = set(used)
    return {str(k): v for k, v in record.items() if k not in known}


def openai_tool(value: Any) -> dict[str, Any] | None:
    """Return a recorded tool schema as an OpenAI tool dict, or `None` when it names no tool.

    OpenAI tools that are already in the right shape are kept as they are, unknown keys included.
    """
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping) and value["function"].get("name"):
        return {"type": "function", **value}
    if not isinstance(value, Mapping) or not value.get("name"):
        return None
    return as_tool(dict(value)).to_openai()


@dataclass(slots=True)
class RowBuilder:
    """Builds the rows of one file: counts rollouts per task and keeps the name of the format and of the file.

    Attributes:
        source: Name of the format; leftovers go under this key of the row.
        path: The file.
        on_problem: Receives what could not be read.
        user_ends: The format ends a complete conversation with a user message.
    """

    source: str
    path: Path
    on_problem: OnProblem
    user_ends: bool = False
    _counts: dict[str, int] = field(default_factory=dict)

    def problem(self, where: str, message: str) -> None:
        """Report one record, or one part of it, that could not be read."""
        self.on_problem(ReadProblem(str(self.path), where, message))

    def row(
        self,
        where: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        task_id: str | None = None,
        index: int | None = None,
        scores: Sequence[Score] = (),
        tools: Iterable[Any] = (),
        privileged: Mapping[str, Any] | None = None,
        rest: Mapping[str, Any] | None = None,
        outcome: str | None = None,
        finish_reason: str | None = None,
        **columns: Any,
    ) -> Row | None:
        """Return the row of one recorded conversation, or report it and return `None`.

        Args:
            where: Place in the file, for example `line 3`.
            messages: The conversation, in any shape that `normalise_messages` reads.
            task_id: Identity of the task; by default the hash of what came before the first reply.
            index: Number of the rollout in its task; by default counted in the order of the file.
            scores: Recorded scores; the first is the row's verdict, the others are kept beside it.
            tools: Recorded tool schemas.
            privileged: Reference, rubric, hidden goal.
            rest: What the reader did not understand, kept under the name of the format.
            outcome: How the run ended, when the file says so.
            finish_reason: Why the last reply ended, when the file says so.
            columns: Other keys of the row (`policy`, `usage`, `error`, `axes`, ...); empty ones are left out.
        """
        try:
            chat = normalise_messages(messages)
            if not chat:
                raise RowError("the conversation is empty")
            found = validate_messages(chat, ends_on_call=True)
            refused = [p for p in found if p.code in REFUSED]
            if refused:
                raise RowError(f"{refused[0]}; such a record is refused, not guessed")
            schemas = [tool for tool in map(openai_tool, tools) if tool is not None]
        except RowError as err:
            self.problem(where, err.what if not err.field else str(err).split("\n")[0])
            return None
        head = chat[: next((i for i, m in enumerate(chat) if m["role"] == "assistant"), len(chat))]
        key = task_id if task_id else content_id("task", [[m["role"], m["content"]] for m in head])
        if index is None:
            index = self._counts.get(key, -1) + 1
        self._counts[key] = max(index, self._counts.get(key, -1))
        incomplete = self._incomplete(chat, [p.message for p in found if p.code != "no_assistant"])
        system = next((m["content"] for m in head if m["role"] in ("system", "developer")), None)
        row: Row = {
            "schema_version": SCHEMA_VERSION,
            "task_id": key,
            "rollout_id": content_id("rollout", self.source, key, index, chat),
            "index": index,
            "prompt": next((text_of(m["content"]) for m in chat if m["role"] == "user"), ""),
            "final_text": final_text_of(chat),
            "reward": None,
            "status": "missing",
            "markers": {},
            "messages": chat,
            "finish_reason": finish_reason,
            "outcome": outcome or ("truncated" if finish_reason == "length" or incomplete else "completed"),
            "lineage": {"source": self.source, "file": self.path.name, "where": where},
        }
        if incomplete:
            row["lineage"]["incomplete"] = incomplete
        if scores:
            row.update(scores[0].columns())
        if len(scores) > 1:
            row["judgments"] = [score.columns() for score in scores[1:]]
        if system:
            row["system_prompt"] = system
        if schemas:
            row["tools"] = schemas
        if privileged:
            row["privileged"] = dict(privileged)
        row.update({k: v for k, v in columns.items() if v not in (None, {}, [], ())})
        if rest:
            row[self.source] = dict(rest)
        return ordered(row)

    def _incomplete(self, chat: Sequence[Mapping[str, Any]], found: Sequence[str]) -> str | None:
        last = chat[-1]
        if last["role"] == "assistant" and last.get("tool_calls"):
            return "ends on a call without a result"
        if last["role"] == "tool" and not self.user_ends:
            return "ends on a tool result"
        if last["role"] == "user" and not self.user_ends:
            return "ends on a user message"
        if not any(m["role"] == "assistant" for m in chat):
            return "no reply was recorded"
        return found[0] if found else None
