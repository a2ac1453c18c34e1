"""The manifest: what is in an export, where it came from, what was left out and why, and how to load it.

It holds no time and no path of the machine, so the same export gives the same bytes.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_export.columns import FREE_FORM
from whileai_export.files import Written, write_text
from whileai_export.targets import Target
from whileai_kernel.lifecycle import Finding
from whileai_kernel.plugins import manager
from whileai_kernel.protocols import ExportReport
from whileai_kernel.rows import SCHEMA_VERSION, content_id, task_key

__all__ = ["features_yaml", "load_code", "manifest_of", "write_manifest"]

VERSION = 1
JSON_LOADER = "datasets>=4.7"
"""First version of the library whose features can hold free-form JSON."""
_FEATURES = {
    "messages": "List(Json())",
    "json": "Json()",
    "text": 'Value("string")',
    "float": 'Value("float64")',
    "int": 'Value("int64")',
    "bool": 'Value("bool")',
    "ints": 'List(Value("int64"))',
}
_YAML = {
    "messages": "list: json",
    "json": "dtype: json",
    "text": "dtype: string",
    "float": "dtype: float64",
    "int": "dtype: int64",
    "bool": "dtype: bool",
    "ints": "list: int64",
}


def load_code(files: Sequence[str], columns: Mapping[str, str], name: str = ".") -> str:
    """Return Python that loads the files with every value as it was written.

    The features are named because a loader that guesses them re-reads text such as "007" as a number.
    """
    kind = "parquet" if files and files[0].endswith(".parquet") else "json"
    paths = [f if name == "." else name for f in files] if len(files) == 1 else list(files)
    if kind == "parquet":
        return f'from datasets import load_dataset\nrows = load_dataset({kind!r}, data_files={paths!r}, split="train")'
    features = ", ".join(f'"{c}": {_FEATURES[t]}' for c, t in columns.items())
    names = [n for n in ("Json", "List", "Value") if f"{n}(" in features]
    return (
        f"from datasets import Features, {', '.join(names)}, load_dataset\n"
        f"features = Features({{{features}}})\n"
        f'rows = load_dataset({kind!r}, data_files={paths!r}, features=features, split="train")'
    )


def features_yaml(columns: Mapping[str, str]) -> str:
    """Return the columns as the `features` of a dataset card, one line per column."""
    lines = []
    for column, kind in columns.items():
        lines.append(f"  - name: {column}")
        lines.append(f"    {_YAML[kind]}")
    return "\n".join(lines)


def _versions() -> dict[str, str]:
    plugins = {p.distribution: p.version for p in manager().plugins if p.distribution != "local"}
    return dict(sorted({"whileai-kernel": importlib.metadata.version("whileai-kernel"), **plugins}.items()))


def _counted(values: Sequence[Any]) -> dict[str, int]:
    return {str(k): n for k, n in sorted(Counter(str(v) for v in values if v not in (None, "")).items())}


def manifest_of(
    *,
    target: Target,
    options: Any,
    report: ExportReport,
    files: Sequence[Written],
    rows: Sequence[Mapping[str, Any]],
    findings: Sequence[Finding],
    columns: Mapping[str, str],
    settings: Mapping[str, Any],
    declared: Sequence[str],
    flags: Sequence[str],
    name: str,
) -> dict[str, Any]:
    """Return the manifest of an export as plain values."""
    data = [f.name for f in files if not f.name.endswith("references.jsonl")]
    lineage = [row.get("lineage") or {} for row in rows]
    world = [row.get("world") or {} for row in rows]
    train = options.train if isinstance(options.train, str) else list(options.train)
    return {
        "manifest_version": VERSION,
        "row_schema_version": SCHEMA_VERSION,
        "target": target.name,
        "kind": options.kind,
        "train": train,
        "train_arguments": options.train_arguments,
        "unroll": options.unroll,
        "reasoning": options.reasoning or target.reasoning,
        "rows": len(rows),
        "tasks": len({task_key(row) for row in rows}),
        "written": report.written,
        "dropped": dict(report.dropped),
        "flagged": list(flags),
        "files": [f.to_dict() for f in files],
        "rows_id": content_id("rows", [str(row.get("rollout_id") or "") for row in rows]),
        "sources": _counted([x.get("source") or x.get("writer") for x in lineage]),
        "source_files": _counted([x.get("file") for x in lineage]),
        "seeds": sorted({x["seed"] for x in world if isinstance(x.get("seed"), int)}),
        "policies": _counted(
            [(row.get("policy") or {}).get("model") or (row.get("policy") or {}).get("name") for row in rows]
        ),
        "scorers": _counted([(row.get("scorer") or {}).get("id") for row in rows]),
        "versions": _versions(),
        "findings": [finding.to_dict() for finding in findings],
        "integers_as_text": list(declared),
        "columns": dict(columns),
        "trainer": {"switches": dict(settings["switches"]), "enforced": settings["enforced"]},
        "notes": list(report.notes),
        "needs": JSON_LOADER if any(kind in FREE_FORM for kind in columns.values()) else "datasets",
        "load": load_code(data, columns, name),
    }


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest as indented JSON."""
    write_text(path, json.dumps(manifest, ensure_ascii=True, indent=2, allow_nan=False) + "\n")
