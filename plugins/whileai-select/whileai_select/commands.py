"""Sub-command `wai select`: a thin skin over `select`; heavy imports only inside `run`."""

from __future__ import annotations

import argparse
import json
import sys

__all__ = ["Select"]


def say(text: str) -> None:
    """Print text, replacing what the terminal's encoding cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


class Select:
    """`wai select FILE -o OUT`: keep the rows that teach; `--ledger` writes one line per input row."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="graded rows as JSON lines")
        parser.add_argument("-o", "--out", default=None, help="file for the kept rows (default: only report)")
        parser.add_argument("--mode", default="rl", help="rl, sft, next_round, retire_solved, or a registered selector")
        parser.add_argument("--ledger", default=None, help="file for the ledger, one JSON line per input row")
        parser.add_argument("--band", type=float, nargs=2, default=None, metavar=("LOW", "HIGH"), help="rates to keep")
        parser.add_argument("--rate", default=None, help="measured, shrunken or probability (mode rl)")
        parser.add_argument("--truncated", default=None, help="drop, keep or penalise cut replies")
        parser.add_argument("--size", type=int, default=None, help="most rows to keep, whole groups")
        parser.add_argument("-k", type=int, default=None, help="completions per task (mode sft)")
        parser.add_argument("--take", default=None, help="best or random (mode sft)")
        parser.add_argument("--seed", type=int, default=None, help="seed of every draw")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Select, write what was asked for, and print the report; exit code 1 when nothing was kept."""
        from dataclasses import asdict

        from whileai_kernel.rowio import write_rows
        from whileai_select.selection import select

        names = ("rate", "truncated", "size", "k", "take", "seed")
        options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
        if args.band is not None:
            options["band"] = tuple(args.band)
        chosen = select(args.file, mode=args.mode, **options)
        if args.out:
            write_rows(args.out, (dict(row) for row in chosen.rows))
        if args.ledger:
            with open(args.ledger, "w", encoding="utf-8", newline="\n") as out:  # noqa: PTH123 - a name from the shell
                out.writelines(json.dumps(asdict(entry)) + "\n" for entry in chosen.ledger)
        if args.json:
            say(json.dumps(dict(chosen.report), indent=2, default=str))
        else:
            say(str(chosen.report.get("summary", f"kept {len(chosen.rows)} rows")))
            for note in chosen.report.get("notes", ()):
                say(f"  {note}")
            if chosen.report.get("resolution"):
                say(f"  {chosen.report['resolution']}")
        return 0 if chosen.rows else 1
