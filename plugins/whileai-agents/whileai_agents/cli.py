"""`wai proxy`: the recording proxy from the shell."""

from __future__ import annotations

import argparse
import sys
import threading

__all__ = ["ProxyCommand"]


class ProxyCommand:
    """Run the recording proxy until it is interrupted."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        add = parser.add_argument
        add("--out", required=True, help="JSONL file for the rows, one per conversation; an existing one is continued")
        add("--model", help="model that answers, for example vllm:qwen3@http://127.0.0.1:8000/v1")
        add("--world", help="rows of a simulation: serve their tools per rollout, as MCP servers")
        add("--make-world", help="own worlds: file.py:function, called with the task, returns call(name, arguments)")
        add("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
        add("--logprobs", action="store_true", help="ask the model for log-probabilities")
        add("--deadline", type=float, help="seconds for one reply of the model (default: the model's own)")

    def run(self, args: argparse.Namespace) -> int:
        """Serve until Ctrl-C or SIGTERM; the rows are in the file at every moment."""
        from whileai_agents.proxying import Proxy
        from whileai_agents.worlds import read_worlds
        from whileai_kernel.errors import ParameterError

        if args.model is None and args.world is None:
            raise ParameterError("nothing to serve", fix="give --model, --world, or both")
        worlds = read_worlds(args.world, args.make_world) if args.world else None
        running = Proxy(
            args.model,
            args.out,
            sampling={"logprobs": True} if args.logprobs else None,
            port=args.port,
            deadline_s=args.deadline,
            make_rollout=worlds,
        )
        done = threading.Event()
        previous = _on_term(done)
        try:
            with running:
                say = sys.stdout.write
                if running.recovered_bytes:
                    say(f"cut off a torn last line of {running.recovered_bytes} bytes\n")
                if args.model is not None:
                    say(f"base URL        {running.base_url}\n")
                say(f"of one rollout  {running.url}/r/<name>/v1\n")
                if worlds is not None:
                    say(f"its tools       {running.url}/r/<name>/mcp\n")
                    last = len(worlds.tasks) - 1
                    say(f"{last + 1} tasks: <name> is 0 to {last}, further tries are 0.1, 0.2\n")
                    say(f"list of tasks   {running.url}/tasks\n")
                say(f"recording to {args.out}; Ctrl-C ends\n")
                sys.stdout.flush()
                _wait(done)
                count = len(running.rows())
        finally:
            _restore(previous)
        sys.stdout.write(f"{count} rows in {args.out}\n")
        return 0


def _wait(done: threading.Event) -> None:
    try:
        while not done.wait(3600.0):
            continue
    except KeyboardInterrupt:
        return


def _on_term(done: threading.Event) -> object:
    """End on SIGTERM as on Ctrl-C, where this is the main thread of a process that gets signals."""
    import signal

    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGTERM, lambda *_: done.set())


def _restore(previous: object) -> None:
    import signal

    if previous is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, previous)  # type: ignore[arg-type]
