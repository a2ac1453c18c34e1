"""`wai demo`: the whole loop on one page, offline, with every step printed.

Shows what the calls of the front door return; it is a program to read, not a library.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

__all__ = ["Demo", "run"]


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
    out("3 measure\n")
    out(f"  {scored.pass_at}\n")
    out("4 select: tasks that the policy sometimes solves\n")
    chosen = scored.select(mode="rl")
    out(f"  {chosen}\n")
    out("5 export: what a trainer reads\n")
    report = chosen.export(folder / "train.jsonl", overwrite=True)
    out(f"  {report}\n")
    return 0


class Demo:
    """The command `wai demo`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--out", type=Path, default=None, help="folder for the exported file (default: a temporary one)"
        )
        parser.add_argument("--situations", type=int, default=16, help="number of tasks (default: 16)")
        parser.add_argument("--repeats", type=int, default=4, help="rollouts per task (default: 4)")
        parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")

    def run(self, args: argparse.Namespace) -> int:
        """Run the loop."""
        if args.out is not None:
            return run(args.out, args.situations, args.repeats, args.seed)
        with tempfile.TemporaryDirectory() as folder:
            return run(Path(folder), args.situations, args.repeats, args.seed)
