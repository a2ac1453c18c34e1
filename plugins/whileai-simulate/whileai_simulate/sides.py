"""The sides of a run beside the agent: who plays the user, who judges, and which of all of them are models.

A side is given as a name, a spec such as `openai:gpt-5-mini`, a model object, or a component of its own. Models are put
behind the run's ledger on copies, so that what the caller passed stays as it is.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from whileai_kernel.errors import ParameterError, UnknownNameError, WhileaiError, nearest
from whileai_kernel.registry import make, resolve
from whileai_simulate.agents import PreparedAgent
from whileai_simulate.draw import hash64
from whileai_simulate.estimate import estimate_run
from whileai_simulate.fingerprint import fingerprint
from whileai_simulate.ledger import RunLedger
from whileai_simulate.prompts import OUTCOME_RUBRIC, USER_TEMPLATE, WRITER_TEMPLATE

if TYPE_CHECKING:
    from whileai_simulate.call import Call

__all__ = [
    "UserSide",
    "announce",
    "is_model",
    "make_judge",
    "make_user_side",
    "metered_agent",
    "metered_judge",
    "metered_writer",
    "model_of",
    "resolved_model",
]

_PLAYED = ("none", "scripted")


def is_model(value: Any) -> bool:
    """Whether a value is a model: it has an id and completes conversations."""
    return not inspect.isclass(value) and callable(getattr(value, "complete", None)) and hasattr(value, "id")


def model_of(component: Any) -> Any:
    """Return the model that a component asks, or `None`."""
    found = getattr(component, "model", None)
    return found if is_model(found) else None


@dataclass(frozen=True)
class UserSide:
    """Who plays the user.

    Attributes:
        kind: `scripted` or `model`, or the type of an object of one's own.
        player: The component: `start(task, seed, patience)` returns the user of one rollout; `None` when scripted.
        version: What tells one user from another.
    """

    kind: str
    player: Any = None
    version: str = ""

    @property
    def waits(self) -> bool:
        """Whether its answers have to be waited for."""
        return self.kind != "scripted"

    def metered(self, ledger: RunLedger) -> UserSide:
        """Return the side with its model behind the ledger."""
        model = model_of(self.player)
        if model is None:
            return self
        player = copy.copy(self.player)
        player.model = ledger.meter(model, "user")
        return replace(self, player=player)

    def maker(self, seed: int, patience: int) -> Callable[[Mapping[str, Any], int], Any]:
        """Return what makes the user of a rollout from its task and index."""
        from whileai_simulate.users import make_user

        if self.player is None:
            return lambda task, index: make_user(task, index, patience)
        player = self.player
        return lambda task, index: player.start(task, hash64(seed, task["task_id"], index, "user"), patience)


def make_user_side(user: Any) -> UserSide | None:
    """Return who plays the user, or `None` for a single ask.

    Args:
        user: `none`, `scripted`, the spec of a model, a model, a `ModelUser`, or an object with
            `start(task, seed, patience)`.

    Raises:
        ParameterError: It is none of these.
    """
    if user is None or user is False or user == "none":
        return None
    if user == "scripted":
        return UserSide("scripted", None, "scripted")
    if isinstance(user, str):
        user = resolved_model(user, "user", "'none', 'scripted', or a model such as 'openai:<model>'", _PLAYED)
    if is_model(user):
        from whileai_simulate.model_user import ModelUser

        user = ModelUser(user)
    if inspect.isclass(user) or not callable(getattr(user, "start", None)):
        raise ParameterError(
            f"{user!r:.60} is no user", why="a user has start(task, seed, patience), whose result has reply(spoken)",
            fix="pass user='scripted', a model spec such as 'openai:<model>', a model, or a ModelUser",
        )  # fmt: skip
    kind = "model" if model_of(user) is not None else type(user).__name__
    version = getattr(user, "version", "") or f"{type(user).__qualname__}@{fingerprint(user)}"
    return UserSide(kind, user, str(version))


def resolved_model(spec: str, side: str, choices: str, words: Sequence[str] = ()) -> Any:
    """Return the model of a spec.

    Args:
        spec: The spec.
        side: Side of the run, for the error.
        choices: What that side may be, for the error.
        words: What that side may be beside models, of which a misspelt one is told.

    Raises:
        ParameterError: It is the spec of no model.
    """
    try:
        found = resolve("models", spec)
    except UnknownNameError as err:
        near = nearest(spec, words)
        fix = f"did you mean {near[0]!r}?" if near else err.fix or f"pass {choices}"
        raise ParameterError(f"unknown {side} {spec!r}", why=f"{side} is {choices}; {err.why}", fix=fix) from err
    except TypeError as err:  # the name of a provider without the name of a model
        raise ParameterError(f"{side} {spec!r} names no model", why=str(err), fix=f"pass {choices}") from err
    if not is_model(found):
        raise ParameterError(f"{spec!r} is no model", why=f"{side} is {choices}", fix=f"pass {choices}")
    return found


def make_judge(judge: Any) -> Any:
    """Return the judge of a name, a spec of a model (judged by the private reference), a model or a callable.

    Raises:
        UnknownNameError: Nothing answers to the name.
        ParameterError: A model is given, and no plugin brings judges that ask models.
    """
    if isinstance(judge, str):
        try:
            judge = resolve("judges", judge)
        except UnknownNameError as err:
            try:
                judge = resolved_model(judge, "judge", "a registered judge, or a model such as 'openai:<model>'")
            except WhileaiError:
                try:
                    return resolve("verifiers", judge)
                except UnknownNameError as other:  # whichever knows the nearest name
                    raise (other if "did you mean" in other.fix and "did you mean" not in err.fix else err) from None
    if not is_model(judge) or callable(judge):
        if judge is not None and not callable(judge):
            raise ParameterError(
                f"{judge!r:.60} is no judge", why="a judge is called with a row and returns a verdict",
                fix="pass a function of a row, the name of a judge or verifier, or a model such as 'openai:<model>'",
            )  # fmt: skip
        return judge
    try:
        return make("judges", "judge/rubric", rubric=OUTCOME_RUBRIC, model=judge, reference=True, name="outcome")
    except UnknownNameError as err:
        raise ParameterError(
            f"{judge.id} is a model and no judge", why="judges that ask models come from another plugin",
            fix="pip install whileai-judge, or pass a judge",
        ) from err  # fmt: skip


def metered_agent(agent: PreparedAgent, ledger: RunLedger) -> PreparedAgent:
    """Return the agent with its model behind the ledger; an agent without a model of its own as it is."""
    model = model_of(agent.fn)
    if model is None or inspect.isroutine(agent.fn):
        return agent
    fn: Any = copy.copy(agent.fn)
    fn.model = ledger.meter(model, "agent")
    return replace(agent, fn=fn)


def metered_judge(judge: Any, ledger: RunLedger) -> Any:
    """Return the judge with its model behind the ledger."""
    model = model_of(judge)
    if model is None or inspect.isroutine(judge):
        return judge
    judge = copy.copy(judge)
    judge.model = ledger.meter(model, "judge")
    return judge


def metered_writer(writer: Any, ledger: RunLedger) -> Any:
    """Return the writer with its model behind the ledger."""
    model = model_of(writer)
    if model is None:
        return writer
    writer = copy.copy(writer)
    writer.model = ledger.meter(model, "writer")
    return writer


def announce(call: Call) -> None:
    """Work out what the run will ask of models, keep it as `call.estimate`, and print it unless the run is quiet."""
    user = call.user
    sides = [
        ("agent", model_of(call.agent.fn)),
        ("user", None if user is None else model_of(user.player)),
        ("writer", model_of(call.source.writer)),
        ("judge", model_of(call.judge)),
    ]
    models = [(side, model) for side, model in sides if model is not None]
    if not models:
        return
    policy = [call.setting.system_prompt or "", call.setting.tools]
    limits = {"tokens": call.budget.tokens, "usd": call.budget.usd}
    ceilings = ", ".join(f"{v:g} {k}" for k, v in limits.items() if v is not None)
    open_end = "no ceiling; budget={'tokens': ...} or {'usd': ...} sets one"
    call.estimate = estimate_run(
        models,
        rollouts=call.count * call.width,
        written=call.count - len(call.source.fixed),
        patience=call.options.patience,
        max_turns=call.options.max_turns,
        texts={"agent": policy, "user": USER_TEMPLATE, "writer": [WRITER_TEMPLATE, policy], "judge": policy},
        has_user=user is not None,
        budget=f"stops before {ceilings}" if ceilings else open_end,
    )
    if call.arguments["progress"] is not False:
        sys.stderr.write(f"{call.estimate}\n")
        sys.stderr.flush()
