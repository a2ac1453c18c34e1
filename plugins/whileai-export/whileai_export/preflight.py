"""Before the trainer starts: render what would be trained with the real chat template, and count.

`preflight_export` does what the trainer does (TRL: `assistant_masks` of the template, and the common prefix of prompt
and whole) and reports trained tokens, rows over the length limit, labels that the limit cuts, template errors and
prompts that are no prefix. A mask of zeros only is an error. Readers of the other targets have templates of their own
that cannot be asked; their conversations are rendered with the template given, and the report says what that leaves
unchecked. Needs a tokenizer of `transformers`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from whileai_export.counting import Count
from whileai_export.defaults import MAX_LENGTH
from whileai_export.gathering import Tally, gather
from whileai_export.options import Options
from whileai_export.samples import Sample
from whileai_export.settings import trainer_settings
from whileai_export.targets import TARGETS, Target
from whileai_kernel.errors import FindingsError, MissingDependencyError, ParameterError, unknown_name
from whileai_kernel.lifecycle import Finding

__all__ = ["Preflight", "load_tokenizer", "preflight_export"]


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
        not_checked: What the figures do not cover.
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
    not_checked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Say whether nothing stops the training."""
        return not any(f.level == "error" for f in self.findings)

    def __str__(self) -> str:
        head = (
            f"{self.trained_tokens} trained of {self.tokens} tokens in {self.rendered} of {self.records} records | "
            f"longest {self.longest}, limit {self.max_length}: {self.over_length} over, {self.lost} lost"
        )
        return "\n".join([head, *(f"  {f}" for f in self.findings), *(f"  not checked: {n}" for n in self.not_checked)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        out = asdict(self)
        out["findings"] = [f.to_dict() for f in self.findings]
        out["template_errors"] = dict(self.template_errors)
        out["not_checked"] = list(self.not_checked)
        return out

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def load_tokenizer(value: Any) -> Any:
    """Return a tokenizer as it is, or load the one that a name or a path says.

    Raises:
        ParameterError: There is none.
        MissingDependencyError: transformers is not installed.
    """
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
            "loading a tokenizer needs transformers", fix='pip install "whileai-export[preflight]"'
        ) from err
    return AutoTokenizer.from_pretrained(str(value))


NOT_CHECKED = {
    "chat": ("the template of whoever reads the file: tokens are those of the tokenizer given here",),
    "openai": (
        "the platform's own template and tokenizer: tokens are those of the tokenizer given here",
        "the platform's limits on examples and file size",
    ),
    "anthropic": ("the provider's template and tokenizer, which are not public: tokens are an estimate",),
    "sharegpt": ("the reader's own template (LLaMA-Factory: template=): tokens are those of the tokenizer given here",),
}
"""What a rendering with a foreign template says nothing about, by target."""


def preflight_export(
    rows: Iterable[Mapping[str, Any]],
    tokenizer: Any = None,
    *,
    to: str = "trl",
    max_length: int = MAX_LENGTH.value,
    chat_template: str | None = None,
    token_ids: bool = False,
    strict: bool = False,
    allow: Sequence[str] = (),
    **options: Any,
) -> Preflight:
    """Render rows as the trainer would and report what would be trained.

    Args:
        rows: Rows.
        tokenizer: A tokenizer of `transformers`, or the name or path of one.
        to: Target. For `trl` this is what the trainer does. For `chat`, `openai`, `anthropic` and `sharegpt` the
            conversations are rendered with this tokenizer's template, and `not_checked` says what that leaves out.
        max_length: Tokens after which the trainer cuts a record (from the end).
        chat_template: Template to use instead of the tokenizer's.
        token_ids: Count the token ids and labels that `export(..., tokenizer=)` writes.
        strict: Raise on errors instead of returning them.
        allow: As `export`.
        options: As `export` (`kind`, `train`, `unroll`, `reasoning`, ...).

    Returns:
        The report; `ok` is false when training on the file would go wrong.

    Raises:
        ParameterError: There is no tokenizer or no chat template, or an option is unknown.
        UnknownNameError: The target is none of this plugin.
        FindingsError: `strict` and something is wrong.
    """
    if to not in TARGETS:
        unknown_name("target of a preflight", to, TARGETS)
    target = TARGETS[to]
    tok = load_tokenizer(tokenizer)
    template = chat_template or getattr(tok, "chat_template", None)
    if not template:
        raise ParameterError(
            "the tokenizer has no chat template",
            why="a base model has none",
            fix="pass chat_template=, or an instruct model's tokenizer",
        )
    if chat_template:
        tok = copy.deepcopy(tok)
        tok.chat_template = chat_template
    chosen = Options.of(target, {**options, "tokenizer": tok} if token_ids else options)
    count = Count(tok, template, max_length, trains=chosen.kind not in ("prompts", "eval"))
    tally = Tally()
    given = [row for row in rows if not tally.misfit(row)]
    for sample in gather(target, given, chosen, allow, tally):
        _add(count, target, sample, chosen)
    report = _report(count, target, chosen)
    if strict and not report.ok:
        errors = [f for f in report.findings if f.level == "error"]
        raise FindingsError(errors[0].message, why=str(report).split("\n")[0], fix=errors[0].fix, findings=errors)
    return report


def _add(count: Count, target: Target, sample: Sample, options: Options) -> None:
    """Count a sample as its reader would render it."""
    if options.tokenizer is not None:
        count.add_labels(sample, train_arguments=options.train_arguments)
    elif not count.trains:
        count.add_prompt(sample)
    elif target.mask == "split":
        from whileai_export.exporters import shape_of

        count.add(target.record(sample, shape_of(target, options)))
    elif options.kind == "preference":
        for reply in (sample.chosen, sample.rejected):
            start = len(sample.messages)
            spoken = [start + n for n, m in enumerate(reply) if m["role"] == "assistant"]
            count.add_labels(replace(sample, messages=[*sample.messages, *reply], trained=tuple(spoken)))
    else:
        trained = sample.trained if _turns_reach(target, options) else _spoken(sample)
        count.add_labels(replace(sample, trained=trained))


def _spoken(sample: Sample) -> tuple[int, ...]:
    return tuple(n for n, m in enumerate(sample.messages) if m["role"] == "assistant")


def _turns_reach(target: Target, options: Options) -> bool:
    """Say whether the reader of a file can be told which turns are trained."""
    settings = trainer_settings(target, options.kind, options.train, options.unroll)
    return bool(settings["enforced"] or settings["switches"])


def _report(count: Count, target: Target, options: Options) -> Preflight:
    findings = count.findings()
    settings = trainer_settings(
        target,
        options.kind,
        options.train,
        options.unroll,
        options.tokenizer is not None,
        options.train_arguments,
        options.pairs,
    )
    if not settings["enforced"]:
        findings.append(
            Finding("export/not_enforced", "warning", "; ".join(settings["notes"]), "choose a target that reads it")
        )
    return Preflight(
        records=count.n,
        rendered=count.rendered,
        tokens=count.tokens,
        trained_tokens=count.trained,
        longest=count.longest,
        max_length=count.limit,
        over_length=count.over,
        cut_labels=count.cut,
        lost=count.lost,
        untrained=count.untrained,
        not_prefix=count.not_prefix,
        template_errors=dict(count.errors),
        findings=tuple(findings),
        not_checked=NOT_CHECKED.get(target.name, ()),
    )
