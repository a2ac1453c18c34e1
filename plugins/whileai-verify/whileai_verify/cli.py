"""`wai verify FILE --with NAME`: grade the rows of a file with a verifier."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

__all__ = ["VerifyCommand"]


class VerifyCommand:
    """Grade the rows of a JSONL file and print how many pass."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""
        parser.add_argument("file", help="rows as JSONL")
        parser.add_argument(
            "--with", dest="verifier", required=True, metavar="NAME", help="verifier, e.g. numeric or math"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="parameter of the verifier; VALUE is JSON or text",
        )
        parser.add_argument("--out", metavar="FILE", help="write the graded rows here")
        parser.add_argument(
            "--second", metavar="NAME", help="audit against this verifier, or 'recorded' for the rewards on the rows"
        )
        parser.add_argument("--null-agents", action="store_true", help="score agents that do nothing instead")
        parser.add_argument("--threads", type=int, default=4, help="rows graded at once")

    def run(self, args: argparse.Namespace) -> int:
        """Run the command; 0 on success, 1 when null agents are paid."""
        from whileai_kernel.registry import make
        from whileai_kernel.rowio import read_rows, write_rows
        from whileai_verify.auditing import audit, null_agents
        from whileai_verify.batch import verify_rows

        part = make("verifiers", _SHORT.get(args.verifier, args.verifier), **_params(args.param))
        if args.null_agents:
            report = null_agents(part, read_rows(args.file))
            _say(str(report))
            return 1 if report.flagged else 0
        if args.second:
            second = args.second if args.second == "recorded" else _SHORT.get(args.second, args.second)
            _say(str(audit(part, read_rows(args.file), second, threads=args.threads)))
            return 0
        rows = verify_rows(read_rows(args.file), part, threads=args.threads)
        _say(summary(rows))
        if args.out:
            _say(f"wrote {write_rows(args.out, rows)} rows to {args.out}")
        return 0


_SHORT = {
    "math": "verify/math_equal",
    "number": "verify/numeric",
    "choice": "verify/multiple_choice",
    "code": "verify/code_exec",
}


def _params(pairs: list[str]) -> dict[str, Any]:
    from whileai_kernel.errors import ParameterError

    out: dict[str, Any] = {}
    for pair in pairs:
        key, sep, text = pair.partition("=")
        if not sep or not key:
            raise ParameterError(f"--param {pair!r} is not KEY=VALUE", fix="for example --param rel_tol=0.01")
        try:
            out[key] = json.loads(text)
        except ValueError:
            out[key] = text
    return out


def summary(rows: list[dict[str, Any]]) -> str:
    """Return one line: pass rate, mean reward, and how many rows were not scored and why."""
    scored = [r for r in rows if r["reward"] is not None]
    passed = sum(r["reward"] >= r["threshold"] - 1e-9 for r in scored)
    left: dict[str, int] = {}
    for row in rows:
        if row["reward"] is None:
            left[row["status"]] = left.get(row["status"], 0) + 1
    head = f"passed {passed} of {len(scored)}"
    if scored:
        head += f" ({passed / len(scored):.3f}), mean reward {sum(r['reward'] for r in scored) / len(scored):.3f}"
    return (
        head
        + f", not scored {sum(left.values())}"
        + (f" ({', '.join(f'{k} {v}' for k, v in left.items())})" if left else "")
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
