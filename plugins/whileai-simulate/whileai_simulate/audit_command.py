"""`wai audit-user FILE`: which failures of a file of rows are the simulated user's."""

from __future__ import annotations

import argparse
import json
import sys

__all__ = ["AuditUserCommand"]


class AuditUserCommand:
    """Audit the simulated users of a file of graded rows."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("file", help="JSONL file of graded rows")
        parser.add_argument("--judge", help="a model that is asked about every failed talk as well")
        parser.add_argument("--json", action="store_true", help="print the whole audit as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the audit."""
        from whileai_kernel.rowio import read_rows
        from whileai_simulate.audit import audit_user

        audit = audit_user(read_rows(args.file), judge=args.judge)
        text = json.dumps(audit.to_dict(), ensure_ascii=False, indent=2) if args.json else str(audit)
        sys.stdout.write(f"{text}\n")
        return 0
