"""Which tokens a chat template gives to which turn, and the labels that train exactly the chosen ones.

A turn's tokens are what the model would sample: from the end of the generation prompt to the stop token, without the
header before it and the line break after it. Where a template renders a conversation's beginning in another way
than the beginning alone (some drop earlier reasoning), its own `{% generation %}` markers decide; without those
the row is refused. Needs a tokenizer of `transformers` with offsets (a fast one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whileai_export.encoders import TRAINED, encode_tools, finish, to_hf
from whileai_export.samples import Sample
from whileai_kernel.errors import RowError

__all__ = ["IGNORED", "TemplateProblem", "render", "token_record", "turn_spans"]

IGNORED = -100
"""Label of a token that is not trained (PyTorch's ignore_index)."""


class TemplateProblem(RowError):
    """A chat template does not render a conversation, or not so that its turns can be told apart."""


def render(
    tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Any = None, *, generation: bool = False
) -> str:
    """Return the text of a conversation (encoded for Hugging Face) under the tokenizer's template.

    Raises:
        TemplateProblem: The template raises.
    """
    try:
        text = tokenizer.apply_chat_template(
            [dict(m) for m in messages], tools=tools or None, tokenize=False, add_generation_prompt=generation
        )
    except Exception as err:  # a template is code of the model's authors and may raise anything
        raise TemplateProblem(
            f"{type(err).__name__}: {err}", fix="look at the roles of the row, or use another chat template"
        ) from err
    return str(text)


def _without_break(text: str, start: int, end: int, stop: str | None) -> int:
    """Return the end of a turn without the blank space that follows its stop token."""
    at = text.rfind(stop, start, end) if stop else -1
    if at >= 0 and not text[at + len(stop or "") : end].strip():
        return at + len(stop or "")
    return end


def turn_spans(
    tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Any = None, turns: Sequence[int] | None = None
) -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the rendered text and, per assistant message, the characters that the model would sample.

    Args:
        tokenizer: A tokenizer with a chat template.
        messages: A conversation encoded for Hugging Face.
        tools: Tool schemas.
        turns: Positions of the turns to find; by default all of the assistant's.

    Raises:
        TemplateProblem: The template raises, or its turns cannot be told apart.
    """
    text = render(tokenizer, messages, tools)
    spoken = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    spans: dict[int, tuple[int, int]] = {}
    for turn in spoken if turns is None else turns:
        before = render(tokenizer, messages[:turn], tools, generation=True) if turn else ""
        upto = render(tokenizer, messages[: turn + 1], tools)
        if not (text.startswith(upto) and upto.startswith(before)):
            return text, _marked_spans(tokenizer, messages, tools, text, spoken)
        spans[turn] = (len(before), _without_break(text, len(before), len(upto), tokenizer.eos_token))
    return text, spans


def _marked_spans(
    tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Any, text: str, turns: list[int]
) -> dict[int, tuple[int, int]]:
    trouble = TemplateProblem(
        "renders the beginning of a conversation in another way than the beginning alone, "
        "and has no generation markers",
        fix="export with unroll=True, or strip the reasoning, or use a template with {% generation %}",
    )
    if "{% generation" not in str(tokenizer.chat_template) and "{%- generation" not in str(tokenizer.chat_template):
        raise trouble
    coded = tokenizer.apply_chat_template(
        [dict(m) for m in messages], tools=tools or None, return_dict=True, return_assistant_tokens_mask=True
    )
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    mask = coded["assistant_masks"]
    runs: list[tuple[int, int]] = []
    for n, bit in enumerate(mask):
        if bit and (n == 0 or not mask[n - 1]):
            runs.append((offsets[n][0], offsets[n][1]))
        elif bit:
            runs[-1] = (runs[-1][0], offsets[n][1])
    if len(runs) != len(turns):
        raise trouble
    return dict(zip(turns, runs, strict=True))


def _argument_spans(
    tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Any, text: str, turn: int, span: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return the characters that a turn's call arguments take, found by rendering others in their place."""
    out = []
    for n in range(len(messages[turn].get("tool_calls") or ())):
        ends = []
        for stand_in in ({"\u241e": "\u241e"}, {"\u241f": [0]}):
            calls = [dict(c) for c in messages[turn]["tool_calls"]]
            calls[n] = {**calls[n], "function": {**calls[n]["function"], "arguments": stand_in}}
            other = render(
                tokenizer, [*messages[:turn], {**messages[turn], "tool_calls": calls}, *messages[turn + 1 :]], tools
            )
            left = 0
            while left < min(len(text), len(other)) and text[left] == other[left]:
                left += 1
            right = 0
            while right < min(len(text), len(other)) - left and text[-1 - right] == other[-1 - right]:
                right += 1
            ends.append((left, len(text) - right))
        start, end = min(e[0] for e in ends), max(e[1] for e in ends)
        while start > span[0] and text[start - 1] in "{ \n":
            start -= 1
        if text[end : end + 1] == "}":
            end += 1
        out.append((max(start, span[0]), min(end, span[1])))
    return out


def token_record(sample: Sample, tokenizer: Any, *, train_arguments: bool = True) -> dict[str, Any]:
    """Return `{"input_ids", "labels"}` of a sample: labels are the ids of the trained turns, -100 elsewhere.

    A token that crosses the edge of a turn is not trained.

    Args:
        sample: A conversation with the turns to train.
        tokenizer: A fast tokenizer with a chat template.
        train_arguments: Also train the arguments of tool calls.

    Raises:
        TemplateProblem: The template does not render the conversation so that turns can be told apart, or nothing
            of it would be trained.
    """
    marked = [
        {**m, TRAINED: i in sample.trained} if m["role"] == "assistant" else dict(m)
        for i, m in enumerate(sample.messages)
    ]
    encoded = to_hf(marked)
    trained = [i for i, m in enumerate(encoded) if m.get(TRAINED)]
    messages = finish(encoded)
    tools = encode_tools(sample.row.get("tools") or (), "hf")
    text, spans = turn_spans(tokenizer, messages, tools, trained)
    keep = [spans[turn] for turn in trained]
    omit = (
        []
        if train_arguments
        else [s for t in trained for s in _argument_spans(tokenizer, messages, tools, text, t, spans[t])]
    )
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    labels = [
        token
        if start < end
        and any(a <= start and end <= b for a, b in keep)
        and not any(start < b and a < end for a, b in omit)
        else IGNORED
        for token, (start, end) in zip(coded["input_ids"], coded["offset_mapping"], strict=True)
    ]
    if all(label == IGNORED for label in labels):
        raise TemplateProblem("leaves nothing to train")
    return {"input_ids": list(coded["input_ids"]), "labels": labels}
