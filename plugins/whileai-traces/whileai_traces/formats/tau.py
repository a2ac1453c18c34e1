"""Result files of tau-bench and of tau2-bench.

tau-bench: a list of runs `{task_id, trial, reward, info, traj}`. The task's goal, its gold actions and outputs are
private. A run that hit the step limit has no reward record: its reward stays as recorded, its outcome is
`truncated`.

tau2-bench: `{tasks, simulations, info}`; a simulation has `messages` whose calls carry argument objects, and a
reward with its parts. Messages of the simulated user's own tools are kept out of the agent's conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from whileai_kernel.rows import Row
from whileai_traces.build import RowBuilder, Score, leftovers
from whileai_traces.defaults import CERTAIN, LIKELY
from whileai_traces.formats.base import JsonSource, Records, as_list, as_mapping

__all__ = ["Tau2Bench", "TauBench"]


ENDINGS = {
    **dict.fromkeys(("max_steps", "timeout", "context_window_exceeded"), "truncated"),
    **dict.fromkeys(
        ("too_many_errors", "agent_error", "user_error", "infrastructure_error", "unexpected_error"), "failed"
    ),
}
"""Termination reasons of tau2-bench that are no completed run."""


class TauBench(JsonSource):
    """Results of tau-bench: 50 tasks with 4 trials each become 200 rows in 50 tasks."""

    name = "tau_bench"
    user_ends = True

    def sniff_records(self, records: list[Any]) -> float:
        """Certain when a record has a trajectory, a trial and a reward."""
        hits = [r for r in records if isinstance(r, Mapping) and {"traj", "reward", "task_id"} <= r.keys()]
        return CERTAIN.value if hits else 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per recorded run."""
        for where, record in records:
            if not isinstance(record, Mapping) or not isinstance(record.get("traj"), list):
                build.problem(where, "has no trajectory: a run is an object with traj, reward and task_id")
                continue
            row = self._row(where, record, build)
            if row is not None:
                yield row

    def _row(self, where: str, record: Mapping[str, Any], build: RowBuilder) -> Row | None:
        info = as_mapping(record.get("info"))
        task = as_mapping(info.get("task"))
        reward_info = as_mapping(info.get("reward_info"))
        error = info.get("error")
        known = {
            "goal": task.get("instruction"),
            "actions": task.get("actions"),
            "outputs": task.get("outputs"),
            "user_id": task.get("user_id"),
            **{k: v for k, v in as_mapping(reward_info.get("info")).items() if str(k).startswith("gt_")},
        }
        trial = record.get("trial")
        rest = {
            **leftovers(record, ("traj", "reward", "task_id", "trial", "info")),
            "info": leftovers(info, ("task", "reward_info", "error")),
        }
        evidence = as_mapping(reward_info.get("info"))
        return build.row(
            where,
            record["traj"],
            task_id=str(record.get("task_id")),
            index=trial if isinstance(trial, int) and not isinstance(trial, bool) and trial >= 0 else None,
            scores=[Score("tau_bench/reward", record.get("reward"), evidence=_no_gold(evidence))],
            privileged={k: v for k, v in known.items() if v not in (None, [], "")},
            rest=rest,
            outcome="failed" if error else ("completed" if reward_info or "reward_info" not in info else "truncated"),
            error={"type": "recorded", "message": str(error)} if error else None,
        )


def _no_gold(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evidence of a reward without what gives the gold end state away."""
    return {str(k): v for k, v in evidence.items() if not str(k).startswith("gt_")}


class Tau2Bench(JsonSource):
    """Results of tau2-bench: one row per simulation."""

    name = "tau2_bench"
    user_ends = True

    def sniff_records(self, records: list[Any]) -> float:
        """Certain for a file with simulations, likely for simulations one by one."""
        for record in records:
            keys = record.keys() if isinstance(record, Mapping) else set()
            if "simulations" in keys or {"tasks", "info", "timestamp"} <= keys:
                return CERTAIN.value
            if {"messages", "reward_info", "task_id"} <= keys:
                return LIKELY.value + 0.2
        return 0.0

    def rows(self, records: Records, build: RowBuilder) -> Iterator[Row]:
        """Yield one row per simulation."""
        for where, record in records:
            if not isinstance(record, Mapping):
                build.problem(where, "is not an object")
                continue
            if "simulations" in record:
                tasks = {str(t.get("id")): t for t in as_list(record.get("tasks")) if isinstance(t, Mapping)}
                info = as_mapping(record.get("info"))
                for number, simulation in enumerate(as_list(record["simulations"]), start=1):
                    yield from self._rows(f"{where}, simulation {number}", simulation, tasks, info, build)
            else:
                yield from self._rows(where, record, {}, {}, build)

    def _rows(
        self, where: str, simulation: Any, tasks: Mapping[str, Any], info: Mapping[str, Any], build: RowBuilder
    ) -> Iterator[Row]:
        if not isinstance(simulation, Mapping) or not isinstance(simulation.get("messages"), list):
            build.problem(where, "has no messages")
            return
        task_id = str(simulation.get("task_id"))
        task = as_mapping(tasks.get(task_id))
        reward_info = as_mapping(simulation.get("reward_info"))
        environment = as_mapping(info.get("environment_info"))
        messages = [_tau2_message(m) for m in _agent_side(simulation["messages"])]
        policy = environment.get("policy")
        if isinstance(policy, str) and policy and not any(m.get("role") == "system" for m in messages):
            messages.insert(0, {"role": "system", "content": policy})
        end = simulation.get("termination_reason")
        trial = simulation.get("trial")
        agent = as_mapping(info.get("agent_info"))
        scores = [Score("tau2_bench/reward", reward_info.get("reward"))] if reward_info else []
        parts = as_mapping(reward_info.get("reward_breakdown"))
        scores += [Score(f"tau2_bench/{name}", value) for name, value in parts.items()]
        row = build.row(
            where,
            messages,
            task_id=task_id,
            index=trial if isinstance(trial, int) and not isinstance(trial, bool) and trial >= 0 else None,
            scores=scores,
            tools=as_list(environment.get("tool_defs")),
            privileged={
                k: task[k] for k in ("user_scenario", "evaluation_criteria", "initial_state") if task.get(k) is not None
            },
            rest=leftovers(
                simulation, ("messages", "task_id", "reward_info", "trial", "agent_cost", "user_cost", "seed")
            ),
            outcome=ENDINGS.get(str(end), "completed"),
            policy={"model": agent.get("llm"), "sampling": agent.get("llm_args")} if agent else None,
            usage={k: simulation[k] for k in ("agent_cost", "user_cost") if simulation.get(k) is not None},
            world={"seed": simulation["seed"]} if simulation.get("seed") is not None else None,
        )
        if row is not None:
            yield row


def _agent_side(messages: list[Any]) -> Iterator[Any]:
    """Yield the messages that the agent saw: without the calls of the simulated user and their results."""
    hidden: set[str] = set()
    for message in messages:
        if not isinstance(message, Mapping):
            yield message
            continue
        role = message.get("role")
        if role == "user" and message.get("tool_calls"):
            hidden.update(str(c.get("id")) for c in as_list(message["tool_calls"]) if isinstance(c, Mapping))
            if message.get("content"):
                yield {**message, "tool_calls": None}
        elif role == "tool" and message.get("tool_messages"):
            yield from _agent_side(as_list(message["tool_messages"]))
        elif role == "tool" and (message.get("requestor") == "user" or str(message.get("id")) in hidden):
            continue
        else:
            yield message


def _tau2_message(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    out: dict[str, Any] = {"role": message.get("role"), "content": message.get("content")}
    if message.get("tool_calls"):
        out["tool_calls"] = [
            {"id": c.get("id") or "", "name": c.get("name"), "arguments": c.get("arguments")}
            for c in as_list(message["tool_calls"])
            if isinstance(c, Mapping)
        ]
    if message.get("role") == "tool":
        out["tool_call_id"] = message.get("tool_call_id") or message.get("id") or ""
        if message.get("error"):
            out["is_error"] = True
    return out
