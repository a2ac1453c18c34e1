"""A situation writer on a model: it words scenes, and every ask is held against the world before a run uses it.

The scene (records, goal, faults, right course) is made as ever; the model only says in other words what the plain
version says. An ask that breaks a rule of `writer_checks`, shares text with a trace, or nearly repeats an earlier one
is asked for again with what was wrong; after a few times the offline writer words it, and the task says so under
`lineage`. A model that cannot be used at all (a wrong key) is an error and not a run that is quietly offline.

Example:
    >>> from whileai_kernel.testing import ScriptedModel
    >>> ModelWriter(ScriptedModel(['{"ask": "Hi"}']))
    ModelWriter('scripted')
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_kernel.errors import ParameterError, WhileaiError
from whileai_kernel.protocols import Model, WriteRequest
from whileai_kernel.registry import resolve
from whileai_kernel.rows import content_id
from whileai_kernel.testing import ScriptedModel
from whileai_simulate.briefs import PERSONAS
from whileai_simulate.dedup import NearDuplicates
from whileai_simulate.defaults import USER_MAX_TOKENS, WRITER_CONCURRENCY, WRITER_RETRIES
from whileai_simulate.draw import hash64
from whileai_simulate.language import known
from whileai_simulate.lexicon import label
from whileai_simulate.prompts import WRITER_SCHEMA, WRITER_TEMPLATE, writer_messages
from whileai_simulate.replies import ReplyError, read_object, said
from whileai_simulate.scenes import Scene, Setting, build_scene
from whileai_simulate.stopping import Stop
from whileai_simulate.waiting import wait
from whileai_simulate.writer import OfflineWriter, task_of, word_scene
from whileai_simulate.writer_checks import ask_problems, kept_texts

__all__ = ["ModelWriter"]


@dataclass(slots=True)
class _Ask:
    """One ask on its way.

    Attributes:
        position: Place of the situation in the run.
        axes: Values of the axes.
        scene: The scene.
        draft: The plain version.
        reference: The private reference of the task.
        text: What was accepted, or `None`.
        notes: What was wrong with the last attempt.
        attempts: Requests so far.
        failure: What the model raised last.
    """

    position: int
    axes: dict[str, Any]
    scene: Scene
    draft: str
    reference: str
    text: str | None = None
    notes: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    attempts: int = 0
    failure: Exception | None = None


class ModelWriter:
    """Writes asks with a model, for the argument `simulator` of `simulate`.

    Args:
        model: A model, or its spec, for example `openai:gpt-5-mini`.
        sampling: Sampling of every request; `max_tokens` and `seed` are filled in where they are missing.
        language: English name of the language of the asks; see `language.known` for those that can be checked.
        retries: Further requests for one ask before the offline writer words it.
        concurrency: Requests in flight at once.
        deadline_s: Seconds for one request; by default the model's own.
        structured: Ask for JSON by a schema; by default where the model's `capabilities` have `json_schema`.
        locale: Locale of names and streets when it makes the scenes itself.
    """

    example_situations = OfflineWriter.example_situations
    ahead = True
    """Asks are written before the first rollout, so that a slow reply holds nobody up."""

    def __init__(
        self,
        model: Model | str,
        *,
        sampling: Mapping[str, Any] | None = None,
        language: str = "English",
        retries: int = WRITER_RETRIES.value,
        concurrency: int = WRITER_CONCURRENCY.value,
        deadline_s: float | None = None,
        structured: bool | None = None,
        locale: str = "en_US",
    ) -> None:
        self.model: Any = resolve("models", model)
        if not callable(getattr(self.model, "complete", None)):
            raise ParameterError(
                f"{type(self.model).__name__} is not a model", why="a writer calls model.complete(messages)",
                fix="pass simulator=False, a model, or a spec such as 'openai:<model>'",
            )  # fmt: skip
        if retries < 0 or concurrency < 1:
            raise ParameterError("retries >= 0 and concurrency >= 1 are needed")
        self.sampling = {
            "max_tokens": USER_MAX_TOKENS.value, **dict(getattr(self.model, "sampling", None) or {}), **(sampling or {})
        }  # fmt: skip
        self.language, self.retries, self.concurrency = language, retries, concurrency
        self.deadline_s, self.locale = deadline_s, locale
        self.structured = "json_schema" in getattr(self.model, "capabilities", ()) if structured is None else structured

    @staticmethod
    def example_params() -> dict[str, Any]:
        """Return parameters that need no network, for the conformance kit: a model that says the plain version."""
        return {"model": ScriptedModel(_echo, name="example")}

    def __repr__(self) -> str:
        return f"ModelWriter({self.model.id!r})"

    @property
    def version(self) -> str:
        """Hash of what shapes its asks: the prompt, the model, its sampling and the arguments."""
        own = [self.language, self.retries, self.structured]
        return content_id("writer", WRITER_TEMPLATE, self.model.id, self.sampling, own)

    @property
    def notes(self) -> list[str]:
        """What a reader of the asks has to know."""
        return [] if known(self.language) else [f"asks in {self.language} were not checked for their language"]

    def write(self, request: WriteRequest) -> Iterator[dict[str, Any]]:
        """Yield one task per situation, in order.

        Args:
            request: As `OfflineWriter.write`. Options: `setting`, `first`, `near` (the run's near-duplicate filter),
                `leak_check` (whether a text shares words with a trace) and `fallback` (words a situation offline).

        Raises:
            WhileaiError: The model failed at every ask.
            Stop: A ceiling of the run would have been passed.
        """
        from whileai_simulate.setting import make_setting

        options = request.options
        setting: Setting = options.get("setting") or make_setting(
            request.tools, request.system_prompt, seed=request.seed, locale=self.locale
        )
        first = int(options.get("first", 0))
        asks = [self._ask_for(setting, situation, first + n) for n, situation in enumerate(request.situations)]
        near = options.get("near") or NearDuplicates()
        self._write_all(setting, asks, near, options.get("leak_check"))
        for ask in asks:
            yield self._task(setting, ask, near, options.get("fallback"))

    def _ask_for(self, setting: Setting, situation: Mapping[str, Any], position: int) -> _Ask:
        axes = {k: v for k, v in situation.items() if k not in ("scene", "draft", "attempt")}
        scene = build_scene(setting, axes, position, 0)
        draft = word_scene(setting, scene, position)
        plain = task_of(setting, build_scene(setting, axes, position, 0), draft)
        return _Ask(position, axes, scene, draft, str(plain["privileged"]["reference"]))

    def _write_all(self, setting: Setting, asks: list[_Ask], near: NearDuplicates, leak_check: Any) -> None:
        """Ask in waves: each asks for all that are open at once, and judges the replies in order."""
        open_asks = asks
        for attempt in range(self.retries + 1):
            stop = wait(self._wave(setting, open_asks, attempt))
            for ask in open_asks:
                self._judge(setting, ask, near, leak_check)
            if stop is not None:
                raise stop
            open_asks = [a for a in open_asks if a.text is None]
            if asks and all(a.failure is not None for a in asks):
                raise self._useless(asks[0].failure)
            if not open_asks:
                return

    def _useless(self, err: Exception | None) -> WhileaiError:
        what = err.what if isinstance(err, WhileaiError) else f"{type(err).__name__}: {err}"
        return WhileaiError(
            f"the writer {self.model.id} failed at every ask",
            why=what,
            fix=(err.fix if isinstance(err, WhileaiError) else "") or "correct the model, or pass simulator=False",
        )

    async def _wave(self, setting: Setting, asks: list[_Ask], attempt: int) -> Stop | None:
        gate = asyncio.Semaphore(self.concurrency)
        stops: list[Stop] = []

        async def one(ask: _Ask) -> None:
            async with gate:
                if stops:
                    return
                try:
                    await self._request(setting, ask, attempt)
                except Stop as stop:
                    stops.append(stop)

        try:
            await asyncio.gather(*(one(a) for a in asks))
        finally:
            if callable(close := getattr(self.model, "aclose", None)):
                await close()  # connections belong to this loop, which ends here
        return stops[0] if stops else None

    async def _request(self, setting: Setting, ask: _Ask, attempt: int) -> None:
        messages = writer_messages(
            ask.draft,
            abilities=_abilities(setting),
            persona=PERSONAS.get(str(ask.axes.get("stance")), PERSONAS["ordinary"]),
            keep=kept_texts(ask.scene, ask.draft),
            earlier=ask.earlier,
            language=self.language,
            notes=ask.notes,
        )
        sampling = dict(self.sampling)
        sampling.setdefault("seed", hash64(setting.seed, ask.position, attempt, "writer") % 2**31)
        options: dict[str, Any] = {"schema": WRITER_SCHEMA} if self.structured else {}
        if self.deadline_s is not None:
            options["deadline_s"] = self.deadline_s
        ask.text, ask.failure = None, None
        ask.attempts += 1
        try:
            reply = said(await self.model.complete(messages, (), sampling, **options))
            value = read_object(reply, "ask")
            if value is None or not isinstance(value["ask"], str):
                raise ReplyError("it is not the JSON object that was asked for")
            ask.text = " ".join(value["ask"].split())
        except Stop:
            raise
        except ReplyError as err:
            ask.notes = [err.what]
        except Exception as err:  # noqa: BLE001 - recorded on the task, and raised when every ask fails
            ask.failure = err
            ask.notes = [f"the model failed: {err.what if isinstance(err, WhileaiError) else err}"]

    def _judge(self, setting: Setting, ask: _Ask, near: NearDuplicates, leak_check: Any) -> None:
        if ask.text is None:
            return
        problems = ask_problems(
            ask.text, setting=setting, scene=ask.scene, draft=ask.draft, reference=ask.reference,
            language=self.language,
        )  # fmt: skip
        if not problems and leak_check is not None and leak_check(ask.text):
            problems = ["it shares text with a recorded conversation"]
        if not problems and not near.add(ask.text):
            problems, ask.earlier = ["it is nearly an earlier message"], [ask.text]
        if problems:
            ask.notes, ask.text = problems, None

    def _task(
        self,
        setting: Setting,
        ask: _Ask,
        near: NearDuplicates,
        fallback: Callable[[Mapping[str, Any], int], Any] | None,
    ) -> dict[str, Any]:
        if ask.text is not None:
            lineage = {"writer": "simulate/model", "model": self.model.id, "version": self.version}
            scene = build_scene(setting, ask.axes, ask.position, 0)
            return task_of(setting, scene, ask.text, {**lineage, "attempts": ask.attempts})
        if fallback is not None:
            task: dict[str, Any] = fallback(ask.axes, ask.position)
        else:
            near.add(ask.draft)
            task = task_of(setting, build_scene(setting, ask.axes, ask.position, 0), ask.draft)
        why = ask.notes[0] if ask.notes else "no reply"
        return {
            **task,
            "lineage": {**task["lineage"], "instead_of": self.model.id, "why": why, "attempts": ask.attempts},
        }


def _abilities(setting: Setting) -> list[str]:
    """Return what the assistant can do, without the names of tools, which an ask must not show."""
    return [
        (info.tool.description or label(name)).partition("\n")[0].strip() for name, info in setting.domain.tools.items()
    ] or ["answer questions"]


def _echo(messages: list[Mapping[str, Any]]) -> str:
    import json
    import re

    text = str(messages[0]["content"])
    found = re.search(r"<<<DRAFT (\w+)\n(.*?)\nDRAFT \1>>>", text, re.S)
    return json.dumps({"ask": found.group(2) if found else ""}, ensure_ascii=False)
