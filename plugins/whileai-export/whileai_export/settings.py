"""What the trainer must be told so that it trains what was meant: the switches, or that nothing enforces it.

Example:
    >>> from whileai_export.targets import TARGETS
    >>> trainer_settings(TARGETS["trl"], "sft", "all")["switches"]
    {'assistant_only_loss': True}
"""

from __future__ import annotations

from typing import Any

from whileai_export.targets import Target

__all__ = ["trainer_settings"]


def trainer_settings(
    target: Target,
    kind: str,
    train: Any = "all",
    unroll: bool = False,
    tokens: bool = False,
    arguments: bool = True,
    pairs: str = "turn",
) -> dict[str, Any]:
    """Return `{"switches", "enforced", "notes"}` for a file.

    Args:
        target: Who reads the file.
        kind: Kind of record.
        train: What is trained.
        unroll: One sample per turn.
        tokens: The file holds token ids and labels.
        arguments: The arguments of tool calls are trained as well.
        pairs: For preference: `turn` or `whole`.
    """
    if kind in ("prompts", "eval"):
        return {"switches": {}, "enforced": True, "notes": []}
    if not arguments and not tokens:
        known = trainer_settings(target, kind, train, unroll, pairs=pairs)
        how = (
            "pass tokenizer= to mask them"
            if (target.name, kind) == ("trl", "sft")
            else "only to='trl', kind='sft' can, with tokenizer="
        )
        note = f"train_arguments=False is not enforced: a message is trained as a whole; {how}"
        return {**known, "enforced": False, "notes": [*known["notes"], note]}
    if tokens:
        return {
            "switches": {},
            "enforced": True,
            "notes": ["labels are in the file; the trainer reads them as they are"],
        }
    if kind == "preference" and pairs == "whole":
        note = "pairs='whole' trains every token of both continuations, tool results and users' turns included"
        return {"switches": {}, "enforced": False, "notes": [note]}
    if target.name == "trl":
        return _trl(kind, train, unroll)
    partly = train != "all" or unroll
    if kind == "preference":
        return {"switches": {}, "enforced": True, "notes": []}
    if target.mask == "weight":
        said = ["weight 0 stands on the assistant turns that are not trained"] if partly else []
        return {"switches": {}, "enforced": True, "notes": said}
    if not partly:
        return {"switches": {}, "enforced": True, "notes": []}
    if target.mask == "history" and (unroll or train in ("last", "final")):
        note = (
            "what is trained is enforced only with the switch mask_history=true (LLaMA-Factory); "
            "other readers train every turn"
        )
        return {"switches": {"mask_history": True}, "enforced": False, "notes": [note]}
    note = (
        f"{target.name} files cannot say which turns are trained: train={train!r} is not enforced, "
        "every assistant turn is trained"
    )
    return {"switches": {}, "enforced": False, "notes": [note]}


def _trl(kind: str, train: Any, unroll: bool) -> dict[str, Any]:
    if kind == "preference":
        note = "DPO covers every token of both replies, so each reply is one assistant turn (pairs='turn')"
        return {"switches": {}, "enforced": True, "notes": [note]}
    split = train != "all" or unroll or kind == "rewarded"
    what = "the assistant turns of the completion" if split else "the assistant turns"
    note = f"set assistant_only_loss=True in SFTConfig: without it TRL trains more than {what}"
    if kind == "sft" and (unroll or train in ("last", "final")):
        note += (
            "; a template without {% generation %} needs it off, and what it prints after the turn is trained as well"
        )
    return {"switches": {"assistant_only_loss": True}, "enforced": True, "notes": [note]}
