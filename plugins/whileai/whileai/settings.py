"""Who answers, judges and asks when a call does not say: the call over `context` over `configure` over the environment.

Names: `agent`, `judge`, `rubric`, `user`, `simulator`; in the environment `WHILEAI_AGENT` and so on. A context holds
for the code inside it, also across `await` and in threads that copy the context (`asyncio.to_thread` does); tasks and
threads beside it do not see it.

Example:
    >>> configure(agent="ollama:llama3.2")
    >>> with context(agent="ollama:qwen3"):
    ...     setting("agent")
    'ollama:qwen3'
    >>> setting("agent"), setting("agent", "vllm:mine")
    ('ollama:llama3.2', 'vllm:mine')
    >>> configure(agent=None)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, unknown_name
from whileai_kernel.rows import Row

if TYPE_CHECKING:
    from whileai.data import ScoredData, SimulationData

__all__ = ["asimulate", "configure", "context", "grade", "setting", "simulate"]

NAMES = ("agent", "judge", "rubric", "user", "simulator")
_lock = threading.Lock()
_configured: Mapping[str, Any] = {}
_context: ContextVar[Mapping[str, Any]] = ContextVar("whileai_context", default={})  # noqa: B039 - never changed in place


def configure(**settings: Any) -> None:
    """Set who answers, judges and asks in this process.

    Args:
        settings: `agent`, `judge`, `rubric`, `user`, `simulator`: whatever the argument of that name takes. `None`
            takes a setting back; what is not named stays.

    Raises:
        ParameterError: There is no such setting; the nearest one is named.
    """
    global _configured
    _check(settings)
    with _lock:
        merged = {**_configured, **settings}
        _configured = {name: value for name, value in merged.items() if value is not None}


@contextmanager
def context(**settings: Any) -> Iterator[None]:
    """Set who answers, judges and asks for the code inside; `None` leaves a setting as it is outside.

    Raises:
        ParameterError: There is no such setting; the nearest one is named.
    """
    _check(settings)
    token = _context.set({**_context.get(), **{k: v for k, v in settings.items() if v is not None}})
    try:
        yield
    finally:
        _context.reset(token)


def setting(name: str, given: Any = None) -> Any:
    """Return a setting: of the call, the context, the process or the environment; `None` if nobody set it.

    Args:
        name: One of the settings.
        given: What the call says.
    """
    _check({name: None})
    if given is not None:
        return given
    for source in (_context.get(), _configured):
        if name in source:
            return source[name]
    return os.environ.get(f"WHILEAI_{name.upper()}") or None


def _check(settings: Mapping[str, Any]) -> None:
    for name in settings:
        if name not in NAMES:
            unknown_name("setting", name, NAMES)


def _missing(name: str, example: str) -> ParameterError:
    return ParameterError(
        f"there is no {name}",
        why=f"the call names none, and neither wai.context, wai.configure nor WHILEAI_{name.upper()} does",
        fix=f"pass {name}={example}, or wai.configure({name}={example})",
    )


def judge_of(given: Any = None) -> Any:
    """Return the judge of a call; one that is a model judges by the rubric that is set.

    Args:
        given: What the call says.

    Raises:
        ParameterError: There is none, or it is a model and there is no rubric.
    """
    judge = setting("judge", given)
    if judge is None:
        raise _missing("judge", "'openai:gpt-5-mini'")
    if not _is_model(judge):
        return judge
    rubric = setting("rubric")
    if rubric is None:
        name = judge if isinstance(judge, str) else judge.id
        raise ParameterError(
            f"the judge {name} is a model and has no rubric",
            why="a model judges by what counts, and nothing says what does",
            fix=f"wai.Judge('what counts', {name!r}), or wai.configure(rubric='what counts')",
        )
    from whileai_judge import Judge

    return Judge(_rubric(rubric), judge)


def _rubric(rubric: Any) -> Any:
    """Return a rubric; a text that ends in `.md` is the file of one, as on the command line."""
    if isinstance(rubric, str) and rubric.endswith(".md") and "\n" not in rubric:
        return Path(rubric).read_text(encoding="utf-8")
    return rubric


def _is_model(judge: Any) -> bool:
    if not isinstance(judge, str):
        return callable(getattr(judge, "complete", None)) and not callable(judge)
    from whileai_kernel.registry import entries

    prefix, colon, rest = judge.partition(":")
    return bool(colon and rest) and prefix in {entry.name for entry in entries("models")}


def _filled(agent: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of `simulate` with what the call leaves out."""
    from whileai_simulate.options import preset

    agent = setting("agent", agent)
    if agent is None:
        raise _missing("agent", "'ollama:llama3.2'")
    options = dict(options)
    for name in ("user", "simulator"):
        if options.get(name) is None and (value := setting(name)) is not None:
            options[name] = value
    policy = options.get("repeat_policy") or preset(options.get("mode"))["repeat_policy"]
    decides = policy in ("successive", "adaptive")  # only these grade while they simulate
    if _is_model(options.get("judge")) or (options.get("judge") is None and decides and setting("judge") is not None):
        options["judge"] = judge_of(options.get("judge"))
    return agent, options


def simulate(agent: Any = None, **options: Any) -> SimulationData:
    """Simulate an agent through many situations; the options are those of `whileai_simulate.simulate`.

    Args:
        agent: As there; by default the agent that `context`, `configure` or `WHILEAI_AGENT` names.
        options: As there; `user` and `simulator` are filled in the same way.

    Raises:
        ParameterError: Nobody names an agent.
    """
    from whileai.data import simulate as run

    agent, options = _filled(agent, options)
    return run(agent, **options)


async def asimulate(agent: Any = None, **options: Any) -> SimulationData:
    """`simulate` for callers that are already async."""
    from whileai.data import asimulate as run

    agent, options = _filled(agent, options)
    return await run(agent, **options)


def grade(rows: Iterable[Row], judge: Any = None, **options: Any) -> ScoredData:
    """Grade rows with a judge or verifier; the options are those of `whileai_judge.grade`.

    Args:
        rows: As there.
        judge: As there; by default the judge that `context`, `configure` or `WHILEAI_JUDGE` names. A model, or the
            spec of one, judges by the `rubric` that is set.
        options: As there.

    Raises:
        ParameterError: Nobody names a judge, or a model has no rubric.
    """
    from whileai.data import grade as run

    return run(rows, judge_of(judge), **options)
