"""Sub-commands of `wai`: thin skins over the calls of this package; heavy imports only inside `run`."""

from __future__ import annotations

import argparse
import json
import sys

__all__ = ["PassAt"]


def say(text: str) -> None:
    """Print text, replacing what the terminal's encoding cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


class PassAt:
    """`wai pass-at FILE`: pass@1, pass^k and pass@k with intervals over tasks."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="rows as JSON lines, or any file that an installed source recognises")
        parser.add_argument(
            "-k", type=int, nargs="+", default=None, help="one k or several (default: rollouts per task)"
        )
        parser.add_argument("--threshold", type=float, default=None, help="reward from which a rollout passes")
        parser.add_argument("--interval", default="wilson", help="wilson, t, logit, percentile, bca or studentised")
        parser.add_argument("--confidence", type=float, default=0.95, help="level of the intervals (default 0.95)")
        parser.add_argument("--by", default=None, metavar="FIELD", help="slice by a field, for example axes.channel")
        parser.add_argument("--cluster", default=None, metavar="FIELD", help="field of tasks that belong together")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the report."""
        from whileai_measure.passat import pass_at

        report = pass_at(
            args.file,
            args.k,
            threshold=args.threshold,
            interval=args.interval,
            confidence=args.confidence,
            by=args.by,
            cluster=args.cluster,
        )
        say(json.dumps(report.to_dict(), indent=2) if args.json else str(report))
        return 0
