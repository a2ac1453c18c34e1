"""`wai simulate`: a run from the shell."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["SimulateCommand"]


class SimulateCommand:
    """Simulate an agent and write the rows as JSONL."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        add = parser.add_argument
        add(
            "--agent",
            required=True,
            help="package.module:function, file.py:function or a registered name (seeded, honest)",
        )
        add("--tools", help="tools: a JSON file of schemas, or package.module:attribute")
        add("--policy", help="text file with the system prompt")
        add("--out", help="JSONL file for the rows; the same command resumes a run that was cut off")
        add("--mode", help="explore, sft, rl or adaptive")
        add("--situations", type=int, help="number of tasks")
        add("--repeats", type=int, help="rollouts per task")
        add("--repeat-policy", help="fixed, none, successive or adaptive")
        add("--judge", help="judge or verifier for successive and adaptive repeats")
        add("--runs", type=int, default=1, help="repeats of the whole evaluation")
        add("--budget", type=int, help="most rollouts")
        add("--seed", type=int, default=0, help="the same seed and call give the same rows")
        add("--concurrency", type=int, help="rollouts in flight at once")
        add("--deadline", type=float, help="seconds that one rollout may take")
        add("--user", choices=("none", "scripted"), default="none", help="who answers the agent's questions")
        add("--overwrite", action="store_true", help="replace the output file")
        add("--preflight", action="store_true", help="show what is inferred from tools and policy, and stop")
        add("--quiet", action="store_true", help="print one line and no progress")

    def run(self, args: argparse.Namespace) -> int:
        """Run the simulation and print its report."""
        from whileai_simulate.run import simulate
        from whileai_simulate.understanding import preflight

        tools = _tools(args.tools)
        policy = Path(args.policy).read_text(encoding="utf-8") if args.policy else None
        if args.preflight:
            sys.stdout.write(f"{preflight(tools, policy, seed=args.seed)}\n")
            return 0
        named = ("mode", "situations", "repeats", "repeat_policy", "judge", "budget", "concurrency")
        call: dict[str, Any] = {k: getattr(args, k) for k in named if getattr(args, k) is not None}
        if args.deadline is not None:
            call["deadline_s"] = args.deadline
        data = simulate(
            args.agent,
            tools=tools,
            system_prompt=policy,
            runs=args.runs,
            seed=args.seed,
            output=args.out,
            progress=False if args.quiet else None,
            options={"user": args.user, "overwrite": args.overwrite},
            **call,
        )
        sys.stdout.write(f"{data.report.one_line() if args.quiet else data.report}\n")
        for warning in data.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        if args.out and data.report.stopped is None:
            sys.stdout.write(f"wrote {data.report.rows} rows to {args.out}\n")
        return 0 if data.report.stopped is None else 1


def _tools(ref: str | None) -> list[Any]:
    """Return tools from a JSON file of schemas, or from `package.module:attribute` (one tool or a list)."""
    if ref is None:
        return []
    if ref.endswith(".json"):
        found = json.loads(Path(ref).read_text(encoding="utf-8"))
        return list(found.get("tools", [found]) if isinstance(found, dict) else found)
    from whileai_kernel.registry import resolve

    found = resolve("agents", ref)
    return list(found) if isinstance(found, list | tuple) else [found]
