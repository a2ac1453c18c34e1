"""`wai simulate`: a run from the shell."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError

__all__ = ["SimulateCommand"]


class SimulateCommand:
    """Simulate an agent and write the rows as JSONL."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        add = parser.add_argument
        named = os.environ.get("WHILEAI_AGENT") or None
        add(
            "--agent",
            default=named,
            required=named is None,
            help="package.module:function, file.py:function, a registered name (seeded, honest) or a model such as "
            "openai:gpt-5-mini or vllm:qwen3@http://127.0.0.1:8000/v1 (default: what WHILEAI_AGENT says)",
        )
        add("--tools", help="tools: a JSON file of schemas, or package.module:attribute")
        add("--policy", help="text file with the system prompt")
        add("--out", help="JSONL file for the rows; the same command resumes a run that was cut off")
        add("--mode", help="explore, sft, rl or adaptive")
        add("--situations", type=int, help="number of tasks")
        add("--repeats", type=int, help="rollouts per task")
        add("--repeat-policy", help="fixed, none, successive or adaptive")
        add(
            "--judge",
            help="grades each row: a judge, a verifier, or a model (by --rubric or the reference)",
        )
        add("--rubric", help="text file that says what counts, for a --judge that is a model")
        add("--simulator", help="who words the asks: a model, or a registered writer (default: offline)")
        add("--runs", type=int, default=1, help="repeats of the whole evaluation")
        add("--budget", type=int, help="most rollouts")
        add("--seed", type=int, default=0, help="the same seed and call give the same rows")
        add("--concurrency", type=int, help="rollouts in flight at once")
        add("--deadline", type=float, help="seconds that one rollout may take")
        add(
            "--user",
            default=os.environ.get("WHILEAI_USER") or "none",
            help="who answers the agent: none, scripted, or a model such as openai:<model>",
        )
        add("--patience", type=int, help="answers of the user before it gives up")
        add("--max-tokens", type=int, help="the run stops before it takes more tokens, of all sides together")
        add(
            "--max-usd",
            type=float,
            help="the run stops before it costs more US dollars, where prices are known",
        )
        add("--overwrite", action="store_true", help="replace the output file")
        add(
            "--preflight",
            action="store_true",
            help="show what is inferred from tools and policy (with --judge also what it "
            "pays for doing nothing), and stop",
        )
        add("--quiet", action="store_true", help="print one line and no progress")

    def run(self, args: argparse.Namespace) -> int:
        """Run the simulation and print its report."""
        from whileai_simulate.run import simulate
        from whileai_simulate.understanding import preflight

        tools = _tools(args.tools)
        policy = _text(args.policy) if args.policy else None
        if args.preflight:
            judge = _judge(args.judge, args.rubric)
            sys.stdout.write(f"{preflight(tools, policy, seed=args.seed, judge=judge)}\n")
            return 0
        named = ("mode", "situations", "repeats", "repeat_policy", "concurrency", "simulator")
        call: dict[str, Any] = {k: getattr(args, k) for k in named if getattr(args, k) is not None}
        limits = {"rollouts": args.budget, "tokens": args.max_tokens, "usd": args.max_usd}
        if any(v is not None for v in limits.values()):
            call["budget"] = {k: v for k, v in limits.items() if v is not None}
        options: dict[str, Any] = {"overwrite": args.overwrite}
        if args.patience is not None:
            options["patience"] = args.patience
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
            user=args.user,
            judge=_judge(args.judge, args.rubric),
            options=options,
            **call,
        )
        sys.stdout.write(f"{data.report.one_line() if args.quiet else data.report}\n")
        for warning in data.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        if args.out and data.report.stopped is None:
            rows = f"{data.report.rows} rows"
            sys.stdout.write(
                f"already finished: {rows} in {args.out}\n" if data.finished_before else f"wrote {rows} to {args.out}\n"
            )
        return 0 if data.report.stopped is None else 1


def _judge(ref: str | None, rubric: str | None) -> Any:
    """Return the judge of a reference; with a rubric the reference names the model that judges by it."""
    if rubric is None:
        return ref
    from whileai_kernel.registry import make

    if ref is None:
        raise ParameterError("--rubric needs --judge", why="a model judges by it", fix="add --judge openai:<model>")
    path = Path(rubric)
    return make("judges", "judge/rubric", rubric=_text(path), model=ref, name=path.stem)


def _text(path: str | Path) -> str:
    """Return the text of a file.

    Raises:
        ParameterError: It is no text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as err:
        raise ParameterError(f"{path} is no text", why=str(err), fix="save it as UTF-8") from err


def _tools(ref: str | None) -> list[Any]:
    """Return tools from a JSON file of schemas, or from `package.module:attribute` (one tool or a list).

    Raises:
        ParameterError: There are no tools in it.
    """
    if ref is None:
        return []
    fix = "pass --tools tools.json (a list of schemas), or --tools package.module:TOOLS"
    if ":" not in ref or Path(ref).is_file():
        if not ref.endswith(".json") and not Path(ref).is_file():
            raise ParameterError(f"--tools {ref!r} is no file", why="it names no attribute of a module either", fix=fix)
        try:
            found = json.loads(_text(ref))
        except ValueError as err:
            raise ParameterError(f"{ref} is no JSON", why=str(err), fix=fix) from err
        if isinstance(found, dict):
            found = found.get("tools", [found])
    else:
        from whileai_kernel.registry import resolve

        found = resolve("agents", ref)
        found = list(found) if isinstance(found, list | tuple) else [found]
    if not isinstance(found, list):
        raise ParameterError(f"{ref} holds no list of tools but {type(found).__name__}", fix=fix)
    return found
