"""``wai defaults``: every number that shapes a result, of every plugin, with its meaning and its source."""

from __future__ import annotations

import argparse
import json
import sys

from whileai_kernel.errors import UnknownNameError, nearest


class DefaultsCommand:
    """Print the sourced constants of the kernel and of all plugins."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the plugin to show and the output format."""
        parser.add_argument("plugin", nargs="?", help="show only this plugin, for example: judge")
        parser.add_argument("--json", action="store_true", help="print a JSON list")

    def run(self, args: argparse.Namespace) -> int:
        """Print the constants, sorted by plugin and name.

        Raises:
            UnknownNameError: No plugin of that name has constants.
        """
        from whileai_kernel.defaults import collect

        rows = collect()
        if args.plugin is not None:
            names = sorted({row.plugin for row in rows})
            wanted = args.plugin.removeprefix("whileai-")
            rows = [row for row in rows if row.plugin == wanted]
            if not rows:
                near = nearest(wanted, names)
                raise UnknownNameError(
                    f"no plugin {args.plugin!r} with defaults",
                    why=f"those with defaults are {', '.join(names)}",
                    fix=f"did you mean {near[0]!r}?" if near else "see: wai plugins",
                )
        if args.json:
            fields = ("plugin", "name", "value", "meaning", "source")
            listed = [{field: getattr(row, field) for field in fields} for row in rows]
            sys.stdout.write(json.dumps(listed, indent=2, default=str) + "\n")
            return 0
        plugin = None
        for row in rows:
            if row.plugin != plugin:
                sys.stdout.write(f"{'' if plugin is None else chr(10)}{row.plugin}\n")
                plugin = row.plugin
            sys.stdout.write(f"  {row.name} = {row.value!r}\n    {row.meaning}\n    source: {row.source}\n")
        return 0
