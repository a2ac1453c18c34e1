"""Arguments and options, each checked by itself before anything is made from them: what, why, what to type next."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

from whileai_kernel.errors import ParameterError, RowError, unknown_name
from whileai_kernel.rowio import read_rows
from whileai_simulate.faults import FAULTS, SUCCESS, Fault
from whileai_simulate.world import World

__all__ = ["check_arguments", "check_functions", "check_number", "check_options", "is_number", "rows_of", "task_rows"]


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    whole: bool = False,
    above: bool = False,
    fix: str = "",
) -> None:
    """Raise unless `value` is a finite number in range.

    Args:
        name: Name of the argument.
        value: What was passed.
        low: Least value.
        high: Largest value.
        whole: Only whole numbers.
        above: `low` itself is too little.
        fix: What to type next.

    Raises:
        ParameterError: It is not.
    """
    if is_number(value, whole) and (low < value if above else low <= value) and value <= high:
        return
    kind = "a whole number" if whole else "a number"
    upto = f" to {high:g}" if math.isfinite(high) else ""
    span = f"above {low:g}{upto and f' and up{upto}'}" if above else f"from {low:g}{upto}"
    raise ParameterError(f"{name} must be {kind} {span}, not {value!r:.60}", fix=fix)


def is_number(value: Any, whole: bool = False) -> bool:
    """Whether a value is a finite number and no truth value; `whole` asks for a whole number."""
    if type(value) is bool or not isinstance(value, Integral if whole else Real):
        return False
    return math.isfinite(value)


def check_arguments(call: Mapping[str, Any]) -> None:
    """Check what stands by itself in a call of `simulate`; what depends on other arguments is checked where they meet.

    Raises:
        ParameterError: An argument is of the wrong kind or out of range.
    """
    prompt = call["system_prompt"]
    if prompt is not None and not isinstance(prompt, str):
        raise ParameterError(
            f"system_prompt must be text, not {type(prompt).__name__}", fix="pass the text of the policy"
        )
    for name in ("runs", "concurrency"):
        check_number(name, call[name], 1, whole=True, fix=f"pass {name}=1")
    if not is_number(call["seed"], whole=True):
        raise ParameterError(f"seed must be a whole number, not {call['seed']!r:.60}", fix="pass seed=0")
    if call["situations"] is not None:
        check_number("situations", call["situations"], 1, whole=True, fix="pass situations=16")
    if call["deadline_s"] is not None:
        check_number(
            "deadline_s", call["deadline_s"], 0, above=True, fix="pass seconds, or deadline_s=None for no limit"
        )
    progress = call["progress"]
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ParameterError(
            f"progress must be None, True, False or a callable, not {progress!r:.60}", fix="pass progress=False"
        )
    _check_axes(call["axes"])
    _check_paths(call["output"], call["checkpoint"])


def _check_axes(axes: Any) -> None:
    if axes is None:
        return
    fix = "pass axes={'stance': ['hurried']}, or {'stance': None} to drop the axis"
    if not isinstance(axes, Mapping):
        raise ParameterError(f"axes must be a mapping, not {type(axes).__name__}", fix=fix)
    for axis, values in axes.items():
        if not isinstance(axis, str):
            raise ParameterError(f"the name of an axis must be text, not {axis!r:.60}", fix=fix)
        if values is None or isinstance(values, str):
            continue
        if not isinstance(values, Sequence):  # the order of a set differs between processes
            raise ParameterError(f"axis {axis!r} must have a list of values, not {values!r:.60}", fix=fix)
        for value in values:
            if not isinstance(value, str | int | float) or value != value:
                raise ParameterError(
                    f"a value of axis {axis!r} must be text or a number, not {value!r:.60}", fix="name the value"
                )


def _check_paths(output: Any, checkpoint: Any) -> None:
    for name, value in (("output", output), ("checkpoint", checkpoint)):
        if value is None:
            continue
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise ParameterError(f"{name} must be a path, not {value!r:.60}", fix=f"pass {name}='rows.jsonl'")
        try:
            folder = Path(value).is_dir()
            if "\0" in os.fspath(value):  # which `is_dir` keeps to itself
                raise ValueError("a NUL in it")
        except (OSError, ValueError) as err:  # too long a name, a NUL in it
            raise ParameterError(f"{name} is no path: {err}"[:300], fix=f"pass {name}='rows.jsonl'") from err
        if folder:
            raise ParameterError(
                f"{name} is a directory: {value}", fix=f"pass {name}={str(Path(value) / 'rows.jsonl')!r}"
            )
    if output is not None:
        _check_writable(Path(output))
    if output is not None and checkpoint is not None and Path(output).resolve() == Path(checkpoint).resolve():
        raise ParameterError(
            "output and checkpoint are the same file", why="the journal would be replaced by the rows",
            fix="leave checkpoint out: the journal then stands beside output",
        )  # fmt: skip


def _check_writable(output: Path) -> None:
    """Rows are written at the end of a run: whether they can be is found out before it."""
    folder = output.absolute().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fine = os.access(folder, os.W_OK | os.X_OK)
        why = "" if fine else "the directory cannot be written"
    except OSError as err:
        why = str(err.strerror or err)
    if why:
        raise ParameterError(f"cannot write {output}: {why}", fix="pass output= in a directory that can be written")


_WHOLE = {"strength": (1, 3), "patience": (1, math.inf), "max_turns": (1, math.inf), "near_window": (1, math.inf),
          "give_up_after": (0, math.inf), "leak_ngram": (1, math.inf)}  # fmt: skip


def check_options(options: Any) -> None:
    """Check each option by itself.

    Raises:
        ParameterError: One is of the wrong kind or out of range.
    """
    for name, (low, high) in _WHOLE.items():
        check_number(name, getattr(options, name), low, high, whole=True)
    if not is_number(options.off_topic) or not 0 <= options.off_topic < 1:
        raise ParameterError(f"off_topic must be in [0, 1), not {options.off_topic!r:.60}", fix="pass off_topic=0.05")
    check_number("near_duplicate", options.near_duplicate, 0, 1, above=True)
    for name in ("adaptive_floor", "share_tolerance"):
        check_number(name, getattr(options, name), 0, 1)
    for name in ("rollout_tokens", "rollout_usd"):
        if getattr(options, name) is not None:
            check_number(name, getattr(options, name), 0, above=True)
    _check_locale(options.locale)
    _check_weights(options.weights)
    _check_own_faults(options.faults)
    if options.world is not None and not (isinstance(options.world, type) and issubclass(options.world, World)):
        raise ParameterError(
            f"world must be a subclass of World, not {options.world!r:.60}",
            fix="class MyWorld(whileai_simulate.world.World): override answer(), and pass options={'world': MyWorld}",
        )
    if not isinstance(options.execute, bool | Mapping):
        raise ParameterError(
            f"execute must be True, False or a mapping of functions by tool, not {options.execute!r:.60}",
            fix="pass options={'execute': {'get_order': function}}",
        )


def _check_locale(locale: Any) -> None:
    if locale == "en_US":
        return
    from faker.config import AVAILABLE_LOCALES

    if not isinstance(locale, str) or locale not in AVAILABLE_LOCALES:
        unknown_name("locale", str(locale), AVAILABLE_LOCALES)


def _check_weights(weights: Any) -> None:
    fix = "pass options={'weights': {'stance': {'hurried': 2}}}"
    if not isinstance(weights, Mapping):
        raise ParameterError(f"weights must be a mapping by axis, not {weights!r:.60}", fix=fix)
    for axis, by_value in weights.items():
        if not isinstance(by_value, Mapping):
            raise ParameterError(f"weights of {axis!r} must be a mapping by value, not {by_value!r:.60}", fix=fix)
        for value, weight in by_value.items():
            check_number(f"weight of {axis} {value}", weight, 0, fix=fix)


def _check_own_faults(faults: Any) -> None:
    fix = "pass options={'faults': {'strike': Fault(lambda tool, honest: 'no')}}"
    if not isinstance(faults, Mapping):
        raise ParameterError(f"faults must be a mapping by name, not {faults!r:.60}", fix=fix)
    for name, fault in faults.items():
        if name in (*FAULTS, SUCCESS, "none"):
            raise ParameterError(
                f"{name!r} is the name of a built-in tool condition", fix="give the fault another name"
            )
        if not isinstance(fault, Fault) or not callable(fault.result):
            raise ParameterError(f"fault {name!r} must be a Fault, not {fault!r:.60}", fix=fix)


def check_functions(execute: Mapping[str, Callable[..., Any]], tools: Iterable[str]) -> None:
    """Check the functions that run instead of the mock.

    Raises:
        ParameterError: One is for a tool that there is not, or cannot be called.
    """
    names = list(tools)
    for name, function in execute.items():
        if name not in names:
            unknown_name("tool in execute", str(name), names)
        if not callable(function):
            raise ParameterError(f"execute[{name!r}] must be a function, not {function!r:.60}", fix="pass a function")


def rows_of(name: str, value: Any) -> list[Any]:
    """Return the rows of an argument that takes rows or the path of a file of them.

    Args:
        name: Name of the argument.
        value: Rows, or a path.

    Raises:
        ParameterError: It is neither, or there is no such file.
        RowError: A row is no mapping.
    """
    if isinstance(value, str | os.PathLike):
        path = Path(value)
        if not path.is_file():
            raise ParameterError(
                f"{name}: there is no file {str(value)!r:.200}", fix="pass rows, or the path of a file"
            )
        return list(read_rows(path))
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ParameterError(f"{name} must be rows or a path, not {type(value).__name__}", fix=f"pass {name}=rows")
    rows = list(value)
    for n, row in enumerate(rows):
        if not isinstance(row, Mapping) and not hasattr(row, "model_dump"):
            raise RowError(f"{name}: a row is a mapping", why=f"got {type(row).__name__}", fix="pass rows", row=n)
    return rows


_PARTS = {"axes": Mapping, "world": Mapping, "privileged": Mapping, "tools": list | tuple, "system_prompt": str}


def task_rows(value: Any) -> list[Any]:
    """Return what `tasks=` holds, with the parts of each task in the shape that a world needs.

    Raises:
        RowError: A part of a task is of another shape; tasks of other tools are replayed as they are, or not at all.
    """
    rows = [row.model_dump() if hasattr(row, "model_dump") else row for row in rows_of("tasks", value)]
    out = []
    for n, row in enumerate(rows):
        task = {k: v for k, v in row.items() if v is not None}
        for name, kind in _PARTS.items():
            if name in task and not isinstance(task[name], kind):
                _refuse(n, f"{name} of a task must be {_KINDS[name]}, not {type(task[name]).__name__}")
        for axis, label in task.get("axes", {}).items():
            if not isinstance(label, str | int | float | None):
                _refuse(n, f"axis {axis!r} of a task must be text or a number, not {type(label).__name__}")
        if "world" in task:
            task["world"] = {k: v for k, v in task["world"].items() if v is not None}
            _check_world(n, task["world"])
        if "privileged" in task:
            task["privileged"] = private = {k: v for k, v in task["privileged"].items() if v is not None}
            _check_plan(n, private)
        out.append(task)
    return out


_KINDS = {
    "axes": "a mapping",
    "world": "a mapping",
    "privileged": "a mapping",
    "tools": "a list",
    "system_prompt": "text",
}


def _refuse(n: int, what: str) -> NoReturn:
    raise RowError(what, why="a replay puts the task into its world again", fix="correct it, or leave it out", row=n)


def _check_world(n: int, world: Mapping[str, Any]) -> None:
    entities, faults = world.get("entities", {}), world.get("faults", [])
    fine = isinstance(entities, Mapping) and all(
        isinstance(records, Mapping) and all(isinstance(r, Mapping) for r in records.values())
        for records in entities.values()
    )
    if not fine:
        _refuse(n, "entities of a world must be records by type and id")
    if not isinstance(faults, list | tuple) or not all(
        isinstance(f, Mapping) and {"kind", "tool", "calls"} <= set(f) for f in faults
    ):
        _refuse(n, "faults of a world must be a list of {'kind', 'tool', 'calls'}")


def _check_plan(n: int, private: Mapping[str, Any]) -> None:
    plan, goal = private.get("plan", []), private.get("goal", {})
    if not isinstance(plan, list | tuple) or not all(
        isinstance(s, Mapping) and isinstance(s.get("tool"), str) and isinstance(s.get("arguments"), Mapping)
        for s in plan
    ):
        _refuse(n, "the plan of a task must be a list of {'tool', 'arguments'}")
    if not isinstance(goal, Mapping):
        _refuse(n, f"the goal of a task must be a mapping, not {type(goal).__name__}")
