"""`wai demo`: the whole loop on one page, offline, with every step printed.

Shows what the calls of the front door return; it is a program to read, not a library. With `--model`, a real model
answers and judges: `local:smollm2` needs no key and no network.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whileai.data import ScoredData

__all__ = ["Demo", "run", "run_model"]

SAMPLING = {"max_tokens": 64, "temperature": 0.7, "stop": [". ", "! ", "? ", "\n"]}
"""One sentence a turn, so that replies of a model that does not stop by itself are whole."""
POLICY = "You are a friendly assistant. Answer in one short sentence."
RUBRIC = "The reply answers the question that was asked."
VERDICT_TEXT = 80
"""Characters of a verdict's reason; a small model writes as many as it may."""


def run(folder: Path, situations: int = 16, repeats: int = 4, seed: int = 0) -> int:
    """Run the loop into a folder and print each step.

    Args:
        folder: Where the file for the trainer is written.
        situations: Number of tasks.
        repeats: Rollouts per task.
        seed: Seed; the same seed prints the same text.

    Returns:
        Exit code.
    """
    import whileai as wai

    out = sys.stdout.write

    @wai.tool(kind="read")
    def get_order(order_id: str) -> dict[str, str]:
        """Look up an order by id."""
        raise NotImplementedError

    @wai.tool(kind="write")
    def cancel_order(order_id: str, reason: str) -> dict[str, str]:
        """Cancel an order that has not shipped."""
        raise NotImplementedError

    tools = [get_order, cancel_order]
    out("1 simulate: a seeded agent with two tools, in a world that fails on purpose\n")
    data = wai.simulate(
        wai.seeded_agent(tools),
        tools=tools,
        system_prompt="Help customers with their orders. Cancel only what has not shipped.",
        simulator=False,
        mode="rl",
        repeats=repeats,
        repeat_policy="fixed",
        situations=situations,
        seed=seed,
    )
    out(f"  {data!r}\n  first ask: {data[0]['prompt']}\n")
    out("2 grade: the seeded agent labels what it did wrong, so the right verdict is known\n")
    scored = data.grade(judge="seeded")
    out(f"  {scored!r}\n")
    _measure_select_export(scored, folder)
    return 0


def run_model(folder: Path, spec: str, situations: int = 8, repeats: int = 4, seed: int = 0) -> int:
    """Run the loop with a real model on both sides, into a folder, and print each step.

    Replies are kept in the folder: the same command there again makes no request, and one that was cut off goes on.

    Args:
        folder: Where the rollouts, the replies and the file for the trainer are written.
        spec: The model, for example `local:smollm2`; a bare `local` is that one.
        situations: Number of tasks.
        repeats: Rollouts per task.
        seed: Seed; a model that honours seeds repeats itself.

    Returns:
        Exit code.
    """
    import whileai as wai

    out = sys.stdout.write
    folder.mkdir(parents=True, exist_ok=True)
    model = wai.Local(schema_text=VERDICT_TEXT) if spec == "local" else wai.resolve("models", spec)
    kept = wai.Cached(model, folder / "replies.sqlite")
    agent = wai.make("agents", "openai/model", model=kept, sampling=SAMPLING, seeded=True)
    began = time.monotonic()
    out(f"1 simulate: {model.id} as the agent\n")
    concurrency = getattr(model, "parallel", 8)
    data = wai.simulate(
        agent,
        system_prompt=POLICY,
        situations=situations,
        repeats=repeats,
        seed=seed,
        concurrency=concurrency,
        deadline_s=600.0,
        checkpoint=folder / "rollouts.journal",
    )
    out(f"  {data!r}\n  first ask: {data[0]['prompt']}\n  first reply: {data[0]['final_text']}\n")
    simulated = time.monotonic()
    out("2 grade: the same model by a rubric, its answer held to a JSON schema\n")
    out("  a judge that is the model it judges is refused; here it is allowed by name, to need one model only\n")
    judge = wai.Judge(RUBRIC, kept, sampling={"max_tokens": 160, "temperature": 0.0}, allow_self=[model.id])
    scored = data.grade(judge=judge, concurrency=concurrency, deadline=600.0)
    readable = sum(row["status"] == "ok" for row in scored)
    out(f"  {scored!r}\n  verdicts that can be read: {readable} of {len(scored)}\n")
    graded = time.monotonic()
    _measure_select_export(scored, folder)
    out(
        f"requests made: {kept.misses}, from the cache: {kept.hits}; "
        f"simulate {simulated - began:.1f} s, grade {graded - simulated:.1f} s\n"
    )
    kept.close()
    return 0


def _measure_select_export(scored: ScoredData, folder: Path) -> None:
    out: Any = sys.stdout.write
    out("3 measure\n")
    out(f"  {scored.pass_at}\n")
    out("4 select: tasks that the policy sometimes solves\n")
    chosen = scored.select(mode="rl")
    out(f"  {chosen}\n")
    out("5 export: what a trainer reads\n")
    if not len(chosen):
        out("  nothing to export: no task is solved sometimes and failed sometimes\n")
        return
    report = chosen.export(folder / "train.jsonl", overwrite=True)
    out(f"  {report}\n")


class Demo:
    """The command `wai demo`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--out", type=Path, default=None, help="folder for the exported file (default: a temporary one)"
        )
        parser.add_argument("--model", help="a real model on both sides: local (no key, no network), or any model spec")
        parser.add_argument("--situations", type=int, help="number of tasks (default: 16, with --model 8)")
        parser.add_argument("--repeats", type=int, default=4, help="rollouts per task (default: 4)")
        parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")

    def run(self, args: argparse.Namespace) -> int:
        """Run the loop."""
        if args.out is not None:
            return self._into(args.out, args)
        with tempfile.TemporaryDirectory() as folder:
            return self._into(Path(folder), args)

    def _into(self, folder: Path, args: argparse.Namespace) -> int:
        if args.model is not None:
            return run_model(folder, args.model, args.situations or 8, args.repeats, args.seed)
        return run(folder, args.situations or 16, args.repeats, args.seed)
