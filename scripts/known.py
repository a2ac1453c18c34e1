"""Write whileai_kernel/known.json anew from what the project's own plugins register: `python scripts/known.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from whileai_kernel.registry import entries, kinds

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "whileai_kernel" / "known.json"


def known() -> dict[str, dict[str, list[str]]]:
    """Return kind -> plugin -> names, of the distributions under plugins/ that another one could install."""
    own = {folder.name for folder in (ROOT / "plugins").iterdir()} - {"whileai", "whileai-cli"}
    found: dict[str, dict[str, list[str]]] = {}
    for kind in kinds():
        for entry in entries(kind):
            if entry.plugin.distribution in own:
                found.setdefault(kind, {}).setdefault(entry.plugin.name, []).append(entry.name)
    return {k: {p: sorted(n) for p, n in sorted(v.items())} for k, v in sorted(found.items())}


if __name__ == "__main__":
    text = json.dumps(known(), indent=1, ensure_ascii=False)
    FILE.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    sys.stdout.write("wrote whileai_kernel/known.json\n")
