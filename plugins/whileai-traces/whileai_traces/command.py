"""`wai convert IN OUT`: recorded runs of another tool as rows, or straight to a trainer's format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["ConvertCommand"]

ROWS = "rows"


class ConvertCommand:
    """Reads any known format and writes rows, or what an installed exporter writes."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("source", metavar="IN", help="file, folder or pattern to read")
        parser.add_argument("target", metavar="OUT", help="file (or, for an exporter, folder) to write")
        parser.add_argument("--from", dest="format", metavar="FORMAT", help="format of IN (default: found by content)")
        parser.add_argument(
            "--to", default=ROWS, metavar="NAME", help="rows, or an exporter: chat, trl, ... (default: rows)"
        )
        parser.add_argument("--kind", help="kind of record, for exporters that have kinds")
        parser.add_argument(
            "--allow", action="append", default=[], metavar="NAME", help="a finding that does not stop it"
        )
        parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")

    def run(self, args: argparse.Namespace) -> int:
        """Convert and print what was read, what was written and what was skipped."""
        import sys

        from whileai_kernel import make
        from whileai_kernel.errors import ParameterError
        from whileai_traces.reading import read

        data = read(args.source, args.format)
        formats = ", ".join(sorted(data.provenance["formats"]))
        sys.stdout.write(f"read {len(data)} rows as {formats or 'nothing'}\n")
        for warning in data.warnings:
            sys.stderr.write(f"  {warning}\n")
        target = Path(args.target)
        if args.to == ROWS:
            if args.kind:
                raise ParameterError("rows have no kind", fix="leave --kind out, or name an exporter with --to")
            try:
                count = data.write(target, overwrite=args.overwrite)
            except FileExistsError as err:
                raise ParameterError(str(err), fix="pass --overwrite, or another OUT") from err
            sys.stdout.write(f"wrote {count} rows to {target.name}\n")
            return 0
        options: dict[str, Any] = {"kind": args.kind} if args.kind else {}
        exporter = make("exporters", args.to)
        report = exporter.export(data.rows, target, overwrite=args.overwrite, allow=args.allow, **options)
        sys.stdout.write(f"{report}\n")
        return 0
