"""What one call of `simulate` asks for: its arguments checked, and the parts made from them.

Nothing runs here: after this module every argument is valid, the agent is prepared, and the situations are known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.rows import content_id
from whileai_kernel.tools import Tool, as_tools
from whileai_simulate import defaults as d
from whileai_simulate.axes import NO_TOOL, SEVERAL, VOCABULARY
from whileai_simulate.checks import check_arguments, check_functions, rows_of, task_rows
from whileai_simulate.dedup import NearDuplicates
from whileai_simulate.estimate import RunEstimate
from whileai_simulate.fingerprint import fingerprint
from whileai_simulate.identity import agent_identity, identity_of, make_agent, make_writer, plain_options
from whileai_simulate.ledger import RunLedger
from whileai_simulate.options import make_budget, make_options, preset
from whileai_simulate.policies import Repeats
from whileai_simulate.setting import make_setting
from whileai_simulate.sides import make_judge, make_user_side
from whileai_simulate.situations import Grid, TaskSource

__all__ = ["Call"]

VERSION = "1.0.0"


class Call:
    """One call of `simulate`, checked.

    Args:
        arguments: The arguments of `simulate` by name.

    Raises:
        ParameterError: An argument is missing, contradicts another one, or is out of range.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        call = self.arguments = arguments
        check_arguments(call)
        self.options = make_options(call["options"])
        self.budget = make_budget(call["budget"])
        chosen = preset(call["mode"])
        policy = call["repeat_policy"] or chosen["repeat_policy"]
        k = call["repeats"] if call["repeats"] is not None else chosen["repeats"]
        self.repeats = Repeats(policy, 1 if policy == "none" else k, floor=self.options.adaptive_floor)
        self.agent = make_agent(call["agent"], self.options)
        self.judge = make_judge(call["judge"])
        self.user = make_user_side(self.options.user if call["user"] is None else call["user"])
        if self.repeats.graded and self.judge is None:
            raise ParameterError(
                f"repeat_policy {policy!r} needs judge=", why="it decides by verdicts", fix="pass judge=..., or 'fixed'"
            )
        self.warnings: list[str] = []
        self._prepare_tasks()
        self.ledger = RunLedger(self.budget.tokens, self.budget.usd)
        self.estimate: RunEstimate | None = None

    @property
    def runs(self) -> int:
        """Repeats of the whole evaluation."""
        return int(self.arguments["runs"])

    @property
    def width(self) -> int:
        """Most rollouts of a task, over all runs."""
        return self.repeats.k * self.runs

    def execute(self) -> dict[str, Any]:
        """Return the functions that run instead of the mock, by tool."""
        own = self.options.execute
        if own is True:
            return {t.name: t.fn for t in self.tools if t.fn is not None and not t.is_stub}
        return dict(own or {})

    def _prepare_tasks(self) -> None:
        from whileai_simulate.replay import seed_tasks
        from whileai_simulate.traces import LeakCheck, aim, spoken_words, trace_texts

        call = self.arguments
        tools: list[Tool] = as_tools(call["tools"])
        replay = None if call["tasks"] is None else self._replayed(tools)
        if replay and not tools:
            tools = as_tools(replay[0].get("tools") or ())
        weights = {k: dict(v) for k, v in self.options.weights.items()}
        traces = rows_of("traces", call["traces"]) if call["traces"] is not None else []
        if traces:
            weights, notes = aim(traces, tools, weights)
            self.warnings += notes
        self.traced = content_id("traces", weights, [trace_texts(t) for t in traces]) if traces else None
        self.tools = tools
        self.setting = make_setting(
            tools,
            call["system_prompt"],
            seed=call["seed"],
            locale=self.options.locale,
            axes=call["axes"],
            weights=weights,
            off_topic=self.options.off_topic,
            forbidden=self.options.forbidden,
            faults=self.options.faults,
        )
        check_functions(self.execute(), [tool.name for tool in tools])
        fixed = replay if replay is not None else seed_tasks(self.setting, self._seeds())
        self.count = self._count(replay, len(fixed))
        self.grid = Grid(self.setting.axes, self.count - len(fixed), self.options.strength, call["seed"])
        leak_check, near = None, NearDuplicates(self.options.near_duplicate, window=self.options.near_window)
        if traces:
            for text in (t for trace in traces for t in trace_texts(trace)):
                near.note(text)  # word for word, frames of the writer do not come again either
            spoken = spoken_words(self.setting, self.grid.array.rows)
            leak_check = LeakCheck(traces, self.options.leak_ngram, tools, spoken)
        self.source = TaskSource(
            self.setting,
            self.grid,
            make_writer(call["simulator"], self.user, self.options.locale),
            near,
            fixed,
            leak_check,
        )

    def _replayed(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Return the tasks to replay; what one lacks (foreign tasks have no tools, or no prompt) the call adds."""
        from whileai_simulate.replay import read_tasks

        call = self.arguments
        for name in ("seeds", "axes", "traces"):
            if call[name] is not None and len(call[name]) > 0:
                raise ParameterError(
                    f"tasks= and {name}= exclude each other", why="a replay runs the tasks that it is given alone",
                    fix=f"leave {name} out, or run it as a second call",
                )  # fmt: skip
        replay = read_tasks(task_rows(call["tasks"]))
        prompt, others = call["system_prompt"], 0
        for task in replay:
            if prompt is not None:
                others += task.setdefault("system_prompt", prompt) != prompt
            if tools:
                task.setdefault("tools", [tool.to_openai() for tool in tools])
        if others:
            self.warnings.append(
                f"{others} of {len(replay)} tasks bring a system prompt of their own, which is used instead of "
                "system_prompt=; remove it from the tasks to try another one"
            )
        return replay

    def _seeds(self) -> list[Any]:
        seeds = self.arguments["seeds"]
        if isinstance(seeds, str | Mapping) or not isinstance(seeds or (), Iterable):
            raise ParameterError(
                f"seeds must be a list of asks, not {type(seeds).__name__}", fix="pass seeds=['Cancel my order.']"
            )
        known = {**VOCABULARY, "tool": (*(t.name for t in self.tools), SEVERAL, NO_TOOL)}
        out = list(seeds or ())
        for seed in out:
            axes = seed.get("axes") if isinstance(seed, Mapping) else None
            for axis, value in _axes_of_seed(axes).items():
                if axis in known and value not in known[axis] and value not in self.options.faults:
                    unknown_name(f"value of {axis}", str(value), map(str, known[axis]))
        return out

    def _count(self, replay: list[dict[str, Any]] | None, fixed: int) -> int:
        """Return the number of tasks from situations, budget and what must run."""
        wanted: int | None = self.arguments["situations"]
        each: int = self.repeats.k * self.arguments["runs"]
        limit = self.budget.rollouts
        affordable = None if limit is None else limit // each
        if affordable == 0:
            raise ParameterError(
                f"a budget of {limit} rollouts is less than one task",
                why=f"a task takes {each} rollouts (repeats x runs)",
                fix=f"pass budget={each} or more, or fewer repeats",
            )
        if replay is not None:
            if wanted not in (None, len(replay)):
                raise ParameterError("tasks= says how many situations there are", fix="leave situations out")
            return len(replay)
        if wanted is None:
            wanted = affordable if affordable is not None else max(d.SITUATIONS.value, fixed)
        if fixed > wanted or (affordable is not None and fixed > affordable):
            room = wanted if affordable is None else min(wanted, affordable)
            raise ParameterError(
                f"{fixed} seeds must run, and there is room for {room} tasks",
                why="each seed takes one situation",
                fix=f"pass situations={fixed} (and a budget of {fixed * each} rollouts)",
            )
        if affordable is not None and affordable < wanted:
            self.warnings.append(f"the budget of {limit} rollouts allows {affordable} of {wanted} situations")
            wanted = affordable
        return wanted

    def description(self) -> dict[str, Any]:
        """Return the arguments that shape rows, as plain values."""
        return self._described.copy()

    @cached_property
    def _described(self) -> dict[str, Any]:
        # Made once: the source of the agent is read for it, which takes as long as a dozen tasks.
        call = self.arguments
        return {
            "version": VERSION,
            "agent": agent_identity(call["agent"], self.agent),
            "judge": identity_of(self.judge),
            "user": None if self.user is None else self.user.version,
            "tools": content_id("tools", self.setting.tools),
            "functions": {name: agent_identity(fn, None) for name, fn in sorted(self.execute().items())},
            "system_prompt": content_id("prompt", call["system_prompt"]),
            "simulator": _writer_name(call["simulator"], self.source.writer),
            "situations": self.count,
            "repeats": self.repeats.k,
            "repeat_policy": self.repeats.policy,
            "runs": call["runs"],
            "seed": call["seed"],
            "axes": {k: None if v is None else [str(x) for x in v] for k, v in (call["axes"] or {}).items()},
            "budget": asdict(self.budget),
            "tasks": _digest(self.source.fixed),
            "traces": self.traced,
            "options": plain_options(self.options),
        }

    def fingerprint(self) -> str:
        """Return the hash of everything that shapes the rows."""
        return content_id("call", self.description())


def _axes_of_seed(axes: Any) -> Mapping[str, Any]:
    if axes is not None and not isinstance(axes, Mapping):
        raise ParameterError(
            f"axes of a seed must be a mapping, not {axes!r:.60}",
            fix="pass seeds=[{'prompt': '...', 'axes': {'stance': 'hurried'}}]",
        )
    return axes or {}


def _digest(tasks: Sequence[Any]) -> str:
    """Return a hash of whole tasks: two of the same id may still differ in their world or their reference."""
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(json.dumps(task, sort_keys=True, default=repr).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:20]


def _writer_name(given: Any, writer: Any) -> str:
    """Return what tells one writer from another; a name stands for itself, a model for its prompt and sampling too."""
    version = getattr(writer, "version", None)
    if isinstance(version, str):
        return version
    return str(given) if isinstance(given, str | bool) else f"{type(given).__name__}@{fingerprint(given)}"
