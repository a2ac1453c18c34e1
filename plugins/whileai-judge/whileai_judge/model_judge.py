"""A judge that asks a model: prose or criteria, votes, and statuses for everything that is not a verdict.

:class:`Judge` is a component like any other: give it to ``grade``. The model is a component of kind ``models``, the
spec of one, or any object with ``async complete(messages, tools, sampling) -> Completion``. What the judge cannot read
is not scored: an unreadable or cut answer is ``invalid``, a refusal or a tied vote ``abstained``, a row without a reply
or without the reference that it needs ``missing``; what the model raises is an ``error``.

The judge is never the model that it judges, unless ``allow_self`` names it; how the two are related stands on
every verdict (``evidence["relation"]``).

Example:
    >>> import asyncio
    >>> from whileai_judge.scripted import verdict_line
    >>> from whileai_kernel.testing import ScriptedModel
    >>> judge = Judge("Is polite.", ScriptedModel(lambda messages: verdict_line(messages, "PASS")))
    >>> asyncio.run(judge({"prompt": "Hi", "final_text": "Good morning."}))["reward"]
    1.0
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_judge.defaults import EVIDENCE_CHARACTERS, VOTES
from whileai_judge.forms import Form, agreement_of, label_rewards
from whileai_judge.parsing import parse_object
from whileai_judge.prompts import TEMPLATE, answer_schema, judge_prompt, neutralise, reference_text, reply_text
from whileai_judge.relations import bare_name, model_name, relation_of
from whileai_judge.rubric import Rubric
from whileai_judge.scripted import quoted_block, verdict_line
from whileai_kernel.errors import ParameterError
from whileai_kernel.messages import spoken_text
from whileai_kernel.protocols import Example
from whileai_kernel.registry import resolve
from whileai_kernel.rows import LENGTH_REASONS, content_id
from whileai_kernel.testing.models import ScriptedModel


@dataclass(frozen=True, slots=True)
class Vote:
    """One answer of the model: what it decided (None when that cannot be read) and what it cost."""

    decided: Any
    status: str
    reason: str | None
    usage: Mapping[str, Any]
    cost: float | None


def _example_model() -> ScriptedModel:
    """The model of the examples: it passes a reply that names a day."""

    def answer(messages: list[Mapping[str, Any]]) -> str:
        reply = quoted_block(messages) or ""
        return verdict_line(messages, "PASS" if re.search(r"\b\w+day\b", reply) else "FAIL")

    return ScriptedModel(answer, name="scripted-example")


class Judge:
    """Grades a row by asking a model.

    Args:
        rubric: What counts: prose, a :class:`~whileai_judge.rubric.Rubric` of criteria, or a text that lists
            criteria with their kind (``- [hard] asks: Asks for the order number.``), which is read as such.
        model: A model, or the spec of one (``"openai:gpt-5-mini"``): any object with
            ``async complete(messages, tools, sampling)``.
        labels: Labels of a prose rubric, with their rewards; two bare labels are worth 1 and 0.
        scale: Least and largest score of a prose rubric, instead of labels; mapped to [0, 1].
        reference: Show the row's private reference; rows without one are not scored.
        votes: How often the model is asked; the majority decides (of scores: the mean).
        structured: Ask for JSON by a schema; by default where the model's ``capabilities`` have ``json_schema``.
        sampling: Sampling of the model; part of the judge's version.
        allow_self: Names of models that may judge themselves.
        name: Name of the judge on verdicts.

    Raises:
        ParameterError: The arguments contradict each other.
    """

    scorer_kind = "judge"
    examples = (
        Example({"prompt": "When does it arrive?", "final_text": "It arrives on Monday."}, 1.0),
        Example({"prompt": "When does it arrive?", "final_text": "Soon."}, 0.0),
        Example({"prompt": "When does it arrive?", "final_text": None}, None),
    )

    def __init__(
        self,
        rubric: str | Rubric,
        model: Any,
        *,
        labels: Sequence[str] | Mapping[str, float] = ("PASS", "FAIL"),
        scale: tuple[float, float] | None = None,
        reference: bool = False,
        votes: int = VOTES.value,
        structured: bool | None = None,
        sampling: Mapping[str, Any] | None = None,
        allow_self: Collection[str] = (),
        name: str = "rubric",
    ) -> None:
        if isinstance(model, str):
            model = resolve("models", model)
        if not callable(getattr(model, "complete", None)):
            why, fix = "a judge calls model.complete(messages, tools, sampling)", "pass a model object"
            raise ParameterError(f"{type(model).__name__} is not a model", why=why, fix=fix)
        if isinstance(rubric, str):
            rubric = Rubric.read(rubric, name)
        elif not isinstance(rubric, Rubric):
            raise ParameterError(f"a rubric is text or a Rubric, not {type(rubric).__name__}", fix="Rubric([...])")
        if scale is not None and not scale[0] < scale[1]:
            raise ParameterError(f"scale {scale!r} has no range", fix="pass scale=(1, 5)")
        if not isinstance(votes, int) or isinstance(votes, bool) or votes < 1:
            raise ParameterError(f"votes={votes!r} is not a whole number of at least 1", fix="pass votes=3")
        self.rubric, self.model, self.reference, self.votes, self.name = rubric, model, reference, votes, name
        self.form = Form(rubric, label_rewards(labels), scale)
        self.structured = "json_schema" in getattr(model, "capabilities", ()) if structured is None else structured
        self.sampling = dict(sampling or {})
        self.allow_self = (allow_self,) if isinstance(allow_self, str) else tuple(allow_self)

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Parameters that need no network, for the conformance kit."""
        return {"rubric": "Names the day of arrival.", "model": _example_model()}

    @property
    def version(self) -> str:
        """Hash of the rubric, the wording of the prompt, the model and its sampling: what shapes a verdict."""
        rubric = self.rubric.version if isinstance(self.rubric, Rubric) else self.rubric
        scale = self.form.scale and [float(end) for end in self.form.scale]
        form = [dict(self.form.labels), scale, self.reference, self.structured, self.votes]
        return content_id("judge", TEMPLATE, rubric, form, model_name(self.model), self.sampling)

    @property
    def scorer(self) -> dict[str, Any]:
        """Who this is on a verdict."""
        params = {"model": model_name(self.model), "votes": self.votes}
        return {"id": f"judge/{self.name}", "version": self.version, "kind": "judge", "params": params}

    def __repr__(self) -> str:
        return f"Judge({self.name!r}, model={model_name(self.model)!r}, version={self.version!r})"

    async def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Grade one row.

        Raises:
            ParameterError: The judge is the model that it judges.
        """
        reply, secret = reply_text(row), reference_text(row)
        if reply is None:
            return {"reward": None, "status": "missing", "reason": "the row has no reply to judge"}
        if self.reference and secret is None:
            return {"reward": None, "status": "missing", "reason": "the row has no reference"}
        relation = self._relation(row)
        if not reply.strip():
            return {"reward": 0.0, "reason": "the reply is empty", "relation": relation, "asked": 0}
        votes = await self._votes(row)
        verdict = self._decide(votes)
        said = verdict.get("reason") or next((vote.reason for vote in votes if vote.reason), None)
        verdict["reason"] = without_reference(said, secret) if said else None
        verdict |= {"relation": relation, **_spent(votes)}
        if neutralise(reply) != reply:
            verdict["addresses_judge"] = True  # for people to look at: the reply holds delimiters or verdicts
        return verdict

    def _relation(self, row: Mapping[str, Any]) -> str:
        policy = row.get("policy")
        judged = policy.get("model") if isinstance(policy, Mapping) else None
        own = model_name(self.model)
        relation = relation_of(own, judged if isinstance(judged, str) else None)
        if relation == "same model" and not {own, judged, bare_name(own)} & set(self.allow_self):
            raise ParameterError(
                f"the judge is the model that it judges: {judged}",
                why="models prefer their own answers",
                fix=f"judge with another model, or pass allow_self=[{judged!r}]",
            )
        return relation

    async def _votes(self, row: Mapping[str, Any]) -> list[Vote]:
        """Ask as often as there are votes; an answer that raises is a vote that cannot be read, unless all do."""
        messages, marker = judge_prompt(
            row,
            self.rubric,
            labels=tuple(self.form.labels),
            scale=self.form.scale,
            reference=self.reference,
            structured=self.structured,
        )
        answers = await asyncio.gather(
            *(self._ask(messages, marker, vote) for vote in range(self.votes)), return_exceptions=True
        )
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        stops = [error for error in errors if not isinstance(error, Exception)]
        if stops or len(errors) == len(answers):
            raise (stops or errors)[0]
        failed = [Vote(None, "error", f"{type(error).__name__}: {error}", {}, None) for error in errors]
        return [answer for answer in answers if isinstance(answer, Vote)] + failed

    async def _ask(self, messages: list[dict[str, str]], marker: str, vote: int) -> Vote:
        sampling = dict(self.sampling)
        options: dict[str, Any] = {}
        if self.votes > 1:
            if "seed" in sampling:
                sampling["seed"] += vote  # one seed for all votes would give one vote many times
            if takes_repeat(self.model):
                options["repeat"] = vote  # and so would a cache
        if self.structured:
            options["schema"] = answer_schema(self.rubric, tuple(self.form.labels), self.form.scale)
        completion = await self.model.complete(messages, (), sampling, **options)
        text, finish, refused, usage, cost = _parts(completion)
        if refused or finish == "content_filter":
            return Vote(None, "abstained", "the judge refused", usage, cost)
        if finish in LENGTH_REASONS:
            return Vote(None, "invalid", "the judge's answer was cut by its length limit", usage, cost)
        decided = self.form.read_object(text) if self.structured else self.form.read_text(text, marker)
        if decided is None:
            return Vote(None, "invalid", "the judge's answer holds no verdict that can be read", usage, cost)
        return Vote(decided, "ok", _reason(text, marker, self.structured), usage, cost)

    def _decide(self, votes: Sequence[Vote]) -> dict[str, Any]:
        """The verdict of the votes that can be read; half of them unreadable is too few."""
        read = [vote.decided for vote in votes if vote.decided is not None]
        if 2 * len(read) <= len(votes):
            worst = next(vote for vote in votes if vote.decided is None)
            return {"reward": None, "status": worst.status, "reason": worst.reason, "votes_read": len(read)}
        verdict = self.form.decide(read)
        if self.votes > 1:
            verdict |= {"votes": read, "votes_read": len(read), "self_consistency": agreement_of(read)}
        return verdict


def without_reference(text: str, reference: str | None) -> str:
    """A reason without the private reference; inside longer words and numbers it is left alone.

    Example:
        >>> without_reference("The answer 17 is not 7.", "7")
        'The answer 17 is not [reference].'
    """
    if not reference or not reference.strip():
        return text
    pattern = rf"(?<![\w.]){re.escape(reference.strip())}(?!\w|\.\d)"
    return re.sub(pattern, "[reference]", text, flags=re.IGNORECASE)


def takes_repeat(model: Any) -> bool:
    """Whether a model (or the one that it wraps) tells equal requests apart by ``repeat``, as a cache does."""
    try:
        parameters = inspect.signature(model.complete).parameters
    except (TypeError, ValueError):
        return False
    if "repeat" in parameters:
        return True
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    inner = getattr(model, "inner", None)
    return passes_on and inner is not None and takes_repeat(inner)


def _parts(completion: Any) -> tuple[str, str | None, Any, Mapping[str, Any], float | None]:
    """Text, finish reason, refusal, usage and cost of a completion: an object, a mapping, or text."""
    if isinstance(completion, str):
        return completion, None, None, {}, None

    def get(holder: Any, name: str) -> Any:
        return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)

    message = get(completion, "message")
    text = get(message, "content") if message is not None else get(completion, "text")
    usage = get(completion, "usage")
    cost = get(completion, "cost_usd")
    return (
        text if isinstance(text, str) else "",
        get(completion, "finish_reason"),
        get(message, "refusal") if message is not None else None,
        usage if isinstance(usage, Mapping) else {},
        float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )


def _reason(text: str, marker: str, structured: bool) -> str | None:
    """What the judge said before its verdict."""
    if structured:
        said = (parse_object(text) or {}).get("reason")
    else:
        spoken = spoken_text(text)
        said = spoken[: max(0, spoken.lower().rfind(marker.lower()))]
    return said.strip()[: EVIDENCE_CHARACTERS.value] or None if isinstance(said, str) else None


def _spent(votes: Sequence[Vote]) -> dict[str, Any]:
    """Tokens and cost of all votes; the cost is None when one of them is unknown."""
    usage: dict[str, float] = {}
    for vote in votes:
        for name, value in vote.usage.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                usage[name] = usage.get(name, 0) + value
    costs = [vote.cost for vote in votes]
    known = [cost for cost in costs if cost is not None]
    spent: dict[str, Any] = {"asked": len(votes), "cost_usd": sum(known) if len(known) == len(costs) else None}
    return {**spent, "usage": usage} if usage else spent
