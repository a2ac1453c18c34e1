"""``wai grade FILE``: put a verdict on every row of a file from the shell."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from whileai_judge.defaults import CONCURRENCY, DEADLINE_SECONDS
from whileai_kernel.errors import ParameterError


class GradeCommand:
    """Grade the rows of a file and write them to another."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the file, the judge and what bounds the calls."""
        parser.add_argument("file", help="JSONL file of rows")
        parser.add_argument(
            "--judge", required=True, help="a registered judge or verifier, file.py:function or package.module:name"
        )
        parser.add_argument("--out", help="where to write the graded rows (default: only the counts are printed)")
        parser.add_argument("--overwrite", action="store_true", help="replace the file that --out names")
        parser.add_argument("--threshold", type=float, help="reward from which a row passes (default: the judge's)")
        parser.add_argument(
            "--concurrency", type=int, default=CONCURRENCY.value, help="most calls in flight (default: %(default)s)"
        )
        parser.add_argument(
            "--deadline", type=float, default=DEADLINE_SECONDS.value, help="seconds per call (default: %(default)s)"
        )
        parser.add_argument("--beside", action="store_true", help="keep each row's verdict; put the new one beside it")

    def run(self, args: argparse.Namespace) -> int:
        """Grade, write, and print the counts and the warnings.

        Raises:
            ParameterError: The file to write exists and is not to be replaced.
        """
        from whileai_judge.pipeline import grade

        if args.out and Path(args.out).exists() and not args.overwrite:
            raise ParameterError(f"{args.out} exists", why="verdicts are not thrown away", fix="add --overwrite")
        data = grade(
            args.file,
            args.judge,
            concurrency=args.concurrency,
            deadline=args.deadline,
            threshold=args.threshold,
            primary=not args.beside,
        )
        record = data.provenance["grade_beside"][-1] if args.beside else data.provenance["grade"]
        counts = record["counts"]
        mean = "-" if counts["mean"] is None else f"{counts['mean']:.3f}"
        scorer = record["scorer"]["id"]
        sys.stdout.write(f"{scorer}: mean reward {mean} over {counts['scored']} of {counts['rows']} rows\n")
        for text in data.warnings:
            sys.stderr.write(f"wai: warning: {text}\n")
        if args.out:
            written = data.write(args.out, overwrite=args.overwrite)
            sys.stdout.write(f"wrote {written} rows to {args.out}\n")
        return 0
