"""Sub-commands of `wai`: thin skins over the calls of this package; heavy imports only inside `run`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Protocol

from whileai_measure.defaults import CONFIDENCE, POWER, SEED, SELF_CHECK_TRIALS

__all__ = ["Compare", "HoldoutSize", "PassAt", "SelfCheck"]


def show(report: Report, as_json: bool) -> None:
    """Print a report as text or as JSON, replacing what the terminal's encoding cannot show."""
    text = json.dumps(report.to_dict(), indent=2) if as_json else str(report)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


class Report(Protocol):
    """What every report of this package can do."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-serialisable values."""
        ...


SHARED: dict[str, dict[str, Any]] = {
    "--threshold": {"type": float, "default": None, "help": "reward from which a rollout passes"},
    "--cluster": {"default": None, "metavar": "FIELD", "help": "field of tasks that belong together"},
    "--confidence": {
        "type": float,
        "default": CONFIDENCE.value,
        "help": f"level of the intervals; tests use 1 minus it (default {CONFIDENCE.value})",
    },
    "--json": {"action": "store_true", "help": "print the report as JSON"},
}


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for name in names:
        parser.add_argument(name, **SHARED[name])


class PassAt:
    """`wai pass-at FILE`: pass@1, pass^k and pass@k with intervals over tasks."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="rows as JSON lines, or any file that an installed source recognises")
        parser.add_argument(
            "-k", type=int, nargs="+", default=None, help="one k or several (default: rollouts per task)"
        )
        parser.add_argument("--interval", default="wilson", help="wilson, t, logit, percentile, bca or studentised")
        parser.add_argument("--by", default=None, metavar="FIELD", help="slice by a field, for example axes.channel")
        add_shared(parser, "--threshold", "--cluster", "--confidence", "--json")

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
        show(report, args.json)
        return 0


class Compare:
    """`wai compare BEFORE AFTER`: exit code 0 without a regression, 1 with one, 2 where nothing can be compared."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("before", help="rows of the first policy")
        parser.add_argument("after", help="rows of the second policy, on the same tasks")
        parser.add_argument("--target", default="pass@1", help="metric that the verdict is about (default pass@1)")
        parser.add_argument(
            "--must-not-regress",
            nargs="+",
            default=[],
            metavar="METRIC",
            help="metrics whose regression is exit code 1",
        )
        parser.add_argument("--proxy", default=None, metavar="METRIC", help="metric that was trained on")
        parser.add_argument("--holm", action="store_true", help="adjust over all metrics")
        parser.add_argument("--unpaired", action="store_true", help="compare the means of two different task sets")
        parser.add_argument("--run-std", type=float, default=None, help="standard deviation between re-runs")
        parser.add_argument("--run-std-runs", type=int, default=None, help="re-runs behind --run-std")
        parser.add_argument("--margin", type=float, default=None, help="size of a difference that would matter")
        parser.add_argument("--allow", nargs="+", default=[], help="scoring, prompts, truncation, graded or shared")
        add_shared(parser, "--threshold", "--cluster", "--confidence", "--json")

    def run(self, args: argparse.Namespace) -> int:
        """Print the report and return its exit code."""
        from whileai_measure.comparison import compare

        report = compare(
            args.before,
            args.after,
            target=args.target,
            must_not_regress=args.must_not_regress,
            proxy=args.proxy,
            adjust="holm" if args.holm else None,
            paired=not args.unpaired,
            run_std=args.run_std,
            run_std_runs=args.run_std_runs,
            margin=args.margin,
            allow=args.allow,
            threshold=args.threshold,
            confidence=args.confidence,
            cluster=args.cluster,
        )
        show(report, args.json)
        return report.exit_code


class HoldoutSize:
    """`wai holdout-size EFFECT`: how many tasks a comparison needs."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("effect", type=float, help="difference of pass@1 to detect, for example 0.05")
        parser.add_argument("--rows", default=None, help="baseline rows to estimate the spread from")
        parser.add_argument("--after", default=None, help="rows of a pilot of the second policy")
        parser.add_argument("--spread", type=float, default=None, help="standard deviation of a task's difference")
        parser.add_argument("--baseline", type=float, default=None, help="pass@1 before, for a model without rows")
        parser.add_argument("-k", type=int, default=None, help="rollouts per task and side")
        parser.add_argument(
            "--power", type=float, default=POWER.value, help=f"chance of detecting it (default {POWER.value})"
        )
        add_shared(parser, "--threshold", "--confidence", "--json")

    def run(self, args: argparse.Namespace) -> int:
        """Print the answer; exit code 2 where there is none."""
        from whileai_measure.power import holdout_size

        report = holdout_size(
            args.effect,
            rows=args.rows,
            after=args.after,
            spread=args.spread,
            baseline=args.baseline,
            k=args.k,
            power=args.power,
            confidence=args.confidence,
            threshold=args.threshold,
        )
        show(report, args.json)
        return 0 if report.tasks is not None else 2


class SelfCheck:
    """`wai self-check`: coverage, false alarms and power by simulation, as a table."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--tasks", type=int, nargs="+", default=[3, 6, 10, 30, 100], help="numbers of tasks")
        parser.add_argument("-k", type=int, default=4, help="rollouts per task (default 4)")
        parser.add_argument("--effect", type=float, default=0.1, help="true difference behind the power")
        parser.add_argument(
            "--trials", type=int, default=SELF_CHECK_TRIALS.value, help="simulated evaluations per line"
        )
        parser.add_argument("--seed", type=int, default=SEED.value, help="seed of the simulation")
        add_shared(parser, "--confidence", "--json")

    def run(self, args: argparse.Namespace) -> int:
        """Print the table; exit code 1 where a claim does not hold."""
        from whileai_measure.selfcheck import self_check

        report = self_check(
            tasks=args.tasks,
            k=args.k,
            effect=args.effect,
            confidence=args.confidence,
            trials=args.trials,
            seed=args.seed,
        )
        show(report, args.json)
        return 0 if report.ok else 1
