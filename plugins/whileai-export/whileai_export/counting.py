"""What a chat template makes of records: tokens, trained tokens, and what the limit cuts.

`Count` adds up records one by one. For TRL it does what the trainer does (the template's `assistant_masks`, and the
common prefix of prompt and whole); for the other targets it finds the turns that are trained by the rendered text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whileai_export.defaults import SHOWN_FLAGS
from whileai_export.encoders import encode_tools, to_hf
from whileai_export.samples import Sample
from whileai_export.tokens import IGNORED, render, token_record
from whileai_kernel.lifecycle import Finding

__all__ = ["Count"]


class Count:
    """Adds up what the template makes of records.

    Args:
        tokenizer: A tokenizer.
        template: Its chat template, or another.
        limit: Tokens after which the trainer cuts a record.
        trains: Whether records of this kind hold trained tokens at all (prompts do not).
    """

    def __init__(self, tokenizer: Any, template: str, limit: int, *, trains: bool = True) -> None:
        self.tokenizer, self.template, self.limit, self.trains = tokenizer, template, limit, trains
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
        """Render one record of TRL and count it."""
        tools = json.loads(record["tools"]) if record.get("tools") else None
        for tail in ("chosen", "rejected") if "chosen" in record else ("completion" if "completion" in record else "",):
            self._add(lambda tail=tail: self._mask(record, tail, tools))  # type: ignore[misc]

    def add_labels(self, sample: Sample, *, train_arguments: bool = True) -> None:
        """Render a sample whose trained turns are found in the text, and count it."""
        self._add(lambda: self._labels(sample, train_arguments))

    def add_prompt(self, sample: Sample) -> None:
        """Render what comes before a reply, and count it."""
        self._add(lambda: [0] * self._length(sample))

    def _length(self, sample: Sample) -> int:
        tools = encode_tools(sample.row.get("tools") or (), "hf")
        text = render(self.tokenizer, to_hf(sample.messages), tools, generation=True)
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _labels(self, sample: Sample, train_arguments: bool) -> list[int]:
        labels = token_record(sample, self.tokenizer, train_arguments=train_arguments)["labels"]
        return [int(label != IGNORED) for label in labels]

    def _add(self, rendered: Callable[[], list[int]]) -> None:
        self.n += 1
        try:
            mask = rendered()
        except Exception as err:  # noqa: BLE001 - a template is foreign code and may raise anything
            text = f"{type(err).__name__}: {err}"[:200]
            self.errors[text] = self.errors.get(text, 0) + 1
            return
        self.rendered += 1
        self.tokens += len(mask)
        self.trained += sum(mask)
        self.longest = max(self.longest, len(mask))
        self.over += len(mask) > self.limit
        if not self.trains:
            return
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

    def findings(self) -> list[Finding]:
        """Return what the figures mean; errors first."""
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
        if self.over and not self.trains:
            out.append(
                Finding(
                    "export/prompts_over_length",
                    "warning",
                    f"{self.over} prompts are longer than max_length={self.limit}; the longest has {self.longest}",
                    "raise the limit of the trainer, or leave these tasks out",
                    self.over,
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
