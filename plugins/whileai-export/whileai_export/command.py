"""`wai export ROWS --to TARGET --out PATH`: rows of a file, written for a trainer."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whileai_export.defaults import HEAD_BYTES

__all__ = ["ExportCommand", "add_export_options", "chosen_options", "rows_of"]


_WORDS = (
    ("kind", "sft, preference, prompts, rewarded or eval (default: sft)"),
    ("reasoning", "keep, strip or inline (default: what the target reads)"),
    ("pairs", "for preference: turn, cut at the first turn that differs, or whole (default: turn)"),
    ("media", "rows with images and other parts: drop or keep (default: drop)"),
    ("bad-arguments", "calls whose arguments are not JSON: flag them, or drop their rows (default: flag)"),
    ("file", "jsonl or parquet (default: from the path)"),
)


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how records are written; all are those of `export`."""
    for name, said in _WORDS:
        parser.add_argument(f"--{name}", help=said)
    parser.add_argument("--train", help="what is trained: all, last, final, or positions such as 2,4 (default: all)")
    parser.add_argument(
        "--no-train-arguments", action="store_true", help="leave call arguments out of the loss (needs --tokenizer)"
    )
    parser.add_argument("--unroll", action="store_true", help="one sample per trained assistant turn")
    parser.add_argument("--columns", help="further keys of the row as columns, separated by commas")
    parser.add_argument("--as-text", action="store_true", help="messages and tools as JSON text, for old loaders")
    parser.add_argument("--shard-bytes", type=int, metavar="N", help="size of a shard when OUT is a folder")
    parser.add_argument(
        "--manifest",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write a manifest (default: when OUT is a folder)",
    )
    parser.add_argument(
        "--references", action="store_true", help="write private references to a file for the reward side"
    )
    parser.add_argument("--tokenizer", metavar="PATH", help="for trl: write token ids and labels of this tokenizer")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of another plugin's exporter; the value is JSON or text",
    )


def chosen_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, as the keyword arguments of `export`."""
    words = [name.replace("-", "_") for name, _ in _WORDS]
    out: dict[str, Any] = {name: value for name in words if (value := getattr(args, name))}
    if args.train:
        positions = args.train.replace(" ", "").split(",")
        out["train"] = [int(p) for p in positions] if all(p.isdigit() for p in positions) else args.train
    if args.columns:
        out["columns"] = [c.strip() for c in args.columns.split(",") if c.strip()]
    for flag in ("unroll", "references", "as_text"):
        if getattr(args, flag):
            out[flag] = True
    if args.no_train_arguments:
        out["train_arguments"] = False
    for name in ("manifest", "shard_bytes"):
        if getattr(args, name) is not None:
            out[name] = getattr(args, name)
    if args.tokenizer:
        from whileai_export.preflight import load_tokenizer

        out["tokenizer"] = load_tokenizer(args.tokenizer)
    return {**out, **named_values(args.option)}


def named_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return `NAME=VALUE` texts as keyword arguments; a value that is no JSON is text.

    Raises:
        ParameterError: A text has no name or no `=`.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            from whileai_kernel.errors import ParameterError

            raise ParameterError(f"{pair!r} is no option", fix="write NAME=VALUE, for example --option kind=sft")
        try:
            out[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            out[name.strip().replace("-", "_")] = value
    return out


def rows_of(path: Path) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the rows of a file, read by the installed source that knows it best, and what could not be read.

    Raises:
        ParameterError: There is no such file.
        RowError: No source knows the file and it holds no rows.
    """
    from whileai_kernel import entries, make
    from whileai_kernel.errors import ParameterError
    from whileai_kernel.rowio import read_rows

    if not path.is_file():
        raise ParameterError(f"there is no file {path}", why=f"looked from {Path.cwd()}", fix="check the path")
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else path.open("rb") as stream:
        head = stream.read(HEAD_BYTES.value)
    best = max(((float(make("sources", e.id).sniff(path, head)), e.id) for e in entries("sources")), default=(0.0, ""))
    if best[0] <= 0:
        return list(read_rows(path)), []
    problems: list[Any] = []
    return list(make("sources", best[1]).read(path, on_problem=problems.append)), problems


class ExportCommand:
    """Writes the rows of a JSONL file for a trainer.

    Commands of other plugins that end in an export (`wai convert`) take its options through the registry:
    `add_options` and `options`.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that say how records are written."""
        add_export_options(parser)

    def options(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the options that were given, as the keyword arguments of an exporter."""
        return chosen_options(args)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("rows", help="JSONL file of rows, or a file in a format of an installed source")
        parser.add_argument(
            "--out", "-o", default="train.jsonl", help="file, or folder with manifest and card (default: train.jsonl)"
        )
        parser.add_argument(
            "--to", default="chat", help="exporter: chat, openai, trl, anthropic, sharegpt, ... (default: chat)"
        )
        add_export_options(parser)
        parser.add_argument(
            "--allow", action="append", default=[], metavar="NAME", help="a finding that does not stop the export"
        )
        parser.add_argument("--overwrite", action="store_true", help="replace other content that is there")

    def run(self, args: argparse.Namespace) -> int:
        """Write and print the report."""
        import sys

        from whileai_export.api import export

        rows, problems = rows_of(Path(args.rows))
        for problem in problems:
            sys.stderr.write(f"  {problem}\n")
        report = export(rows, args.out, to=args.to, overwrite=args.overwrite, allow=args.allow, **chosen_options(args))
        sys.stdout.write(f"{report}\n")
        return 0
