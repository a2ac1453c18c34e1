"""Exports of tracing platforms: Langfuse, LangSmith, and traces of the OpenAI Agents SDK.

All three keep the model calls of a trace; a call whose history another call continues is part of that conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score
from whileai_traces.defaults import CERTAIN
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping
from whileai_traces.formats.items import is_items, items_to_messages
from whileai_traces.formats.turns import ModelCall, decoded, emit

__all__ = ["AgentsSDK", "Langfuse", "LangSmith"]

NO_CONTENT = "content not captured: the call holds no messages"
ONLY_AN_ID = (
    "content not captured: the SDK exports a call of the Responses API as its id alone ({}); a trace processor that "
    "writes span_data.input and span_data.response, or a chat completions model, records the messages"
)
LANGCHAIN = {
    "human": "user", "HumanMessage": "user", "ai": "assistant", "AIMessage": "assistant", "AIMessageChunk": "assistant",
    "system": "system", "SystemMessage": "system", "tool": "tool", "ToolMessage": "tool", "function": "tool",
    "FunctionMessage": "tool", "developer": "developer", "user": "user", "assistant": "assistant",
}  # fmt: skip


def _history(value: Any) -> list[Mapping[str, Any]]:
    """Return the messages of a recorded input: a list, an object with messages, text, or LangChain's own shapes."""
    value = decoded(value)
    if isinstance(value, Mapping):
        for key in ("messages", "input", "prompt", "prompts", "question"):
            if value.get(key):
                return _history(value[key])
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    items = as_list(value)
    if len(items) == 1 and isinstance(items[0], list):
        items = items[0]
    if is_items(items):
        return list(items_to_messages(items)[0])
    if items and all(isinstance(i, str) for i in items):
        return [{"role": "user", "content": i} for i in items]
    return [_message(as_mapping(i)) for i in items]


def _message(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a chat message; LangChain's serialised ones have a class name or a type instead of a role."""
    if isinstance(value.get("role"), str):
        return value
    inner = as_mapping(value.get("kwargs")) or as_mapping(value.get("data")) or value
    kind = as_list(value.get("id"))[-1:] or [inner.get("type") or value.get("type")]
    out: dict[str, Any] = {"role": LANGCHAIN.get(str(kind[0]), str(kind[0])), "content": inner.get("content", "")}
    calls = as_list(inner.get("tool_calls")) or as_list(as_mapping(inner.get("additional_kwargs")).get("tool_calls"))
    if calls:
        out["tool_calls"] = [
            {"id": c.get("id") or "", "name": c.get("name"), "arguments": c["args"]} if "args" in c else c
            for c in map(as_mapping, calls)
        ]
    if inner.get("tool_call_id"):
        out["tool_call_id"] = inner["tool_call_id"]
    return out


def _replies(value: Any) -> list[Mapping[str, Any]]:
    """Return the answers of a recorded output, one message per choice."""
    value = decoded(value)
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}] if value else []
    if isinstance(value, list):
        messages = _history(value)
        return [m for m in messages if m.get("role") == "assistant"] or list(messages)
    value = as_mapping(value)
    for choice in (
        as_list(value.get("choices")),
        [g for group in as_list(value.get("generations")) for g in (group if isinstance(group, list) else [group])],
    ):
        found = [
            _message(as_mapping(as_mapping(c).get("message")))
            if as_mapping(c).get("message")
            else {"role": "assistant", "content": as_mapping(c).get("text", "")}
            for c in choice
        ]
        if found:
            return found
    if value.get("role") or value.get("kwargs") or value.get("lc"):
        return [_message(value)]
    if "content" in value or "tool_calls" in value:
        return [{"role": "assistant", **value}]
    for key in ("message", "messages", "output", "completion", "text"):
        if value.get(key):
            return _replies(value[key])[-1:]
    return []


def _tools(value: Any) -> list[Any]:
    return as_list(as_mapping(decoded(value)).get("tools"))


ALIASES = {
    "trace_id": "traceId", "parent_observation_id": "parentObservationId", "start_time": "startTime",
    "end_time": "endTime",
    "providedModelName": "model", "provided_model_name": "model", "model_parameters": "modelParameters",
    "usage_details": "usageDetails", "status_message": "statusMessage", "session_id": "sessionId", "user_id": "userId",
    "trace_name": "traceName",
}  # fmt: skip
"""Names of an observation in exports to blob storage and in the observations API v2, to those of the older API."""
TRACE_KEYS = ("name", "sessionId", "userId", "tags", "metadata")


def _renamed(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an observation with the names of the older API."""
    out: dict[str, Any] = {}
    for key, value in observation.items():
        name = ALIASES.get(str(key), str(key))
        if out.get(name) is None:
            out[name] = value
    return out


def _is_observation(record: Mapping[str, Any]) -> bool:
    keys = {ALIASES.get(str(k), str(k)) for k in record}
    own = {"parentObservationId", "usageDetails", "modelParameters", "completionStartTime", "completion_start_time"}
    return {"traceId", "type"} <= keys and bool(keys & own)


class Langfuse(JsonSource):
    """Traces with observations and scores (API, download), or observations one by one (API v2, blob storage)."""

    name = "langfuse"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when a trace lists observations, or records are observations."""
        for record in map(as_mapping, records):
            keys = record.keys()
            if "observations" in keys and keys & {"scores", "name", "input", "timestamp", "trace"}:
                return CERTAIN.value
            first = as_mapping(next(iter(as_list(record.get("data"))), None))
            if _is_observation(record) or _is_observation(first) or "observations" in first:
                return CERTAIN.value
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; scores of the trace are its verdicts."""
        calls: list[ModelCall] = []
        for where, record in records:
            record = as_mapping(record)
            for item in map(as_mapping, as_list(record.get("data")) or [record]):
                if "observations" in item:
                    calls += self._trace(where, {**as_mapping(item.get("trace")), **item}, build)
                elif "traceId" in item or "trace_id" in item:
                    call = self._call(where, _renamed(item), None, [], {})
                    if call is not None:
                        calls.append(call)
                    elif _is_generation(item):
                        build.problem(where, NO_CONTENT)
                else:
                    build.problem(where, "is neither a trace nor an observation")
        yield from emit(calls, build)

    def _trace(self, where: str, trace: Mapping[str, Any], build: RowBuilder) -> list[ModelCall]:
        scores = [_langfuse_score(as_mapping(s)) for s in as_list(trace.get("scores"))]
        rest = {k: trace[k] for k in TRACE_KEYS if trace.get(k)}
        calls = []
        for observation in map(as_mapping, as_list(trace.get("observations"))):
            call = self._call(where, _renamed(observation), str(trace.get("id")), scores, rest)
            if call is not None:
                calls.append(call)
            elif _is_generation(observation):
                build.problem(where, NO_CONTENT)
        if calls:
            return calls
        if trace.get("input") and trace.get("output"):
            history, replies = _history(trace["input"]), _replies(trace["output"])
            return [ModelCall(where, str(trace.get("id")), "", history, replies, {}, scores, rest)]
        build.problem(where, "is a trace without model calls and without input and output")
        return []

    def _call(
        self, where: str, observation: Mapping[str, Any], group: str | None, scores: list[Score], rest: dict[str, Any]
    ) -> ModelCall | None:
        if not _is_generation(observation):
            return None
        history, replies = _history(observation.get("input")), _replies(observation.get("output"))
        if not history and not replies:
            return None
        model = observation.get("model")
        usage = as_mapping(decoded(observation.get("usageDetails"))) or as_mapping(observation.get("usage"))
        sampling = as_mapping(decoded(observation.get("modelParameters")))
        columns: dict[str, Any] = {
            "tools": _tools(observation.get("input")),
            "usage": dict(usage),
            "policy": {"model": model, **({"sampling": dict(sampling)} if sampling else {})} if model else None,
        }
        if observation.get("level") == "ERROR":
            columns |= {
                "outcome": "failed",
                "error": {"type": "recorded", "message": str(observation.get("statusMessage"))},
            }
        return ModelCall(
            where,
            str(observation.get("traceId")) if group is None else group,
            str(observation.get("startTime") or ""),
            history,
            replies,
            columns,
            scores,
            {**rest, "observation": observation.get("id")},
        )


def _is_generation(observation: Mapping[str, Any]) -> bool:
    return str(observation.get("type")).upper() == "GENERATION"


def _langfuse_score(score: Mapping[str, Any]) -> Score:
    kind = {"ANNOTATION": "human", "EVAL": "judge"}.get(str(score.get("source")).upper(), "rule")
    value = score.get("value")
    if str(score.get("dataType")).upper() == "BOOLEAN" and value in (0, 1):
        value = bool(value)
    return Score(
        f"langfuse/{score.get('name')}",
        value if value is not None else score.get("stringValue"),
        kind=kind,
        reason=score.get("comment"),
    )


class LangSmith(JsonSource):
    """Runs of LangSmith, as JSON Lines or as one list; calls of a trace are the runs of type `llm`."""

    name = "langsmith"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when records have a run type and inputs."""
        return CERTAIN.value if any({"run_type", "inputs"} <= as_mapping(r).keys() for r in records) else 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation; feedback of the root run is its verdict."""
        calls: list[ModelCall] = []
        feedback: dict[str, list[Score]] = {}
        for where, record in records:
            for run in _tree(as_mapping(record)):
                group = str(run.get("trace_id") or run.get("id"))
                for name, stats in as_mapping(run.get("feedback_stats")).items():
                    feedback.setdefault(group, []).append(
                        Score(
                            f"langsmith/{name}",
                            as_mapping(stats).get("avg"),
                            evidence={"n": as_mapping(stats).get("n")},
                        )
                    )
                if "run_type" not in run:
                    build.problem(where, "is no run: it has no run_type")
                elif run["run_type"] == "llm":
                    call = self._call(where, run, group)
                    if call is None:
                        build.problem(where, NO_CONTENT)
                    else:
                        calls.append(call)
        for call in calls:
            call.scores = feedback.get(call.group, [])
        yield from emit(calls, build)

    def _call(self, where: str, run: Mapping[str, Any], group: str) -> ModelCall | None:
        history, replies = _history(run.get("inputs")), _replies(run.get("outputs"))
        if not history and not replies:
            return None
        extra = as_mapping(run.get("extra"))
        invocation = as_mapping(extra.get("invocation_params"))
        metadata = as_mapping(extra.get("metadata"))
        model = invocation.get("model") or invocation.get("model_name") or metadata.get("ls_model_name")
        usage = as_mapping(as_mapping(run.get("outputs")).get("usage_metadata")) or {
            k: run[k] for k in ("prompt_tokens", "completion_tokens", "total_tokens") if run.get(k) is not None
        }
        columns: dict[str, Any] = {
            "tools": as_list(invocation.get("tools")) or _tools(run.get("inputs")),
            "usage": dict(usage),
            "policy": {"model": model} if model else None,
        }
        if run.get("error"):
            columns |= {"outcome": "failed", "error": {"type": "recorded", "message": str(run["error"])}}
        rest = {k: run[k] for k in ("id", "name", "tags") if run.get(k)}
        return ModelCall(
            where,
            group,
            str(run.get("dotted_order") or run.get("start_time") or ""),
            history,
            replies,
            columns,
            [],
            rest,
        )


def _tree(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield run
    for child in as_list(run.get("child_runs")):
        yield from _tree({"trace_id": run.get("trace_id") or run.get("id"), **as_mapping(child)})


class AgentsSDK(JsonSource):
    """Traces and spans of the OpenAI Agents SDK, one object per record or a batch under `data`."""

    name = "agents_sdk"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when records are traces or their spans."""
        flat = [
            as_mapping(item) for record in records for item in (as_list(as_mapping(record).get("data")) or [record])
        ]
        return CERTAIN.value if any(str(r.get("object")).startswith("trace") for r in flat) else 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per conversation of an agent."""
        calls: list[ModelCall] = []
        traces: dict[str, Mapping[str, Any]] = {}
        for where, record in records:
            for item in map(as_mapping, as_list(as_mapping(record).get("data")) or [record]):
                if item.get("object") == "trace":
                    traces[str(item.get("id"))] = item
                    continue
                data = as_mapping(item.get("span_data"))
                if item.get("object") != "trace.span":
                    build.problem(where, "is neither a trace nor a span")
                elif data.get("type") in ("generation", "response"):
                    call = self._call(where, item, data)
                    if call is None:
                        build.problem(
                            where, ONLY_AN_ID.format(data["response_id"]) if data.get("response_id") else NO_CONTENT
                        )
                    else:
                        calls.append(call)
        for call in calls:
            trace = traces.get(call.group, {})
            call.rest |= {k: trace[k] for k in ("workflow_name", "group_id", "metadata") if trace.get(k)}
        yield from emit(calls, build)

    def _call(self, where: str, span: Mapping[str, Any], data: Mapping[str, Any]) -> ModelCall | None:
        response = as_mapping(data.get("response"))
        history = _history(data.get("input"))
        output = data.get("output") or response.get("output")
        replies: list[Mapping[str, Any]] = (
            list(items_to_messages(as_list(output))[0]) if is_items(as_list(output)) else _replies(output)
        )
        if not history and not replies:
            return None
        told = response.get("instructions")
        if isinstance(told, str) and told and not any(m.get("role") == "system" for m in history):
            history.insert(0, {"role": "system", "content": told})
        error = as_mapping(span.get("error"))
        model = data.get("model") or response.get("model")
        sampling = {k: v for k, v in as_mapping(data.get("model_config")).items() if v is not None and k != "base_url"}
        columns: dict[str, Any] = {
            "tools": as_list(response.get("tools")),
            "usage": dict(as_mapping(data.get("usage"))),
            "policy": {"model": model, **({"sampling": sampling} if sampling else {})} if model else None,
        }
        if error:
            columns |= {"outcome": "failed", "error": {"type": "recorded", "message": str(error.get("message"))}}
        return ModelCall(
            where,
            str(span.get("trace_id")),
            str(span.get("started_at") or ""),
            history,
            replies,
            columns,
            [],
            {"span": span.get("id")},
        )
