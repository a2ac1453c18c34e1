"""Checks for the kinds that act: models, agents, situation writers, commands."""

from __future__ import annotations

import argparse
import copy
import inspect
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.models import Rollout, Task
from whileai_kernel.protocols import MESSAGE_LISTS, Completion, WriteRequest
from whileai_kernel.rowio import dumps
from whileai_kernel.testing.kit import Check, Skip, Subject
from whileai_kernel.testing.parts import call
from whileai_kernel.tools import Tool, as_tool

__all__ = ["AGENT_CHECKS", "COMMAND_CHECKS", "MODEL_CHECKS", "WRITER_CHECKS", "StubContext", "reference_tools"]


def reference_tools() -> list[Tool]:
    """Return a reading and a writing tool, known by schema alone."""

    def schema(name: str, text: str, kind: str) -> dict[str, Any]:
        order_id = {"type": "string", "description": "Id of the order."}
        parameters = {"type": "object", "properties": {"order_id": order_id}, "required": ["order_id"]}
        return {"name": name, "description": text, "parameters": parameters, "kind": kind}

    return [
        as_tool(schema("get_order", "Look up an order by id.", "read")),
        as_tool(schema("cancel_order", "Cancel an order.", "write")),
    ]


@dataclass
class StubContext:
    """A context without a world: every tool answers that the order has shipped.

    Attributes:
        calls: What was called, in order.
    """

    task: dict[str, Any] = field(
        default_factory=lambda: {"task_id": "t", "prompt": "Where is order A-17?", "axes": {}, "world": {}}
    )
    index: int = 0
    seed: int = 0
    tools: list[Tool] = field(default_factory=reference_tools)
    deadline_s: float | None = 30.0
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Record the call and answer."""
        self.calls.append((name, arguments))
        return '{"order_id": "A-17", "status": "shipped"}'

    async def acall_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Record the call and answer, for agents that await their tools."""
        return self.call_tool(name, arguments)


# --- agents ---


def context_of(subject: Subject, seed: int = 0) -> Any:
    """Return a context to run an agent in: its own `example_context(seed)`, else a `StubContext`."""
    own = subject.attribute("example_context")
    return StubContext(seed=seed) if own is None else own(seed)


def run_agent(agent: Any, context: Any) -> Any:
    """Call an agent with the arguments that it names, as an engine does."""
    messages = [
        {"role": "system", "content": "Help customers with orders."},
        {"role": "user", "content": context.task["prompt"]},
    ]
    tools = [tool.to_openai() for tool in context.tools]
    target = agent if inspect.isroutine(agent) else agent.__call__
    parameters = [p for p in inspect.signature(target).parameters.values() if p.kind is not p.VAR_KEYWORD]
    kwargs = {"context": context} if any(p.name == "context" for p in parameters) else {}
    plain = [p for p in parameters if p.name != "context" and p.default is p.empty]
    whole = len(plain) > 1 or any(p.name in MESSAGE_LISTS or "list" in str(p.annotation).lower() for p in plain)
    asked = messages if whole else context.task["prompt"]
    args: list[Any] = [asked, tools][: max(1, len(plain))] if plain or not kwargs else []
    return call(agent, *args, **kwargs)


def answers_in_a_known_shape(subject: Subject) -> None:
    """An answer of another shape is a failed rollout."""
    got = run_agent(subject.component, context_of(subject))
    shapes = isinstance(got, str | Rollout) or (isinstance(got, list) and bool(got) and "role" in got[0])
    shapes = shapes or (hasattr(got, "messages") and hasattr(got, "final_text"))
    shapes = shapes or (isinstance(got, Mapping) and ("final_text" in got or "steps" in got or "messages" in got))
    assert shapes, f"got {type(got).__name__}: {got!r:.200}"


def answers_the_same_for_a_seed(subject: Subject) -> str | None:
    """An agent that draws from its own dice makes a run that nobody can repeat."""
    if "nondeterministic" in (subject.attribute("capabilities") or ()):
        return "does not apply: declared nondeterministic"
    for seed in range(3):
        first, second = (run_agent(subject.fresh(), context_of(subject, seed)) for _ in range(2))
        assert repr(first) == repr(second), f"seed {seed}: {first!r:.200} and then {second!r:.200}"
    return None


def leaves_the_task_alone(subject: Subject) -> None:
    """An agent that changes its task changes what the next rollout is asked."""
    context = context_of(subject)
    before = copy.deepcopy(context.task)
    run_agent(subject.component, context)
    assert context.task == before, "the task was changed"


AGENT_CHECKS: tuple[Check, ...] = (answers_in_a_known_shape, answers_the_same_for_a_seed, leaves_the_task_alone)


# --- models ---

KEY = "kit-secret-key"
"""The key that example parameters of a model may use; it must not show anywhere."""


def _complete(subject: Subject) -> Any:
    messages = [{"role": "user", "content": "Where is order A-17?"}]
    tools = [tool.to_openai() for tool in reference_tools()]
    before = copy.deepcopy((messages, tools))
    got = call(subject.fresh().complete, messages, tools, {"max_tokens": 16})
    assert (messages, tools) == before, "the messages or tools were changed"
    return got


def answers_with_a_message(subject: Subject) -> None:
    """A reply of another shape cannot become a row."""
    got = _complete(subject)
    assert isinstance(got, Completion), f"got {type(got).__name__}"
    assert got.message.get("role") == "assistant" and isinstance(got.message.get("content"), str), f"{got.message!r}"
    assert isinstance(got.attempts, int) and got.attempts >= 0, f"attempts {got.attempts!r}"
    assert got.cost_usd is None or got.cost_usd > 0 or got.attempts == 0, "an unknown cost is None, not 0"


def is_named(subject: Subject) -> None:
    """Rows of two models in one file must be told apart."""
    name = getattr(subject.component, "id", None)
    assert isinstance(name, str) and name and not any(c.isspace() for c in name), f"id {name!r}"


def hides_its_key(subject: Subject) -> None:
    """A key in a repr ends in a log."""
    for text in (repr(subject.component), str(subject.component), repr(vars(subject.component))):
        assert KEY not in text, f"the key shows: {text[:200]}"


MODEL_CHECKS: tuple[Check, ...] = (answers_with_a_message, is_named, hides_its_key)


# --- writers ---


def _request(subject: Subject, n: int = 24, seed: int = 0) -> WriteRequest:
    given = subject.attribute("example_situations")
    if given is None:
        raise Skip(f"{subject.id} has no example_situations")
    situations = [dict(given[i % len(given)]) for i in range(n)]
    return WriteRequest(situations, reference_tools(), "Help customers with orders.", seed)


def writes_one_task_per_situation(subject: Subject) -> None:
    """A writer that skips or repeats situations undoes the covering array."""
    request = _request(subject)
    tasks = list(subject.component.write(request))
    assert len(tasks) == len(request.situations), f"{len(request.situations)} situations gave {len(tasks)} tasks"
    for task, situation in zip(tasks, request.situations, strict=True):
        assert all(task["axes"].get(k) == v for k, v in situation.items()), f"the task is for another situation: {task}"


def writes_valid_tasks(subject: Subject) -> None:
    """A task that is not one fails when the run is over."""
    for task in subject.component.write(_request(subject)):
        Task.model_validate({k: v for k, v in task.items() if k in Task.model_fields})
        dumps(task)
        assert task["prompt"].strip(), "an empty ask"


def writes_the_same_for_a_seed(subject: Subject) -> None:
    """Tasks that change between equal runs pair nothing with nothing."""
    first, second = (list(subject.fresh().write(_request(subject))) for _ in range(2))
    assert first == second, "two writings with one seed differ"
    other = list(subject.component.write(_request(subject, seed=1)))
    assert other != first, "another seed gives the same tasks"


def writes_distinct_tasks(subject: Subject) -> None:
    """One ask under many ids is one task that is counted many times."""
    tasks = list(subject.component.write(_request(subject)))
    assert len({t["task_id"] for t in tasks}) == len(tasks), "task ids repeat"


def keeps_the_answer_out_of_the_ask(subject: Subject) -> None:
    """An ask that holds its own private reference measures reading."""
    for task in subject.component.write(_request(subject)):
        gold = (task.get("privileged") or {}).get("reference")
        if isinstance(gold, str) and len(gold) > 3:
            assert gold not in task["prompt"], f"the ask quotes the reference {gold!r}"


WRITER_CHECKS: tuple[Check, ...] = (
    writes_one_task_per_situation,
    writes_valid_tasks,
    writes_the_same_for_a_seed,
    writes_distinct_tasks,
    keeps_the_answer_out_of_the_ask,
)


# --- commands ---

HEAVY = ("numpy", "scipy", "torch", "litellm", "transformers", "datasets", "pandas")


def explains_itself(subject: Subject) -> None:
    """An option without a word of help is an option that nobody uses."""
    parser = argparse.ArgumentParser(prog="wai check", add_help=False)
    subject.component.add_arguments(parser)
    parser.format_help()
    bare = [a.dest for a in parser._actions if not a.help]
    assert not bare, f"options without help: {', '.join(bare)}"
    assert callable(subject.component.run), "it has no run()"


def loads_light(subject: Subject) -> None:
    """A command that loads a library at import makes every shell completion wait for it."""
    target = subject.attribute("__module__") or type(subject.component).__module__
    code = f"import sys, importlib; importlib.import_module({target!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-500:]
    heavy = sorted(set(HEAVY) & set(done.stdout.split()))
    assert not heavy, f"importing {target} loads {', '.join(heavy)}"


COMMAND_CHECKS: tuple[Check, ...] = (explains_itself, loads_light)
