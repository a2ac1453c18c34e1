"""Exported files back as records: JSON Lines and Parquet, columns of JSON text decoded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whileai_kernel.errors import ParameterError, RowError
from whileai_kernel.rowio import loads

__all__ = ["data_files", "read_records"]


def data_files(path: Path) -> list[Path]:
    """Return the data files of an export: the file itself, or those that a folder's manifest lists.

    Raises:
        ParameterError: There is nothing to read.
    """
    if path.is_file():
        return [path]
    listed = path / "manifest.json"
    if not listed.is_file():
        raise ParameterError(f"{path} is no export", why="it is neither a file nor a folder with a manifest.json")
    names = [f["name"] for f in json.loads(listed.read_text(encoding="utf-8"))["files"]]
    return [path / name for name in names if not name.endswith("references.jsonl")]


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of an export.

    Raises:
        ParameterError: There is nothing to read.
        RowError: A line is no JSON object.
    """
    for file in data_files(path):
        if file.suffix == ".parquet":
            from whileai_export.parquet import read_parquet

            yield from read_parquet(file)
            continue
        with file.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(file, "rb") if packed else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                try:
                    record = loads(line.decode("utf-8"))
                except ValueError as err:
                    raise RowError(f"{file} line {number} is not JSON", why=str(err), fix="export again") from err
                if not isinstance(record, dict):
                    raise RowError(f"{file} line {number} is no object", fix="export again")
                yield record
