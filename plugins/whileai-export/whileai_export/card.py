"""The dataset card: a README that loaders and people read, written without any library.

Its front matter names the features, so that `datasets.load_dataset(folder)` reads every value as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whileai_export.manifest import features_yaml

__all__ = ["card_text"]


def card_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the card for a manifest."""
    files = [f["name"] for f in manifest["files"] if not f["name"].endswith("references.jsonl")]
    columns = manifest["columns"]
    parquet = bool(files) and files[0].endswith(".parquet")
    front = ["---", "configs:", "- config_name: default", "  data_files:", "  - split: train"]
    front += ["    path:", *(f"    - {name}" for name in files)] if len(files) > 1 else [f"    path: {files[0]}"]
    if not parquet:
        front += ["dataset_info:", "  features:", features_yaml(columns)]
    front.append("---")
    dropped = [f"* {count} rows left out: {reason}" for reason, count in manifest["dropped"].items()]
    body = [
        "",
        f"# {manifest['kind']} data for {manifest['target']}",
        "",
        f"{manifest['written']} records from {manifest['rows']} rollouts of {manifest['tasks']} tasks.",
        "",
        *dropped,
        *(f"* {note}" for note in manifest["notes"]),
        "",
        "```python",
        manifest["load"],
        "```",
        "",
        *(
            ["Older versions of `datasets` than 4.7 need an export with `as_text=True`.", ""]
            if manifest["needs"] != "datasets"
            else []
        ),
        "What was done, with hashes and versions, is in `manifest.json`.",
        "",
    ]
    return "\n".join([*front, *body])
