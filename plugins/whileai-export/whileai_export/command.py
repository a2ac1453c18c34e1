"""`wai export ROWS --to TARGET --out PATH`: rows of a file, written for a trainer."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

from whileai_export.defaults import HEAD_BYTES

__all__ = ["ExportCommand", "add_export_options", "chosen_options", "rows_of"]


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how rows are written."""
    parser.add_argument(
        "--to", default="chat", help="exporter: chat, openai, trl, anthropic, sharegpt, ... (default: chat)"
    )
    parser.add_argument("--kind", help="sft, preference, prompts, rewarded or eval (default: sft)")
    parser.add_argument("--train", help="what is trained: all, last, final, or positions such as 2,4 (default: all)")
    parser.add_argument("--unroll", action="store_true", help="one sample per trained assistant turn")
    parser.add_argument("--reasoning", help="keep, strip or inline")
    parser.add_argument("--pairs", help="for preference: turn or whole")
    parser.add_argument("--columns", help="further keys of the row as columns, separated by commas")
    parser.add_argument("--file", help="jsonl or parquet (default: from the path)")
    parser.add_argument("--as-text", action="store_true", help="messages and tools as JSON text, for old loaders")
    parser.add_argument(
        "--references", action="store_true", help="write private references to a file for the reward side"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="NAME", help="a finding that does not stop the export"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace other content that is there")


def chosen_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, as the keyword arguments of `export`."""
    out: dict[str, Any] = {k: v for k in ("kind", "reasoning", "pairs", "file") if (v := getattr(args, k))}
    if args.train:
        positions = args.train.replace(" ", "").split(",")
        out["train"] = [int(p) for p in positions] if all(p.isdigit() for p in positions) else args.train
    if args.columns:
        out["columns"] = [c.strip() for c in args.columns.split(",") if c.strip()]
    for flag in ("unroll", "references", "as_text"):
        if getattr(args, flag):
            out[flag] = True
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
    """Writes the rows of a JSONL file for a trainer."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("rows", help="JSONL file of rows, or a file in a format of an installed source")
        parser.add_argument(
            "--out", "-o", default="train.jsonl", help="file, or folder with manifest and card (default: train.jsonl)"
        )
        add_export_options(parser)

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
