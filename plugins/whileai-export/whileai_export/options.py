"""The keyword arguments of an export, checked: an unknown name or word is an error with the nearest match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_export.defaults import SHARD_BYTES
from whileai_export.samples import KINDS
from whileai_export.targets import Target
from whileai_kernel.errors import ParameterError, nearest, unknown_name

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """How rows are written; the keyword arguments of `export`.

    Attributes:
        kind: `sft`, `preference`, `prompts`, `rewarded` or `eval`.
        train: What the loss covers: `all` assistant turns, the `last`, the `final` answer only, or positions.
        train_arguments: Cover the arguments of tool calls. `False` needs `tokenizer` to be enforced.
        unroll: One sample per trained assistant turn, with what that turn saw.
        pairs: For preference: `turn` cuts a pair at the first differing turn, `whole` keeps the rest.
        reasoning: `keep`, `strip` or `inline`; by default what the target reads.
        media: `drop` rows with parts other than text, or `keep`.
        bad_arguments: `flag` calls whose arguments are not JSON, or `drop` their rows.
        columns: Further keys of the row to write as columns; objects become JSON text.
        file: `jsonl` or `parquet`; by default from the suffix of the path.
        as_text: Write free-form columns (messages, tools) as JSON text: for loaders that merge differing keys, such
            as `datasets` before 4.7. Decode them with `json.loads`.
        shard_bytes: Size of a shard when a folder is written.
        manifest: Write a manifest; by default when a folder is written.
        references: Write the private references to a file of their own for the reward side.
        tokenizer: For TRL: write token ids and labels instead of messages.
    """

    kind: str = "sft"
    train: Any = "all"
    train_arguments: bool = True
    unroll: bool = False
    pairs: str = "turn"
    reasoning: str | None = None
    media: str = "drop"
    bad_arguments: str = "flag"
    columns: Sequence[str] = ()
    file: str | None = None
    as_text: bool = False
    shard_bytes: int = SHARD_BYTES.value
    manifest: bool | None = None
    references: bool = False
    tokenizer: Any = None

    @classmethod
    def of(cls, target: Target, given: Mapping[str, Any]) -> Options:
        """Return the options of a call; an unknown name or word is an error with the nearest match.

        Raises:
            ParameterError: A name or a word is unknown, or two options exclude each other.
        """
        names = list(cls.__dataclass_fields__)
        for name in given:
            if name not in names:
                near = nearest(name, names)
                raise ParameterError(
                    f"export has no option {name!r}",
                    why=f"options are {', '.join(names)}",
                    fix=f"did you mean {near[0]!r}?" if near else "leave it out",
                )
        options = cls(**given)
        if options.kind not in KINDS:
            unknown_name("kind", options.kind, KINDS)
        if options.pairs not in ("turn", "whole"):
            unknown_name("pairs", options.pairs, ("turn", "whole"))
        if options.file not in (None, "jsonl", "parquet"):
            unknown_name("file", str(options.file), ("jsonl", "parquet"))
        if isinstance(options.train, str) and options.train not in ("all", "last", "final"):
            unknown_name("train", options.train, ("all", "last", "final"))
        if options.tokenizer is not None and (target.name != "trl" or options.kind != "sft"):
            raise ParameterError(
                "tokenizer= is for to='trl', kind='sft'",
                why="no other target reads token ids and labels",
                fix="leave it out",
            )
        return options
