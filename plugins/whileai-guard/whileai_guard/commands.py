"""Sub-commands `wai scan` and `wai decontaminate`: thin skins; heavy imports only inside `run`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

__all__ = ["Decontaminate", "Scan"]


def say(text: str) -> None:
    """Print text, replacing what the terminal's encoding cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


class Scan:
    """`wai scan FILE`: exit code 1 when the reward looks gamed, 0 otherwise."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="graded rows as JSON lines")
        parser.add_argument("--before", default=None, help="rows of an older policy: say what the update moved toward")
        parser.add_argument("--endorse", nargs="+", default=[], metavar="PATTERN", help="features that may be rewarded")
        parser.add_argument("--gold", default=None, metavar="SCORER", help="id of a second scorer in judgments")
        parser.add_argument("--conjunctions", action="store_true", help="also pairs of features")
        parser.add_argument("--alpha", type=float, default=None, help="family-wise error (default 0.05)")
        parser.add_argument("--top", type=int, default=12, help="features shown (default 12)")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the report and return its exit code."""
        from whileai_guard.scan import hack_scan, hack_scan_diff

        level = {} if args.alpha is None else {"alpha": args.alpha}
        if args.before:
            report = hack_scan_diff(args.before, args.file, **level)
        else:
            report = hack_scan(
                args.file, endorsed=args.endorse, gold=args.gold, conjunctions=args.conjunctions, **level
            )
        say(json.dumps(report.to_dict(), indent=2) if args.json else f"{report}\n{report.table(args.top)}")
        return 1 if report.regime == "suspected_hack" else 0


class Decontaminate:
    """`wai decontaminate FILE --against EVAL`: exit code 1 when rows were left out, 2 when nothing could be checked."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="training rows as JSON lines; read as a stream")
        parser.add_argument("--against", required=True, help="evaluation rows as JSON lines")
        parser.add_argument("-o", "--out", default=None, help="file for the clean rows (default: only report)")
        parser.add_argument("--report", default=None, help="HTML page that shows the matched spans side by side")
        parser.add_argument("--fields", nargs="+", default=["prompt"], help="fields to compare (default: prompt)")
        parser.add_argument("--against-fields", nargs="+", default=None, help="fields of the evaluation rows")
        parser.add_argument("-n", type=int, default=None, help="consecutive shared words that matter (default 8)")
        parser.add_argument("--share", type=float, default=None, help="share of shared words for a hit (default 0.8)")
        parser.add_argument("--drop-templates", action="store_true", help="also leave out template hits")
        parser.add_argument("--embedder", default=None, help="registered embedder for the semantic rule")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Compare, write what was asked for, print the report, and return its exit code."""
        from whileai_guard.contamination import DROP, decontaminate

        numbers = {name: getattr(args, name) for name in ("n", "share") if getattr(args, name) is not None}
        report = decontaminate(
            args.file,
            args.against,
            fields=args.fields,
            against_fields=args.against_fields,
            drop=(*DROP, "template") if args.drop_templates else DROP,
            embedder=args.embedder,
            **numbers,
        )
        if args.out:
            report.write(args.out)
        if args.report:
            Path(args.report).write_text(report.to_html(), encoding="utf-8", newline="\n")
        say(json.dumps(report.to_dict(), indent=2) if args.json else str(report))
        if not args.json:
            for hit in (*report.hits, *report.templates)[:20]:
                say(f"  {hit}")
        return 2 if report.clean is None else 1 if report.dropped else 0
