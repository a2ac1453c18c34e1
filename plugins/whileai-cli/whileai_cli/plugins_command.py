"""``wai plugins``: what is installed, what failed and why; ``wai plugins check NAME``: does it keep the contract.

Listing imports light modules only. Checking imports the components of one plugin and runs the conformance kit of
the kernel on them.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from whileai_cli.table import table
from whileai_kernel.errors import ParameterError


class PluginsCommand:
    """List plugins with distribution, version, kinds and failures, or check one."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the action, its argument and the output format."""
        parser.add_argument(
            "action", nargs="?", choices=("list", "check"), default="list", help="list (default) or check"
        )
        parser.add_argument("name", nargs="?", help="plugin to check, or to list the components of")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the list, or the report of the check.

        Returns:
            0; 1 when the plugin that was checked does not conform.

        Raises:
            ParameterError: ``check`` without a name.
            UnknownNameError: No plugin has that name.
        """
        if args.action == "check":
            if args.name is None:
                raise ParameterError("check needs a plugin", fix="wai plugins check NAME; names: wai plugins")
            return _check(args.name, args.json)
        if args.name is not None:
            return _components(args.name, args.json)
        return _list(args.json)


def _entries_by_plugin() -> dict[str, list[Any]]:
    from whileai_kernel.registry import entries, kinds

    found: dict[str, list[Any]] = {}
    for kind in kinds():
        for entry in entries(kind):
            found.setdefault(entry.plugin.name, []).append(entry)
    return found


def _list(as_json: bool) -> int:
    from whileai_kernel.plugins import manager

    by_plugin = _entries_by_plugin()  # also runs every register hook, so that its failures are known
    plugins, failures = manager().plugins, manager().failures
    listed = []
    for plugin in sorted(plugins, key=lambda p: p.name):
        kinds: dict[str, int] = {}
        for entry in by_plugin.get(plugin.name, []):
            kinds[entry.kind] = kinds.get(entry.kind, 0) + 1
        listed.append((plugin, kinds))
    if as_json:
        document = {
            "plugins": [
                {"name": p.name, "distribution": p.distribution, "version": p.version, "kinds": kinds}
                for p, kinds in listed
            ],
            "failures": [
                {field: getattr(f, field) for field in ("distribution", "version", "stage", "message", "fix")}
                for f in failures
            ],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    cells = [
        (p.name, p.distribution, p.version, ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "-")
        for p, kinds in listed
    ]
    sys.stdout.write(table(("plugin", "distribution", "version", "adds"), cells) + "\n")
    for failure in failures:
        sys.stdout.write(f"\nfailed: {failure}\n")
        if failure.fix:
            sys.stdout.write(f"  fix: {failure.fix}\n")
    return 0


def _components(name: str, as_json: bool) -> int:
    from whileai_kernel.testing import find_plugin

    plugin = find_plugin(name)
    found = sorted(_entries_by_plugin().get(plugin.name, []), key=lambda entry: (entry.kind, entry.id))
    if as_json:
        listed = [
            {"kind": e.kind, "id": e.id, "summary": e.summary, "target": e.target, "needs": e.needs} for e in found
        ]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return 0
    cells = [(e.kind, e.id, e.summary + (f" (needs [{e.needs}])" if e.needs else "")) for e in found]
    sys.stdout.write(f"{plugin.distribution} {plugin.version}\n")
    sys.stdout.write(table(("kind", "id", "summary"), cells) + "\n")
    return 0


def _check(name: str, as_json: bool) -> int:
    from whileai_kernel.testing import check_plugin

    report = check_plugin(name)
    sys.stdout.write((json.dumps(report.to_dict(), indent=2) if as_json else str(report)) + "\n")
    return 0 if report.ok else 1
