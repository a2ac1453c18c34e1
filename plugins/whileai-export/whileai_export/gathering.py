"""Rows become samples of a kind: what is left out is counted with its reason, what is odd is flagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from whileai_export.encoders import to_sharegpt
from whileai_export.options import Options
from whileai_export.preparing import misfit, prepare
from whileai_export.samples import Sample, conversation_samples, group_figures, pair_samples, prompt_of, rank_pair
from whileai_export.targets import Target
from whileai_kernel.errors import ParameterError
from whileai_kernel.rows import group_by_task, passed, task_key

__all__ = ["HELD_OUT", "Tally", "gather"]

HELD_OUT = ("holdout", "held_out", "test", "eval", "validation", "val")
"""Splits whose rows are never written for training, unless allowed as `held_out`."""


@dataclass(slots=True)
class Tally:
    """What happened to the rows of one export."""

    rows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    unrolled: int = 0

    lossy: Counter[str] = field(default_factory=Counter)

    def misfit(self, row: Any) -> bool:
        """Count something that cannot be a row of an export, and say whether it is one."""
        reason = misfit(row)
        if reason:
            self.dropped[reason] += 1
        return bool(reason)


def gather(
    target: Target, rows: list[Mapping[str, Any]], options: Options, allow: Collection[str], tally: Tally
) -> Iterator[Sample]:
    """Yield the samples of rows; `tally` counts what is left out and why.

    Args:
        target: Who reads the file.
        rows: Rows, in order.
        options: How they are written.
        allow: Names of rules that do not leave a row out.
        tally: Receives counts and flags.

    Raises:
        ParameterError: An option has a word that is unknown.
    """
    reasoning = options.reasoning or target.reasoning
    ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]] = []
    figures = group_figures(rows) if "group" in "".join(target.columns(options.kind)) else {}
    may_be_empty = options.kind in ("prompts", "eval", "rewarded") and target.name != "anthropic"
    one_by_one = options.kind in ("sft", "rewarded")
    for position, row in enumerate(rows):
        if options.kind == "preference" and "chosen" in row and "rejected" in row:
            made = _ready_pair(row, options, reasoning, allow, tally)
            made = made if isinstance(made, str) else _one_turn_each(target, made)
            if isinstance(made, str):
                tally.dropped[made if made.startswith("no pair") else f"no pair: {made}"] += 1
            else:
                yield made
            continue
        if options.kind != "eval" and row.get("split") in HELD_OUT and "held_out" not in allow:
            tally.dropped["held out"] += 1
            continue
        if options.kind in ("prompts", "eval") and not row.get("messages") and row.get("final_text") is None:
            row = {**row, "final_text": "."}  # only what comes before the reply is written
        done = prepare(
            row,
            reasoning=reasoning,
            media=options.media,
            bad_arguments=options.bad_arguments,
            empty="keep" if may_be_empty else "drop",
            allow=allow,
        )
        tally.flags += [f"row {row.get('rollout_id') or position}: {flag}" for flag in done.flags]
        reason = done.dropped
        if not reason and options.kind == "rewarded" and row.get("reward") is None:
            reason = "not scored"
        if (
            not reason
            and target.name == "anthropic"
            and prompt_of([m for m in done.messages if m["role"] not in ("system", "developer")]) == []
        ):
            reason = "does not begin with the user"
        messages = _without_tail(done.messages) if one_by_one else done.messages
        tally.lossy.update(_losses(target, row, done.messages, reasoning))
        if not reason and one_by_one and target.name == "openai" and messages[-1]["role"] == "tool":
            reason = "ends on a tool result"
        if reason:
            tally.dropped[reason] += 1
        elif one_by_one:
            yield from _conversation(target, row, messages, options, figures.get(task_key(row)), tally)
        else:
            ready.append((row, done.messages))
    if options.kind == "preference":
        yield from _pairs(target, ready, options, tally)
    elif not one_by_one:
        yield from _tasks(ready, tally)


def _losses(target: Target, row: Mapping[str, Any], messages: list[dict[str, Any]], reasoning: str) -> Iterator[str]:
    """Yield what the target cannot carry of a conversation."""
    said = next((i for i, m in enumerate(messages) if m["role"] not in ("system", "developer")), len(messages))
    if target.encoding in ("hf", "anthropic") and any(m["role"] in ("system", "developer") for m in messages[said:]):
        yield "had instructions in the middle, which now stand in the leading ones"
    if target.encoding == "sharegpt" and any(m["role"] == "developer" for m in messages):
        yield "had developer messages, which now are system turns"
    if target.encoding == "sharegpt" and reasoning == "keep" and any(m.get("reasoning_content") for m in messages):
        yield "had reasoning, which now is a block in the text"
    if reasoning == "strip" and any(
        m.get("reasoning_content") for m in row.get("messages") or () if isinstance(m, Mapping)
    ):
        yield "lost their reasoning (reasoning='keep' writes it)"
    if target.encoding in ("openai", "hf", "sharegpt") and any(m.get("is_error") for m in messages):
        yield "had results marked as errors, a mark that the format does not have"


def _ready_pair(
    pair: Mapping[str, Any], options: Options, reasoning: str, allow: Collection[str], tally: Tally
) -> Sample | str:
    """Return the sample of a pair that is there already: `{"prompt", "chosen", "rejected"}` as messages or text."""
    sides = []
    for side, role in (("chosen", "assistant"), ("rejected", "assistant")):
        messages = [*_as_messages(pair.get("prompt"), "user"), *_as_messages(pair[side], role)]
        row = {**pair, "messages": messages, "rollout_id": pair.get(f"{side}_id")}
        done = prepare(row, reasoning=reasoning, media=options.media, bad_arguments=options.bad_arguments, allow=allow)
        tally.flags += [f"{side} of {pair.get('task_id') or 'a pair'}: {flag}" for flag in done.flags]
        if done.dropped:
            return f"no pair: {side} {done.dropped}"
        sides.append((row, done.messages))
    return pair_samples(sides[0], sides[1], pairs=options.pairs)


def _as_messages(value: Any, role: str) -> list[Any]:
    return [{"role": role, "content": value}] if isinstance(value, str) else list(value or ())


def _without_tail(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation without what was said to the assistant after its last turn: nothing follows it."""
    end = len(messages)
    while end and messages[end - 1]["role"] in ("user", "system", "developer"):
        end -= 1
    return messages[:end]


def _conversation(
    target: Target,
    row: Mapping[str, Any],
    messages: list[dict[str, Any]],
    options: Options,
    figures: Mapping[str, Any] | None,
    tally: Tally,
) -> Iterator[Sample]:
    try:
        made = conversation_samples(row, messages, train=options.train, unroll=options.unroll, figures=figures)
    except ParameterError:
        if isinstance(options.train, str):
            raise
        tally.dropped["train names a message that is not the assistant's"] += 1
        return
    if not made:
        tally.dropped["no turn to train"] += 1
        return
    if (options.kind == "rewarded" and target.mask == "split" and made[0].start is None) or (
        target.mask == "split" and options.train != "all" and any(s.start is None for s in made)
    ):
        tally.unrolled += 1
        made = conversation_samples(row, messages, train=options.train, unroll=True, figures=figures)
    yield from made


def _one_turn_each(target: Target, pair: Sample) -> Sample | str:
    """Return a pair, or the reason why the target cannot hold it: ShareGPT keeps each reply as one turn."""
    if target.encoding == "sharegpt" and any(len(to_sharegpt(side)) > 1 for side in (pair.chosen, pair.rejected)):
        return "a reply is several turns, and a ShareGPT pair holds one"
    return pair


def _pairs(
    target: Target, ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]], options: Options, tally: Tally
) -> Iterator[Sample]:
    chats = {id(row): messages for row, messages in ready}
    for members in group_by_task([row for row, _ in ready]).values():
        pair = rank_pair(members)
        if pair is None:
            tally.dropped["no pair: rewards of the task do not differ"] += len(members)
            continue
        made = pair_samples((pair[0], chats[id(pair[0])]), (pair[1], chats[id(pair[1])]), pairs=options.pairs)
        made = made if isinstance(made, str) else _one_turn_each(target, made)
        if isinstance(made, str):
            tally.dropped[f"no pair: {made}"] += len(members)
            continue
        if len(members) > 2:
            tally.dropped["not in a pair: neither the best nor the worst of the task"] += len(members) - 2
        yield made


def _tasks(ready: list[tuple[Mapping[str, Any], list[dict[str, Any]]]], tally: Tally) -> Iterator[Sample]:
    chats = {id(row): messages for row, messages in ready}
    for members in group_by_task([row for row, _ in ready]).values():
        first = members[0]
        rewards = [float(r["reward"]) for r in members if r.get("reward") is not None]
        passes = [p for r in members if (p := passed(r)) is not None]
        figures = {
            "n": len(members),
            "scored": len(rewards),
            "mean_reward": sum(rewards) / len(rewards) if rewards else None,
            "pass_rate": sum(passes) / len(passes) if passes else None,
            "split": first.get("split"),
        }
        if len(members) > 1:
            tally.dropped["further rollouts of a task, which is written once"] += len(members) - 1
        prompt = prompt_of(chats[id(first)])
        yield Sample(first, prompt, (), len(prompt), figures=figures)
