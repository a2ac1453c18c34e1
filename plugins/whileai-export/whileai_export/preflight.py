"""Before the trainer starts: render what would be trained with the real chat template, and count.

`preflight_export` does what the trainer does (TRL: `assistant_masks` of the template, and the common prefix of prompt
and whole) and reports trained tokens, rows over the length limit, labels that the limit cuts, template errors and
prompts that are no prefix. A mask of zeros only is an error. Needs a tokenizer of `transformers`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from whileai_export.defaults import MAX_LENGTH, SHOWN_FLAGS
from whileai_export.gathering import Tally, gather
from whileai_export.options import Options
from whileai_export.targets import TARGETS
from whileai_kernel.errors import FindingsError, MissingDependencyError, ParameterError
from whileai_kernel.lifecycle import Finding

__all__ = ["Preflight", "preflight_export"]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a trainer would make of the rows.

    Attributes:
        records: Records that would be written.
        rendered: Records that the template rendered.
        tokens: Tokens of all rendered records.
        trained_tokens: Tokens that the loss covers, before any cut.
        longest: Tokens of the longest record.
        max_length: Limit of the trainer, in tokens.
        over_length: Records longer than the limit.
        cut_labels: Records of which the limit cuts trained tokens.
        lost: Records of which the limit cuts every trained token; trainers drop them without a word.
        untrained: Records without one trained token, whatever the limit.
        not_prefix: Records whose prompt is not a prefix of the whole.
        template_errors: What the template raised, with the number of records.
        findings: What to do about it; errors first.
    """

    records: int
    rendered: int
    tokens: int
    trained_tokens: int
    longest: int
    max_length: int
    over_length: int
    cut_labels: int
    lost: int
    untrained: int
    not_prefix: int
    template_errors: Mapping[str, int]
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Say whether nothing stops the training."""
        return not any(f.level == "error" for f in self.findings)

    def __str__(self) -> str:
        head = (
            f"{self.trained_tokens} trained of {self.tokens} tokens in {self.rendered} of {self.records} records | "
            f"longest {self.longest}, limit {self.max_length}: {self.over_length} over, {self.lost} lost"
        )
        return "\n".join([head, *(f"  {f}" for f in self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        out = asdict(self)
        out["findings"] = [f.to_dict() for f in self.findings]
        out["template_errors"] = dict(self.template_errors)
        return out

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _tokenizer(value: Any) -> Any:
    if value is None:
        raise ParameterError(
            "preflight needs a tokenizer", fix="pass tokenizer=AutoTokenizer.from_pretrained(...) or a path"
        )
    if not isinstance(value, str | Path):
        return value
    try:
        from transformers import AutoTokenizer
    except ImportError as err:
        raise MissingDependencyError(
            "preflight needs transformers to load a tokenizer", fix='pip install "whileai-export[preflight]"'
        ) from err
    return AutoTokenizer.from_pretrained(str(value))


def preflight_export(
    rows: Iterable[Mapping[str, Any]],
    tokenizer: Any = None,
    *,
    to: str = "trl",
    max_length: int = MAX_LENGTH.value,
    chat_template: str | None = None,
    strict: bool = False,
    allow: Sequence[str] = (),
    **options: Any,
) -> Preflight:
    """Render rows as the trainer would and report what would be trained.

    Args:
        rows: Rows.
        tokenizer: A tokenizer of `transformers`, or the name or path of one.
        to: Target; templates are read by `trl`.
        max_length: Tokens after which the trainer cuts a record (from the end).
        chat_template: Template to use instead of the tokenizer's.
        strict: Raise on errors instead of returning them.
        allow: As `export`.
        options: As `export` (`kind`, `train`, `unroll`, `reasoning`, ...).

    Returns:
        The report; `ok` is false when training on the file would go wrong.

    Raises:
        ParameterError: There is no tokenizer or no chat template, or an option is unknown.
        FindingsError: `strict` and something is wrong.
    """
    if to != "trl":
        raise ParameterError(
            f"preflight renders for trl, not for {to!r}",
            why="chat templates belong to the trainers that read them",
            fix="pass to='trl'",
        )
    target = TARGETS[to]
    chosen = Options.of(target, options)
    tok = _tokenizer(tokenizer)
    template = chat_template or getattr(tok, "chat_template", None)
    if not template:
        raise ParameterError(
            "the tokenizer has no chat template",
            why="a base model has none",
            fix="pass chat_template=, or an instruct model's tokenizer",
        )
    count = _Count(tok, template, max_length)
    from whileai_export.exporters import shape_of

    shape = shape_of(target, chosen)
    for sample in gather(target, list(rows), chosen, allow, Tally()):
        count.add(target.record(sample, shape))
    report = count.report()
    if strict and not report.ok:
        errors = [f for f in report.findings if f.level == "error"]
        raise FindingsError(errors[0].message, why=str(report).split("\n")[0], fix=errors[0].fix, findings=errors)
    return report


class _Count:
    """Adds up what the template makes of records."""

    def __init__(self, tokenizer: Any, template: str, limit: int) -> None:
        self.tokenizer, self.template, self.limit = tokenizer, template, limit
        self.markers = "generation %}" in template or "generation -%}" in template
        self.n = self.rendered = self.tokens = self.trained = self.longest = 0
        self.over = self.cut = self.lost = self.untrained = self.not_prefix = 0
        self.unmasked = 0
        self.errors: dict[str, int] = {}

    def _ids(
        self, messages: Sequence[Mapping[str, Any]], tools: Any, *, generation: bool = False, mask: bool = False
    ) -> Any:
        return self.tokenizer.apply_chat_template(
            [dict(m) for m in messages],
            tools=tools,
            chat_template=self.template,
            add_generation_prompt=generation,
            return_dict=True,
            return_assistant_tokens_mask=mask,
        )

    def add(self, record: Mapping[str, Any]) -> None:
        """Render one record and count it."""
        tools = json.loads(record["tools"]) if record.get("tools") else None
        for tail in ("chosen", "rejected") if "chosen" in record else ("completion" if "completion" in record else "",):
            self.n += 1
            try:
                mask = self._mask(record, tail, tools)
            except Exception as err:  # noqa: BLE001 - a template is foreign code and may raise anything
                text = f"{type(err).__name__}: {err}"[:200]
                self.errors[text] = self.errors.get(text, 0) + 1
                continue
            self.rendered += 1
            self.tokens += len(mask)
            self.trained += sum(mask)
            self.longest = max(self.longest, len(mask))
            self.over += len(mask) > self.limit
            if not any(mask):
                self.untrained += 1
            elif not any(mask[: self.limit]):
                self.lost += 1
            elif any(mask[self.limit :]):
                self.cut += 1

    def _mask(self, record: Mapping[str, Any], tail: str, tools: Any) -> list[int]:
        if not tail and "messages" in record:
            return (
                list(self._ids(record["messages"], tools, mask=True)["assistant_masks"])
                if self.markers
                else [0 for _ in self._ids(record["messages"], tools)["input_ids"]]
            )
        prompt = list(record["prompt"])
        if not tail:
            return [0] * len(self._ids(prompt, tools, generation=True)["input_ids"])
        before = list(self._ids(prompt, tools, generation=True)["input_ids"])
        single = len(record[tail]) == 1 or tail in ("chosen", "rejected")
        use_markers = self.markers and tail == "completion"
        whole = self._ids([*prompt, *record[tail]], tools, mask=use_markers)
        ids = list(whole["input_ids"])
        same = 0
        while same < min(len(before), len(ids)) and before[same] == ids[same]:
            same += 1
        self.not_prefix += same < len(before)
        completion = [0] * same + [1] * (len(ids) - same)
        if use_markers:
            return [a & b for a, b in zip(completion, whole["assistant_masks"], strict=True)]
        self.unmasked += not single
        return completion if single else [0] * len(ids)

    def report(self) -> Preflight:
        """Return the figures with what they mean."""
        return Preflight(
            records=self.n,
            rendered=self.rendered,
            tokens=self.tokens,
            trained_tokens=self.trained,
            longest=self.longest,
            max_length=self.limit,
            over_length=self.over,
            cut_labels=self.cut,
            lost=self.lost,
            untrained=self.untrained,
            not_prefix=self.not_prefix,
            template_errors=dict(self.errors),
            findings=tuple(self._findings()),
        )

    def _findings(self) -> list[Finding]:
        out = []
        name = getattr(self.tokenizer, "name_or_path", "") or type(self.tokenizer).__name__
        if self.n and self.rendered and self.untrained:
            why = "" if self.markers else " (it has no {% generation %} markers)"
            out.append(
                Finding(
                    "export/nothing_trained",
                    "error",
                    f"the chat template of {name}{why} gives {self.untrained} of {self.rendered} records "
                    "a mask of zeros only",
                    "use a template with {% generation %} (TRL swaps in its own for templates that it knows), "
                    "train='last', or export token ids with tokenizer=",
                    self.untrained,
                )
            )
        if self.errors:
            shown = "; ".join(list(self.errors)[: SHOWN_FLAGS.value])
            count = sum(self.errors.values())
            out.append(
                Finding(
                    "export/template_error",
                    "error",
                    f"the chat template raises on {count} records: {shown}",
                    "map the roles, or use another template",
                    count,
                )
            )
        if self.lost:
            out.append(
                Finding(
                    "export/labels_lost",
                    "error",
                    f"max_length={self.limit} cuts every trained token of {self.lost} records; "
                    "trainers drop them silently",
                    f"set max_length to at least {self.longest}",
                    self.lost,
                )
            )
        if self.cut:
            out.append(
                Finding(
                    "export/labels_cut",
                    "warning",
                    f"max_length={self.limit} cuts trained tokens of {self.cut} records",
                    f"set max_length to at least {self.longest}",
                    self.cut,
                )
            )
        if self.not_prefix:
            out.append(
                Finding(
                    "export/not_a_prefix",
                    "warning",
                    f"in {self.not_prefix} records the prompt is not a prefix of the whole: "
                    "the context differs from the one at inference",
                    "use a template that renders the prompt the same way in both, or strip the reasoning",
                    self.not_prefix,
                )
            )
        return sorted(out, key=lambda f: f.level != "error")
