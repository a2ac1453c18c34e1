"""Results of the verifiers library: trees of nodes (`traces.jsonl`, v1) and completions (`results.jsonl`, before).

A v1 trace is a tree; each path from the root to a leaf is a conversation of its own, and so a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score, leftovers
from whileai_traces.defaults import CERTAIN, LIKELY
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping

__all__ = ["VerifiersResults"]

TASK_FIELDS = (
    "id", "idx", "name", "description", "prompt", "system_prompt", "image", "workdir", "agent_user", "skills",
    "network_allow", "network_block", "artifacts", "artifact_max_bytes", "timeout", "resources",
)  # fmt: skip
"""Fields of a task that the library itself defines; what an environment adds (answers, tests) is not the agent's."""
REFERENCES = ("answer", "reference", "solution")


class VerifiersResults(JsonSource):
    """Episodes and traces of verifiers 0.4, and result rows of earlier versions."""

    name = "verifiers"

    def sniff_records(self, records: list[Any]) -> float:
        """Certain for traces of nodes, likely for result rows."""
        for record in records:
            record = as_mapping(record)
            first = as_mapping(next(iter(as_list(record.get("traces"))), None))
            if (
                "nodes" in first
                or ("nodes" in record and "rewards" in record)
                or ("traces" in record and "env" in record)
            ):
                return CERTAIN.value
            if {"completion", "prompt", "reward"} <= record.keys() and record.keys() & {
                "example_id",
                "answer",
                "metrics",
                "is_completed",
            }:
                return LIKELY.value + 0.2
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per path of a trace, or per result row."""
        for where, record in records:
            record = as_mapping(record)
            traces = as_list(record.get("traces")) if "traces" in record else ([record] if "nodes" in record else [])
            if "completion" in record:
                yield from self._result(where, record, build)
            elif not traces:
                build.problem(where, "has neither traces nor a completion")
            for number, trace in enumerate(traces, start=1):
                yield from self._trace(
                    f"{where}, trace {number}" if len(traces) > 1 else where, as_mapping(trace), record, build
                )

    def _trace(
        self, where: str, trace: Mapping[str, Any], episode: Mapping[str, Any], build: RowBuilder
    ) -> Iterator[Row]:
        nodes = [as_mapping(n) for n in as_list(trace.get("nodes"))]
        task = as_mapping(trace.get("task")) or as_mapping(episode.get("task"))
        data = as_mapping(task.get("data"))
        if not nodes:
            nodes = _asked(data)  # a rollout that failed before its first model call
        if not nodes:
            build.problem(where, "is a trace without nodes")
            return
        rewards = {k: as_mapping(v) for k, v in as_mapping(trace.get("rewards")).items()}
        total = _weighted(rewards) if rewards else None
        scores = [Score("verifiers/reward", total, evidence={"rewards": trace.get("rewards")})] if rewards else []
        scores += [Score(f"verifiers/{name}", r.get("score")) for name, r in rewards.items() if len(rewards) > 1]
        agent = as_mapping(as_mapping(trace.get("agent")).get("config"))
        parents = {p for n in nodes if isinstance(p := n.get("parent"), int)}
        leaves = [i for i in range(len(nodes)) if i not in parents]
        private = {str(k): v for k, v in data.items() if k not in TASK_FIELDS and v not in (None, "", [], {})}
        reference = next((private[k] for k in REFERENCES if k in private), None)
        calls = [as_mapping(c) for c in as_list(trace.get("calls"))]
        stop, errors = trace.get("stop_condition"), as_list(trace.get("errors"))
        for number, leaf in enumerate(leaves, start=1):
            path = _path(nodes, leaf)
            finish = next((c.get("finish_reason") for c in calls if c.get("node") == leaf), None)
            row = build.row(
                f"{where}, path {number}" if len(leaves) > 1 else where,
                [as_mapping(nodes[i].get("message")) for i in path],
                task_id=_task_id(task, data),
                scores=scores,
                tools=as_list(trace.get("tools")) or as_list(nodes[path[0]].get("tools")),
                privileged={"reference": reference, **private} if reference is not None else private,
                rest={
                    **leftovers(trace, ("nodes", "tools", "rewards", "task", "agent", "calls", "errors")),
                    "task": {k: task[k] for k in ("type", "key", "hash") if task.get(k)},
                },
                finish_reason=finish if isinstance(finish, str) else None,
                outcome="failed" if errors else ("truncated" if stop and "length" in str(stop) else None),
                error={"type": "recorded", "message": json.dumps(errors)} if errors else None,
                policy={"model": agent.get("model"), "sampling": agent.get("sampling")} if agent.get("model") else None,
                usage=_usage([c for c in calls if c.get("node") in path]),
                logprobs=_sampled(nodes[leaf]),
            )
            if row is not None:
                yield row

    def _result(self, where: str, record: Mapping[str, Any], build: RowBuilder) -> Iterator[Row]:
        prompt, completion = record.get("prompt"), record.get("completion")
        messages = (
            [{"role": "user", "content": prompt}]
            if isinstance(prompt, str)
            else [dict(as_mapping(m)) for m in as_list(prompt)]
        )
        tail: list[dict[str, Any]] = (
            [{"role": "assistant", "content": completion}]
            if isinstance(completion, str)
            else [dict(as_mapping(m)) for m in as_list(completion)]
        )
        for message in tail:
            message["tool_calls"] = [_call(c) for c in as_list(message.get("tool_calls"))]
        used = (
            "prompt",
            "completion",
            "answer",
            "reward",
            "example_id",
            "tool_defs",
            "error",
            "is_truncated",
            "metrics",
        )
        metrics = as_mapping(record.get("metrics"))
        row = build.row(
            where,
            [*messages, *tail],
            task_id=str(record["example_id"]) if record.get("example_id") is not None else None,
            scores=[
                Score("verifiers/reward", record.get("reward")),
                *(Score(f"verifiers/{k}", v) for k, v in metrics.items()),
            ],
            tools=as_list(record.get("tool_defs")),
            privileged={"reference": record["answer"]} if record.get("answer") not in (None, "") else None,
            rest=leftovers(record, used),
            outcome="failed" if record.get("error") else ("truncated" if record.get("is_truncated") else None),
            error={"type": "recorded", "message": str(record["error"])} if record.get("error") else None,
        )
        if row is not None:
            yield row


def _asked(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a task asks as nodes: instructions and prompt, text or messages."""
    prompt = data.get("prompt")
    asked = [{"role": "user", "content": prompt}] if isinstance(prompt, str) and prompt else as_list(prompt)
    told = data.get("system_prompt")
    if isinstance(told, str) and told:
        asked = [{"role": "system", "content": told}, *asked]
    return [{"parent": n - 1 if n else None, "message": m} for n, m in enumerate(asked) if isinstance(m, Mapping)]


def _task_id(task: Mapping[str, Any], data: Mapping[str, Any]) -> str | None:
    """Return the identity of a task: its own id, the stable key of the library, or its number."""
    for value in (data.get("id"), task.get("key"), data.get("idx")):
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _usage(calls: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of what the calls of a conversation used."""
    out: dict[str, Any] = {}
    for call in calls:
        for key, value in as_mapping(call.get("usage")).items():
            if _number(value):
                out[str(key)] = out.get(str(key), 0) + value
    return out


def _weighted(rewards: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the weighted sum of rewards, or what was recorded where a part is no number (then it is not scored)."""
    total = 0.0
    for reward in rewards.values():
        score, weight = reward.get("score"), reward.get("weight", 1.0)
        if not _number(score) or not _number(weight):
            return {name: dict(r) for name, r in rewards.items()}
        total += score * weight
    return total


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _path(nodes: list[Mapping[str, Any]], leaf: int) -> list[int]:
    path = [leaf]
    while (
        (parent := nodes[path[-1]].get("parent")) is not None
        and isinstance(parent, int)
        and 0 <= parent < len(nodes)
        and parent not in path
    ):
        path.append(parent)
    return path[::-1]


def _sampled(node: Mapping[str, Any]) -> dict[str, Any] | None:
    if not node.get("sampled") or not as_list(node.get("token_ids")):
        return None
    return {"completion_token_ids": node["token_ids"], "logprobs": node.get("logprobs")}


def _call(value: Any) -> Any:
    """Return a call; result rows of earlier versions hold each one as JSON text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return {"id": "", "name": "", "arguments": value}
    return value
