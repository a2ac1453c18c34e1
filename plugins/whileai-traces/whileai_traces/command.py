"""`wai convert IN OUT`: recorded runs of another tool as rows, or straight to a trainer's format."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["ConvertCommand"]

ROWS = "rows"
EXPORT = "export/export"
"""Full id of the command whose options say how an exporter writes."""


def _exporting() -> Any:
    """Return the command whose options an export takes, or `None` where the plugin of the exporters is absent."""
    from whileai_kernel import entries, make

    return make("commands", EXPORT) if any(e.id == EXPORT for e in entries("commands")) else None


def _named_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return `NAME=VALUE` texts as keyword arguments; a value that is no JSON is text."""
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            from whileai_kernel.errors import ParameterError

            raise ParameterError(f"{pair!r} is no parameter", fix="write NAME=VALUE, for example --param score=match")
        try:
            out[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            out[name.strip().replace("-", "_")] = value
    return out


class ConvertCommand:
    """Reads any known format and writes rows, or what an installed exporter writes."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command; those of an export come from the plugin of the exporters."""
        parser.add_argument("source", metavar="IN", help="file, folder or pattern to read")
        parser.add_argument("target", metavar="OUT", help="file (or, for an exporter, folder) to write")
        parser.add_argument(
            "--format", "--from", dest="format", metavar="FORMAT", help="format of IN (default: found by content)"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter of the format, for example score=match; the value is JSON or text",
        )
        parser.add_argument(
            "--to", default=ROWS, metavar="NAME", help="rows, or an exporter: chat, trl, ... (default: rows)"
        )
        exporting = _exporting()
        if exporting is not None:
            exporting.add_options(parser.add_argument_group("with --to an exporter"))
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

        exporting = _exporting()
        options: dict[str, Any] = exporting.options(args) if exporting is not None else {}
        if args.to == ROWS and options:
            given = ", ".join(options)
            raise ParameterError(
                f"{given} is for exporters, and rows are written as they are",
                fix=f"name an exporter with --to, or leave {given} out",
            )
        exporter = None if args.to == ROWS else make("exporters", args.to)
        data = read(args.source, args.format, **_named_values(args.param))
        formats = ", ".join(sorted(data.provenance["formats"]))
        sys.stdout.write(f"read {len(data)} rows as {formats or 'nothing'}\n")
        for warning in data.warnings:
            sys.stderr.write(f"  {warning}\n")
        if exporter is None:
            target = Path(args.target)
            try:
                count = data.write(target, overwrite=args.overwrite)
            except FileExistsError as err:
                raise ParameterError(str(err), fix="pass --overwrite, or another OUT") from err
            sys.stdout.write(f"wrote {count} rows to {target.name}\n")
            return 0
        place: Any = args.target if hasattr(exporter, "target") else Path(args.target)  # a / at the end says: a folder
        report = exporter.export(data.rows, place, overwrite=args.overwrite, allow=args.allow, **options)
        sys.stdout.write(f"{report}\n")
        return 0
