"""The four typed objects that a row is the projection of: Task, Rollout, Judgment, Marker.

Frozen pydantic models with the one projection to the flat row and back: `to_row` and `from_row` are inverse on
rows that the kernel wrote, and unknown keys survive. Readers that need only values should use the flat row;
this module costs the import of pydantic and the time of validation.

Example:
    >>> task = Task(prompt="2+2?", privileged={"reference": "4"})
    >>> row = to_row(task, Rollout(final_text="4"), Judgment(reward=1.0, status="ok"))
    >>> row["reward"], from_row(row).task == task
    (1.0, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from whileai_kernel.defaults import THRESHOLD
from whileai_kernel.errors import RowError
from whileai_kernel.messages import check_messages, final_text_of
from whileai_kernel.rows import KEY_ORDER, SCHEMA_VERSION, Row, content_id, ordered

__all__ = ["Judgment", "Marker", "Rollout", "RowParts", "Scorer", "Task", "from_row", "to_row"]

Status = Literal["ok", "missing", "invalid", "error", "timeout", "abstained"]
Outcome = Literal["completed", "truncated", "failed"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Task(_Frozen):
    """One situation that an agent is put in; never anything that a model produced.

    Attributes:
        task_id: Identity of the task; by default the hash of the prompt.
        prompt: What the user asks first.
        system_prompt: What the agent is told before.
        tools: OpenAI tool dicts; `x-kind` and `x-returns` beside `function` carry what that shape cannot.
        axes: Value of each axis of the situation, for example `{"stance": "hurried"}`.
        world: Seed, entities named in the ask, planned faults.
        privileged: What the agent must not see: reference, hidden state, rubric.
        split: `"train"`, `"holdout"` or another split; `None` when undecided.
        lineage: Where the task came from: writer, parent task, file.
    """

    task_id: str = ""
    prompt: str
    system_prompt: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    axes: dict[str, Any] = Field(default_factory=dict)
    world: dict[str, Any] = Field(default_factory=dict)
    privileged: dict[str, Any] = Field(default_factory=dict)
    split: str | None = None
    lineage: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _identity(self) -> Task:
        if not self.task_id:
            object.__setattr__(self, "task_id", content_id("task", self.prompt))
        return self


class Rollout(_Frozen):
    """One run of one policy on one task; never the verdict.

    Attributes:
        rollout_id: Identity of the rollout; by default a content hash (given by `to_row`).
        index: Number of the rollout within its task, from 0.
        policy: Who acted: name, model, version, prompt_hash, sampling.
        messages: The conversation in the one message model.
        final_text: Text of the last assistant turn (by default read from the messages), `None` when there is none.
        finish_reason: Why the last reply ended (`stop`, `length`, `tool_calls`, ...); `None` is unknown.
        outcome: How the run ended: `completed`, `truncated` or `failed`.
        error: Type and message when the run failed.
        usage: Tokens, seconds and cost as reported.
        logprobs: Log-probabilities and token ids as the server gave them.
        faults_fired: Faults of the world that really happened.
        seeded: Labels of the behaviours that a seeded agent planted; `None` for ordinary agents.
    """

    rollout_id: str = ""
    index: int = Field(default=0, ge=0, strict=True)
    policy: dict[str, Any] = Field(default_factory=dict)
    messages: tuple[dict[str, Any], ...] = ()
    final_text: str | None = None
    finish_reason: str | None = None
    outcome: Outcome = "completed"
    error: dict[str, Any] | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    logprobs: Any = None
    faults_fired: tuple[Any, ...] = ()
    seeded: tuple[str, ...] | None = None

    @field_validator("messages")
    @classmethod
    def _messages(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        check_messages(value)
        return value

    @model_validator(mode="after")
    def _final_text(self) -> Rollout:
        if "final_text" not in self.model_fields_set and self.messages:
            object.__setattr__(self, "final_text", final_text_of(self.messages))
        return self


class Scorer(_Frozen):
    """Who gave a verdict: full id, version, kind, and the parameters that shaped it."""

    id: str
    version: str | None = None
    kind: Literal["rule", "judge", "reward_model", "human"] = "rule"
    params: dict[str, Any] | None = None


class Judgment(_Frozen):
    """One verdict on one rollout, in three states: a reward, or not scored with the reason.

    Attributes:
        reward: Number in [0, 1], or `None` when not scored.
        status: `ok` exactly when there is a reward.
        reason: One sentence for people; never the reference answer.
        scorer: Who gave the verdict.
        evidence: What the verdict rests on, JSON-serialisable.
        threshold: Reward from which the rollout passes.
    """

    reward: float | None = Field(default=None, ge=0.0, le=1.0, allow_inf_nan=False, strict=True)
    status: Status = "missing"
    reason: str | None = None
    scorer: Scorer | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)
    threshold: float = Field(default=THRESHOLD.value, ge=0.0, le=1.0, allow_inf_nan=False, strict=True)

    @model_validator(mode="after")
    def _three_states(self) -> Judgment:
        if (self.reward is not None) != (self.status == "ok"):
            raise ValueError(f"reward {self.reward} does not go with status {self.status!r}")
        return self

    def columns(self) -> Row:
        """Return the judgment as keys of the flat row (empty reason, scorer and evidence are left out)."""
        out: Row = {"reward": self.reward, "status": self.status, "threshold": self.threshold}
        if self.reason is not None:
            out["reason"] = self.reason
        if self.scorer is not None:
            out["scorer"] = self.scorer.model_dump(exclude_none=True)
        if self.evidence:
            out["evidence"] = dict(self.evidence)
        return out


class Marker(_Frozen):
    """One observation on a rollout; 1.0 is the good outcome, for every marker; never the training reward."""

    name: str = Field(min_length=1)
    value: float | None = Field(default=None, ge=0.0, le=1.0, allow_inf_nan=False, strict=True)
    evidence: Any = None


@dataclass(frozen=True, slots=True)
class RowParts:
    """A flat row taken apart: the typed objects, the other verdicts, and the keys that no model knows."""

    task: Task
    rollout: Rollout
    judgment: Judgment
    judgments: tuple[Judgment, ...] = ()
    markers: tuple[Marker, ...] = ()
    extra: Row = field(default_factory=dict)


_TASK = tuple(Task.model_fields)
_ROLLOUT = tuple(Rollout.model_fields)
_JUDGMENT = tuple(Judgment.model_fields)
_ALWAYS = {"task_id", "rollout_id", "index", "prompt", "final_text"}
M = TypeVar("M", bound=_Frozen)


def to_row(
    task: Task,
    rollout: Rollout,
    judgment: Judgment | None = None,
    markers: Iterable[Marker] = (),
    *,
    judgments: Iterable[Judgment] = (),
    extra: Mapping[str, Any] | None = None,
) -> Row:
    """Project the typed objects to the flat row.

    Args:
        task: The situation.
        rollout: The run.
        judgment: The current verdict; without one the row is not scored (`missing`).
        markers: Observations; names must differ.
        judgments: Other verdicts, oldest first.
        extra: Keys that no model knows; they must not shadow a known key.

    Returns:
        A new row with keys in `rows.KEY_ORDER`; empty optional fields are left out.

    Raises:
        RowError: Marker names repeat, or `extra` shadows a known key.
    """
    row: Row = {"schema_version": SCHEMA_VERSION}
    for model in (task, rollout):
        for name, info in type(model).model_fields.items():
            value = getattr(model, name)
            if name in _ALWAYS or value != info.get_default(call_default_factory=True):
                row[name] = list(value) if isinstance(value, tuple) else value
    row.setdefault("outcome", rollout.outcome)
    if not rollout.rollout_id:
        row["rollout_id"] = content_id(
            "rollout", task.task_id, rollout.index, rollout.policy, list(rollout.messages), rollout.final_text
        )
    row.update((judgment or Judgment()).columns())
    marker_list = list(markers)
    row["markers"] = {m.name: m.value for m in marker_list}
    if len(row["markers"]) != len(marker_list):
        raise RowError("marker names repeat", why="one value per marker and row", fix="rename one", field="markers")
    evidence = {m.name: m.evidence for m in marker_list if m.evidence is not None}
    if evidence:
        row["marker_evidence"] = evidence
    others = [j.columns() for j in judgments]
    if others:
        row["judgments"] = others
    for key, value in (extra or {}).items():
        if key in KEY_ORDER:
            raise RowError(f"extra key {key!r} shadows a key of the row", fix="use another key", field=key)
        row[key] = value
    return ordered(row)


def _build(model: type[M], values: Mapping[str, Any], place: str = "") -> M:
    try:
        return model.model_validate(values)
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        if isinstance(known := first.get("ctx", {}).get("error"), RowError):
            raise known from None
        inside = ".".join(str(part) for part in first["loc"]) or next(iter(values), "")
        raise RowError(
            f"{model.__name__}: {first['msg']}",
            why=f"got {first.get('input')!r:.120}",
            fix="correct the field, or leave the key out",
            field=f"{place}.{inside}" if place else inside,
        ) from None


def _given(row: Any, names: Iterable[str] | None = None) -> Row:
    return {k: row[k] for k in (row if names is None else names) if row.get(k) is not None}


def _held(row: Mapping[str, Any], key: str, kind: type, empty: Any) -> Any:
    value = empty if row.get(key) is None else row[key]
    if not isinstance(value, kind):
        raise RowError(f"{key} must be a {kind.__name__}, not {type(value).__name__}", fix="see the schema", field=key)
    return value


def from_row(row: Mapping[str, Any]) -> RowParts:
    """Take a flat row apart into the typed objects.

    Raises:
        RowError: A known key has a value that its model does not accept; names the field.
    """
    rollout = _given(row, _ROLLOUT)
    if "final_text" in row:
        rollout["final_text"] = row["final_text"]
    verdict = _given(row, _JUDGMENT)
    verdict.setdefault("status", "ok" if "reward" in verdict else "missing")
    evidence = _held(row, "marker_evidence", Mapping, {})
    marks = _held(row, "markers", Mapping, {})
    stray = [name for name in evidence if name not in marks]
    if stray:
        raise RowError(f"there is no marker {stray[0]!r}", fix="name it in markers too", field="marker_evidence")
    others = [_held({"judgments": j}, "judgments", Mapping, {}) for j in _held(row, "judgments", list, [])]
    return RowParts(
        task=_build(Task, {"prompt": "", **_given(row, _TASK)}),
        rollout=_build(Rollout, rollout),
        judgment=_build(Judgment, verdict),
        judgments=tuple(_build(Judgment, _given(j), f"judgments[{i}]") for i, j in enumerate(others)),
        markers=tuple(
            _build(Marker, {"name": k, "value": v, "evidence": evidence.get(k)}, "markers") for k, v in marks.items()
        ),
        extra={k: v for k, v in row.items() if k not in KEY_ORDER},
    )
