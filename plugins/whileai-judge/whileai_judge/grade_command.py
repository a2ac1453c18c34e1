"""``wai grade FILE``: put a verdict on every row of a file from the shell.

``--judge`` names a judge, a verifier or a function; with ``--rubric FILE`` it names the model that judges by it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from whileai_judge.defaults import CONCURRENCY, DEADLINE_SECONDS, VOTES
from whileai_kernel.errors import ParameterError


class GradeCommand:
    """Grade the rows of a file and write them to another."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the file, the judge and what bounds the calls."""
        parser.add_argument("file", help="JSONL file of rows")
        named = os.environ.get("WHILEAI_JUDGE") or None
        parser.add_argument(
            "--judge",
            default=named,
            required=named is None,
            help="a registered judge or verifier, file.py:function or package.module:name; with --rubric a model, for "
            "example openai:gpt-5-mini (default: what WHILEAI_JUDGE says)",
        )
        parser.add_argument(
            "--rubric",
            help="file that says what counts: prose, or a list of criteria such as '- [hard] asks: Asks ...'",
        )
        parser.add_argument("--reference", action="store_true", help="show the model each row's private reference")
        parser.add_argument(
            "--votes", type=int, default=VOTES.value, help="how often the model is asked (default: %(default)s)"
        )
        parser.add_argument(
            "--scale", type=float, nargs=2, metavar=("LOW", "HIGH"), help="ask for a score instead of PASS or FAIL"
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
            ParameterError: The file to write exists and is not to be replaced, or the rubric is empty.
        """
        from whileai_judge.pipeline import grade

        if args.out and Path(args.out).exists() and not args.overwrite:
            raise ParameterError(f"{args.out} exists", why="verdicts are not thrown away", fix="add --overwrite")
        data = grade(
            args.file,
            _judge(args),
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


def _judge(args: argparse.Namespace) -> Any:
    if args.rubric is None:
        return args.judge
    from whileai_judge.model_judge import Judge

    path = Path(args.rubric)
    scale = None if args.scale is None else (args.scale[0], args.scale[1])
    rubric = path.read_text(encoding="utf-8")
    return Judge(rubric, args.judge, reference=args.reference, votes=args.votes, scale=scale, name=path.stem)
