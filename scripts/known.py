"""Write whileai_kernel/known.py anew from what the project's own plugins register: `python scripts/known.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from whileai_kernel.registry import entries, kinds

ROOT = Path(__file__).resolve().parent.parent
HEAD = '''"""Names that the project's own plugins offer, so that an unknown name can say what to install.

Only for error messages: nothing is looked up here. `scripts/known.py` writes it and a test keeps it complete.
"""

from __future__ import annotations

__all__ = ["KNOWN"]

# fmt: off
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
'''
FOOT = '''}
"""Kind -> plugin name -> bare names."""
# fmt: on
'''


def known() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return kind -> plugin -> names, of the distributions under plugins/ that another one could install."""
    own = {folder.name for folder in (ROOT / "plugins").iterdir()} - {"whileai", "whileai-cli"}
    found: dict[str, dict[str, list[str]]] = {}
    for kind in kinds():
        for entry in entries(kind):
            if entry.plugin.distribution in own:
                found.setdefault(kind, {}).setdefault(entry.plugin.name, []).append(entry.name)
    return {k: {p: tuple(sorted(n)) for p, n in sorted(v.items())} for k, v in sorted(found.items())}


def text() -> str:
    """Return the module's text."""
    lines = []
    for kind, plugins in known().items():
        lines.append(f"    {kind!r}: {{")
        for plugin, names in plugins.items():
            rows, row = [], "           "
            for name in names:
                if len(row) + len(name) + 4 > 110:
                    rows.append(row)
                    row = "           "
                row += f" {name!r},"
            lines += [f"        {plugin!r}: (", *rows, row, "        ),"]
        lines.append("    },")
    body = "\n".join(lines).replace("'", '"')
    return f"{HEAD}{body}\n{FOOT}"


if __name__ == "__main__":
    (ROOT / "whileai_kernel" / "known.py").write_text(text(), encoding="utf-8", newline="\n")
    sys.stdout.write("wrote whileai_kernel/known.py\n")
