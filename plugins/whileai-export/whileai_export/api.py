"""The front door: `export(rows, path, to=...)`.

Example:
    >>> import pathlib, tempfile
    >>> rows = [{"task_id": "t", "prompt": "2+2?", "final_text": "4", "reward": 1.0, "status": "ok"}]
    >>> print(export(rows, pathlib.Path(tempfile.mkdtemp()) / "train.jsonl"))
    wrote 1 rows to train.jsonl
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from whileai_kernel import make
from whileai_kernel.protocols import ExportReport

__all__ = ["export"]


def export(
    rows: Iterable[Mapping[str, Any]] | str | Path,
    path: str | Path,
    to: str = "chat",
    *,
    overwrite: bool = False,
    allow: Collection[str] = (),
    **options: Any,
) -> ExportReport:
    """Write rows to a file or folder that a trainer reads as meant.

    Args:
        rows: Rows, or the path of a JSONL file of rows.
        path: A file (`.jsonl`, `.parquet`), or a folder, which also gets a manifest and a card. Writing the same
            content again changes nothing; other content is replaced only with `overwrite`.
        to: Name of an exporter: `chat`, `openai`, `trl`, `anthropic`, `sharegpt`, or another plugin's.
        overwrite: Replace other content that is there.
        allow: Names of findings that do not stop the export.
        options: Options of the exporter: `kind`, `train`, `unroll`, `reasoning`, ...; see
            `whileai_export.exporters.Options`.

    Returns:
        The report. It prints as one line and one line per note.

    Raises:
        UnknownNameError: No exporter has the name.
        ParameterError: An option is unknown, or the target holds other content.
        FindingsError: A check found something that stops the export.
    """
    exporter = make("exporters", to)
    source: Any = rows
    if isinstance(rows, str | Path) and not hasattr(exporter, "target"):
        from whileai_kernel.rowio import read_rows

        source = list(read_rows(rows))
    place: Any = path if hasattr(exporter, "target") else Path(path)  # a / at the end says that it is a folder
    report: ExportReport = exporter.export(source, place, overwrite=overwrite, allow=allow, **options)
    return report
